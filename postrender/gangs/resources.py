"""Objects as we need them, as values with the places where they were written.

Reading refuses wrong types with the field and the place (tree.Unfit, `invalid-field`); it decides nothing.
"""

from __future__ import annotations

from ..manifests.change import Spot
from ..manifests.lookup import value_at
from ..manifests.objects import View, plain, takes_any
from ..manifests.tree import Unfit
from ..record import Record
from . import cluster, keys, podgroup

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ..manifests.change import Value
    from ..manifests.objects import Found, Item
    from ..manifests.tree import Node
    from .cluster import Cluster, Lifecycle

    Object: TypeAlias = "Workload | LeaderWorkerSet | Autoscaler | Runtime | PodGroup | Lifecycle | Cluster"

STREAM = cluster.STREAM


class Block(Record):
    """A `leader` or `worker` block that is there, if only as `{}`."""

    at: int
    size: Found | None
    scheduler: Found | None
    priority: Found | None


class Component(Record):
    """What a service or a runtime says of its engine or decoder, which stands at `at`; None where it says nothing."""

    name: str
    at: int
    leader: Block | None
    worker: Block | None
    min_replicas: Found | None = None
    max_replicas: Found | None = None
    ready_timeout: Found | None = None
    topology_key: Found | None = None
    mode: Found | None = None
    pod_group: Found | None = None
    scheduler: Found | None = None
    priority: Found | None = None
    update: Found | None = None
    exclusive: Found | None = None
    gang: Found | None = None


class RuntimeRef(Record):
    """The runtime that a service names, `name` empty for none; `pinned` is where it says `autoSync: false`.

    `field` is where it names it.
    """

    name: str
    kind: str
    at: int
    pinned: Found | None
    field: str


class Workload(Record):
    """An InferenceService, or a standalone InferenceReplica as one of a single component, which has no runtime.

    `namespace` is empty where it writes none, `before` is where new objects go, `annotations` are those of its metadata
    that a PodGroup repeats, and `virtual` says that OME makes nothing of it. `earlier` are names it had before.
    """

    kind: str
    spot: Spot
    before: Spot
    at: int
    namespace: str
    name: str
    runtime: RuntimeRef
    mode: Found | None
    virtual: bool
    exclusive: Found | None
    annotations: tuple[tuple[str, str], ...]
    components: tuple[Component, ...]
    earlier: tuple[str, ...] = ()

    @property
    def file(self) -> int:
        """Only what stands in the stream is planned."""
        return STREAM

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"{self.kind} {self.name!r}"

    def path(self, component: str, field: str) -> str:
        """Return the path of a component's field, as people write it."""
        if self.kind == keys.INFERENCE_SERVICE:
            return f"spec.{component}.{field}" if field else f"spec.{component}"
        return _REPLICA_PATHS.get(field, f"spec.{field}" if field else "spec")


class Runtime(Record):
    """A ServingRuntime or ClusterServingRuntime; `names` are its name and those it had before."""

    file: int
    spot: Spot
    at: int
    kind: str
    namespace: str
    names: tuple[str, ...]
    parent: Found | None
    scheduler: Found | None
    disabled: bool
    components: tuple[Component, ...]

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"{self.kind} {self.names[0]!r}"

    def path(self, component: str, field: str) -> str:
        """Return the path of a component's field, as people write it."""
        return f"spec.{component}Config.{field}"


class Template(Record):
    """A pod template of a LeaderWorkerSet: `key` is its name there, `at` where it stands."""

    key: str
    at: int
    gang: Found | None
    pod_group: Found | None
    scheduler: Found | None
    priority: Found | None


class LeaderWorkerSet(Record):
    """A LeaderWorkerSet, or a set of such sets; `templates` are the leader's, if it has its own, and the workers'.

    `other` is the mark of another gang system, or empty, `unhandled` a feature that we do not handle, or empty; `waits`
    says why its workers wait for a leader that is placed, or is empty. `surge` is maxSurge as it is written, `earlier`
    are names it had before.
    """

    kind: str
    spot: Spot
    before: Spot
    at: int
    namespace: str
    name: str
    size: Found | None
    replicas: Found | None
    surge: Found | None
    templates: tuple[Template, ...]
    waits: tuple[str, int] | None
    unhandled: tuple[str, int] | None
    other: tuple[str, int] | None
    annotations: tuple[tuple[str, str], ...]
    earlier: tuple[str, ...] = ()

    @property
    def file(self) -> int:
        """Only what stands in the stream is planned."""
        return STREAM

    @property
    def title(self) -> str:
        """How messages name it."""
        return f"{self.kind} {self.name!r}"


class Autoscaler(Record):
    """An autoscaler of a LeaderWorkerSet in the stream."""

    spot: Spot
    at: int
    namespace: str
    target: str
    most: Found | None


class PodGroup(Record):
    """A PodGroup in the stream: `made_for` is our annotation, `filename` the template that Helm 4 says it is from.

    `value` is all of it, or None where it is none of ours. `earlier` are names it had before, `slot` its labels
    component and index, and `kept` the annotations by which kustomize and kpt know it again.
    """

    spot: Spot
    at: int
    namespace: str
    name: str
    made_for: str
    filename: str
    value: Value | None
    earlier: tuple[str, ...] = ()
    slot: tuple[str, str] = ("", "")
    kept: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> int:
        """Only those of the stream are read."""
        return STREAM


_REPLICA_PATHS = {
    "minReplicas": "spec.replicas",
    "leader": "spec.runners",
    "worker": "spec.runners",
    "worker.size": "spec.runners[worker].size",
    "schedulerName": "spec.runners[].template.spec.schedulerName",
    "leader.schedulerName": "spec.runners[leader].template.spec.schedulerName",
    "worker.schedulerName": "spec.runners[worker].template.spec.schedulerName",
    "priorityClassName": "spec.runners[].template.spec.priorityClassName",
    "leader.priorityClassName": "spec.runners[leader].template.spec.priorityClassName",
    "worker.priorityClassName": "spec.runners[worker].template.spec.priorityClassName",
}


def depth(document: bytes) -> int:
    """Return how deep the fields of a document lie that are read: `spec.engine.lifecycle.instanceReadyTimeout`.

    Rare ones lie deeper, and are looked for only where their names are, or may be, in the text.
    """
    if b"runners" in document or b"leaderWorkerTemplate" in document or b"\\" in document:
        return 6  # spec.runners[].template.spec.schedulerName
    return 5 if b"updateStrategy" in document else 4


def read(span: int, item: Item, file: int = STREAM) -> Object | None:
    """Return the object of an item whose kind is wanted; None for one that is of no interest after all."""
    spot = Spot(span, item.number)
    root = View(item.root)
    metadata = root.map("metadata")
    if item.kind == keys.CLUSTER:
        return cluster.document(file, spot, root)
    name = metadata.text("name") if metadata else None
    if item.kind == keys.CONFIG_MAP:
        return cluster.config_map(file, spot, root, name)
    spec = root.map("spec")
    if item.kind == keys.AUTOSCALER:
        return _autoscaler(spot, root.index, _text(metadata, "namespace"), spec)
    if item.kind == keys.DISAGGREGATED_SET:
        called = (_text(metadata, "namespace"), _text(metadata, "name"))
        return LeaderWorkerSet(item.kind, spot, spot, root.index, *called, None, None, None, (), None, None, None, ())
    if name is None or not name.value:
        generated = metadata is not None and metadata.text("generateName") is not None
        message = (
            "the server would make the name up, too late for the PodGroup" if generated else "the object has no name"
        )
        raise Unfit("invalid-field", root.index, message, "write a name", "metadata.name")
    namespace = _text(metadata, "namespace")
    annotations = metadata.map("annotations") if metadata else None
    if item.kind not in (keys.SERVING_RUNTIME, keys.CLUSTER_SERVING_RUNTIME) and is_local(annotations):
        return None
    if item.kind == keys.POD_GROUP_KIND:
        return _pod_group(spot, item.root, namespace, str(name.value), annotations)
    if item.kind in (keys.SERVING_RUNTIME, keys.CLUSTER_SERVING_RUNTIME):
        return _runtime(file, spot, root.index, item.kind, namespace, str(name.value), annotations, spec)
    if item.kind == keys.LEADER_WORKER_SET:
        before = spot if takes_any(item.list_kind) else Spot(span)
        return _leader_worker_set(spot, before, root.index, namespace, str(name.value), metadata, spec)
    replica = item.kind == keys.INFERENCE_REPLICA
    if replica and (spec is None or spec.map("parentRef") is not None):
        return None  # the latter is OME's own, made from a service
    return Workload(
        item.kind,
        spot,
        spot if takes_any(item.list_kind) else Spot(span),
        root.index,
        namespace,
        str(name.value),
        _runtime_ref(spec, "runtimeRef" if replica else "runtime", root.index),
        None if replica or spec is None else spec.text("deploymentMode"),
        _text(annotations, keys.DEPLOYMENT_MODE) == keys.VIRTUAL_DEPLOYMENT,
        annotations.text(keys.EXCLUSIVE_TOPOLOGY) if annotations else None,
        _repeated(annotations),
        _replica(spec) if replica else _components(spec, ""),
        _earlier(annotations, str(name.value)),
    )


def _pod_group(spot: Spot, root: Node, namespace: str, name: str, annotations: View | None) -> PodGroup:
    made_for, filename = _text(annotations, keys.MADE_FOR), _text(annotations, keys.FILENAME)
    group = PodGroup(spot, root.start, namespace, name, made_for, filename, plain(root))
    if annotations is None or not made_for:
        return group
    component, index = (value_at(root, ("metadata", "labels", key)) for key in (keys.COMPONENT, keys.INSTANCE_INDEX))
    names = [key for key, _ in annotations.own_keys() if key.startswith(keys.BOOKKEEPING)]
    kept = ((key, annotations.written(key)) for key in names)
    return group._replace(
        earlier=_earlier(annotations, name),
        slot=(component, index),
        kept=tuple((key, str(found.value) if found else "") for key, found in kept),
    )


def is_local(annotations: View | None) -> bool:
    """Return whether annotations say that an object is for tools alone, and never comes to a cluster."""
    found = annotations.written(keys.LOCAL_CONFIG) if annotations and annotations.says(keys.LOCAL_CONFIG) else None
    return found is not None and found.value != "false"


def _earlier(annotations: View | None, name: str) -> tuple[str, ...]:
    """Return the names that an object had before, the latest first."""
    said = _text(annotations, keys.PREVIOUS_NAMES)
    return tuple(dict.fromkeys(one for one in reversed(said.split(",")) if one not in ("", name))) if said else ()


def _components(spec: View | None, suffix: str) -> tuple[Component, ...]:
    """Return the components of a service (`engine`), or with the suffix `Config` of a runtime."""
    if spec is None:
        return ()
    found = ((name, spec.map(name + suffix)) for name in keys.COMPONENTS)
    return tuple(_component(name, view) for name, view in found if view is not None)


def _component(name: str, view: View) -> Component:
    lifecycle = view.map("lifecycle")
    strategy = lifecycle.map("updateStrategy") if lifecycle else None
    annotations = view.map("annotations")
    labels = view.map("labels")
    return Component(
        name,
        view.index,
        _block(view.map("leader"), False),
        _block(view.map("worker"), True),
        view.integer("minReplicas"),
        view.integer("maxReplicas"),
        lifecycle.text("instanceReadyTimeout", "a duration such as 30m") if lifecycle else None,
        view.text("topologyKey"),
        annotations.text(keys.DEPLOYMENT_MODE) if annotations else None,
        labels.text(keys.POD_GROUP) if labels else None,
        view.text("schedulerName"),
        view.text("priorityClassName"),
        strategy.text("type") if strategy else None,
        annotations.text(keys.EXCLUSIVE_TOPOLOGY) if annotations else None,
        labels.text(keys.GANG) if labels else None,
    )


def _block(view: View | None, sized: bool) -> Block | None:
    if view is None:
        return None
    size = view.integer("size") if sized else None
    return Block(view.index, size, view.text("schedulerName"), view.text("priorityClassName"))


def _runtime_ref(spec: View | None, key: str, at: int) -> RuntimeRef:
    view = spec.map(key) if spec else None
    if view is None:
        return RuntimeRef("", "", at, None, f"spec.{key}")
    follows = view.boolean("autoSync")
    pinned = follows if follows is not None and not follows.value else None
    return RuntimeRef(_text(view, "name"), _text(view, "kind"), view.index, pinned, f"spec.{key}")


def _runtime(
    file: int, spot: Spot, at: int, kind: str, namespace: str, name: str, annotations: View | None, spec: View | None
) -> Runtime:
    parent = annotations.text(keys.INHERIT_FROM) if annotations else None
    disabled = spec.boolean("disabled") if spec else None
    return Runtime(
        file,
        spot,
        at,
        kind,
        # A transformer may have given a cluster-wide object a namespace that it does not have.
        namespace if kind == keys.SERVING_RUNTIME else "",
        (name, *_earlier(annotations, name)),
        parent if parent and parent.value else None,
        spec.text("schedulerName") if spec else None,
        bool(disabled and disabled.value),
        _components(spec, "Config"),
    )


def _replica(spec: View | None) -> tuple[Component, ...]:
    """Return a standalone InferenceReplica as one component; its runners are what a service's blocks are."""
    name = spec.text("component") if spec else None
    if spec is None or name is None or name.value not in keys.COMPONENTS:
        return ()
    runners: dict[str, View] = {}
    for view in spec.maps("runners") or ():
        found = view.text("name")
        if found is not None and str(found.value) in runners:
            message = f"is {found.value} a second time"
            raise Unfit("invalid-field", found.at, message, "give each runner a name of its own", "spec.runners[].name")
        if found is not None:
            runners[str(found.value)] = view
    lifecycle = spec.map("lifecycle")
    strategy = lifecycle.map("updateStrategy") if lifecycle else None
    component = Component(
        str(name.value),
        spec.index,
        _runner(runners.get("leader"), False),
        _runner(runners.get("worker"), True),
        spec.integer("replicas"),
        ready_timeout=lifecycle.text("instanceReadyTimeout", "a duration such as 30m") if lifecycle else None,
        topology_key=spec.text("topologyKey"),
        update=strategy.text("type") if strategy else None,
    )
    return (component,)


def _runner(view: View | None, sized: bool) -> Block | None:
    if view is None:
        return None
    template = view.map("template")
    spec = template.map("spec") if template else None
    size = view.integer("size") if sized else None
    if spec is None:
        return Block(view.index, size, None, None)
    return Block(view.index, size, spec.text("schedulerName"), spec.text("priorityClassName"))


_STRATEGY = "rolloutStrategy"
_GROUP_MARKS = {
    "scheduling.volcano.sh/queue-name": "Volcano",
    "volcano.sh/queue-name": "Volcano",
    "scheduling.k8s.io/group-name": "Volcano",
    "kai.scheduler/queue": "KAI",
    "pod-group-name": "KAI",
    "scheduling.volcano.sh/group-name": "Volcano",
    "gang.scheduling.koordinator.sh/name": "Koordinator",
    "pod-group.scheduling.sigs.k8s.io": "Koordinator",
    "yunikorn.apache.org/task-group-name": "YuniKorn",
    "kueue.x-k8s.io/queue-name": "Kueue",
    "kueue.x-k8s.io/pod-group-name": "Kueue",
}
_GROUP_SCHEDULERS = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "koord-scheduler": "Koordinator",
    "yunikorn": "YuniKorn",
}


def _leader_worker_set(
    spot: Spot, before: Spot, at: int, namespace: str, name: str, metadata: View | None, spec: View | None
) -> LeaderWorkerSet | None:
    inner = spec.map("leaderWorkerTemplate") if spec else None
    if spec is None or inner is None:
        return None
    annotations = metadata.map("annotations") if metadata else None
    views = [(key, inner.map(key)) for key in ("leaderTemplate", "workerTemplate")]
    strategy = spec.map(_STRATEGY)
    rolling = strategy.map("rollingUpdateConfiguration") if strategy else None
    return LeaderWorkerSet(
        keys.LEADER_WORKER_SET,
        spot,
        before,
        at,
        namespace,
        name,
        inner.integer("size"),
        spec.integer("replicas"),
        rolling.written("maxSurge") if rolling else None,
        tuple(_template(key, view) for key, view in views if view is not None),
        _waits(metadata, spec),
        ("subGroupPolicy", policy.index) if (policy := inner.map("subGroupPolicy")) else None,
        _other_system(metadata, spec, [view for _, view in views if view is not None]),
        _repeated(annotations),
        _earlier(annotations, name),
    )


def _template(key: str, view: View) -> Template:
    metadata, spec = view.map("metadata"), view.map("spec")
    labels = metadata.map("labels") if metadata else None
    return Template(
        key,
        view.index,
        labels.text(keys.GANG) if labels else None,
        labels.text(keys.POD_GROUP) if labels else None,
        spec.text("schedulerName") if spec else None,
        spec.text("priorityClassName") if spec else None,
    )


def _waits(metadata: View | None, spec: View) -> tuple[str, int] | None:
    """Return what keeps the workers from being there before the leader is placed."""
    startup = spec.text("startupPolicy")
    if startup is not None and startup.value == "LeaderReady":
        return "spec.startupPolicy", startup.at
    annotations = metadata.map("annotations") if metadata else None
    exclusive = annotations.text(keys.EXCLUSIVE_TOPOLOGY) if annotations else None
    return (f"metadata.annotations[{keys.EXCLUSIVE_TOPOLOGY}]", exclusive.at) if exclusive else None


def _other_system(metadata: View | None, spec: View, templates: list[View]) -> tuple[str, int] | None:
    """Return which other gang system a set is marked for."""
    scheduling = spec.map("scheduling")
    if scheduling is not None:
        return "Kubernetes' own gang scheduling", scheduling.index
    for view in (metadata, *(template.map("metadata") for template in templates)):
        for held in (view.map("labels"), view.map("annotations")) if view else ():
            for mark, system in _GROUP_MARKS.items() if held else ():
                if held is not None and (found := held.text(mark)) is not None:
                    return system, found.at
    for template in templates:
        inner = template.map("spec")
        scheduler = inner.text("schedulerName") if inner else None
        if scheduler is not None and scheduler.value in _GROUP_SCHEDULERS:
            return _GROUP_SCHEDULERS[str(scheduler.value)], scheduler.at
    return None


def _autoscaler(spot: Spot, at: int, namespace: str, spec: View | None) -> Autoscaler | None:
    target = spec.map("scaleTargetRef") if spec else None
    if spec is None or target is None or _text(target, "kind") != keys.LEADER_WORKER_SET:
        return None
    return Autoscaler(spot, at, namespace, _text(target, "name"), spec.integer("maxReplicas"))


def _repeated(annotations: View | None) -> tuple[tuple[str, str], ...]:
    if annotations is None:
        return ()
    return tuple((key, str(found.value)) for key in podgroup.IMPLYING if (found := annotations.text(key)) is not None)


def _text(view: View | None, key: str) -> str:
    found = view.text(key) if view else None
    return str(found.value) if found else ""
