"""Bytes of a stream -> spans that tile them, and which spans may matter.

Nothing is parsed to cut. A line that begins at column 0 with `---` or `...`, followed by blank, break or end of input,
is a document marker in every context (YAML 1.2 c-forbidden; libyaml tests it before anything else), so the cuts need
none. Only where a directive may stand before a `---`, or where something other than LF ends the line before a marker,
are the cuts taken from libyaml's own events. A missed cut shows when the document is read, which then holds two.
"""

from __future__ import annotations

from sys import intern

from ..findings import Finding, Place, Refusal
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BOM = b"\xef\xbb\xbf"
_RARE = (b"\r", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")  # CR, NEL, LS, PS: breaks to YAML, not to kubectl
_UTF16 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_SOURCE = b"# Source: "


class Span(Record):
    """One document's bytes: `[start:end]` is what is written, `[start:stop]` what is parsed (without a `...` line)."""

    start: int
    end: int
    stop: int


def is_quiet(data: bytes, needles: Sequence[bytes]) -> bool:
    """Return whether no needle can occur in any scalar of `data`: then it need not even be cut.

    Sound because a scalar reaches us only as its own bytes, or through escapes that spell letters.
    """
    if data.startswith(_UTF16) or any(needle in data for needle in needles):
        return False
    return not _spells(data, needles, 0, len(data))


def cut(data: bytes) -> list[Span]:
    """Return the spans of `data`: they tile it, and each holds at most one document.

    Raises Refusal for UTF-16 and UTF-32, which only a byte-order mark tells apart from other bytes.
    """
    if data.startswith(_UTF16):
        raise Refusal(
            Finding(
                "unreadable",
                "the stream is UTF-16 or UTF-32",
                "convert it to UTF-8, the only encoding that Kubernetes tools agree on",
                place=Place(1, 1),
            )
        )
    base = len(BOM) if data.startswith(BOM) else 0
    cuts = _marks(data, base)
    if cuts is None:
        from .tree import cuts as parsed_cuts

        cuts = parsed_cuts(data, base)
    spans = []
    begin = 0
    for start, stop, end in cuts:
        if stop is not None:
            spans.append(Span(begin, end, stop))
        elif start > begin and start > base:
            spans.append(Span(begin, start, start))
        else:
            continue
        begin = end
    if begin < len(data) or not spans:
        spans.append(Span(begin, len(data), len(data)))
    return spans


def _marks(data: bytes, base: int) -> list[tuple[int, int | None, int]] | None:
    """Return the cuts by markers alone, or None where only the parser knows.

    A cut is (start of the marker, the same for `...` but None for `---`, where the next span starts).
    """
    if _has_directive(data, base):
        return None
    for rare in _RARE[: 1 if data.isascii() else None]:
        if rare in data and any(rare + mark in data for mark in (b"%", b"---", b"...")):
            return None
    cuts: list[tuple[int, int | None, int]] = []
    for at in _lines(data, b"---", base):
        cuts.append((at, None, at))
    for at in _lines(data, b"...", base):
        end = data.find(b"\n", at) + 1 or len(data)
        line = data[at:end].rstrip(b"\r\n")
        if any(rare in line for rare in _RARE):
            return None
        cuts.append((at, at, end))
    cuts.sort()
    return cuts


def _has_directive(data: bytes, base: int) -> bool:
    """Return whether a line begins with `%`."""
    if data.startswith(b"%", base):
        return True
    if data.count(b"%") > 1_000:
        return b"\n%" in data
    # To look for a single rare byte is thirty times as fast as for a line break and what follows it.
    at = data.find(b"%")
    while at >= 0 and data[at - 1 : at] != b"\n":
        at = data.find(b"%", at + 1)
    return at >= 0


def _lines(data: bytes, mark: bytes, base: int) -> Iterator[int]:
    """Yield where a line begins that is the marker `mark`."""
    if data.startswith(mark, base) and _ends(data, base + 3):
        yield base
    wanted = b"\n" + mark
    at = data.find(wanted)
    while at >= 0:
        if _ends(data, at + 4):
            yield at + 1
        at = data.find(wanted, at + 4)


def _ends(data: bytes, at: int) -> bool:
    return data[at : at + 1] in (b"\n", b" ", b"\t", b"\r", b"") or data.startswith(_RARE, at)


def candidates(
    data: bytes, spans: Sequence[Span], needles: Sequence[bytes], spelled: Sequence[bytes] = ()
) -> list[int]:
    """Return the numbers of the spans in which some scalar may contain a needle, ascending.

    Those that may contain one of `spelled` only by escapes are among them: to look for escapes takes longest.
    """
    found: set[int] = set(holding(data, spans, needles))
    if b"\\" in data:
        for number in _holding(data, spans, b"\\"):
            if number not in found and _spells(data, (*needles, *spelled), spans[number].start, spans[number].end):
                found.add(number)
    return sorted(found)


def holding(data: bytes, spans: Sequence[Span], needles: Sequence[bytes]) -> list[int]:
    """Return the numbers of the spans that hold a needle as it is, ascending."""
    return sorted({number for needle in needles for number in _holding(data, spans, needle)})


def _holding(data: bytes, spans: Sequence[Span], needle: bytes) -> Iterator[int]:
    """Yield the numbers of the spans that hold `needle`: one pass over the data, one over the spans."""
    number = 0
    at = data.find(needle)
    while at >= 0:
        while spans[number].end <= at:
            number += 1
        yield number
        at = data.find(needle, spans[number].end)


def _spells(data: bytes, needles: Sequence[bytes], start: int, end: int) -> bool:
    """Return whether a needle stands in `data[start:end]` spelled with escapes.

    In double quotes `\\xHH`, `\\uHHHH` and `\\UHHHHHHHH` are characters, and a backslash before a line break makes
    nothing of the break and the blanks behind it. Each such escape is looked at, with the letters before it that may
    begin a needle; whether it really stands in double quotes does not matter, for that can only find too much.
    """
    if data.find(b'"', start, end) < 0:
        return False
    for escape in _ESCAPES:
        letters = escape in _DIGITS
        at = data.find(escape, start, end)
        while at >= 0:
            # A broken needle has a letter before the break; of an escaped letter, it may be the first.
            if letters or data[at - 1 : at].isalpha():
                for needle in needles:
                    for length in range(0 if letters else 1, len(needle)):
                        if data.startswith(needle[:length], at - length) and _spelled(data, at - length, needle):
                            return True
            at = data.find(escape, at + 2, end)
    return False


_DIGITS = {b"\\x": 2, b"\\u": 4, b"\\U": 8}
_BREAKS = (b"\r\n", b"\n", *_RARE)
_ESCAPES = (*_DIGITS, *(b"\\" + newline for newline in _BREAKS[1:]))


def _spelled(data: bytes, at: int, needle: bytes) -> bool:
    """Return whether `needle` stands at `at`, escapes undone."""
    for letter in needle:
        while data.startswith(b"\\", at) and data.startswith(_BREAKS, at + 1):
            at += 1 + next(len(newline) for newline in _BREAKS if data.startswith(newline, at + 1))
            while data.startswith((b" ", b"\t"), at):
                at += 1
        digits = _DIGITS.get(data[at : at + 2])
        if digits is None:
            if data[at : at + 1] != bytes((letter,)):
                return False
            at += 1
        else:
            code = data[at + 2 : at + 2 + digits]
            if code.lower() != b"%0*x" % (digits, letter):
                return False
            at += 2 + digits
    return True


def source(data: bytes, span: Span) -> str:
    """Return Helm's template path, from the `# Source:` line at the head of the document, or an empty string."""
    at = span.start
    while at < span.stop:
        end = data.find(b"\n", at, span.stop)
        line = data[at : end if end >= 0 else span.stop]
        if line.startswith(_SOURCE):
            return line[len(_SOURCE) :].strip().decode(errors="replace")
        if (line.strip() and not line.startswith((b"#", b"---", BOM))) or end < 0:
            break
        at = end + 1
    return ""


class Places:
    """Turns a span and a position in its text into a place that a person can go to.

    Nothing is counted until a place is asked for; what was counted is kept, so that many findings stay linear.
    """

    def __init__(self, data: bytes, spans: Sequence[Span]) -> None:
        """Remember the stream."""
        self._data = data
        self._spans = spans
        # What ends a line: what editors take for it. A file with CR alone is the only one whose lines CR ends.
        newline = "\r" if b"\r" in data and b"\n" not in data else "\n"
        self._newline = newline
        # Nothing here refers back to us: a cycle would keep the text for as long as the collector is off.
        self._lines = _Count(lambda start, end: data.count(newline.encode(), start, end))
        self._number = -1  # the span asked for last: where its text starts, what it is from, and whether it is ASCII
        self._start = 0
        self._source = ""
        self._ascii = True
        self._text = ""  # where it is not: the text, its first line, and the breaks in it
        self._line = 1
        self._inner = self._lines

    def place(self, number: int, index: int) -> Place:
        """Return the place of the code point `index` of span `number`."""
        newline = self._newline
        if self._number != number:
            span = self._spans[number]
            bare = document(self._data, span)
            self._number = number
            self._start = span.stop - len(bare)
            self._source = intern(source(self._data, span))
            self._ascii = bare.isascii()  # then code points are bytes, and nothing need be decoded
            if not self._ascii:
                text = bare.decode(errors="replace")
                self._text = text
                self._line = 1 + self._lines.before(span.start)
                self._inner = _Count(lambda start, end: text.count(newline, start, end))
        if self._ascii:
            at = self._start + index
            column = at - max(self._data.rfind(newline.encode(), self._start, at), self._start - 1)
            return Place(1 + self._lines.before(at), column, self._source)
        column = index - self._text.rfind(newline, 0, index)
        return Place(self._line + self._inner.before(index), column, self._source)


class _Count:
    """Counts something before an index, from the nearest chunk on, so that asking in any order costs little."""

    _CHUNK = 1 << 12

    def __init__(self, count: Callable[[int, int], int]) -> None:
        self._count = count
        self._sums = [0]  # before each chunk

    def before(self, index: int) -> int:
        chunk = index // self._CHUNK
        while len(self._sums) <= chunk:
            end = len(self._sums) * self._CHUNK
            self._sums.append(self._sums[-1] + self._count(end - self._CHUNK, end))
        return self._sums[chunk] + self._count(chunk * self._CHUNK, index)


def document(data: bytes, span: Span) -> bytes:
    """Return the bytes of a span that are to be parsed, without a byte-order mark at the start of the stream."""
    start = len(BOM) if span.start == 0 and data.startswith(BOM) else span.start
    return data[start : span.stop]
