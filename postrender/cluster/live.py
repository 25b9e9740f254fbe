"""Does what runs agree with what is planned; where it does not, why, and what ends it. Pure: nothing is asked here."""

from __future__ import annotations

from .. import pipeline
from ..findings import Finding, Ref
from ..gangs import keys
from ..record import Record
from . import causes
from .causes import held_by
from .instances import ABSENT, HALF_BOUND, instances

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..gangs.shapes.shape import Decided
    from ..options import Options
    from .causes import Cause, Difference, Judge
    from .instances import Instance, Where
    from .state import PodGroup, State


class Told(Record):
    """Something found of a gang, and the commands that end it, in their order; its remedy is the same in one line."""

    finding: Finding
    commands: tuple[str, ...]


class Gang(Record):
    """One gang as it runs: how many of its `size` pods are there and have a node, the phase of its PodGroup.

    `cause` names why it is not whole, empty where it is. `message` is what the scheduler says, `age` for how many
    seconds it does, and `left` in how many OME fails the Instance for that; None where these are not known.
    """

    name: str
    number: int
    size: int
    pods: int
    bound: int
    state: str
    phase: str
    cause: str
    message: str
    age: int | None
    left: int | None
    told: tuple[Told, ...]


class Service(Record):
    """A component of a service, or a LeaderWorkerSet, for which `component` is empty."""

    ref: Ref
    component: str
    mode: str
    made_by: str
    gangs: tuple[Gang, ...]


class Live(Record):
    """What was found of each service, and of the cluster as a whole."""

    services: tuple[Service, ...]
    findings: tuple[Finding, ...]

    @property
    def told(self) -> Iterator[Told]:
        """What was found of all gangs."""
        for service in self.services:
            for gang in service.gangs:
                yield from gang.told


def compare(decided: Iterable[Decided], default: str, state: State, judge: Judge) -> Live:
    """Return how what was decided stands in a cluster; `default` is the namespace of what writes none."""
    groups: dict[Where, PodGroup] = {(group.namespace, group.name): group for group in state.groups}
    services = []
    for one in decided:
        if not one.gangs:
            continue
        namespace = one.owner.namespace or default
        merged = one.merged
        found = instances(one, namespace, state, groups)
        services.append(
            Service(
                Ref(one.owner.kind, namespace, one.owner.name),
                merged.own.name if merged else "",
                merged.mode if merged else keys.LEADER_WORKER_SET,
                one.made_by,
                tuple(_gang(instance, state, judge) for instance in found),
            )
        )
    findings = () if state.served or not services else (_undefined(judge),)
    return Live(tuple(services), findings)


def judged(live: Live, options: Options) -> Live:
    """Return the same with the findings that count: without the accepted ones, and warnings raised where asked."""

    def of_gang(gang: Gang) -> Gang:
        told = ((one, pipeline.judged([one.finding], options)) for one in gang.told)
        return gang._replace(told=tuple(one._replace(finding=kept[0]) for one, kept in told if kept))

    services = (one._replace(gangs=tuple(map(of_gang, one.gangs))) for one in live.services)
    return Live(tuple(services), pipeline.judged(live.findings, options))


def _undefined(judge: Judge) -> Finding:
    message = "the cluster does not serve podgroups.scheduling.x-k8s.io, so no scheduler there places gangs"
    return Finding("podgroup-crd-missing", message, judge.commands.install_definition())


def _gang(instance: Instance, state: State, judge: Judge) -> Gang:
    cause = judge.cause(instance)
    saying = causes.telling(instance.waiting)
    age = max(0, int(state.now - saying.since)) if saying and saying.since else None
    native = instance.decided.made_by == keys.OME
    left = max(0, state.grace - age) if native and state.grace is not None and age is not None else None
    group = instance.group
    return Gang(
        instance.title,
        instance.number,
        instance.size,
        len(instance.pods),
        instance.bound,
        instance.state,
        group.phase if group else "",
        cause.name if cause else "",
        saying.message if saying else "",
        age,
        left,
        tuple(_told(instance, cause, judge)),
    )


def _told(instance: Instance, cause: Cause | None, judge: Judge) -> Iterator[Told]:
    """Yield what is to be said of a gang: why it is not whole, then what else is wrong with it."""
    named = ""
    if cause is not None:
        named = cause.name
        half = instance.state == HALF_BOUND
        words = f"{instance.bound:,} of {instance.size:,} pods have a node: {cause.words}"
        finding = _finding("gang-half-bound" if half else "gang-waiting", instance, words, cause.commands)
        # One that waits for room is how gangs are; one that waits for what somebody must do is an error.
        yield Told(finding if half else finding._replace(raised=cause.lasting), cause.commands)
    for code, other in _others(instance, named, judge):
        yield Told(_finding(code, instance, other.words, other.commands), other.commands)


def _others(instance: Instance, named: str, judge: Judge) -> Iterator[tuple[str, Cause]]:
    """Yield what is wrong with a gang beside what keeps it from being whole, with its code."""
    commands = judge.commands
    group = instance.group
    if instance.state != ABSENT:
        for code, name, rule in (
            ("no-gang-scheduler", causes.IGNORED, judge.ignored),
            ("not-rendered", causes.UNLABELLED, judge.unlabelled),
        ):
            found = rule(instance) if named != name else None
            if found is not None:
                yield code, found
    if group is None:
        said = (causes.NO_DEFINITION, causes.LATE_DEFINITION, causes.NO_GROUP, causes.UNLABELLED, causes.NO_POLICY)
        labelled = any(pod.group for pod in instance.pods)
        if named not in said and labelled and judge.state.served:
            yield "podgroup-missing", judge.missing_group(instance)
        return
    stranger = _stranger(instance, group)
    if stranger:
        if named != causes.FOREIGN:
            away = (commands.delete_group(instance, group.name),)
            yield "podgroup-foreign", causes.Cause(causes.FOREIGN, stranger, away)
        return
    if group.phase == "Failed" and named != causes.FAILED:
        yield "podgroup-failed", _failed(instance, group, judge)
    if named not in (causes.TOO_FEW, causes.TOO_MANY):
        differing = causes.differences(instance, group)
        if differing:
            said_of_it = "; ".join(one.words for one in differing)
            words = f"PodGroup {group.name!r} is not what is planned: {said_of_it}"
            yield "podgroup-differs", causes.Cause(group.name, words, (_put_right(instance, group, differing, judge),))


def _put_right(instance: Instance, group: PodGroup, differing: Iterable[Difference], judge: Judge) -> str:
    """Return how a PodGroup becomes what is planned; OME keeps its own as it wants them, so there OME is asked."""
    if instance.decided.made_by == keys.OME:
        return judge.commands.describe_owner(instance)
    return judge.commands.set_fields(instance, group.name, [(one.path, one.wanted) for one in differing])


def _stranger(instance: Instance, group: PodGroup) -> str:
    """Return in words who holds a PodGroup that is not theirs, or an empty string."""
    if instance.decided.made_by == keys.OME:
        if group.of_ome:
            return ""
        return f"PodGroup {group.name!r} {held_by(group)}, so it is not OME's"
    return f"PodGroup {group.name!r} is controlled by {group.controller}" if group.controller else ""


def _failed(instance: Instance, group: PodGroup, judge: Judge) -> Cause:
    """Return that a PodGroup is Failed, which it stays although its pods run, and how that ends."""
    words = f"PodGroup {group.name!r} is Failed, and stays so: a pod of it had failed"
    return causes.Cause(causes.FAILED, words, judge.mend(instance, group))


def _finding(code: str, instance: Instance, words: str, commands: tuple[str, ...]) -> Finding:
    owner, merged = instance.decided.owner, instance.decided.merged
    ref = Ref(owner.kind, instance.namespace, owner.name)
    field = f"spec.{merged.own.name}" if merged else ""
    return Finding(code, f"gang {instance.title!r}: {words}", " && ".join(commands), ref, field)
