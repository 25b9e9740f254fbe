"""Requests as they are remembered."""

from __future__ import annotations

import time
import urllib.parse
from collections.abc import Sequence
from dataclasses import dataclass

from .wire import Head


@dataclass
class Request:
    """What came, and what became of it. Times are of the monotonic clock."""

    time: float
    method: str
    target: str
    watch: bool
    token: str | None
    # The fault it met, as it is written in Python.
    fault: str = ""
    # What the server answered, and what the client was told; after a lost answer only the first is there.
    served: int | None = None
    status: int | None = None
    # Lines of a watch that were passed on whole, those made up here included.
    events: int = 0
    ended: float | None = None

    @property
    def path(self) -> str:
        """The target without its query."""
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        """The query, the last value of each name."""
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2], keep_blank_values=True))


def request_of(head: Head) -> Request:
    """Return the record of a request that has just come."""
    method, target, _ = head.first.split(" ", 2)
    scheme, _, token = head.get("authorization").partition(" ")
    request = Request(time.monotonic(), method, target, False, token.strip() if scheme.lower() == "bearer" else None)
    request.watch = request.query.get("watch", "").lower() in ("1", "true") or "/watch/" in request.path
    return request


def busiest(requests: Sequence[Request], seconds: float = 1.0) -> int:
    """Return how many of the requests came within one window of so many seconds, at the most."""
    times = sorted(request.time for request in requests)
    start = most = 0
    for end, moment in enumerate(times):
        while moment - times[start] >= seconds:
            start += 1
        most = max(most, end - start + 1)
    return most
