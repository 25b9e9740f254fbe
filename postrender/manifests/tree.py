"""The text of one document -> positioned nodes, and looking things up in them.

The only importer of yaml. Nodes are built from libyaml's events and never constructed, so no reader's typing can reach
the output; positions are code points from the start of the text. Built for hostile input: nothing here recurses over
nodes, and aliases are never expanded.

Facts the positions rest on (libyaml, observed and tested): `start` of a node with an anchor or a tag is at its `&` or
`!`; `open` of a collection is just after its brace, or at its first key or dash; `end` of a block collection is the
next token and useless; `end` of a block scalar is the start of the line after its trailing blank lines.
"""

from __future__ import annotations

import re

from yaml import YAMLError
from yaml.cyaml import CParser  # type: ignore[attr-defined]  # without libyaml this fails; the hosts say what to do
from yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from ..record import Record
from .lines import line_end, newline_at
from .scalars import is_null

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

# One API object is at most a few MB (etcd refuses 1.5 MiB by default); a CRD of 1 MB has 30,000 nodes.
MAX_NODES = 300_000
_BOM = b"\xef\xbb\xbf"

# Deeper than libyaml goes (1,000).
MAX_DEPTH = 1_001

MAP = "map"
SEQ = "seq"
SCALAR = "scalar"
ALIAS = "alias"

FLOW = "flow"  # the style of a collection in braces or brackets; a block one has none
STRING = "tag:yaml.org,2002:str"


class Unfit(Exception):  # noqa: N818 - not an error of ours: the input does not fit
    """Raised where a text cannot be read or edited safely; `index` is the code point that shows why."""

    def __init__(self, code: str, index: int, message: str, remedy: str, field: str = "") -> None:
        """Say what, where and what to do; `field` is the path, where it is known."""
        super().__init__(message)
        self.code = code
        self.index = index
        self.message = message
        self.remedy = remedy
        self.field = field
        self.item = -1  # of an edit: which item of a list it is about


class Node:
    """One node. `children` are key, value, key, value, … in a map; `target` is what an alias stands for."""

    __slots__ = (
        "anchor", "children", "end", "kind", "open", "start", "style", "tag", "target", "value", "within",
    )  # fmt: skip
    children: list[Node]  # of a collection
    open: int  # of a collection
    target: Node  # of an alias
    within: Node | None  # of what `nodes` hands out: the sequence it stood in, if it is an item

    def __init__(self, kind: str, event: Any, tag: str | None, style: str, value: str) -> None:
        """Take what kind of node's event says; a scalar and an alias are complete, a collection is open."""
        self.kind = kind
        self.start: int = event.start_mark.index
        self.end: int = event.end_mark.index
        self.anchor: str | None = event.anchor
        self.tag = tag
        self.style = style
        self.value = value

    @property
    def flow(self) -> bool:
        """Whether a collection is written with braces or brackets."""
        return self.style == FLOW

    def resolved(self) -> Node:
        """Return the node itself, or what it is an alias of."""
        return self.target if self.kind == ALIAS else self

    def null(self) -> bool:
        """Return whether this is a plain null: empty, `~` or the word."""
        return self.kind == SCALAR and self.style == "" and self.tag is None and is_null(self.value)

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield the keys and values of a map."""
        turn = iter(self.children)
        return zip(turn, turn, strict=True)


def _parser(data: bytes) -> Callable[[], Any]:
    if _BOM in data and (found := re.search(b"(?:^|[\\n\\r])" + _BOM, data)):
        # libyaml passes over it at the start of any line; to Go it is content, and to us a column.
        index = len(data[: found.end() - len(_BOM)].decode(errors="replace"))
        remedy = "remove it; it may stand at the start of the stream only"
        raise Unfit("unreadable", index, "a byte-order mark at the start of a line inside the stream", remedy)
    parse: Callable[[], Any] = CParser(data).get_event
    return parse


def _unreadable(error: YAMLError, data: bytes) -> Unfit:
    """Return libyaml's complaint as ours; a reader error has a byte offset, the others a mark."""
    problem = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "unknown")
    mark = getattr(error, "problem_mark", None)
    index = mark.index if mark else len(data[: getattr(error, "position", 0)].decode(errors="replace"))
    remedy = next((text for part, text in _REMEDIES.items() if part in problem), TEMPLATE)
    if remedy == TEMPLATE and _is_template(data, index):
        remedy = "a template was left in: render the chart first (helm template)"
    return Unfit("unreadable", index, f"not valid YAML: {problem}", remedy)


def _is_template(data: bytes, index: int) -> bool:
    """Return whether a template's braces stand where libyaml gave up, or up to two lines above."""
    text = data.decode(errors="replace")
    return any("{{" in line for line in text[: line_end(text, index)].splitlines()[-3:])


TEMPLATE = "fix the template that made it"
# What libyaml says, and what is behind it more often than a broken template.
_REMEDIES = {
    "<document start>": "part objects by a line with ---, or put them into a List; JSON objects in a row are no YAML",
    "Unicode character escape": "write the characters themselves instead of a pair of escapes",
}


def cuts(data: bytes, base: int) -> list[tuple[int, int | None, int]]:
    """Return where the documents of a stream are cut, by libyaml's own events, as `stream` wants them.

    Where libyaml stops in the middle the rest stays one span; it is refused if it turns out to matter.
    """
    try:
        text = data[base:].decode()
    except UnicodeDecodeError:
        return []
    found: list[tuple[int, int | None, int]] = []
    ended: int | None = 0  # where the document before ended, if a `...` or the start of the stream says so
    parse: Callable[[], Any] = CParser(text).get_event
    try:
        while True:
            event = parse()
            kind = type(event)
            if kind is DocumentStartEvent or kind is StreamEndEvent:
                start = event.start_mark.index
                if ended:
                    found.extend(_ends(text, ended, start))
                elif ended is None and kind is DocumentStartEvent:
                    found.append((start, None, start))
                if kind is StreamEndEvent:
                    break
            elif kind is DocumentEndEvent:
                ended = None
                if event.explicit:
                    stop = event.start_mark.index
                    ended = _next_line(text, event.end_mark.index)
                    found.append((stop, stop, ended))
    except YAMLError:
        pass
    if len(text) == len(data) - base:
        return [(start + base, None if stop is None else stop + base, end + base) for start, stop, end in found]
    offsets = _offsets(text, sorted({at for cut in found for at in cut if at is not None}), base)
    return [(offsets[start], None if stop is None else offsets[stop], offsets[end]) for start, stop, end in found]


def _ends(text: str, index: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield a cut for each further `...` line between two documents, where nothing else but comments can stand."""
    while index < end:
        line = _next_line(text, index)
        if text.startswith("...", index):
            yield index, index, line
        index = line


def _offsets(text: str, indexes: list[int], base: int) -> dict[int, int]:
    """Return the byte offset of each code point index, in one pass."""
    offsets = {}
    at, offset = 0, base
    for index in indexes:
        offset += len(text[at:index].encode())
        at = index
        offsets[index] = offset
    return offsets


def _next_line(text: str, index: int) -> int:
    end = line_end(text, index)
    return end + len(newline_at(text, end))


class Head(Record):
    """What kind of object a document says it is."""

    api_version: str
    kind: str


def head(data: bytes) -> Head | None:
    """Return the first `apiVersion` and `kind` at the root, from as little of the document as has both, or None.

    Only a first look: what follows may be no YAML, or say it again.
    """
    parse = _parser(data)
    depth = 0
    keys = False  # at the root, whether a key comes next
    key = ""
    found: dict[str, str] = {}
    try:
        while len(found) < 2:
            event = parse()
            kind = type(event)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                depth += 1
                if depth == 1:
                    keys = kind is MappingStartEvent
                    if not keys:
                        return None
                continue
            if kind is MappingEndEvent or kind is SequenceEndEvent:
                depth -= 1
            elif kind is StreamEndEvent:
                return None
            if depth == 1:
                if not keys and kind is ScalarEvent and key in ("apiVersion", "kind"):
                    found.setdefault(key, event.value)
                key = event.value if keys and kind is ScalarEvent else ""
                keys = not keys
    except YAMLError as error:
        raise _unreadable(error, data) from None
    return Head(found["apiVersion"], found["kind"])


class Identity(Record):
    """Who an object says it is; empty where it does not say."""

    api_version: str
    kind: str
    namespace: str
    name: str


_SAYS = {"/apiVersion": "api_version", "/kind": "kind", "metadata/namespace": "namespace", "metadata/name": "name"}


def identity(data: bytes) -> Identity | None:
    """Return who the object of a document says it is, from as little of it as says so; None where there is no object.

    Only a look, for telling objects apart: of a key that stands twice the first counts, and what an alias or a merge
    key brings in is not seen. What follows may be no YAML.
    """
    parse = _parser(data)
    depth = 0
    keys = [True, True, True]  # at each depth, whether a key comes next
    last = ["", "", ""]  # and the key before what comes
    above = ""
    found: dict[str, str] = {}
    ended = False  # the map of metadata
    root = False
    try:
        while not (ended and "api_version" in found and "kind" in found):
            event = parse()
            kind = type(event)
            if kind is MappingStartEvent or kind is SequenceStartEvent:
                depth += 1
                root = True
                if depth == 1 and kind is SequenceStartEvent:
                    break
                if depth == 2:
                    above = (kind is MappingStartEvent and not keys[1] and last[1]) or "-"
                    keys[2] = True
                continue
            if kind is MappingEndEvent or kind is SequenceEndEvent:
                depth -= 1
                ended = ended or (depth == 1 and above == "metadata")
            elif kind is StreamEndEvent:
                break
            elif kind is not ScalarEvent and kind is not AliasEvent:
                continue
            text = event.value if kind is ScalarEvent else ""
            if depth == 0:
                root = root or kind is AliasEvent or not is_null(text) or event.style != ""
            elif depth < 3:
                if not keys[depth] and text:
                    field = _SAYS.get(f"{above if depth == 2 else ''}/{last[depth]}")
                    if field is not None:
                        found.setdefault(field, text)
                last[depth] = text if keys[depth] else ""
                keys[depth] = not keys[depth]
    except YAMLError as error:
        raise _unreadable(error, data) from None
    return Identity(*(found.get(field, "") for field in Identity._fields)) if root else None


def aliased(data: bytes) -> frozenset[int]:
    """Return where the anchored nodes start that some alias in the document stands for."""
    if b"&" not in data or b"*" not in data:
        return frozenset()
    anchors: dict[str, int] = {}
    used = set()
    parse = _parser(data)
    try:
        while True:
            event = parse()
            kind = type(event)
            if kind is AliasEvent:
                if event.anchor in anchors:
                    used.add(anchors[event.anchor])
            elif kind is StreamEndEvent:
                return frozenset(used)
            elif getattr(event, "anchor", None):
                anchors[event.anchor] = event.start_mark.index
    except YAMLError as error:
        raise _unreadable(error, data) from None


def read(data: bytes, depth: int = MAX_DEPTH) -> Node | None:
    """Return the root node of the only document in `data`, or None where there is none; `depth` as in `nodes`.

    Raises Unfit where it is not YAML, holds itself, or is too large for any API server.
    """
    root = None
    for _, node in nodes(data, False, depth):  # to the end of the document: it must be YAML to there
        root = node
    return root


def nodes(data: bytes, split: bool, depth: int = MAX_DEPTH) -> Iterator[tuple[int, Node]]:
    """Yield the root node last, as number -1; with `split`, before it each node of the root's `items` by its number.

    The root then lacks them: a list of any length costs no more memory than its largest item. Collections that are
    nested deeper than `depth` below the document or the item stay empty, for who does not look into them.
    """
    parse = _parser(data)
    stack: list[Node] = []
    parent: Node | None = None
    anchors: dict[str, Node] = {}
    items: Node | None = None  # the sequence whose children are handed out
    number = count = 0
    if b"<<" in data or (b"&" in data and b"*" in data):
        depth = MAX_DEPTH  # what is passed over may be merged in further up, or hold an anchor that is used elsewhere
    node: Node
    try:
        while True:
            event = parse()
            kind = type(event)
            if kind is ScalarEvent:
                node = Node(SCALAR, event, event.tag, event.style, event.value)
                if node.anchor is not None:
                    anchors[node.anchor] = node
            elif kind is MappingStartEvent or kind is SequenceStartEvent:
                node = Node(
                    MAP if kind is MappingStartEvent else SEQ, event, event.tag, FLOW if event.flow_style else "", ""
                )
                node.children = []
                node.open = node.end
                if node.anchor is not None:
                    anchors[node.anchor] = node
                stack.append(node)
                if split and len(stack) == 2 and node.kind == SEQ and _at_items(stack[0]):
                    items = node
                    depth += 2
                if len(stack) > depth:
                    _pass_over(parse)
                    node = stack.pop()
                else:
                    parent = node
                    continue
            elif kind is MappingEndEvent or kind is SequenceEndEvent:
                node = stack.pop()
                node.end = event.end_mark.index
                parent = stack[-1] if stack else None
            elif kind is AliasEvent:
                node = Node(ALIAS, event, None, "", "")
                target = anchors.get(event.anchor)
                if target is None:
                    raise _astray(node, "has no anchor before it")
                if target in stack:
                    raise _astray(node, "lies inside its own anchor")
                node.target = target
            elif kind is StreamEndEvent:
                return
            elif kind is DocumentStartEvent and number < 0:
                said = ("a second document", "write --- on a line before it")
                if event.explicit:  # of a stream only one is read at a time, so this is a file
                    said = ("the file holds a second document", "it may hold one")
                raise Unfit("unreadable", event.start_mark.index, *said)
            else:
                continue
            count += 1
            if count > MAX_NODES:
                raise Unfit(
                    "unreadable",
                    stack[0].start if stack else node.start,
                    f"one object with more than {MAX_NODES:,} values",
                    "no API server takes an object of that size; leave it out of the stream",
                )
            if parent is None:
                node.within = None
                number = -1
                yield number, node
            elif parent is items:
                count = 0
                node.within = items
                yield number, node
                number += 1
            else:
                parent.children.append(node)
    except YAMLError as error:
        raise _unreadable(error, data) from None


def _astray(alias: Node, message: str) -> Unfit:
    remedy = "define the anchor before it is used, outside of what it names"
    return Unfit("unreadable", alias.start, f"the alias *{alias.anchor} {message}", remedy)


def _pass_over(parse: Callable[[], Any]) -> None:
    """Take the events of an open collection to its end."""
    level = 1
    while level:
        kind = type(parse())
        if kind is MappingStartEvent or kind is SequenceStartEvent:
            level += 1
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            level -= 1


def _at_items(root: Node) -> bool:
    return root.kind == MAP and len(root.children) % 2 == 1 and root.children[-1].value == "items"
