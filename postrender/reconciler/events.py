"""What is said in the cluster: Events of events.k8s.io/v1 on the object that a PodGroup was made for.

An Event's name comes from what it says, so that a repeat after a crash, or by a second replica, is one that is there
already. `kubectl describe` shows it by the owner's uid. Reasons are OME's own where an event or a condition of it says
the same.
"""

from __future__ import annotations

from hashlib import sha256

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from datetime import datetime
    from typing import Any, TypeAlias

    from .decide import Group, Owner

    Json: TypeAlias = dict[str, Any]

RESET = "PodGroupReset"
HELD = "PodGroupResetHeld"
SUSPENDED = "PodGroupResetSuspended"
CONFLICT = "PodGroupOwnershipConflict"
NO_SCHEDULER = "MaybeNoGangScheduler"
UNAVAILABLE = "GangSchedulingUnavailable"

CONTROLLER = "postrender/reconciler"
_ACTIONS = {
    RESET: "Reset",
    HELD: "HoldReset",
    SUSPENDED: "SuspendResets",
    CONFLICT: "LeaveAlone",
    NO_SCHEDULER: "Warn",
    UNAVAILABLE: "Warn",
}
_LONGEST_NOTE = 1_000  # bytes; the API takes 1,024
_LONGEST_NAME = 230


class Note(Record):
    """What is to be said of an owner: `about` is a PodGroup's or a component's name; `episode` tells repeats apart.

    Two notes of one reason, owner, subject and episode are one Event.
    """

    reason: str
    owner: Owner
    about: str
    episode: str
    text: str
    group: Group | None = None
    warning: bool = True

    @property
    def name(self) -> str:
        """The name of its Event."""
        parts = (self.reason, self.owner.uid, self.about, self.episode)
        digest = sha256("\0".join(parts).encode()).hexdigest()[:16]
        return f"{self.about[:_LONGEST_NAME].rstrip('-.')}.{digest}"


def body(note: Note, now: datetime, instance: str) -> Json:
    """Return the Event; `instance` is who reports it."""
    owner, about = note.owner, note.group
    event: Json = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": note.name, "namespace": owner.namespace},
        "eventTime": stamp(now),
        "type": "Warning" if note.warning else "Normal",
        "reason": note.reason,
        "action": _ACTIONS[note.reason],
        "note": cut(note.text),
        "reportingController": CONTROLLER,
        "reportingInstance": instance[:128],
        "regarding": {
            "apiVersion": owner.api_version,
            "kind": owner.kind,
            "namespace": owner.namespace,
            "name": owner.name,
            "uid": owner.uid,
        },
    }
    if about is not None:
        event["related"] = {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
    return event


def again(count: int, now: datetime) -> Json:
    """Return what is merged into an Event that is there already."""
    return {"series": {"count": count, "lastObservedTime": stamp(now)}}


def stamp(now: datetime) -> str:
    """Return a UTC time as Kubernetes' MicroTime."""
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def cut(text: str) -> str:
    """Return a text that fits a note."""
    data = text.encode()
    return text if len(data) <= _LONGEST_NOTE else data[: _LONGEST_NOTE - 3].decode(errors="ignore") + "…"
