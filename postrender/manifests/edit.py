"""Changes -> text, each edit read back and compared.

Text is only ever spliced: `Edit(start, end, new)` on the text of one span, found by walking the nodes once. Every
other byte stays as it came. A form that cannot be edited safely raises Refusal, and so does an edit whose result, read
again, does not mean exactly the input plus the change.
"""

from __future__ import annotations

from io import BytesIO

from ..findings import Finding, Refusal
from ..record import Record
from . import objects, tree
from .change import Add, Replace, Set
from .scalars import is_string, write
from .stream import Places, Span, document, source
from .tree import ALIAS, BREAKS, MAP, SCALAR, SEQ, Unfit
from .write import STEP, Flow, block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    from .change import Change, Pairs, Value
    from .tree import Node

    Text: TypeAlias = str | "Ascii"
    # Keys -> what must stand there: a scalar, or more keys.
    Overlay: TypeAlias = dict[str, str | int | bool | "Overlay"]

_BLANKS = " \t"


class Edit(Record):
    """The text between two code points becomes `new`."""

    start: int
    end: int
    new: str


def splice(data: bytes, spans: Sequence[Span], changes: Iterable[Change]) -> bytes:
    """Return `data` with all changes made; the same object if none needs an edit.

    Raises Refusal, with the place, for the first change that cannot be made safely.
    """
    per_span: dict[int, list[Change]] = {}
    for change in changes:
        spot = change.before if isinstance(change, Add) else change.spot
        per_span.setdefault(spot.span, []).append(change)
    result = BytesIO()
    view = memoryview(data)
    done = 0
    for number in sorted(per_span):
        span = spans[number]
        new = _spliced(data, spans, number, per_span[number])
        if new is not None:
            if span.start == 0 and span.stop == len(data):
                return new
            result.write(view[done : span.start])
            result.write(new)
            done = span.stop
    if not done:
        return data
    result.write(view[done:])
    return result.getvalue()


def _spliced(data: bytes, spans: Sequence[Span], number: int, changes: list[Change]) -> bytes | None:
    """Return the new bytes of `[start:stop]` of a span, or None where all holds already."""
    span = spans[number]
    old = document(data, span)
    try:
        new = edited(old, changes)
        before = _documents(data, span, old, changes)
    except UnicodeDecodeError as error:
        raise undecodable(error, data, spans, number) from None
    except Unfit as unfit:
        raise refusal(unfit, Places(data, spans), number) from None
    if new is old and not before:
        return None
    head = data[span.start : span.stop - len(old)] + before.encode()
    return head + new if head else new


def refusal(unfit: Unfit, places: Places, number: int) -> Refusal:
    """Return what could not be done in span `number` as a Refusal with its place."""
    place = places.place(number, unfit.index)
    finding = Finding(unfit.code, unfit.message, unfit.remedy, field=unfit.field, place=place)
    return Refusal(finding, (number, unfit.item))


def undecodable(error: UnicodeDecodeError, data: bytes, spans: Sequence[Span], number: int) -> Refusal:
    """Return invalid UTF-8 in span `number` as a Refusal with the place of the first wrong byte."""
    index = len(error.object[: error.start].decode("utf-8", "replace"))
    return Refusal(
        Finding(
            "unreadable",
            f"not UTF-8: byte 0x{error.object[error.start]:02x}",
            "convert the document to UTF-8",
            place=Places(data, spans).place(number, index),
        )
    )


def apply(old: bytes, text: Text, edits: Sequence[Edit]) -> bytes:
    """Return a document with disjoint edits made, those at one place in their order; `text` is `old` as text."""
    edits = sorted(edits, key=_start)
    size = len(old) + sum(len(edit.new.encode()) - len(text[edit.start : edit.end].encode()) for edit in edits)
    result = BytesIO(bytes(size))  # of its final size: growing would copy, and hold two
    done = 0
    for edit in edits:
        result.write(text[done : edit.start].encode())
        result.write(edit.new.encode())
        done = edit.end
    while done < len(text):  # in pieces: the last may be most of a large document
        result.write(text[done : done + _PIECE].encode())
        done += _PIECE
    return result.getvalue()


_PIECE = 1 << 20


def _start(edit: Edit) -> int:
    return edit.start


class Ascii:
    """ASCII bytes that are looked at as text, with what of str is used here: a large list is not held twice."""

    def __init__(self, data: bytes) -> None:
        """Look at `data`, which is ASCII."""
        self._data = data

    def __len__(self) -> int:
        """Return how many characters there are."""
        return len(self._data)

    def __getitem__(self, key: int | slice) -> str:
        """Return a character or a piece."""
        piece = self._data[key]
        return chr(piece) if isinstance(piece, int) else piece.decode()

    def startswith(self, prefix: str, start: int = 0) -> bool:
        """Return whether `prefix` stands at `start`."""
        return self._data.startswith(prefix.encode(), start)

    def find(self, sub: str, start: int = 0) -> int:
        """Return where `sub` stands next, or -1."""
        return self._data.find(sub.encode(), start)


# From this size on the difference counts.
_LARGE = 1 << 20

# -- documents before a document -------------------------------------------------------------------------------------


def _documents(data: bytes, span: Span, old: bytes, changes: list[Change]) -> str:
    """Return the documents that go before a span, as text that leaves what follows as it was."""
    added = [change.value for change in changes if isinstance(change, Add) and change.before.item < 0]
    if not added:
        return ""
    text = old.decode()
    first = span.start == 0
    newline = _newline_before(data, span.start) or _first_newline(text)
    marked = _marker(text)
    directive = text.startswith("%")
    if marked and first and _is_content(text[3 : _line_end(text, 0)]):
        raise Unfit("edit-refused", 0, "content stands on the line of `---`", "put it on the next line")
    origin = source(data, span)
    start = "---" + newline if marked or directive or not first else ""
    comment = f"# Source: {origin}{newline}" if origin and origin.isprintable() else ""
    pieces = []
    for value in added:
        body = block(value, 0, newline)
        _check_value(body, value)
        pieces.append(f"{start}{comment}{body}")
        start = "---" + newline
    tail = "..." + newline if directive else "" if marked else "---" + newline
    return "".join(pieces) + tail


def _marker(text: Text) -> bool:
    return text.startswith("---") and (text[3:4] in _BLANKS or text[3:4] in BREAKS)


def _is_content(line: str) -> bool:
    rest = line.strip(_BLANKS)
    return bool(rest) and not rest.startswith("#")


def _newline_before(data: bytes, at: int) -> str:
    for newline in (b"\r\n", b"\n", b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9"):
        if data.endswith(newline, 0, at):
            return newline.decode()
    return ""


def _first_newline(text: Text) -> str:
    return _newline_at(text, _line_end(text, 0)) or "\n"


# -- lines ------------------------------------------------------------------------------------------------------------


def _line_start(text: Text, index: int) -> int:
    while index > 0 and text[index - 1] not in BREAKS:
        index -= 1
    return index


def _line_end(text: Text, index: int) -> int:
    """Return where the line ends, before its break."""
    while index < len(text) and text[index] not in BREAKS:
        index += 1
    return index


def _newline_at(text: Text, index: int) -> str:
    return "\r\n" if text.startswith("\r\n", index) else text[index : index + 1]


def _skip(text: Text, index: int) -> int:
    """Return the first code point from `index` on that is no white space and in no comment."""
    while index < len(text):
        if text[index] in _BLANKS or text[index] in BREAKS:
            index += 1
        elif text[index] == "#":
            index = _line_end(text, index)
        else:
            break
    return index


# -- one document -----------------------------------------------------------------------------------------------------


class _Wanted:
    """The changes of one document, per object (-1 is the document, else the number of an item)."""

    def __init__(self, changes: Iterable[Change]) -> None:
        self._changes: dict[int, list[Change]] = {}
        for change in changes:
            spot = change.before if isinstance(change, Add) else change.spot
            if spot.item >= 0 or not isinstance(change, Add):  # a document before a document is no edit of it
                self._changes.setdefault(spot.item, []).append(change)

    def numbers(self) -> set[int]:
        return set(self._changes)

    def added(self, number: int) -> list[Pairs]:
        """Return the objects that go before an item."""
        return [change.value for change in self._changes.get(number, ()) if isinstance(change, Add)]

    def all_added(self) -> list[Pairs]:
        return [value for number in self._changes for value in self.added(number)]

    def replaced(self, number: int) -> Pairs | None:
        """Return what an object becomes, if it is replaced."""
        values = [change.value for change in self._changes.get(number, ()) if isinstance(change, Replace)]
        return values[-1] if values else None

    def overlay(self, number: int) -> Overlay:
        """Return all that is set in an object."""
        overlay: Overlay = {}
        for change in self._changes.get(number, ()):
            if isinstance(change, Set):
                _lay(overlay, change)
        return overlay


def _lay(overlay: Overlay, change: Set) -> None:
    """Put one Set into an overlay."""
    *above, last = change.path
    for key in above:
        inner = overlay.setdefault(key, {})
        if not isinstance(inner, dict):  # a mistake of the planner's, not a wrong type
            raise ValueError(  # noqa: TRY004
                f"two changes want different things at {objects.field(change.path)}"
            )
        overlay = inner
    if overlay.setdefault(last, change.value) != change.value:
        raise ValueError(f"two changes want different things at {objects.field(change.path)}")


def edited(old: bytes, changes: Iterable[Change]) -> bytes:
    """Return one document with the changes made, except documents before it; the same bytes if all holds.

    Raises Unfit where that cannot be done safely, or where reading the result back shows that it was not; and
    UnicodeDecodeError where it is not UTF-8.
    """
    wanted = _Wanted(changes)
    numbers = wanted.numbers()
    if not numbers:
        return old
    split = max(numbers) >= 0
    head = tree.head(old) if split else None
    appends = head is not None and head.kind == objects.RESOURCE_LIST
    text = Ascii(old) if len(old) > _LARGE and old.isascii() else old.decode()
    editor = _Editor(text, tree.aliased(old))
    olds: Iterable[tuple[int, Node]] = tree.nodes(old, split)
    if not split:
        olds = list(olds)
    for number, node in olds:
        numbers.discard(number)
        try:
            editor.object(node, wanted, number, appends)
        except Unfit as unfit:
            unfit.item = number
            raise
        if number >= 0:
            editor.last_item = node
        elif split:
            objects.check_list(node)
    if numbers:
        raise ValueError(f"no such object: {min(numbers)}")
    editor.append_items()
    if not editor.edits:
        return old
    new = apply(old, text, editor.edits)
    del text, editor  # of a long list these are large; they go before the result is read
    _check(tree.nodes(old, split) if split else olds, tree.nodes(new, split), wanted, appends)
    return new


class _Editor:
    """Collects the edits to one document; edits at one place are meant in the order in which they were found."""

    def __init__(self, text: Text, used: frozenset[int]) -> None:
        self.text = text
        self.used = used  # where the anchored nodes start that an alias stands for
        self.edits: list[Edit] = []
        self.appended: list[Pairs] = []
        self.last_item: Node | None = None
        self.newline = _first_newline(text)
        self.flow = _flow(text)

    def object(self, node: Node, wanted: _Wanted, number: int, appends: bool) -> None:
        """Make the changes of one object."""
        for value in wanted.added(number):
            if appends:
                self.appended.append(value)
            else:
                self.insert_item(node, value)
        replaced = wanted.replaced(number)
        overlay = wanted.overlay(number)
        if replaced is not None:
            self.replace(node, replaced)
        elif overlay:
            self.set(node, overlay)

    # Setting values

    def set(self, node: Node, overlay: Overlay) -> None:
        """Make `overlay` hold in an object."""
        if node.kind != MAP:
            raise _refused(node, "the object is no map but an alias" if node.kind == ALIAS else "the object is no map")
        before = len(self.edits)
        self._map(node, overlay, (), STEP)
        if len(self.edits) > before and node.within is not None:
            self._own(node.within, ())

    def _own(self, node: Node, path: tuple[str, ...]) -> None:
        """Refuse to change a node that an alias elsewhere stands for as well."""
        if node.anchor and node.start in self.used:
            raise _refused(
                node, f"the anchor &{node.anchor} is aliased, and the alias would change too", path, _WRITE_OUT
            )

    def _map(self, node: Node, overlay: Overlay, path: tuple[str, ...], habit: int) -> None:
        before = len(self.edits)
        step = habit if node.flow else self._step(node, habit)
        missing: list[tuple[str, Value]] = []
        for key, want in overlay.items():
            try:
                entry = tree.find(node, key)
            except Unfit as unfit:
                unfit.field = objects.field((*path, key))
                raise
            if entry is None:
                missing.append((key, _pairs(want)))
            elif not entry.merged:
                if isinstance(want, dict):
                    self._inner(node, entry, want, (*path, key), step)
                else:
                    self._scalar(node, entry, want, (*path, key))
            elif not _holds(entry.value, want):
                if isinstance(want, dict) and not entry.value.resolved().null():
                    message = "the map comes in through a merge key (<<), and an own one would hide it"
                    raise _refused(entry.value, message, (*path, key), _WRITE_OUT)
                missing.append((key, _pairs(want)))
        if missing and node.flow:
            self._insert_flow(node, tuple(missing))
        elif missing:
            self._insert_block(node, tuple(missing), step)
        if len(self.edits) > before:
            self._own(node, path)

    def _inner(self, node: Node, entry: tree.Entry, want: Overlay, path: tuple[str, ...], step: int) -> None:
        """Make `want` hold in the value of a key of `node`."""
        value = entry.value
        held = value.resolved()
        if held.kind == MAP and value.kind == ALIAS:
            self._alias(value, held, want, path)
        elif held.kind == MAP:
            self._map(held, want, path, step)
        elif not held.null():
            raise _refused(value, f"a {objects.NAMES[held.kind]} stands where a map must be", path, "write a map")
        elif value.anchor and value.kind != ALIAS:
            raise _refused(value, "an anchor stands on an empty value", path, "remove the anchor")
        elif value.end > value.start:
            self.edits.append(Edit(value.start, value.end, self.flow.value(_overlay_pairs(want))))
        else:
            self._fill(node, entry, want, step)

    def _alias(self, value: Node, held: Node, want: Overlay, path: tuple[str, ...]) -> None:
        """Lay new keys over an aliased map: `*a` becomes `{<<: *a, key: value}`."""
        new: list[tuple[str, Value]] = []
        for key, inner in want.items():
            entry = tree.find(held, key)
            if entry is not None and _holds(entry.value, inner):
                continue
            if entry is not None and isinstance(inner, dict) and not entry.value.resolved().null():
                raise _refused(value, "the map is an alias of one that others share", (*path, key), _WRITE_OUT)
            new.append((key, _pairs(inner)))
        if not new:
            return
        if self.flow.json:
            raise _refused(value, "the map is an alias, and JSON has no merge keys", path, _WRITE_OUT)
        alias = self.text[value.start : value.end]
        self.edits.append(Edit(value.start, value.end, f"{{<<: {alias}, {self.flow.members(tuple(new))}}}"))

    def _fill(self, node: Node, entry: tree.Entry, want: Overlay, step: int) -> None:
        """Give a key without a value a map."""
        pairs = _overlay_pairs(want)
        colon = self._colon(entry.key)
        if node.flow or colon is None:
            self._write_after(node, entry.key, colon, self.flow.value(pairs))
        else:
            index, newline, ended = self._after_line(colon + 1)
            self._lines(index, newline, ended, block(pairs, self._column(node.open) + step, newline, step))

    def _scalar(self, node: Node, entry: tree.Entry, want: str | int | bool, path: tuple[str, ...]) -> None:
        value = entry.value
        held = value.resolved()
        if held.kind != SCALAR:
            raise _refused(value, f"a {objects.NAMES[held.kind]} stands where a value must be", path, "write a value")
        if _holds(value, want):
            return
        if value.anchor and value.kind != ALIAS:
            raise _refused(value, "an anchor stands on the value that must change", path, "remove the anchor")
        new = self.flow.value(want)
        if value.kind == SCALAR and value.style == "" and value.start == value.end:
            self._write_after(node, entry.key, self._colon(entry.key), new)
            return
        old = self.text[value.start : value.end]
        if value.style in ("|", ">"):
            new += old[len(old.rstrip(_BLANKS + BREAKS)) :]  # the breaks that end it; what follows begins a line
        self.edits.append(Edit(value.start, value.end, new))

    def _write_after(self, node: Node, key: Node, colon: int | None, value: str) -> None:
        """Write the value of a key that has none, with the colon if there is none either."""
        if colon is not None:
            self.edits.append(Edit(colon + 1, colon + 1, " " + value))
        elif node.flow:
            self.edits.append(Edit(key.end, key.end, ": " + value))
        elif self._open_scalar(key):
            raise _refused(key, "a block scalar without a last line break", (), _END_LINE)
        else:
            index, newline, ended = self._behind(key)
            self._lines(index, newline, ended, f"{' ' * self._column(node.open)}: {value}{newline}")

    def _colon(self, key: Node) -> int | None:
        """Return where the colon of a key stands whose value is empty; None for `? key` and `{key}` without one."""
        index = _skip(self.text, key.end)
        return index if self.text.startswith(":", index) else None

    # Inserting

    def _insert_block(self, node: Node, pairs: Pairs, step: int) -> None:
        column = self._column(node.open)
        leaf = self._leaf(node)
        if not self._open_scalar(leaf):
            index, newline, ended = self._behind(leaf)
            self._lines(index, newline, ended, block(pairs, column, newline, step))
            return
        # A line break after it would become part of its value, so the new keys go first.
        if any(tree.is_merge(key) for key, _ in node.pairs()):
            message = "a block scalar without a last line break, in a map with a merge key (<<)"
            raise _refused(leaf, message, (), _END_LINE)
        lines = block(pairs, column, self.newline, step)
        self.edits.append(Edit(node.open, node.open, lines[column:] + " " * column))

    def _insert_flow(self, node: Node, pairs: Pairs) -> None:
        text = self.text
        if text[node.open - 1] != "{":
            raise _refused(node, "a map without braces in a flow sequence", (), "put it in braces")
        members = self.flow.members(pairs)
        following = text[node.open]
        pad = "" if following in _BLANKS or following in BREAKS else " "
        if not node.children:
            self.edits.append(Edit(node.open, node.open, members + ("" if following == "}" else pad)))
            return
        if any(tree.is_merge(key) for key, _ in node.pairs()):
            # After `<<` all readers agree that an own key wins; Helm lets a `<<` that comes later win.
            key, value = node.children[-2:]
            colon = self._colon(key) if _is_empty(value) else None
            if colon is not None:
                self.edits.append(Edit(colon + 1, colon + 1, " , " + members))  # without the blank `:,` is text
            else:
                index = key.end if _is_empty(value) else value.end
                self.edits.append(Edit(index, index, ", " + members))
            return
        first = node.children[0].start
        blank = text[node.open : first]
        if "#" in blank or "?" in blank:
            self.edits.append(Edit(node.open, node.open, members + "," + pad))
        else:
            self.edits.append(Edit(first, first, members + "," + (blank or self.flow.comma[1:])))

    def insert_item(self, node: Node, value: Pairs) -> None:
        """Put a new object before a list's item."""
        seq = self._list(node)
        if seq.flow:
            start = node.start
            while self.text[start - 1] in _BLANKS or self.text[start - 1] in BREAKS:
                start -= 1
            blank = self.text[start : node.start] if self.text[start - 1] in "[," else " "
            new = f"{self.flow.value(value)},{blank or self.flow.comma[1:]}"
            self.edits.append(Edit(node.start, node.start, new))
            return
        dash = self._dash(node)
        start = _line_start(self.text, dash)
        column = dash - start
        if self.text[start:dash].strip(_BLANKS):
            # `: - a`: the dash is not the first on its line, so the new item takes its place.
            self.edits.append(Edit(dash, dash, self._item(value, column, self.newline)[column:] + " " * column))
            return
        start = self._above_comments(start, column)
        newline = _break_before(self.text, start) or self.newline
        self.edits.append(Edit(start, start, self._item(value, column, newline)))

    def append_items(self) -> None:
        """Put the appended objects behind a list's last item."""
        node = self.last_item
        if node is None or not self.appended:
            return
        if self._list(node).flow:
            new = "".join(f"{self.flow.comma}{self.flow.value(value)}" for value in self.appended)
            self.edits.append(Edit(node.end, node.end, new))
            return
        leaf = self._leaf(node)
        if self._open_scalar(leaf):
            raise _refused(leaf, "a block scalar without a last line break", (), _END_LINE)
        dash = self._dash(node)
        index, newline, ended = self._behind(leaf)
        column = dash - _line_start(self.text, dash)
        self._lines(index, newline, ended, "".join(self._item(value, column, newline) for value in self.appended))

    def _list(self, item: Node) -> Node:
        seq = item.within
        if seq is None:
            raise ValueError("not an item of a list")
        self._own(seq, ("items",))
        return seq

    def _item(self, value: Pairs, column: int, newline: str) -> str:
        """Return an item of a block sequence as whole lines."""
        return f"{' ' * column}- {block(value, column + 2, newline)[column + 2 :]}"

    def _dash(self, node: Node) -> int:
        """Return where the dash of a block sequence's item stands: on its line, or above blank lines and comments."""
        end = node.start
        while True:
            start = _line_start(self.text, end)
            line = self.text[start:end].rstrip(_BLANKS)
            if line.endswith("-"):
                return start + len(line) - 1
            words = line.strip(_BLANKS)
            if words.startswith("-") and not _is_content(words[1:]):
                return start + line.index("-")
            if start == 0 or _is_content(words):
                raise _refused(node, "the dash of the list item was not found", (), "put it on the line of the item")
            end = _line_above(self.text, start)

    def _above_comments(self, start: int, column: int) -> int:
        """Return the start of the comment lines directly above an item, at its column: they belong to it."""
        least = self._leaf(self.last_item).end if self.last_item is not None else 0
        while start > 0:
            above = _line_start(self.text, _line_above(self.text, start))
            if above < least or self.text[above : above + column + 1] != " " * column + "#":
                break
            start = above
        return start

    # Replacing

    def replace(self, node: Node, value: Pairs) -> None:
        """Make an object become `value`."""
        if node.kind != MAP:
            raise _refused(node, "the object is no map")
        self._own(node, ())
        if node.flow:
            if self.text[node.open - 1] != "{":
                raise _refused(node, "a map without braces in a flow sequence", (), "put it in braces")
            self.edits.append(Edit(node.open - 1, node.end, self.flow.value(value)))
            return
        column = self._column(node.open)
        leaf = self._leaf(node)
        index, newline, ended = (leaf.end, self.newline, False) if self._open_scalar(leaf) else self._behind(leaf)
        lines = block(value, column, newline)[column:]
        self.edits.append(Edit(node.open, index, lines if ended else lines.removesuffix(newline)))

    # Places in the text

    def _column(self, index: int) -> int:
        return index - _line_start(self.text, index)

    def _step(self, node: Node, habit: int) -> int:
        """Return how much further in a map's own block maps stand; the habit of the map above where it has none."""
        column = self._column(node.open)
        for _, value in node.pairs():
            if value.kind == MAP and not value.flow and self._column(value.open) > column:
                return self._column(value.open) - column
        return habit

    def _leaf(self, node: Node) -> Node:
        """Return the node whose text ends a block collection: of the last entry's value the last entry's, and so on."""
        key: Node | None = None
        while node.kind in (MAP, SEQ) and not node.flow:
            if node.children:
                key = node.children[-2] if node.kind == MAP else None
                node = node.children[-1]
            elif self.last_item is not None:  # the items were handed out
                node = self.last_item
            else:
                break
        if key is not None and _is_empty(node) and self._colon(key) is None:
            return key  # `? key`, whose empty value has the place of the next token
        return node

    def _open_scalar(self, leaf: Node) -> bool:
        """Return whether a leaf is a block scalar that runs to the end of the text with no line break."""
        return leaf.style in ("|", ">") and self.text[leaf.end - 1] not in BREAKS

    def _behind(self, leaf: Node) -> tuple[int, str, bool]:
        """Return where lines go that follow a leaf, their line break, and whether they begin at a line's start."""
        if leaf.style in ("|", ">"):
            return leaf.end, _break_before(self.text, leaf.end), True
        return self._after_line(leaf.end)

    def _after_line(self, index: int) -> tuple[int, str, bool]:
        end = _line_end(self.text, index)
        if _is_content(self.text[index:end]):
            message = "more stands on the line where a new one must begin"
            raise Unfit("edit-refused", index, message, "put it on its own line")
        newline = _newline_at(self.text, end)
        return end + len(newline), newline or self.newline, newline != ""

    def _lines(self, index: int, newline: str, ended: bool, lines: str) -> None:
        """Insert whole lines; where the text ends without a line break it goes on doing so."""
        self.edits.append(Edit(index, index, lines if ended else newline + lines.removesuffix(newline)))


_WRITE_OUT = "write the map out in this place"
_END_LINE = "end the file with a line break"


def _break_before(text: Text, index: int) -> str:
    """Return the line break that ends at `index`, or an empty string."""
    if index == 0 or text[index - 1] not in BREAKS:
        return ""
    return "\r\n" if text[index - 1] == "\n" and text[index - 2 : index - 1] == "\r" else text[index - 1]


def _line_above(text: Text, start: int) -> int:
    """Return where the line above ends, before its break; `start` begins a line that is not the first."""
    return start - len(_break_before(text, start))


def _flow(text: Text) -> Flow:
    """Return how flow text is written in a document: as JSON if it begins with a brace and a double-quoted key."""
    index = _skip(text, 3 if _marker(text) else 0)
    first = _skip(text, index + 1)
    json = text.startswith("{", index) and text.startswith('"', first)
    colon = text.find('":', first) + 2
    return Flow(json, json and colon > 1 and not text[colon : colon + 1].isspace())


def _is_empty(node: Node) -> bool:
    """Return whether a node has no text at all; its place is not to be trusted."""
    return node.kind == SCALAR and node.style == "" and node.value == "" and node.start == node.end


def _refused(node: Node, message: str, path: tuple[str, ...] = (), remedy: str = "write it in a plainer form") -> Unfit:
    return Unfit("edit-refused", node.start, message, remedy, objects.field(path))


def _pairs(want: str | int | bool | Overlay) -> Value:
    return _overlay_pairs(want) if isinstance(want, dict) else want


def _overlay_pairs(overlay: Overlay) -> Pairs:
    return tuple((key, _pairs(want)) for key, want in overlay.items())


def _holds(node: Node, want: str | int | bool | Overlay) -> bool:
    """Return whether a node means `want` already, to every reader."""
    held = node.resolved()
    if isinstance(want, dict):
        if held.kind != MAP:
            return False
        entries = ((tree.find(held, key), inner) for key, inner in want.items())
        return all(entry is not None and _holds(entry.value, inner) for entry, inner in entries)
    if held.kind != SCALAR:
        return False
    if isinstance(want, str):
        if held.value != want or held.tag not in (None, tree.STRING):
            return False
        return held.style != "" or held.tag is not None or is_string(want)
    return held.style == "" and held.tag is None and held.value == write(want)


# -- reading back -----------------------------------------------------------------------------------------------------


class _Reading:
    """Holds two trees against each other: the second must be the first plus the changes, node by node.

    What was not to change must be the same to the letter, styles and anchors included. So it means the same to all
    readers, whatever they make of it; and where new keys stand in a map, no merge key follows that Helm would let win
    over them.
    """

    def __init__(self) -> None:
        self.differences = 0
        self._twins: dict[int, tuple[Node, Node]] = {}  # anchored nodes by identity, kept alive, and what they became
        self._aliases: list[tuple[Node, Node]] = []
        self._touched: list[Node] = []

    def same(self, old: Node, new: Node) -> bool:
        """Return whether two nodes are the same to the letter."""
        todo = [(old, new)]
        while todo:
            old, new = todo.pop()
            if (
                old.kind is not new.kind
                or old.style != new.style
                or old.value != new.value
                or not self._marks(old, new)
            ):
                return False
            if old.kind is MAP or old.kind is SEQ:
                if len(old.children) != len(new.children):
                    return False
                todo.extend(zip(old.children, new.children, strict=True))
            elif old.kind is ALIAS:
                self._aliases.append((old, new))
        return True

    def changed(self, old: Node, new: Node, overlay: Overlay) -> bool:
        """Return whether `new` is the map `old` with `overlay` laid over it."""
        held = old.resolved()
        if held.null():
            self.differences += 1
            return _is(new, _overlay_pairs(overlay))
        if held.kind is not MAP:
            return False
        if new.kind is ALIAS:
            return self.same(old, new) and _holds(held, overlay)
        if old.kind is ALIAS:
            return self._laid_over(old, new, overlay)
        if new.kind is not MAP or old.style != new.style or not self._marks(old, new):
            return False
        before = self.differences
        entries = {key: tree.find(old, key) for key in overlay}
        own = {id(entry.key): key for key, entry in entries.items() if entry is not None and not entry.merged}
        missing = {
            key: want
            for key, want in overlay.items()
            if (entry := entries[key]) is None or (entry.merged and not _holds(entry.value, want))
        }
        rest = list(old.pairs())[::-1]
        for key, value in new.pairs():
            if key.value in missing and key.kind is SCALAR and _is(key, key.value):
                self.differences += 1
                if any(tree.is_merge(later) for later, _ in rest) or not _is(value, _pairs(missing.pop(key.value))):
                    return False
                continue
            old_key, old_value = rest.pop() if rest else (new, new)
            if not self.same(old_key, key):
                return False
            name = own.get(id(old_key))
            if not (self.same(old_value, value) if name is None else self._value(old_value, value, overlay[name])):
                return False
        if self.differences > before and old.anchor is not None:
            self._touched.append(old)
        return not rest and not missing

    def end(self) -> bool:
        """Return whether all aliases stand for what they stood for: the same anchored node, unchanged."""
        touched = {id(node) for node in self._touched}
        return all(
            self._twins.get(id(old.target), (None, None))[1] is new.target and id(old.target) not in touched
            for old, new in self._aliases
        )

    def _marks(self, old: Node, new: Node) -> bool:
        """Return whether tag and anchor are the same, and remember what an anchored node became."""
        if old.anchor is not None and old.kind is not ALIAS:
            self._twins[id(old)] = (old, new)
        return old.tag == new.tag and old.anchor == new.anchor

    def _value(self, old: Node, new: Node, want: str | int | bool | Overlay) -> bool:
        if isinstance(want, dict):
            return self.changed(old, new, want)
        if _holds(old, want):
            return self.same(old, new)
        self.differences += 1
        return _is(new, want)

    def _laid_over(self, old: Node, new: Node, overlay: Overlay) -> bool:
        """Return whether an alias became `{<<: *alias, key: value}`."""
        if new.kind is not MAP or new.anchor is not None or new.tag is not None or len(new.children) < 4:
            return False
        (merge, alias), *added = new.pairs()
        laid = {key: want for key, want in overlay.items() if not _laid(old.target, key, want)}
        self.differences += 1
        return (
            tree.is_merge(merge)
            and self.same(old, alias)
            and _all_are(added, tuple((key, _pairs(want)) for key, want in laid.items()))
        )


def _laid(node: Node, key: str, want: str | int | bool | Overlay) -> bool:
    entry = tree.find(node, key)
    return entry is not None and _holds(entry.value, want)


def _is(node: Node, value: Value) -> bool:
    """Return whether a node is what we write for `value`: no tag, no anchor, and a string only where all read one."""
    if node.tag is not None or node.anchor is not None:
        return False
    if isinstance(value, tuple):
        return node.kind is MAP and _all_are(list(node.pairs()), value)
    if node.kind is not SCALAR:
        return False
    if isinstance(value, str):
        return node.value == value and (node.style != "" or is_string(value))
    return node.style == "" and node.value == write(value)


def _all_are(pairs: list[tuple[Node, Node]], value: Pairs) -> bool:
    return len(pairs) == len(value) and all(
        _is(node_key, key) and _is(node, held) for (node_key, node), (key, held) in zip(pairs, value, strict=True)
    )


def _check(olds: Iterable[tuple[int, Node]], news: Iterator[tuple[int, Node]], wanted: _Wanted, appends: bool) -> None:
    """Raise Unfit unless the new nodes are the old ones plus the changes, object by object."""
    reading = _Reading()
    old = None
    try:
        for number, old in olds:
            added = wanted.added(number) if not appends else wanted.all_added() if number < 0 else []
            right = all(_is(_next(news), value) for value in added)
            new = _next(news)
            replaced = wanted.replaced(number)
            overlay = wanted.overlay(number)
            if replaced is not None:
                right = right and _is_marked(new, old, replaced)
            elif overlay:
                right = right and reading.changed(old, new, overlay)
            else:
                right = right and reading.same(old, new)
            if not right:
                raise _misread(old)
        if not reading.end() or next(news, None) is not None:
            raise _misread(old)
    except _Unlike as unlike:
        raise _misread(old, f": {unlike}") from None


class _Unlike(Exception):  # noqa: N818 - private to the check
    """The edited text could not be read, or ended too early."""


def _next(news: Iterator[tuple[int, Node]]) -> Node:
    try:
        new = next(news, None)
    except Unfit as unfit:
        raise _Unlike(unfit.message) from None
    if new is None:
        raise _Unlike("an object is missing")
    return new[1]


def _is_marked(new: Node, old: Node, value: Pairs) -> bool:
    """Return whether a replaced object is `value`; its tag and anchor stay."""
    return (new.tag, new.anchor) == (old.tag, old.anchor) and new.kind is MAP and _all_are(list(new.pairs()), value)


def _misread(node: Node | None, why: str = "") -> Unfit:
    message = f"the edited text, read back, was not the input plus the change{why}"
    return Unfit("edit-refused", node.start if node else 0, message, "write it in a plainer form; report this")


def _check_value(text: str, value: Pairs) -> None:
    """Raise Unfit unless a new document reads as the value it was written from."""
    node = tree.read(text.encode())
    if node is None or not _is(node, value):
        raise _misread(node)
