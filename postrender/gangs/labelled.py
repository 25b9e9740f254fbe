"""Objects of any kind that give pods a pod-group label, and PodGroups of anybody, as a check sees them.

Of the kinds of Kubernetes and LeaderWorkerSet it is known how many pods they make; what OME makes of its own is decided
elsewhere.
"""

from __future__ import annotations

from ..findings import Ref
from ..manifests.change import Spot
from ..manifests.objects import Found, View, field
from ..record import Record
from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..manifests.objects import Item

# What a document must contain for pods of it to have such a label, old or new.
NEEDLES = (b"pod-group", keys.GANG.encode(), keys.POD_GROUP_KIND.encode())
# How deep what is read may lie: spec.jobTemplate.spec.template.metadata.labels, and the label.
DEPTH = 7
# What Coscheduling read before there was a group of its own for its API, and no longer does (scheduler-plugins,
# KEP 42-podgroup-coscheduling). Koordinator still reads them.
LEGACY = (
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "pod-group.scheduling.sigs.k8s.io/min-available",
)
_KOORDINATOR = "koord-scheduler"
_TEMPLATE = ("spec", "template")
# Where the pod template of a kind is.
_KINDS = {
    "Pod": (),
    "Deployment": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "Job": _TEMPLATE,
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
_GROUPS = ("v1", "apps", "batch")
# How many groups of a set are looked at one by one.
_MOST = 1_000


class Members(Record):
    """Pods of one object that carry the label of a PodGroup: `pods` of them, None where that is not known.

    `label` is the value, at the field `field`; `scheduler` and `priority` are what their template says, or empty.
    `told` says that the plan speaks of their schedulers already.
    """

    ref: Ref
    spot: Spot
    group: str
    label: Found
    field: str
    pods: int | None
    scheduler: str = ""
    priority: str = ""
    told: bool = False


class Labelled(Record):
    """An object whose pods carry labels: `waits` is the field that has them come one after the other, and where it is.

    `legacy` are old labels that no scheduler reads any more, by their fields.
    """

    ref: Ref
    spot: Spot
    at: int
    members: tuple[Members, ...]
    waits: tuple[str, int, str] | None
    legacy: tuple[tuple[str, int], ...]


class AnyPodGroup(Record):
    """A PodGroup of anybody; `min_member` is None where it says none."""

    ref: Ref
    spot: Spot
    at: int
    min_member: Found | None


def wanted(api_version: str, kind: str) -> bool:
    """Return whether an object of this apiVersion and kind is one that a check reads beside what is planned."""
    group = api_version.partition("/")[0]
    if kind == keys.LEADER_WORKER_SET:
        return group == "leaderworkerset.x-k8s.io"
    return (kind in _KINDS and group in _GROUPS) or (kind == keys.POD_GROUP_KIND and api_version == keys.SCHEDULING)


def read(span: int, item: Item) -> Labelled | AnyPodGroup | None:
    """Return what of an object a check looks at; None where its pods carry no such label.

    Raises tree.Unfit where a field that is read has a wrong type.
    """
    spot, root = Spot(span, item.number), View(item.root)
    metadata, spec = root.map("metadata"), root.map("spec")
    ref = Ref(item.kind, _text(metadata, "namespace"), _text(metadata, "name"))
    if item.kind == keys.POD_GROUP_KIND:
        return AnyPodGroup(ref, spot, root.index, spec.integer("minMember") if spec else None)
    if spec is None:
        return None
    reader = _Reader(ref, spot)
    waits = None
    if item.kind == keys.LEADER_WORKER_SET:
        waits = reader.leader_worker_set(metadata, spec)
    else:
        path = _KINDS[item.kind]
        template: View | None = root
        for key in path:
            template = template.map(key) if template else None
        if template is not None:
            reader.template(template, path, _count(item.kind, spec))
        policy = spec.text("podManagementPolicy") if item.kind == "StatefulSet" else None
        if item.kind == "StatefulSet" and (policy is None or policy.value != "Parallel"):
            at = policy.at if policy else root.index
            waits = ("spec.podManagementPolicy", at, "each pod comes only once the one before it is ready")
    if not (reader.members or reader.legacy):
        return None
    return Labelled(ref, spot, root.index, tuple(reader.members), waits, tuple(reader.legacy))


class _Reader:
    """Collects what the templates of one object say."""

    def __init__(self, ref: Ref, spot: Spot) -> None:
        self.ref = ref
        self.spot = spot
        self.members: list[Members] = []
        self.legacy: list[tuple[str, int]] = []

    def template(self, view: View, path: tuple[str, ...], pods: int | None, groups: int = 1) -> None:
        """Read a pod template, of which so many groups of so many pods come."""
        metadata, spec = view.map("metadata"), view.map("spec")
        labels = metadata.map("labels") if metadata else None
        if labels is None:
            return
        at = (*path, "metadata", "labels")
        scheduler, priority = _text(spec, "schedulerName"), _text(spec, "priorityClassName")
        if scheduler != _KOORDINATOR:
            for key in LEGACY:
                if (found := labels.written(key)) is not None:
                    self.legacy.append((field((*at, key)), found.at))
        group, gang = labels.text(keys.POD_GROUP), labels.text(keys.GANG)
        said, key = (group, keys.POD_GROUP) if gang is None else (gang, keys.GANG)
        if said is None:
            return
        held = [("", pods and pods * groups)]
        if gang is not None:
            held = [(f"-{number}", pods) for number in range(min(groups, _MOST))]
        for index, count in held:
            name = f"{said.value}{index}"
            self.members.append(Members(self.ref, self.spot, name, said, field((*at, key)), count, scheduler, priority))

    def leader_worker_set(self, metadata: View | None, spec: View) -> tuple[str, int, str] | None:
        """Read the templates of a LeaderWorkerSet; return what keeps its workers from coming, if anything does."""
        inner = spec.map("leaderWorkerTemplate")
        if inner is None:
            return None
        replicas, size = spec.integer("replicas"), inner.integer("size")
        groups = int(replicas.value) if replicas else 1
        pods = int(size.value) if size else 1
        leader, worker = inner.map("leaderTemplate"), inner.map("workerTemplate")
        above = ("spec", "leaderWorkerTemplate")
        if leader is not None:
            self.template(leader, (*above, "leaderTemplate"), 1, groups)
        if worker is not None:
            each = pods if leader is None else pods - 1
            self.template(worker, (*above, "workerTemplate"), each, groups)
        startup = spec.text("startupPolicy")
        if startup is not None and startup.value == "LeaderReady":
            return "spec.startupPolicy", startup.at, "workers come only once the leader is ready"
        annotations = metadata.map("annotations") if metadata else None
        exclusive = annotations.text(keys.EXCLUSIVE_TOPOLOGY) if annotations else None
        if exclusive is None:
            return None
        where = f"metadata.annotations[{keys.EXCLUSIVE_TOPOLOGY}]"
        return where, exclusive.at, "workers come only once the leader is placed"


def _count(kind: str, spec: View) -> int | None:
    """Return how many pods an object of Kubernetes makes at a time, None where that depends."""
    if kind == "Pod":
        return 1
    if kind in ("DaemonSet", "CronJob"):
        return None
    if kind == "Job":
        parallelism, completions = spec.integer("parallelism"), spec.integer("completions")
        at_once = int(parallelism.value) if parallelism else 1
        return min(at_once, int(completions.value)) if completions else at_once
    replicas = spec.integer("replicas")
    return int(replicas.value) if replicas else 1


def _text(view: View | None, key: str) -> str:
    found = view.text(key) if view else None
    return str(found.value) if found else ""
