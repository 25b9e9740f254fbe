"""A clock that moves when somebody waits."""

from __future__ import annotations


class Clock:
    """Called, it tells its time; `wait` lets that pass, and says that nobody is to stop."""

    def __init__(self, now: float = 1_000.0) -> None:
        self.now = now
        self.waited: list[float] = []

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> bool:
        self.waited.append(seconds)
        self.now += seconds
        return False
