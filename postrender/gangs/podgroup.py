"""A gang -> its PodGroup as a value; how two PodGroups are compared."""

from __future__ import annotations

from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..manifests.change import Pairs, Value
    from .shapes.omenative import Gang


def value(gang: Gang) -> Pairs:
    """Return the PodGroup of a gang: the fields that OME writes and our annotation, nothing a controller would."""
    service = gang.service
    metadata: list[tuple[str, Value]] = [("name", gang.name)]
    if service.namespace:
        metadata.append(("namespace", service.namespace))
    metadata.append(
        (
            "labels",
            (
                (keys.COMPONENT, gang.component.name),
                (keys.SERVICE, service.name),
                (keys.INSTANCE_INDEX, str(gang.number)),
                (keys.MANAGED_BY, keys.OME_NATIVE),
            ),
        )
    )
    annotations: list[tuple[str, Value]] = []
    if gang.topology_key:
        annotations.append((keys.TOPOLOGY_KEY, gang.topology_key))
    annotations.append((keys.MADE_FOR, made_for(gang)))
    metadata.append(("annotations", tuple(annotations)))
    spec: list[tuple[str, Value]] = [("minMember", gang.min_member)]
    if gang.schedule_timeout_seconds is not None:
        spec.append(("scheduleTimeoutSeconds", gang.schedule_timeout_seconds))
    return (
        ("apiVersion", keys.SCHEDULING),
        ("kind", keys.POD_GROUP_KIND),
        ("metadata", tuple(metadata)),
        ("spec", tuple(spec)),
    )


def made_for(gang: Gang) -> str:
    """Return what our annotation says of a gang's PodGroup."""
    return f"{keys.INFERENCE_SERVICE}/{gang.service.name}"


def ordered(pairs: Value, without: str = "") -> object:
    """Return a value with its keys sorted, so that order does not count; `without` one annotation."""
    if not isinstance(pairs, tuple):
        return pairs
    members = [(key, ordered(held, without)) for key, held in pairs if key != without]
    return tuple(sorted((key, held) for key, held in members if held != () or key != "annotations"))
