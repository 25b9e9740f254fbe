"""What a stream means, read by PyYAML's events alone: no constructor retypes anything on the way.

`documents` gives one `Node` tree for each document. `meaning` turns a tree into plain values that compare: a scalar is
(tag, text), a map a dict by such keys, with `<<` resolved as one of two families of readers does it:

* OWN_WINS: PyYAML, yaml.v3, kustomize. A key of the map itself wins over a merged one, wherever `<<` stands.
* IN_ORDER: yaml.v2 and with it sigs.k8s.io/yaml, Helm and kubectl. `<<` overwrites what was written before it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

OWN_WINS, IN_ORDER = "own-wins", "in-order"
STR, INT, BOOL, NULL = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "bool", "null"))
MERGE = "tag:yaml.org,2002:merge"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

_RESOLVER = Resolver()
_CONSTRUCTOR = SafeConstructor()


class Node:
    """A node: `items` are pairs of nodes for a map and nodes for a list; a scalar has `value` and `style`."""

    __slots__ = ("event", "items", "kind", "style", "tag", "value")

    def __init__(self, event: yaml.NodeEvent, kind: str) -> None:
        self.event, self.kind, self.tag = event, kind, event.tag
        self.items: list[Any] = []
        self.value = self.style = None
        if kind == "scalar":
            self.value, self.style = event.value, event.style
            if self.tag in (None, "!"):
                self.tag = _RESOLVER.resolve(yaml.ScalarNode, event.value, event.implicit)


class Cyclic(yaml.YAMLError):
    """An alias that stands inside what it names: no meaning to compare."""


def documents(text: str) -> list[Node]:
    """The root of every document; raises yaml.YAMLError where PyYAML does (an anchor given twice is fine here)."""
    roots = []
    events = yaml.parse(text, Loader=LOADER)
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            roots.append(_node(next(events), events, {}, set()))
    return roots


def _node(event: yaml.Event, events: Iterator[yaml.Event], anchors: dict[str, Node], open_: set[int]) -> Node:
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise yaml.YAMLError(f"undefined alias {event.anchor}")
        if id(anchors[event.anchor]) in open_:
            raise Cyclic(event.anchor)
        return anchors[event.anchor]
    kinds = {yaml.ScalarEvent: "scalar", yaml.MappingStartEvent: "map", yaml.SequenceStartEvent: "list"}
    node = Node(event, kinds[type(event)])
    if event.anchor is not None:
        anchors[event.anchor] = node
    if node.kind == "scalar":
        return node
    open_.add(id(node))
    while not isinstance(event := next(events), yaml.CollectionEndEvent):
        item = _node(event, events, anchors, open_)
        node.items.append((item, _node(next(events), events, anchors, open_)) if node.kind == "map" else item)
    open_.discard(id(node))
    return node


def meaning(node: Node, order: str = OWN_WINS) -> Any:
    if node.kind == "list":
        return [meaning(item, order) for item in node.items]
    if node.kind == "scalar":
        return _scalar(node)
    own: dict[Any, Any] = {}
    merged: dict[Any, Any] = {}
    for key, value in node.items:
        if key.kind == "scalar" and key.tag == MERGE:
            (merged if order == OWN_WINS else own).update(_sources(value, order))
        else:
            own[_frozen(meaning(key, order))] = meaning(value, order)
    return {**merged, **own}


def _sources(value: Node, order: str) -> dict[Any, Any]:
    """What a `<<` brings; of several maps the first wins."""
    found: dict[Any, Any] = {}
    for source in reversed(value.items) if value.kind == "list" else [value]:
        if source.kind != "map":
            raise yaml.YAMLError("a merge of something that is no map")
        found.update(meaning(source, order))
    return found


def _scalar(node: Node) -> tuple[str, str]:
    if node.tag == NULL:
        return NULL, ""
    if node.tag in (INT, BOOL):
        construct = _CONSTRUCTOR.construct_yaml_int if node.tag == INT else _CONSTRUCTOR.construct_yaml_bool
        try:
            return node.tag, str(construct(yaml.ScalarNode(node.tag, node.value))).lower()
        except (ValueError, KeyError):
            pass
    return node.tag, node.value


def _frozen(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((repr(key), repr(_frozen(item))) for key, item in value.items()))
    return value


def written(value: str | int | bool) -> tuple[str, str]:
    """A value of a change, as `meaning` would give it."""
    if isinstance(value, bool):
        return BOOL, str(value).lower()
    return (INT, str(value)) if isinstance(value, int) else (STR, value)


def model_meaning(model: Any) -> Any:
    """The printer's model, as `meaning` would give it."""
    if isinstance(model, dict):
        return {(STR, key): model_meaning(value) for key, value in model.items()}
    if isinstance(model, list):
        return [model_meaning(item) for item in model]
    return (NULL, "") if model is None else written(model)


def with_value(root: Any, path: Iterable[str], value: Any) -> Any:
    """The meaning with `value` at `path`: maps are made where nothing or null stands. Raises LookupError elsewhere."""
    *parents, last = ((STR, key) for key in path)
    here = root
    for key in parents:
        if here.get(key, (NULL, "")) == (NULL, ""):
            here[key] = {}
        here = here[key]
        if type(here) is not dict:
            raise LookupError(f"no map at {key}")
    if type(here.get(last)) in (dict, list):
        raise LookupError(f"no scalar at {last}")
    here[last] = value
    return root


def find(node: Node, path: Iterable[str]) -> Node | None:
    """The node an unmerged path leads to, the last one where a key is given twice."""
    for key in path:
        pairs = node.items if node.kind == "map" else []
        hits = [value for name, value in pairs if name.kind == "scalar" and (name.tag, name.value) == (STR, key)]
        if not hits:
            return None
        node = hits[-1]
    return node
