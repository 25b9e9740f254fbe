"""What runs in a cluster, as far as gangs go: pods, PodGroups, and what both wait on; as it was read, nothing decided.

Times are seconds since the epoch.
"""

from __future__ import annotations

import json
from calendar import timegm
from time import strptime

from ..gangs import keys, lifecycle
from ..options import SECOND
from ..record import Record
from .server import CONFIG_MAPS, DEFINITIONS, EVENTS, POD_GROUPS, PODS, POLICIES, SERVICES, Denied
from .snapshot import MANAGER_LABEL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeAlias, TypeVar

    from .server import Server

    Json: TypeAlias = dict[str, Any]
    Held = TypeVar("Held")

GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_SIZE = "leaderworkerset.sigs.k8s.io/size"
# What a pod of one update has in common, and those of another do not: LeaderWorkerSet's, and OMENative's.
_REVISIONS = (
    "leaderworkerset.sigs.k8s.io/template-revision-hash",
    "ome.io/revision-hash",
    "ome.io/instance-incarnation",
)
_POLICY = "postrender-gang"
_UNAVAILABLE = "GangSchedulingUnavailable"
_GRACE = "unschedulablegraceperiod"


class Pod(Record):
    """A pod of a gang, or of what may be one; words are empty where it has none.

    `number` is that of its Instance; `size` how many pods it says that has; `group` its pod-group label; `gated`
    names what keeps a scheduler from looking at it; `judged` says that one has, `message` why it found no node, and
    `since` from when on.
    """

    namespace: str
    name: str
    service: str
    component: str
    set_name: str
    number: int | None
    size: int | None
    group: str
    revision: str
    scheduler: str
    node: str
    phase: str
    deleted: bool
    created: float
    gated: tuple[str, ...]
    judged: bool
    message: str
    since: float

    @property
    def finished(self) -> bool:
        """Whether it has ended; such a pod holds nothing, and counts for no scheduler."""
        return self.phase in ("Failed", "Succeeded")

    @property
    def bound(self) -> bool:
        """Whether it holds a node."""
        return bool(self.node) and not self.finished


class PodGroup(Record):
    """A PodGroup; `controller` is who controls it as `Kind/Name`, or empty, and `of_ome` says whether that is OME's."""

    namespace: str
    name: str
    made_for: str
    controller: str
    of_ome: bool
    deleted: bool
    min_member: int | None
    schedule_timeout_seconds: int | None
    topology_key: str
    phase: str
    failed: int


class State(Record):
    """A cluster at one moment; None stands for what is not there or not known.

    `defined` is when the PodGroup CRD was made, `started` when the last of OME's managers was. `policy` says whether
    the admission policy of `--replicas policy` is there. `unavailable` are the components, by namespace, service and
    name, of which OME itself says that it makes no PodGroups. `grace` is OME's unschedulableGracePeriod in seconds.
    """

    now: float
    pods: tuple[Pod, ...]
    groups: tuple[PodGroup, ...]
    served: bool
    defined: float | None = None
    started: float | None = None
    policy: bool | None = None
    unavailable: frozenset[tuple[str, str, str]] = frozenset()
    grace: int | None = None


def read(server: Server, namespaces: Iterable[str], sets: bool, ome_namespace: str, now: float) -> State:
    """Return what runs in some namespaces, an empty name standing for all; raises Denied or Unreachable.

    What only helps to name a cause is left unknown where it may not be read.
    """
    pods: dict[tuple[str, str], Pod] = {}
    groups: list[PodGroup] = []
    unavailable: set[tuple[str, str, str]] = set()
    served = True
    for namespace in namespaces:
        for selector in (keys.POD_GROUP, keys.SERVICE, *((keys.SET_NAME,) if sets else ())):
            for one in server.items(PODS, namespace, selector) or ():
                found = pod(one)
                pods[found.namespace, found.name] = found
        held = server.items(POD_GROUPS, namespace)
        served = served and held is not None
        groups += map(pod_group, held or ())
        for one in _if_allowed(server.items, SERVICES, namespace) or ():
            unavailable.update(_unavailable(one))
    definition = _if_allowed(server.one, DEFINITIONS, "", POD_GROUPS.title)
    managers = _if_allowed(server.items, PODS, ome_namespace, MANAGER_LABEL) or ()
    settings = _if_allowed(server.one, CONFIG_MAPS, ome_namespace, keys.OME_CONFIG)
    return State(
        now,
        _explained(server, tuple(pods.values())),
        tuple(groups),
        served,
        _time((definition.get("metadata") or {}).get("creationTimestamp")) if definition else None,
        max((at for at in map(_started, managers) if at is not None), default=None),
        _policy(server),
        frozenset(unavailable),
        _grace(settings) if settings else None,
    )


# In how many gangs, and of how many pods of each, Events are asked for, and how many: a gang that waits beside a free
# node makes more than a hundred a second.
_GANGS, _ASKED, _EVENTS = 20, 8, 50


def _explained(server: Server, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Return the pods, those of a gang of which no pod says why it waits with what an Event says.

    Coscheduling rejects all members when one does not fit, also that one, and so its reason goes from its condition
    (seen with v0.34.7: "1 optimistic rejection in PostFilter").
    """
    waiting: dict[tuple[str, str], list[Pod]] = {}
    for one in pods:
        if one.message and one.group:
            waiting.setdefault((one.namespace, one.group), []).append(one)
    silent = [members for members in waiting.values() if all(says_little(one.message) for one in members)]
    said: dict[tuple[str, str], str] = {}
    for members in silent[:_GANGS]:
        for one in sorted(members, key=_name, reverse=True)[:_ASKED]:
            fields = f"reason=FailedScheduling,involvedObject.name={one.name}"
            events = _if_allowed(server.few, EVENTS, one.namespace, fields, _EVENTS)
            texts = [str(event.get("message") or "") for event in events or ()]
            telling = next((text for text in reversed(texts) if not says_little(text)), "")
            if telling:
                said[one.namespace, one.name] = telling
                break
    return tuple(one._replace(message=said.get((one.namespace, one.name), one.message)) for one in pods)


def _name(one: Pod) -> str:
    return one.name


def says_little(message: str) -> bool:
    """Return whether a scheduler's message only says that a pod was rejected with others.

    >>> says_little("0/1 nodes are available: 1 optimistic rejection in PostFilter.")
    True
    """
    reasons = message.partition("available: ")[2].partition(". ")[0]
    return not reasons or all("rejection" in reason for reason in reasons.split(", "))


def _if_allowed(ask: Callable[..., Held], *what: Any) -> Held | None:
    try:
        return ask(*what)
    except Denied:
        return None


def _policy(server: Server) -> bool | None:
    """Return whether our policy and its binding are both there, in whatever version; None where that is not known."""
    found: dict[str, bool] = {}
    for resource in POLICIES:
        try:
            found[resource.plural] = found.get(resource.plural) or server.one(resource, "", _POLICY) is not None
        except Denied:
            return None
    return all(found.values())


def pod(held: Json) -> Pod:
    """Return a pod as the API server hands it out."""
    metadata, spec, status = held["metadata"], held.get("spec") or {}, held.get("status") or {}
    labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
    judged = next((one for one in status.get("conditions") or () if one.get("type") == "PodScheduled"), None)
    waits = judged is not None and judged.get("status") == "False"
    gates = spec.get("schedulingGates") or ()
    return Pod(
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
        str(labels.get(keys.SERVICE, "")),
        str(labels.get(keys.COMPONENT, "")),
        str(labels.get(keys.SET_NAME, "")),
        _number(labels.get(keys.INSTANCE_INDEX, labels.get(GROUP_INDEX))),
        _number(annotations.get(_SIZE)),
        str(labels.get(keys.POD_GROUP, "")),
        "/".join(str(labels.get(key, "")) for key in _REVISIONS),
        str(spec.get("schedulerName") or keys.DEFAULT_SCHEDULER),
        str(spec.get("nodeName") or ""),
        str(status.get("phase", "")),
        metadata.get("deletionTimestamp") is not None,
        _time(metadata.get("creationTimestamp")) or 0.0,
        tuple(str(gate.get("name", "")) for gate in gates),
        judged is not None and judged.get("reason") != "SchedulingGated",
        str(judged.get("message") or "") if judged is not None and waits else "",
        (_time(judged.get("lastTransitionTime")) or 0.0) if judged is not None and waits else 0.0,
    )


def pod_group(held: Json) -> PodGroup:
    """Return a PodGroup as the API server hands it out."""
    metadata, spec, status = held["metadata"], held.get("spec") or {}, held.get("status") or {}
    owner = next((one for one in metadata.get("ownerReferences") or () if one.get("controller")), None)
    annotations = metadata.get("annotations") or {}
    return PodGroup(
        str(metadata.get("namespace", "")),
        str(metadata["name"]),
        str(annotations.get(keys.MADE_FOR, "")),
        f"{owner.get('kind')}/{owner.get('name')}" if owner else "",
        owner is not None and str(owner.get("apiVersion", "")).partition("/")[0] == keys.OME_GROUP,
        metadata.get("deletionTimestamp") is not None,
        spec.get("minMember"),
        spec.get("scheduleTimeoutSeconds"),
        str(annotations.get(keys.TOPOLOGY_KEY, "")),
        str(status.get("phase") or ""),
        int(status.get("failed") or 0),
    )


def _unavailable(service: Json) -> Iterable[tuple[str, str, str]]:
    """Yield the components of which OME's status says that gang scheduling is not available."""
    metadata = service["metadata"]
    components = (service.get("status") or {}).get("components") or {}
    for name, held in components.items() if isinstance(components, dict) else ():
        conditions = ((held or {}).get("lifecycle") or {}).get("conditions") or ()
        if any(one.get("type") == _UNAVAILABLE and one.get("status") == "True" for one in conditions):
            yield str(metadata.get("namespace", "")), str(metadata["name"]), name


def _started(manager: Json) -> float | None:
    """Return when OME's manager was started in a pod, a restart counting."""
    status = manager.get("status") or {}
    states = [(one.get("state") or {}).get("running") or {} for one in status.get("containerStatuses") or ()]
    times = [at for at in (_time(one.get("startedAt")) for one in states) if at is not None]
    return max(times) if times else _time(status.get("startTime"))


def _grace(settings: Json) -> int | None:
    """Return how long OME 1.3 lets a pod be unschedulable, as its settings say; None where they do not."""
    try:
        held = json.loads((settings.get("data") or {}).get(keys.LIFECYCLE) or "{}")
        said = {key.lower(): value for key, value in held.items()}.get(_GRACE)
        seconds = lifecycle.parse(said) // SECOND if isinstance(said, str) else 0
    except (ValueError, AttributeError, RecursionError):
        return None
    return seconds if seconds > 0 else None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 10 else None


def _time(text: object) -> float | None:
    """Return a time as Kubernetes writes it: `2026-11-29T22:13:16Z`, in UTC."""
    if not isinstance(text, str):
        return None
    try:
        return float(timegm(strptime(text[:19], "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None
