"""An API server in memory, asked as `cluster.client.Client` is; as much of one as the reconciler asks for."""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from postrender.cluster.client import Page, Refused

Object = dict[str, Any]
Key = tuple[str, str, str]  # resource, namespace, name

GROUPS = "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"
LABEL = "scheduling.x-k8s.io/pod-group"
KINDS = {
    "InferenceService": "inferenceservices",
    "InferenceReplica": "inferencereplicas",
    "LeaderWorkerSet": "leaderworkersets",
}


class Memory:
    """Objects with versions; `asked` are the requests so far, as method, resource and name.

    `before` is called with each request, and may raise what the client then meets; what `after` raises is met by who
    asked for what was done all the same. `served` are resources; of others there is a 404.
    """

    def __init__(self) -> None:
        self.objects: dict[Key, Object] = {}
        self.served = {"podgroups", "podgroups/status", "pods", "events", *KINDS.values()}
        self.asked: list[tuple[str, str, str]] = []
        self.before: Callable[[str, str, str], None] = lambda *_: None
        self.after: Callable[[str, str, str], None] = lambda *_: None
        self.history: list[tuple[int, str, Object]] = []
        self.oldest = 0  # what was before is forgotten
        self.page_size = 500
        self._versions = itertools.count(1)
        self._uids = itertools.count(1)
        self.version = 0

    # What the test does

    def put(self, resource: str, held: Object) -> Object:
        """Create an object, or write it whole, whatever it was."""
        metadata = held["metadata"]
        key = (resource, metadata["namespace"], metadata["name"])
        known = self.objects.get(key)
        metadata.setdefault("uid", known["metadata"]["uid"] if known else f"uid-{next(self._uids)}")
        return self._written(key, held, "MODIFIED" if known else "ADDED")

    def drop(self, resource: str, namespace: str, name: str) -> None:
        """Delete an object, if it is there."""
        held = self.objects.pop((resource, namespace, name), None)
        if held is not None:
            self._told(resource, "DELETED", held)

    def owner(self, namespace: str, name: str, kind: str = "InferenceService", **metadata: Any) -> Object:
        """Put something that PodGroups are made for."""
        return self.put(KINDS[kind], {"metadata": {"namespace": namespace, "name": name, **metadata}})

    def group(self, namespace: str, name: str, phase: str = "Failed", made_for: str = "", **metadata: Any) -> Object:
        """Put a PodGroup of two, made for `svc`, or with `made_for` for something else, or with None for nothing."""
        annotations = {} if made_for is None else {"postrender/for": made_for or "InferenceService/svc"}
        held = {
            "metadata": {"namespace": namespace, "name": name, "annotations": annotations, **metadata},
            "spec": {"minMember": 2},
            "status": {"phase": phase, "failed": 1},
        }
        return self.put("podgroups", held)

    def pod(self, namespace: str, name: str, group: str, phase: str, **metadata: Any) -> Object:
        """Put a pod of a gang."""
        labels = {LABEL: group, **metadata.pop("labels", {})}
        held = {
            "metadata": {"namespace": namespace, "name": name, "labels": labels, **metadata},
            "status": {"phase": phase},
        }
        return self.put("pods", held | {"spec": {"schedulerName": "scheduler-plugins-scheduler"}})

    def phase(self, namespace: str, name: str) -> str:
        """The phase of a PodGroup."""
        return str((self.objects["podgroups", namespace, name].get("status") or {}).get("phase", ""))

    def events(self, reason: str = "") -> list[Object]:
        """The Events that were posted."""
        found = [held for (resource, *_), held in self.objects.items() if resource == "events"]
        return [held for held in found if reason in ("", held["reason"])]

    # What a client asks

    def get(self, path: str, query: Mapping[str, str | int] | None = None, timeout: object = None) -> Object:
        return self._asked("GET", path, lambda key: self._got(key, query or {}))

    def post(self, path: str, body: Object, timeout: object = None) -> Object:
        return self._asked("POST", path, lambda key: self._created(key, copy.deepcopy(body)), body["metadata"]["name"])

    def patch(self, path: str, body: Object, timeout: object = None) -> Object:
        return self._asked("PATCH", path, lambda key: self._merged(key, copy.deepcopy(body)))

    def page(self, path: str, query: Mapping[str, str | int] | None = None, following: str = "") -> Page:
        return self._asked("LIST", path, lambda key: self._page(key, query or {}, following))

    def lines(self, path: str, query: Mapping[str, str | int], timeout: object = None) -> Iterator[bytes]:
        """What has happened since, and then the end."""
        since = int(query["resourceVersion"])
        self._asked("WATCH", path, lambda key: None)
        if since < self.oldest:
            yield error(410)
            return
        for version, kind, held in list(self.history):
            if version > since:
                yield json.dumps({"type": kind, "object": held}).encode()

    # What it does

    def _asked(self, method: str, path: str, work: Callable[[Key], Any], name: str = "") -> Any:
        key = parsed(path)
        asked = (method, key[0], name or key[2])
        self.asked.append(asked)
        self.before(*asked)
        if key[0] not in self.served:
            raise Refused(404, "", "the server could not find the requested resource")
        answer = work(key)
        self.after(*asked)
        return answer

    def _got(self, key: Key, query: Mapping[str, str | int]) -> Any:
        resource, _, name = key
        if not name:
            page = self._page(key, query, str(query.get("continue", "")))
            return {
                "items": page.items,
                "metadata": {"continue": page.following, "resourceVersion": page.resource_version},
            }
        if key not in self.objects:
            raise Refused(404, "NotFound", f"{resource} {name!r} not found")
        return copy.deepcopy(self.objects[key])

    def _page(self, key: Key, query: Mapping[str, str | int], following: str) -> Page:
        resource, namespace, _ = key
        found = [
            copy.deepcopy(held)
            for (kind, place, _), held in sorted(self.objects.items())
            if kind == resource and namespace in ("", place) and selected(held, query)
        ]
        at = int(following or 0)
        rest = at + self.page_size
        return Page(found[at:rest], str(self.version), str(rest) if rest < len(found) else "")

    def _created(self, key: Key, body: Object) -> Object:
        resource, namespace, _ = key
        key = (resource, namespace, body["metadata"]["name"])
        if key in self.objects:
            raise Refused(409, "AlreadyExists", f"{resource} {key[2]!r} already exists")
        body["metadata"] = {**body["metadata"], "namespace": namespace, "uid": f"uid-{next(self._uids)}"}
        return copy.deepcopy(self._written(key, body, "ADDED"))

    def _merged(self, key: Key, body: Object) -> Object:
        resource, namespace, name = key
        resource, _, part = resource.partition("/")
        key = (resource, namespace, name)
        if key not in self.objects:
            raise Refused(404, "NotFound", f"{resource} {name!r} not found")
        held = copy.deepcopy(self.objects[key])
        version = body.get("metadata", {}).pop("resourceVersion", None)
        if version is not None and version != held["metadata"]["resourceVersion"]:
            raise Refused(409, "Conflict", "the object has been modified")
        if body.get("metadata", {}).get("uid", held["metadata"]["uid"]) != held["metadata"]["uid"]:
            raise Refused(409, "Conflict", "the UID in the precondition does not match")
        # Of a part, only that part is written.
        for field in [part] if part else list(body):
            held[field] = merged(held.get(field), body.get(field))
        return copy.deepcopy(self._written(key, held, "MODIFIED"))

    def _written(self, key: Key, held: Object, kind: str) -> Object:
        known = self.objects.get(key)
        if known is not None and {**known, "metadata": {**known["metadata"], "resourceVersion": ""}} == {
            **held,
            "metadata": {**held["metadata"], "resourceVersion": ""},
        }:
            return known  # a write that changes nothing is none
        self.objects[key] = held
        self._told(key[0], kind, held)
        return held

    def _told(self, resource: str, kind: str, held: Object) -> None:
        self.version = next(self._versions)
        held["metadata"]["resourceVersion"] = str(self.version)
        if resource == "podgroups":
            self.history.append((self.version, kind, copy.deepcopy(held)))


def parsed(path: str) -> Key:
    """Return what a path leads to: a resource, with its part, of a namespace or of all, and perhaps one of a name."""
    words = path.split("/")[3 if path.startswith("/api/") else 4 :]
    namespace = ""
    if words[0] == "namespaces":
        namespace, words = words[1], words[2:]
    part = f"/{words[2]}" if len(words) > 2 else ""
    return words[0] + part, namespace, words[1] if len(words) > 1 else ""


def selected(held: Object, query: Mapping[str, str | int]) -> bool:
    """Return whether an object is one of those that a query asks for."""
    labels = held["metadata"].get("labels") or {}
    label, _, value = str(query.get("labelSelector", "")).partition("=")
    field = str(query.get("fieldSelector", "")).removeprefix("status.phase=")
    return (not label or (label in labels and value in ("", labels[label]))) and (
        not field or (held.get("status") or {}).get("phase") == field
    )


def merged(old: Any, change: Any) -> Any:
    """Return what a merge patch makes of a value (RFC 7396)."""
    if not isinstance(change, dict):
        return change
    result = dict(old) if isinstance(old, dict) else {}
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def error(code: int) -> bytes:
    """Return the line by which a watch says that something went wrong."""
    return json.dumps(
        {"type": "ERROR", "object": {"kind": "Status", "code": code, "message": "too old", "metadata": {}}}
    ).encode()
