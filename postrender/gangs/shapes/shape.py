"""What every shape returns: a component's gangs, what is written into the service, what is said."""

from __future__ import annotations

from sys import intern

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
    `labels` are those that the component's pods share. `sets` are further fields of the service, as pairs of path and
    value. Each finding comes with the object and the code point of what caused it.
    """

    ganged: bool
    gangs: tuple[Gang, ...]
    labels: tuple[tuple[str, str], ...]
    sets: tuple[tuple[tuple[str, ...], str], ...]
    findings: tuple[Said, ...]


NOTHING = Shape(False, (), (), (), ())


def said(merged: Merged, code: str, message: str, remedy: str, field: str, chosen: Chosen | None = None) -> Said:
    """Return a finding at the value that caused it; at the component and its `field` where nobody wrote one."""
    layer = chosen.layer if chosen else merged.workload
    path = chosen.path(merged.own.name) if chosen else layer.path(merged.own.name, field)
    if layer is not merged.workload:
        message += f" ({layer.title})"
    # Thousands of services say the same: one text is kept of each.
    return Finding(code, intern(message), remedy, field=intern(path)), layer, chosen.at if chosen else merged.own.at


def refused(*findings: Said) -> Shape:
    """Return a shape that comes to nothing but what is said."""
    return Shape(False, (), (), (), findings)
