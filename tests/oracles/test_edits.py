"""The promise of an edit, asked of Go: what Helm, kubectl and kustomize read afterwards is what they read before, plus
the change. The streams are those of the property tests; what a Go reader refuses as it came in is no case for it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from postrender.findings import Refusal
from postrender.manifests import edit, stream
from tests.oracles.client import Oracle, OracleError, exact
from tests.properties.documents import Case, documents
from tests.properties.reading import MERGE, OWN_WINS, Node
from tests.properties.shrink import shrunk
from tests.properties.tally import FUZZ, SEED, Tally
from tests.properties.test_edit import Skip, changes_of, expected, read

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENTS = FUZZ or 400
MOST_SKIPPED = 0.08
BOOLS = dict.fromkeys(("y", "yes", "on", "true"), "true") | dict.fromkeys(("n", "no", "off", "false"), "false")


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
                if len([one for one in failures if one.startswith(reader)]) < 4:
                    failures[f"{reader} {case.name}"] = report(oracle, reader, case)
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
    if reader == "sigs" and any(map(collides, nodes(out))):
        return "skipped: keys that become one, either may win"
    try:
        before = ask(case.data.decode())
    except OracleError as error:
        return f"skipped: {str(error).partition(':')[0]}"
    if "!map" in exact(before) and b"{<<: *" in out and b"<<" not in case.data:
        return "skipped: a map with a merge has texts for keys here"
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
    seen, wanted = comparable(seen), comparable(wanted)
    return None if exact(seen) == exact(wanted) else f"seen   {exact(seen)}\nwanted {exact(wanted)}"


def nodes(data: bytes) -> Iterator[Node]:
    todo = read(data)
    while todo:
        node = todo.pop()
        yield node
        for item in node.items:
            todo.extend(item if isinstance(item, tuple) else [item])


def collides(node: Node) -> bool:
    """Whether a map has, say, the keys `y` and "true": JSON has one place for both, and Go no order to choose by."""
    seen: dict[str, str] = {}
    for key in keys(node):
        read_as = key.value if key.style else BOOLS.get(key.value.lower(), key.value)
        if seen.setdefault(read_as, key.value) != key.value:
            return True
    return False


def keys(node: Node) -> Iterator[Node]:
    """The keys of a map that are scalars, those that merges bring in too."""
    if node.kind == "list":
        for item in node.items:
            yield from keys(item)
    elif node.kind == "map":
        for key, value in node.items:
            if key.kind == "scalar":
                yield key
            if key.tag == MERGE:
                yield from keys(value)


def comparable(value: Any) -> Any:
    """Maps as sorted pairs, keys as text."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, dict):
        pairs = value.get("!map", value.items())
        return {"map": sorted(([str(key), comparable(item)] for key, item in pairs), key=exact)}
    return value


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
            pairs[:] = [pair for pair in pairs if pair[0] != key] + [[key, held]]
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
