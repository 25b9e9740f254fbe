"""The changes of one document, object by object; what is set as an overlay, and whether a node holds it already."""

from __future__ import annotations

from . import objects
from .change import Add, Extend, Replace, Set
from .lookup import find
from .scalars import is_string, write
from .tree import MAP, SCALAR, SEQ, STRING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from .change import Change, Pairs, Value
    from .tree import Node

    # Keys -> what must stand there: a scalar, or more keys.
    Overlay: TypeAlias = dict[str, str | int | bool | "Overlay"]


class Wanted:
    """The changes of one document, per object (-1 is the document, else the number of an item)."""

    def __init__(self, changes: Iterable[Change]) -> None:
        """Sort the changes; a document before a document is no change of it."""
        self._changes: dict[int, list[Change]] = {}
        for change in changes:
            spot = change.before if isinstance(change, Add) else change.spot
            if spot.item >= 0 or not isinstance(change, Add):
                self._changes.setdefault(spot.item, []).append(change)

    def numbers(self) -> set[int]:
        """Return the objects that have changes."""
        return set(self._changes)

    def added(self, number: int) -> list[Pairs]:
        """Return the objects that go before an item."""
        return [change.value for change in self._changes.get(number, ()) if isinstance(change, Add)]

    def all_added(self) -> list[Pairs]:
        """Return all new objects in the order of their items."""
        return [value for number in sorted(self._changes) for value in self.added(number)]

    def replaced(self, number: int) -> Pairs | None:
        """Return what an object becomes, if it is replaced."""
        values = [change.value for change in self._changes.get(number, ()) if isinstance(change, Replace)]
        return values[-1] if values else None

    @property
    def extended(self) -> Extend | None:
        """The list of the document that is made longer, if one is."""
        return next((change for change in self._changes.get(-1, ()) if isinstance(change, Extend)), None)

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


def pairs_of(want: str | int | bool | Overlay) -> Value:
    """Return what is wanted as a value to write."""
    return overlay_pairs(want) if isinstance(want, dict) else want


def overlay_pairs(overlay: Overlay) -> Pairs:
    """Return an overlay as a map to write."""
    return tuple((key, pairs_of(want)) for key, want in overlay.items())


def lacking(node: Node | None, values: tuple[Pairs, ...]) -> tuple[Pairs, ...]:
    """Return those of `values` that do not stand in a list."""
    standing = {objects.plain(child) for child in node.children} if node is not None and node.kind == SEQ else set()
    return tuple(value for value in values if value not in standing)


def holds(node: Node, want: str | int | bool | Overlay) -> bool:
    """Return whether a node means `want` already, to every reader."""
    held = node.resolved()
    if isinstance(want, dict):
        if held.kind != MAP:
            return False
        entries = ((find(held, key), inner) for key, inner in want.items())
        return all(entry is not None and holds(entry.value, inner) for entry, inner in entries)
    if held.kind != SCALAR:
        return False
    if isinstance(want, str):
        if held.value != want or held.tag not in (None, STRING):
            return False
        return held.style != "" or held.tag is not None or is_string(want)
    return held.style == "" and held.tag is None and held.value == write(want)
