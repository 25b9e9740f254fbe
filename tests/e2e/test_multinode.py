"""OME 1.2.2's LeaderWorkerSets as gangs, on a real scheduler: one replica, several under the policy, several as one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from postrender import render
from postrender.hosts.policy import policy
from postrender.options import Options
from tests.e2e import ome
from tests.e2e.cluster import Cluster
from tests.e2e.cluster.api import Object

SCHEDULER = "scheduler-plugins-scheduler"
MODEL = "qwen"
POD_GROUP = "scheduling.x-k8s.io/pod-group"
NODES = 4


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(lws=True) as running:
        ome.start(running)
        running.add_nodes(NODES, labels=ome.ready(MODEL))
        running.api.create(ome.model(MODEL))
        yield running


@pytest.fixture
def with_policy(cluster: Cluster) -> Iterator[None]:
    text = policy((1, 34))
    cluster.kubectl("apply", "-f", "-", input=text.decode())
    probe = cluster.namespace()

    def acts() -> bool:
        """A policy has its say a few seconds after it was made."""
        labels = {"postrender/gang": "x", "leaderworkerset.sigs.k8s.io/group-index": "7"}
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": probe, "labels": labels},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        return bool(cluster.api.create(pod, dryRun="All")["metadata"]["labels"].get(POD_GROUP) == "x-7")

    cluster.wait(acts, 30, "the policy to act")
    yield
    cluster.kubectl("delete", "-f", "-", input=text.decode())
    cluster.wait(lambda: not acts(), 30, "the policy to be gone")


def block(gpus: int, **fields: object) -> Object:
    """A leader or a worker; a node has eight GPUs."""
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"runner": {"name": "server", "image": "sglang", "resources": limits}, **fields}


def stream(name: str, workers: int, replicas: int, image: str = "a", gpus: int = 8) -> bytes:
    runtime = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ServingRuntime",
        "metadata": {"name": "rt"},
        "spec": {
            "supportedModelFormats": [
                {"modelFormat": {"name": "safetensors"}, "modelFramework": {"name": "transformers"}}
            ],
            "engineConfig": {"leader": block(gpus), "worker": block(gpus, size=workers)},
        },
    }
    service = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "model": {"name": MODEL},
            "runtime": {"name": "rt"},
            "engine": {"minReplicas": replicas, "annotations": {"image": image}},
        },
    }
    return "---\n".join(json.dumps(one) + "\n" for one in (runtime, service)).encode()


def rendered(data: bytes, **options: object) -> str:
    made = render(data, Options(ome="1.2", scheduler_name=SCHEDULER, **options))  # type: ignore[arg-type]
    assert made.data, made.findings
    return made.data.decode()


def bound(cluster: Cluster, namespace: str) -> dict[str, int]:
    """How many pods of each group have a node."""
    counts: dict[str, int] = {}
    for pod in cluster.list("pods", namespace):
        group = pod["metadata"]["labels"].get(POD_GROUP, "")
        counts[group] = counts.get(group, 0) + ("nodeName" in pod["spec"])
    return counts


def comes_to(cluster: Cluster, namespace: str, wanted: Callable[[dict[str, int]], bool], what: str) -> dict[str, int]:
    """Wait for counts, and see that they stay."""
    seen = cluster.wait(lambda: held if wanted(held := bound(cluster, namespace)) else None, 60, what)
    for _ in range(3):
        cluster.wait(lambda: wanted(bound(cluster, namespace)), 5, f"{what}, still")
    return seen


def test_one_replica_is_a_gang(cluster: Cluster, namespace: str) -> None:
    for name in ("blue", "green"):
        cluster.apply(rendered(stream(name, workers=2, replicas=1)), namespace)
    counts = comes_to(
        cluster,
        namespace,
        lambda held: sorted(held.values()) == [0, 3],
        "three pods bound, and none of the other three",
    )
    assert set(counts) == {"lws-blue-engine-0", "lws-green-engine-0"}


def test_without_us_both_hold_half(cluster: Cluster, namespace: str) -> None:
    for name in ("blue", "green"):
        cluster.apply(stream(name, workers=2, replicas=1), namespace)

    def held() -> list[int]:
        counts: dict[str, int] = {}
        for pod in cluster.list("pods", namespace):
            name = pod["metadata"]["labels"]["ome.io/inferenceservice"]
            counts[name] = counts.get(name, 0) + ("nodeName" in pod["spec"])
        return sorted(counts.values())

    cluster.wait(lambda: sum(held()) == NODES and held()[0] > 0, 60, "every node taken, by halves of both")


def test_each_replica_is_a_gang_under_the_policy(cluster: Cluster, namespace: str, with_policy: None) -> None:
    cluster.apply(rendered(stream("blue", workers=1, replicas=3), replicas="policy"), namespace)
    counts = comes_to(cluster, namespace, lambda held: sorted(held.values()) == [0, 2, 2], "two of three groups whole")
    assert set(counts) == {f"lws-blue-engine-{index}" for index in range(3)}


def test_without_the_policy_all_wait_with_a_reason(cluster: Cluster, namespace: str) -> None:
    cluster.apply(rendered(stream("blue", workers=1, replicas=2), replicas="policy"), namespace)

    def reasons() -> list[str]:
        pods = cluster.list("pods", namespace)
        said = [one["message"] for pod in pods for one in pod["status"].get("conditions", []) if "message" in one]
        return said if len(pods) == 4 and len(said) == 4 else []

    said = cluster.wait(reasons, 60, "four pods with a reason")
    assert all("PodGroup not found" in one for one in said)
    assert bound(cluster, namespace) == {"postrender-policy-missing": 0}


def test_scaling_under_the_policy_changes_no_template(cluster: Cluster, namespace: str, with_policy: None) -> None:
    def template() -> Object:
        [found] = cluster.list("leaderworkersets", namespace)
        return dict(found["spec"]["leaderWorkerTemplate"])

    cluster.apply(rendered(stream("blue", workers=1, replicas=1), replicas="policy"), namespace)
    comes_to(cluster, namespace, lambda held: held == {"lws-blue-engine-0": 2}, "one group")
    first, uids = template(), {pod["metadata"]["uid"] for pod in cluster.list("pods", namespace)}
    cluster.apply(rendered(stream("blue", workers=1, replicas=2), replicas="policy"), namespace)
    both = {"lws-blue-engine-0": 2, "lws-blue-engine-1": 2}
    comes_to(cluster, namespace, lambda held: held == both, "two groups")
    assert template() == first
    assert uids < {pod["metadata"]["uid"] for pod in cluster.list("pods", namespace)}
    cluster.apply(rendered(stream("blue", workers=1, replicas=1), replicas="policy"), namespace)
    comes_to(cluster, namespace, lambda held: held == {"lws-blue-engine-0": 2}, "one group again")
    assert template() == first


def test_a_surge_group_is_a_gang_of_its_own(cluster: Cluster, namespace: str, with_policy: None) -> None:
    """LeaderWorkerSet 0.9 brings up a group more where the groups that may be unavailable are fewer than all."""
    three = {f"lws-blue-engine-{index}": 2 for index in range(3)}
    small = {"workers": 1, "replicas": 3, "gpus": 4}
    cluster.apply(rendered(stream("blue", **small), replicas="policy"), namespace)
    comes_to(cluster, namespace, lambda held: held == three, "three groups")
    uids = {pod["metadata"]["uid"] for pod in cluster.list("pods", namespace)}
    before = cluster.audit.position()
    cluster.apply(rendered(stream("blue", image="b", **small), replicas="policy"), namespace)

    def over() -> bool:
        now = {pod["metadata"]["uid"] for pod in cluster.list("pods", namespace)}
        return not uids & now and bound(cluster, namespace) == three

    cluster.wait(over, 120, "the update to be over")
    # The surge may be over before it is seen, so the log of what was bound is asked.
    placed = [one["objectRef"]["name"] for one in cluster.audit.requests(before, resource="pods/binding")]
    assert {"lws-blue-engine-3", "lws-blue-engine-3-1"} <= set(placed), placed


def test_the_whole_component_as_one_gang(cluster: Cluster, namespace: str) -> None:
    cluster.apply(rendered(stream("blue", workers=1, replicas=2), replicas="whole"), namespace)
    comes_to(cluster, namespace, lambda held: held == {"lws-blue-engine": 4}, "all four pods")
    cluster.apply(rendered(stream("green", workers=1, replicas=3), replicas="whole"), namespace)
    comes_to(cluster, namespace, lambda held: held == {"lws-blue-engine": 4, "lws-green-engine": 0}, "none of six more")
