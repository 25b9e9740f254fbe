"""What may happen to a stream of manifests: four kinds of change, as values.

A change names its object by a `Spot` and says what must hold afterwards; where the text goes is `edit`'s business.
A change that holds already makes no edit.
"""

from __future__ import annotations

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    # What we ever write: strings, integers, booleans, and maps of them as pairs in the order to write them.
    Value: TypeAlias = str | int | bool | "Pairs"
    Pairs: TypeAlias = tuple[tuple[str, Value], ...]
    Change: TypeAlias = "Set" | "Add" | "Replace" | "Extend"
    Changes: TypeAlias = Sequence[Change]


class Spot(Record):
    """Where an object stands: the number of its span, and its number in `items`, or -1 for the document itself."""

    span: int
    item: int = -1


class Set(Record):
    """The scalar `value` must stand at `path` (mapping keys from the object's root); missing maps are made."""

    spot: Spot
    path: tuple[str, ...]
    value: str | int | bool


class Add(Record):
    """A new object, directly before the one at `before`; in a ResourceList at the end of its items."""

    before: Spot
    value: Pairs


class Replace(Record):
    """The object at `spot` becomes `value`, whole."""

    spot: Spot
    value: Pairs


class Extend(Record):
    """Each of `values` must stand in the list that the document at `spot` holds at `key`; they go to its end.

    The list is made if it is missing. Only for documents that are lists themselves.
    """

    spot: Spot
    key: str
    values: tuple[Pairs, ...]
