"""Changes -> bytes, each edit read back and compared.

Text is only ever spliced; every other byte stays as it came. A form that cannot be edited safely raises Refusal, and so
does an edit whose result, read again, is not exactly the input plus the change.
"""

from __future__ import annotations

from io import BytesIO

from ..findings import Finding, Refusal
from . import objects, tree
from .change import Add
from .editor import Editor
from .lines import Ascii, has_marker, is_content, line_end, skip
from .overlay import Wanted
from .readback import check, check_value
from .stream import Places, Span, document, source
from .tree import Unfit
from .write import block

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .change import Change
    from .editor import Edit
    from .lines import Text
    from .tree import Node

# From this size on it counts that a document is not held as bytes and as text.
_LARGE = 1 << 20
_PIECE = 1 << 20


def splice(data: bytes, spans: Sequence[Span], changes: Iterable[Change]) -> bytes:
    """Return `data` with all changes made; the same object if none needs an edit.

    Raises Refusal, with the place, for the first change that cannot be made safely.
    """
    result = BytesIO()
    view = memoryview(data)
    done = 0
    for number, new in changed(data, spans, changes):
        span = spans[number]
        if span.start == 0 and span.stop == len(data):
            return new
        result.write(view[done : span.start])
        result.write(new)
        done = span.stop
    if not done:
        return data
    result.write(view[done:])
    return result.getvalue()


def changed(data: bytes, spans: Sequence[Span], changes: Iterable[Change]) -> Iterator[tuple[int, bytes]]:
    """Yield the number of each span that differs with all changes made, and its bytes then, in their order.

    Raises Refusal as `splice` does, when it comes to what cannot be done.
    """
    per_span: dict[int, list[Change]] = {}
    for change in changes:
        spot = change.before if isinstance(change, Add) else change.spot
        per_span.setdefault(spot.span, []).append(change)
    for number in sorted(per_span):
        new = _spliced(data, spans, number, per_span.pop(number))  # of a long stream they are as large as it is
        if new is not None:
            yield number, new


def _spliced(data: bytes, spans: Sequence[Span], number: int, changes: list[Change]) -> bytes | None:
    """Return the new bytes of `[start:stop]` of a span, or None where all holds already."""
    span = spans[number]
    old = document(data, span)
    try:
        new = edited(old, changes)
        before = _documents(data, span, old, changes)
    except UnicodeDecodeError as error:
        raise undecodable(error, data, spans, number) from None
    except Unfit as unfit:
        raise refusal(unfit, Places(data, spans), number) from None
    if new is old and not before:
        return None
    head = data[span.start : span.stop - len(old)] + before.encode()
    return head + new if head else new


def refusal(unfit: Unfit, places: Places, number: int) -> Refusal:
    """Return what could not be done in span `number` as a Refusal with its place."""
    place = places.place(number, unfit.index)
    finding = Finding(unfit.code, unfit.message, unfit.remedy, field=unfit.field, place=place)
    return Refusal(finding, (number, unfit.item))


def undecodable(error: UnicodeDecodeError, data: bytes, spans: Sequence[Span], number: int) -> Refusal:
    """Return invalid UTF-8 in span `number` as a Refusal with the place of the first wrong byte."""
    index = len(error.object[: error.start].decode("utf-8", "replace"))
    return Refusal(
        Finding(
            "unreadable",
            f"not UTF-8: byte 0x{error.object[error.start]:02x}",
            "convert the document to UTF-8",
            place=Places(data, spans).place(number, index),
        )
    )


def _documents(data: bytes, span: Span, old: bytes, changes: list[Change]) -> str:
    """Return the documents that go before a span, as text that leaves what follows as it was."""
    added = [change.value for change in changes if isinstance(change, Add) and change.before.item < 0]
    if not added:
        return ""
    text = old.decode()
    first = span.start == 0
    # Between documents kubectl and kustomize know no line break but these two.
    newline = "\r\n" if b"\r\n" in (data[span.start - 2 : span.start], data[: data.find(b"\n") + 1][-2:]) else "\n"
    marked = has_marker(text)
    directive = text.startswith("%", skip(text, 0))
    if marked and first and is_content(text[3 : line_end(text, 0)]):
        raise Unfit("edit-refused", 0, "content stands on the line of `---`", "put it on the next line")
    if not first and not marked and not directive:
        raise Unfit("edit-refused", 0, "the document follows `...` without `---`", "write --- on a line before it")
    if not first and not data.endswith(b"\n", 0, span.start):
        raise Unfit("edit-refused", 0, "a line break before `---` that kubectl does not know", "write LF or CRLF")
    origin = source(data, span)
    start = "---" + newline if marked or directive or not first else ""
    comment = f"# Source: {origin}{newline}" if origin and origin.isprintable() else ""
    pieces = []
    for value in added:
        body = block(value, 0, newline)
        check_value(body, value)
        pieces.append(f"{start}{comment}{body}")
        start = "---" + newline
    tail = "..." + newline if directive else "" if marked else "---" + newline
    return "".join(pieces) + tail


def edited(old: bytes, changes: Iterable[Change]) -> bytes:
    """Return one document with the changes made, except documents before it; the same bytes if all holds.

    Raises Unfit where that cannot be done safely, or where reading the result back shows that it was not; and
    UnicodeDecodeError where it is not UTF-8.
    """
    wanted = Wanted(changes)
    numbers = wanted.numbers()
    if not numbers:
        return old
    split = max(numbers) >= 0 or wanted.extended is not None
    head = tree.head(old) or objects.head_of(old) if split else None
    appends = head is not None and head.kind == objects.RESOURCE_LIST
    text = Ascii(old) if len(old) > _LARGE and old.isascii() else old.decode()
    editor = Editor(text, tree.aliased(old))
    olds: Iterable[tuple[int, Node]] = tree.nodes(old, split)
    if not split:
        olds = list(olds)
    for number, node in olds:
        numbers.discard(number)
        try:
            editor.object(node, wanted, number, appends)
        except Unfit as unfit:
            unfit.item = number
            raise
        if number >= 0:
            editor.last_item = node
        elif split:
            objects.check_list(node)
    if numbers:
        raise ValueError(f"no such object: {min(numbers)}")
    editor.append_items()
    if wanted.extended is not None:
        editor.extend(node, wanted.extended.key, wanted.extended.values)
    if not editor.edits:
        return old
    new = apply(old, text, editor.edits)
    del text, editor  # of a long list these are large; they go before the result is read
    check(tree.nodes(old, split) if split else olds, tree.nodes(new, split), wanted, appends)
    return new


def apply(old: bytes, text: Text, edits: Sequence[Edit]) -> bytes:
    """Return a document with disjoint edits made, those at one place in their order; `text` is `old` as text."""
    edits = sorted(edits, key=_start)
    size = len(old) + sum(len(edit.new.encode()) - len(text[edit.start : edit.end].encode()) for edit in edits)
    result = BytesIO(bytes(size))  # of its final size: growing would copy, and hold two
    done = 0
    for edit in edits:
        result.write(text[done : edit.start].encode())
        result.write(edit.new.encode())
        done = edit.end
    while done < len(text):  # in pieces: the last may be most of a large document
        result.write(text[done : done + _PIECE].encode())
        done += _PIECE
    return result.getvalue()


def _start(edit: Edit) -> int:
    return edit.start
