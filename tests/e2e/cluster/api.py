"""A small client of the API server: a request costs a few milliseconds, where a kubectl costs a tenth of a second."""

from __future__ import annotations

import http.client
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from .errors import ApiError

Object = dict[str, Any]
Objects = list[Object]
KINDS = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
JSON = "application/json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Api:
    """Reads and writes objects as one user; a kind is what kubectl takes too: Pod, pods, podgroups.scheduling.x-k8s.io."""

    def __init__(self, port: int, authority: Path, certificate: Path, key: Path) -> None:
        self.port = port
        self.context = ssl.create_default_context(cafile=str(authority))
        self.context.load_cert_chain(certificate, key)
        self.kinds: dict[str, tuple[str, bool]] = {}

    def request(
        self, method: str, path: str, body: Object | bytes | None = None, content: str = JSON, **query: Any
    ) -> Any:
        """Send one request; the answer, read as JSON."""
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        where = f"{path}?{urlencode(query)}" if query else path
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.context, timeout=20)
        try:
            connection.request(method, where, data, {"Content-Type": content, "Accept": f"{KINDS},{JSON}"})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        try:
            read = json.loads(text)
        except ValueError:
            read = text
        if answer.status >= 300:
            said = read.get("message", text) if isinstance(read, dict) else text
            raise ApiError(answer.status, f"{method} {where}: {said.strip()}")
        return read

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Read one object; an ApiError with status 404 if there is none."""
        return dict(self.request("GET", self.path(kind, namespace, name)))

    def list(self, kind: str, namespace: str | None = None, **query: Any) -> Objects:
        """Read the objects of a kind, of all namespaces if none is named; labelSelector="a=b" and others may be given."""
        return list(self.request("GET", self.path(kind, namespace), **query)["items"])

    def create(self, new: Object, **query: Any) -> Object:
        """Create an object; dryRun="All" to see only what would become of it."""
        place = self.path(kind_of(new), new["metadata"].get("namespace"))
        return dict(self.request("POST", place, new, **query))

    def apply(self, wanted: Object) -> Object:
        """Create an object, or make it what is wanted."""
        metadata = wanted["metadata"]
        place = self.path(kind_of(wanted), metadata.get("namespace"), metadata["name"])
        return dict(self.request("PATCH", place, wanted, APPLY, fieldManager="tests", force="true"))

    def patch(self, kind: str, name: str, change: Object, namespace: str | None = None, part: str = "") -> Object:
        """Merge a change into an object, or into a part of it such as "status"."""
        place = self.path(kind, namespace, name) + (f"/{part}" if part else "")
        return dict(self.request("PATCH", place, change, MERGE))

    def delete(self, kind: str, name: str, namespace: str | None = None, **query: Any) -> None:
        """Delete an object; that it is gone already is fine."""
        try:
            self.request("DELETE", self.path(kind, namespace, name), **query)
        except ApiError as error:
            if error.status != 404:
                raise

    def path(self, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Where the objects of a kind are, or one of them."""
        if kind.lower() not in self.kinds:
            self.discover()
        if kind.lower() not in self.kinds:
            raise ApiError(404, f"the API server knows no kind {kind}")
        start, namespaced = self.kinds[kind.lower()]
        group, _, resource = start.rpartition("/")
        parts = [group, *(("namespaces", quote(namespace)) if namespaced and namespace else ()), resource]
        return "/".join([*parts, *([quote(name)] if name else [])])

    def discover(self) -> None:
        """Ask what kinds there are. Of equal names the first counts, as for kubectl: core, then by group priority."""
        self.kinds = {}
        for root in ("/api", "/apis"):
            for group in self.request("GET", root)["items"]:
                title = group["metadata"].get("name", "")
                for version in group["versions"]:
                    place = "/".join([root, *([title] if title else []), version["version"]])
                    for one in version["resources"]:
                        found = (f"{place}/{one['resource']}", one["scope"] == "Namespaced")
                        names = {one["resource"], one.get("singularResource", ""), one["responseKind"]["kind"]}
                        for name in names | set(one.get("shortNames", [])) - {""}:
                            self.kinds.setdefault(name.lower(), found)
                            self.kinds.setdefault(f"{name}.{title}".lower(), found)


def kind_of(thing: Object) -> str:
    """The kind of an object with its group."""
    group = thing["apiVersion"].rpartition("/")[0]
    return f"{thing['kind']}.{group}" if group else str(thing["kind"])
