"""What there should be, as values: an InferenceReplica of a component, pods and a PodGroup of an Instance."""

from __future__ import annotations

import copy
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

Object = dict[str, Any]

OME = "ome.io/v1beta1"
SERVICE = "ome.io/inferenceservice"
COMPONENT = "component"
MANAGED_BY = "ome.io/managed-by"
INDEX = "ome.io/instance-index"
INCARNATION = "ome.io/instance-incarnation"
RUNNER = "ome.io/runner"
ORDINAL = "ome.io/pod-ordinal"
REVISION = "ome.io/revision-hash"
POD_GROUP = "scheduling.x-k8s.io/pod-group"
TOPOLOGY = "ome.io/topology-key"
MODE = "ome.io/deploymentMode"
NATIVE = "OMENative"

COMPONENTS = ("engine", "decoder", "router")
# What stands in a component beside the fields of a pod.
OWN = {
    *("minReplicas", "maxReplicas", "timeoutSeconds", "labels", "annotations", "minAvailable", "maxUnavailable"),
    *("deploymentStrategy", "servicePortAppProtocols", "lifecycle", "autoscaler", "autoscalerPolicyRef", "runner"),
    *(
        "leader",
        "worker",
        "acceleratorOverride",
        "topologyKey",
        "topologySpread",
        "topologySpreadKey",
        "size",
        "config",
    ),
}
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def mode(service: Object, name: str) -> str:
    """Return how a component is run: its annotation, the service's mode, its shape."""
    component = service["spec"][name]
    said = (component.get("annotations") or {}).get(MODE)
    if said in ("RawDeployment", NATIVE, "MultiNode", "VirtualDeployment"):
        return str(said)
    if service["spec"].get("deploymentMode") in (NATIVE, "RawDeployment"):
        return str(service["spec"]["deploymentMode"])
    if name != "router" and ("leader" in component or "worker" in component):
        return NATIVE
    return "RawDeployment"


def replicas(service: Object) -> dict[str, Object]:
    """Return the InferenceReplica of each OMENative component, by component."""
    found = {}
    for name in COMPONENTS:
        if isinstance(service["spec"].get(name), dict) and mode(service, name) == NATIVE:
            found[name] = replica(service, name)
    return found


def replica(service: Object, name: str) -> Object:
    """Return a component as an InferenceReplica."""
    component = service["spec"][name]
    metadata = service["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **(component.get("annotations") or {})}
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    labels = {
        **(metadata.get("labels") or {}),
        **(component.get("labels") or {}),
        SERVICE: metadata["name"],
        COMPONENT: name,
    }
    spec: Object = {
        "parentRef": {"name": metadata["name"]},
        "component": name,
        "replicas": max(1, component.get("minReplicas") or 0),
        "runners": runners(component, name),
        **{key: component[key] for key in ("topologyKey", "lifecycle") if component.get(key)},
    }
    for runner in spec["runners"]:
        runner["template"]["metadata"] = {"labels": labels, "annotations": annotations}
    return {
        "apiVersion": OME,
        "kind": "InferenceReplica",
        "metadata": {
            "name": f"{metadata['name']}-{name}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner(service)],
        },
        "spec": spec,
    }


def runners(component: Object, name: str) -> list[Object]:
    """Return leader and workers where there are both, else one pod; a component's pod fields fill theirs."""
    pod = {key: value for key, value in component.items() if key not in OWN}
    if name != "router" and "leader" in component and "worker" in component:
        leader, worker = component["leader"] or {}, component["worker"] or {}
        size = worker.get("size")
        return [
            {"name": "leader", "size": 1, "template": {"spec": pod_spec(pod, leader)}},
            {"name": "worker", "size": 1 if size is None else size, "template": {"spec": pod_spec(pod, worker)}},
        ]
    one = {"runner": component["runner"]} if "runner" in component else component.get("leader") or {}
    return [{"name": "default", "size": 1, "template": {"spec": pod_spec(pod, one)}}]


def pod_spec(pod: Object, block: Object) -> Object:
    """Return the spec of a block's pods: its own fields first, then the component's, and the runner as a container."""
    own = {key: value for key, value in block.items() if key not in OWN and value not in ("", None)}
    spec = {**pod, **own}
    runner = {"name": "ome-container", "image": "example.invalid/model-server", **(block.get("runner") or {})}
    others = [one for one in spec.get("containers") or [] if one["name"] != runner["name"]]
    return copy.deepcopy({**spec, "containers": [runner, *others]})


def owner(thing: Object) -> Object:
    """Return the ownerReference of somebody whom an object controls."""
    return {
        "apiVersion": thing["apiVersion"],
        "kind": thing["kind"],
        "name": thing["metadata"]["name"],
        "uid": thing["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller(thing: Object) -> Object | None:
    """Return the ownerReference of the one that controls an object."""
    found = thing["metadata"].get("ownerReferences") or []
    return next((one for one in found if one.get("controller")), None)


@dataclass(frozen=True)
class Plan:
    """What an InferenceReplica asks for; `base` is the service's name, or its own where no service stands behind it."""

    replica: Object

    @property
    def base(self) -> str:
        """The first part of all names."""
        return str(self.replica["spec"].get("parentRef", {}).get("name") or self.replica["metadata"]["name"])

    @property
    def component(self) -> str:
        """The second."""
        return str(self.replica["spec"]["component"])

    @property
    def count(self) -> int:
        """How many Instances."""
        return max(1, self.replica["spec"].get("replicas") or 0)

    @property
    def sizes(self) -> dict[str, int]:
        """How many pods of each runner an Instance has; a leader is always one."""
        found = {}
        for one in self.replica["spec"]["runners"]:
            found[one["name"]] = 1 if one["name"] in ("leader", "default") else one.get("size", 1)
        return found

    @property
    def total(self) -> int:
        """How many pods an Instance has."""
        return sum(self.sizes.values())

    @property
    def revision(self) -> str:
        """What changes when the pods have to."""
        spec = self.replica["spec"]
        text = json.dumps([spec["runners"], spec.get("topologyKey")], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    @property
    def scheduler(self) -> str:
        """Who is taken to place the pods: the leader's scheduler, else the workers'."""
        names = {one["name"]: one["template"]["spec"].get("schedulerName") for one in self.replica["spec"]["runners"]}
        return names.get("leader") or names.get("worker") or ""

    def labels(self, index: int) -> dict[str, str]:
        """Return the labels that say which Instance: the four of a PodGroup."""
        return {SERVICE: self.base, COMPONENT: self.component, MANAGED_BY: NATIVE, INDEX: str(index)}

    def group_name(self, index: int) -> str:
        """Return the name of an Instance's PodGroup, at most 63 characters."""
        name = f"{self.base}-{self.component}-{index}"
        if len(name) <= 63:
            return name
        digits = hashlib.sha256(name.encode()).hexdigest()[:8]
        return re.sub(r"^\d", "a", digits) + "-" + name[-54:]

    def group(self, index: int, timeout: int | None) -> Object:
        """Return an Instance's PodGroup."""
        metadata: Object = {
            "name": self.group_name(index),
            "namespace": self.replica["metadata"]["namespace"],
            "labels": self.labels(index),
            "ownerReferences": [owner(self.replica)],
        }
        if key := self.replica["spec"].get("topologyKey"):
            metadata["annotations"] = {TOPOLOGY: key}
        spec = {"minMember": self.total} | ({} if timeout is None else {"scheduleTimeoutSeconds": timeout})
        return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": spec}

    def pods(self, index: int, incarnation: int) -> list[Object]:
        """Return an Instance's pods, the leader first."""
        return [
            self.pod(index, incarnation, runner, ordinal)
            for runner in self.replica["spec"]["runners"]
            for ordinal in range(self.sizes[runner["name"]])
        ]

    def pod(self, index: int, incarnation: int, runner: Object, ordinal: int) -> Object:
        """Return one pod."""
        name = f"{self.base}-{self.component}-{index}-{runner['name']}-{ordinal}"
        template = copy.deepcopy(runner["template"])
        metadata = template.get("metadata") or {}
        labels = {
            **(metadata.get("labels") or {}),
            **self.labels(index),
            INCARNATION: str(incarnation),
            RUNNER: runner["name"],
            ORDINAL: str(ordinal),
            REVISION: self.revision,
        }
        if self.total > 1:
            labels[POD_GROUP] = self.group_name(index)
        spec = template["spec"]
        spec.update({"hostname": name, "subdomain": f"{self.base}-{self.component}-headless"})
        key = self.replica["spec"].get("topologyKey")
        if key and runner["name"] == "worker":
            affinity = spec.setdefault("affinity", {}).setdefault("podAffinity", {})
            terms = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", [])
            if all(term["topologyKey"] != key for term in terms):
                leader = {**self.labels(index), RUNNER: "leader"}
                del leader[MANAGED_BY]
                terms.append({"topologyKey": key, "labelSelector": {"matchLabels": leader}})
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": self.replica["metadata"]["namespace"],
                "labels": labels,
                "annotations": metadata.get("annotations") or {},
                "ownerReferences": [owner(self.replica)],
            },
            "spec": spec,
        }


def timeout(plan: Plan, ready: float, clamp: tuple[float, float] | None) -> int | None:
    """Return a PodGroup's scheduleTimeoutSeconds: the component's ready timeout, else the cluster's, held in bounds."""
    said = duration((plan.replica["spec"].get("lifecycle") or {}).get("instanceReadyTimeout") or "0s")
    seconds = int(said if said > 0 else ready)
    if clamp is None:
        return seconds if seconds >= 1 else None
    low, high = map(int, clamp)
    return low if seconds <= 0 else min(max(seconds, low), high)


def duration(text: str) -> float:
    """Return the seconds of a duration such as 1h30m."""
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", text)
    return sum(float(number) * SECONDS[unit] for number, unit in parts) * (-1 if text.startswith("-") else 1)
