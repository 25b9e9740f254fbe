"""What is to be done about a PodGroup, from what was just read of it: pure, so that every row of it can be tested.

A PodGroup that has come to the phase Failed stays there: the PodGroup controller of scheduler-plugins never looks at it
again. A reset writes its phase back to Pending, guarded by the resourceVersion that was read, and the controller counts
its pods anew. It would come to Failed again at once while a failed pod of it is still there, terminating ones and those
of a namesake in another namespace included, for it counts these too (podgroup_controller.go of v0.34.7).

Times are seconds of a monotonic clock.
"""

from __future__ import annotations

from ..gangs import keys
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Json: TypeAlias = dict[str, Any]

FAILED = "Failed"
PENDING = "Pending"
# A gang that fails again soon after a reset waits: 5 s, twice as long each time up to 5 min, forgotten when it has been
# well for 10 min. More than 10 resets in an hour, and it is left alone for an hour.
FIRST_WAIT = 5.0
LONGEST_WAIT = 300.0
FORGOTTEN_AFTER = 600.0
MOST_RESETS = 10
WINDOW = 3600.0
PAUSE = 3600.0
# What is held back is looked at again after 5 s, later after up to a minute, and told after 15 min.
FIRST_LOOK = 5.0
LONGEST_LOOK = 60.0
TOLD_AFTER = 900.0

# Why a reset is held back.
OWNER_MISSING = "OwnerMissing"
OWNER_DELETED = "OwnerBeingDeleted"
FAILED_MEMBER = "FailedMember"
ELSEWHERE = "ForeignNamespaceMember"
BACK_OFF = "BackOff"
SUSPENDED = "Suspended"


class Group(Record):
    """A PodGroup as it was read. `controller` is the owner that controls it as `Kind/Name`, or empty.

    `made_for` is our annotation, empty where it is not ours; `members` and `failed` are what its status counts.
    """

    namespace: str
    name: str
    uid: str
    resource_version: str
    phase: str
    deleted: bool
    made_for: str
    controller: str
    controlled_by_ome: bool
    component: str
    min_member: int
    failed: int

    @property
    def key(self) -> tuple[str, str]:
        """By what it is found again."""
        return self.namespace, self.name

    @property
    def ours(self) -> bool:
        """Whether it is marked as ours and nobody else controls it."""
        return bool(self.made_for) and not self.controller

    @property
    def owner(self) -> tuple[str, str]:
        """Kind and name of what it was made for."""
        kind, _, name = self.made_for.partition("/")
        return kind, name


def group(held: Json) -> Group | None:
    """Return a PodGroup as the API server hands it out; None for what is none, or has no name.

    Another definition of the kind may accept any status: what is of another type there counts as absent.
    """
    metadata = _map(held, "metadata")
    if not metadata.get("name") or not metadata.get("uid"):
        return None
    owners = metadata.get("ownerReferences") or []
    controller = next((owner for owner in owners if owner.get("controller")), None)
    status, spec = _map(held, "status"), _map(held, "spec")
    labels, annotations = _map(metadata, "labels"), _map(metadata, "annotations")
    return Group(
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
        str(metadata["uid"]),
        str(metadata.get("resourceVersion", "")),
        str(status.get("phase") or ""),
        metadata.get("deletionTimestamp") is not None,
        str(annotations.get(keys.MADE_FOR, "")),
        f"{controller.get('kind')}/{controller.get('name')}" if controller else "",
        controller is not None and str(controller.get("apiVersion", "")).partition("/")[0] == keys.OME_GROUP,
        str(labels.get(keys.COMPONENT, "")),
        _count(spec, "minMember"),
        _count(status, "failed"),
    )


def _map(held: Json, key: str) -> Json:
    value = held.get(key)
    return value if isinstance(value, dict) else {}


def _count(held: Json, key: str) -> int:
    value = held.get(key)
    return value if isinstance(value, int) else 0


class Owner(Record):
    """What a PodGroup was made for, as it was read."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    deleted: bool


class Failures(Record):
    """How many failed pods carry the label of a PodGroup's name: in its namespace, and in which others."""

    here: int
    elsewhere: tuple[str, ...]


NO_FAILURES = Failures(0, ())


class History(Record):
    """What is remembered of a PodGroup: the times of its resets, how long it waits after one, since when it is well.

    `held` is why a reset is held back; since `held_since` it has been held back, for this reason or another, and `told`
    is whether that was said. A reset is not made before `not_before`.
    """

    uid: str
    resets: tuple[float, ...] = ()
    wait: float = 0.0
    not_before: float = 0.0
    well_since: float = -1.0
    held: str = ""
    held_since: float = 0.0
    look: float = 0.0
    told: bool = False
    suspended: bool = False


class Decision(Record):
    """What is to be done: `reset` it, or hold it back and why; what is to be said; when to look again, 0 for not."""

    history: History
    reset: bool = False
    held: str = ""
    say: str = ""
    look_again: float = 0.0


# What is to be said.
SAY_HELD = "PodGroupResetHeld"
SAY_SUSPENDED = "PodGroupResetSuspended"


def decide(group: Group, owner: Owner | None, failures: Failures, history: History | None, now: float) -> Decision:
    """Return what is to be done about a PodGroup of ours.

    `owner` is None where it is not there. What was remembered of a namesake that is gone does not count.
    """
    held = history if history is not None and history.uid == group.uid else History(group.uid)
    if group.deleted or not group.ours:
        return Decision(held)
    if group.phase != FAILED:
        return _well(held, now)
    held = held._replace(well_since=-1.0)
    if owner is None:
        return _hold(held, OWNER_MISSING, now)
    if owner.deleted:
        return _hold(held, OWNER_DELETED, now)
    if failures.here:
        return _hold(held, FAILED_MEMBER, now)
    if failures.elsewhere:
        return _hold(held, ELSEWHERE, now)
    if now < held.not_before:
        why = SUSPENDED if held.suspended else BACK_OFF
        return Decision(_held(held, why, now), held=why, look_again=held.not_before - now)
    recent = tuple(at for at in held.resets if now - at < WINDOW)
    if len(recent) >= MOST_RESETS:
        paused = _held(held, SUSPENDED, now)._replace(resets=recent, not_before=now + PAUSE, suspended=True, wait=0.0)
        return Decision(paused, held=SUSPENDED, say=SAY_SUSPENDED, look_again=PAUSE)
    return Decision(held._replace(resets=recent, suspended=False, held=""), reset=True)


def after_reset(history: History, now: float) -> History:
    """Return what is remembered once a reset was made."""
    wait = min(max(history.wait * 2, FIRST_WAIT), LONGEST_WAIT)
    return history._replace(
        resets=(*history.resets, now), wait=wait, not_before=now + wait, held="", told=False, look=0.0
    )


def _well(history: History, now: float) -> Decision:
    """Return what is remembered of a PodGroup that has not failed: after a while nothing but its resets."""
    since = history.well_since if history.well_since >= 0 else now
    if now - since >= FORGOTTEN_AFTER:
        kept = tuple(at for at in history.resets if now - at < WINDOW)
        look = WINDOW - (now - kept[-1]) if kept else 0.0
        return Decision(History(history.uid, kept, well_since=since), look_again=look)
    history = history._replace(well_since=since, held="", held_since=0.0, told=False, look=0.0)
    return Decision(history, look_again=FORGOTTEN_AFTER - (now - since) if history.resets else 0.0)


def _hold(history: History, why: str, now: float) -> Decision:
    """Return that a reset is held back, looked at again later each time, and told once when it takes long."""
    look = min(history.look * 2, LONGEST_LOOK) if history.held == why and history.look else FIRST_LOOK
    held = _held(history, why, now)._replace(look=look)
    tell = now - held.held_since >= TOLD_AFTER and not held.told
    return Decision(held._replace(told=held.told or tell), held=why, say=SAY_HELD if tell else "", look_again=look)


def _held(history: History, why: str, now: float) -> History:
    return history._replace(held=why, held_since=history.held_since if history.held else now, look=0.0)


def gone(history: History, now: float) -> float:
    """Return in how many seconds what is remembered of a PodGroup that is not there any more can be forgotten.

    Not at once where it was reset: an API server that has just started may not know the kind for a moment, and its
    PodGroups come back as they were.
    """
    return max((at + WINDOW - now for at in history.resets), default=0.0)


def conflict(group: Group) -> str:
    """Return who holds a PodGroup that is marked as ours, as `Kind/Name`, or an empty string.

    OME's own controllers are no conflict: what they control is theirs, whatever is written on it.
    """
    if group.deleted or not group.made_for or group.controlled_by_ome:
        return ""
    return group.controller
