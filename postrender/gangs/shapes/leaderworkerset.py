"""A LeaderWorkerSet of the stream, from any chart: each of its groups is a gang of `size` pods.

A set has one template for all its groups, or two, one of them the leader's; a missing leaderTemplate means that the
worker's serves both. Its PodGroups are called `<set>-<index>`, as its leader pods are.
"""

from __future__ import annotations

from ...findings import Finding
from ...manifests.objects import shorten
from .. import keys, names
from . import checks, schedulers
from .multinode import POLICY, WHOLE
from .shape import NOTHING, Decided, Gang, Shape, Timeout, refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..resources import Autoscaler, LeaderWorkerSet
    from ..world import World
    from .shape import Said

# LeaderWorkerSet's own bound: the name of a worker pod ends at 63 characters.
_LONGEST = 51
_SIZE = "spec.leaderWorkerTemplate.size"


def shape(found: LeaderWorkerSet, world: World, scaler: Autoscaler | None) -> Shape:
    """Return the gangs of a set; `scaler` is the autoscaler of it in the stream."""
    if found.kind != keys.LEADER_WORKER_SET:
        return refused(not_handled(found, found.kind, found.at))
    if found.other is not None:
        system, at = found.other
        message = f"it is marked for {system}, and left alone"
        return refused(_said(found, "other-gang-system", message, "remove the marks to gang it here", "", at))
    replicas = int(found.replicas.value) if found.replicas else 1
    size = int(found.size.value) if found.size else 1
    wrong = _wrong_numbers(found, size, replicas)
    if wrong is not None:
        return refused(wrong)
    if size == 1 or replicas == 0 or not found.templates:
        return NOTHING
    if found.unhandled is not None:
        return refused(not_handled(found, *found.unhandled))
    how = world.options.replicas
    surge = _surge(found, replicas)
    wrong = _wrong_names(found) or _deadlock(found, world) or _taken(found, how) or _shared(found, world, replicas)
    wrong = wrong or _too_many(found, how, replicas, surge)
    timeout = _timeout(found, world)
    if wrong is not None or not isinstance(timeout, Timeout):
        return refused(*(one for one in (wrong, timeout) if one is not None and not isinstance(one, Timeout)))
    findings = checks.over_cap_of(found, world, timeout)
    gangs: tuple[Gang, ...]
    if how == WHOLE:
        gangs = (_gang(found, found.name, replicas * size, timeout.seconds),)
    else:
        count = replicas + surge if how == POLICY else 1
        gangs = tuple(_gang(found, f"{found.name}-{number}", size, timeout.seconds) for number in range(count))
    labels: tuple[tuple[str, str], ...] = ((keys.POD_GROUP, gangs[0].name),)
    if how == POLICY:
        labels = ((keys.GANG, found.name), (keys.POD_GROUP, keys.POLICY_MISSING))
        message = "its pods wait until the cluster's admission policy has told each its PodGroup"
        remedy = "install it once (postrender policy | kubectl apply -f -)"
        findings.append(_said(found, "policy-needed", message, remedy, "", found.at))
    elif surge:
        message = f"an update's surge of groups joins PodGroup {gangs[0].name!r}, and is placed pod by pod"
        remedy = "give each group its own (--replicas policy)"
        at = found.surge.at if found.surge else found.at
        findings.append(_said(found, "surge-without-spare", message, remedy, _SURGE_FIELD, at))
    if scaler is not None and (scaler.most is None or int(scaler.most.value) > replicas):
        most = f"up to {scaler.most.value:,} groups" if scaler.most else "other numbers of groups"
        message = f"an autoscaler in the stream makes {most}, and PodGroups are there for {replicas:,}"
        at = found.replicas.at if found.replicas else found.at
        remedy = "scale by hand, with a render each time"
        findings.append(_said(found, "autoscaled-range", message, remedy, "spec.replicas", at))
    sets, named, scheduler_findings = _schedulers(found, world)
    findings += scheduler_findings
    written = tuple(
        ((*_path(template.key), "metadata", "labels", key), value)
        for template in found.templates
        for key, value in labels
    )
    decided = Decided(found, None, gangs, keys.OURS, replicas, size - 1, how, timeout, named[0], named[-1])
    return Shape(True, gangs, (*written, *sets), tuple(findings), decided)


def not_handled(found: LeaderWorkerSet, what: str, at: int) -> Said:
    """Return that a set, or a part of one, is left as it is."""
    message = f"{what} is not handled, and its pods are placed one by one"
    return _said(found, "not-handled", message, "leave it so, or take a plain LeaderWorkerSet", "", at)


_SURGE_FIELD = "spec.rolloutStrategy.rollingUpdateConfiguration.maxSurge"


def _path(template: str) -> tuple[str, ...]:
    return ("spec", "leaderWorkerTemplate", template)


def _said(found: LeaderWorkerSet, code: str, message: str, remedy: str, field: str, at: int) -> Said:
    return Finding(code, message, remedy, field=field), found, at


def _gang(found: LeaderWorkerSet, name: str, pods: int, timeout: int | None) -> Gang:
    labels = ((keys.SET_NAME, found.name), (keys.MANAGED_BY, keys.OURS))
    return Gang(found, name, labels, pods, timeout)


def _surge(found: LeaderWorkerSet, replicas: int) -> int:
    """Return how many groups more an update brings up: a number, or a part of the replicas, rounded up."""
    text = str(found.surge.value) if found.surge else "0"
    digits = text.removesuffix("%")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 20):
        return 0
    surge = -(-int(digits) * replicas // 100) if text.endswith("%") else int(digits)
    return min(surge, replicas)


def _timeout(found: LeaderWorkerSet, world: World) -> Timeout | Said:
    ready = world.settings.ready
    try:
        return checks.clamped(ready.value, ready, world)
    except ValueError as error:
        message = f"{ready.origin}: {error}"
        return _said(found, "invalid-field", message, "write one such as 90s, 30m or 1h30m", "", found.at)


def _wrong_numbers(found: LeaderWorkerSet, size: int, replicas: int) -> Said | None:
    """Return what the set's own validation, or the int32 of a field, would refuse."""
    if found.size is not None and not 1 <= size <= checks.MOST_PODS:
        message = f"is {size:,}; a group has 1 to {checks.MOST_PODS:,} pods"
        remedy = "write how many pods a group has, its leader too"
        return _said(found, "invalid-field", message, remedy, _SIZE, found.size.at)
    if found.replicas is not None and not 0 <= replicas <= checks.MOST_PODS:
        message = f"is {replicas:,}; a set has 0 to {checks.MOST_PODS:,} groups"
        remedy = "write how many groups to run"
        return _said(found, "invalid-field", message, remedy, "spec.replicas", found.replicas.at)
    if replicas * size > checks.MOST_PODS:
        at = found.replicas.at if found.replicas else found.at
        message = f"{replicas:,} groups of {size:,} pods are more than the numbers hold"
        return _said(found, "invalid-field", message, "write how many groups to run", "spec.replicas", at)
    return None


def _too_many(found: LeaderWorkerSet, how: str, replicas: int, surge: int) -> Said | None:
    count = replicas + (surge if how == POLICY else 0)
    if how == WHOLE or count <= checks.MOST_INSTANCES:
        return None
    at = found.replicas.at if found.replicas else found.at
    message = f"comes to {count:,} PodGroups; more than {checks.MOST_INSTANCES:,} for a set are refused"
    return _said(found, "too-many-instances", message, "lower it, or split the set", "spec.replicas", at)


def _wrong_names(found: LeaderWorkerSet) -> Said | None:
    for field, name, longest in (("name", found.name, _LONGEST), ("namespace", found.namespace, names.LONGEST)):
        if name and (len(name) > longest or not names.is_label(name, digits_first=True)):
            message = f"{shorten(name)!r} is no {field} that the API server takes"
            remedy = f"write at most {longest} of a-z, 0-9 and -"
            return _said(found, "invalid-field", message, remedy, f"metadata.{field}", found.at)
    return None


def _deadlock(found: LeaderWorkerSet, world: World) -> Said | None:
    if found.waits is None or "deadlock-shape" in world.options.accept:
        return None
    field, at = found.waits
    message = "workers come only once the leader is placed, and a gang's leader waits for its workers"
    remedy = "take LeaderCreated, without exclusive topology"
    return _said(found, "deadlock-shape", message, remedy, field, at)


def _taken(found: LeaderWorkerSet, how: str) -> Said | None:
    """Return that the pods carry a label that we would never have given them, or only in another render."""
    for template in found.templates:
        if template.gang is not None and how != POLICY:
            field = ".".join((*_path(template.key), "metadata", f"labels[{keys.GANG}]"))
            message = "is of a render with --replicas policy, and would have the admission policy rename this gang"
            remedy = "remove it with the label beside it, or render what it was rendered from"
            return _said(found, "label-taken", message, remedy, field, template.gang.at)
        held = template.pod_group
        called = (found.name, *found.earlier)
        if held is not None and not any(names.could_be_of_set(str(held.value), name) for name in called):
            field = ".".join((*_path(template.key), "metadata", f"labels[{keys.POD_GROUP}]"))
            message = f"is {shorten(str(held.value))!r}, no PodGroup of this set"
            return _said(
                found, "label-taken", message, "remove it, or leave this set to whoever set it", field, held.at
            )
    return None


def _shared(found: LeaderWorkerSet, world: World, replicas: int) -> Said | None:
    if replicas == 1 or world.options.replicas:
        return None
    message = f"{replicas:,} groups share one template, so no label can tell them apart"
    remedy = "say --replicas policy (each its own gang, by an admission policy) or --replicas whole (all are one)"
    at = found.replicas.at if found.replicas else found.at
    return _said(found, "replicas-share-template", message, remedy, "spec.replicas", at)


def _schedulers(
    found: LeaderWorkerSet, world: World
) -> tuple[tuple[tuple[tuple[str, ...], str], ...], list[str], list[Said]]:
    """Return the scheduler names to write into the templates, all that hold then, and what is to be said of these."""
    held = [str(template.scheduler.value) if template.scheduler else "" for template in found.templates]
    fill = world.options.scheduler_name and (next((name for name in held if name), "") or world.options.scheduler_name)
    sets = tuple(
        ((*_path(template.key), "spec", "schedulerName"), fill)
        for template, name in zip(found.templates, held, strict=True)
        if fill and not name
    )
    named = [name or fill for name in held]
    findings = []
    field = ".".join((*_path(found.templates[0].key), "spec.schedulerName")) if found.templates else ""
    at = found.templates[0].at if found.templates else found.at
    for code, message, remedy in schedulers.remarks(named[0], named[-1], "", world.options, not any(held), False):
        findings.append(_said(found, code, message, remedy, field, at))
    priorities = {str(template.priority.value) if template.priority else "" for template in found.templates}
    if len(priorities) > 1:
        message = "leader and workers have different priority classes; the queue orders by priority first"
        field = ".".join((*_path("workerTemplate"), "spec.priorityClassName"))
        worker = found.templates[-1]
        at = worker.priority.at if worker.priority else worker.at
        findings.append(_said(found, "mixed-priorities", message, "name one priority class for both", field, at))
    return sets, named, findings
