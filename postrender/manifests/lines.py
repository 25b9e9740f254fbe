"""Lines of a text: where they begin and end, what breaks them, and what is only white space or comment.

A text is a string, or ASCII bytes that are looked at as one, so that a large list is not held twice.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Text: TypeAlias = str | "Ascii"

BLANKS = " \t"
# What breaks a line to libyaml and to its Go ports.
BREAKS = "\n\r\x85\u2028\u2029"


class Ascii:
    """ASCII bytes that are looked at as text, with what of str is used here: a large list is not held twice."""

    def __init__(self, data: bytes) -> None:
        """Look at `data`, which is ASCII."""
        self._data = data

    def __len__(self) -> int:
        """Return how many characters there are."""
        return len(self._data)

    def __getitem__(self, key: int | slice) -> str:
        """Return a character or a piece."""
        piece = self._data[key]
        return chr(piece) if isinstance(piece, int) else piece.decode()

    def startswith(self, prefix: str, start: int = 0) -> bool:
        """Return whether `prefix` stands at `start`."""
        return self._data.startswith(prefix.encode(), start)

    def find(self, sub: str, start: int = 0) -> int:
        """Return where `sub` stands next, or -1."""
        return self._data.find(sub.encode(), start)


def line_start(text: Text, index: int) -> int:
    """Return where the line of `index` begins."""
    while index > 0 and text[index - 1] not in BREAKS:
        index -= 1
    return index


def line_end(text: Text, index: int) -> int:
    """Return where the line ends, before its break."""
    while index < len(text) and text[index] not in BREAKS:
        index += 1
    return index


def newline_at(text: Text, index: int) -> str:
    """Return the line break that stands at the end of a line, or an empty string at the end of the text."""
    return "\r\n" if text.startswith("\r\n", index) else text[index : index + 1]


def break_before(text: Text, index: int) -> str:
    """Return the line break that ends at `index`, or an empty string."""
    if index == 0 or text[index - 1] not in BREAKS:
        return ""
    return "\r\n" if text[index - 1] == "\n" and text[index - 2 : index - 1] == "\r" else text[index - 1]


def line_above(text: Text, start: int) -> int:
    """Return where the line above ends, before its break; `start` begins a line that is not the first."""
    return start - len(break_before(text, start))


def first_newline(text: Text) -> str:
    """Return the first line break of a text, or LF where it has none."""
    return newline_at(text, line_end(text, 0)) or "\n"


def skip(text: Text, index: int) -> int:
    """Return the first code point from `index` on that is no white space and in no comment."""
    while index < len(text):
        if text[index] in BLANKS or text[index] in BREAKS:
            index += 1
        elif text[index] == "#":
            index = line_end(text, index)
        else:
            break
    return index


def is_content(line: str) -> bool:
    """Return whether the rest of a line holds more than white space and a comment."""
    rest = line.strip(BLANKS)
    return bool(rest) and not rest.startswith("#")


def has_marker(text: Text) -> bool:
    """Return whether a document begins with its `---`."""
    return text.startswith("---") and (text[3:4] in BLANKS or text[3:4] in BREAKS)


def moved(text: str, columns: int) -> str:
    """Return a text with its lines moved to the right; those without any character stay so."""
    lines = []
    index = 0
    while index < len(text):
        end = line_end(text, index)
        newline = newline_at(text, end)
        lines.append(f"{' ' * columns}{text[index:end]}{newline}" if end > index else newline)
        index = end + len(newline)
    return "".join(lines)
