"""`check` around its findings: streams that are closed, files that are not there, places in what was rendered."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

from postrender import review
from postrender.manifests.stream import BOM
from postrender.options import Options
from tests.test_cases import STREAMS, Case

ROOT = pathlib.Path(__file__).parents[2]
SCRIPT = pathlib.Path(sys.executable).with_name("postrender")
LABELLED = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: probe
spec:
  template:
    metadata:
      labels:
        scheduling.x-k8s.io/pod-group: nowhere
    spec:
      schedulerName: scheduler-plugins-scheduler
"""
LABEL_LINE = 9


def shell(command: str, folder: pathlib.Path) -> tuple[int, str, str]:
    environ = {"PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environ, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("postrender check <&-", 4, "stdin is closed; give it a pipe, or name a FILE"),
        ("postrender check a.yaml >&-", 4, "stdout is closed; give it a pipe or a file"),
        ("postrender check a.yaml >/dev/full", 4, "the output could not be written: No space left on device"),
        ("postrender explain a.yaml >/dev/full", 4, "the output could not be written: No space left on device"),
        ("postrender check empty", 4, "empty holds no file that ends in .yaml, .yml, .json"),
        ("postrender check a.yaml missing.yaml", 4, "missing.yaml cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_read_or_written(tmp_path: pathlib.Path, command: str, code: int, said: str) -> None:
    (tmp_path / "a.yaml").write_text(LABELLED)
    (tmp_path / "empty").mkdir()
    assert shell(command, tmp_path) == (code, "", f"postrender: error: {said}\n")


@pytest.mark.parametrize("words", ["check", "diff", "explain", "render", "--ome 1.3"])
def test_a_reader_that_went_away(words: str) -> None:
    read, write = os.pipe()
    os.close(read)
    data = (ROOT / "examples/pipe/rendered.yaml").read_bytes() + b"---\nkind: A\n" * 10_000
    try:
        done = subprocess.run([SCRIPT, *words.split()], input=data, stdout=write, stderr=subprocess.PIPE, timeout=60)
    finally:
        os.close(write)
    assert done.returncode == 141
    assert b"Error" not in done.stderr


def test_a_folder_is_walked_by_name(tmp_path: pathlib.Path) -> None:
    for name in ("b.yaml", "a/z.yml", "a/c.json", ".hidden/d.yaml", "a/.e.yaml", "notes.txt"):
        path = tmp_path / "all" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LABELLED.replace("probe", path.stem))
    code, printed, said = shell("postrender check all", tmp_path)
    assert (code, said) == (0, "postrender: 3 objects, no gang: 3 warnings\n")
    assert [line.split(":")[2].strip() for line in printed.splitlines()] == [
        "all/b.yaml",
        "all/a/c.json",
        "all/a/z.yml",
    ]


def test_a_long_list_is_looked_through_once() -> None:
    """Hundreds of findings in one document that a render changes: in a second or so, not in minutes."""
    service = (
        (ROOT / "examples/pipe/rendered.yaml").read_text().partition("---\n# Source: qwen/templates/isvc.yaml\n")[2]
    )
    assert service.startswith("apiVersion: ome.io/v1beta1\n")
    items = [
        text.replace("\n", "\n  ").rstrip(" ")
        for at in range(100)
        for text in (
            f"- {service.replace('name: qwen3-multi-node', f'name: qwen-{at}')}",
            f"- {LABELLED.replace('nowhere', f'nowhere-{at}')}",
        )
    ]
    data = ("apiVersion: v1\nkind: List\nitems:\n" + "".join(items)).encode()
    wanted = [at for at, line in enumerate(data.split(b"\n"), 1) if b"nowhere-" in line]
    assert len(wanted) == 100
    assert probed(data, Options()) == wanted


# Some of all the ways to write a stream that a render changes.
CHANGED = [
    case
    for case in STREAMS
    if case.expected_name in case.files and case.output != case.data and case.input == "input.yaml"
][::9]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CHANGED])
def test_a_place_is_that_of_the_input(case: Case) -> None:
    """A finding about what a render leaves alone stands where it stood, above and below what is changed."""
    probe = LABELLED.encode()
    data = case.data if case.data.endswith(b"\n") else case.data + b"\n"
    assert probed(data + b"---\n" + probe, case.options) == [data.count(b"\n") + 1 + LABEL_LINE]
    if not data.startswith((BOM, b"%", b"{")):
        assert probed(probe + b"---\n" + data, case.options) == [LABEL_LINE]


def probed(data: bytes, options: Options) -> list[int]:
    """Return the lines of what is found of the probe."""
    checked = review.check(data, options)
    found = [one for one in checked.findings if one.code == "podgroup-missing" and one.ref and one.ref.name == "probe"]
    return [one.place.line for one in found if one.place]
