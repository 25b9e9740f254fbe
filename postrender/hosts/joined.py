"""Several files as one stream, and places in it as places in the files."""

from __future__ import annotations

from ..findings import Finding, Place, Refusal
from ..manifests import inflate, stream
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..options import Source

_BETWEEN = b"---\n"


class Joined(Record):
    """A stream of files; `starts` are the line that each begins on, and its name."""

    data: bytes
    starts: tuple[tuple[int, str], ...]

    def named(self, finding: Finding) -> Finding:
        """Return a finding with its place in the file that it is about; one about a context has that already."""
        return finding.moved(self._place)

    def _place(self, place: Place) -> Place:
        line, name = next(start for start in reversed(self.starts) if start[0] <= max(place.line, 1))
        return place._replace(line=place.line - line + 1, file=name)


def together(files: Iterable[Source]) -> Joined:
    """Return files as one stream as `kubectl apply` takes them, each as it is."""
    pieces: list[bytes] = []
    starts = []
    line = 1
    for file in files:
        data = file.data
        if pieces:
            data = data.removeprefix(stream.BOM)
            pieces.append(_between(pieces[-1], data))
            line += pieces[-1].count(b"\n")
        starts.append((line, file.name))
        pieces.append(data)
        line += data.count(b"\n")
    return Joined(b"".join(pieces), tuple(starts))


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
