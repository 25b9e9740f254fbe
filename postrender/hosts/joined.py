"""Several files as one stream, and what is told of it as told of the files."""

from __future__ import annotations

from ..findings import Finding, Place, Refusal
from ..manifests import inflate, stream
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..gangs.reasons import Explained
    from ..options import Source
    from ..review import Explanation, Piece

_BETWEEN = b"---\n"


class Joined(Record):
    """A stream of files; `starts` are the line that each begins on, and its name.

    `bounds` are where each begins and ends in `data`, and what was taken off its head.
    """

    data: bytes
    starts: tuple[tuple[int, str], ...]
    bounds: tuple[tuple[int, int, bytes], ...] = ()

    def named(self, finding: Finding) -> Finding:
        """Return a finding with its place in the file that it is about; one about a context has that already."""
        return finding.moved(self._place)

    def explained(self, explanation: Explanation) -> Explanation:
        """Return an explanation with its places in the files."""
        return explanation._replace(
            subjects=tuple(
                subject._replace(
                    place=self._place(subject.place),
                    components=tuple(self._component(one) for one in subject.components),
                    findings=tuple(self.named(one) for one in subject.findings),
                )
                for subject in explanation.subjects
            ),
            findings=tuple(self.named(one) for one in explanation.findings),
        )

    def _component(self, explained: Explained) -> Explained:
        return explained._replace(
            reasons=tuple(
                reason._replace(
                    source=reason.source and reason.source._replace(place=self._maybe(reason.source.place)),
                    hidden=tuple(one._replace(place=self._maybe(one.place)) for one in reason.hidden),
                )
                for reason in explained.reasons
            )
        )

    def _maybe(self, place: Place | None) -> Place | None:
        return self._place(place) if place is not None else None

    def _place(self, place: Place) -> Place:
        if place.file:
            return place
        line, name = next(start for start in reversed(self.starts) if start[0] <= max(place.line, 1))
        return place._replace(line=place.line - line + 1, file=name)

    def parts(self, pieces: Sequence[Piece]) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield the name of each file, its bytes, and what they become where `pieces` are what the stream becomes.

        Raises ValueError for a file of which it cannot be told where it ends then.
        """
        new = b"".join(piece.new for piece in pieces)
        start = 0
        for number, (_, name) in enumerate(self.starts):
            begin, end, head = self.bounds[number]
            stop, following = len(new), len(new)
            if number + 1 < len(self.bounds):
                upper = self.bounds[number + 1][0]
                between = self.data[end:upper]
                found = (
                    (low, high)
                    for low in _moved(end, pieces)
                    for high in _moved(upper, pieces)
                    if new[low:high] == between and low <= high
                )
                stop, following = next(found, (-1, -1))
            if stop < start:
                raise ValueError(f"{name} and the file after it run into one another; name one at a time")
            yield name, head + self.data[begin:end], head + new[start:stop]
            start = following


def _moved(at: int, pieces: Iterable[Piece]) -> Iterator[int]:
    """Yield where a place between two bytes may be after a change, the likeliest first."""
    old = new = 0
    for piece in pieces:
        before, behind = at - old, old + len(piece.old) - at
        if before >= 0 and behind >= 0:
            if before == 0 or piece.old is piece.new:
                yield new + before
                return
            if behind and piece.old[before:] == piece.new[len(piece.new) - behind :]:
                yield new + len(piece.new) - behind
            if behind and piece.old[:before] == piece.new[:before]:
                yield new + before
            if behind:
                return
        old += len(piece.old)
        new += len(piece.new)
    if at == old:
        yield new


def together(files: Iterable[Source]) -> Joined:
    """Return files as one stream as `kubectl apply` takes them, each as it is."""
    pieces: list[bytes] = []
    starts, bounds = [], []
    line = 1
    at = 0
    for file in files:
        data, head = file.data, b""
        if pieces:
            data = data.removeprefix(stream.BOM)
            head = file.data[: len(file.data) - len(data)]
            pieces.append(_between(pieces[-1], data))
            line += pieces[-1].count(b"\n")
            at += len(pieces[-1])
        starts.append((line, file.name))
        bounds.append((at, at + len(data), head))
        pieces.append(data)
        line += data.count(b"\n")
        at += len(data)
    return Joined(b"".join(pieces), tuple(starts), tuple(bounds))


def _between(before: bytes, after: bytes) -> bytes:
    """Return what ends one file and begins the next: a directive needs the end of a document before it."""
    end = b"" if before.endswith(b"\n") or not before else b"\n"
    text = after.lstrip()
    while text.startswith(b"#"):
        text = text.partition(b"\n")[2].lstrip()
    return end + (b"...\n" if text.startswith(b"%") else b"" if text.startswith(b"---") else b"---\n")


def join(files: Iterable[Source]) -> Joined:
    """Return files as one stream; raises Refusal, with the place, for one that is empty or cannot stand in it."""
    pieces, starts = [], []
    line = 1
    for file in files:
        data = file.data.removeprefix(stream.BOM)
        try:
            piece = inflate.ended(data)
            inflate.items(data)  # said here, where places are the file's
        except Refusal as refusal:
            place = refusal.finding.place or Place(1, 1)
            raise Refusal(refusal.finding._replace(place=place._replace(file=file.name))) from None
        if not piece:
            remedy = "render it first, or remove it from the list"
            raise Refusal(Finding("unreadable", "the file holds no object", remedy, place=Place(1, 1, file=file.name)))
        starts.append((line, file.name))
        pieces.append(piece)
        line += (piece + _BETWEEN).count(b"\n")
    return Joined(_BETWEEN.join(pieces), tuple(starts))
