"""What was decided -> why: each value with the one that decided it, who wrote that and where, and what it hid.

Nothing is decided here. A value that nobody wrote says in words where it is from.
"""

from __future__ import annotations

from ..findings import Ref
from ..record import Record
from . import keys, lifecycle, names
from .merge import Chosen
from .resources import LeaderWorkerSet, Workload
from .settings import INSTALL
from .shapes.multinode import POLICY, WHOLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from ..findings import Place
    from ..manifests.change import Spot
    from ..manifests.objects import Found
    from .merge import Merged
    from .settings import Setting
    from .shapes.shape import Decided, Gang, Timeout
    from .world import World

    Placer: TypeAlias = Callable[[int, Spot, int], Place]


class Source(Record):
    """A value that somebody wrote: in which object or option, in which field, empty in an option, and where."""

    value: str
    by: str
    field: str = ""
    place: Place | None = None


class Reason(Record):
    """A value that was decided, `name` one of NAMES.

    `source` is what decided it, None where nobody wrote anything; `why` says the rest in words; `hidden` is what was
    written too and does not count.
    """

    name: str
    value: str
    source: Source | None = None
    why: str = ""
    hidden: tuple[Source, ...] = ()


# What is decided of a component, in the order in which it is told.
NAMES = (
    "mode",
    "gang",
    "instances",
    "replicas",
    "maxReplicas",
    "workers",
    "minMember",
    "readyTimeout",
    "scheduleTimeoutSeconds",
    "topologyKey",
    "leader.schedulerName",
    "worker.schedulerName",
    "leader.priorityClassName",
    "worker.priorityClassName",
    "updateStrategy",
    "spares",
    "podGroupLabel",
    "podGroupsBy",
)


class Group(Record):
    """A PodGroup and the Instances whose pods are in it: `instances` of them from the index `first` on.

    `spare` says that none of them runs yet. `seconds` is None for no timeout.
    """

    name: str
    first: int
    instances: int
    spare: bool
    min_member: int
    seconds: int | None
    topology_key: str


class Pods(Record):
    """What the pods of an Instance are called, `{index}` for its index and `{number}` for the number of a worker."""

    leader: str
    worker: str
    first_worker: int

    def leader_of(self, index: int) -> str:
        """Return the name of the leader of an Instance."""
        return self.leader.replace("{index}", str(index))

    def worker_of(self, index: int, number: int) -> str:
        """Return the name of a worker, the first one's number being 0."""
        return self.worker.replace("{index}", str(index)).replace("{number}", str(self.first_worker + number))


class Explained(Record):
    """A component of a service, or a LeaderWorkerSet (`component` empty): its gangs, if it has any, and why.

    `instances` run once it is deployed, each of a leader and `workers`; `made_by` makes the PodGroups. `bounds` is the
    clamp in seconds, None for none; `missing` is the runtime that is not read, which may say otherwise.
    """

    ref: Ref
    component: str
    mode: str
    made_by: str
    instances: int
    workers: int
    groups: tuple[Group, ...]
    pods: Pods | None
    scheduler: tuple[str, str]
    bounds: tuple[int, int] | None
    reasons: tuple[Reason, ...]
    missing: str = ""


def explained(decided: Decided, world: World, place: Placer) -> Explained:
    """Return what was decided of a component and why; `place` turns positions into places."""
    return _Explaining(decided, world, place).explained()


class _Explaining:
    def __init__(self, decided: Decided, world: World, place: Placer) -> None:
        self.decided = decided
        self.owner = decided.owner
        self.world = world
        self.place = place

    def explained(self) -> Explained:
        decided, merged = self.decided, self.decided.merged
        settings = self.world.settings
        bounds = (lifecycle.seconds(settings.least.value), lifecycle.seconds(settings.most.value))
        clamped = bool(settings.least.value or settings.most.value)
        return Explained(
            Ref(self.owner.kind, self.owner.namespace, self.owner.name),
            merged.own.name if merged else "",
            merged.mode if merged else self.owner.kind,
            decided.made_by,
            decided.instances,
            decided.workers,
            tuple(self.groups()),
            self.pods(),
            (decided.leader_scheduler, decided.worker_scheduler),
            bounds if clamped and decided.gangs else None,
            tuple(self.reasons()),
            decided.missing,
        )

    # Gangs

    def groups(self) -> Iterator[Group]:
        decided = self.decided
        whole = decided.shared == WHOLE
        for number, gang in enumerate(decided.gangs):
            count = decided.instances if whole else 1
            spare = not whole and number >= decided.instances
            yield Group(
                gang.name, number, count, spare, gang.min_member, gang.schedule_timeout_seconds, gang.topology_key
            )

    def pods(self) -> Pods | None:
        merged = self.decided.merged
        if not self.decided.gangs:
            return None
        if merged is not None and merged.mode == keys.OME_NATIVE:
            base = f"{self.owner.name}-{merged.own.name}-{{index}}"
            return Pods(f"{base}-leader-0", f"{base}-worker-{{number}}", 0)
        name = names.leader_worker_set(self.owner.name, merged.own.name) if merged else self.owner.name
        return Pods(f"{name}-{{index}}", f"{name}-{{index}}-{{number}}", 1)

    # Reasons

    def reasons(self) -> Iterator[Reason]:
        decided, merged = self.decided, self.decided.merged
        if merged is not None:
            yield self.mode(merged)
        if not decided.gangs or decided.timeout is None:
            yield self.no_gang(merged)
            return
        yield from self.numbers()
        yield from self.timeouts(decided.timeout, merged)
        gang = decided.gangs[0]
        if merged is not None:
            folds = self.world.dialect.folds
            why = f"nobody names one{self.unread}" if folds else "OME below 1.3 has none"
            why = "" if merged.topology_key and folds else why
            yield self.reason("topologyKey", gang.topology_key or "none", merged.topology_key, why)
        yield from self.schedulers(merged)
        yield from self.updates(merged)
        yield self.label(gang)
        yield self.maker()

    def mode(self, merged: Merged) -> Reason:
        multi = merged.leader, merged.worker
        if self.owner.kind == keys.INFERENCE_REPLICA:
            why = "an InferenceReplica is OMENative"
        elif merged.told is not None:
            why = ""
        elif all(multi):
            why = "leader and worker are both there"
        elif any(multi):
            why = f"a {'leader' if merged.leader else 'worker'} is there"
        else:
            why = "neither leader nor worker is there"
        if merged.told is None:
            why += self.unread
        reason = self.reason("mode", merged.mode, merged.told, why)
        return reason._replace(hidden=(*reason.hidden, *self.untold(merged)))

    @property
    def unread(self) -> str:
        """Return what makes a guess of a default: the runtime that may say another, if that is not read."""
        return f", as far as is known: {self.decided.missing} is not read" if self.decided.missing else ""

    def default(self, chosen: Chosen | None, of_runtime: bool = True) -> str:
        return "" if chosen is not None else f"OME's default{self.unread if of_runtime else ''}"

    def untold(self, merged: Merged) -> Iterator[Source]:
        """Yield the modes that the service writes and do not count: another is before it, or OME knows no such."""
        told, owner = merged.told, self.owner
        if not isinstance(owner, Workload) or owner.kind == keys.INFERENCE_REPLICA:
            return
        annotation = merged.path(f"annotations[{keys.DEPLOYMENT_MODE}]")
        for found, field in ((merged.own.mode, annotation), (owner.mode, "spec.deploymentMode")):
            counts = told is not None and told.layer is owner and told.path(merged.own.name) == field
            if found is not None and found.value and not counts:
                yield Source(str(found.value), owner.title, field, self.place(owner.file, owner.spot, found.at))

    def no_gang(self, merged: Merged | None) -> Reason:
        several = merged is None or merged.leader or merged.worker
        if merged is not None and several and merged.mode not in (keys.OME_NATIVE, keys.MULTI_NODE):
            why = f"{merged.mode} runs no leader and workers"
        elif isinstance(self.owner, LeaderWorkerSet) and self.owner.kind != keys.LEADER_WORKER_SET:
            why = "it is not handled"
        elif lacked := self.lacked(merged):
            why = f"it has no {lacked}"
        elif merged is None or (merged.leader and merged.worker):
            why = "a finding says why"
        elif self.decided.missing:
            why = f"taken for one pod: {self.decided.missing} is not read"
        elif several:
            why = "a leader without a worker" if merged.leader else "a worker without a leader"
        else:
            why = "an Instance is one pod"
        return Reason("gang", "none", why=why)

    def lacked(self, merged: Merged | None) -> str:
        """Return what a leader and workers are told of and a number says there is none of, empty if neither is so."""
        owner, dialect = self.owner, self.world.dialect
        workers: str | int | None = None
        instances: str | int | None = None
        if isinstance(owner, LeaderWorkerSet):
            workers = int(owner.size.value) - 1 if owner.size else 0
            instances = owner.replicas.value if owner.replicas else None
        elif merged is not None and merged.worker and (merged.size or not self.decided.missing):
            workers = merged.size.value if merged.size else dialect.workers
            instances = merged.min_replicas.value if merged.min_replicas and not dialect.least else None
        return "workers" if workers == 0 else "Instances" if instances == 0 else ""

    def numbers(self) -> Iterator[Reason]:
        decided, merged, owner = self.decided, self.decided.merged, self.owner
        instances, workers = decided.instances, decided.workers
        if isinstance(owner, LeaderWorkerSet):
            yield self.found("replicas", f"{instances:,}", owner.replicas, "spec.replicas")
            size_field = "spec.leaderWorkerTemplate.size"
            yield self.found("workers", f"{workers:,}", owner.size, size_field, "size counts the leader too")
        elif merged is not None:
            held, size = merged.min_replicas, merged.size
            zero = held is not None and held.value != instances
            told = self.default(held, self.world.dialect.replicas_of_runtime)
            yield self.reason("instances", f"{instances:,}", held, "0 counts as 1" if zero else told)
            if merged.max_replicas is not None:
                yield self.reason("maxReplicas", f"{merged.max_replicas.value:,}", merged.max_replicas)
            yield self.reason("workers", f"{workers:,}", size, self.default(size))
        each = f"a leader and {_many(workers, 'worker')}"
        if decided.shared == WHOLE:
            each = f"{_many(instances, 'Instance')}, each of {each} (--replicas whole)"
        yield Reason("minMember", f"{decided.gangs[0].min_member:,}", why=each)

    def timeouts(self, timeout: Timeout, merged: Merged | None) -> Iterator[Reason]:
        ready, told = timeout.ready, merged.ready_timeout if merged else None
        if isinstance(ready, Chosen):
            reason = self.reason("readyTimeout", str(ready.value), ready)
            cluster = self.world.settings.ready
            written = cluster.value and cluster.origin != INSTALL
            yield reason._replace(hidden=(*reason.hidden, *([self.setting(cluster)] if written else [])))
        else:
            passed = () if told is None else (self.source(told), *map(self.source, told.hidden))
            why = f"{told.value} counts as unset" if told is not None else ""
            yield Reason("readyTimeout", lifecycle.text(ready.value), self.setting(ready), why, passed)
        name = "scheduleTimeoutSeconds"
        bound = timeout.bound
        if timeout.seconds is None:
            yield Reason(name, "not set", why="there is no ready timeout of a second or more, and no clamp")
        elif bound is None:
            yield Reason(name, f"{timeout.seconds:,}", why="the ready timeout in whole seconds")
        else:
            side = "min" if bound is self.world.settings.least else "max"
            way = "raised to" if side == "min" else "lowered to"
            yield Reason(name, f"{timeout.seconds:,}", self.setting(bound), f"{way} gangScheduleTimeout.{side}")

    def schedulers(self, merged: Merged | None) -> Iterator[Reason]:
        decided = self.decided
        pairs: tuple[tuple[str, str, Chosen | None], ...] = (
            ("leader", decided.leader_scheduler, merged.leader_scheduler if merged else None),
            ("worker", decided.worker_scheduler, merged.worker_scheduler if merged else None),
        )
        for role, name, chosen in pairs:
            row = f"{role}.schedulerName"
            if isinstance(self.owner, LeaderWorkerSet) and name:
                template = self.owner.templates[0 if role == "leader" else -1]
                if template.scheduler is not None:
                    field = f"spec.leaderWorkerTemplate.{template.key}.spec.schedulerName"
                    yield self.found(row, name, template.scheduler, field)
                    continue
            over = self.unfolded(merged, chosen)
            nobody = "the component's name does not reach it below OME 1.3" if over else "nobody names one"
            if chosen is not None or not name:
                why = "" if chosen else f"{nobody}, so it is {keys.DEFAULT_SCHEDULER}{self.unread}"
                reason = self.reason(row, name or "none", chosen, why)
            elif merged is not None and (other := merged.leader_scheduler or merged.worker_scheduler):
                reason = self.reason(row, name, other, "filled in: the name of the others")
            else:
                origin = self.world.options.origin("scheduler-name")
                reason = Reason(row, name, Source(name, origin), f"{nobody}, so it is filled in{self.unread}")
            yield reason._replace(hidden=(*reason.hidden, *over))
        for role, chosen in (
            ("leader", merged.leader_priority if merged else None),
            ("worker", merged.worker_priority if merged else None),
        ):
            if chosen is not None:
                yield self.reason(f"{role}.priorityClassName", str(chosen.value), chosen)

    def unfolded(self, merged: Merged | None, chosen: Chosen | None) -> tuple[Source, ...]:
        """Return the name that the component writes, where OME gives it to no pod of a gang."""
        written = merged.own.scheduler if merged else None
        if merged is None or not written or not written.value or self.world.dialect.folds:
            return ()
        if chosen is not None and chosen.field == "schedulerName":
            return ()
        place = self.place(self.owner.file, self.owner.spot, written.at)
        return (Source(str(written.value), self.owner.title, merged.path("schedulerName"), place),)

    def updates(self, merged: Merged | None) -> Iterator[Reason]:
        options = self.world.options
        if merged is not None and merged.mode == keys.OME_NATIVE:
            value = str(merged.update.value) if merged.update else keys.SURGE
            yield self.reason("updateStrategy", value, merged.update, self.default(merged.update))
            if options.spares:
                yield Reason("spares", f"{options.spares}", Source(f"{options.spares}", options.origin("spares")))

    def label(self, gang: Gang) -> Reason:
        decided, merged = self.decided, self.decided.merged
        name = "podGroupLabel"
        where = merged.path("labels") if merged else "the pod templates of the set"
        of_each = "the PodGroup of its Instance"
        if decided.shared == POLICY:
            return Reason(name, of_each, why="the admission policy labels each pod")
        single = decided.shared == WHOLE or decided.instances == 1
        if decided.made_by == keys.OME or not single or self.owner.kind == keys.INFERENCE_REPLICA:
            return Reason(name, of_each, why="OME labels each pod itself")
        return Reason(name, gang.name, why=f"written into {where}")

    def maker(self) -> Reason:
        options, merged = self.world.options, self.decided.merged
        name = "podGroupsBy"
        if merged is None or merged.mode == keys.MULTI_NODE:
            whom = "MultiNode" if merged else "a LeaderWorkerSet"
            return Reason(name, self.decided.made_by, why=f"nobody else makes any for {whom}")
        if options.podgroups:
            return Reason(name, self.decided.made_by, Source(options.podgroups, options.origin("podgroups")))
        if options.ome:
            return Reason(name, self.decided.made_by, Source(options.ome, options.origin("ome")))
        cluster = self.world.cluster
        if cluster is not None and cluster.ome is not None:
            place = self.place(cluster.file, cluster.spot, cluster.ome.at)
            source = Source(str(cluster.ome.value), "the Cluster document", "spec.omeVersion", place)
            return Reason(name, self.decided.made_by, source)
        return Reason(name, self.decided.made_by, why="which OME runs it is not said")

    # Sources

    def reason(self, name: str, value: str, chosen: Chosen | None, why: str = "") -> Reason:
        if chosen is None:
            return Reason(name, value, why=why)
        return Reason(name, value, self.source(chosen), why, tuple(map(self.source, chosen.hidden)))

    def source(self, chosen: Chosen) -> Source:
        merged = self.decided.merged
        layer = chosen.layer
        field = chosen.path(merged.own.name) if merged else chosen.field
        return Source(str(chosen.value), layer.title, field, self.place(layer.file, layer.spot, chosen.at))

    def found(self, name: str, value: str, found: Found | None, field: str, why: str = "") -> Reason:
        if found is None:
            return Reason(name, value, why="the API's default")
        place = self.place(self.owner.file, self.owner.spot, found.at)
        return Reason(name, value, Source(str(found.value), self.owner.title, field, place), why)

    def setting(self, setting: Setting) -> Source:
        place = self.place(setting.file.file, setting.file.spot, setting.at) if setting.file else None
        by = setting.origin
        if by == INSTALL:
            by = _INSTALLS[self.world.options.ome_install]
        return Source(lifecycle.text(setting.value), by, place=place)


_INSTALLS = {
    "chart": "the default of OME's chart",
    "kustomize": "the default of OME's kustomize install",
    "none": "no setting of the cluster is known",
}


def _many(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"
