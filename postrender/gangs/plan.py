"""All workloads of a stream + what can be looked up -> gangs, changes and findings."""

from __future__ import annotations

from functools import cache

from ..findings import ERROR, Finding, Ref
from ..manifests.change import Add, Replace, Set
from ..record import Record
from . import keys, podgroup, shapes
from .merge import merge
from .resources import STREAM, Autoscaler
from .shapes import leaderworkerset
from .shapes.shape import Decided

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TypeAlias

    from ..findings import Place
    from ..manifests.change import Change, Pairs, Spot
    from .cluster import Cluster, Lifecycle
    from .resources import LeaderWorkerSet, PodGroup, Runtime, Workload
    from .shapes.shape import Gang, Shape
    from .world import World

    Layer: TypeAlias = Workload | LeaderWorkerSet | Runtime | Lifecycle | Cluster
    # What turns a file, a spot in it and a code point into a place.
    Placer: TypeAlias = Callable[[int, Spot, int], Place]


class Plan(Record):
    """What was decided of each component, what is to happen to the stream, and what is to be said of it."""

    decided: tuple[Decided, ...]
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]


class _Planner:
    """Collects the plan."""

    def __init__(self, groups: Sequence[PodGroup], world: World, place: Placer, keep: bool) -> None:
        self.keep = keep
        self.world = world
        self.place = place
        self.groups: dict[tuple[str, str], list[PodGroup]] = {}
        for group in groups:
            self.groups.setdefault((group.namespace or world.options.namespace, group.name), []).append(group)
        self.needed: dict[tuple[str, str], Ref] = {}
        self.native = 0  # of these, PodGroups that an OME from 1.3 on would make itself
        self.namespaces: dict[str, str] = {}
        self.told = False  # that a name stands in two namespaces, once for a component
        self.seen: dict[Ref, tuple[Spot, int]] = {}
        self.decided: list[Decided] = []
        self.changes: list[Change] = []
        self.findings: list[Finding] = []
        self.version_matters = False
        # Gangs of objects that had another name before, and may have a PodGroup from that time.
        self.renamed: list[tuple[Gang, list[PodGroup]]] = []
        self.made: dict[tuple[str, str], list[PodGroup]] | None = None  # those in the stream, by whom they are for
        self.brought: set[Spot] = set()  # where the PodGroups stand that were brought to such a gang's name
        self.ref = Ref("", "", "")  # of the workload at hand, and the template it is from
        self.filename = ""

    def first(self, one: Workload | LeaderWorkerSet) -> bool:
        """Take an object in hand; return whether it is the first of its name, or say that it is not."""
        self.ref = Ref(one.kind, one.namespace, one.name)
        self.filename = dict(one.annotations).get(keys.FILENAME, "")
        spot, at = self.seen.setdefault(self.ref._replace(namespace=self.world.namespace(one)), (one.spot, one.at))
        if spot is one.spot:
            return True
        first = self.place(one.file, spot, at)
        message = f"it stands twice; the first is on line {first.line}"
        self.say(Finding("duplicate-service", message, "remove or rename one of the two", other=first), one, one.at)
        return False

    def workload(self, workload: Workload) -> None:
        """Plan the workload at hand."""
        if workload.virtual:
            return
        resolved = self.world.resolve(workload)
        if resolved.finding is not None:
            self.say(*resolved.finding)
            return
        ganged = False
        for component in workload.components:
            merged = merge(workload, component, resolved.runtimes, self.world.dialect)
            missing = "" if component.name in resolved.single else resolved.missing
            shape = shapes.shape(merged, self.world, missing)
            self.version_matters = self.version_matters or merged.leader or merged.worker
            for finding, layer, index in shape.findings:
                self.say(finding, layer, index, raised=finding.code == "gang-unknown" and self.world.whole)
            self.carry_out(workload, shape)
            if self.keep:
                self.decided.append((shape.decided or Decided(workload, merged))._replace(missing=missing))
            ganged = ganged or shape.ganged
        if not ganged:
            return
        ref = workload.runtime
        if resolved.missing:
            self.say(_unresolved(resolved.missing, ref.name, ref.field), workload, ref.at, raised=self.world.whole)
        elif ref.pinned is not None and ref.name:
            self.say(_pinned(ref.name), workload, ref.pinned.at)

    def leader_worker_set(self, found: LeaderWorkerSet, scaler: Autoscaler | None) -> None:
        """Plan the LeaderWorkerSet at hand."""
        shape = leaderworkerset.shape(found, self.world, scaler)
        for finding, layer, index in shape.findings:
            self.say(finding, layer, index)
        self.carry_out(found, shape)
        if self.keep:
            self.decided.append(shape.decided or Decided(found, None))

    def say(self, finding: Finding, layer: Layer, index: int, raised: bool = False) -> None:
        """Keep a finding about the workload at hand, caused by a value of it or of another object."""
        place = self.place(layer.file, layer.spot, index)
        if self.filename and not place.source and layer.file == STREAM:
            place = place._replace(source=self.filename)
        code, message, remedy, _, field, _, _, other = finding
        self.findings.append(Finding(code, message, remedy, self.ref, field, place, raised, other))

    def carry_out(self, workload: Workload | LeaderWorkerSet, shape: Shape) -> None:
        """Plan what an object, or a component of it, comes to."""
        self.told = False
        for gang in shape.gangs:
            self.pod_group(gang)
        self.changes.extend(Set(workload.spot, path, value) for path, value in shape.sets)

    def pod_group(self, gang: Gang) -> None:
        """Add the PodGroup of a gang, or compare it with the one that stands there."""
        wanted = self.value(gang)
        workload = gang.workload
        namespace = self.world.namespace(workload)
        where = (namespace, gang.name)
        holder = self.needed.setdefault(where, self.ref)
        if holder is not self.ref:
            message = f"{holder.kind}/{holder.name} needs a PodGroup {gang.name!r} too"
            self.say(Finding("podgroup-conflict", message, "rename one of the two"), workload, workload.at)
            return
        self.native += (keys.MANAGED_BY, keys.OME_NATIVE) in gang.labels
        if namespace:
            elsewhere = self.namespaces.setdefault(gang.name, namespace)
            if elsewhere != namespace and not self.told:
                self.told = True
                self.say(_two_namespaces(gang.name, elsewhere), workload, workload.at)
        found, *others = self.groups.get(where, (None,))
        if found is None and workload.earlier and (former := self.former(gang, namespace)):
            self.renamed.append((gang, former))
        elif found is None:
            self.changes.append(Add(workload.before, wanted))
        elif others:
            self.conflict(gang, others[0], "it stands twice in the stream", "remove one of the two")
        elif podgroup.equal(found.value, wanted):
            pass
        elif found.made_for in (podgroup.made_for(workload), *podgroup.made_for_before(workload)):
            self.changes.append(Replace(found.spot, self.value(gang, found)))
        else:
            why = f"it was made for {found.made_for}" if found.made_for else podgroup.difference(found.value, wanted)
            self.conflict(gang, found, why, "remove or rename it, or make it what the service needs")

    def former(self, gang: Gang, namespace: str) -> list[PodGroup]:
        """Return the PodGroups that may be a gang's from when its object had another name."""
        if self.made is None:  # most streams need none of this
            self.made = {}
            for (where, _), groups in self.groups.items():
                for group in groups:
                    self.made.setdefault((where, group.made_for), []).append(group)
        found = (self.made.get((namespace, maker), ()) for maker in podgroup.made_for_before(gang.workload))
        return [group for groups in found for group in groups if podgroup.is_same(group, gang)]

    def rename(self) -> None:
        """Bring PodGroups to the names that their objects have by now, once it is known what else is needed.

        First those that were renamed as their object was: two objects may have had one name. Without one it is new.
        """
        for alike in (True, False):
            left = []
            for gang, former in self.renamed:
                free = [
                    group
                    for group in former
                    if group.spot not in self.brought
                    and (group.namespace or self.world.options.namespace, group.name) not in self.needed
                    and (not alike or podgroup.is_renamed_alike(group, gang))
                ]
                if len(free) == 1:
                    self.brought.add(free[0].spot)
                    self.changes.append(Replace(free[0].spot, self.value(gang, free[0])))
                else:
                    left.append((gang, former))
            self.renamed = left
        self.changes.extend(Add(gang.workload.before, self.value(gang)) for gang, _ in self.renamed)

    def value(self, gang: Gang, former: PodGroup | None = None) -> Pairs:
        """Return the PodGroup of a gang, in place of a former one if there is one."""
        return podgroup.value(gang, self.world.options.sync_wave, former)

    def conflict(self, gang: Gang, found: PodGroup, why: str, remedy: str) -> None:
        finding = Finding(
            "podgroup-conflict",
            f"{podgroup.made_for(gang.workload)} needs a PodGroup of this name, but {why}",
            remedy,
            Ref(keys.POD_GROUP_KIND, found.namespace, found.name),
            place=self.place(found.file, found.spot, found.at),
        )
        self.findings.append(finding)

    def stream(self) -> None:
        """Say what is true of the stream as a whole."""
        for finding, layer, index in self.world.findings:
            place = self.place(layer.file, layer.spot, index) if layer is not None else None
            self.findings.append(finding._replace(place=place))
        if self.version_matters and self.world.ome is None:
            self.findings.append(_NOT_SAID)
        if self.needed:
            self.findings.extend(_refused_by_cluster(self.world, len(self.needed), self.native))
        refused = any(finding.severity == ERROR for finding in self.findings)
        for where, groups in self.groups.items() if not refused else ():
            for group in groups if where not in self.needed else ():
                if group.made_for and group.spot not in self.brought:
                    message = f"it was made for {group.made_for}, which needs no PodGroup of this name"
                    ref = Ref(keys.POD_GROUP_KIND, group.namespace, group.name)
                    place = self.place(group.file, group.spot, group.at)
                    self.findings.append(Finding("stale-podgroup", message, "remove it", ref, place=place))


_NOT_SAID = Finding(
    "ome-not-said",
    "which OME runs these is not said; the PodGroups are those that OME documents for 1.3",
    "say it with --ome VERSION",
)


def _refused_by_cluster(world: World, count: int, native: int) -> list[Finding]:
    """Return what speaks against deploying PodGroups, some for OMENative, to the cluster whose API list is known."""
    many = "a PodGroup" if count == 1 else f"{count:,} PodGroups"
    if not world.serves_pod_groups:
        message = f"the cluster does not serve podgroups.scheduling.x-k8s.io, and {many} would be deployed"
        return [Finding("podgroup-crd-missing", message, "install the PodGroup CRD first")]
    if native and world.ome_makes_pod_groups:
        many = "a PodGroup" if native == 1 else f"{native:,} PodGroups"
        message = f"the cluster's OME makes PodGroups itself, and would take {many} of the same name for another's"
        return [Finding("ome-owns-podgroups", message, "say --ome 1.3, or --podgroups omit")]
    return []


def _two_namespaces(name: str, other: str) -> Finding:
    message = f"{name!r} is a PodGroup in {other!r} too; the PodGroup controller counts the pods of both for each"
    return Finding("same-name-two-namespaces", message, "give the services different names")


@cache
def _unresolved(missing: str, name: str, field: str) -> Finding:
    """Return the finding, made once a runtime: thousands of services name a few."""
    give = "write those fields out"
    if field == "spec.runtime":
        give = f"{'give it as --context' if name else 'name one'}, or write those fields into the service"
    return Finding(
        "runtime-unresolved",
        f"{missing} is not read: what it says of mode, size, timeout, topology or scheduler does not count here",
        give,
        field=field,
    )


def _pinned(name: str) -> Finding:
    return Finding(
        "runtime-pinned",
        f"the service is pinned to a stored revision of {name!r}, which may differ from the one that was read",
        "compare the two, or let the service follow its runtime",
        field="spec.runtime.autoSync",
    )


def plan(
    workloads: Iterable[Workload],
    sets: Sequence[LeaderWorkerSet | Autoscaler],
    groups: Sequence[PodGroup],
    world: World,
    place: Placer,
    keep: bool = True,
) -> Plan:
    """Return the plan for a whole stream; without what was decided, which holds every value, if `keep` is False.

    `sets` are the LeaderWorkerSets of the stream and what scales them, if they are to be ganged.
    """
    planner = _Planner(groups, world, place, keep)
    for workload in workloads:
        if planner.first(workload):
            planner.workload(workload)
    scalers = {
        (one.namespace or world.options.namespace, one.target): one for one in sets if isinstance(one, Autoscaler)
    }
    for one in sets:
        if not isinstance(one, Autoscaler) and planner.first(one):
            planner.leader_worker_set(one, scalers.get((one.namespace or world.options.namespace, one.name)))
    planner.rename()
    planner.stream()
    return Plan(tuple(planner.decided), tuple(planner.changes), tuple(planner.findings))
