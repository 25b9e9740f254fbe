"""OME 1.2.2 in a cluster: an InferenceService becomes a LeaderWorkerSet, and that becomes pods, as our rules say."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator

import pytest

from tests.e2e import ome
from tests.e2e.cluster import ApiError, Cluster
from tests.e2e.cluster.api import Object
from tests.oracles.ome.client import Ome

POD_GROUP = "scheduling.x-k8s.io/pod-group"
SCHEDULER = "scheduler-plugins-scheduler"
MODEL = "qwen"
LIMITS = {"resources": {"limits": {"nvidia.com/gpu": "8"}}}
FORMAT = {"modelFormat": {"name": "safetensors"}, "modelFramework": {"name": "transformers"}}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(lws=True) as running:
        ome.start(running)
        running.add_nodes(4, labels=ome.ready(MODEL))
        running.api.create(ome.model(MODEL))
        yield running


def block(**fields: object) -> Object:
    """A leader or a worker with a whole node's GPUs."""
    return {"runner": {"name": "server", "image": "sglang", **LIMITS}, **fields}


def runtime(**engine: Object) -> Object:
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ServingRuntime",
        "metadata": {"name": "rt"},
        "spec": {"supportedModelFormats": [FORMAT], "engineConfig": engine},
    }


def service(name: str = "svc", **engine: object) -> Object:
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"model": {"name": MODEL}, "runtime": {"name": "rt"}, "engine": engine},
    }


def text(*objects: Object) -> str:
    return "---\n".join(json.dumps(one) + "\n" for one in objects)


def the_set(cluster: Cluster, namespace: str) -> Object:
    """The one LeaderWorkerSet that appears."""
    [found] = cluster.wait(lambda: cluster.list("leaderworkersets", namespace), 30, "a LeaderWorkerSet")
    return found


def templates(found: Object) -> tuple[Object, Object]:
    template = found["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"], template["workerTemplate"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("svc", "lws-svc-engine"),
        ("a" * 24, f"lws-{'a' * 24}-engine"),
        ("a" * 25, "lws-a3c20626-aaaaaaaaaaaaaaa-engine"),
        ("a-very-long-inferenceservice-name", "lws-a49edcaa-nceservice-name-engine"),
    ],
)
def test_leader_and_worker_become_a_set(cluster: Cluster, namespace: str, name: str, expected: str) -> None:
    labels = {POD_GROUP: "svc-engine", "of": "the-engine"}
    own = service(name, labels=labels, leader=block(), worker=block(size=2))
    cluster.apply(text(runtime(), own), namespace)
    found = the_set(cluster, namespace)
    assert found["metadata"]["name"] == expected
    assert found["spec"]["leaderWorkerTemplate"]["size"] == 2 + 1
    assert found["spec"]["replicas"] == 1
    for template in templates(found):
        assert template["metadata"]["labels"].items() >= labels.items()


def test_leader_and_worker_of_the_runtime(cluster: Cluster, namespace: str) -> None:
    labels = {POD_GROUP: "svc-engine"}
    own = service(labels=labels, minReplicas=0)
    cluster.apply(text(runtime(leader=block(), worker=block(size=3)), own), namespace)
    found = the_set(cluster, namespace)
    assert (found["spec"]["leaderWorkerTemplate"]["size"], found["spec"]["replicas"]) == (3 + 1, 0)
    for template in templates(found):
        assert template["metadata"]["labels"].items() >= labels.items()


def test_the_oracle_says_the_same(cluster: Cluster, namespace: str) -> None:
    rt = runtime(leader=block(schedulerName="of-the-runtime"), worker=block(size=3, priorityClassName="no"))
    own = service(labels={"a": "b"}, annotations={"c": "d"}, worker={"size": 1, "schedulerName": "own"}, minReplicas=0)
    for one in (rt, own):
        one["metadata"]["namespace"] = namespace
    cluster.apply(text(rt, own))
    live = the_set(cluster, namespace)
    with Ome() as oracle:
        # The annotation that kubectl leaves is among those that go no further.
        made = oracle.make(text(rt, own, ome.model(MODEL)), reconcile=True)
    assert made.errors == {}
    expected = made.set("engine")
    assert expected is not None
    assert served(live) == served(expected)
    for field in ("name", "labels", "annotations"):
        assert live["metadata"][field] == expected["metadata"][field]


def served(found: Object) -> Object:
    """The spec of a LeaderWorkerSet without what the API server adds and prunes."""
    spec: Object = copy.deepcopy(found["spec"])
    spec["rolloutStrategy"]["rollingUpdateConfiguration"].pop("partition", None)
    for template in templates({"spec": spec}):
        for field in ("name", "namespace", "creationTimestamp"):
            template["metadata"].pop(field, None)
    return spec


def test_labels_and_scheduler_reach_the_pods(cluster: Cluster, namespace: str) -> None:
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "svc-engine"},
        "spec": {"minMember": 3},
    }
    leader, worker = block(schedulerName=SCHEDULER), block(schedulerName=SCHEDULER, size=2)
    own = service(labels={POD_GROUP: "svc-engine"}, leader=leader, worker=worker)
    cluster.apply(text(runtime(), group, own), namespace)

    def running() -> list[Object]:
        pods = cluster.list("pods", namespace, labelSelector=f"{POD_GROUP}=svc-engine")
        return pods if [pod["status"]["phase"] for pod in pods] == ["Running"] * 3 else []

    pods = cluster.wait(running, 60, "three pods to run")
    assert {pod["metadata"]["name"] for pod in pods} == {f"lws-svc-engine-0{end}" for end in ("", "-1", "-2")}
    assert {pod["spec"]["schedulerName"] for pod in pods} == {SCHEDULER}


def test_what_others_edit_is_undone(cluster: Cluster, namespace: str) -> None:
    own = service(labels={POD_GROUP: "svc-engine"}, leader=block(), worker=block(size=1), minReplicas=0)
    cluster.apply(text(runtime(), own), namespace)
    found = the_set(cluster, namespace)
    edit = {"spec": {"leaderWorkerTemplate": {"workerTemplate": {"metadata": {"labels": {POD_GROUP: "other"}}}}}}
    edited = cluster.api.patch("leaderworkersets", found["metadata"]["name"], edit, namespace)
    assert templates(edited)[1]["metadata"]["labels"][POD_GROUP] == "other"
    cluster.wait(
        lambda: templates(the_set(cluster, namespace))[1]["metadata"]["labels"][POD_GROUP] == "svc-engine",
        30,
        "the label to be as the service says",
    )


def test_webhooks(cluster: Cluster, namespace: str) -> None:
    cluster.apply(text(service(leader={}, worker={"size": 1})), namespace)
    made = cluster.get("inferenceservice", "svc", namespace)
    assert made["metadata"]["annotations"]["ome.io/deploymentMode"] == "MultiNode"
    assert made["spec"]["engine"].items() >= {"minReplicas": 1, "maxReplicas": 3}.items()
    alone = {**service("alone"), "spec": {"decoder": {}, "model": {"name": MODEL}, "runtime": {"name": "rt"}}}
    alone["metadata"]["namespace"] = namespace
    with pytest.raises(ApiError, match=r"denied the request: .*[Ee]ngine"):
        cluster.api.create(alone)


def test_it_comes_back(cluster: Cluster, namespace: str) -> None:
    cluster.part(ome.NAME).restart()
    cluster.apply(text(runtime(), service(leader=block(), worker=block(size=1), minReplicas=0)), namespace)
    assert the_set(cluster, namespace)["metadata"]["name"] == "lws-svc-engine"


def test_a_leader_alone_panics_and_makes_nothing(cluster: Cluster, namespace: str) -> None:
    cluster.apply(text(runtime(), service(leader=block())), namespace)
    log = cluster.part(ome.NAME).log
    cluster.wait(lambda: "panic" in log.read_text() and namespace in log.read_text(), 30, "OME to panic")
    assert cluster.list("leaderworkersets", namespace) == []
    assert cluster.part(ome.NAME).running()  # controller-runtime has caught it, and OME tries again for ever
