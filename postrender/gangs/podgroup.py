"""A gang -> its PodGroup as a value; what a service's own annotations imply; how two PodGroups are compared."""

from __future__ import annotations

from ..manifests.objects import field, shorten
from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..manifests.change import Pairs, Value
    from .resources import LeaderWorkerSet, PodGroup, Workload
    from .shapes.shape import Gang


def value(gang: Gang, wave: str = "", former: PodGroup | None = None) -> Pairs:
    """Return the PodGroup of a gang: the fields that OME writes and our annotations, nothing a controller would.

    `wave` is its Argo CD sync wave where its service implies none. Of a former one that it replaces it keeps by what
    others know that: the template that Helm 4 says it is from, and the bookkeeping of kustomize and kpt.
    """
    workload = gang.workload
    metadata: list[tuple[str, Value]] = [("name", gang.name)]
    if workload.namespace:
        metadata.append(("namespace", workload.namespace))
    metadata.append(("labels", gang.labels))
    annotations: list[tuple[str, Value]] = []
    if gang.topology_key:
        annotations.append((keys.TOPOLOGY_KEY, gang.topology_key))
    annotations.append((keys.MADE_FOR, made_for(workload)))
    if workload.annotations:
        implied = dict(workload.annotations)
        if former is not None and former.filename:
            implied[keys.FILENAME] = former.filename
        annotations.extend(_implied(implied))
    # Where there is no wave, Argo CD takes the weight of a hook for one.
    if wave and not {_WAVE, _HOOK} & dict(annotations).keys():
        annotations.append((_WAVE, wave))
    if former is not None:
        annotations.extend(former.kept)
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


def made_for(workload: Workload | LeaderWorkerSet) -> str:
    """Return what our annotation says of a PodGroup: whom it was made for."""
    return f"{workload.kind}/{workload.name}"


def made_for_before(workload: Workload | LeaderWorkerSet) -> tuple[str, ...]:
    """Return what it says of a PodGroup that was made when the object had another name."""
    return tuple(f"{workload.kind}/{name}" for name in workload.earlier)


def is_same(group: PodGroup, gang: Gang) -> bool:
    """Return whether a PodGroup that was made for the gang's object, under another name of it, is the gang's.

    A component's has labels that say which; a LeaderWorkerSet's has nothing but its name.
    """
    if gang.merged is not None:
        labels = dict(gang.labels)
        return group.slot == (labels[keys.COMPONENT], labels[keys.INSTANCE_INDEX])
    tail = gang.name.removeprefix(gang.workload.name)
    return any(name + tail in (group.name, *group.earlier) for name in gang.workload.earlier)


def is_renamed_alike(group: PodGroup, gang: Gang) -> bool:
    """Return whether the same prefix and suffix have led from earlier names to those of a PodGroup and its object."""
    name = gang.workload.name
    for earlier in gang.workload.earlier:
        at = name.find(earlier)
        while at >= 0:
            before, behind = name[:at], name[at + len(earlier) :]
            if any(before + one + behind == group.name for one in group.earlier):
                return True
            at = name.find(earlier, at + 1)
    return False


# What a service's annotations imply for its PodGroup, which must live as long, go where it goes, and be there first.


def _same(text: str) -> str:
    return text


def _weight_before(text: str) -> str:
    """Return a hook weight one lower; Helm takes what is no number for 0."""
    return str((_integer(text) or 0) - 1)


def _wave_before(text: str) -> str:
    """Return the wave before; none for what is no number, which Argo CD passes over."""
    wave = _integer(text)
    return "" if wave is None else str(wave - 1)


def _kept(text: str) -> str:
    """Return the sync options that keep an object from being removed; the others speak of how it is applied."""
    options = [option.strip() for option in text.split(",")]
    return ",".join(option for option in options if option in ("Prune=false", "Delete=false"))


_HOOK = "helm.sh/hook"
_WAVE = "argocd.argoproj.io/sync-wave"
_IMPLIED: dict[str, Callable[[str], str]] = {
    _HOOK: _same,
    "helm.sh/hook-weight": _weight_before,
    "helm.sh/hook-delete-policy": _same,
    "helm.sh/hook-output-log-policy": _same,
    "helm.sh/resource-policy": _same,
    _WAVE: _wave_before,
    "argocd.argoproj.io/sync-options": _kept,
    keys.FILENAME: _same,
}
IMPLYING = tuple(_IMPLIED)


def _implied(said: dict[str, str]) -> list[tuple[str, str]]:
    """Return the annotations that those of a service imply; a hook without a weight has 0."""
    if _HOOK in said:
        said.setdefault("helm.sh/hook-weight", "0")
    implied = ((key, imply(said[key])) for key, imply in _IMPLIED.items() if key in said)
    return [(key, text) for key, text in implied if text]


def _integer(text: str) -> int | None:
    """Return what Go's strconv.Atoi makes of a text, or None where it fails."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        return None
    return int(text)


def equal(found: Value | None, wanted: Pairs) -> bool:
    """Return whether a PodGroup in the stream is what a gang needs, the order of keys and its origin aside."""
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
    """Return the scalars of a value by their paths, without our annotation and those by which others know it again."""
    if not isinstance(value, tuple) or not value:
        return {path: value}
    leaves = {}
    for key, held in value:
        if key not in (keys.MADE_FOR, keys.FILENAME) and not key.startswith(keys.BOOKKEEPING):
            leaves.update(_leaves(held, (*path, key)))
    return leaves
