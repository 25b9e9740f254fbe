"""A span's text -> the Kubernetes objects in it, one at a time; and reading their fields.

A document is one object, or a `List`, a typed list (`InferenceServiceList`) or a `ResourceList` of them. An object's
nodes do not outlive it: keep values and positions, not nodes.
"""

from __future__ import annotations

from ..record import Record
from . import tree
from .lookup import find
from .scalars import integer, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .change import Value
    from .tree import Node

RESOURCE_LIST = "ResourceList"


def holds_items(kind: str) -> bool:
    """Return whether a document of this kind is a list of objects: every such kind ends so (API conventions)."""
    return kind.endswith("List")


def takes_any(kind: str) -> bool:
    """Return whether such a list may hold objects of any kind; a typed list may not."""
    return kind in ("List", RESOURCE_LIST)


def head_of(data: bytes) -> tree.Head | None:
    """Return what kind of object a document is to every reader, or None for none; read to its end.

    Raises tree.Unfit where it is no YAML to its end, or where readers disagree about the kind.
    """
    root = tree.read(data, 3)  # as deep as what a merge key brings in
    if root is None or root.kind != tree.MAP:
        return None
    said = settled(root)
    items = find(root, "items")
    if items is not None and items.value.resolved().kind == tree.SEQ and not holds_items(said.kind):
        return said._replace(kind=said.kind + "List")  # kubectl takes whatever has items for a list
    return said if said.kind else None


def settled(root: Node) -> tree.Head:
    """Return the apiVersion and kind of an object; raises tree.Unfit where one stands twice, or a merge disputes it."""
    said = []
    for key in ("apiVersion", "kind"):
        try:
            entry = find(root, key)
        except tree.Unfit as unfit:
            unfit.remedy = "write --- between two objects, or remove one of the two"
            raise
        value = entry.value.resolved() if entry else None
        said.append(value.value if value is not None and value.kind == tree.SCALAR else "")
    return tree.Head(*said)


class Item:
    """One object: its number in `items` (-1 for the document itself), its root map, and what kind it says it is."""

    __slots__ = ("api_version", "kind", "list_kind", "number", "root")

    def __init__(self, number: int, list_kind: str, api_version: str, kind: str, root: Node) -> None:
        """Keep all five; `list_kind` is the kind of the list it stands in, or empty."""
        self.number = number
        self.list_kind = list_kind
        self.api_version = api_version
        self.kind = kind
        self.root = root


def items(data: bytes, wanted: Callable[[str, str], bool], depth: int) -> Iterator[Item]:
    """Yield the objects in `data` whose apiVersion and kind are `wanted`, read to the depth that is looked at.

    Raises tree.Unfit where the text must be read and cannot be.
    """
    head = tree.head(data)
    if head is None or not (holds_items(head.kind) or wanted(*head)):
        head = head_of(data)
        if head is None or not (holds_items(head.kind) or wanted(*head)):
            return
    if not holds_items(head.kind):
        root = tree.read(data, depth)
        if root is not None and wanted(*settled(root)):
            yield Item(-1, "", *head, root)
        return
    for number, node in tree.nodes(data, True, depth):
        root = node.resolved()
        if number < 0:
            check_list(node)
        if number < 0 or root.kind != tree.MAP:
            continue
        said = settled(root)
        if not said.kind and not takes_any(head.kind):
            said = tree.Head(head.api_version, head.kind.removesuffix("List"))
        if said.kind == "List":
            remedy = "put its items into the outer one"
            raise tree.Unfit("edit-refused", node.start, "a List inside a List", remedy, "items")
        if wanted(*said):
            yield Item(number, head.kind, *said, root)


def check_list(root: Node) -> None:
    """Raise tree.Unfit unless the root's own `items` are what every reader takes for the list, and its kind is one."""
    settled(root)
    entry = find(root, "items")
    if entry is not None and (entry.merged or entry.value.kind == tree.ALIAS):
        message = "the items of the list come from elsewhere, by an alias or a merge key"
        raise tree.Unfit("edit-refused", entry.value.start, message, "write them out in their place", "items")


class Found(Record):
    """A value and the code point where it stands (`at` is what a tuple calls index)."""

    value: str | int
    at: int


class View:
    """A map of an object, read by the types that its fields must have.

    A field that is missing or null is None. Raises tree.Unfit (`invalid-field`) where a value has another type: what
    Go's readers make of it decides, so an unquoted `0777` is no string and `3.0` is the integer 3.
    """

    __slots__ = ("_node", "_plain", "path")

    def __init__(self, node: Node, path: tuple[str, ...] = ()) -> None:
        """View a node that is a map; `path` leads to it from the object's root."""
        self._node = node
        self.path = path
        # Most maps have nothing but untagged keys, each once: there a key needs no search, and raises no dispute.
        self._plain: dict[str, Node] | None = {}
        for key, value in node.pairs():
            if key.kind != tree.SCALAR or key.tag is not None or key.value == "<<" or key.value in self._plain:
                self._plain = None
                break
            self._plain[key.value] = value

    @property
    def index(self) -> int:
        """The code point where the map stands."""
        return self._node.start

    def map(self, key: str) -> View | None:
        """Return the map at `key`."""
        value = self._value(key)
        if value is None:
            return None
        if value.kind != tree.MAP or _is_template(value):
            raise self._wrong(key, value, "write a map")
        return View(value, (*self.path, key))

    def text(self, key: str, example: str = "a string") -> Found | None:
        """Return the string at `key`; `example` is what to write where it is none."""
        value = self._value(key)
        if value is None:
            return None
        if value.kind != tree.SCALAR or value.tag not in (None, tree.STRING):
            raise self._wrong(key, value, f"write {example}")
        if value.style == "" and value.tag is None and not isinstance(resolve(value.value), str):
            raise self._wrong(key, value, "put it in quotes" if example == "a string" else f"write {example}")
        return Found(value.value, value.start)

    def integer(self, key: str) -> Found | None:
        """Return the integer at `key`."""
        value = self._value(key)
        if value is None:
            return None
        number = integer(value.value) if value.kind == tree.SCALAR and value.style == "" and value.tag is None else None
        if number is None:
            raise self._wrong(key, value, "write an integer without quotes")
        return Found(number, value.start)

    def boolean(self, key: str) -> Found | None:
        """Return the boolean at `key`, as 0 or 1."""
        value = self._value(key)
        if value is None:
            return None
        plain_word = value.kind == tree.SCALAR and value.style == "" and value.tag is None
        found = resolve(value.value) if plain_word else None
        if not isinstance(found, bool):
            raise self._wrong(key, value, "write true or false without quotes")
        return Found(int(found), value.start)

    def written(self, key: str) -> Found | None:
        """Return the scalar at `key` as it is written, whatever its type: for settings of our own, which we parse."""
        value = self._value(key)
        if value is None:
            return None
        if value.kind != tree.SCALAR:
            raise self._wrong(key, value, "write one value")
        return Found(value.value, value.start)

    def maps(self, key: str) -> list[View] | None:
        """Return the maps in the list at `key`."""
        return None if (held := self._list(key)) is None else [View(node, path) for node, path in held]

    def words(self, key: str) -> list[Found] | None:
        """Return the scalars in the list at `key`, or the one that stands there instead, as they are written."""
        value = self._value(key)
        if value is not None and value.kind == tree.SCALAR:
            return [Found(value.value, value.start)]
        held = self._list(key, tree.SCALAR)
        return None if held is None else [Found(node.value, node.start) for node, _ in held]

    def own_keys(self) -> list[tuple[str, int]]:
        """Return the map's own keys and where they stand; what a merge key brings in is not among them."""
        return [(key.value, key.start) for key, _ in self._node.pairs()]

    def says(self, key: str) -> bool:
        """Return whether something stands at `key`, null too."""
        return key in self._plain if self._plain is not None else find(self._node, key) is not None

    def _list(self, key: str, kind: str = tree.MAP) -> list[tuple[Node, tuple[str, ...]]] | None:
        value = self._value(key)
        if value is None:
            return None
        if value.kind != tree.SEQ:
            raise self._wrong(key, value, "write a list")
        held = []
        for number, child in enumerate(value.children):
            node = child.resolved()
            if node.kind != kind:
                raise self._wrong(f"{key}[{number}]", node, "write a map" if kind == tree.MAP else "write one value")
            held.append((node, (*self.path, f"{key}[{number}]")))
        return held

    def _value(self, key: str) -> Node | None:
        """Return what stands at a key, aliases followed, or None; no key that is asked for is a word to any reader."""
        if self._plain is not None:
            held = self._plain.get(key)
            if held is None:
                return None
            value: Node | None = held.resolved()
        else:
            try:
                entry = find(self._node, key)
            except tree.Unfit as unfit:
                unfit.field = unfit.field or field((*self.path, key))
                raise
            value = entry.value.resolved() if entry else None
        return None if value is None or value.null() else value

    def _wrong(self, key: str, value: Node, remedy: str) -> tree.Unfit:
        message = f"is {_shown(value)}"
        if value.kind == tree.SCALAR and value.tag is not None:
            remedy = f"remove the tag, and {remedy}"
        if _is_template(value):
            message, remedy = "is {{ … }}: a template was left in", "render the chart first"
        return tree.Unfit("invalid-field", value.start, message, remedy, field((*self.path, key)))


def _is_template(value: Node) -> bool:
    """Return whether a value is `{{ … }}`: to YAML a map whose key is a map."""
    return value.kind == tree.MAP and value.flow and any(name.kind == tree.MAP for name, _ in value.pairs())


def _shown(value: Node) -> str:
    """Return a value as it was written, and what that is."""
    if value.kind != tree.SCALAR:
        return f"a {NAMES[value.kind]}"
    if value.tag is not None:
        return f"{shorten(value.value)!r} with the tag {value.tag.replace('tag:yaml.org,2002:', '!!')}"
    if value.style:
        return f'"{shorten(value.value)}", a string'
    found = resolve(value.value)
    kind = "a boolean" if isinstance(found, bool) else "a string" if isinstance(found, str) else "a number"
    return f"{shorten(value.value)}, {kind}"


def plain(node: Node, depth: int = 0) -> Value | None:
    """Return a small object as a value, keys as they stand, or None where it holds what we never write."""
    node = node.resolved()
    if node.kind == tree.MAP and depth < 8:
        members = [(key.resolved().value, plain(value, depth + 1)) for key, value in node.pairs()]
        return None if any(held is None for _, held in members) else tuple(members)  # type: ignore[arg-type]
    if node.kind != tree.SCALAR or node.tag not in (None, tree.STRING):
        return None
    value = resolve(node.value) if node.style == "" and node.tag is None else node.value
    return value if isinstance(value, (str, int)) else None


NAMES = {tree.MAP: "map", tree.SEQ: "list", tree.SCALAR: "scalar", tree.ALIAS: "alias"}


def field(path: tuple[str, ...]) -> str:
    """Return a path as people write it: `spec.engine.labels[example.com/x]`."""
    text = ""
    for key in path:
        text += f"[{key}]" if "." in key or "/" in key else f".{key}" if text else key
    return text


def shorten(text: str, most: int = 60) -> str:
    """Return a value cut to a length that fits a message."""
    return text if len(text) <= most else text[: most - 1] + "…"
