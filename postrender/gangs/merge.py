"""A service's component + what its runtime says of it -> the component that will run, each value with its origin.

OME lays the service over the runtime by a strategic merge: for each field the first layer that has it wins. What is
there counts even if it is zero or empty (`size: 0`, `instanceReadyTimeout: 0s`), except in strings that Go leaves out
when empty (`schedulerName`, `priorityClassName`) and in `maxReplicas`
(OME's MergeRuntimeSpecs).
"""

from __future__ import annotations

from ..record import Record
from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from ..manifests.objects import Found
    from .resources import Block, Component, Runtime, Workload

    Layer: TypeAlias = Workload | Runtime


class Chosen(Record):
    """A value that won, the object that wrote it and the code point there; `hidden` are those it won over."""

    value: str | int
    layer: Layer
    at: int
    field: str
    hidden: tuple[Chosen, ...] = ()


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
    leader_scheduler: Chosen | None
    worker_scheduler: Chosen | None
    leader_priority: Chosen | None
    worker_priority: Chosen | None

    def path(self, field: str) -> str:
        """Return the path of a field in the service, as people write it."""
        return self.workload.path(self.own.name, field)


def merge(workload: Workload, own: Component, runtimes: Sequence[Runtime] = ()) -> Merged:
    """Return a component laid over its runtime and what that inherits from, the nearest first."""
    layers: list[tuple[Layer, Component]] = [(workload, own)]
    for runtime in runtimes:
        layers.extend((runtime, component) for component in runtime.components if component.name == own.name)
    leaders = [(layer, held.leader) for layer, held in layers if held.leader is not None]
    workers = [(layer, held.worker) for layer, held in layers if held.worker is not None]
    mode, told = _mode(
        workload, _first(f"annotations[{keys.DEPLOYMENT_MODE}]", ((layer, held.mode) for layer, held in layers))
    )
    if not mode:
        mode = keys.OME_NATIVE if leaders or workers else keys.RAW_DEPLOYMENT
    schedulers = _first("schedulerName", ((layer, held.scheduler) for layer, held in layers), False)
    last = _first("spec.schedulerName", ((runtime, runtime.scheduler) for runtime in runtimes), False)
    priorities = _first("priorityClassName", ((layer, held.priority) for layer, held in layers), False)
    return Merged(
        workload,
        own,
        bool(leaders),
        bool(workers),
        mode,
        told,
        _first("worker.size", ((layer, block.size) for layer, block in workers)),
        _first("minReplicas", ((layer, held.min_replicas) for layer, held in layers)),
        _first("maxReplicas", ((layer, held.max_replicas) for layer, held in layers), False),
        _first("lifecycle.instanceReadyTimeout", ((layer, held.ready_timeout) for layer, held in layers)),
        _first("topologyKey", ((layer, held.topology_key) for layer, held in layers)),
        _first(f"labels[{keys.POD_GROUP}]", ((layer, held.pod_group) for layer, held in layers)),
        _first("lifecycle.updateStrategy.type", ((layer, held.update) for layer, held in layers), False),
        _over(_of_block("leader.schedulerName", leaders, _scheduler), schedulers, last),
        _over(_of_block("worker.schedulerName", workers, _scheduler), schedulers, last),
        _over(_of_block("leader.priorityClassName", leaders, _priority), priorities),
        _over(_of_block("worker.priorityClassName", workers, _priority), priorities),
    )


def _first(field: str, held: Iterable[tuple[Layer, Found | None]], empty: bool = True) -> Chosen | None:
    """Return the first value that is there; `empty` says whether one that is zero or empty is."""
    found = [Chosen(one.value, layer, one.at, field) for layer, one in held if one is not None and (empty or one.value)]
    return _over(*found)


def _over(*rungs: Chosen | None) -> Chosen | None:
    """Return the first of several values, the others hidden below it."""
    there = [rung for rung in rungs if rung is not None]
    if len(there) < 2:
        return there[0] if there else None
    return there[0]._replace(hidden=(*there[0].hidden, *there[1:]))


def _of_block(field: str, blocks: list[tuple[Layer, Block]], get: Callable[[Block], Found | None]) -> Chosen | None:
    return _first(field, ((layer, get(block)) for layer, block in blocks), False)


def _scheduler(block: Block) -> Found | None:
    return block.scheduler


def _priority(block: Block) -> Found | None:
    return block.priority


def _mode(workload: Workload, annotation: Chosen | None) -> tuple[str, Chosen | None]:
    """Return the mode that somebody tells, and who; empty where the shape decides (OME's utils/deployment.go)."""
    if workload.kind == keys.INFERENCE_REPLICA:
        return keys.OME_NATIVE, None
    if annotation is not None and annotation.value in keys.COMPONENT_MODES:
        return str(annotation.value), annotation
    if workload.mode is not None and workload.mode.value in keys.SERVICE_MODES:
        return str(workload.mode.value), Chosen(workload.mode.value, workload, workload.mode.at, "spec.deploymentMode")
    return "", None
