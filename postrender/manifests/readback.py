"""An edited document, read again and held against the original: it must be the original plus the changes."""

from __future__ import annotations

from . import tree
from .lookup import find, is_merge
from .overlay import holds, lacking, overlay_pairs, pairs_of
from .scalars import is_string, write
from .tree import ALIAS, MAP, SCALAR, SEQ, Unfit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .change import Extend, Pairs, Value
    from .overlay import Overlay, Wanted
    from .tree import Node


def check(olds: Iterable[tuple[int, Node]], news: Iterator[tuple[int, Node]], wanted: Wanted, appends: bool) -> None:
    """Raise Unfit unless the new nodes are the old ones plus the changes, object by object."""
    reading = Reading()
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
            elif number < 0 and wanted.extended is not None:
                right = right and reading.extended(old, new, wanted.extended)
            else:
                right = right and reading.same(old, new)
            if not right:
                raise _misread(old)
        if not reading.end() or not _is_over(news):
            raise _misread(old)
    except _Unlike as unlike:
        raise _misread(old, f": {unlike}") from None


def check_value(text: str, value: Pairs) -> None:
    """Raise Unfit unless a new document reads as the value it was written from."""
    node = tree.read(text.encode())
    if node is None or not _is(node, value):
        raise _misread(node)


class Reading:
    """Holds two trees against each other: the second must be the first plus the changes, node by node.

    What was not to change must be the same to the letter, styles and anchors included. So it means the same to all
    readers, whatever they make of it; and where new keys stand in a map, no merge key follows that Helm would let win
    over them.
    """

    def __init__(self) -> None:
        """Start with nothing read."""
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
            return _is(new, overlay_pairs(overlay))
        if held.kind is not MAP:
            return False
        if new.kind is ALIAS:
            return self.same(old, new) and holds(held, overlay)
        if old.kind is ALIAS:
            return self._laid_over(old, new, overlay)
        if new.kind is not MAP or old.style != new.style or not self._marks(old, new):
            return False
        before = self.differences
        entries = {key: find(old, key) for key in overlay}
        own = {id(entry.key): key for key, entry in entries.items() if entry is not None and not entry.merged}
        missing = {
            key: want
            for key, want in overlay.items()
            if (entry := entries[key]) is None or (entry.merged and not holds(entry.value, want))
        }
        rest = list(old.pairs())[::-1]
        for key, value in new.pairs():
            if key.value in missing and key.kind is SCALAR and _is(key, key.value):
                self.differences += 1
                if any(is_merge(later) for later, _ in rest) or not _is(value, pairs_of(missing.pop(key.value))):
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

    def extended(self, old: Node, new: Node, change: Extend) -> bool:
        """Return whether `new` is the map `old`, its list at a key longer by what that lacked."""
        if old.kind is not MAP or new.kind is not MAP or old.style != new.style or not self._marks(old, new):
            return False
        entry = find(old, change.key)
        held = entry.value if entry is not None else None
        lacked = lacking(held, change.values)
        rest = list(old.pairs())[::-1]
        for key, value in new.pairs():
            if held is None and lacked and key.value == change.key and _is(key, change.key):
                if any(is_merge(later) for later, _ in rest) or not _all_listed(value, lacked):
                    return False
                lacked = ()
                continue
            old_key, old_value = rest.pop() if rest else (new, new)
            if not self.same(old_key, key):
                return False
            if old_value is not held or not lacked:
                right = self.same(old_value, value)
            elif old_value.null():
                right = _all_listed(value, lacked)
            else:
                right = self._longer(old_value, value, lacked)
            if not right:
                return False
            lacked = () if old_value is held else lacked
        return not rest and not lacked

    def _longer(self, old: Node, new: Node, added: tuple[Pairs, ...]) -> bool:
        """Return whether a list is another and more behind it."""
        count = len(old.children)
        if new.kind is not SEQ or old.style != new.style or not self._marks(old, new):
            return False
        return (
            len(new.children) == count + len(added)
            and all(self.same(*pair) for pair in zip(old.children, new.children[:count], strict=True))
            and all(_is(*pair) for pair in zip(new.children[count:], added, strict=True))
        )

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
        if holds(old, want):
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
            is_merge(merge)
            and self.same(old, alias)
            and _all_are(added, tuple((key, pairs_of(want)) for key, want in laid.items()))
        )


def _laid(node: Node, key: str, want: str | int | bool | Overlay) -> bool:
    entry = find(node, key)
    return entry is not None and holds(entry.value, want)


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


def _all_listed(node: Node, values: tuple[Pairs, ...]) -> bool:
    """Return whether a node is a list that we wrote."""
    if node.kind is not SEQ or node.tag is not None or node.anchor is not None or len(node.children) != len(values):
        return False
    return all(_is(*pair) for pair in zip(node.children, values, strict=True))


def _all_are(pairs: list[tuple[Node, Node]], value: Pairs) -> bool:
    return len(pairs) == len(value) and all(
        _is(node_key, key) and _is(node, held) for (node_key, node), (key, held) in zip(pairs, value, strict=True)
    )


def _is_over(news: Iterator[tuple[int, Node]]) -> bool:
    try:
        return next(news, None) is None
    except Unfit:
        return False


def _is_marked(new: Node, old: Node, value: Pairs) -> bool:
    """Return whether a replaced object is `value`; its tag and anchor stay."""
    return (new.tag, new.anchor) == (old.tag, old.anchor) and new.kind is MAP and _all_are(list(new.pairs()), value)


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


def _misread(node: Node | None, why: str = "") -> Unfit:
    message = f"the edited text, read back, was not the input plus the change{why}"
    return Unfit("edit-refused", node.start if node else 0, message, "write it in a plainer form; report this")
