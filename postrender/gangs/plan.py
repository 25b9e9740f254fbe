"""All services of a stream + options -> gangs, changes and findings."""

from __future__ import annotations

from functools import cache

from ..findings import Finding, Ref
from ..manifests.change import Add, Replace, Set
from ..manifests.objects import shorten
from ..record import Record
from . import keys, names, podgroup
from .shapes import omenative

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..findings import Place
    from ..manifests.change import Change, Spot
    from ..options import Options
    from .resources import Component, InferenceService, PodGroup
    from .shapes.omenative import Gang


class Plan(Record):
    """What is to happen to a stream, and what is to be said of it."""

    gangs: tuple[Gang, ...]
    changes: tuple[Change, ...]
    findings: tuple[Finding, ...]


class _Planner:
    """Collects the plan; `place` turns a spot and a code point into a place."""

    def __init__(self, groups: Sequence[PodGroup], options: Options, place: Callable[[Spot, int], Place]) -> None:
        self.options = options
        self.place = place
        self.groups: dict[tuple[str, str], list[PodGroup]] = {}
        for group in groups:
            self.groups.setdefault((group.namespace, group.name), []).append(group)
        self.gangs: list[Gang] = []
        self.changes: list[Change] = []
        self.findings: list[Finding] = []

    def say(self, service: InferenceService, finding: Finding, index: int) -> None:
        ref = Ref(keys.INFERENCE_SERVICE, service.namespace, service.name)
        self.findings.append(finding._replace(ref=ref, place=self.place(service.spot, index)))

    def component(self, service: InferenceService, component: Component) -> None:
        shape = omenative.shape(service, component, self.options)
        for finding, index in shape.findings:
            self.say(service, finding, index)
        for gang in shape.gangs:
            self.pod_group(gang)
        if shape.gangs:
            self.label(service, component, shape.gangs)
        self.gangs.extend(shape.gangs)

    def pod_group(self, gang: Gang) -> None:
        """Add the PodGroup of a gang, or compare it with the one that stands there."""
        wanted = podgroup.value(gang)
        found, *others = self.groups.get((gang.service.namespace, gang.name), (None,))
        if found is None:
            self.changes.append(Add(gang.service.before, wanted))
        elif others:
            self.conflict(gang, others[0], "it stands twice in the stream", "remove one of the two")
        elif podgroup.equal(found.value, wanted):
            pass
        elif found.made_for == podgroup.made_for(gang):
            self.changes.append(Replace(found.spot, wanted))
        else:
            why = f"it was made for {found.made_for}" if found.made_for else podgroup.difference(found.value, wanted)
            self.conflict(gang, found, why, "remove or rename it, or make it what the service needs")

    def conflict(self, gang: Gang, found: PodGroup, why: str, remedy: str) -> None:
        finding = Finding(
            "podgroup-conflict",
            f"{podgroup.made_for(gang)} needs a PodGroup of this name, but {why}",
            remedy,
            Ref(keys.POD_GROUP_KIND, found.namespace, found.name),
            place=self.place(found.spot, found.at),
        )
        self.findings.append(finding)

    def label(self, service: InferenceService, component: Component, gangs: Sequence[Gang]) -> None:
        """Put the label on the component's pods; several Instances share it, so there each pod's own must do."""
        path = ("spec", component.name, "labels", keys.POD_GROUP)
        held = component.pod_group
        if held is not None and not names.is_pod_group(str(held.value), service.name, component.name):
            finding = Finding(
                "label-taken",
                f"is {shorten(str(held.value))!r}, {_whose(str(held.value), service)}",
                "remove it, or leave this service to whoever set it",
                field=f"spec.{component.name}.labels[{keys.POD_GROUP}]",
            )
            self.say(service, finding, held.at)
        elif len(gangs) == 1:
            self.changes.append(Set(service.spot, path, gangs[0].name))
        else:
            finding = Finding(
                "several-instances",
                f"{len(gangs)} Instances share one set of labels, so none can name its PodGroup there;"
                " OMENative labels each pod itself",
                "make sure that OME 1.3 runs this service as OMENative",
                field=f"spec.{component.name}.minReplicas",
            )
            self.say(service, finding, component.min_replicas.at if component.min_replicas else component.at)


def _whose(label: str, service: InferenceService) -> str:
    """Return what is wrong with a label that is not the component's."""
    other = any(names.is_pod_group(label, service.name, name) for name in keys.COMPONENTS)
    return "the PodGroup of another component" if other else "no PodGroup of this service"


@cache
def _unresolved(runtime: str) -> Finding:
    """Return the finding, made once a runtime: thousands of services name a few."""
    return Finding(
        "runtime-unresolved",
        f"{runtime} is not read: what it says of mode, timeout or topology is not in the PodGroup",
        "write those fields into the service where the runtime sets them",
        field="spec.runtime",
    )


def plan(
    services: Sequence[InferenceService],
    groups: Sequence[PodGroup],
    options: Options,
    place: Callable[[Spot, int], Place],
) -> Plan:
    """Return the plan for a whole stream."""
    planner = _Planner(groups, options, place)
    seen: dict[tuple[str, str], InferenceService] = {}
    for service in services:
        first = seen.setdefault((service.namespace, service.name), service)
        if first is not service:
            finding = Finding(
                "duplicate-service",
                f"the service stands twice; the first is on line {place(first.spot, first.at).line}",
                "remove or rename one of the two",
            )
            planner.say(service, finding, service.at)
            continue
        known = len(planner.gangs)
        for component in service.components:
            planner.component(service, component)
        if len(planner.gangs) > known:
            planner.say(service, _unresolved(omenative.named_runtime(service)), service.runtime_at)
    return Plan(tuple(planner.gangs), tuple(planner.changes), tuple(planner.findings))
