"""MultiNode: OME runs a component as a LeaderWorkerSet, and makes no PodGroup for it in any version.

The set has one template for all its replicas, so their pods share one set of labels. Its PodGroups are called after it:
names that OME 1.3 will never claim for itself, so that an upgrade needs no clean-up. Rules are those of OME v1.2.2's
components and LeaderWorkerSet reconciler.
"""

from __future__ import annotations

from .. import keys, names
from . import checks, schedulers
from .shape import NOTHING, Decided, Shape, Timeout, of_component, refused, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Merged
    from ..world import World
    from .shape import Gang, Said

POLICY = "policy"
WHOLE = "whole"
# OME writes maxSurge 1 into every set: an update brings up one more group under the next index first.
_SURGE = 1


def shape(merged: Merged, world: World, missing: str) -> Shape:
    """Return the gangs of one component; `missing` says what of it is not known, empty if all is."""
    if world.ome is None:
        return _not_ganged(merged) if merged.leader and merged.worker else NOTHING
    if merged.workload.kind != keys.INFERENCE_SERVICE:
        return NOTHING  # OME below 1.3 has no standalone replicas
    own = merged.own
    if missing and not (own.worker and own.worker.size):
        return checks.unknown(merged, missing, world.whole)
    if not merged.worker or (world.dialect.folds and not merged.leader):
        return _without_partner(merged, world)
    wrong = checks.wrong_numbers(merged, world.dialect.workers) or checks.wrong_names(merged)
    if wrong is not None:
        return refused(wrong)
    workers = int(merged.size.value) if merged.size else world.dialect.workers
    replicas = max(world.dialect.least, int(merged.min_replicas.value) if merged.min_replicas else 1)
    if workers == 0 or replicas == 0:
        return NOTHING
    how = world.options.replicas
    wrong = _deadlock(merged, world) or checks.label_taken(merged) or _left_over(merged, how)
    wrong = wrong or _shared(merged, world, replicas) or _too_many(merged, how, replicas, 1 + workers)
    timeout = checks.timeout(merged, world)
    if not isinstance(timeout, Timeout) or wrong is not None:
        return refused(*(one for one in (wrong, timeout) if one is not None and not isinstance(one, Timeout)))
    key = str(merged.topology_key.value) if merged.topology_key and world.dialect.folds else ""
    sets, leader, worker = schedulers.filled(merged, world)
    findings = schedulers.judged(merged, leader, worker, key, world, missing != "")
    findings += checks.over_cap(merged, world, timeout)
    base = names.leader_worker_set(merged.workload.name, own.name)
    size = 1 + workers
    gangs: tuple[Gang, ...]
    labels: tuple[tuple[str, str], ...]
    if how == WHOLE:
        pods = replicas * size
        gangs = (of_component(merged, 0, base, keys.OURS, pods, timeout.seconds, key),)
        labels = ((keys.POD_GROUP, base),)
    else:
        count = replicas + _SURGE if how == POLICY else 1
        gangs = tuple(
            of_component(merged, number, f"{base}-{number}", keys.OURS, size, timeout.seconds, key)
            for number in range(count)
        )
        labels = ((keys.POD_GROUP, gangs[0].name),)
        if how == POLICY:
            labels = ((keys.GANG, base), (keys.POD_GROUP, keys.POLICY_MISSING))
            findings.append(_needs_policy(merged))
    if how != POLICY:
        findings.append(_surge(merged, gangs[0].name))
    written = tuple(checks.label(merged, label, value) for label, value in labels)
    decided = Decided(merged.workload, merged, gangs, keys.OURS, replicas, workers, how, timeout, leader, worker)
    return Shape(True, gangs, (*written, *sets), tuple(findings), decided)


def _not_ganged(merged: Merged) -> Shape:
    message = "MultiNode runs leader and workers as a LeaderWorkerSet, which is ganged only where OME's version is said"
    remedy = "say which OME runs it (--ome VERSION)"
    return refused(said(merged, "multinode-not-ganged", message, remedy, "", merged.told))


def _without_partner(merged: Merged, world: World) -> Shape:
    """Return what comes of a component that has no worker, or from 1.3 on no leader."""
    if world.dialect.folds:
        return NOTHING
    if not merged.leader and merged.told is None:
        return NOTHING
    message = "OME below 1.3 panics on a multi-node component without a worker, again after each restart"
    away = "take the leader away" if merged.leader else "remove the annotation"
    field = "leader" if merged.own.leader else ""
    return refused(
        said(merged, "leader-without-worker", message, f"write a worker with a size, or {away}", field, merged.told)
    )


def _deadlock(merged: Merged, world: World) -> Said | None:
    """Return that the set places its workers only once the leader is placed, which a gang never is alone."""
    held = merged.workload.exclusive
    chosen = merged.exclusive
    if (chosen is None and held is None) or "deadlock-shape" in world.options.accept:
        return None
    message = "workers are tied to where their leader was placed, and a gang's leader waits for its workers"
    remedy = "remove it; the scheduler's own topology keeps a gang together"
    finding, layer, at = said(merged, "deadlock-shape", message, remedy, "", chosen)
    if chosen is None and held is not None:
        return finding._replace(field=f"metadata.annotations[{keys.EXCLUSIVE_TOPOLOGY}]"), layer, held.at
    return finding, layer, at


def _shared(merged: Merged, world: World, replicas: int) -> Said | None:
    """Return that several replicas would be one group, unless somebody has said how they are to be told apart."""
    if replicas == 1 or world.options.replicas:
        return None
    message = f"{replicas:,} replicas share one template, so no label can tell their gangs apart"
    remedy = "say --replicas policy (each its own gang, by an admission policy) or --replicas whole (all are one)"
    return said(merged, "replicas-share-template", message, remedy, "minReplicas", merged.min_replicas)


def _left_over(merged: Merged, how: str) -> Said | None:
    """Return that a label of an earlier render is there by which the policy would rename the gang."""
    if merged.gang is None or how == POLICY:
        return None
    message = "is of a render with --replicas policy, and would have the admission policy rename this gang"
    remedy = "remove it with the label beside it, or render what it was rendered from"
    return said(merged, "label-taken", message, remedy, merged.gang.field, merged.gang)


def _too_many(merged: Merged, how: str, replicas: int, size: int) -> Said | None:
    """Return that there would be more PodGroups than anybody means, or more pods in one than its field holds."""
    if how == WHOLE:
        if replicas * size <= checks.MOST_PODS:
            return None
        message = f"{replicas:,} replicas of {size:,} pods are more than minMember holds"
        return said(merged, "invalid-field", message, "lower one of the two", "worker.size", merged.size)
    count = replicas + (_SURGE if how == POLICY else 0)
    if count <= checks.MOST_INSTANCES:
        return None
    message = f"comes to {count:,} PodGroups; more than {checks.MOST_INSTANCES:,} for a component are refused"
    return said(
        merged, "too-many-instances", message, "lower it, or split the service", "minReplicas", merged.min_replicas
    )


def _needs_policy(merged: Merged) -> Said:
    message = "its pods wait until the cluster's admission policy has told each its PodGroup"
    remedy = "install it once (postrender policy | kubectl apply -f -)"
    return said(merged, "policy-needed", message, remedy, "")


def _surge(merged: Merged, name: str) -> Said:
    message = f"an update brings up one more group of pods, which joins PodGroup {name!r} and is placed pod by pod"
    return said(merged, "surge-without-spare", message, "give each group its own (--replicas policy)", "")
