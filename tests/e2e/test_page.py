"""The page of `postrender explain --format html` in a browser: whether it is drawn at once, and nothing of it sticks out.

A page is shown in frames of both widths, which a script of the test's own measures; the page itself has none.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from postrender.options import Options
from tests.unit import test_page as pages

CHROMIUM = Path(__file__).parents[2] / ".programs/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--window-size=1500,1000"]  # fmt: skip
LIGHT, DARK = "--blink-settings=preferredColorScheme=1", "--blink-settings=preferredColorScheme=0"
WIDTHS = (360, 1400)

LEADER_WORKER_SET = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm, namespace: ml}
spec:
  replicas: 20
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {containers: []}}
"""
WIDE = "topologyKey: rack, maxReplicas: 9, leader: {schedulerName: a}, worker: {size: 1600}"
PAGES = {
    "200 gangs": pages.html(pages.MANY),
    "names of others": pages.html(pages.HOSTILE, file="f" * 255),
    "spares": pages.html(pages.RT + pages.service(f"minReplicas: 3, {WIDE}"), Options(spares=2, instances="max")),
    "one pod": pages.html(pages.RT + pages.service("minReplicas: 2")),
    "refused": pages.html(pages.RT + pages.service("leader: {}, worker: {size: 0}")),
    "unknown": pages.html(pages.service("minReplicas: 2")),
    "whole": pages.html(LEADER_WORKER_SET, Options(leaderworkersets=True, replicas="whole")),
    "policy": pages.html(LEADER_WORKER_SET, Options(leaderworkersets=True, replicas="policy")),
    "nothing": pages.html("kind: ConfigMap\n"),
}

MEASURE = """
<pre></pre><script>
addEventListener('load', () => {
  const measured = [...document.querySelectorAll('iframe')].map(frame => {
    const inner = frame.contentDocument, out = [], seen = inner.defaultView
    for (const element of inner.querySelectorAll('body, body *')) {
      const box = element.getBoundingClientRect()
      if (box.left < -0.5 || box.right > seen.innerWidth + 0.5 || element.scrollWidth > element.clientWidth + 1
          && seen.getComputedStyle(element).display != 'inline')
        out.push(element.outerHTML.slice(0, 200))
    }
    return {name: frame.title, width: seen.innerWidth, whole: inner.documentElement.scrollWidth, out: out.slice(0, 5),
      paper: seen.getComputedStyle(inner.body).backgroundColor, text: inner.body.innerText.length}
  })
  document.querySelector('pre').textContent = JSON.stringify(measured)
})
</script>
"""
# The dump does not wait for a frame to be painted; to ask for the height makes the browser lay all of it out.
TIME = """
<pre hidden></pre><script>
addEventListener('load', () => {
  const height = document.body.scrollHeight
  document.querySelector('pre').textContent = JSON.stringify({height, drawn: performance.now()})
})
</script>
"""


def answered(page: str, folder: Path, *flags: str) -> Any:
    """Return what the script of a page wrote into its `pre`."""
    assert CHROMIUM.exists(), "run 'make e2e': it brings a Chromium"
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    command = [CHROMIUM, *FLAGS, *flags, f"--user-data-dir={folder / 'profile'}", "--dump-dom", path.as_uri()]
    done = subprocess.run(command, capture_output=True, timeout=120, check=False)
    found = re.search(r"<pre[^>]*>(.+?)</pre>", done.stdout.decode(), re.DOTALL)
    assert found, done.stderr.decode()
    return json.loads(html.unescape(found[1]))


@pytest.mark.parametrize(("theme", "paper"), [(LIGHT, "rgb(255, 255, 255)"), (DARK, "rgb(18, 22, 28)")])
def test_nothing_sticks_out(theme: str, paper: str, tmp_path: Path) -> None:
    frames = "".join(
        f'<iframe title="{name}" width={width} height=800 frameborder=0 srcdoc="{html.escape(text)}"></iframe>'
        for name, text in PAGES.items()
        for width in WIDTHS
    )
    measured = answered(f"<!doctype html><meta charset=utf-8>{frames}{MEASURE}", tmp_path, theme)
    assert [(one["name"], one["width"]) for one in measured] == [(name, width) for name in PAGES for width in WIDTHS]
    for one in measured:
        assert one["out"] == [], one
        assert one["whole"] <= one["width"], one
        assert one["paper"] == paper
        assert one["text"] > 50


def test_what_sticks_out_is_seen(tmp_path: Path) -> None:
    """The measure itself: a page whose long names are not broken is too wide."""
    bad = PAGES["names of others"].replace("overflow-wrap:anywhere", "white-space:nowrap")
    frame = f'<iframe title=bad width=360 height=800 srcdoc="{html.escape(bad)}"></iframe>'
    [measured] = answered(f"<!doctype html><meta charset=utf-8>{frame}{MEASURE}", tmp_path, LIGHT)
    assert measured["out"]
    assert measured["whole"] > 360


def test_200_gangs_are_drawn_within_a_second(tmp_path: Path) -> None:
    """The best of three, for other programs run too."""
    runs = [answered(PAGES["200 gangs"] + TIME, tmp_path) for _ in range(3)]
    print("drawn after", sorted(round(run["drawn"]) for run in runs), "ms")
    assert all(run["height"] > 20_000 for run in runs)
    assert min(run["drawn"] for run in runs) < 1_000


def test_it_prints(tmp_path: Path) -> None:
    """On paper too every page has its text, in the light theme: no page is black."""
    path = tmp_path / "page.html"
    path.write_text(PAGES["spares"], encoding="utf-8")
    printed = tmp_path / "page.pdf"
    command = [CHROMIUM, *FLAGS, DARK, f"--user-data-dir={tmp_path / 'profile'}", "--no-pdf-header-footer",
        f"--print-to-pdf={printed}", path.as_uri()]  # fmt: skip
    subprocess.run(command, capture_output=True, timeout=120, check=True)
    assert printed.read_bytes().startswith(b"%PDF-")
    assert printed.stat().st_size > 10_000
