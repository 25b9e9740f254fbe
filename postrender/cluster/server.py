"""What is asked of a live cluster: lists, single objects and the API list; only ever read.

What may not be read and what is not served are told apart, for a right that is missing is an error and a kind that is
missing is a fact.
"""

from __future__ import annotations

from ..gangs import keys
from ..record import Record
from .client import Refused, Unreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Protocol, TypeAlias

    Json: TypeAlias = dict[str, Any]

    class Reader(Protocol):
        """What of a client is used."""

        name: str

        def get(self, path: str, query: dict[str, str | int] | None = None) -> Json:
            """Return the object at a path."""

        def pages(self, path: str, query: dict[str, str | int] | None = None) -> Iterator[Json]:
            """Yield the objects of a list."""


class Resource(Record):
    """A kind of object and where it is served; `group` is empty for the core."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def title(self) -> str:
        """How kubectl and a role name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def api_version(self) -> str:
        """What an object of it says."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return where it is: all of them, those of a namespace, or one."""
        parts = ["", "apis" if self.group else "api", self.api_version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *([name] if name else [])])


_OME_VERSION = "v1beta1"
SERVICES = Resource(keys.OME_GROUP, _OME_VERSION, "inferenceservices", keys.INFERENCE_SERVICE)
REPLICAS = Resource(keys.OME_GROUP, _OME_VERSION, "inferencereplicas", keys.INFERENCE_REPLICA)
RUNTIMES = Resource(keys.OME_GROUP, _OME_VERSION, "servingruntimes", keys.SERVING_RUNTIME)
CLUSTER_RUNTIMES = Resource(
    keys.OME_GROUP, _OME_VERSION, "clusterservingruntimes", keys.CLUSTER_SERVING_RUNTIME, namespaced=False
)
SETS = Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", keys.LEADER_WORKER_SET)
POD_GROUPS = Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", keys.POD_GROUP_KIND)
CONFIG_MAPS = Resource("", "v1", "configmaps", keys.CONFIG_MAP)
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
# Served in v1 from Kubernetes 1.36 on, before that in v1beta1 behind a gate.
POLICIES = tuple(
    Resource("admissionregistration.k8s.io", version, plural, kind, namespaced=False)
    for plural, kind in (
        ("mutatingadmissionpolicies", "MutatingAdmissionPolicy"),
        ("mutatingadmissionpolicybindings", "MutatingAdmissionPolicyBinding"),
    )
    for version in ("v1", "v1beta1")
)

# Of these groups an API list names the kinds too: they are what gangs are decided by.
_GROUPS = (keys.OME_GROUP, POD_GROUPS.group, SETS.group)


class Denied(Exception):  # noqa: N818 - it says what the server did
    """Raised where the API server does not know us, or does not let us read something; the message says what."""


class Server:
    """Reads one cluster; `told` is called with what is read next, for a person who waits."""

    def __init__(self, client: Reader, told: Callable[[str], None] | None = None) -> None:
        """Take a client."""
        self.name = client.name
        self._client = client
        self._told = told or (lambda _: None)

    def items(self, resource: Resource, namespace: str = "", selector: str = "") -> list[Json] | None:
        """Return the objects of a kind, of all namespaces if none is named; None where the kind is not served.

        Raises Denied or Unreachable.
        """
        self._told(resource.title)
        query: dict[str, str | int] = {"labelSelector": selector} if selector else {}
        try:
            return list(self._client.pages(resource.path(namespace), query))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise self._wrong(refused, "list", resource, namespace) from None

    def few(self, resource: Resource, namespace: str, fields: str, most: int) -> list[Json]:
        """Return some objects of a namespace, by a field selector; raises Denied or Unreachable."""
        query: dict[str, str | int] = {"fieldSelector": fields, "limit": most}
        try:
            return list(self._client.get(resource.path(namespace), query).get("items") or ())
        except Refused as refused:
            raise self._wrong(refused, "list", resource, namespace) from None

    def one(self, resource: Resource, namespace: str, name: str) -> Json | None:
        """Return one object; None where it is not there. Raises Denied or Unreachable."""
        self._told(f"{resource.title}/{name}")
        try:
            return self._client.get(resource.path(namespace, name))
        except Refused as refused:
            if refused.status == 404:
                return None
            raise self._wrong(refused, "get", resource, namespace) from None

    def kubernetes(self) -> str:
        """Return the version of the API server, such as v1.34.4."""
        return str(self._public("/version").get("gitVersion") or "")

    def api_versions(self) -> tuple[str, ...]:
        """Return what is served, as group/version; of the groups that matter to gangs as group/version/Kind too."""
        self._told("the API list")
        found = [str(version) for version in self._public("/api").get("versions") or ()]
        for group in self._public("/apis").get("groups") or ():
            found += [str(version["groupVersion"]) for version in group.get("versions") or ()]
        kinds: list[str] = []
        for served in found:
            if served.partition("/")[0] in _GROUPS:
                resources = self._public(f"/apis/{served}").get("resources") or ()
                kinds += [f"{served}/{one['kind']}" for one in resources if "/" not in one["name"]]
        return tuple(sorted({*found, *kinds}))

    def _public(self, path: str) -> Json:
        """Return a page that every authenticated user may read by Kubernetes' own roles."""
        try:
            return self._client.get(path)
        except Refused as refused:
            if refused.status == 403:
                message = f"{self.name}: may not get {path}; bind the ClusterRole system:discovery"
                raise Denied(message) from None
            raise self._refused(refused, f"get {path}") from None

    def _wrong(self, refused: Refused, verb: str, resource: Resource, namespace: str) -> Exception:
        if refused.status != 403:
            return self._refused(refused, f"{verb} {resource.title}")
        where = f" in the namespace {namespace!r}" if namespace else " in all namespaces" if resource.namespaced else ""
        return Denied(
            f"{self.name}: may not {verb} {resource.title}{where};"
            f" ask for the right ({verb} {resource.title}) or for the role that the page live.md shows"
        )

    def _refused(self, refused: Refused, what: str) -> Exception:
        if refused.status == 401:
            return Denied(f"{self.name}: does not know who you are (401); log in again, or name another --kube-context")
        return Unreachable(f"{self.name}: cannot {what}: {refused}")
