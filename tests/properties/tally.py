"""How often a property test met what: counted while it runs, shown at the end of the run (see conftest)."""

from __future__ import annotations

import os
from collections import Counter

# Sizes and seeds: `make test` runs few documents, `make fuzz` sets FUZZ_EXAMPLES to many.
FUZZ = int(os.environ.get("FUZZ_EXAMPLES", "0"))
SEED = os.environ.get("FUZZ_SEED", "1")

SHOWN: list[Tally] = []


class Tally:
    """Counts under a title."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.counts: Counter[str] = Counter()
        SHOWN.append(self)

    def add(self, what: str, number: int = 1) -> None:
        self.counts[what] += number

    def under(self, prefix: str) -> int:
        return sum(number for what, number in self.counts.items() if what.startswith(prefix))

    def heading(self) -> str:
        return f"properties: {self.title}"

    def lines(self) -> list[str]:
        return [self.title] + [f"  {number:7}  {what}" for what, number in sorted(self.counts.items())]
