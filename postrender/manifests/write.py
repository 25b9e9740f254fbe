"""A value -> text at a column, in block or flow style, with a given line break.

Everything we ever write goes through here; PyYAML's dumper leaves `y` and `1e3` unquoted, which Go reads as other
things.
"""

from __future__ import annotations

from .lines import has_marker, skip
from .scalars import write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from .change import Pairs, Value
    from .lines import Text

    # What a document of our own may hold beyond a change: lists, and numbers that are no integers.
    Held: TypeAlias = str | int | float | bool | "Members" | list["Held"]
    Members: TypeAlias = tuple[tuple[str, Held], ...]

# How many columns further in a nested map stands when the document shows no habit of its own.
STEP = 2


def block(value: Members, column: int, newline: str, step: int = STEP) -> str:
    """Return the members of a map as whole lines, each ended by `newline`."""
    lines: list[str] = []
    _members(value, column, step, lines)
    return "".join(line + newline for line in lines)


def _members(value: Members, column: int, step: int, lines: list[str]) -> None:
    indent = " " * column
    for key, held in value:
        if isinstance(held, (tuple, list)):
            if held:
                lines.append(f"{indent}{write(key)}:")
                if isinstance(held, tuple):
                    _members(held, column + step, step, lines)
                else:
                    _items(held, column, step, lines)
            else:
                lines.append(f"{indent}{write(key)}: {'{}' if isinstance(held, tuple) else '[]'}")
        else:
            lines.append(f"{indent}{write(key)}: {write(held)}")


def _items(value: list[Held], column: int, step: int, lines: list[str]) -> None:
    """Write the items of a list, each behind a dash, which stands for the first two columns of its first line."""
    indent = " " * column
    for held in value:
        first = len(lines)
        if isinstance(held, tuple) and held:
            _members(held, column + 2, step, lines)
        elif isinstance(held, list) and held:
            _items(held, column + 2, step, lines)
        else:
            text = "{}" if isinstance(held, tuple) else "[]" if isinstance(held, list) else write(held)
            lines.append(f"{indent}  {text}")
        lines[first] = f"{indent}- {lines[first][column + 2 :]}"


class Flow:
    """How flow text is written: JSON quotes every string, and tight text has no blanks after colons and commas."""

    __slots__ = ("colon", "comma", "json")

    def __init__(self, json: bool, tight: bool) -> None:
        """Tight text is JSON only: without quotes `a:b` would be one word."""
        self.json = json
        self.colon = ":" if json and tight else ": "
        self.comma = "," if json and tight else ", "

    def members(self, value: Pairs) -> str:
        """Return the members of a map without its braces."""
        return self.comma.join(f"{write(key, self.json)}{self.colon}{self.value(held)}" for key, held in value)

    def value(self, value: Value) -> str:
        """Return a value."""
        return "{" + self.members(value) + "}" if isinstance(value, tuple) else write(value, self.json)


def habits(text: Text) -> Flow:
    """Return how flow text is written in a document: as JSON if it begins with a brace and a double-quoted key."""
    index = skip(text, 3 if has_marker(text) else 0)
    first = skip(text, index + 1)
    json = text.startswith("{", index) and text.startswith('"', first)
    colon = text.find('":', first) + 2
    return Flow(json, json and colon > 1 and not text[colon : colon + 1].isspace())
