"""Rules across the objects of a stream, for a check: do labels, PodGroups and the pods that will exist fit together?

What the plan says of a component it says itself; nothing is said twice. On a render's own output there is nothing to
say.
"""

from __future__ import annotations

from ..findings import Finding, Ref
from ..manifests.objects import Found, shorten
from . import keys
from .labelled import AnyPodGroup, Labelled, Members
from .resources import Workload
from .shapes.multinode import POLICY, WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..manifests.change import Spot
    from ..options import Options
    from .plan import Placer, Plan
    from .shapes.shape import Decided


def audit(found: Iterable[Labelled | AnyPodGroup], plan: Plan, options: Options, place: Placer) -> tuple[Finding, ...]:
    """Return what does not fit together among the objects of a stream and what is planned for it."""
    held = list(found)
    auditor = _Auditor([one for one in held if isinstance(one, AnyPodGroup)], plan, options, place)
    labelled = [one for one in held if isinstance(one, Labelled)]
    members = [member for one in labelled for member in one.members]
    members += [member for decided in plan.decided for member in _of_component(decided)]
    auditor.groups_alone()
    auditor.labels(labelled)
    auditor.together(members)
    return tuple(auditor.findings)


class _Auditor:
    """Collects what is wrong."""

    def __init__(self, groups: Sequence[AnyPodGroup], plan: Plan, options: Options, place: Placer) -> None:
        self.options = options
        self.place = place
        self.findings: list[Finding] = []
        self.said = {(one.code, one.ref.kind, one.ref.name) for one in plan.findings if one.ref is not None}
        self.groups: dict[str, list[AnyPodGroup]] = {}
        for group in groups:
            self.groups.setdefault(group.ref.name, []).append(group)
        # PodGroups that OME will make: there once the pods are.
        self.made = {
            (gang.name, decided.owner.namespace)
            for decided in plan.decided
            if decided.made_by == keys.OME
            for gang in decided.gangs
        }
        # Objects of whose schedulers the plan speaks, of one half-written pair in another way.
        self.judged = {
            Ref(decided.owner.kind, decided.owner.namespace, decided.owner.name)
            for decided in plan.decided
            if decided.gangs
        }
        # PodGroups whose names the plan has compared.
        self.planned = {
            (gang.name, decided.owner.namespace or options.namespace)
            for decided in plan.decided
            if decided.made_by == keys.OURS
            for gang in decided.gangs
        }

    def say(self, code: str, message: str, remedy: str, ref: Ref, field: str, spot: Spot, at: int) -> None:
        if (code, ref.kind, ref.name) in self.said:
            return
        self.findings.append(Finding(code, message, remedy, ref, field, self.place(0, spot, at)))

    def groups_alone(self) -> None:
        """Say what is wrong with a PodGroup whoever its pods are."""
        for name, groups in self.groups.items():
            for group in groups:
                if group.min_member is None:
                    message = "says no minMember: the scheduler then places its pods one by one"
                    remedy = "write how many pods must be placed together"
                    self.say("min-member-missing", message, remedy, group.ref, "spec.minMember", group.spot, group.at)
            namespaces = {self.namespace(group.ref): group for group in groups if self.namespace(group.ref)}
            if len(namespaces) > 1:
                first, *others = namespaces
                for namespace in others:
                    if {(name, first), (name, namespace)} <= self.planned:
                        continue
                    group = namespaces[namespace]
                    message = (
                        f"{name!r} is a PodGroup in {first!r} too; the PodGroup controller counts the pods of both"
                        " for each"
                    )
                    remedy = "give the services different names"
                    self.say("same-name-two-namespaces", message, remedy, group.ref, "", group.spot, group.at)

    def labels(self, labelled: Sequence[Labelled]) -> None:
        """Say what is wrong with the labels of an object, whatever else there is."""
        for one in labelled:
            for field, at in one.legacy:
                message = "Coscheduling no longer reads this label, so its pods are placed one by one"
                self.say("legacy-label", message, f"write {keys.POD_GROUP} instead", one.ref, field, one.spot, at)
            told = set()
            for member in one.members if one.ref not in self.judged else ():
                name = member.scheduler or keys.DEFAULT_SCHEDULER
                if name in self.options.gang_scheduler or name in told:
                    continue
                told.add(name)
                message = (
                    f"{name!r} is no scheduler that places gangs, as far as is known, so the label does nothing"
                    if member.scheduler
                    else "no scheduler is named, and the default one does not read this label"
                )
                remedy = "name one that does, or say that this one does (--gang-scheduler)"
                self.say("no-gang-scheduler", message, remedy, one.ref, member.field, one.spot, member.label.at)
            if one.waits is not None and "deadlock-shape" not in self.options.accept:
                self.waits(one, *one.waits)

    def waits(self, one: Labelled, field: str, at: int, why: str) -> None:
        """Say that pods come one after the other, where their PodGroup waits for several."""
        for member in one.members:
            group = self.group(member)
            if group is not None and group.min_member is not None and int(group.min_member.value) > 1:
                message = f"{why}, and PodGroup {member.group!r} waits for {group.min_member.value:,} pods"
                remedy = (
                    "write Parallel"
                    if one.ref.kind == "StatefulSet"
                    else "take LeaderCreated, without exclusive topology"
                )
                self.say("deadlock-shape", message, remedy, one.ref, field, one.spot, at)
                return

    def together(self, members: Sequence[Members]) -> None:
        """Say what is wrong between the pods that carry the label of one PodGroup, and that."""
        pods: dict[Spot, list[Members]] = {}
        missing = set()
        for member in members:
            group = self.group(member)
            if group is not None:
                pods.setdefault(group.spot, []).append(member)
            elif not self.made_by_ome(member) and (member.ref, member.group) not in missing:
                missing.add((member.ref, member.group))
                self.missing(member)
        for held in pods.values():
            group = self.group(held[0])
            if group is not None:
                self.counts(group, held)
                self.alike(group, held)

    def missing(self, member: Members) -> None:
        elsewhere = self.groups.get(member.group, ())
        where = f" in {self.namespace(member.ref)!r}" if self.namespace(member.ref) else ""
        message = f"no PodGroup {shorten(member.group)!r} is here{where}: its pods would wait for one for ever"
        if elsewhere:
            message += f"; there is one in {self.namespace(elsewhere[0].ref)!r}"
        remedy = "add it, or remove the label"
        self.say("podgroup-missing", message, remedy, member.ref, member.field, member.spot, member.label.at)

    def counts(self, group: AnyPodGroup, held: Sequence[Members]) -> None:
        """Say that a PodGroup waits for other than the pods that will exist."""
        known = [member.pods for member in held if member.pods is not None]
        if group.min_member is None or len(known) < len(held):
            return
        wanted, total = int(group.min_member.value), sum(known)
        pods = "1 pod carries" if total == 1 else f"{total:,} pods carry"
        if wanted > total:
            message = f"is {wanted:,}, but {pods} its label: they would wait for ever"
            code, remedy = "min-member-above-pods", "write how many there are"
        elif wanted < total:
            message = f"is {wanted:,}, but {pods} its label: what is above that is placed pod by pod"
            code, remedy = "min-member-below-pods", "write how many there are, or give each group a PodGroup of its own"
        else:
            return
        self.say(code, message, remedy, group.ref, "spec.minMember", group.spot, group.min_member.at)

    def alike(self, group: AnyPodGroup, held: Sequence[Members]) -> None:
        """Say that the pods of a PodGroup differ in what should be one for all."""
        judged = [member for member in held if not member.told]
        for code, noun, values, remedy in (
            (
                "mixed-schedulers",
                "schedulers",
                {member.scheduler or keys.DEFAULT_SCHEDULER for member in judged},
                "name one scheduler for all",
            ),
            (
                "mixed-priorities",
                "priority classes",
                {member.priority or "none" for member in judged},
                "name one priority class for all",
            ),
        ):
            if len(values) > 1:
                owners = {f"{member.ref.kind}/{member.ref.name}": member for member in judged}
                message = f"the pods of PodGroup {group.ref.name!r} have different {noun}: {', '.join(sorted(values))}"
                last = list(owners.values())[-1]
                self.say(code, message, remedy, last.ref, last.field, last.spot, last.label.at)

    # Look-ups

    def namespace(self, ref: Ref) -> str:
        return ref.namespace or self.options.namespace

    def group(self, member: Members) -> AnyPodGroup | None:
        """Return the PodGroup of a label, the nearest first: what writes no namespace may come to any."""
        wanted = self.namespace(member.ref)
        maybe = None
        for group in self.groups.get(member.group, ()):
            namespace = self.namespace(group.ref)
            if namespace == wanted:
                return group
            if maybe is None and not (namespace and wanted):
                maybe = group
        return maybe

    def made_by_ome(self, member: Members) -> bool:
        return (member.group, member.ref.namespace) in self.made


def _of_component(decided: Decided) -> Iterator[Members]:
    """Yield the pods of a service's component that carry a label which is written there."""
    owner, merged = decided.owner, decided.merged
    if merged is None or not isinstance(owner, Workload):
        return  # a set says itself how many it makes
    ref = Ref(owner.kind, owner.namespace, owner.name)
    label = merged.gang or merged.pod_group
    if label is None or label.layer is not owner:
        return
    field = label.path(merged.own.name)
    found = Found(label.value, label.at)
    if merged.gang is not None:
        for gang in decided.gangs[: decided.instances] if decided.shared == POLICY else ():
            yield Members(ref, owner.spot, gang.name, found, field, 1 + decided.workers, told=True)
        return
    pods = None
    if decided.gangs and (decided.shared == WHOLE or decided.instances == 1):
        pods = decided.instances * (1 + decided.workers)
    elif not (decided.gangs or merged.leader or merged.worker) and merged.mode == keys.RAW_DEPLOYMENT:
        pods = int(merged.min_replicas.value) if merged.min_replicas else 1
    yield Members(ref, owner.spot, str(label.value), found, field, pods, told=True)
