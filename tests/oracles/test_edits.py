"""The promise of an edit, asked of Go: what Helm, kubectl and kustomize read afterwards is what they read before, plus
the change. The streams are those of the property tests; what a Go reader refuses as it came in is no case for it."""

from __future__ import annotations

import copy
from typing import Any

from postrender.findings import Refusal
from postrender.manifests import edit, stream
from tests.oracles.client import Oracle, OracleError, exact
from tests.properties.documents import Case, documents
from tests.properties.reading import OWN_WINS
from tests.properties.shrink import shrunk
from tests.properties.tally import FUZZ, SEED, Tally
from tests.properties.test_edit import Skip, changes_of, expected, read

DOCUMENTS = FUZZ or 400
MOST_SKIPPED = 0.08


def test_go_reads_the_change_and_nothing_else(oracle: Oracle) -> None:
    tally = Tally(f"edits read by Go, seed {SEED}")
    failures: dict[str, str] = {}
    for case in documents(f"go-{SEED}", DOCUMENTS, alone=True):
        tally.add("documents")
        out = edited(case)
        if out is None:
            tally.add("refused or no case")
            continue
        for reader in ("sigs", "v3"):
            outcome = difference(oracle, reader, case, out)
            if outcome is None:
                tally.add(f"{reader}: the same")
            elif outcome.startswith("skipped"):
                tally.add(f"{reader}: {outcome}")
            else:
                tally.add(f"{reader}: different")
                if reader not in failures:
                    failures[reader] = report(oracle, reader, case)
    assert not failures, "\n\n".join(failures.values())
    for reader in ("sigs", "v3"):
        assert tally.under(f"{reader}: skipped") <= MOST_SKIPPED * DOCUMENTS


def edited(case: Case) -> bytes | None:
    """The document after the changes; None where it is refused, or no case at all."""
    try:
        if expected(read(case.data), case, OWN_WINS) is None:
            return None
        spans = stream.cut(case.data)
        return edit.splice(case.data, spans, changes_of(case, spans))
    except (Skip, Refusal, IndexError):
        return None


def difference(oracle: Oracle, reader: str, case: Case, out: bytes) -> str | None:
    """None where the reader sees exactly the change; why there is nothing to see; or what it saw."""
    ask = getattr(oracle, reader)
    try:
        before = ask(case.data.decode())
    except OracleError as error:
        return f"skipped: {str(error).partition(':')[0]}"
    wanted = copy.deepcopy(before)
    target = wanted if case.item < 0 else wanted["items"][case.item]
    try:
        for path, value in case.sets:
            put(target, path, value)
    except LookupError as error:
        return f"it was no map to this reader: {error}"
    try:
        seen = ask(out.decode())
    except OracleError as error:
        return f"it reads no more: {error}"
    return None if exact(seen) == exact(wanted) else f"seen   {exact(seen)}\nwanted {exact(wanted)}"


def put(target: dict[str, Any], path: tuple[str, ...], value: str | int | bool) -> None:
    """Set it, in maps of string keys or of the encoding for other keys."""
    here: Any = target
    for number, key in enumerate(path):
        if type(here) is not dict:
            raise LookupError(f"{path[:number]}")
        pairs = here.get("!map")
        last = number == len(path) - 1
        held = value if last else (dict(pairs) if pairs else here).get(key)
        held = {} if held is None else held
        if pairs is None:
            here[key] = held
        else:
            pairs[:] = sorted([pair for pair in pairs if pair[0] != key] + [[key, held]], key=exact)
        here = held


def report(oracle: Oracle, reader: str, case: Case) -> str:
    def failure(text: str) -> str | None:
        shorter = case._replace(data=text.encode())
        out = edited(shorter)
        try:
            found = difference(oracle, reader, shorter, out) if out is not None else None
        except (LookupError, TypeError):
            return None
        return None if found is None or found.startswith("skipped") else found

    text = shrunk(case.data.decode(), lambda shorter: failure(shorter) is not None)
    data = text.encode()
    out = edited(case._replace(data=data))
    return f"{reader}, case {case.name!r}\n  data = {data!r}\n  sets = {case.sets!r}\n  {out!r}\n  {failure(text)}"
