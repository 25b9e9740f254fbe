"""The change of a render as JSON6902 patches (RFC 6902), for those who cannot run a program between rendering and
applying: Flux's helm-controller, whose post-renderers know patches alone, and a plain kustomization.

PodGroups cannot be patched in, so they stand in a file beside the patches. The only importer of jsonpatch.
"""

from __future__ import annotations

import jsonpatch

from ..findings import Refusal
from ..gangs import keys
from ..gangs.resources import Autoscaler
from ..manifests import edit, stream, tree, write
from ..manifests.change import Add, Replace, Set
from ..manifests.lookup import find, is_merge
from ..manifests.overlay import holds
from ..pipeline import decide, read, render
from ..record import Record
from .folder import File

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..findings import Finding
    from ..gangs.plan import Plan
    from ..manifests.change import Change, Pairs, Spot, Value
    from ..manifests.tree import Node
    from ..options import Options
    from ..pipeline import Stream

FLUX = "flux"
KUSTOMIZE = "kustomize"

_PODGROUPS = "podgroups.yaml"
_KUSTOMIZATION = "kustomization.yaml"
_RELEASE = "helmrelease.yaml"
_NEWLINE = "\n"
_SETS = "leaderworkerset.x-k8s.io"
# An object that writes no namespace has this one, to kustomize's selectors.
_NO_NAMESPACE = "default"


class Patches(Record):
    """The files that hold the change, none if a finding is an error; and the findings, in the order of the stream."""

    files: tuple[File, ...]
    findings: tuple[Finding, ...]
    refused: bool


class _Patch(Record):
    """What one object is changed by: which it is, and operations that hold for it."""

    target: Pairs
    operations: tuple[Pairs, ...]


def patches(data: bytes, options: Options, form: str, release: str) -> Patches:
    """Return the change that `render` would make of `data`, in the form of Flux or of kustomize.

    `release` is the name of the HelmRelease that the patches go into. Refused is what `render` refuses.
    """
    rendered = render(data, options)
    if rendered.refused:
        return Patches((), rendered.findings, True)
    found = read(data, options)
    planned = decide(found, options)
    try:
        made = tuple(_patches(found, planned))
    except Refusal as refusal:
        return Patches((), (*rendered.findings, refusal.finding), True)
    groups = b"---\n".join(
        write.block(change.value, 0, _NEWLINE).encode() for change in planned.changes if isinstance(change, Add)
    )
    files = (*_FORMS[form](made, release), File(_PODGROUPS, groups))
    return Patches(files, rendered.findings, False)


def document(files: tuple[File, ...]) -> bytes:
    """Return files as one stream to look at, each under its name."""
    return b"---\n".join(f"# {file.name}\n".encode() + file.data for file in files)


def _patches(found: Stream, planned: Plan) -> Iterator[_Patch]:
    """Yield a patch for each object that is changed, in the order of the stream."""
    changes: dict[Spot, list[Change]] = {}
    for change in planned.changes:
        if not isinstance(change, Add):
            changes.setdefault(change.spot, []).append(change)
    targets = _targets(found)
    for spot, node in _nodes(found, sorted(changes)):
        try:
            operations = _operations(node.resolved(), changes[spot])
        except tree.Unfit as unfit:
            raise edit.refusal(unfit, stream.Places(found.data, found.spans), spot.span) from None
        if operations:
            yield _Patch(targets[spot], operations)


def _nodes(found: Stream, spots: list[Spot]) -> Iterator[tuple[Spot, Node]]:
    """Yield the objects at these spots, as nodes that do not outlive their turn."""
    wanted: dict[int, dict[int, Spot]] = {}
    for spot in spots:
        wanted.setdefault(spot.span, {})[spot.item] = spot
    for number, items in wanted.items():
        text = stream.document(found.data, found.spans[number])
        for item, node in tree.nodes(text, max(items) >= 0):
            if item in items:
                yield items[item], node


def _targets(found: Stream) -> dict[Spot, Pairs]:
    """Return how kustomize selects each object that may be changed, and none other.

    Without the version, which does not tell objects apart and which a chart may raise. The namespace is said where the
    object writes one, and where another of its name does.
    """
    held = [(keys.OME_GROUP, one.kind, one.namespace, one.name, one.spot) for one in found.workloads]
    for one in found.sets:
        if not isinstance(one, Autoscaler):
            held.append((_SETS, one.kind, one.namespace, one.name, one.spot))
    group, _, _ = keys.SCHEDULING.partition("/")
    held += [(group, keys.POD_GROUP_KIND, one.namespace, one.name, one.spot) for one in found.pod_groups]
    namespaces: dict[tuple[str, str], set[str]] = {}
    for _, kind, namespace, name, _ in held:
        namespaces.setdefault((kind, name), set()).add(namespace)
    targets: dict[Spot, Pairs] = {}
    for group, kind, namespace, name, spot in held:
        if not namespace and len(namespaces[kind, name]) > 1:
            namespace = _NO_NAMESPACE
        target: list[tuple[str, Value]] = [("group", _exactly(group)), ("kind", kind), ("name", _exactly(name))]
        if namespace:
            target.append(("namespace", _exactly(namespace)))
        targets[spot] = tuple(target)
    return targets


def _exactly(text: str) -> str:
    """Return the regular expression of a group or a name; kustomize anchors it at both ends.

    Of what such a text may hold (RFC 1123; others are refused) only a dot means something else there.
    """
    return text.replace(".", "[.]")


def _operations(root: Node, changes: list[Change]) -> tuple[Pairs, ...]:
    """Return what makes the changes of an object: between what it holds where they touch it, and what it is to hold.

    Raises tree.Unfit for an object that is replaced and is written with a merge key, whose keys are not its own.
    """
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, Set):
            _lay(root, change, before, after)
        elif isinstance(change, Replace):
            after = _json(change.value)
            for key, _ in root.pairs():
                if is_merge(key):
                    message = "a PodGroup that needs another is written with a merge key, and cannot be patched"
                    raise tree.Unfit("edit-refused", key.start, message, "remove it, and one is made")
                before[key.value] = after[key.value] if key.value in ("apiVersion", "kind") else None
    # Each path stands alone, so their order is free; make_patch's own is that of a set, another in each run.
    made = sorted(jsonpatch.make_patch(before, after), key=_path)
    return tuple(_pairs(operation) for operation in made)


def _path(operation: dict[str, Any]) -> str:
    return str(operation["path"])


def _lay(node: Node | None, change: Set, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Lay what a change sets over `after`, and over `before` what stands on the way there.

    A scalar that is not what is set is None there, for it makes no difference what it is; a null counts as nothing.
    """
    for depth, key in enumerate(change.path, 1):
        entry = find(node, key) if node is not None else None
        node = entry.value.resolved() if entry is not None and not entry.value.resolved().null() else None
        if depth == len(change.path):
            after[key] = change.value
            if node is not None:
                before[key] = change.value if holds(node, change.value) else None
            return
        after = after.setdefault(key, {})
        if node is not None:
            before = before.setdefault(key, {})


def _json(value: Pairs) -> dict[str, Any]:
    return {key: _json(held) if isinstance(held, tuple) else held for key, held in value}


def _pairs(value: dict[str, Any]) -> Pairs:
    return tuple((key, _pairs(held) if isinstance(held, dict) else held) for key, held in value.items())


def _for_kustomize(made: tuple[_Patch, ...], _: str) -> tuple[File, ...]:
    """Return a component: what a kustomization takes in by naming its folder, patches and resources together."""
    head = _head("kustomize.config.k8s.io/v1alpha1", "Component")
    return (File(_KUSTOMIZATION, (head + f"resources:\n- {_PODGROUPS}\n" + _list(made, "")).encode()),)


def _for_flux(made: tuple[_Patch, ...], release: str) -> tuple[File, ...]:
    """Return a patch for a HelmRelease, to take in or to copy from; and a kustomization that leaves it out.

    Without one, Flux would apply every file of the folder.
    """
    text = _head("helm.toolkit.fluxcd.io/v2", "HelmRelease") + write.block(
        (("metadata", (("name", release),)),), 0, _NEWLINE
    )
    text += "spec:\n  postRenderers:\n  - kustomize:\n" + _list(made, " " * 6)
    head = _head("kustomize.config.k8s.io/v1beta1", "Kustomization")
    return (
        File(_RELEASE, text.encode()),
        File(_KUSTOMIZATION, f"{head}resources:\n- {_PODGROUPS}\n".encode()),
    )


_FORMS = {FLUX: _for_flux, KUSTOMIZE: _for_kustomize}


def _head(api_version: str, kind: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\n"


def _list(made: tuple[_Patch, ...], indent: str) -> str:
    """Return the list `patches` of a kustomization, which also is the one that Flux hands to kustomize."""
    if not made:
        return f"{indent}patches: []\n"
    lines = [f"{indent}patches:\n"]
    for patch in made:
        lines.append(f"{indent}- target:\n{write.block(patch.target, len(indent) + 4, _NEWLINE)}")
        lines.append(f"{indent}  patch: |\n")
        inner = " " * (len(indent) + 4)
        for operation in patch.operations:
            lines.append(f"{inner}- {write.block(operation, len(inner) + 2, _NEWLINE).lstrip()}")
    return "".join(lines)
