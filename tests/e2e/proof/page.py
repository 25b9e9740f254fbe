"""`docs/proof.md` from its text and the record of a run: no number on it is written by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .outcome import Outcome
from .record import Pair, pairs

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "proof.md"
README = ROOT / "README.md"
SUMMARY = re.compile(r"(?<=<!-- proof -->\n).*?(?=\n<!-- /proof -->)", re.DOTALL)
TEXT = Path(__file__).parent / "page.md"
HOLE = re.compile(r"^<!-- (scenario|parts|programs)(?: ([a-z0-9-]+))? -->$", re.MULTILINE)


def page(record: dict[str, Any]) -> str:
    """Return the page."""
    outcomes = pairs(record)

    def fill(hole: re.Match[str]) -> str:
        if hole[1] == "scenario":
            return table(outcomes[hole[2]], record["scenarios"][hole[2]]["left_out"])
        if hole[1] == "parts":
            return scale(record["scale"])
        return ", ".join(f"{name} {version}" for name, version in record["programs"].items())

    filled = HOLE.sub(fill, TEXT.read_text())
    missing = set(outcomes) - {hole[2] for hole in HOLE.finditer(TEXT.read_text())}
    if missing:
        raise LookupError(f"{TEXT.name} does not show {', '.join(sorted(missing))}")
    return filled


def summary(record: dict[str, Any]) -> str:
    """Return what README says of the run."""
    without, ours = pairs(record)["two-gangs"]
    many = record["scale"]["facts"]
    whole, nothing, partial = (many[f"gangs {word}"] for word in ("whole", "with nothing", "partial"))
    return (
        f"Of two gangs of four pods, with room for one, the default scheduler gives nodes to {spoken(without)} pods, and none serves; with"
        f" `postrender` it is {spoken(ours)}.\nOf {many['gangs of 8 pods']} gangs of eight, deployed by Helm on nodes for half of them,"
        f" {whole} are whole, {nothing} hold nothing, and {partial} {'is' if partial == 1 else 'are'} partial."
    )


def spoken(outcome: Outcome) -> str:
    """Return how many pods of each gang have a node."""
    return " and ".join(str(gang.bound) for gang in outcome.gangs)


def table(pair: Pair, left_out: str) -> str:
    """Return what a scenario came to, as a table."""
    lines = [f"| | without {left_out} | with |", "| --- | --- | --- |"]
    names = dict.fromkeys(gang.name for outcome in pair for gang in outcome.gangs)
    lines += [f"| {name}, pods with a node | {' | '.join(held(one, name) for one in pair)} |" for name in names]
    facts = dict.fromkeys(fact for outcome in pair for fact in outcome.facts)
    lines += [f"| {fact} | {' | '.join(str(one.facts.get(fact, '')) for one in pair)} |" for fact in facts]
    lines.append(f"| gangs that hold nodes and cannot serve | {' | '.join(f'**{one.partial}**' for one in pair)} |")
    return "\n".join(lines)


def held(outcome: Outcome, name: str) -> str:
    """Return how much of a gang has nodes."""
    return next((f"{gang.bound} of {gang.pods}" for gang in outcome.gangs if gang.name == name), "not there")


def scale(record: dict[str, Any]) -> str:
    """Return the table of the run at scale."""
    lines = ["| | |", "| --- | --- |", *(f"| {name} | {value} |" for name, value in record["facts"].items()), ""]
    lines += ["| part | CPU seconds | MiB at most |", "| --- | --- | --- |"]
    return "\n".join(
        [*lines, *(f"| {one['name']} | {one['cpu_seconds']} | {one['mebibytes']} |" for one in record["parts"])]
    )
