"""The golden cases, read by Go: what Helm, kubectl and kustomize see afterwards is what they saw before, plus the
changes, document by document. Where a reader refuses one of the input, the case's `go-rejects` must say so: then that
document must come out as it went in."""

from __future__ import annotations

from typing import Any

import pytest

from postrender.manifests import stream
from postrender.manifests.objects import RESOURCE_LIST
from tests.oracles.client import Oracle, OracleError, exact
from tests.oracles.test_edits import comparable, put
from tests.test_cases import EDITED, Case, flat, merged, place

CHANGED = [case for case in EDITED if case.output != case.data]
READERS = ("sigs", "v3")


def test_there_are_cases() -> None:
    assert len(CHANGED) > 200


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in CHANGED])
def test_go_reads_the_changes_and_nothing_else(oracle: Oracle, reader: str, case: Case) -> None:
    rejects = dict(line.split(": ", 1) for line in case.lines("go-rejects"))
    assert set(rejects) <= set(READERS), case.name
    assert all(why.strip() for why in rejects.values()), case.name
    before, refused = documents(oracle, reader, case.data)
    assert bool(refused) == (reader in rejects), f"{case.name}: go-rejects must name {reader} or not: {refused}"
    seen, refused_then = documents(oracle, reader, case.output)
    if any(type(before[place(one).span][0]) is str for one in case.changes):
        assert len(refused_then) >= len(refused), f"{case.why}\n{refused_then}"  # not read before, not read now
        return
    wanted = merged(case, before, lambda value: value, put, "items")
    assert known(seen) == known(wanted), f"{case.why}\n{refused_then}"


def documents(oracle: Oracle, reader: str, data: bytes) -> tuple[list[list[Any]], list[str]]:
    """What the reader makes of the document of each span, its text where it refuses it, and how it refused."""
    readings: list[list[Any]] = []
    refused = []
    for span in stream.cut(data):
        text = data[span.start : span.stop].decode()
        try:
            readings.append([getattr(oracle, reader)(text)])
        except OracleError as error:
            readings.append([text])
            refused.append(str(error))
    return readings, refused


def known(readings: list[list[Any]]) -> list[str]:
    return [exact(comparable(without_results(reading))) for reading in flat(readings)]


def without_results(reading: Any) -> Any:
    """What a function is told of the items is no part of them."""
    if isinstance(reading, dict) and reading.get("kind") == RESOURCE_LIST:
        return {key: value for key, value in reading.items() if key != "results"}
    return reading
