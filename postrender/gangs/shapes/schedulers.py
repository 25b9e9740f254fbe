"""Which scheduler a gang's pods come to, what is filled in, and what is said of it: the same for every shape.

A name that somebody wrote is never changed. OME folds the component's name under leader and worker and fills what is
still empty from the runtime (OME 1.3, foldComponentPodSpecIntoLeaderWorker and MergeSchedulerName).
"""

from __future__ import annotations

from .. import keys
from .shape import said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...options import Options
    from ..merge import Chosen, Merged
    from ..world import World
    from .shape import Said


def filled(merged: Merged, world: World) -> tuple[tuple[tuple[tuple[str, ...], str], ...], str, str]:
    """Return what is written into the service, and the names of leader and worker with that.

    Into its leader and worker blocks where it has both, which is right for every OME. Where a component's name does not
    reach them, into both as well, for the merged component has them; a worker alone has its leader made from the
    component itself. Else into the component.
    """
    options = world.options
    leader = str(merged.leader_scheduler.value) if merged.leader_scheduler else ""
    worker = str(merged.worker_scheduler.value) if merged.worker_scheduler else ""
    name = leader or worker or options.scheduler_name
    if (leader and worker) or not options.scheduler_name or merged.workload.kind != keys.INFERENCE_SERVICE:
        return (), leader, worker
    own = ("spec", merged.own.name)
    both = merged.own.leader is not None and merged.own.worker is not None
    if not both and world.dialect.folds:
        return (((*own, "schedulerName"), name),), leader or name, worker or name
    places = (((*own, "leader") if merged.leader else own, leader), ((*own, "worker"), worker))
    sets = tuple(((*place, "schedulerName"), name) for place, held in places if not held)
    return sets, leader or name, worker or name


def judged(merged: Merged, leader: str, worker: str, topology_key: str, world: World, missing: bool) -> list[Said]:
    """Return what is to be said of a gang's schedulers and priorities; `missing` where a runtime may name others."""
    options, keyed = world.options, world.dialect.folds
    findings: list[Said] = []
    name, by = (leader, merged.leader_scheduler) if leader else (worker, merged.worker_scheduler)
    causes = {
        "no-gang-scheduler": ("schedulerName", by),
        "mixed-schedulers": ("schedulerName", merged.worker_scheduler or merged.leader_scheduler),
        "topology-key-missing": ("topologyKey", merged.topology_key),
    }
    if name or not missing:
        fillable = by is None and merged.workload.kind == keys.INFERENCE_SERVICE
        for code, message, remedy in remarks(leader, worker, topology_key, options, fillable, keyed):
            findings.append(said(merged, code, message, remedy, *causes[code]))
        if topology_key and name != keys.OME_SCHEDULER:
            message = f"the PodGroup carries {topology_key!r}, which {_named(name)} does not read"
            remedy = "nothing needs to be done; the pods' own affinity still holds"
            findings.append(said(merged, "topology-key-ignored", message, remedy, *causes["topology-key-missing"]))
    first, second = merged.leader_priority, merged.worker_priority
    if (first.value if first else "") != (second.value if second else ""):
        message = f"leader and workers differ: {_class(first)}, {_class(second)}; the queue orders by priority first"
        remedy = "name one priority class for both"
        findings.append(said(merged, "mixed-priorities", message, remedy, "priorityClassName", first or second))
    return findings


def remarks(
    leader: str, worker: str, topology_key: str, options: Options, fillable: bool, keyed: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield code, message and remedy of what is wrong with the schedulers of a gang's leader and workers.

    `fillable` says whether `--scheduler-name` would have named one, `keyed` whether a topology key has a field.
    """
    name = leader or worker
    if (name or keys.DEFAULT_SCHEDULER) not in options.gang_scheduler:
        message = (
            f"{name!r} is no scheduler that places gangs, as far as is known"
            if name
            else "no scheduler is named, so the default one places each pod by itself"
        )
        change = "name one that does (--scheduler-name)" if fillable else "write one that does"
        yield "no-gang-scheduler", message, f"{change}, or say that this one does (--gang-scheduler)"
    if (leader or keys.DEFAULT_SCHEDULER) != (worker or keys.DEFAULT_SCHEDULER):
        message = f"the leader goes to {_named(leader)}, the workers to {_named(worker)}: neither sees the whole gang"
        yield "mixed-schedulers", message, "name one scheduler for both"
    if not topology_key and name == keys.OME_SCHEDULER and not options.scheduler_has_topology_key:
        message = "the OME scheduler keeps a gang without a topology key Pending, unless its chart sets one"
        write = "write topologyKey, or " if keyed else ""
        remedy = f"{write}say that the chart does (--scheduler-has-topology-key)"
        yield "topology-key-missing", message, remedy


def _named(name: str) -> str:
    return repr(name) if name else f"{keys.DEFAULT_SCHEDULER!r}"


def _class(chosen: Chosen | None) -> str:
    return repr(chosen.value) if chosen else "none"
