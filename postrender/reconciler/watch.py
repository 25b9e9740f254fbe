"""The PodGroups of a cluster, kept up to date: a list, then a watch from there on, for as long as we run.

`once` makes one request and says how long to wait before the next; who calls it waits. Whatever goes wrong, no request
follows another in less than half a second but the watch that follows a list, and the next one begins where the last one
ended, or with a list where the server says that it no longer knows that place (410). Resource versions are handed back
as they came and never looked into. A connection that died without a word is noticed by its silence.
"""

from __future__ import annotations

import json
import random
import time

from ..cluster.client import Refused, Unreachable
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
# Bookmarks come about once a minute; a watch that says nothing for longer than this is begun anew.
SILENCE = 90.0
# How long the server keeps a watch, and how old the list may get on which all rests.
SHORTEST, LONGEST = 240, 300
RELIST = 600.0
LEAST = 0.5
MOST = 30.0
ABSENT = 30.0
# Longer than this we do not wait, whatever the server asks for: a liveness probe ends at three minutes.
OBEYED = 120.0


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
        self._version = ""  # where to watch from; empty where a list is needed
        self._why = "start"  # it is
        self._failures = 0
        self._heard = False

    def once(self) -> float:
        """List, or watch until that ends; return how many seconds to wait before the next."""
        self.progress = self._clock()
        try:
            if not self._version or self._clock() - self.synced >= RELIST:
                self.list()
                return 0.0
            began = self._clock()
            self._heard = False
            self._follow()
            self._failures = 0 if self._heard or self._clock() - began >= LEAST else self._failures + 1
            return max(0.0, self._pause() if self._failures else LEAST - (self._clock() - began))
        except Refused as refused:
            return self._refused(refused.status, refused.retry_after)
        except Unreachable:
            return self._failed("unreachable")

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
        self._failures = 0
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
        for line in self._client.lines(PATH, query, (10.0, SILENCE)):
            self.progress = self._clock()
            if not line.strip():
                continue
            try:
                event = json.loads(line)
                kind, held = event["type"], event["object"]
            except (ValueError, KeyError, TypeError):
                raise Unreachable("a line of the watch is no event") from None
            if kind == "ERROR":
                raise Refused(int(held.get("code") or 500), str(held.get("reason", "")), str(held.get("message", "")))
            self._heard = True
            self._take(kind, held)
            if self._clock() - self.synced >= RELIST:
                return
        self._count("closed")

    def _take(self, kind: str, held: Json) -> None:
        version = (held.get("metadata") or {}).get("resourceVersion")
        one = group(held)
        if kind == "DELETED" and one is not None:
            self.groups.pop(one.key, None)
        elif kind in ("ADDED", "MODIFIED") and one is not None:
            self.groups[one.key] = one
        if version:
            self._version = str(version)
        if one is not None and kind != "BOOKMARK":
            self._changed(one.key)

    # What goes wrong

    def _refused(self, status: int, retry_after: float) -> float:
        if status == 410:  # what we know is too old to go on from
            self._version, self._why = "", "expired"
            self._failures += 1
            self._count("expired")
            return self._pause(LEAST) if self._failures > 1 else LEAST
        if status == 404:  # the CRD is not there
            gone = list(self.groups)
            self.groups = {}
            self._version, self._why = "", "crd"
            self.present = False
            self._count("crd")
            for key in gone:
                self._changed(key)
            return ABSENT
        return max(self._failed(str(status)), min(retry_after, OBEYED))

    def _failed(self, why: str) -> float:
        self._failures += 1
        self._count(why)
        return self._pause()

    def _pause(self, most: float = MOST) -> float:
        """Return half a second, twice as long after each failure, up to half a minute, and up to half as long again."""
        return float(min(LEAST * 2 ** min(self._failures - 1, 10), most) * (1 + self._chance() / 2))

    def _count(self, why: str) -> None:
        self.restarts[why] = self.restarts.get(why, 0) + 1
