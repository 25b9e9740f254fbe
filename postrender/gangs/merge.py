"""A service's component + what its runtime says of it -> the component that will run, each value with its origin.

OME lays the service over the runtime by a strategic merge: for each field the first layer that has it wins. What is
there counts even if it is zero or empty (`size: 0`, `instanceReadyTimeout: 0s`), except in strings that Go leaves out
when empty (`schedulerName`, `priorityClassName`) and in `maxReplicas`
(OME's MergeRuntimeSpecs).
"""

from __future__ import annotations

from ..record import Record
from . import keys
from .dialect import OME_1_3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from ..manifests.objects import Found
    from .dialect import Dialect
    from .resources import Block, Component, Runtime, Workload

    Layer: TypeAlias = Workload | Runtime


class Chosen(Record):
    """A value that won, the object that wrote it and the code point there; `hidden` are those it won over.

    `field` is the field of the component, or from `spec.` on one above it.
    """

    value: str | int
    layer: Layer
    at: int
    field: str
    hidden: tuple[Chosen, ...] = ()

    def path(self, component: str) -> str:
        """Return the path of the field in the object that wrote it, as people write it."""
        return self.field if self.field.startswith("spec.") else self.layer.path(component, self.field)


class Merged(Record):
    """A component as it will run; None where nobody says anything.

    `own` is what the service itself says. `leader` and `worker` say whether the blocks are there; their scheduler and
    priority are those that reach the pods, with what the component and the runtime say folded in. `told` is what chose
    the mode, None where the shape did.
    """

    workload: Workload
    own: Component
    leader: bool
    worker: bool
    mode: str
    told: Chosen | None
    size: Chosen | None
    min_replicas: Chosen | None
    max_replicas: Chosen | None
    ready_timeout: Chosen | None
    topology_key: Chosen | None
    pod_group: Chosen | None
    update: Chosen | None
    exclusive: Chosen | None
    gang: Chosen | None
    leader_scheduler: Chosen | None
    worker_scheduler: Chosen | None
    leader_priority: Chosen | None
    worker_priority: Chosen | None

    def path(self, field: str) -> str:
        """Return the path of a field in the service, as people write it."""
        return self.workload.path(self.own.name, field)


def merge(workload: Workload, own: Component, runtimes: Sequence[Runtime] = (), dialect: Dialect = OME_1_3) -> Merged:
    """Return a component laid over its runtime and what that inherits from, the nearest first."""
    layers: list[tuple[Layer, Component]] = [(workload, own)]
    for runtime in runtimes:
        layers.extend((runtime, component) for component in runtime.components if component.name == own.name)
    leaders = [(layer, held.leader) for layer, held in layers if held.leader is not None]
    workers = [(layer, held.worker) for layer, held in layers if held.worker is not None]
    annotated = _first(layers, "mode", _MODE) if own.name in dialect.annotations else None
    mode, told = _mode(workload, annotated, dialect)
    if not mode:
        mode = dialect.shaped if leaders or workers else keys.RAW_DEPLOYMENT
    scheduler = _first(layers, "scheduler", "schedulerName", False)
    if dialect.folds:
        whole = _first([(runtime, runtime) for runtime in runtimes], "scheduler", "spec.schedulerName", False)
        scheduler = _over(scheduler, whole)
    priority = _first(layers, "priority", "priorityClassName", False)
    # A worker alone has its leader made from the component itself.
    above = (scheduler, priority) if dialect.folds or not leaders else (None, None)
    below = (scheduler, priority) if dialect.folds else (None, None)
    return Merged(
        workload,
        own,
        bool(leaders),
        bool(workers),
        mode,
        told,
        _first(workers, "size", "worker.size"),
        _first(layers if dialect.replicas_of_runtime else layers[:1], "min_replicas", "minReplicas"),
        _first(layers, "max_replicas", "maxReplicas", False),
        _first(layers, "ready_timeout", "lifecycle.instanceReadyTimeout"),
        _first(layers, "topology_key", "topologyKey"),
        _first(layers, "pod_group", _LABEL),
        _first(layers, "update", "lifecycle.updateStrategy.type", False),
        _first(layers, "exclusive", f"annotations[{keys.EXCLUSIVE_TOPOLOGY}]"),
        _first(layers, "gang", f"labels[{keys.GANG}]"),
        _over(_first(leaders, "scheduler", "leader.schedulerName", False), above[0]),
        _over(_first(workers, "scheduler", "worker.schedulerName", False), below[0]),
        _over(_first(leaders, "priority", "leader.priorityClassName", False), above[1]),
        _over(_first(workers, "priority", "worker.priorityClassName", False), below[1]),
    )


_MODE = f"annotations[{keys.DEPLOYMENT_MODE}]"
_LABEL = f"labels[{keys.POD_GROUP}]"


def _first(
    layers: Sequence[tuple[Layer, Component | Block | Runtime]], name: str, field: str, empty: bool = True
) -> Chosen | None:
    """Return the first value that is there, the others hidden; `empty` says whether one that is zero or empty is."""
    chosen: Chosen | None = None
    for layer, held in layers:
        found: Found | None = getattr(held, name)
        if found is not None and (empty or found.value):
            chosen = _over(chosen, Chosen(found.value, layer, found.at, field))
    return chosen


def _over(chosen: Chosen | None, other: Chosen | None) -> Chosen | None:
    """Return a value laid over another, which it hides."""
    if chosen is None or other is None:
        return chosen or other
    return chosen._replace(hidden=(*chosen.hidden, other, *other.hidden))


def _mode(workload: Workload, annotation: Chosen | None, dialect: Dialect) -> tuple[str, Chosen | None]:
    """Return the mode that somebody tells, and who; empty where the shape decides."""
    if workload.kind == keys.INFERENCE_REPLICA:
        return keys.OME_NATIVE, None
    if annotation is not None and annotation.value in dialect.annotated:
        return str(annotation.value), annotation
    if workload.mode is not None and workload.mode.value in dialect.told:
        return str(workload.mode.value), Chosen(workload.mode.value, workload, workload.mode.at, "spec.deploymentMode")
    return "", None
