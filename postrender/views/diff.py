"""Two texts -> the lines of a unified diff, as git writes it.

Lines end at LF alone, as they do to git and patch; bytes that are no UTF-8 come out as they are (surrogateescape).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import groupby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from ..review import Piece

    # Lines [a:b] of the old text have become lines [c:d] of the new one; the two are alike where `same`.
    Step: TypeAlias = tuple[bool, int, int, int, int]

_CONTEXT = 3
# Between two lines that stand once in both texts there is rarely more; where there is, all of it is taken for changed.
_MOST = 2_000


def lines(before: bytes, after: bytes, old: str, new: str) -> Iterator[str]:
    """Yield the lines of a diff of two texts, without line ends; nothing where they are equal.

    `old` and `new` are the files' names; an empty one is that of a file that is not there.
    """
    parts = [(before, before if before == after else after, "")]
    heads = (f"--- {_side('a', old)}", f"+++ {_side('b', new)}")
    return _unified(parts, lambda _: heads)


def stream(pieces: Iterable[Piece], file: str) -> Iterator[str]:
    """Yield the lines of a diff of a stream in its pieces, each under the name of the file that it is from.

    That is `file`, the stream's own, where a piece does not say. Under a name stands nothing of another. Line numbers
    are those of the whole stream, so that the diff of a stream of one name is a patch for it.
    """
    parts = ((piece.old, piece.new, _named(piece.source) or file) for piece in pieces if piece.old or piece.new)
    return _unified(parts, lambda name: (f"--- {_side('a', name)}", f"+++ {_side('b', name)}"))


def _named(source: str) -> str:
    """Return the name of a file as a diff can show it: a line break in it would be a line of the diff."""
    return source if source.isprintable() else ""


def _side(letter: str, name: str) -> str:
    """Return a name as git writes it; a blank in it ends it for patch, unless a tab does."""
    tab = "\t" if " " in name else ""
    return f"{letter}/{name.removeprefix('/')}{tab}" if name else "/dev/null"


def _unified(parts: Iterable[tuple[bytes, bytes, str]], heads: Callable[[str], tuple[str, str]]) -> Iterator[str]:
    i = k = 0  # lines before those at hand, in the old and the new text
    said = None
    for name, held in groupby(parts, lambda part: part[2]):
        old: list[bytes] = []
        new: list[bytes] = []
        steps: list[Step] = []
        for before, after, _ in held:
            a = _cut(before)
            c = a if after is before else _cut(after)
            found = [(True, 0, len(a), 0, len(c))] if c is a else _steps(a, c)
            steps += [(same, w + len(old), x + len(old), y + len(new), z + len(new)) for same, w, x, y, z in found]
            old += a
            new += c
        for hunk in _hunks(_slid(_joined(steps), new)):
            if name != said:
                said = name
                yield from heads(name)
            yield f"@@ -{_range(i + hunk[0][1], i + hunk[-1][2])} +{_range(k + hunk[0][3], k + hunk[-1][4])} @@"
            yield from _told(hunk, old, new)
        i += len(old)
        k += len(new)


def _told(hunk: Iterable[Step], old: Sequence[bytes], new: Sequence[bytes]) -> Iterator[str]:
    for same, w, x, y, z in hunk:
        for sign, held in ((" ", old[w:x]),) if same else (("-", old[w:x]), ("+", new[y:z])):
            for line in held:
                text = line.decode(errors="surrogateescape")
                yield sign + text.removesuffix("\n")
                if not text.endswith("\n"):
                    yield "\\ No newline at end of file"


def _cut(text: bytes) -> list[bytes]:
    held = text.split(b"\n")
    last = held.pop()
    return [line + b"\n" for line in held] + ([last] if last else [])


def _range(start: int, end: int) -> str:
    """Return lines as a hunk names them: the first and how many, of none the one before."""
    count = end - start
    return f"{start + 1}" if count == 1 else f"{start + (count > 0)},{count}"


def _steps(a: Sequence[bytes], b: Sequence[bytes]) -> Iterator[Step]:
    """Yield how `a` becomes `b`: between lines that stand once in both (Cohen's patience diff), which takes linear time
    and keeps objects together, as the shortest diff of manifests does not.
    """
    i = k = 0
    for x, y in (*_anchors(a, b), (len(a), len(b))):
        yield from _between(a, i, x, b, k, y)
        if x < len(a):
            yield True, x, x + 1, y, y + 1
        i, k = x + 1, y + 1


def _between(a: Sequence[bytes], i: int, j: int, b: Sequence[bytes], k: int, m: int) -> Iterator[Step]:
    start, first = i, k
    while i < j and k < m and a[i] == b[k]:
        i, k = i + 1, k + 1
    end, last = j, m
    while i < j and k < m and a[j - 1] == b[m - 1]:
        j, m = j - 1, m - 1
    if i > start:
        yield True, start, i, first, k
    if i == j or k == m or max(j - i, m - k) > _MOST:
        if i < j or k < m:
            yield False, i, j, k, m
    else:
        from difflib import SequenceMatcher

        for tag, w, x, y, z in SequenceMatcher(None, a[i:j], b[k:m], autojunk=False).get_opcodes():
            yield tag == "equal", i + w, i + x, k + y, k + z
    if j < end:
        yield True, j, end, m, last


def _anchors(a: Sequence[bytes], b: Sequence[bytes]) -> list[tuple[int, int]]:
    """Return the pairs of equal lines, each once in `a` and once in `b`, that stand in one order: the most of them."""
    there = _once(b)
    pairs = [(i, there[line]) for line, i in _once(a).items() if line in there]
    ends: list[int] = []  # where the last of the best chain of each length stands in `b`
    tails: list[int] = []  # and which pair that is
    before: list[int] = []
    for number, (_, k) in enumerate(pairs):
        length = bisect_left(ends, k)
        ends[length : length + 1] = [k]
        tails[length : length + 1] = [number]
        before.append(tails[length - 1] if length else -1)
    chain = []
    at = tails[-1] if tails else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _once(held: Sequence[bytes]) -> dict[bytes, int]:
    seen: dict[bytes, int] = {}
    for number, line in enumerate(held):
        seen[line] = -1 if line in seen else number
    return {line: number for line, number in seen.items() if number >= 0}


def _joined(steps: Iterable[Step]) -> list[Step]:
    """Return the steps with neighbors of one kind made one."""
    joined: list[Step] = []
    for step in steps:
        if joined and joined[-1][0] == step[0]:
            same, i, _, k, _ = joined.pop()
            joined.append((same, i, step[2], k, step[4]))
        elif step[1] < step[2] or step[3] < step[4]:
            joined.append(step)
    return joined


def _slid(steps: Sequence[Step], new: Sequence[bytes]) -> list[Step]:
    """Return the steps with documents that are new moved up to begin with their own `---`, not with the next one's."""
    slid: list[Step] = []
    for same, i, j, k, m in steps:
        if same or i < j or not slid:
            slid.append((same, i, j, k, m))
            continue
        _, before, _, above, _ = slid[-1]
        shift = 0
        for up in range(1, min(m - k, i - before) + 1):
            if new[k - up] != new[m - up]:
                break
            if new[k - up].startswith(b"---"):
                shift = up
        slid[-1] = (True, before, i - shift, above, k - shift)
        slid.append((False, i - shift, i - shift, k - shift, m - shift))
        if shift:
            slid.append((True, i - shift, i, m - shift, m))
    return _joined(slid)


def _hunks(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """Yield the steps in groups, with three equal lines around each."""
    hunk: list[Step] = []
    for number, (same, i, j, k, m) in enumerate(steps):
        if not same:
            hunk.append((same, i, j, k, m))
            continue
        last = number == len(steps) - 1
        if hunk and (last or j - i > 2 * _CONTEXT):
            yield [*hunk, *_some(i, min(j, i + _CONTEXT), k)]
            hunk = []
        if hunk:
            hunk.append((same, i, j, k, m))
        elif not last:
            hunk = [*_some(max(i, j - _CONTEXT), j, m - min(j - i, _CONTEXT))]
    if any(not same for same, *_ in hunk):
        yield hunk


def _some(i: int, j: int, k: int) -> list[Step]:
    return [(True, i, j, k, k + j - i)] if i < j else []


_BOLD, _RED, _GREEN, _CYAN, _RESET = "\033[1m", "\033[31m", "\033[32m", "\033[36m", "\033[m"


def printable(diff: Iterable[str]) -> Iterator[str]:
    """Yield the lines with nothing in them that moves the cursor or colors the terminal: they come from others."""
    for line in diff:
        yield "".join(char if char.isprintable() or char == "\t" else _escape(char) for char in line)


def colored(diff: Iterable[str]) -> Iterator[str]:
    """Yield the lines in git's colors, and printable."""
    colors = {"@": _CYAN, "-": _RED, "+": _GREEN}
    for line in printable(diff):
        head = line.startswith(("--- a/", "+++ b/"))
        color = _BOLD if head else colors.get(line[:1], "")
        yield f"{color}{line}{_RESET}" if color else line


def _escape(char: str) -> str:
    return "^M" if char == "\r" else f"\\x{ord(char):02x}" if ord(char) < 0x100 else f"\\u{ord(char):04x}"
