"""The functionConfig of a KRM function: a `Gangs` of our own, or the ConfigMap that kpt makes of `key=value` words."""

from __future__ import annotations

from ..gangs import keys
from ..manifests.objects import View
from ..manifests.tree import MAP, Unfit
from ..options import FUNCTION, TABLE
from ..sources import Given, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..manifests.tree import Node

_ENVELOPE = ("apiVersion", "kind", "metadata")
# Which kinds are taken, and where each holds the options.
_HOLDERS = {(keys.OUR_VERSION, keys.GANGS): "spec", ("v1", keys.CONFIG_MAP): "data"}


def read(node: Node) -> Mapping[str, Given]:
    """Return what a functionConfig gives for the options of the table and for `mode` and `files`, by their names.

    An empty one gives nothing. Raises Unfit, with the field, for another kind, an unknown key, or a wrong type. Its
    metadata is the business of who calls us.
    """
    if node.null():
        return {}
    if node.kind != MAP:
        raise Unfit("invalid-field", node.start, "the functionConfig is no object", _REMEDY)
    view = View(node)
    names = view.own_keys()
    if not names:
        return {}
    api_version, kind = view.text("apiVersion"), view.text("kind")
    said = (str(api_version.value) if api_version else "", str(kind.value) if kind else "")
    holder = _HOLDERS.get(said)
    if holder is None:
        message = f"is {said[1] or 'no kind'} of {said[0] or 'no apiVersion'}" if any(said) else "is not said"
        raise Unfit("invalid-field", kind.at if kind else node.start, message, _REMEDY, "kind")
    for name, at in names:
        if name not in (*_ENVELOPE, holder):
            raise Unfit("invalid-field", at, "there is no such field", f"write options under {holder}", name)
    inner = view.map(holder)
    if inner is None:
        return {}
    if holder == "data":
        for name, _ in inner.own_keys():
            inner.text(name)  # a ConfigMap holds nothing but strings
    return {
        name: Given(words, f"functionConfig: {holder}.{name}", field=f"{holder}.{name}", at=at)
        for name, words, at in written(inner, (*TABLE, *FUNCTION))
    }


_REMEDY = f"write kind {keys.GANGS} of {keys.OUR_VERSION}, or {keys.CONFIG_MAP} of v1"
