"""What is to be looked at, when, and in which order; nothing here waits.

A key is there once however often it is added, is handed to one worker at a time, rests after that, and namespaces take
turns, so that one with five hundred failed gangs does not keep another waiting.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    Key: TypeAlias = tuple[str, str]

# Seconds between two looks at a key: what somebody writes twenty times a second is not asked for as often.
REST = 2.0
_NEVER = float("inf")
_SPARE = 64


class Queue:
    """Keys of namespace and name, each with the time from which on it may be taken. Not safe for threads by itself."""

    def __init__(self) -> None:
        """Begin empty."""
        self._at: dict[Key, float] = {}
        self._later: list[tuple[float, Key]] = []
        self._ready: dict[str, deque[Key]] = {}
        self._turns: deque[str] = deque()
        self._ripe: set[Key] = set()  # what is in `_ready`
        self._in_hand: dict[Key, float] = {}  # from when on it is to be taken again
        self._rest: OrderedDict[Key, float] = OrderedDict()  # until when it is left alone

    def __len__(self) -> int:
        """How many keys wait, those of the future too."""
        return len(self._at)

    def add(self, key: Key, at: float) -> None:
        """Have a key taken from this time on; an earlier time that it has stays."""
        if key in self._in_hand:
            self._in_hand[key] = min(at, self._in_hand[key])
            return
        at = max(at, self._rest.get(key, at))
        if at < self._at.get(key, _NEVER):
            self._at[key] = at
            heapq.heappush(self._later, (at, key))
        # What was moved to an earlier time is left in the heap until then, which may be a day.
        if len(self._later) > 2 * len(self._at) + _SPARE:
            self._later = [(time, held) for held, time in self._at.items() if held not in self._ripe]
            heapq.heapify(self._later)

    def take(self, now: float) -> Key | None:
        """Return a key whose time has come, None if there is none; it is in hand until it is `done`."""
        self._ripen(now)
        if not self._turns:
            return None
        namespace = self._turns.popleft()
        keys = self._ready[namespace]
        key = keys.popleft()
        if keys:
            self._turns.append(namespace)
        else:
            del self._ready[namespace]
        del self._at[key]
        self._ripe.discard(key)
        self._in_hand[key] = _NEVER
        return key

    def done(self, key: Key, now: float) -> None:
        """Take a key out of hand; if it was added meanwhile, it comes again."""
        again = self._in_hand.pop(key)
        self._rest[key] = now + REST
        self._rest.move_to_end(key)
        if again < _NEVER:
            self.add(key, again)

    def wait(self, now: float) -> float | None:
        """Return in how many seconds the next key's time comes, 0 for at once, None for never."""
        self._ripen(now)
        if self._ripe:
            return 0.0
        return self._later[0][0] - now if self._later else None

    def _ripen(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            at, key = heapq.heappop(self._later)
            if self._at.get(key) != at or key in self._ripe:
                continue  # it was moved, or taken
            if key[0] not in self._ready:
                self._ready[key[0]] = deque()
                self._turns.append(key[0])
            self._ready[key[0]].append(key)
            self._ripe.add(key)
        while self._rest and next(iter(self._rest.values())) <= now:
            self._rest.popitem(last=False)


class Rate:
    """A token bucket: `rate` a second, `burst` at once. Not safe for threads by itself."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        """Begin full."""
        self._rate = rate
        self._burst = float(burst)
        self._left = float(burst)
        self._at = now

    def reserve(self, now: float) -> float:
        """Take one, and return how many seconds to wait before it may be used."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate) - 1
        self._at = now
        return max(0.0, -self._left / self._rate)

    def take(self, now: float) -> bool:
        """Take one if there is one."""
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
