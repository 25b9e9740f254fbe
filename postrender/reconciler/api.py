"""The requests of the reconciler: each waits for its turn, is counted, and is one that the shipped rights allow.

There are two writes, the status of a PodGroup and Events, and no way to make another.
"""

from __future__ import annotations

import re
import threading
import time
from functools import partial

from ..cluster.client import Refused, Unreachable
from ..gangs import keys
from .decide import FAILED, PENDING, Failures, Group, Owner, group
from .queue import Rate
from .watch import LEAST, OBEYED, PATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from ..cluster.client import Client
    from .metrics import Metrics

    Json: TypeAlias = dict[str, Any]

# A worker is not kept longer by one request; what a write whose answer is late has done is seen at the next look.
_TIMEOUT = (5.0, 20.0)
_LONGEST_PAUSE = 30.0
# An annotation is anybody's text, and part of a path only if it is a name.
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?", re.ASCII)
# What a PodGroup can be made for: where that is found.
_OWNERS = {
    keys.INFERENCE_SERVICE: ("ome.io/v1beta1", "inferenceservices"),
    keys.INFERENCE_REPLICA: ("ome.io/v1beta1", "inferencereplicas"),
    keys.LEADER_WORKER_SET: ("leaderworkerset.x-k8s.io/v1", "leaderworkersets"),
}


class Api:
    """Makes requests at a bounded rate; threads share it.

    While the server fails or asks to wait, one request at a time finds out whether it still does, and all others wait.
    """

    def __init__(
        self,
        client: Client,
        metrics: Metrics,
        rate: float,
        burst: int,
        wait: Callable[[float], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`wait` waits so many seconds, and returns whether we are to stop."""
        self._client = client
        self._metrics = metrics
        self._clock = clock
        self._wait = wait
        self._rate = Rate(rate, burst, clock())
        self._lock = threading.Lock()
        self._failures = 0
        self._open_at = 0.0  # while it fails
        self._asked_until = 0.0

    def group(self, namespace: str, name: str) -> Group | None:
        """Return a PodGroup as it is now, None where there is none."""
        held = self._found(f"{_in(namespace)}/{name}", "podgroups")
        return group(held) if held is not None else None

    def reset(self, one: Group) -> None:
        """Write Pending into the phase of a PodGroup, if it is still what was read; raises Refused 409 if not."""
        body = {"metadata": {"resourceVersion": one.resource_version}, "status": {"phase": PENDING}}
        path = f"{_in(one.namespace)}/{one.name}/status"
        self._ask("patch", "podgroups/status", lambda: self._client.patch(path, body, _TIMEOUT))

    def owner(self, kind: str, namespace: str, name: str) -> Owner | None:
        """Return what a PodGroup was made for, None where it is not there, or is nothing that we make any for."""
        if kind not in _OWNERS or _NAME.fullmatch(name) is None:
            return None
        version, resource = _OWNERS[kind]
        held = self._found(f"/apis/{version}/namespaces/{namespace}/{resource}/{name}", resource)
        if held is None:
            return None
        metadata = held.get("metadata") or {}
        deleted = metadata.get("deletionTimestamp") is not None
        return Owner(version, kind, namespace, name, str(metadata.get("uid", "")), deleted)

    def failures(self, one: Group) -> Failures:
        """Return the failed pods that carry the label of a PodGroup's name, in any namespace, terminating ones too."""
        query: dict[str, str | int] = {
            "labelSelector": f"{keys.POD_GROUP}={one.name}",
            "fieldSelector": f"status.phase={FAILED}",
        }
        namespaces = [namespace for namespace, _ in self._pods("", query)]
        others = sorted({namespace for namespace in namespaces if namespace != one.namespace})
        return Failures(namespaces.count(one.namespace), tuple(others))

    def members(self, namespace: str, name: str) -> list[Json]:
        """Return a page of the pods that carry the label of a PodGroup's name."""
        return [pod for _, pod in self._pods(namespace, {"labelSelector": f"{keys.POD_GROUP}={name}"}, pages=1)]

    def labelled(self) -> Iterator[Json]:
        """Yield all pods that carry the label of some PodGroup."""
        for _, pod in self._pods("", {"labelSelector": keys.POD_GROUP}):
            yield pod

    def say(self, namespace: str, event: Json) -> None:
        """Create an Event; raises Refused 409 where it is there already."""
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
        self._ask("create", "events", lambda: self._client.post(path, event, _TIMEOUT))

    def say_again(self, namespace: str, name: str, change: Json) -> None:
        """Merge a change into an Event."""
        path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events/{name}"
        self._ask("patch", "events", lambda: self._client.patch(path, change, _TIMEOUT))

    def _pods(self, namespace: str, query: dict[str, str | int], pages: int = 1_000) -> Iterator[tuple[str, Json]]:
        path = f"/api/v1/namespaces/{namespace}/pods" if namespace else "/api/v1/pods"
        following = ""
        for _ in range(pages):
            asked = {**query, "limit": 500, **({"continue": following} if following else {})}
            held = self._ask("list", "pods", partial(self._client.get, path, asked, _TIMEOUT))
            for pod in held.get("items") or []:
                yield str((pod.get("metadata") or {}).get("namespace", "")), pod
            following = str((held.get("metadata") or {}).get("continue") or "")
            if not following:
                return

    def _found(self, path: str, resource: str) -> Json | None:
        try:
            return self._ask("get", resource, lambda: self._client.get(path, None, _TIMEOUT))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def _ask(self, verb: str, resource: str, request: Callable[[], Json]) -> Json:
        """Make a request when its turn has come."""
        self._turn()
        began = self._clock()
        code = "200"
        try:
            held = request()
        except Refused as refused:
            code = str(refused.status)
            self._heard(refused.status == 429 or refused.status >= 500, refused.retry_after)
            raise
        except Unreachable:
            code = "none"
            self._heard(True)
            raise
        finally:
            self._metrics.add("api_requests_total", verb, resource, code)
            self._metrics.took(self._clock() - began)
        self._heard(False)
        return held

    def _turn(self) -> None:
        """Wait for a turn; raises Unreachable where we are to stop meanwhile."""
        while True:
            with self._lock:
                now = self._clock()
                opens = max(self._open_at, self._asked_until)
                waiting = now < opens
                if waiting:
                    seconds = min(opens - now, LEAST)  # it may go well before
                else:
                    seconds = self._rate.reserve(now)
                    if self._failures:
                        self._open_at = now + self._pause()
            if seconds and self._wait(seconds):
                raise Unreachable("we are asked to stop")
            if not waiting:
                return

    def _heard(self, failed: bool, retry_after: float = 0.0) -> None:
        """Learn from an answer whether the server is well."""
        with self._lock:
            now = self._clock()
            if not failed:
                self._failures, self._open_at = 0, now
                return
            self._failures += 1
            self._open_at = max(self._open_at, now + self._pause())
            self._asked_until = max(self._asked_until, now + min(retry_after, OBEYED))

    def _pause(self) -> float:
        return min(LEAST * 2.0 ** min(self._failures - 1, 10), _LONGEST_PAUSE)


def _in(namespace: str) -> str:
    return PATH.replace("/podgroups", f"/namespaces/{namespace}/podgroups")
