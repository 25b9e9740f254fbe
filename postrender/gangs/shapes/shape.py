"""What every shape returns: a component's gangs, what is written into the service, what is said."""

from __future__ import annotations

from sys import intern

from ...findings import Finding
from ...record import Record
from .. import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ..merge import Chosen, Layer, Merged
    from ..resources import LeaderWorkerSet, Workload
    from ..settings import Setting

    Said: TypeAlias = tuple[Finding, Layer | LeaderWorkerSet, int]


class Gang(Record):
    """The pods of one Instance: the name of its PodGroup and what goes into it; `merged` is what decided it."""

    workload: Workload | LeaderWorkerSet
    name: str
    labels: tuple[tuple[str, str], ...]
    min_member: int
    schedule_timeout_seconds: int | None
    topology_key: str = ""
    merged: Merged | None = None


class Timeout(Record):
    """`scheduleTimeoutSeconds`, None for no such field, and what decided it.

    `ready` is the ready timeout: what a manifest wrote, or the cluster's setting. `bound` is the bound of the clamp
    that it came to instead, None where it stayed.
    """

    seconds: int | None
    ready: Chosen | Setting
    bound: Setting | None


class Decided(Record):
    """What was decided of a component, or of a LeaderWorkerSet, for which `merged` is None.

    `gangs` are all of its gangs, those too whose PodGroups another makes (`made_by`); without one only the first two
    fields and `missing`, what of it is not known, say anything. `instances` run once it is deployed, each of a leader
    and `workers`; `shared` is how they share one template, or empty. The schedulers are those of the pods, with what is
    filled in.
    """

    owner: Workload | LeaderWorkerSet
    merged: Merged | None
    gangs: tuple[Gang, ...] = ()
    made_by: str = ""
    instances: int = 0
    workers: int = 0
    shared: str = ""
    timeout: Timeout | None = None
    leader_scheduler: str = ""
    worker_scheduler: str = ""
    missing: str = ""


class Shape(Record):
    """What a component comes to.

    `gangs` are the PodGroups to write; none where there is no gang or another makes them, `ganged` tells the two apart.
    `sets` are fields of the object to write, as pairs of path and value. Each finding comes with the object and the
    code point of what caused it. `decided` is there where there is a gang.
    """

    ganged: bool
    gangs: tuple[Gang, ...]
    sets: tuple[tuple[tuple[str, ...], str], ...]
    findings: tuple[Said, ...]
    decided: Decided | None = None


NOTHING = Shape(False, (), (), ())


def of_component(
    merged: Merged, number: int, name: str, managed_by: str, min_member: int, timeout: int | None, topology_key: str
) -> Gang:
    """Return the gang of an Instance of a component, its PodGroup with the four labels that OME gives it."""
    labels = (
        (keys.COMPONENT, merged.own.name),
        (keys.SERVICE, merged.workload.name),
        (keys.INSTANCE_INDEX, str(number)),
        (keys.MANAGED_BY, managed_by),
    )
    return Gang(merged.workload, name, labels, min_member, timeout, topology_key, merged)


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
    return Shape(False, (), (), findings)
