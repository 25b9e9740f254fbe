"""What a live cluster knows that a stream does not, as the bytes of a context; and its services as those of a stream.

Of each object only what is read is kept, so nobody's annotations, images or environment leave the cluster.
"""

from __future__ import annotations

from ..gangs import keys, names, podgroup
from ..gangs.shapes.multinode import POLICY, WHOLE
from ..gangs.world import version
from ..manifests.write import block
from ..record import Record
from .server import (
    CLUSTER_RUNTIMES,
    CONFIG_MAPS,
    DEPLOYMENTS,
    REPLICAS,
    RUNTIMES,
    SERVICES,
    SETS,
    Resource,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any, TypeAlias

    from ..manifests.write import Held, Members
    from .server import Server

    Json: TypeAlias = dict[str, Any]
    # The fields that are kept: `None` for all that stands there, else those of a map, or of each map of a list.
    Fields: TypeAlias = Mapping[str, "Fields | None"]

# OME's chart and its kustomization call the manager's Deployment and label it so.
_MANAGER = "ome-controller-manager"
MANAGER_LABEL = f"control-plane={_MANAGER}"


def _named(*annotations: str) -> Fields:
    own: Fields = {"name": None, "namespace": None}
    return {**own, "annotations": dict.fromkeys(annotations)} if annotations else own


_POD: Fields = {"schedulerName": None, "priorityClassName": None}
_LIFECYCLE: Fields = {"instanceReadyTimeout": None, "updateStrategy": {"type": None}}
_RUNTIME_REF: Fields = {"name": None, "kind": None, "autoSync": None}
_COMPONENT: Fields = {
    **_POD,
    "leader": _POD,
    "worker": {**_POD, "size": None},
    "minReplicas": None,
    "maxReplicas": None,
    "lifecycle": _LIFECYCLE,
    "topologyKey": None,
    "annotations": dict.fromkeys((keys.DEPLOYMENT_MODE, keys.EXCLUSIVE_TOPOLOGY)),
    "labels": dict.fromkeys((keys.POD_GROUP, keys.GANG)),
}
_RUNTIME: Fields = {
    "metadata": _named(keys.INHERIT_FROM, keys.PREVIOUS_NAMES),
    "spec": {
        "schedulerName": None,
        "disabled": None,
        **{f"{name}Config": _COMPONENT for name in keys.COMPONENTS},
    },
}
_TEMPLATE: Fields = {"metadata": {"labels": None, "annotations": None}, "spec": _POD}
# What is read of each kind (gangs/resources.py and gangs/cluster.py).
FIELDS: Mapping[str, Fields] = {
    keys.SERVING_RUNTIME: _RUNTIME,
    keys.CLUSTER_SERVING_RUNTIME: _RUNTIME,
    keys.CONFIG_MAP: {"metadata": _named(), "data": {keys.LIFECYCLE: None}},
    keys.INFERENCE_SERVICE: {
        "metadata": _named(keys.DEPLOYMENT_MODE, keys.EXCLUSIVE_TOPOLOGY, *podgroup.IMPLYING),
        "spec": {
            "deploymentMode": None,
            "runtime": _RUNTIME_REF,
            **dict.fromkeys(keys.COMPONENTS, _COMPONENT),
        },
    },
    keys.INFERENCE_REPLICA: {
        "metadata": _named(*podgroup.IMPLYING),
        "spec": {
            "parentRef": {"name": None},
            "runtimeRef": _RUNTIME_REF,
            "component": None,
            "replicas": None,
            "topologyKey": None,
            "lifecycle": _LIFECYCLE,
            "runners": {"name": None, "size": None, "template": {"spec": _POD}},
        },
    },
    keys.LEADER_WORKER_SET: {
        # Marks of other gang systems are labels and annotations of many names.
        "metadata": {"name": None, "namespace": None, "labels": None, "annotations": None},
        "spec": {
            "replicas": None,
            "startupPolicy": None,
            "scheduling": None,
            "rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": None}},
            "leaderWorkerTemplate": {
                "size": None,
                "subGroupPolicy": None,
                "leaderTemplate": _TEMPLATE,
                "workerTemplate": _TEMPLATE,
            },
        },
    },
}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class Snapshot(Record):
    """A context: its bytes, the version of Kubernetes such as 1.34, and what a person is to be told of it."""

    data: bytes
    kubernetes: str
    notes: tuple[str, ...]


def take(server: Server, namespace: str, ome_namespace: str) -> Snapshot:
    """Return what a cluster knows: versions and API list, all runtimes and those of a namespace, OME's settings.

    An empty `namespace` stands for all. Raises Denied or Unreachable.
    """
    apis = server.api_versions()
    ome, notes = _ome(server, ome_namespace, apis)
    versions: list[tuple[str, Held]] = [("omeVersion", ome)] if ome else []
    kubernetes = server.kubernetes()
    versions += [("kubernetesVersion", kubernetes), ("apiVersions", list(apis))]
    cluster: Members = (("apiVersion", keys.OUR_VERSION), ("kind", keys.CLUSTER), ("spec", tuple(versions)))
    documents = [block(cluster, 0, "\n").encode()]
    for resource in (CLUSTER_RUNTIMES, RUNTIMES):
        items = server.items(resource, namespace if resource.namespaced else "")
        if items is None:
            notes.append(f"{resource.title} are not served: OME is not installed, or not whole")
        documents += [document(resource, one) for one in items or ()]
    settings = server.one(CONFIG_MAPS, ome_namespace, keys.OME_CONFIG)
    if settings is None:
        notes.append(
            f"no ConfigMap {keys.OME_CONFIG!r} in the namespace {ome_namespace!r}: OME's timeouts are taken as its"
            " chart sets them; --ome-namespace says where OME runs"
        )
    else:
        documents.append(document(CONFIG_MAPS, settings))
    return Snapshot(b"---\n".join(documents), ".".join(kubernetes.removeprefix("v").split(".")[:2]), tuple(notes))


def services(server: Server, namespace: str, sets: bool, replicas: str) -> tuple[tuple[str, bytes], ...]:
    """Return the services of a namespace, all if none is named, as streams; with `sets` LeaderWorkerSets of others too.

    Each stream comes with the option `--replicas` that it was deployed with: `replicas` if that is said, else what the
    labels in it tell. Raises Denied or Unreachable.
    """
    streams: dict[str, list[bytes]] = {}
    for resource in (SERVICES, REPLICAS, *((SETS,) if sets else ())):
        for one in server.items(resource, namespace) or ():
            if resource is SERVICES or not _of_ome(one):
                streams.setdefault(replicas or _replicas(one), []).append(document(resource, one))
    return tuple((how, b"---\n".join(documents)) for how, documents in sorted(streams.items()))


def _replicas(one: Json) -> str:
    """Return how a render has told the replicas of an object apart, by the labels that it has written."""
    name, spec = str(one["metadata"]["name"]), one.get("spec") or {}
    held = [(names.leader_worker_set(name, key), spec.get(key) or {}) for key in keys.COMPONENTS]
    templates = spec.get("leaderWorkerTemplate") or {}
    held += [(name, (one or {}).get("metadata") or {}) for one in templates.values() if isinstance(one, dict)]
    for base, where in held:
        labels = where.get("labels") or {}
        if keys.GANG in labels:
            return POLICY
        if labels.get(keys.POD_GROUP) == base:
            return WHOLE
    return ""


def document(resource: Resource, one: Json) -> bytes:
    """Return an object, reduced to what is read of its kind, as a document."""
    head: Members = (("apiVersion", resource.api_version), ("kind", resource.kind))
    rest = _kept(one, FIELDS[resource.kind])
    return block((*head, *rest) if isinstance(rest, tuple) else head, 0, "\n").encode(errors="replace")


def _kept(value: Any, fields: Fields | None) -> Held | None:
    """Return of a value the fields that are kept, in their order; of what has another shape all, for it is refused."""
    if isinstance(value, dict):
        wanted = [name for name in (value if fields is None else fields) if name in value and name != _LAST_APPLIED]
        held = ((name, _kept(value[name], fields[name] if fields else None)) for name in wanted)
        return tuple((name, one) for name, one in held if one is not None)
    if isinstance(value, list):
        return [one for one in (_kept(item, fields) for item in value) if one is not None]
    return value if isinstance(value, (str, int, float)) else None


def _of_ome(one: Json) -> bool:
    """Return whether OME made an object."""
    owners = (one.get("metadata") or {}).get("ownerReferences") or ()
    return any(str(owner.get("apiVersion", "")).partition("/")[0] == keys.OME_GROUP for owner in owners)


def _ome(server: Server, namespace: str, apis: Iterable[str]) -> tuple[str, list[str]]:
    """Return which OME runs there, and what is to be said of how that is known.

    It is the tag of its manager's image. Without one it is told by InferenceReplica, which came with 1.3.
    """
    served = set(apis)
    if not any(one.partition("/")[0] == keys.OME_GROUP for one in served):
        return "", []
    tag = _tag(server.items(DEPLOYMENTS, namespace, MANAGER_LABEL) or ())
    if tag:
        return tag, []
    native = f"{REPLICAS.api_version}/{REPLICAS.kind}" in served
    taken = "1.3" if native else "1.2"
    why = f"{REPLICAS.title} are {'served' if native else 'not served'}"
    what = f"no Deployment labelled {MANAGER_LABEL} in the namespace {namespace!r} says OME's version"
    return taken, [f"{what}; {why}, so it is taken for {taken}"]


def _tag(deployments: Iterable[Json]) -> str:
    """Return the version that the image of OME's manager is tagged with, or an empty string."""
    for deployment in deployments:
        pod = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
        for container in pod.get("containers") or ():
            image = str(container.get("image") or "").partition("@")[0]
            tag = image.rpartition("/")[2].partition(":")[2]
            try:
                version(tag)
            except ValueError:
                continue
            return tag.removeprefix("v")
    return ""
