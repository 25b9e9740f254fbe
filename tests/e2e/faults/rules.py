"""Which requests meet which fault."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .kinds import Fault
from .records import Request


@dataclass
class Rule:
    """Which requests meet a fault; `times` None is for ever, `skip` lets so many through first."""

    fault: Fault
    method: str = ""
    path: str = ""
    watch: bool | None = None
    times: int | None = None
    skip: int = 0
    used: int = 0

    def fits(self, request: Request) -> bool:
        """Whether the request is one of those that the rule is about."""
        return (
            self.method in ("", request.method)
            and self.watch in (None, request.watch)
            and re.search(self.path, request.target) is not None
        )

    def takes(self, request: Request) -> bool:
        """Whether the request meets the fault; counts it."""
        if (self.times is not None and self.used >= self.times) or not self.fits(request):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.used += 1
        return True
