"""The proof: python -m tests.e2e.proof [all|scale|page]

Without a word the first scenario alone: a table in the terminal, and its part of record, page and drawing. `all` plays every
scenario, writes the record and the page; `scale` the many gangs, into the record too; `page` writes page and drawing from the record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from tests.e2e.cluster import ClusterError

from . import record, scale
from .drawing import drawing
from .outcome import Outcome, read
from .page import PAGE, README, ROOT, SUMMARY, page, summary
from .scenarios import MULTINODE, NATIVES, Scenario
from .stage import Stage, multinode, native
from .whole_way import LIMITS, WAYS

DRAWING = ROOT / "docs" / "proof.svg"
PINS = ROOT / "tests" / "e2e" / "programs" / "pins.json"
FIRST = MULTINODE[0]
PROGRAMS = {  # by their names among the pins
    "kube-apiserver": "Kubernetes",
    "podgroup-controller": "scheduler-plugins",
    "lws": "LeaderWorkerSet",
    "ome-manager": "OME",
    "kwok": "kwok",
}


def main() -> int:
    """Play what is asked for; 1 if a claim does not hold."""
    parser = argparse.ArgumentParser("python -m tests.e2e.proof", description="The proof, on real schedulers.")
    parser.add_argument("what", nargs="?", choices=["first", "all", "scale", "page"], default="first")
    parser.add_argument("--gangs", type=int, default=200, help="of the run at scale (%(default)s)")
    parser.add_argument("--nodes", type=int, default=400, help="of the run at scale (%(default)s)")
    asked = parser.parse_args()
    try:
        if asked.what == "scale":
            return many(asked.gangs, asked.nodes)
        if asked.what == "all":
            return everything()
        return first() if asked.what == "first" else written(record.load())
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1


def first() -> int:
    """Play the first scenario, and show it."""
    begin = time.monotonic()
    say("a real control plane: etcd, API server, two schedulers, LeaderWorkerSet, OME 1.2.2")
    with multinode() as stage:
        pair = dict(play(stage, [FIRST]))[FIRST.name]
    kept = record.load()
    kept["scenarios"][FIRST.name] = pair
    record.save(kept)
    written(kept)  # all that shows it, so that nothing tells of another run
    for key in ("without", "with"):
        show(f"{key} postrender", read(pair[key]))
    print(f"\ndrawn in {DRAWING.relative_to(ROOT)}; {time.monotonic() - begin:.0f} s in all")
    return verdict({FIRST.name: pair}, [FIRST])


def everything() -> int:
    """Play all, and write the record and the page."""
    scenarios = [*MULTINODE, *WAYS, *LIMITS]
    with multinode() as stage:
        results = dict(play(stage, scenarios))
    with native() as stage:
        results.update(play(stage, NATIVES))
    before = record.load() if record.FILE.exists() else {}
    record.save({"programs": programs(), "scenarios": results, "scale": before.get("scale", {})})
    if before.get("scale"):
        written(record.load())
    return verdict(results, [*MULTINODE, *WAYS, *NATIVES])


def many(gangs: int, nodes: int) -> int:
    """Play the run at scale, and put it into the record."""
    done = scale.run(gangs, nodes)
    kept: dict[str, Any] = record.load() if record.FILE.exists() else {"programs": programs(), "scenarios": {}}
    kept["scale"] = {"facts": done.facts, "parts": [asdict(one) for one in done.parts]}
    record.save(kept)
    print(json.dumps(kept["scale"], indent=1))
    return 1 if done.facts["gangs partial"] else written(kept)


def written(kept: dict[str, Any]) -> int:
    """Write page and drawing from a record."""
    PAGE.write_text(page(kept))
    README.write_text(SUMMARY.sub(lambda _: summary(kept), README.read_text()))
    DRAWING.write_text(drawing(record.pairs(kept)[FIRST.name]))
    return 0


def play(stage: Stage, scenarios: Iterable[Scenario]) -> Iterable[tuple[str, dict[str, Any]]]:
    """Play each scenario without us and with us; its record."""
    for scenario in scenarios:
        outcomes = {}
        for key, ours in (("without", False), ("with", True)):
            say(f"{scenario.name} {key} {scenario.left_out}")
            outcomes[key] = scenario.play(stage, ours).record()
        yield scenario.name, {"left_out": scenario.left_out, **outcomes}


def verdict(results: dict[str, dict[str, Any]], scenarios: Iterable[Scenario]) -> int:
    """Return 1, and say so, if a claim does not hold with us, or holds without."""
    wrong = [
        f"{one.name} {key} {one.left_out}"
        for one in scenarios
        for key, wanted in (("without", False), ("with", True))
        if one.claim(read(results[one.name][key])) is not wanted
    ]
    for one in wrong:
        print(f"not as claimed: {one}", file=sys.stderr)
    return 1 if wrong else 0


def show(title: str, outcome: Outcome) -> None:
    """Print who has what."""
    print(f"\n{title}\n{'-' * len(title)}")
    for gang in outcome.gangs:
        state = "holds nodes and cannot serve" if gang.partial else "serves" if gang.bound else "waits, holds nothing"
        print(f"{gang.name:<20} {gang.bound} of {gang.pods} pods have a node   {state}")
    for node, holder in outcome.nodes:
        print(f"  {node:<18} {holder or '-'}")


def programs() -> dict[str, str]:
    """Return the real programs and their versions, as they are pinned."""
    pins = json.loads(PINS.read_text())["programs"]
    return {title: pins[name]["version"] for name, title in PROGRAMS.items()}


def say(text: str) -> None:
    """Show on stderr what is under way."""
    print(f"… {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
