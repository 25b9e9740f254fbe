"""OMENative: OME runs each Instance of a component itself, and names its PodGroup `<service>-<component>-<index>`.

An Instance is multi-pod if leader and worker are both there after the merge; minMember = 1 + worker.size. Rules and
their order are those of OME 1.3's workload controller.
"""

from __future__ import annotations

from ...manifests.objects import shorten
from .. import keys, lifecycle, names
from . import schedulers
from .shape import NOTHING, Gang, Shape, refused, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Merged
    from ..world import World
    from .shape import Said

# Above this a service has more Instances than any scheduler should be handed from one manifest.
MOST_INSTANCES = 1_000
_MOST_WORKERS = 2**31 - 2  # minMember is an int32
_MOST_REPLICAS = 2**31 - 1
# kube-scheduler ends every wait at Permit after 15 minutes.
_PERMIT_CAP = 900
# A pod's name is its hostname too.
_HOSTNAME = 63
_READY = "lifecycle.instanceReadyTimeout"
_UPDATE = "lifecycle.updateStrategy.type"


def shape(merged: Merged, world: World, missing: str) -> Shape:
    """Return the gangs of one component; `missing` says what of it is not known, empty if all is."""
    own = merged.own
    if missing and not (own.leader and own.worker and own.worker.size):
        return _unknown(merged, missing, world.whole)
    if not (merged.leader or merged.worker):
        return NOTHING
    if not (merged.leader and merged.worker):
        return refused(_unpaired(merged))
    wrong = _wrong_numbers(merged) or _wrong_names(merged) or _too_many(merged, world)
    if wrong is not None:
        return refused(wrong)
    timeout = _timeout(merged, world)
    if isinstance(timeout, tuple):
        return refused(timeout)
    key = str(merged.topology_key.value) if merged.topology_key else ""
    sets, leader, worker = schedulers.filled(merged, world.options)
    findings = [] if bool(own.leader) == bool(own.worker) else [_unpaired(merged)]
    findings += schedulers.judged(merged, leader, worker, key, world.options, missing != "")
    instances = _instances(merged, world)
    if len(f"{merged.workload.name}-{own.name}-{instances - 1}-leader-0") > _HOSTNAME:
        message = f"the names of its pods are longer than {_HOSTNAME} characters, and are hostnames too"
        findings.append(said(merged, "name-too-long", message, "shorten the name of the service", ""))
    if not _ours(world):
        return Shape(True, (), "", sets, (*findings, _left_to_ome(merged, instances, world.ome is None)))
    findings += _surprises(merged, world, instances, timeout)
    gangs = tuple(
        Gang(
            merged,
            number,
            names.pod_group(merged.workload.name, own.name, number),
            keys.OME_NATIVE,
            1 + (int(merged.size.value) if merged.size else 1),
            timeout,
            key,
        )
        for number in range(instances + world.options.spares)
    )
    service = merged.workload.kind == keys.INFERENCE_SERVICE
    if service and instances > 1:
        findings.append(_several(merged, instances))
    return Shape(True, gangs, gangs[0].name if service and instances == 1 else "", sets, tuple(findings))


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


def _timeout(merged: Merged, world: World) -> int | Said | None:
    """Return `scheduleTimeoutSeconds`, or what is wrong with it."""
    settings = world.settings
    ready, written = settings.ready.value, merged.ready_timeout
    try:
        if written is not None and (told := lifecycle.parse(str(written.value))) > 0:
            ready = told
        return lifecycle.schedule_timeout(ready, settings.least.value, settings.most.value)
    except ValueError as error:
        remedy = "write one such as 90s, 30m or 1h30m"
        if written is None:
            return said(merged, "invalid-field", f"{settings.ready.origin}: {error}", remedy, "")
        message = f"{shorten(str(written.value))!r} is no duration: {error}"
        return said(merged, "invalid-field", message, remedy, _READY, written)


# What is refused


def _wrong_numbers(merged: Merged) -> Said | None:
    """Return what is wrong with the numbers, which OME's webhook or the int32 of the field would refuse."""
    size = merged.size
    if size is not None and not 1 <= int(size.value) <= _MOST_WORKERS:
        message = f"is {size.value:,}; OME takes 1 to {_MOST_WORKERS:,} workers"
        remedy = "write how many workers stand beside the leader"
        return said(merged, "invalid-field", message, remedy, size.field, size)
    for chosen in (merged.min_replicas, merged.max_replicas):
        if chosen is not None and not 0 <= int(chosen.value) <= _MOST_REPLICAS:
            message = f"is {chosen.value:,}; OME takes 0 to {_MOST_REPLICAS:,}"
            return said(merged, "invalid-field", message, "write how many Instances to run", chosen.field, chosen)
    return None


def _wrong_names(merged: Merged) -> Said | None:
    """Return what is wrong with the service's names, which go into the PodGroup: a service begins with a letter."""
    workload = merged.workload
    for field, name in (("name", workload.name), ("namespace", workload.namespace)):
        if name and not names.is_label(name, digits_first=field == "namespace"):
            message = f"{shorten(name)!r} is no {field} that the API server takes"
            letter = ", a letter first" if field == "name" else ""
            remedy = f"write at most {names.LONGEST} of a-z, 0-9 and -{letter}"
            finding, layer, _ = said(merged, "invalid-field", message, remedy, "")
            return finding._replace(field=f"metadata.{field}"), layer, workload.at
    return None


def _too_many(merged: Merged, world: World) -> Said | None:
    instances, spares = _instances(merged, world), world.options.spares
    if instances + spares <= MOST_INSTANCES:
        return None
    chosen = merged.max_replicas if instances > _replicas(merged) else merged.min_replicas
    message = f"comes to {instances + spares:,} PodGroups; more than {MOST_INSTANCES:,} for a component are refused"
    field = chosen.field if chosen else "minReplicas"
    return said(merged, "too-many-instances", message, "lower it, or split the service", field, chosen)


# What is said


def _surprises(merged: Merged, world: World, instances: int, timeout: int | None) -> list[Said]:
    """Return where what runs later will not be what the PodGroups say."""
    findings = []
    if timeout is not None and timeout > _PERMIT_CAP and not world.settings.refused:
        origin = "" if merged.ready_timeout else f" ({world.settings.ready.origin})"
        message = (
            f"the PodGroup says {timeout:,} s{origin}, but kube-scheduler ends every such wait after {_PERMIT_CAP} s"
        )
        remedy = "lower the ready timeout, or set the cluster's gangScheduleTimeout"
        field = _READY if merged.ready_timeout else ""
        findings.append(said(merged, "timeout-over-cap", message, remedy, field, merged.ready_timeout))
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


def _unknown(merged: Merged, missing: str, whole: bool) -> Shape:
    guess = ", though the context claims to be whole" if whole else "; taken for one pod"
    message = f"how many pods an Instance has is for {missing} to say, which is not read{guess}"
    give = "give it as --context" if merged.workload.runtime.name else "name one"
    remedy = f"{give}, or write leader and worker with a size into {merged.path('')}"
    if merged.workload.kind == keys.INFERENCE_REPLICA:
        remedy = "write its runners out"  # what of the runtime reaches a standalone one is not documented
    return refused(said(merged, "gang-unknown", message, remedy, ""))


def _left_to_ome(merged: Merged, instances: int, told: bool) -> Said:
    count = "PodGroup" if instances == 1 else f"{instances:,} PodGroups"
    why = ", as --podgroups omit says" if told else ""
    message = f"the {count} of this component and the label of its pods are left to OME{why}"
    remedy = "make sure that OME is 1.3 or later, and found the PodGroup CRD when it started"
    return said(merged, "ome-makes-podgroups", message, remedy, "")
