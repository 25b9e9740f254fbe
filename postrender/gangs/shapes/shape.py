"""What every shape returns: a component's gangs, what is written into the service, what is said."""

from __future__ import annotations

from ...findings import Finding
from ...record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ..merge import Chosen, Layer, Merged

    Said: TypeAlias = tuple[Finding, Layer, int]


class Gang(Record):
    """The pods of one Instance: the name of its PodGroup and what goes into it."""

    merged: Merged
    number: int
    name: str
    managed_by: str
    min_member: int
    schedule_timeout_seconds: int | None
    topology_key: str


class Shape(Record):
    """What a component comes to.

    `gangs` are the PodGroups to write; none where there is no gang or another makes them, `ganged` tells the two apart.
    `label` is the pod-group label that the component's pods share, empty for none. `sets` are further fields of the
    service, as pairs of path and value. Each finding comes with the object and the code point of what caused it.
    """

    ganged: bool
    gangs: tuple[Gang, ...]
    label: str
    sets: tuple[tuple[tuple[str, ...], str], ...]
    findings: tuple[Said, ...]


NOTHING = Shape(False, (), "", (), ())


def said(merged: Merged, code: str, message: str, remedy: str, field: str, chosen: Chosen | None = None) -> Said:
    """Return a finding at the value that caused it; at the component where nobody wrote one.

    `field` is named as the service has it, or as the runtime does where that wrote the value.
    """
    layer = chosen.layer if chosen else merged.workload
    path = layer.path(merged.own.name, field)
    return Finding(code, message, remedy, field=path), layer, chosen.at if chosen else merged.own.at


def refused(*findings: Said) -> Shape:
    """Return a shape that comes to nothing but what is said."""
    return Shape(False, (), "", (), findings)
