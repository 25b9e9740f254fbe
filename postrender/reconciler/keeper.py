"""Looks at one PodGroup at a time and does what is to be done about it: resets it, reports who holds it, or waits.

Whatever is written is decided from what was just read, and guarded by its resourceVersion; so a second replica, a crash
at any instruction, or a write whose answer was lost costs nothing but a request.
"""

from __future__ import annotations

import threading
import time
from collections import Counter

from ..cluster.client import Refused, Unreachable
from ..gangs import keys, names
from . import decide, events
from .log import DEBUG, ERROR, INFO, WARNING
from .voice import DAY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from .api import Api
    from .decide import Group, History, Owner
    from .log import Log
    from .metrics import Metrics
    from .voice import Voice

    Json: TypeAlias = dict[str, Any]
    Key: TypeAlias = tuple[str, str]

# Where not all pods of a PodGroup are placed after a minute, they are asked which scheduler they are for, or whose they
# are, and not again within an hour. That can wait: one is asked after the other, so that no reset waits for it.
WAITING = 60.0
APART = 1.0
_ASKED = 3_600.0
# It has changed since it was read: look again.
SOON = 1.0
_NO_STATUS = 300.0


class Keeper:
    """Keeps what is remembered of PodGroups. Threads share it, each with another PodGroup in hand.

    `groups` are all PodGroups as they were last heard of.
    """

    def __init__(
        self,
        groups: Callable[[], Mapping[Key, Group]],
        api: Api,
        voice: Voice,
        log: Log,
        metrics: Metrics,
        gang_schedulers: tuple[str, ...],
        dry_run: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Remember nothing yet."""
        self._groups = groups
        self._api = api
        self._voice = voice
        self._log = log
        self._metrics = metrics
        self._gang_schedulers = gang_schedulers
        self._dry_run = dry_run
        self._clock = clock
        self._histories: dict[Key, History] = {}
        self._conflicts: dict[Key, tuple[str, float]] = {}  # who holds it, and when that was said
        self._unsaid: dict[Key, Group] = {}  # resets whose answer was lost, as the PodGroup was before
        self._asked: dict[Key, float] = {}  # when its pods were asked, or will be
        self._next = 0.0  # when others may be asked
        self._warned: dict[tuple[str, str], float] = {}  # owner and component, or what else is said once a day
        self._lock = threading.Lock()

    def due(self, key: Key) -> float | None:
        """Return in how many seconds a PodGroup that came, changed or went is to be looked at, None for not at all."""
        one = self._groups().get(key)
        known = key in self._histories or key in self._unsaid
        if one is None:
            return 0.0 if known or key in self._conflicts or key in self._asked else None
        if known or decide.conflict(one) or (one.ours and one.phase == decide.FAILED):
            return 0.0
        could = _could_be_held(one)
        if key in self._conflicts and not could:
            return 0.0
        now = self._clock()
        if now - self._asked.get(key, -_ASKED) < _ASKED or not (could or _waits(one)):
            return None
        self._next = max(self._next + APART, now + WAITING)
        self._asked[key] = self._next
        return self._next - now

    def look(self, key: Key) -> float:
        """Do what is to be done about a PodGroup; return in how many seconds to look again, 0 for when it changes.

        Raises Refused or Unreachable, and then nothing was done, or nobody knows.
        """
        heard = self._groups().get(key)
        if heard is None:
            return self._gone(key)
        if not heard.made_for:
            self._histories.pop(key, None)
            return self._foreign(heard)
        holder = decide.conflict(heard)
        if holder:
            return self._conflict(heard, heard.owner, holder)
        self._conflicts.pop(key, None)
        if heard.phase != decide.FAILED and key not in self._unsaid:
            return self._decide(heard) if key in self._histories else self._waiting(heard)
        one = self._api.group(*key)
        if one is None:
            return self._gone(key)
        self._say_lost(one)
        return self._decide(one)

    @property
    def held(self) -> dict[str, float]:
        """How many PodGroups are held back, by why."""
        return dict(Counter(one.held for one in list(self._histories.values()) if one.held))

    @property
    def conflicts(self) -> int:
        """How many PodGroups somebody else holds."""
        return len(self._conflicts)

    def _decide(self, one: Group) -> float:
        key, now = one.key, self._clock()
        failed = one.phase == decide.FAILED and one.ours and not one.deleted
        owner = self._api.owner(one.owner[0], one.namespace, one.owner[1]) if failed else None
        failures = self._api.failures(one) if owner is not None and not owner.deleted else decide.NO_FAILURES
        decision = decide.decide(one, owner, failures, self._histories.get(key), now)
        before = self._histories.get(key)
        self._histories[key] = decision.history
        if decision.say:
            self._say_decision(decision, one, owner)
        if decision.held and (before is None or before.held != decision.held):
            self._log(INFO, "held back", namespace=key[0], name=key[1], uid=one.uid, reason=decision.held)
        if not decision.reset or owner is None:
            if decision.history == decide.History(one.uid, well_since=decision.history.well_since):
                self._histories.pop(key, None)  # nothing is left to remember
            return decision.look_again
        return self._reset(one, owner, decision.history)

    def _reset(self, one: Group, owner: Owner, history: History) -> float:
        fields = {"namespace": one.namespace, "name": one.name, "uid": one.uid, "action": "reset"}
        if self._dry_run:
            self._log(INFO, "would reset", **fields, dry_run=True)
            self._metrics.add("podgroup_resets_total", "dry-run")
            self._histories[one.key] = decide.after_reset(history, self._clock())
            return 0.0
        try:
            self._api.reset(one)
        except Refused as refused:
            if refused.status >= 500:  # it may be done all the same
                self._unknown(one, history)
                raise
            self._metrics.add("podgroup_resets_total", "conflict" if refused.status == 409 else "refused")
            if refused.status == 409:  # what it is now decides
                self._log(DEBUG, "changed meanwhile", **fields)
                return SOON
            if refused.status != 404:
                raise
            if self._api.group(*one.key) is None:
                return self._gone(one.key)
            self._log(ERROR, "the CRD has no status subresource, so nothing can be reset", **fields)
            return _NO_STATUS
        except Unreachable:
            self._unknown(one, history)
            raise
        self._histories[one.key] = decide.after_reset(history, self._clock())
        self._metrics.add("podgroup_resets_total", "done")
        self._log(INFO, "reset", **fields, failed=one.failed, of=one.min_member)
        self._say_reset(one, owner)
        return decide.FORGOTTEN_AFTER

    def _unknown(self, one: Group, history: History) -> None:
        """Count a reset whose answer was lost: at the next look it is seen whether it was made."""
        self._metrics.add("podgroup_resets_total", "unknown")
        self._unsaid[one.key] = one
        self._histories[one.key] = decide.after_reset(history, self._clock())

    def _say_reset(self, one: Group, owner: Owner) -> None:
        text = (
            f"PodGroup {one.name} reported phase Failed: {one.failed} of {one.min_member} members failed."
            " None of these is left, so its phase is Pending again and its pods are counted anew"
        )
        self._voice.say(events.Note(events.RESET, owner, one.name, one.resource_version, text, one))

    def _say_lost(self, one: Group) -> None:
        """Say a reset whose answer was lost, if it was made."""
        before = self._unsaid.get(one.key)
        if before is not None and one.uid == before.uid and one.phase != decide.FAILED:
            owner = self._api.owner(before.owner[0], before.namespace, before.owner[1])
            self._metrics.add("podgroup_resets_total", "done")
            self._log(INFO, "reset", namespace=one.namespace, name=one.name, uid=one.uid, action="reset", late=True)
            if owner is not None:
                self._say_reset(before, owner)
        self._unsaid.pop(one.key, None)

    def _say_decision(self, decision: decide.Decision, one: Group, owner: Owner | None) -> None:
        reason = events.HELD
        text = f"PodGroup {one.name} reports phase Failed and cannot be reset: {_HELD.get(decision.held, '')}"
        if decision.say == decide.SAY_SUSPENDED:
            reason = events.SUSPENDED
            text = (
                f"PodGroup {one.name} failed again after each of {decide.MOST_RESETS} resets within an hour;"
                " it is left alone for an hour. See why its pods fail"
            )
        self._log(WARNING, text, namespace=one.namespace, name=one.name, uid=one.uid, reason=decision.held)
        if owner is not None:
            self._voice.say(events.Note(reason, owner, one.name, one.resource_version, text, one))

    # What is only said

    def _foreign(self, one: Group) -> float:
        """Report a PodGroup that is not ours, by whose name pods of a service are labelled."""
        self._asked[one.key] = self._clock()
        for pod in self._api.members(one.namespace, one.name) if _could_be_held(one) else ():
            labels = (pod.get("metadata") or {}).get("labels") or {}
            component = str(labels.get(keys.COMPONENT, ""))
            service = str(labels.get(keys.SERVICE, ""))
            if service and names.could_be_ours(one.name, service, component):
                return self._conflict(one, (keys.INFERENCE_SERVICE, service), one.controller or "no controller")
        self._conflicts.pop(one.key, None)
        return 0.0

    def _conflict(self, one: Group, owned: tuple[str, str], holder: str) -> float:
        said, at = self._conflicts.get(one.key, ("", 0.0))
        now = self._clock()
        if said != holder or now - at >= DAY:
            owner = self._api.owner(owned[0], one.namespace, owned[1])
            self._conflicts[one.key] = (holder, now)
            self._log(WARNING, "held by another", namespace=one.namespace, name=one.name, uid=one.uid, holder=holder)
            if owner is not None:
                who = (
                    "is not marked as ours and has no controller"
                    if holder == "no controller"
                    else f"is controlled by {holder}"
                )
                text = f"PodGroup {one.name} {who}; it is left alone, and so are its resets"
                self._voice.say(events.Note(events.CONFLICT, owner, one.name, f"{one.uid}:{holder}", text, one))
        return DAY

    def _waiting(self, one: Group) -> float:
        """Warn once where a gang waits for a scheduler that does not place gangs."""
        if not _waits(one):
            return 0.0
        self._asked[one.key] = self._clock()
        scheduler = _scheduler(self._api.members(one.namespace, one.name))
        if scheduler != keys.DEFAULT_SCHEDULER or scheduler in self._gang_schedulers:
            return 0.0
        owner = self._api.owner(one.owner[0], one.namespace, one.owner[1])
        what = one.component or one.name
        if owner is not None and self._once_a_day((owner.uid, what)):
            text = (
                f"component={what}: its pods are for scheduler {scheduler!r}, which may not place gangs;"
                " set schedulerName in the runtime, for example to scheduler-plugins-scheduler"
            )
            self._voice.say(events.Note(events.NO_SCHEDULER, owner, one.name, what, text, one))
        return 0.0

    def missing(self) -> None:
        """Say that the CRD is not there to whom that matters; raises Refused or Unreachable."""
        owners = set()
        for pod in self._api.labelled():
            metadata = pod.get("metadata") or {}
            service = str((metadata.get("labels") or {}).get(keys.SERVICE, ""))
            if service:
                owners.add((str(metadata.get("namespace", "")), service))
        for namespace, service in sorted(owners):
            owner = self._api.owner(keys.INFERENCE_SERVICE, namespace, service)
            if owner is not None and self._once_a_day((owner.uid, events.UNAVAILABLE)):
                text = (
                    "PodGroupCRDNotInstalled: scheduling.x-k8s.io/v1alpha1 PodGroup is not served, so gangs are"
                    " placed in part or not at all. Install its CRD"
                )
                day = str(int(time.time() // DAY))
                self._voice.say(events.Note(events.UNAVAILABLE, owner, service, day, text))

    def _once_a_day(self, what: tuple[str, str]) -> bool:
        """Return whether something is to be said: not within a day of the last time."""
        now = self._clock()
        with self._lock:
            if now - self._warned.get(what, -DAY) < DAY:
                return False
            if len(self._warned) >= _REMEMBERED:
                self._warned.pop(next(iter(self._warned)))
            self._warned[what] = now
        return True

    def _gone(self, key: Key) -> float:
        """Forget a PodGroup, its resets later; return in how many seconds."""
        self._conflicts.pop(key, None)
        self._unsaid.pop(key, None)
        self._asked.pop(key, None)
        history = self._histories.get(key)
        seconds = decide.gone(history, self._clock()) if history is not None else 0.0
        if history is not None and seconds > 0:
            self._histories[key] = history._replace(held="")
        else:
            self._histories.pop(key, None)
        return seconds


# Phases in which there is nothing to warn of: all of it is placed, or was.
_PLACED = ("Running", "Finished")
_REMEMBERED = 1_000


def _waits(one: Group) -> bool:
    """Return whether a PodGroup of ours waits for its pods to be placed."""
    return one.ours and not one.deleted and one.phase not in (*_PLACED, decide.FAILED)


def _could_be_held(one: Group) -> bool:
    """Return whether a PodGroup that is not ours has a name that a gang of ours could have."""
    base, _, index = one.name.rpartition("-")
    if one.made_for or one.deleted or one.controlled_by_ome or not (index.isascii() and index.isdigit()):
        return False
    return base.startswith("lws-") or base.endswith(tuple(f"-{component}" for component in keys.COMPONENTS))


_HELD = {
    decide.FAILED_MEMBER: "a failed pod of it is still there; whoever owns the pod must replace it",
    decide.ELSEWHERE: "a failed pod of another namespace carries the same PodGroup's name, and is counted too;"
    " give the services different names",
    decide.OWNER_MISSING: "what it was made for is not there any more",
    decide.OWNER_DELETED: "what it was made for is being deleted",
}


def _scheduler(pods: list[Json]) -> str:
    """Return which scheduler the pods are for, as OME judges it: the leader's comes first; empty if there are none."""

    def rank(pod: Json) -> int:
        labels = (pod.get("metadata") or {}).get("labels") or {}
        leader = labels.get("ome.io/runner") == "leader"
        return 0 if leader or labels.get("leaderworkerset.sigs.k8s.io/worker-index") == "0" else 1

    spec = (min(pods, key=rank).get("spec") or {}) if pods else {}
    return str(spec.get("schedulerName", ""))
