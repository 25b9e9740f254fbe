"""Says things in the cluster, at most so often; what cannot be said is logged, and not tried again."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timezone

from ..cluster.client import Refused, Unreachable
from . import events
from .log import INFO, WARNING
from .queue import Rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .api import Api
    from .events import Note
    from .log import Log
    from .metrics import Metrics

DAY = 86_400.0
_REPEAT = 300.0  # an Event that is there already is not counted up more often
_AT_ONCE = 5  # Events for one owner, and then one a minute
_REMEMBERED = 1_000


class Voice:
    """Posts Events. Threads share it."""

    def __init__(
        self,
        api: Api,
        log: Log,
        metrics: Metrics,
        instance: str,
        dry_run: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`instance` is who speaks; a `dry_run` only logs what would be said."""
        self._api = api
        self._log = log
        self._metrics = metrics
        self._instance = instance
        self._dry_run = dry_run
        self._clock = clock
        self._lock = threading.Lock()
        self._said: dict[str, tuple[int, float]] = {}  # Events by name: how often, and when last
        self._budgets: dict[str, Rate] = {}

    def say(self, note: Note) -> None:
        """Post an Event, if it is not a repeat too soon, and its owner has not had too many."""
        now = self._clock()
        with self._lock:
            count, last = self._said.get(note.name, (0, -_REPEAT))
            if count and now - last < _REPEAT:
                return
            budget = self._budgets.setdefault(note.owner.uid, Rate(1 / 60, _AT_ONCE, now))
            limited = not budget.take(now)
            if not limited:
                self._said[note.name] = (count + 1, now)
            for held in (self._said, self._budgets):
                if len(held) > _REMEMBERED:
                    held.pop(next(iter(held)))
        if limited:
            self._metrics.add("events_posted_total", note.reason, "limited")
            return
        if self._dry_run:
            self._log(INFO, "would say", reason=note.reason, namespace=note.owner.namespace, name=note.about)
            return
        result = "posted"
        try:
            self._post(note, count)
        except (Refused, Unreachable) as error:
            result = "failed"
            with self._lock:
                self._said.pop(note.name, None)
            self._log(WARNING, f"the Event was not taken: {error}", reason=note.reason, name=note.about)
        self._metrics.add("events_posted_total", note.reason, result)

    def _post(self, note: Note, count: int) -> None:
        stamp = datetime.now(timezone.utc)
        try:
            self._api.say(note.owner.namespace, events.body(note, stamp, self._instance))
        except Refused as refused:
            if refused.status != 409:
                raise
            if note.reason != events.RESET:  # of a reset, the Event that is there says it all
                change = events.again(max(2, count + 1), stamp)
                self._api.say_again(note.owner.namespace, note.name, change)
