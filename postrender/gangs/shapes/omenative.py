"""OMENative: OME runs each Instance of a component itself, and names its PodGroup `<service>-<component>-<index>`.

Rules and their order are OME's (v1.3): mode by the component's annotation, the service's `deploymentMode`, the shape;
an Instance is multi-pod if leader and worker are both there; minMember = 1 + worker.size.
"""

from __future__ import annotations

from ...findings import Finding
from ...manifests.objects import shorten
from ...record import Record
from .. import keys, lifecycle, names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...options import Options
    from ..resources import Component, InferenceService

# Above this a service has more Instances than any scheduler should be handed from one manifest.
MOST_INSTANCES = 1_000
_MOST_WORKERS = 2**31 - 2  # minMember is an int32


class Gang(Record):
    """The pods of one Instance: the name of its PodGroup and what goes into it."""

    service: InferenceService
    component: Component
    number: int
    name: str
    min_member: int
    schedule_timeout_seconds: int | None
    topology_key: str


class Shape(Record):
    """What a component comes to: its gangs, and findings each with the code point of the value that caused it."""

    gangs: tuple[Gang, ...]
    findings: tuple[tuple[Finding, int], ...]


def told(service: InferenceService, component: Component) -> str:
    """Return the deployment mode that the service tells for a component, or an empty string; then its shape decides."""
    if component.mode is not None and component.mode.value in keys.COMPONENT_MODES:
        return str(component.mode.value)
    return service.mode if service.mode in keys.SERVICE_MODES else ""


def shape(service: InferenceService, component: Component, options: Options) -> Shape:
    """Return the gangs of one component."""
    if told(service, component) not in ("", keys.OME_NATIVE):
        return Shape((), ())
    if not (component.leader and component.worker and component.size is not None):
        return _unknown(service, component)
    field = f"spec.{component.name}."
    size = int(component.size.value)
    if not 1 <= size <= _MOST_WORKERS:
        message = f"is {size:,}; OME takes 1 to {_MOST_WORKERS:,} workers"
        return _invalid(
            field + "worker.size", message, "write how many workers stand beside the leader", component.size.at
        )
    replicas = max(1, int(component.min_replicas.value)) if component.min_replicas else 1
    if component.min_replicas and replicas > MOST_INSTANCES:
        finding = Finding(
            "too-many-instances",
            f"is {replicas:,}; more than {MOST_INSTANCES:,} PodGroups for one component are refused",
            "lower it, or split the service",
            field=field + "minReplicas",
        )
        return Shape((), ((finding, component.min_replicas.at),))
    ready, at = options.ready_timeout, component.at
    try:
        if component.ready_timeout is not None:
            at = component.ready_timeout.at
            written = lifecycle.parse(str(component.ready_timeout.value))
            ready = written if written > 0 else ready
        timeout = lifecycle.schedule_timeout(ready, options.timeout_min, options.timeout_max)
    except ValueError as error:
        value = component.ready_timeout.value if component.ready_timeout else ""
        message = f"{shorten(str(value))!r} is no duration: {error}"
        return _invalid(field + "lifecycle.instanceReadyTimeout", message, "write one such as 90s, 30m or 1h30m", at)
    key = str(component.topology_key.value) if component.topology_key else ""
    gangs = tuple(
        Gang(service, component, number, names.pod_group(service.name, component.name, number), 1 + size, timeout, key)
        for number in range(replicas)
    )
    return Shape(gangs, ())


def _invalid(field: str, message: str, remedy: str, index: int) -> Shape:
    return Shape((), ((Finding("invalid-field", message, remedy, field=field), index),))


def _unknown(service: InferenceService, component: Component) -> Shape:
    finding = Finding(
        "gang-unknown",
        f"how many pods an Instance has is for {named_runtime(service)} to say, which is not read; taken for one pod",
        f"write leader and worker with a size into spec.{component.name}",
        field=f"spec.{component.name}",
    )
    return Shape((), ((finding, component.at),))


def named_runtime(service: InferenceService) -> str:
    """Return how messages name the runtime of a service."""
    return f"the runtime {service.runtime!r}" if service.runtime else "the runtime that OME will choose"
