"""A gang -> its PodGroup as a value; how two PodGroups are compared."""

from __future__ import annotations

from ..manifests.objects import field, shorten
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


def equal(found: Value | None, wanted: Pairs) -> bool:
    """Return whether a PodGroup in the stream is what a gang needs, our annotation and the order of keys aside."""
    return found is not None and _leaves(found) == _leaves(wanted)


def difference(found: Value | None, wanted: Pairs) -> str:
    """Return in words how a PodGroup in the stream differs from what a gang needs, for a person to see."""
    if found is None:
        return "it holds more than a PodGroup of ours would"
    there, needed = _leaves(found), _leaves(wanted)
    for path in (*needed, *there):
        held, need = there.get(path), needed.get(path)
        if held != need:
            name = field(path)
            if need is None:
                return f"{name} is there"
            return f"{name} is missing" if held is None else f"{name} is {shorten(str(held))}, not {need}"
    return "it differs"


def _leaves(value: Value, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Value]:
    """Return the scalars of a value by their paths, our annotation left out."""
    if not isinstance(value, tuple) or not value:
        return {path: value}
    leaves = {}
    for key, held in value:
        if key != keys.MADE_FOR:
            leaves.update(_leaves(held, (*path, key)))
    return leaves
