"""The loop: one thread that watches, a few that look at what changed, and the only place that waits.

Nothing that goes wrong ends a thread.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections import Counter

from ..cluster.client import Refused, Unreachable
from ..record import Record
from .api import Api
from .keeper import SOON, Keeper
from .log import ERROR, INFO, WARNING
from .queue import Queue
from .voice import Voice
from .watch import Pace, Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..cluster.client import Client
    from .log import Log
    from .metrics import Metrics

    Key: TypeAlias = tuple[str, str]

WORKERS = 4
_GRACE = 8.0  # seconds for what is under way when we are to stop; whatever it is, it is guarded
_LONGEST = 300.0
_TRIES = 3
# The key of the cluster itself, which is looked at while the CRD is not there.
_CLUSTER = ("", "")
_ABSENT = 600.0
_NOT_SERVED = "podgroups.scheduling.x-k8s.io is not served, so there is nothing to do until it is"


class Settings(Record):
    """How it runs: requests a second, and how many at once; which of the default schedulers place gangs after all."""

    rate: float = 10.0
    burst: int = 20
    gang_schedulers: tuple[str, ...] = ()
    dry_run: bool = False


_PACE = Pace()


class Loop:
    """Runs from `start` to `stop`, or `once`."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        log: Log,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        pace: Pace = _PACE,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        """Make no request yet. `wait` waits for a request's turn, and returns whether we are to stop meanwhile."""
        self.metrics = metrics
        self.clock = clock
        self.stopping = threading.Event()
        self.watch = Watch(client, self._changed, clock, chance, pace)
        api = Api(client, metrics, settings.rate, settings.burst, wait or self.stopping.wait, clock)
        who = os.environ.get("HOSTNAME") or socket.gethostname()
        self._keeper = Keeper(
            lambda: self.watch.groups,
            api,
            Voice(api, log, metrics, who, settings.dry_run, clock),
            log,
            metrics,
            settings.gang_schedulers,
            settings.dry_run,
            clock,
        )
        self._log = log
        self._chance = chance
        self._turn = threading.Condition()
        self._queue = Queue()
        self._errors: dict[Key, int] = {}
        self._present: bool | None = None
        self._workers: list[threading.Thread] = []

    def start(self) -> None:
        """Watch and work, in threads, until stopped."""
        watch = threading.Thread(target=self._watch, name="watch", daemon=True)
        self._workers = [threading.Thread(target=self._work, name=f"worker-{n}", daemon=True) for n in range(WORKERS)]
        for thread in (watch, *self._workers):
            thread.start()

    def stop(self) -> int:
        """End when what is under way is done, or eight seconds later; return how many were not."""
        self.stopping.set()
        with self._turn:
            self._turn.notify_all()
        end = time.monotonic() + _GRACE
        for thread in self._workers:
            thread.join(max(0.0, end - time.monotonic()))
        return sum(thread.is_alive() for thread in self._workers)

    def once(self) -> None:
        """List, do what can be done at once, and return; raises the first Refused or Unreachable that was met.

        What is refused of one PodGroup keeps nobody from looking at the others.
        """
        self._list()
        self._presence()
        until = self.clock() + 1
        wrong: Refused | Unreachable | None = None
        while (key := self._queue.take(until)) is not None:
            try:
                tries = 1
                while self._keeper.look(key) == SOON and tries < _TRIES:
                    tries += 1
            except (Refused, Unreachable) as error:
                self._log(WARNING, str(error), namespace=key[0], name=key[1])
                wrong = wrong or error
        if wrong is not None:
            raise wrong

    def _list(self) -> None:
        """List, again where the server forgot a list before its end."""
        for left in reversed(range(_TRIES)):
            try:
                self.watch.list()
            except Refused as refused:
                if refused.status == 404:
                    raise Refused(404, refused.reason, _NOT_SERVED + "; install its CRD") from None
                if refused.status != 410 or not left:
                    raise
            else:
                return

    # Threads

    def _watch(self) -> None:
        while not self.stopping.is_set():
            try:
                seconds = self.watch.once()
                self._presence()
            except Exception as error:  # a bug must not end the watch
                self.bug(error)
                seconds = 30.0
            if seconds:
                self.stopping.wait(seconds)

    def _work(self) -> None:
        while not self.stopping.is_set():
            with self._turn:
                key = self._queue.take(self.clock())
                if key is None:
                    self._turn.wait(self._queue.wait(self.clock()))
                    continue
            self._process(key)

    def _changed(self, key: Key) -> None:
        """Have a PodGroup looked at, if there is something about it that may need it."""
        seconds = self._keeper.due(key)
        if seconds is not None:
            # Many at once come in no order, so that none is always the last.
            self._add(key, seconds + self._chance() / 10)

    def _add(self, key: Key, seconds: float) -> None:
        with self._turn:
            self._queue.add(key, self.clock() + seconds)
            self._turn.notify()

    def _process(self, key: Key) -> None:
        """Look at a PodGroup; have it looked at again, later after each error."""
        try:
            again = self._missing() if key == _CLUSTER else self._keeper.look(key)
            self._errors.pop(key, None)
        except (Refused, Unreachable) as error:
            again = self._later(key, error)
        except Exception as error:  # a bug must not end a worker
            self.bug(error, key)
            again = 60.0
        with self._turn:
            now = self.clock()
            self._queue.done(key, now)
            if again:
                self._queue.add(key, now + again)
            depth = len(self._queue)
            self._turn.notify()
        self.metrics.set("queue_depth", depth)

    def _later(self, key: Key, error: Refused | Unreachable) -> float:
        """Return how long to wait after an error: what a right or a field forbids will not be better in a second."""
        count = self._errors[key] = self._errors.get(key, 0) + 1
        lasting = isinstance(error, Refused) and error.status in (403, 422)
        wait = min(_LONGEST, (60.0 if lasting else 1.0) * float(2 ** min(count - 1, 8))) * (1 + self._chance() / 2)
        if not self.stopping.is_set():
            self._log(WARNING, str(error), namespace=key[0], name=key[1], attempt=count, again_s=round(wait, 1))
        return max(wait, error.retry_after if isinstance(error, Refused) else 0.0)

    # What the watch turns out to be

    def _presence(self) -> None:
        """Say when the CRD is there, and when it is not."""
        present = self.watch.present
        self.metrics.set("gang_crd_available", 1 if present else 0)
        if present is None or present == self._present:
            return
        self._present = present
        if present:
            self._log(INFO, "podgroups.scheduling.x-k8s.io is served", podgroups=len(self.watch.groups))
            return
        self._log(WARNING, _NOT_SERVED)
        self._add(_CLUSTER, 0.0)

    def _missing(self) -> float:
        """Say that the CRD is not there, while it is not; return when to look who else needs to know."""
        if self.watch.present is not False:
            return 0.0
        self._keeper.missing()
        return _ABSENT

    def gauges(self) -> None:
        """Bring the gauges up to date, for who reads them."""
        metrics, watch = self.metrics, self.watch
        phases = Counter(one.phase or "none" for one in list(watch.groups.values()) if one.made_for)
        metrics.replace("podgroups", dict(phases))
        metrics.replace("podgroup_resets_held", self._keeper.held)
        metrics.set("podgroup_ownership_conflicts", self._keeper.conflicts)
        metrics.replace("watch_restarts_total", dict(watch.restarts))
        metrics.replace("relists_total", dict(watch.lists))
        if watch.synced >= 0:
            synced = time.time() - (self.clock() - watch.synced)
            metrics.set("last_successful_sync_timestamp_seconds", synced)

    def bug(self, error: Exception, key: Key = ("", "")) -> None:
        """Report an error of the program itself, which it goes on after."""
        self.metrics.add("errors_total")
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}" if at else ""
        self._log(ERROR, f"a bug: {type(error).__name__}: {error}", at=where, namespace=key[0], name=key[1])
