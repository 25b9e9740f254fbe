"""All services of a stream + options -> gangs, changes and findings."""

from __future__ import annotations

from ..findings import Finding, Ref
from ..manifests.change import Add, Replace, Set
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
        self.groups = {(group.namespace, group.name): group for group in groups}
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
        found = self.groups.get((gang.service.namespace, gang.name))
        if found is None:
            self.changes.append(Add(gang.service.spot, wanted))
        elif podgroup.ordered(wanted, keys.MADE_FOR) == _without(found.value):
            pass  # equal but for our annotation
        elif found.made_for == podgroup.made_for(gang):
            self.changes.append(Replace(found.spot, wanted))
        else:
            finding = Finding(
                "podgroup-conflict",
                f"the PodGroup {gang.name!r} of this gang is in the stream already, is not ours, and differs",
                "remove or rename it, or make it equal",
                Ref(keys.POD_GROUP_KIND, found.namespace, found.name),
                "metadata.name",
                self.place(found.spot, found.at),
            )
            self.findings.append(finding)

    def label(self, service: InferenceService, component: Component, gangs: Sequence[Gang]) -> None:
        """Put the label on the component's pods; several Instances share it, so there each pod's own must do."""
        path = ("spec", component.name, "labels", keys.POD_GROUP)
        held = component.pod_group
        if held is not None and not names.is_pod_group(str(held.value), service.name, component.name):
            finding = Finding(
                "label-taken",
                f"the pods carry the label {keys.POD_GROUP} with the value {held.value!r}, which is not ours",
                "remove the label, or leave this service to whoever set it",
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


def _without(value: object) -> object:
    return podgroup.ordered(value, keys.MADE_FOR)  # type: ignore[arg-type]


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
        for component in service.components:
            planner.component(service, component)
    return Plan(tuple(planner.gangs), tuple(planner.changes), tuple(planner.findings))
