"""Objects as we need them: InferenceServices and PodGroups, as values with the places where they were written.

Reading refuses wrong types with the field and the place (tree.Unfit, `invalid-field`); it decides nothing.
"""

from __future__ import annotations

from ..manifests.change import Spot
from ..manifests.objects import View, plain, takes_any
from ..manifests.tree import Unfit
from ..record import Record
from . import keys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..manifests.change import Value
    from ..manifests.objects import Found, Item


class Component(Record):
    """What an InferenceService says of its engine or decoder; None where it says nothing.

    `at` is where the component stands; `leader` and `worker` say whether the blocks are there, empty ones too.
    """

    name: str
    at: int
    leader: bool
    worker: bool
    size: Found | None
    min_replicas: Found | None
    ready_timeout: Found | None
    topology_key: Found | None
    mode: Found | None
    pod_group: Found | None


class InferenceService(Record):
    """An InferenceService of OME; `namespace` is empty where it writes none, `before` is where new objects go."""

    spot: Spot
    before: Spot
    at: int
    namespace: str
    name: str
    runtime: str
    runtime_at: int
    mode: str
    components: tuple[Component, ...]


class PodGroup(Record):
    """A PodGroup in the stream: `made_for` is our annotation; `value` all of it, or None where it is none of ours."""

    spot: Spot
    at: int
    namespace: str
    name: str
    made_for: str
    value: Value | None


# How deep the fields lie that are read: spec, engine, lifecycle, instanceReadyTimeout.
DEPTH = 4


def read(span: int, item: Item) -> InferenceService | PodGroup:
    """Return the object of an item whose kind is wanted."""
    spot = Spot(span, item.number)
    root = View(item.root)
    metadata = root.map("metadata")
    name = metadata.text("name") if metadata else None
    if name is None or not name.value:
        generated = metadata is not None and metadata.text("generateName") is not None
        message = (
            "the server would make the name up, too late for the PodGroup" if generated else "the object has no name"
        )
        raise Unfit("invalid-field", root.index, message, "write a name", "metadata.name")
    namespace = _text(metadata, "namespace")
    if item.kind == keys.POD_GROUP_KIND:
        made_for = _text(metadata.map("annotations") if metadata else None, keys.MADE_FOR)
        return PodGroup(spot, root.index, namespace, str(name.value), made_for, plain(item.root))
    spec = root.map("spec")
    runtime = spec.map("runtime") if spec else None
    found = ((key, spec.map(key) if spec else None) for key in keys.COMPONENTS)
    return InferenceService(
        spot,
        spot if takes_any(item.list_kind) else Spot(span),
        root.index,
        namespace,
        str(name.value),
        _text(runtime, "name"),
        runtime.index if runtime else root.index,
        _text(spec, "deploymentMode"),
        tuple(_component(key, view) for key, view in found if view is not None),
    )


def _component(name: str, view: View) -> Component:
    worker = view.map("worker")
    lifecycle = view.map("lifecycle")
    annotations = view.map("annotations")
    labels = view.map("labels")
    return Component(
        name,
        view.index,
        view.map("leader") is not None,
        worker is not None,
        worker.integer("size") if worker else None,
        view.integer("minReplicas"),
        lifecycle.text("instanceReadyTimeout", "a duration such as 30m") if lifecycle else None,
        view.text("topologyKey"),
        annotations.text(keys.DEPLOYMENT_MODE) if annotations else None,
        labels.text(keys.POD_GROUP) if labels else None,
    )


def _text(view: View | None, key: str) -> str:
    found = view.text(key) if view else None
    return str(found.value) if found else ""
