"""The documents of a stream -> the items of one list, their text moved to the right.

Nothing is written anew, so every string stays a string to every reader. Each item is read back, and must be the
document that it was, node by node.
"""

from __future__ import annotations

from . import edit, tree
from .lines import BLANKS, BREAKS, has_marker, line_end, line_start, moved
from .readback import Reading
from .stream import Places, cut, document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .tree import Node


def items(data: bytes) -> bytes:
    """Return the documents of a stream as items of a block list at column 0; empty documents are none.

    Raises Refusal, with the place, for what is no YAML, is no object, or cannot be moved safely.
    """
    return b"".join(_each(data, _item))


def ended(data: bytes) -> bytes:
    """Return a stream ended by a line break, or nothing where no document of it has content.

    Raises Refusal where it is no YAML, or where a line break would become part of a value.
    """
    if not _each(data, _ended):
        return b""
    return data if data.endswith(b"\n") else data + b"\n"


def _each(data: bytes, made: Callable[[bytes, Node], bytes]) -> list[bytes]:
    """Return what is made of each document that has content."""
    spans = cut(data)
    pieces = []
    for number, span in enumerate(spans):
        held = document(data, span)
        try:
            root = tree.read(held)
            if root is not None and not root.null():
                pieces.append(made(held, root))
        except tree.Unfit as unfit:
            raise edit.refusal(unfit, Places(data, spans), number) from None
    return pieces


def _ended(held: bytes, root: Node) -> bytes:
    if held.endswith(b"\n"):
        return held
    if not _same(root, tree.read(held + b"\n")):
        raise tree.Unfit("edit-refused", root.start, "it ends in a block scalar without a last line break", _END)
    return held + b"\n"


_END = "end the file with a line break"


def _item(held: bytes, root: Node) -> bytes:
    """Return a document as an item: the dash goes into the first of the two columns that are new."""
    if root.kind != tree.MAP:
        raise tree.Unfit("edit-refused", root.start, "the document is no object", "leave it out")
    text = _ended(held, root).decode()
    start = line_start(text, root.start)
    marked = has_marker(text)
    if marked and root.start < line_end(text, 0):
        raise tree.Unfit("edit-refused", 0, "content stands on the line of `---`", "put it on the next line")
    head = text[3 if marked else 0 : start].lstrip(BLANKS + BREAKS)
    if head.startswith("%") or "\n%" in head:
        raise tree.Unfit("edit-refused", 0, "a document with a directive (%) cannot be an item", "write it without")
    item = (head + "-" + moved(text[start:], 2)[1:]).encode()
    try:
        read = [node for number, node in tree.nodes(b"items:\n" + item, True) if number >= 0]
    except tree.Unfit as unfit:
        raise _unmoved(root, unfit.message) from None
    if len(read) != 1 or not _same(root, read[0]):
        raise _unmoved(root, "it would read otherwise")
    return item


def _unmoved(root: Node, why: str) -> tree.Unfit:
    message = f"the document cannot be moved into a list: {why}"
    return tree.Unfit("edit-refused", root.start, message, "write it in a plainer form")


def _same(old: Node, new: Node | None) -> bool:
    reading = Reading()
    return new is not None and reading.same(old, new) and reading.end()
