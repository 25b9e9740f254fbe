"""What a map holds at a key, as every reader sees it: merges followed, disputes refused."""

from __future__ import annotations

from .scalars import is_string
from .tree import MAP, SCALAR, SEQ, STRING, Node, Unfit


class Entry:
    """What a map holds at a key: the nodes, and whether a merge key brought them in."""

    __slots__ = ("key", "merged", "value")

    def __init__(self, key: Node, value: Node, merged: bool) -> None:
        """Keep the three."""
        self.key = key
        self.value = value
        self.merged = merged


def find(node: Node, name: str) -> Entry | None:
    """Return what the map `node` holds at the key `name`, merges followed, or None.

    Raises Unfit where readers disagree about it: a key that stands twice (kustomize fails, the others take the last),
    an own key before a merge that brings the same key (Helm takes the merged one), a plain key such as `n` (a boolean
    to Helm).
    """
    own, merges = _entries(node, name)
    if not merges:
        return own
    after = 0
    if own is not None:
        after = next(position for position, (key, _) in enumerate(node.pairs()) if key is own.key)
    brought = None
    for position, value in merges:
        entry = _merged(value, name)
        if entry is None:
            continue
        if (own is not None and position > after) or brought is not None:
            raise Unfit(
                "edit-refused",
                value.start,
                f"readers disagree which {name} counts: a merge key (<<) brings it in as well",
                f"write <<: once, before {name}",
            )
        brought = brought or Entry(entry.key, entry.value, True)
    return own or brought


def _entries(node: Node, name: str) -> tuple[Entry | None, list[tuple[int, Node]]]:
    """Return a map's own entry at `name`, and the values of its merge keys with their positions."""
    own: Entry | None = None
    merges: list[tuple[int, Node]] = []
    for position, (key, value) in enumerate(node.pairs()):
        named = key.resolved()
        if named.kind != SCALAR:
            continue
        if named.value == name:
            if own is not None:
                raise Unfit("edit-refused", key.start, f"the key {name} stands twice", "remove one of the two")
            # `! 'null'` is null to libyaml and its ports, whatever its quotes say.
            odd = not is_string(name) if named.tag is None and named.style == "" else named.tag not in (None, STRING)
            if odd:
                remedy = "quote the key, without a tag"
                raise Unfit("edit-refused", key.start, f"the key {name} is no string to every reader", remedy)
            own = Entry(key, value, False)
        elif named.value == "<<" and is_merge(named):
            merges.append((position, value))
    return own, merges


def value_at(node: Node, path: tuple[str, ...]) -> str:
    """Return the scalar at a path as it is written, or an empty string; for telling objects apart, not for reading."""
    for key in path:
        held = [value.resolved() for name, value in node.pairs() if name.value == key] if node.kind == MAP else []
        if not held:
            return ""
        node = held[-1]
    return node.value if node.kind == SCALAR else ""


def is_merge(key: Node) -> bool:
    """Return whether a key is a merge key: a plain `<<`, or tagged so."""
    return key.value == "<<" and ((key.style == "" and key.tag is None) or key.tag == "tag:yaml.org,2002:merge")


def _merged(value: Node, name: str) -> Entry | None:
    """Return what the value of a merge key brings in at `name`; each map is looked at once, however often named."""
    seen: set[int] = set()
    todo = [value]
    while todo:
        node = todo.pop().resolved()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.kind == SEQ:
            todo.extend(reversed(node.children))
        elif node.kind == MAP:
            own, merges = _entries(node, name)
            if own is not None:
                return Entry(own.key, own.value, True)
            todo.extend(value for _, value in reversed(merges))
        else:
            raise _no_map(node)
    return None


def _no_map(node: Node) -> Unfit:
    return Unfit("unreadable", node.start, "the value of a merge key (<<) is no map", "merge maps only")
