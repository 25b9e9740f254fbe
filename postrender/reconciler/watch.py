"""The PodGroups of a cluster, kept up to date: a list, then a watch from there on, for as long as we run.

`once` makes one request and says how long to wait before the next; who calls it waits. Whatever goes wrong, no request
follows another in less than half a second but the watch that follows a list, and where it goes wrong again and again
the pauses double. The next request begins where the last one ended, or with a list where the server says that it no
longer knows that place (410). Resource versions are handed back as they came and never looked into. A connection that
died without a word is noticed by its silence.
"""

from __future__ import annotations

import json
import random
import time

from ..cluster.client import Refused, Unreachable
from ..record import Record
from .decide import FAILED, Group, group

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol, TypeAlias

    from ..cluster.client import Page, Timeout

    Json: TypeAlias = dict[str, Any]
    Key: TypeAlias = tuple[str, str]

    class Lister(Protocol):
        """What of a client is used."""

        def page(self, path: str, query: dict[str, str | int] | None = None, following: str = "") -> Page:
            """Return a page of a list."""

        def lines(self, path: str, query: dict[str, str | int], timeout: Timeout) -> Iterator[bytes]:
            """Yield the lines of a watch."""


PATH = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
# How long the server keeps a watch.
SHORTEST, LONGEST = 240, 300
LEAST = 0.5
# A watch that lasted so long was none of those that fail again and again.
LASTING = 5.0
# Longer than this we do not wait, whatever the server asks for: a liveness probe ends at three minutes.
OBEYED = 120.0


class Pace(Record):
    """Seconds: what the watch takes its time by.

    Bookmarks come about once a minute: a watch that says nothing for `silence` is begun anew. `relist` is how old the
    list may get on which all rests; `longest` the longest pause after errors, and half as much more by chance; `absent`
    how long to wait where the CRD is not there.
    """

    silence: float = 90.0
    relist: float = 600.0
    longest: float = 30.0
    absent: float = 30.0


_PACE = Pace()


class Watch:
    """Keeps `groups`; `changed` is called for each that comes, changes or goes, by its key.

    `present` says whether the CRD is there, None while it is not known; `synced` is when a list was whole last, and
    `progress` when anything was tried or heard, in seconds of the monotonic clock, or negative for never.
    """

    def __init__(
        self,
        client: Lister,
        changed: Callable[[Key], None],
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        pace: Pace = _PACE,
    ) -> None:
        """Begin with nothing; the first `once` lists."""
        self.groups: dict[Key, Group] = {}
        self.present: bool | None = None
        self.synced = -1.0
        self.progress = -1.0
        self.restarts: dict[str, int] = {}
        self.lists: dict[str, int] = {}
        self._client = client
        self._changed = changed
        self._clock = clock
        self._chance = chance
        self._pace = pace
        self._version = ""  # where to watch from; empty where a list is needed
        self._why = "start"  # it is
        self._failures = 0
        self._heard = False

    def once(self) -> float:
        """List, or watch until that ends; return how many seconds to wait before the next."""
        self.progress = began = self._clock()
        self._heard = False
        listing = not self._version or self._old()
        try:
            if listing:
                self.list()
                return 0.0
            self._follow()
        except (Refused, Unreachable) as error:
            # To have heard something is not enough where it ends with a refusal each time, for that may cost a list.
            heard = self._heard and isinstance(error, Unreachable)
            if not listing and (heard or self._lasted(began)):
                self._failures = 0
            return self._refused(error) if isinstance(error, Refused) else self._failed("unreachable")
        finally:
            self.progress = self._clock()
        if not self._heard and not self._lasted(began):
            return self._failed("closed")
        self._failures = 0
        self._count("closed")
        return max(0.0, LEAST - (self._clock() - began))

    def _lasted(self, began: float) -> bool:
        return self._clock() - began >= LASTING

    def _old(self) -> bool:
        return self._clock() - self.synced >= self._pace.relist

    # List

    def list(self) -> None:
        """Read all of them, page by page; raises Refused or Unreachable, and then what was known stays."""
        why = self._why if not self._version else "age"
        self.lists[why] = self.lists.get(why, 0) + 1
        found: dict[Key, Group] = {}
        following = ""
        while True:
            page = self._client.page(PATH, None, following)
            self.progress = self._clock()
            for held in page.items:
                one = group(held)
                if one is not None:
                    found[one.key] = one
            following = page.following
            if not following:
                break
        before, self.groups = self.groups, found
        self._version = page.resource_version
        self._why = ""
        self.present = True
        self.synced = self._clock()
        for key in before.keys() - found.keys():
            self._changed(key)
        for key, one in found.items():
            known = before.get(key)
            # What failed is looked at again whatever is known, should anything have been missed.
            if known is None or known.resource_version != one.resource_version or one.phase == FAILED:
                self._changed(key)

    # Watch

    def _follow(self) -> None:
        seconds = int(SHORTEST + self._chance() * (LONGEST - SHORTEST))
        query: dict[str, str | int] = {
            "watch": 1,
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }
        for line in self._client.lines(PATH, query, (10.0, self._pace.silence)):
            self.progress = self._clock()
            if not line.strip():
                continue
            try:
                event = json.loads(line)
                kind, held = event["type"], event["object"]
                version = (held.get("metadata") or {}).get("resourceVersion")
            except (ValueError, KeyError, TypeError, AttributeError):
                raise Unreachable("a line of the watch is no event") from None
            if kind == "ERROR":
                code = held.get("code")
                reason, message = str(held.get("reason", "")), str(held.get("message", ""))
                raise Refused(code if isinstance(code, int) else 500, reason, message)
            self._heard = True
            self._take(kind, group(held), version)
            if self._old():
                return

    def _take(self, kind: str, one: Group | None, version: object) -> None:
        if kind == "DELETED" and one is not None:
            self.groups.pop(one.key, None)
        elif kind in ("ADDED", "MODIFIED") and one is not None:
            self.groups[one.key] = one
        if version:
            self._version = str(version)
        if one is not None and kind != "BOOKMARK":
            self._changed(one.key)

    # What goes wrong

    def _refused(self, refused: Refused) -> float:
        if refused.status == 404:  # the CRD is not there
            gone = list(self.groups)
            self.groups = {}
            self._version, self._why = "", "crd"
            self.present = False
            self._count("crd")
            for key in gone:
                self._changed(key)
            return self._pace.absent
        if refused.status == 410:  # what we know is too old to go on from
            self._version, self._why = "", "expired"
        wait = self._failed("expired" if refused.status == 410 else str(refused.status))
        return max(wait, min(refused.retry_after, OBEYED))

    def _failed(self, why: str) -> float:
        """Count a failure; return half a second, doubled with each, up to half as much more, and never too long."""
        self._failures += 1
        self._count(why)
        wait = min(LEAST * 2.0 ** min(self._failures - 1, 10), self._pace.longest)
        return wait * (1 + self._chance() / 2)

    def _count(self, why: str) -> None:
        self.restarts[why] = self.restarts.get(why, 0) + 1
