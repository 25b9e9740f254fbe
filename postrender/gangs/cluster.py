"""What is known of a cluster: OME's settings, from its ConfigMap or its chart's values, and our `Cluster` document."""

from __future__ import annotations

from ..manifests.change import Spot
from ..manifests.objects import Found, View
from ..manifests.tree import MAP, Unfit
from ..record import Record
from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..manifests.tree import Node

# The file of an object that stands in the stream itself; the files of a context are counted from 1.
STREAM = 0

READY = "instanceReadyTimeout"
CLAMP = "gangScheduleTimeout"
LEAST = f"{CLAMP}.min"
MOST = f"{CLAMP}.max"


class Lifecycle(Record):
    """OME's settings, from its ConfigMap (`whole`: what it lacks is unset) or from the values of its chart.

    `said` holds durations as they are written, an empty one where a null turns it off, by READY, LEAST and MOST;
    `invalid` is why none of it counts, or empty.
    """

    file: int
    spot: Spot
    at: int
    title: str
    whole: bool
    said: tuple[tuple[str, Found], ...]
    invalid: str = ""


class Cluster(Record):
    """A `Cluster` document: the versions and the API list of the cluster that a context was taken from."""

    file: int
    spot: Spot
    at: int
    ome: Found | None
    api_versions: tuple[str, ...]


def config_map(file: int, spot: Spot, root: View, name: Found | None) -> Lifecycle | None:
    """Return what OME reads of its ConfigMap: one number or a slip in the JSON, and nothing of it counts."""
    if name is None or name.value != keys.OME_CONFIG:
        return None
    data = root.map("data")
    text = data.text(keys.LIFECYCLE) if data else None
    at = text.at if text else root.index
    found = Lifecycle(file, spot, at, f"the ConfigMap {keys.OME_CONFIG}", True, ())
    if text is None:
        return found
    try:
        held = _json(str(text.value))
        if held is None:
            return found
        clamp = _json_object(held.get(CLAMP.lower()))
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return found._replace(invalid=f"it is no JSON: {reason}")
    said = {READY: held.get(READY.lower()), LEAST: clamp.get("min"), MOST: clamp.get("max")}
    for field, value in said.items():
        if value is not None and not isinstance(value, str):
            return found._replace(invalid=f"{field} is not a duration in quotes")
    return found._replace(said=tuple((field, Found(value, at)) for field, value in said.items() if value))


def _json(text: str) -> dict[str, Any] | None:
    """Return a JSON object as Go reads it: keys in any case, and no NaN; None for null."""
    import json

    def refuse(word: str) -> None:
        raise ValueError(f"{word} stands in it")

    # A number is wrong wherever it stands, so no digit of it is read as one.
    held = json.loads(text, parse_constant=refuse, parse_int=float, parse_float=float)
    return None if held is None else _json_object(held)


def _json_object(held: object) -> dict[str, Any]:
    """Return an object with its keys in lower case, an empty one for null; raises ValueError for anything else."""
    if held is None:
        return {}
    if not isinstance(held, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - of the text, like the others
    return {key.lower(): value for key, value in held.items()}


def chart_values(file: int, root: Node | None) -> Lifecycle:
    """Return what a values file of OME's chart says at `ome.controller.lifecycle`; a null turns a setting off."""
    if root is not None and not root.null() and root.kind != MAP:
        raise Unfit("invalid-field", root.start, "the values are no map", "give it the values file of OME's chart")
    view = View(root) if root is not None and not root.null() else None
    found = Lifecycle(file, Spot(0), view.index if view else 0, "the chart's values", False, ())
    for key in ("ome", "controller"):
        view = view.map(key) if view else None
    if view is None or not view.says(keys.LIFECYCLE):
        return found
    said: list[tuple[str, Found]] = []
    lifecycle = view.map(keys.LIFECYCLE)
    if lifecycle is None:
        return found._replace(said=tuple((field, Found("", view.index)) for field in (READY, LEAST, MOST)))
    try:
        _say(said, lifecycle, READY, READY)
        clamp = lifecycle.map(CLAMP)
        if clamp is not None:
            _say(said, clamp, "min", LEAST)
            _say(said, clamp, "max", MOST)
        elif lifecycle.says(CLAMP):
            said.extend((field, Found("", lifecycle.index)) for field in (LEAST, MOST))
    except Unfit as unfit:
        return found._replace(at=unfit.index, invalid=f"{unfit.field} {unfit.message}")
    return found._replace(said=tuple(said))


def _say(said: list[tuple[str, Found]], view: View, key: str, field: str) -> None:
    if view.says(key):
        said.append((field, view.text(key, "a duration such as 30m") or Found("", view.index)))


def document(file: int, spot: Spot, root: View) -> Cluster:
    """Return what a `Cluster` document says."""
    spec = root.map("spec")
    if spec is None:
        return Cluster(file, spot, root.index, None, ())
    versions = spec.words("apiVersions") or ()
    return Cluster(file, spot, root.index, spec.written("omeVersion"), tuple(str(found.value) for found in versions))
