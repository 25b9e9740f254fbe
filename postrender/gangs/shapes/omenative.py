"""OMENative: OME runs each Instance of a component itself, and names its PodGroup `<service>-<component>-<index>`.

An Instance is multi-pod if leader and worker are both there after the merge; minMember = 1 + worker.size. Rules and
their order are those of OME 1.3's workload controller.
"""

from __future__ import annotations

from .. import keys, names
from . import checks, schedulers
from .shape import NOTHING, Decided, Shape, Timeout, of_component, refused, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Merged
    from ..world import World
    from .shape import Said

# A pod's name is its hostname too.
_HOSTNAME = 63
_UPDATE = "lifecycle.updateStrategy.type"


def shape(merged: Merged, world: World, missing: str) -> Shape:
    """Return the gangs of one component; `missing` says what of it is not known, empty if all is."""
    own = merged.own
    if missing and not (own.leader and own.worker and own.worker.size):
        return checks.unknown(merged, missing, world.whole)
    if not (merged.leader or merged.worker):
        return NOTHING
    if not (merged.leader and merged.worker):
        return refused(_unpaired(merged))
    wrong = (
        checks.wrong_numbers(merged, world.dialect.workers) or checks.wrong_names(merged) or _too_many(merged, world)
    )
    if wrong is not None:
        return refused(wrong)
    timeout = checks.timeout(merged, world)
    if not isinstance(timeout, Timeout):
        return refused(timeout)
    key = str(merged.topology_key.value) if merged.topology_key else ""
    sets, leader, worker = schedulers.filled(merged, world)
    findings = [] if bool(own.leader) == bool(own.worker) else [_unpaired(merged)]
    findings += schedulers.judged(merged, leader, worker, key, world, missing != "")
    instances = _instances(merged, world)
    if len(f"{merged.workload.name}-{own.name}-{instances - 1}-leader-0") > _HOSTNAME:
        message = f"the names of its pods are longer than {_HOSTNAME} characters, and are hostnames too"
        findings.append(said(merged, "name-too-long", message, "shorten the name of the service", ""))
    ours = _ours(world)
    workers = int(merged.size.value) if merged.size else 1
    gangs = tuple(
        of_component(
            merged,
            number,
            names.pod_group(merged.workload.name, own.name, number),
            keys.OME_NATIVE,
            1 + workers,
            timeout.seconds,
            key,
        )
        for number in range(instances + (world.options.spares if ours else 0))
    )
    made_by = keys.OURS if ours else keys.OME
    decided = Decided(merged.workload, merged, gangs, made_by, _replicas(merged), workers, "", timeout, leader, worker)
    if not ours:
        return Shape(True, (), sets, (*findings, _left_to_ome(merged, instances, world.ome is None)), decided)
    findings += _surprises(merged, world, instances, timeout)
    service = merged.workload.kind == keys.INFERENCE_SERVICE
    if service and instances > 1:
        findings.append(_several(merged, instances))
    taken = checks.label_taken(merged)
    if taken is not None:
        return refused(taken, *findings)
    if service and instances == 1:
        sets = (checks.label(merged, keys.POD_GROUP, gangs[0].name), *sets)
    return Shape(True, gangs, sets, tuple(findings), decided)


def _ours(world: World) -> bool:
    """Return whether we write the PodGroups: OME does from 1.3 on, where its version is said."""
    if world.options.podgroups:
        return world.options.podgroups == "emit"
    return world.ome is None


def _replicas(merged: Merged) -> int:
    """Return how many Instances a fresh install has: OME takes 0 for 1."""
    return max(1, int(merged.min_replicas.value)) if merged.min_replicas else 1


def _most(merged: Merged) -> int:
    return int(merged.max_replicas.value) if merged.max_replicas else 0


def _instances(merged: Merged, world: World) -> int:
    """Return how many Instances get PodGroups, the spare ones aside."""
    return max(_replicas(merged), _most(merged)) if world.options.instances == "max" else _replicas(merged)


def _too_many(merged: Merged, world: World) -> Said | None:
    instances, spares = _instances(merged, world), world.options.spares
    if instances + spares <= checks.MOST_INSTANCES:
        return None
    chosen = merged.max_replicas if instances > _replicas(merged) else merged.min_replicas
    message = (
        f"comes to {instances + spares:,} PodGroups; more than {checks.MOST_INSTANCES:,} for a component are refused"
    )
    field = chosen.field if chosen else "minReplicas"
    return said(merged, "too-many-instances", message, "lower it, or split the service", field, chosen)


# What is said


def _surprises(merged: Merged, world: World, instances: int, timeout: Timeout) -> list[Said]:
    """Return where what runs later will not be what the PodGroups say."""
    findings = checks.over_cap(merged, world, timeout)
    if _most(merged) > instances:
        message = f"is {_most(merged):,}: an autoscaler may make more Instances than the {instances:,} with PodGroups"
        remedy = "make one for each (--instances max), or scale by hand"
        findings.append(said(merged, "autoscaled-range", message, remedy, "maxReplicas", merged.max_replicas))
    if not world.options.spares and (merged.update is None or merged.update.value == keys.SURGE):
        message = f"an update moves an Instance to index {instances} first, which has no PodGroup"
        remedy = "make spare ones (--spares 1)"
        findings.append(said(merged, "surge-without-spare", message, remedy, _UPDATE, merged.update))
    return findings


def _unpaired(merged: Merged) -> Said:
    own = merged.own
    single = merged.leader != merged.worker
    leader = merged.leader if single else bool(own.leader)
    held, lacked = ("leader", "worker") if leader else ("worker", "leader")
    message = f"a {held} without a {lacked}: OME 1.3 refuses that{', or runs a single pod' if single else ''}"
    remedy = f"write {lacked}: {{}} beside it, or remove it"
    if merged.workload.kind == keys.INFERENCE_REPLICA:
        remedy = f"write a runner {lacked} too"
    finding, layer, at = said(merged, "unpaired-leader-worker", message, remedy, held)
    block = own.leader if leader else own.worker
    if block is None:  # the runtime's
        return finding._replace(field=merged.path("")), layer, at
    return finding, layer, block.at


def _several(merged: Merged, instances: int) -> Said:
    message = (
        f"{instances:,} Instances share one set of labels, so none can name its PodGroup there;"
        " OMENative labels each pod itself"
    )
    remedy = "make sure that OME 1.3 runs this service as OMENative"
    chosen = merged.max_replicas if instances > _replicas(merged) else merged.min_replicas
    return said(merged, "several-instances", message, remedy, "minReplicas", chosen)


def _left_to_ome(merged: Merged, instances: int, told: bool) -> Said:
    count = "PodGroup" if instances == 1 else f"{instances:,} PodGroups"
    why = ", as --podgroups omit says" if told else ""
    message = f"the {count} of this component and the label of its pods are left to OME{why}"
    remedy = "make sure that OME is 1.3 or later, and found the PodGroup CRD when it started"
    return said(merged, "ome-makes-podgroups", message, remedy, "")
