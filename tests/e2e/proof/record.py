"""The record of a run, from which the page is made: what each scenario came to, without us and with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .outcome import Outcome, read

FILE = Path(__file__).parent / "results.json"
Pair = tuple[Outcome, Outcome]


def pairs(record: dict[str, Any]) -> dict[str, Pair]:
    """Return what each scenario of a record came to: without us, with us."""
    return {name: (read(one["without"]), read(one["with"])) for name, one in record["scenarios"].items()}


def save(record: dict[str, Any], file: Path = FILE) -> None:
    """Write a record."""
    file.write_text(json.dumps(record, indent=1, sort_keys=False) + "\n")


def load(file: Path = FILE) -> dict[str, Any]:
    """Read a record."""
    return dict(json.loads(file.read_text()))
