"""Makes a failing stream small: takes lines and then stretches of characters away while the failure stays the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_LINE = re.compile("[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029])|[^\n\r\x85\u2028\u2029]+")


def shrunk(text: str, fails: Callable[[str], bool], tries: int = 3000) -> str:
    """A text that still fails, of which no line and few characters can go."""
    left = [tries]

    def still(pieces: list[str]) -> bool:
        left[0] -= 1
        return left[0] > 0 and fails("".join(pieces))

    pieces = _without(_LINE.findall(text), still)
    return "".join(_without(list("".join(pieces)), still))


def _without(pieces: list[str], still: Callable[[list[str]], bool]) -> list[str]:
    size = max(len(pieces) // 2, 1)
    while True:
        at = 0
        before = len(pieces)
        while at < len(pieces):
            fewer = pieces[:at] + pieces[at + size :]
            if still(fewer):
                pieces = fewer
            else:
                at += size
        if size == 1 and len(pieces) == before:
            return pieces
        size = max(size // 2, 1)
