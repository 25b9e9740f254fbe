"""The reconciler on an API server in memory, one step at a time, by a clock that moves when it is told to."""

from __future__ import annotations

import io
import json
from typing import Any

from postrender.reconciler.log import Log
from postrender.reconciler.loop import Loop, Settings
from postrender.reconciler.metrics import Metrics
from postrender.reconciler.watch import Pace

from .clock import Clock
from .memory import Memory


class Running:
    """A reconciler that is told when to go on."""

    def __init__(
        self, memory: Memory, clock: Clock, settings: Settings | None = None, pace: Pace | None = None
    ) -> None:
        self.memory = memory
        self.clock = clock
        self.written = io.StringIO()
        self.metrics = Metrics()
        log = Log(self.written, verbose=True)
        self.loop = Loop(
            memory,
            settings or Settings(1_000.0, 1_000),
            log,
            self.metrics,
            clock,
            lambda: 0.0,
            pace or Pace(),
            clock.wait,
        )

    def hear(self) -> float:
        """Make one request of the watch; how long it would wait before the next."""
        seconds = self.loop.watch.once()
        self.loop._presence()
        return seconds

    def work(self) -> int:
        """Look at all whose time has come; how many these were."""
        count = 0
        while (key := self.loop._queue.take(self.clock())) is not None:
            self.loop._process(key)
            count += 1
        return count

    def step(self, seconds: float = 0.0) -> int:
        """Let time pass, hear what there is, and look at all whose time has come."""
        self.clock.now += seconds
        self.hear()
        return self.work()

    def until(self, seconds: float, apart: float = 1.0) -> None:
        """Go on for a while, step by step."""
        end = self.clock() + seconds
        while self.clock() < end:
            self.step(apart)

    def log(self, message: str = "", **fields: Any) -> list[dict[str, Any]]:
        """The lines with this message and these fields."""
        lines = [json.loads(line) for line in self.written.getvalue().splitlines()]
        return [
            line
            for line in lines
            if message in ("", line["msg"]) and all(line.get(key) == value for key, value in fields.items())
        ]

    def metric(self, name: str, *labels: str) -> float:
        """The value of a metric."""
        self.loop.gauges()
        return self.metrics._values[name].get(labels, 0.0)


def running(memory: Memory | None = None, **settings: Any) -> Running:
    """One that has listed, and looked at what there was."""
    one = Running(memory or Memory(), Clock(), Settings(**{"rate": 1_000.0, "burst": 1_000, **settings}))
    one.step()
    return one
