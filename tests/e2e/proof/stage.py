"""Where the scenarios play: a cluster of four nodes with eight GPUs each, and how their pods are counted.

`Stage.deploy` is how all of them deploy. With `ours` false it leaves us out, and applies what the chart printed.
"""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.e2e import ome
from tests.e2e.cluster import Cluster, ClusterError
from tests.e2e.cluster.api import Object, Objects
from tests.e2e.omenative import OmeNative

from .manifests import MODEL
from .outcome import Gang

SCRIPT = Path(sys.executable).parent / "postrender"
GANGS = "scheduler-plugins-scheduler"
GROUP = "scheduling.x-k8s.io/pod-group"
SET, INDEX = "leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index"
NODES, GPUS = 4, 8
QUIET = 2.0  # seconds without a pod bound, and the scheduler has said why of each pod that has no node
FILLER = "filler"


class Stage:
    """A cluster that runs, with what makes pods of InferenceServices."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.fillers = itertools.count()

    @contextlib.contextmanager
    def namespace(self) -> Iterator[str]:
        """Make a namespace, and clear it away."""
        name = self.cluster.namespace()
        try:
            yield name
        finally:
            self.cluster.heal()
            for service in self.cluster.list("inferenceservices", name):
                self.cluster.api.delete("inferenceservices", service["metadata"]["name"], name)
            self.cluster.discard(name, 60)

    def render(self, text: str, *words: str) -> str:
        """Return what postrender makes of a stream; raises ClusterError with its message if it refuses."""
        done = subprocess.run(
            [SCRIPT, *words, "--scheduler-name", GANGS], input=text.encode(), capture_output=True, check=False, env={}
        )
        if done.returncode:
            raise ClusterError(done.stderr.decode())
        return done.stdout.decode()

    def deploy(self, namespace: str, text: str, ours: bool, *words: str) -> None:
        """Apply a stream, through us or as it is."""
        self.cluster.apply(self.render(text, "--ome", "1.2", *words) if ours else text, namespace)

    def pods(self, namespace: str) -> Objects:
        """Return the pods that are members of gangs, and not about to go."""
        pods = self.cluster.list("pods", namespace)
        return [pod for pod in pods if instance(pod) and "deletionTimestamp" not in pod["metadata"]]

    def wait_pods(self, namespace: str, count: int) -> Objects:
        """Wait until a namespace has so many members of gangs."""
        held = self.cluster.wait(
            lambda: pods if len(pods := self.pods(namespace)) == count else None, 60, f"{count} pods in {namespace}"
        )
        return list(held or [])

    def gangs(self, namespace: str, size: int) -> tuple[Gang, ...]:
        """Return how many pods of each gang have a node, in the order of their names."""
        bound: dict[str, int] = {}
        for pod in self.pods(namespace):
            bound[instance(pod)] = bound.get(instance(pod), 0) + ("nodeName" in pod["spec"])
        return tuple(Gang(name, size, count) for name, count in sorted(bound.items()))

    def rest(self, namespace: str, size: int, count: int, seconds: float = 90) -> tuple[Gang, ...]:
        """Wait until `count` pods are there and nothing moves any more; return their gangs."""
        end, since, last = time.monotonic() + seconds, time.monotonic(), None
        while True:
            pods = self.pods(namespace)
            now = sorted((pod["metadata"]["uid"], pod["spec"].get("nodeName", "")) for pod in pods)
            settled = len(pods) == count and all("nodeName" in pod["spec"] or why(pod) for pod in pods)
            if now != last or not settled:
                last, since = now, time.monotonic()
            if time.monotonic() > since + QUIET:
                return self.gangs(namespace, size)
            if time.monotonic() > end:
                raise ClusterError(f"{namespace} is not at rest after {seconds} s: {self.gangs(namespace, size)}")
            time.sleep(0.2)

    def running(self, namespace: str, count: int, seconds: float = 90) -> set[str]:
        """Wait until there are so many pods and all run; return their uids."""

        def run() -> set[str]:
            pods = self.pods(namespace)
            whole = len(pods) == count and all(pod["status"].get("phase") == "Running" for pod in pods)
            return {pod["metadata"]["uid"] for pod in pods} if whole else set()

        return self.cluster.wait(run, seconds, f"{count} pods in {namespace} to run")

    def awake(self, namespace: str, count: int) -> set[str]:
        """Wake what waits, and wait as `running` does; again if the scheduler had not yet seen the room that there is."""
        end = time.monotonic() + 90
        while True:
            self.wake(namespace)
            try:
                return self.running(namespace, count, 5)
            except ClusterError:
                if time.monotonic() > end:
                    raise

    def nodes(self, *namespaces: str) -> tuple[tuple[str, str], ...]:
        """Return every node with the gang that has it, or an empty name."""
        holders = {
            pod["spec"]["nodeName"]: instance(pod)
            for namespace in namespaces
            for pod in self.pods(namespace)
            if "nodeName" in pod["spec"]
        }
        names = sorted(node["metadata"]["name"] for node in self.cluster.list("nodes"))
        return tuple((name, holders.get(name, "")) for name in names)

    def fill(self, namespace: str, count: int, gpus: int = GPUS, wait: bool = True) -> None:
        """Let single pods of somebody else take GPUs, or wait for them."""
        before = len(self.filled(namespace))
        for _ in range(count):
            limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
            self.cluster.api.create(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": f"{FILLER}-{next(self.fillers)}", "namespace": namespace},
                    "spec": {
                        "terminationGracePeriodSeconds": 0,
                        "containers": [{"name": "it", "image": "it", "resources": limits}],
                    },
                }
            )
        if wait:
            self.cluster.wait(lambda: len(self.filled(namespace)) == before + count, 30, "the fillers to be placed")

    def wake(self, namespace: str) -> None:
        """Place a pod without GPUs. The scheduler looks again at gangs that wait when a pod is placed, not when one goes."""
        self.fill(namespace, 1, gpus=0)

    def filled(self, namespace: str) -> list[str]:
        """Return the single pods of somebody else that have a node."""
        pods = self.cluster.list("pods", namespace)
        return [
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["name"].startswith(FILLER) and "nodeName" in pod["spec"]
        ]

    def status(self, namespace: str, name: str) -> Object:
        """Return the status of a PodGroup."""
        found: Object = self.cluster.get("podgroups", name, namespace).get("status", {})
        return found


def instance(pod: Object) -> str:
    """Return the Instance a pod is of, by labels that are there without us too; empty for a pod of its own."""
    labels = pod["metadata"].get("labels", {})
    if SET in labels:
        return f"{labels[SET]}-{labels[INDEX]}"
    if "ome.io/instance-index" in labels:
        return "-".join(labels[name] for name in ("ome.io/inferenceservice", "component", "ome.io/instance-index"))
    return ""


def why(pod: Object) -> str:
    """Return what the scheduler says of a pod that has no node."""
    conditions = pod["status"].get("conditions") or []
    return " ".join(one.get("message", "") for one in conditions if one["type"] == "PodScheduled")


@contextlib.contextmanager
def multinode(nodes: int = NODES, coscheduling: Object | None = None) -> Iterator[Stage]:
    """Return a stage with OME 1.2.2 and LeaderWorkerSet."""
    with Cluster(lws=True, coscheduling=coscheduling) as cluster:
        ome.start(cluster)
        cluster.add_nodes(nodes, GPUS, ome.ready(MODEL), 300)
        cluster.api.create(ome.model(MODEL))
        yield Stage(cluster)


@contextlib.contextmanager
def native() -> Iterator[Stage]:
    """Return a stage for the stand-in of OME 1.3, which a scenario starts as it wants it."""
    with Cluster(nodes=NODES, gpus=GPUS) as cluster:
        yield Stage(cluster)


@contextlib.contextmanager
def stand_in(stage: Stage, groups: bool) -> Iterator[OmeNative]:
    """Run the stand-in of OME 1.3, with PodGroups of its own or without."""
    with OmeNative(stage.cluster.folder / "admin.kubeconfig") as running:
        running.gangs = groups  # nothing to make one for is there yet
        yield running
