"""The promise of an edit: the document means what it meant, plus the change; and no byte that need not change does.

Streams come from the noisy printer, their meaning from PyYAML's events under both families of readers (see `reading`).
A refusal is allowed, with its place, but counted: an editor that refuses everything would keep every promise.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from postrender.findings import Refusal
from postrender.manifests import edit, stream
from postrender.manifests.change import Set, Spot
from tests.properties import printer, reading
from tests.properties.documents import Case, documents
from tests.properties.shrink import shrunk
from tests.properties.tally import FUZZ, SEED, Tally

DOCUMENTS = FUZZ or 400
MOST_REFUSED = 0.03
MOST_SKIPPED = 0.05
BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
# Plain scalars that some reader takes for something else than a string. Written apart from the package's own rules.
NOT_A_STRING = re.compile(
    r"|~|<<|=|null|y|n|yes|no|on|off|true|false|[-+]?\.(inf|nan)"
    r"|[-+.]?[\d.][\d_.,:xob a-f]*(e[-+]?\d+)?|\d{4}-\d+-\d+.*",
    re.IGNORECASE,
)


class Broken(AssertionError):
    """A promise that does not hold: which, and what was seen."""

    def __init__(self, promise: str, seen: str) -> None:
        super().__init__(f"{promise}: {seen}")
        self.promise = promise


class Skip(Exception):
    """A text that is no case: not YAML, or without the document that is to change."""


def test_edits() -> None:
    tally = Tally(f"edits, seed {SEED}")
    failures: dict[str, str] = {}
    for case in documents(SEED, DOCUMENTS):
        tally.add("documents")
        try:
            tally.add(examine(case))
        except Skip as skip:
            tally.add(f"skipped: {skip}")
        except Exception as error:  # a crash of the editor is a failure like others, and is shrunk like them
            tally.add(f"failed: {kind(error)}")
            if len(failures) < 8:
                failures.setdefault(kind(error), report(case, error))
    if failures:
        pytest.fail("\n\n".join(failures.values()), pytrace=False)
    assert tally.under("refused") <= MOST_REFUSED * DOCUMENTS
    assert tally.under("skipped") <= MOST_SKIPPED * DOCUMENTS


def examine(case: Case) -> str:
    """What came of one case, in a word; raises Broken, or whatever the editor crashed with."""
    before = read(case.data)
    if case.number >= len(before):
        raise Skip("fewer documents")
    wanted = {order: expected(before, case, order) for order in (reading.OWN_WINS, reading.IN_ORDER)}
    spans = stream.cut(case.data)
    changes = changes_of(case, spans)
    try:
        out, planned = spliced(case.data, spans, changes)
    except Refusal as refusal:
        return refused(refusal)
    if None in wanted.values():
        raise Broken("refuses what cannot be", repr(out))
    try:
        after = reading.documents(out.decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Broken("stays readable", f"{error}\n{out!r}") from error
    for order, meanings in wanted.items():
        seen = [reading.meaning(root, order) for root in after]
        if seen != meanings:
            raise Broken(f"means the merge, {order}", f"{out!r}\nmeans  {seen}\nwanted {meanings}")
    strings_for_all(after[case.number], case, out)
    if out != case.data:
        bytes_kept(case, spans[changes[0].spot.span], planned, out)
    again = edit.splice(out, stream.cut(out), changes_of(case._replace(data=out), stream.cut(out)))
    if again != out:
        raise Broken("is done once", f"{out!r}\nthen {again!r}")
    return "edited" if out != case.data else "held already"


def read(data: bytes) -> list[reading.Node]:
    try:
        return reading.documents(data.decode())
    except yaml.YAMLError:
        raise Skip("not YAML") from None


def expected(roots: list[reading.Node], case: Case, order: str) -> list[Any] | None:
    """The meaning of every document after the changes, or None if a change cannot be."""
    try:
        meanings = [reading.meaning(root, order) for root in roots]
    except yaml.YAMLError:
        raise Skip("merges what is no map") from None
    target = meanings[case.number]
    try:
        if case.item >= 0:
            items = target[reading.STR, "items"]
            if not isinstance(items, list) or len(items) <= case.item:
                raise Skip("no such item")
            target = items[case.item]
        if not isinstance(target, dict):
            raise Skip("no map")
        for path, value in case.sets:
            reading.with_value(target, path, reading.written(value))
    except LookupError:
        return None
    return meanings


def changes_of(case: Case, spans: list[stream.Span]) -> list[Set]:
    """The changes, with the number of the span that holds the document."""
    roots: list[reading.Node] = []
    for number, span in enumerate(spans):
        roots += reading.documents(span_text(case.data, span))
        if len(roots) > case.number:
            if case.item >= 0 and not lists_items(roots[case.number]):
                raise Skip("items come by a merge or an alias")
            return [Set(Spot(number, case.item), path, value) for path, value in case.sets]
    raise Broken("cuts where documents begin", repr(spans))


def lists_items(root: reading.Node) -> bool:
    """Whether `items` is written in the document itself: not brought by a merge, and no alias."""
    before = -1
    for key, value in root.items if root.kind == "map" else ():
        at = key.event.start_mark.index
        if key.value == "items":
            return before < at < value.event.start_mark.index  # what an alias stands for was written earlier
        before = max(before, at)
    return False


def span_text(data: bytes, span: stream.Span) -> str:
    return data[span.start : span.stop].decode().removeprefix("\ufeff" if span.start == 0 else "")


def refused(refusal: Refusal) -> str:
    finding = refusal.finding
    if finding.code not in ("edit-refused", "unreadable"):
        raise Broken("refuses by a known code", repr(finding))
    if finding.place is None or finding.place.line < 1 or finding.place.column < 1:
        raise Broken("refuses with a place", repr(finding))
    if "read back" in finding.message:
        raise Broken("needs no second thought", repr(finding))
    names = r"'.*?'|&\w+|\*\w+|(?<=the key ).+? (?=is|stands)|(?<=which )\S+|[\w./-]+(?= counts)"
    return f"refused: {finding.code}: {re.sub(names, '…', finding.message)[:70]}"


def strings_for_all(root: reading.Node, case: Case, out: bytes) -> None:
    """A string that was set is one to every reader: quoted, or plain and nothing else."""
    if case.item >= 0:
        listed = reading.find(root, ["items"])
        root = listed.items[case.item] if listed else root
    for path, value in case.sets:
        node = reading.find(root, path)
        plain = node is not None and not node.style and node.event.implicit[0]
        if isinstance(value, str) and plain and NOT_A_STRING.fullmatch(value):
            raise Broken("writes strings that stay strings", f"{value!r} in {out!r}")


def spliced(data: bytes, spans: list[stream.Span], changes: list[Set]) -> tuple[bytes, list[edit.Edit]]:
    """The result, and the edits it is made of."""
    seen: list[edit.Edit] = []

    def spy(old: bytes, text: str, edits: list[edit.Edit]) -> bytes:
        seen[:] = edits
        return apply(old, text, edits)

    apply, edit.apply = edit.apply, spy
    try:
        return edit.splice(data, spans, changes), seen
    finally:
        edit.apply = apply


def bytes_kept(case: Case, span: stream.Span, edits: list[edit.Edit], out: bytes) -> None:
    """Only insertions, with breaks that the document has, and whole scalars or aliases replaced."""
    text = span_text(case.data, span)
    edits = sorted(edits, key=lambda one: one.start)
    bom = "\ufeff" if span.start == 0 and case.data.startswith(stream.BOM) else ""
    rebuilt = case.data[: span.start] + bom.encode() + edit.apply(text.encode(), text, edits) + case.data[span.stop :]
    if rebuilt != out:
        raise Broken("splices what it planned", f"{rebuilt!r}\n{out!r}")
    done = 0
    for one in edits:
        if one.start < done:
            raise Broken("edits are disjoint", repr(edits))
        done = one.end
    known = set(BREAK.findall(text)) or set(BREAK.findall(case.data.decode())) or {"\n"}
    for one in edits:
        new = set(BREAK.findall(one.new))
        if new - known:
            raise Broken("inserts the document's own breaks", f"{one!r} into {text!r}")
        if one.end > one.start and not whole(text, one):
            raise Broken("replaces whole scalars only", f"{text[one.start : one.end]!r} by {one!r}")


def whole(text: str, one: edit.Edit) -> bool:
    """Whether what is replaced is one scalar or alias; of a block scalar the breaks at its end may stay."""
    for event in yaml.parse(text, Loader=reading.LOADER):
        if isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)) and event.start_mark.index <= one.start:
            node = text[event.start_mark.index : event.end_mark.index]
            ahead = text[event.start_mark.index : one.start]
            rest = text[one.end : event.end_mark.index]
            if one.end <= event.end_mark.index and len(ahead) < len(node) + (not node):
                # What stays ahead of it are properties at most, what stays behind it white space at most.
                return not rest.strip() and not re.sub(r"[&!]\S*", "", ahead).strip()
    return False


def kind(error: Exception) -> str:
    return error.promise if isinstance(error, Broken) else type(error).__name__


def report(case: Case, error: Exception) -> str:
    """The failure, on the smallest stream that has it still."""

    def failure(sets: Any, text: str) -> Exception | None:
        try:
            examine(case._replace(data=text.encode(), sets=sets))
        except Skip:
            return None
        except Exception as other:
            return other
        return None

    def fails(sets: Any, text: str) -> bool:
        other = failure(sets, text)
        return other is not None and kind(other) == kind(error)

    sets, text = case.sets, case.data.decode()
    for one in case.sets:
        fewer = tuple(other for other in sets if other != one)
        if fewer and fails(fewer, text):
            sets = fewer
    text = shrunk(text, lambda shorter: fails(sets, shorter))
    last = failure(sets, text) or error
    return (
        f"{kind(error)}\n  case {case.name!r}, document {case.number}, item {case.item}\n  data = {text.encode()!r}\n"
        f"  sets = {sets!r}\n  {type(last).__name__}: {last}"
    )


def test_the_printer_means_its_model() -> None:
    """The printer and the reader agree, or the property above would rest on sand."""
    tally = Tally("printer")
    for case in documents(f"printer-{SEED}", 100):
        try:
            roots = reading.documents(case.data.decode())
        except yaml.YAMLError:
            tally.add("not YAML")
            continue
        if case.model is None:
            tally.add("no model")
            continue
        assert reading.meaning(roots[case.number]) == reading.model_meaning(case.model), case.name
        tally.add("as its model")
    assert tally.under("as its model") >= 80


def test_the_printer_is_noisy() -> None:
    """Each habit that an editor has to know is met often enough to matter."""
    seen = Tally("features of documents")
    for case in documents(f"noise-{SEED}", 400):
        for feature in case.features:
            seen.add(feature)
    rare = {"directive": 1, "alias-map": 2, "anchor-again": 1, "duplicate-key": 1, "bool-key": 0, "block-scalar-eof": 2}
    for feature in FEATURES:
        assert seen.counts[feature] >= rare.get(feature, 3), feature
    assert printer.BREAKS


FEATURES = (
    "adjacent-value", "alias", "alias-map", "anchor", "anchor-again", "block-scalar-eof", "bom", "break-cr",
    "break-crlf", "break-lf", "break-lf+crlf", "break-ls", "break-nel", "comment-line", "comment-trailing",
    "directive", "dots", "double", "duplicate-key", "empty-list", "empty-map", "empty-value", "escape",
    "escaped-break", "explicit-key", "flow-comment", "flow-explicit-key", "flow-key-alone", "flow-list", "flow-map",
    "flow-multi-line", "flow-pair", "flow-root", "folded", "indented-root", "json-document", "json-value", "literal",
    "merge", "merge-alias", "merge-inline", "merge-list", "multi-line-scalar", "no-final-newline", "own-before-merge",
    "props-on-own-line", "single", "tab-after-colon", "tag", "trailing-comma",
)  # fmt: skip
