"""The nodes of a document and what must hold in it -> the edits that make it so.

Every edit is a splice of text: new lines take the column, the indentation and the line break of what stands beside.
What cannot be edited safely raises Unfit, with the place.
"""

from __future__ import annotations

from ..record import Record
from . import objects
from .lines import (
    BLANKS,
    BREAKS,
    break_before,
    first_newline,
    is_content,
    line_above,
    line_end,
    line_start,
    newline_at,
    skip,
)
from .lookup import Entry, find, is_merge
from .overlay import holds, lacking, overlay_pairs, pairs_of
from .tree import ALIAS, MAP, SCALAR, SEQ, Node, Unfit
from .write import STEP, block, habits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .change import Pairs, Value
    from .lines import Text
    from .overlay import Overlay, Wanted

_WRITE_OUT = "write the map out in this place"
_END_LINE = "end the file with a line break"


class Edit(Record):
    """The text between two code points becomes `new`."""

    start: int
    end: int
    new: str


class Editor:
    """Collects the edits to one document; edits at one place are meant in the order in which they were found."""

    def __init__(self, text: Text, used: frozenset[int]) -> None:
        """Start with a document's text, and where the anchored nodes begin that some alias stands for."""
        self.text = text
        self.used = used
        self.edits: list[Edit] = []
        self.appended: list[Pairs] = []
        self.last_item: Node | None = None
        self.newline = first_newline(text)
        self.flow = habits(text)

    def object(self, node: Node, wanted: Wanted, number: int, appends: bool) -> None:
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
                entry = find(node, key)
            except Unfit as unfit:
                unfit.field = objects.field((*path, key))
                raise
            if entry is None:
                missing.append((key, pairs_of(want)))
            elif not entry.merged:
                if isinstance(want, dict):
                    self._inner(node, entry, want, (*path, key), step)
                else:
                    self._scalar(node, entry, want, (*path, key))
            elif not holds(entry.value, want):
                if isinstance(want, dict) and not entry.value.resolved().null():
                    message = "the map comes in through a merge key (<<), and an own one would hide it"
                    raise _refused(entry.value, message, (*path, key), _WRITE_OUT)
                missing.append((key, pairs_of(want)))
        if missing and node.flow:
            self._insert_flow(node, self.flow.members(tuple(missing)))
        elif missing:
            self._insert_block(node, tuple(missing), step)
        if len(self.edits) > before:
            self._own(node, path)

    def _inner(self, node: Node, entry: Entry, want: Overlay, path: tuple[str, ...], step: int) -> None:
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
            self.edits.append(Edit(value.start, value.end, self.flow.value(overlay_pairs(want))))
        else:
            self._fill(node, entry, want, step)

    def _alias(self, value: Node, held: Node, want: Overlay, path: tuple[str, ...]) -> None:
        """Lay new keys over an aliased map: `*a` becomes `{<<: *a, key: value}`."""
        new: list[tuple[str, Value]] = []
        for key, inner in want.items():
            entry = find(held, key)
            if entry is not None and holds(entry.value, inner):
                continue
            if entry is not None and isinstance(inner, dict) and not entry.value.resolved().null():
                raise _refused(value, "the map is an alias of one that others share", (*path, key), _WRITE_OUT)
            new.append((key, pairs_of(inner)))
        if not new:
            return
        if self.flow.json:
            raise _refused(value, "the map is an alias, and JSON has no merge keys", path, _WRITE_OUT)
        alias = self.text[value.start : value.end]
        self.edits.append(Edit(value.start, value.end, f"{{<<: {alias}, {self.flow.members(tuple(new))}}}"))

    def _fill(self, node: Node, entry: Entry, want: Overlay, step: int) -> None:
        """Give a key without a value a map."""
        pairs = overlay_pairs(want)
        colon = self._colon(entry.key)
        if node.flow or colon is None:
            self._write_after(node, entry.key, colon, self.flow.value(pairs))
        else:
            index, newline, ended = self._after_line(colon + 1)
            self._lines(index, newline, ended, block(pairs, self._column(node.open) + step, newline, step))

    def _scalar(self, node: Node, entry: Entry, want: str | int | bool, path: tuple[str, ...]) -> None:
        value = entry.value
        held = value.resolved()
        if held.kind != SCALAR:
            raise _refused(value, f"a {objects.NAMES[held.kind]} stands where a value must be", path, "write a value")
        if holds(value, want):
            return
        if value.anchor and value.kind != ALIAS:
            raise _refused(value, "an anchor stands on the value that must change", path, "remove the anchor")
        new = self.flow.value(want)
        if value.kind == SCALAR and value.style == "" and value.start == value.end:
            self._write_after(node, entry.key, self._colon(entry.key), new)
            return
        old = self.text[value.start : value.end]
        if value.style in ("|", ">"):
            new += old[len(old.rstrip(BLANKS + BREAKS)) :]  # the breaks that end it; what follows begins a line
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
        index = skip(self.text, key.end)
        return index if self.text.startswith(":", index) else None

    # Inserting

    def _insert_block(self, node: Node, pairs: Pairs, step: int) -> None:
        column = self._column(node.open)
        self._insert_lines(node, lambda newline: block(pairs, column, newline, step))

    def _insert_lines(self, node: Node, lines: Callable[[str], str]) -> None:
        """Put members behind the last of a block map: whole lines, made for a line break."""
        column = self._column(node.open)
        leaf = self._leaf(node)
        if not self._open_scalar(leaf):
            index, newline, ended = self._behind(leaf)
            self._lines(index, newline, ended, lines(newline))
            return
        # A line break after it would become part of its value, so the new keys go first.
        if any(is_merge(key) for key, _ in node.pairs()):
            message = "a block scalar without a last line break, in a map with a merge key (<<)"
            raise _refused(leaf, message, (), _END_LINE)
        self.edits.append(Edit(node.open, node.open, lines(self.newline)[column:] + " " * column))

    def _insert_flow(self, node: Node, members: str) -> None:
        text = self.text
        if text[node.open - 1] != "{":
            raise _refused(node, "a map without braces in a flow sequence", (), "put it in braces")
        following = text[node.open]
        pad = "" if following in BLANKS or following in BREAKS else " "
        if not node.children:
            self.edits.append(Edit(node.open, node.open, members + ("" if following == "}" else pad)))
            return
        if any(is_merge(key) for key, _ in node.pairs()):
            # After `<<` all readers agree that an own key wins; Helm lets a `<<` that comes later win.
            key, value = node.children[-2:]
            colon = self._colon(key) if is_empty(value) else None
            if colon is not None:
                self.edits.append(Edit(colon + 1, colon + 1, " , " + members))  # without the blank `:,` is text
            else:
                index = key.end if is_empty(value) else value.end
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
            while self.text[start - 1] in BLANKS or self.text[start - 1] in BREAKS:
                start -= 1
            blank = self.text[start : node.start] if self.text[start - 1] in "[," else " "
            new = f"{self.flow.value(value)},{blank or self.flow.comma[1:]}"
            self.edits.append(Edit(node.start, node.start, new))
            return
        dash = self._dash(node)
        start = line_start(self.text, dash)
        column = dash - start
        if self.text[start:dash].strip(BLANKS):
            # `: - a`: the dash is not the first on its line, so the new item takes its place.
            self.edits.append(Edit(dash, dash, self._item(value, column, self.newline)[column:] + " " * column))
            return
        start = self._above_comments(start, column)
        newline = break_before(self.text, start) or self.newline
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
        column = dash - line_start(self.text, dash)
        self._lines(index, newline, ended, self._items(self.appended, column, newline))

    # A list of the document's own, beside its items

    def extend(self, root: Node, key: str, values: tuple[Pairs, ...]) -> None:
        """Put maps at the end of the list that the document's root holds at a key, but for those that stand there."""
        entry = find(root, key)
        if entry is None:
            self._insert_list(root, key, values)
            return
        held = entry.value
        if held.null() and not entry.merged:
            self._fill_list(root, entry, values)
            return
        if entry.merged or held.kind != SEQ:
            kind = "one that comes from elsewhere" if entry.merged else f"a {objects.NAMES[held.kind]}"
            raise _refused(held, f"{kind} stands where a list must be", (key,), "write a list, or remove it")
        lacked = lacking(held, values)
        if not lacked:
            return
        self._own(held, (key,))
        last = held.children[-1] if held.children else None
        if held.flow:
            new = self.flow.comma.join(self.flow.value(value) for value in lacked)
            index = held.open if last is None else last.end
            self.edits.append(Edit(index, index, new if last is None else self.flow.comma + new))
        elif last is not None:
            leaf = self._leaf(last)
            if self._open_scalar(leaf):
                raise _refused(leaf, "a block scalar without a last line break", (), _END_LINE)
            dash = self._dash(last)
            index, newline, ended = self._behind(leaf)
            self._lines(index, newline, ended, self._items(lacked, dash - line_start(self.text, dash), newline))

    def _insert_list(self, root: Node, key: str, values: tuple[Pairs, ...]) -> None:
        if root.flow:
            self._insert_flow(root, self.flow.members(((key, ""),)).removesuffix('""') + self._flow_list(values))
            return
        column = self._column(root.open)
        self._insert_lines(root, lambda newline: f"{' ' * column}{key}:{newline}{self._items(values, column, newline)}")

    def _fill_list(self, root: Node, entry: Entry, values: tuple[Pairs, ...]) -> None:
        """Give a key whose value is null a list."""
        value = entry.value
        if value.anchor:
            raise _refused(value, "an anchor stands on an empty value", (entry.key.value,), "remove the anchor")
        colon = self._colon(entry.key)
        if value.end > value.start:
            self.edits.append(Edit(value.start, value.end, self._flow_list(values)))
        elif root.flow or colon is None:
            self._write_after(root, entry.key, colon, self._flow_list(values))
        else:
            index, newline, ended = self._after_line(colon + 1)
            self._lines(index, newline, ended, self._items(values, self._column(root.open), newline))

    def _flow_list(self, values: tuple[Pairs, ...]) -> str:
        return f"[{self.flow.comma.join(self.flow.value(value) for value in values)}]"

    def _items(self, values: Iterable[Pairs], column: int, newline: str) -> str:
        return "".join(self._item(value, column, newline) for value in values)

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
            start = line_start(self.text, end)
            line = self.text[start:end].rstrip(BLANKS)
            if line.endswith("-"):
                return start + len(line) - 1
            words = line.strip(BLANKS)
            if words.startswith("-") and not is_content(words[1:]):
                return start + line.index("-")
            if start == 0 or is_content(words):
                raise _refused(node, "the dash of the list item was not found", (), "put it on the line of the item")
            end = line_above(self.text, start)

    def _above_comments(self, start: int, column: int) -> int:
        """Return the start of the comment lines directly above an item, at its column: they belong to it."""
        least = self._leaf(self.last_item).end if self.last_item is not None else 0
        while start > 0:
            above = line_start(self.text, line_above(self.text, start))
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
        return index - line_start(self.text, index)

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
        if key is not None and is_empty(node) and self._colon(key) is None:
            return key  # `? key`, whose empty value has the place of the next token
        return node

    def _open_scalar(self, leaf: Node) -> bool:
        """Return whether a leaf is a block scalar that runs to the end of the text with no line break."""
        return leaf.style in ("|", ">") and self.text[leaf.end - 1] not in BREAKS

    def _behind(self, leaf: Node) -> tuple[int, str, bool]:
        """Return where lines go that follow a leaf, their line break, and whether they begin at a line's start."""
        if leaf.style in ("|", ">"):
            return leaf.end, break_before(self.text, leaf.end), True
        return self._after_line(leaf.end)

    def _after_line(self, index: int) -> tuple[int, str, bool]:
        end = line_end(self.text, index)
        if is_content(self.text[index:end]):
            message = "more stands on the line where a new one must begin"
            raise Unfit("edit-refused", index, message, "put it on its own line")
        newline = newline_at(self.text, end)
        return end + len(newline), newline or self.newline, newline != ""

    def _lines(self, index: int, newline: str, ended: bool, lines: str) -> None:
        """Insert whole lines; where the text ends without a line break it goes on doing so."""
        self.edits.append(Edit(index, index, lines if ended else newline + lines.removesuffix(newline)))


def is_empty(node: Node) -> bool:
    """Return whether a node has no text at all; its place is not to be trusted."""
    return node.kind == SCALAR and node.style == "" and node.value == "" and node.start == node.end


def _refused(node: Node, message: str, path: tuple[str, ...] = (), remedy: str = "write it in a plainer form") -> Unfit:
    return Unfit("edit-refused", node.start, message, remedy, objects.field(path))
