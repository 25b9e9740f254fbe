"""What every shape asks of a component: numbers and names that an API server takes, a timeout, enough to decide."""

from __future__ import annotations

from ...findings import Finding
from ...manifests.objects import shorten
from .. import keys, lifecycle, names
from .shape import Shape, Timeout, refused, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Chosen, Merged
    from ..resources import LeaderWorkerSet
    from ..settings import Setting
    from ..world import World
    from .shape import Said

READY = "lifecycle.instanceReadyTimeout"
# Above this a service has more Instances than any scheduler should be handed from one manifest.
MOST_INSTANCES = 1_000
MOST_PODS = 2**31 - 1  # minMember is an int32
_MOST_WORKERS = MOST_PODS - 1
_MOST_REPLICAS = 2**31 - 1
# kube-scheduler ends every wait at Permit after 15 minutes.
_PERMIT_CAP = 900


def timeout(merged: Merged, world: World) -> Timeout | Said:
    """Return the scheduling timeout, or what is wrong with it."""
    ready, written = world.settings.ready.value, merged.ready_timeout
    by: Chosen | Setting = world.settings.ready
    try:
        if written is not None and (told := lifecycle.parse(str(written.value))) > 0:
            ready, by = told, written
        return clamped(ready, by, world)
    except ValueError as error:
        remedy = "write one such as 90s, 30m or 1h30m"
        if written is None:
            return said(merged, "invalid-field", f"{world.settings.ready.origin}: {error}", remedy, "")
        message = f"{shorten(str(written.value))!r} is not a duration: {error}"
        return said(merged, "invalid-field", message, remedy, READY, written)


def clamped(ready: int, by: Chosen | Setting, world: World) -> Timeout:
    """Return the scheduling timeout for a ready timeout in nanoseconds; raises ValueError where it is too long."""
    settings = world.settings
    wait = lifecycle.schedule_timeout(ready, settings.least.value, settings.most.value)
    whole = lifecycle.seconds(ready)
    bound = None
    if wait is not None and (wait != whole or whole == 0):
        bound = settings.least if whole == 0 or whole < wait else settings.most
    return Timeout(wait, by, bound)


def wrong_numbers(merged: Merged, least: int) -> Said | None:
    """Return what is wrong with the numbers, which OME's webhook or the int32 of the field would refuse."""
    size = merged.size
    if size is not None and not least <= int(size.value) <= _MOST_WORKERS:
        message = f"is {size.value:,}; OME takes {least} to {_MOST_WORKERS:,} workers"
        remedy = "write how many workers stand beside the leader"
        return said(merged, "invalid-field", message, remedy, size.field, size)
    for chosen in (merged.min_replicas, merged.max_replicas):
        if chosen is not None and not 0 <= int(chosen.value) <= _MOST_REPLICAS:
            message = f"is {chosen.value:,}; OME takes 0 to {_MOST_REPLICAS:,}"
            return said(merged, "invalid-field", message, "write how many Instances to run", chosen.field, chosen)
    return None


def wrong_names(merged: Merged) -> Said | None:
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


def label(merged: Merged, key: str, value: str) -> tuple[tuple[str, ...], str]:
    """Return a label of the component's pods as what is to be written into the service."""
    return ("spec", merged.own.name, "labels", key), value


def label_taken(merged: Merged) -> Said | None:
    """Return that the pods carry a pod-group label that we would never have given them, if they do."""
    held = merged.pod_group
    workload = merged.workload
    called = (workload.name, *workload.earlier)
    if held is None or any(names.could_be_ours(str(held.value), name, merged.own.name) for name in called):
        return None
    value = str(held.value)
    other = any(names.could_be_ours(value, name, component) for name in called for component in keys.COMPONENTS)
    whose = "the PodGroup of another component" if other else "no PodGroup of this service"
    message = f"is {shorten(value)!r}, {whose}"
    remedy = "remove it, or leave this service to whoever set it"
    return said(merged, "label-taken", message, remedy, held.field, held)


def over_cap(merged: Merged, world: World, timeout: Timeout) -> list[Said]:
    """Return that a PodGroup waits for less than it says, if it does."""
    written = merged.ready_timeout
    field = READY if written else ""
    over = _over_cap(world, timeout, "" if written else f" ({world.settings.ready.origin})")
    return [said(merged, "timeout-over-cap", *over, field, written)] if over else []


def over_cap_of(found: LeaderWorkerSet, world: World, timeout: Timeout) -> list[Said]:
    """Return the same of a LeaderWorkerSet, which says no timeout itself."""
    over = _over_cap(world, timeout, f" ({world.settings.ready.origin})")
    return [(Finding("timeout-over-cap", *over), found, found.at)] if over else []


def _over_cap(world: World, timeout: Timeout, origin: str) -> tuple[str, str] | None:
    seconds = timeout.seconds
    if seconds is None or seconds <= _PERMIT_CAP or world.settings.refused:
        return None
    message = f"the PodGroup says {seconds:,} s{origin}, but kube-scheduler ends every such wait after {_PERMIT_CAP} s"
    return message, "lower the ready timeout, or set the cluster's gangScheduleTimeout"


def unknown(merged: Merged, missing: str, whole: bool) -> Shape:
    """Return that a runtime which is not known decides, so that nothing is done; `whole` if all should be known."""
    says = "says how many pods an Instance has"
    message = f"{missing} is not read, and {says}; taken for one pod"
    if whole:
        message = f"{missing} is not read, though the context claims to be whole, and {says}"
    give = "give it as --context" if merged.workload.runtime.name else "name one"
    remedy = f"{give}, or --accept gang-unknown if one pod is meant"
    if merged.own.leader or merged.own.worker:
        remedy = f"{give}, or write leader and worker with a size into {merged.path('')}"
    if merged.workload.kind == keys.INFERENCE_REPLICA:
        remedy = "write its runners out"  # what of the runtime reaches a standalone one is not documented
    return refused(said(merged, "gang-unknown", message, remedy, ""))
