"""The stand-in for OMENative does what OME's documentation of 1.3 says; see its own page for what it is not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.cluster import ApiError, Cluster, ClusterError
from tests.e2e.cluster.api import Object
from tests.e2e.omenative import OmeNative
from tests.e2e.omenative.shape import Plan, duration, replicas, timeout

LABEL = "scheduling.x-k8s.io/pod-group"
GROUPS = "podgroups.scheduling.x-k8s.io"
SCHEDULER = "scheduler-plugins-scheduler"
CRDS = "customresourcedefinitions"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One without LeaderWorkerSets, and with definitions of OME's kinds that no other test wants."""
    with Cluster(nodes=4, gpus=8) as cluster:
        yield cluster


@pytest.fixture
def ome(cluster: Cluster) -> Iterator[OmeNative]:
    with OmeNative(cluster.folder / "admin.kubeconfig") as ome:
        yield ome


def block(image: str = "one", **fields: Any) -> Object:
    return {"runner": {"name": "server", "image": image, "resources": {"limits": {"nvidia.com/gpu": "4"}}}, **fields}


def service(name: str = "llama", metadata: Object | None = None, **spec: Any) -> Object:
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, **(metadata or {})},
        "spec": spec,
    }


def engine(size: int | None = 1, image: str = "one", **fields: Any) -> Object:
    worker = block(image) | ({} if size is None else {"size": size})
    return {"schedulerName": SCHEDULER, "leader": block(image), "worker": worker, **fields}


def create(cluster: Cluster, namespace: str, thing: Object) -> Object:
    thing = copy.deepcopy(thing)
    thing["metadata"]["namespace"] = namespace
    return cluster.api.create(thing)


def change(cluster: Cluster, namespace: str, **spec: Any) -> None:
    cluster.api.patch("inferenceservices", "llama", {"spec": spec}, namespace)


def names(cluster: Cluster, kind: str, namespace: str) -> list[str]:
    return sorted(one["metadata"]["name"] for one in cluster.list(kind, namespace))


def wait_for(cluster: Cluster, kind: str, namespace: str, *expected: str, seconds: float = 30) -> list[Object]:
    """Wait until there are just these objects, none of them on its way out, and return them in order."""

    def there() -> bool:
        found[:] = sorted(cluster.list(kind, namespace), key=lambda one: str(one["metadata"]["name"]))
        wanted = [one["metadata"]["name"] for one in found] == sorted(expected)
        return wanted and not any("deletionTimestamp" in one["metadata"] for one in found)

    found: list[Object] = []
    try:
        cluster.wait(there, seconds, f"{kind} {', '.join(expected)}")
    except ClusterError as error:
        states = [(one["metadata"]["name"], "deletionTimestamp" in one["metadata"]) for one in found]
        raise ClusterError(f"{error}: there are {states}") from None
    return found


def wait_running(cluster: Cluster, namespace: str, count: int) -> None:
    def running() -> bool:
        pods = cluster.list("pods", namespace)
        return len(pods) == count and all(one["status"].get("phase") == "Running" for one in pods)

    cluster.wait(running, 30, f"{count} running pods")


def wait_settled(cluster: Cluster, namespace: str, *indices: int) -> list[Object]:
    """Wait until there are just these Instances and nothing is under way; return their PodGroups."""

    def settled() -> bool:
        rows = replica(cluster, namespace).get("status", {}).get("instances", [])
        return [row["index"] for row in rows] == [*indices] and not any("operation" in row for row in rows)

    cluster.wait(settled, 30, f"the Instances {indices}")
    return wait_for(cluster, GROUPS, namespace, *(f"llama-engine-{index}" for index in indices))


def events(cluster: Cluster, namespace: str, reason: str) -> list[Object]:
    return [one for one in cluster.list("events", namespace) if one["reason"] == reason]


def wrong(ome: OmeNative, namespace: str) -> list[str]:
    """What went wrong, but for the refusals of namespaces of tests before, which are on their way out."""
    return [line for line in ome.wrong if f"/namespaces/{namespace}/" in line or "Traceback" in line]


def replica(cluster: Cluster, namespace: str, name: str = "llama-engine") -> Object:
    return cluster.get("inferencereplicas", name, namespace)


def test_a_gang(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    component = engine(2, minReplicas=2, labels={"team": "a", LABEL: "mine"}, topologyKey="example.com/rack")
    made = create(cluster, namespace, service(metadata={"labels": {"app": "x"}}, engine=component))
    pods = wait_for(
        cluster,
        "pods",
        namespace,
        *(f"llama-engine-{index}-{rest}" for index in (0, 1) for rest in ("leader-0", "worker-0", "worker-1")),
    )
    ir = replica(cluster, namespace)
    [parent] = ir["metadata"]["ownerReferences"]
    assert (parent["kind"], parent["uid"], parent["controller"]) == ("InferenceService", made["metadata"]["uid"], True)
    by = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceReplica",
        "name": "llama-engine",
        "uid": ir["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    last = pods[-1]
    assert last["metadata"]["ownerReferences"] == [by]
    labels = last["metadata"]["labels"]
    assert len(labels.pop("ome.io/revision-hash")) == 10
    four = {
        "ome.io/inferenceservice": "llama",
        "component": "engine",
        "ome.io/managed-by": "OMENative",
        "ome.io/instance-index": "1",
    }
    assert labels == {
        **four,
        "app": "x",
        "team": "a",
        "ome.io/instance-incarnation": "1",
        "ome.io/runner": "worker",
        "ome.io/pod-ordinal": "1",
        LABEL: "llama-engine-1",
    }
    spec = last["spec"]
    assert (spec["hostname"], spec["subdomain"]) == ("llama-engine-1-worker-1", "llama-engine-headless")
    assert spec["schedulerName"] == SCHEDULER
    [term] = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "example.com/rack"
    assert "affinity" not in pods[0]["spec"]

    groups = wait_for(cluster, GROUPS, namespace, "llama-engine-0", "llama-engine-1")
    assert groups[1]["metadata"]["labels"] == four
    assert groups[1]["metadata"]["annotations"] == {"ome.io/topology-key": "example.com/rack"}
    assert groups[1]["metadata"]["ownerReferences"] == [by]
    assert groups[1]["spec"] == {"minMember": 3, "scheduleTimeoutSeconds": 600}
    # Each group was there before its pods.
    moments = {one["metadata"]["name"]: one["metadata"]["creationTimestamp"] for one in groups}
    assert all(moments[pod["metadata"]["labels"][LABEL]] <= pod["metadata"]["creationTimestamp"] for pod in pods)
    ome.settle()
    [condition] = cluster.get("inferenceservices", "llama", namespace)["status"]["components"]["engine"]["lifecycle"][
        "conditions"
    ]
    assert (condition["status"], condition["reason"]) == ("False", "GangSchedulingAvailable")
    assert events(cluster, namespace, "MaybeNoGangScheduler") == []
    assert events(cluster, namespace, "GangSplitRisk") == []
    assert wrong(ome, namespace) == []


def test_the_real_scheduler_places_it(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine(3), decoder=engine(1)))
    wait_running(cluster, namespace, 6)
    ome.settle()
    rows = [replica(cluster, namespace, f"llama-{name}")["status"]["instances"] for name in ("engine", "decoder")]
    assert [("operation" in row, row["index"]) for [row] in rows] == [(False, 0), (False, 0)]


def test_one_pod_has_no_gang(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    component = {**block(), "labels": {LABEL: "mine"}, "annotations": {"ome.io/deploymentMode": "OMENative"}}
    create(cluster, namespace, service(engine=component))
    [pod] = wait_for(cluster, "pods", namespace, "llama-engine-0-default-0")
    assert pod["metadata"]["labels"][LABEL] == "mine"
    ome.settle()
    assert cluster.list(GROUPS, namespace) == []


@pytest.mark.parametrize(
    "spec",
    [
        {"engine": block()},
        {"engine": engine(), "deploymentMode": "RawDeployment"},
        {"engine": engine(annotations={"ome.io/deploymentMode": "MultiNode"}), "deploymentMode": "OMENative"},
    ],
)
def test_other_modes_are_not_its_business(cluster: Cluster, ome: OmeNative, namespace: str, spec: Object) -> None:
    create(cluster, namespace, service(**spec))
    ome.settle()
    assert cluster.list("inferencereplicas", namespace) == []
    assert cluster.list("pods", namespace) == []


def test_a_change_moves_the_instance_to_a_new_index_and_back(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine()))
    wait_running(cluster, namespace, 2)
    # Without a free node the new Instance cannot be ready, and the old one has to stay.
    cordon(cluster, True)
    try:
        change(cluster, namespace, engine=engine(image="two"))
        pods = wait_for(
            cluster, "pods", namespace, *(f"llama-engine-{i}-{r}-0" for i in (0, 1) for r in ("leader", "worker"))
        )
        images = [pod["spec"]["containers"][0]["image"] for pod in pods]
        assert images == ["one", "one", "two", "two"]
        ome.settle()
        assert names(cluster, GROUPS, namespace) == ["llama-engine-0", "llama-engine-1"]
    finally:
        cordon(cluster, False)
    wait_for(cluster, "pods", namespace, "llama-engine-1-leader-0", "llama-engine-1-worker-0")
    wait_settled(cluster, namespace, 1)
    change(cluster, namespace, engine={"worker": {"size": 2}})
    [group] = wait_settled(cluster, namespace, 0)
    assert group["spec"]["minMember"] == 3
    assert wrong(ome, namespace) == []


def cordon(cluster: Cluster, closed: bool) -> None:
    for node in cluster.list("nodes"):
        cluster.api.patch("nodes", node["metadata"]["name"], {"spec": {"unschedulable": closed}})


def test_replicas_go_and_come_at_the_lowest_free_index(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine(minReplicas=3, autoscaler={"class": "External"})))
    wait_settled(cluster, namespace, 0, 1, 2)
    scale(cluster, namespace, 1)
    wait_settled(cluster, namespace, 0)
    scale(cluster, namespace, 2)
    wait_settled(cluster, namespace, 0, 1)
    assert len(cluster.list("pods", namespace)) == 4


def scale(cluster: Cluster, namespace: str, count: int) -> None:
    cluster.kubectl("scale", "inferencereplica/llama-engine", f"--replicas={count}", "--namespace", namespace)


@pytest.mark.parametrize("held", [False, True])
def test_a_group_of_somebody_else_is_a_conflict(cluster: Cluster, ome: OmeNative, namespace: str, held: bool) -> None:
    group: Object = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "llama-engine-0", "labels": {"ome.io/managed-by": "OMENative"}},
        "spec": {"minMember": 2},
    }
    if held:
        holder = create(cluster, namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holder"}})
        by = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "uid": holder["metadata"]["uid"]}
        group["metadata"]["ownerReferences"] = [{**by, "controller": True}]
    create(cluster, namespace, group)
    create(cluster, namespace, service(engine=engine(minReplicas=2)))
    # The other Instance goes on.
    wait_for(cluster, "pods", namespace, "llama-engine-1-leader-0", "llama-engine-1-worker-0")
    ome.settle()
    [event] = events(cluster, namespace, "InstanceFailed")
    assert event["involvedObject"]["kind"] == "InferenceService"
    said = "is controlled by ConfigMap/holder, not by this owner" if held else "has no controller"
    assert event["message"].endswith(f"PodGroupOwnershipConflict: PodGroup llama-engine-0 {said}")
    [row, other] = replica(cluster, namespace)["status"]["instances"]
    assert row["lastFailure"]["reason"] == "PodGroupOwnershipConflict"
    assert "lastFailure" not in other
    kept = cluster.get(GROUPS, "llama-engine-0", namespace)
    assert kept["spec"] == {"minMember": 2}
    cluster.api.delete(GROUPS, "llama-engine-0", namespace)
    wait_running(cluster, namespace, 4)
    ome.settle()
    assert len(events(cluster, namespace, "InstanceFailed")) == 1
    assert "lastFailure" not in replica(cluster, namespace)["status"]["instances"][0]


def test_drift_is_put_right(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    component = engine(topologyKey="example.com/rack", lifecycle={"instanceReadyTimeout": "3m"})
    create(cluster, namespace, service(engine=component))
    [before] = wait_for(cluster, GROUPS, namespace, "llama-engine-0")
    assert before["spec"]["scheduleTimeoutSeconds"] == 180
    metadata = {
        "labels": {"component": "router", "extra": "x"},
        "annotations": {"ome.io/topology-key": None, "mine": "y"},
    }
    spec = {"minMember": 99, "scheduleTimeoutSeconds": None}
    cluster.api.patch(GROUPS, "llama-engine-0", {"metadata": metadata, "spec": spec}, namespace)

    def right() -> bool:
        group = cluster.get(GROUPS, "llama-engine-0", namespace)
        same = [group["metadata"]["labels"], group["spec"]] == [before["metadata"]["labels"], before["spec"]]
        return same and group["metadata"]["annotations"] == {"ome.io/topology-key": "example.com/rack", "mine": "y"}

    cluster.wait(right, 10, "the PodGroup to be put right")
    ome.settle()
    version = cluster.get(GROUPS, "llama-engine-0", namespace)["metadata"]["resourceVersion"]
    ome.settle()
    assert cluster.get(GROUPS, "llama-engine-0", namespace)["metadata"]["resourceVersion"] == version


def test_a_failed_group_is_made_anew_once_no_member_is_failed(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine()))
    wait_running(cluster, namespace, 2)
    [group] = cluster.list(GROUPS, namespace)
    pods = {pod["metadata"]["uid"] for pod in cluster.list("pods", namespace)}
    cluster.api.patch("pods", "llama-engine-0-worker-0", {"status": {"phase": "Failed"}}, namespace, "status")

    def anew() -> bool:
        found = cluster.list(GROUPS, namespace)
        return [one["metadata"]["uid"] for one in found] != [group["metadata"]["uid"]] and len(found) == 1

    cluster.wait(anew, 30, "a new PodGroup")
    wait_running(cluster, namespace, 2)
    # The whole Instance was made anew, under its old index.
    found = cluster.list("pods", namespace)
    assert pods.isdisjoint(pod["metadata"]["uid"] for pod in found)
    assert {pod["metadata"]["labels"]["ome.io/instance-index"] for pod in found} == {"0"}
    [event] = events(cluster, namespace, "PodGroupReset")
    assert "(PodGroup llama-engine-0 reported phase Failed: 1 of 2 members failed)" in event["message"]


def test_a_scheduler_without_gangs_is_warned_of_once(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    component = engine(schedulerName="default-scheduler")
    create(cluster, namespace, service(engine=component))
    wait_running(cluster, namespace, 2)
    ome.settle()
    ome.settle()
    [event] = events(cluster, namespace, "MaybeNoGangScheduler")
    assert "'default-scheduler'" in event["message"]
    assert len(events(cluster, namespace, "GangSplitRisk")) == 1


def test_a_replica_without_a_service(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    pod = {"spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": SCHEDULER}}
    standalone = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceReplica",
        "metadata": {"name": "pool"},
        "spec": {
            "component": "engine",
            "runners": [{"name": "leader", "template": pod}, {"name": "worker", "size": 2, "template": pod}],
        },
    }
    create(cluster, namespace, standalone)
    [group] = wait_for(cluster, GROUPS, namespace, "pool-engine-0")
    assert (group["spec"]["minMember"], group["metadata"]["labels"]["ome.io/inferenceservice"]) == (3, "pool")
    wait_running(cluster, namespace, 3)


def test_all_goes_with_the_service(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine(), decoder=engine()))
    wait_running(cluster, namespace, 4)
    change(cluster, namespace, decoder=None)
    wait_for(cluster, "inferencereplicas", namespace, "llama-engine")
    wait_for(cluster, GROUPS, namespace, "llama-engine-0")
    cluster.api.delete("inferenceservices", "llama", namespace)
    for kind in ("inferencereplicas", GROUPS, "pods"):
        wait_for(cluster, kind, namespace)


def test_a_server_that_is_away_is_waited_for(cluster: Cluster, ome: OmeNative, namespace: str) -> None:
    cluster.part("apiserver").kill()
    cluster.part("apiserver").start()
    create(cluster, namespace, service(engine=engine()))
    wait_for(cluster, GROUPS, namespace, "llama-engine-0")


def test_without_the_definition_at_its_start_there_are_no_groups() -> None:
    with Cluster(parts=("etcd", "apiserver")) as cluster:
        kubeconfig = cluster.folder / "admin.kubeconfig"
        namespace = cluster.namespace()
        definition = cluster.get(CRDS, GROUPS)
        remove(cluster)
        pods = ("llama-engine-0-leader-0", "llama-engine-0-worker-0")
        with OmeNative(kubeconfig) as ome:
            create(cluster, namespace, service(engine=engine()))
            found = wait_for(cluster, "pods", namespace, *pods)
            # They are labelled all the same, and will wait for ever.
            assert {pod["metadata"]["labels"][LABEL] for pod in found} == {"llama-engine-0"}
            ome.settle()
            [condition] = replica(cluster, namespace)["status"]["conditions"]
            assert (condition["status"], condition["reason"]) == ("True", "PodGroupCRDNotInstalled")
            metadata = {"name": GROUPS, "annotations": definition["metadata"]["annotations"]}
            again = {key: definition[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
            cluster.api.create(again)
            cluster.wait_defined(GROUPS)
            ome.settle()
            assert cluster.list(GROUPS, namespace) == []
        with OmeNative(kubeconfig) as ome:
            wait_for(cluster, GROUPS, namespace, "llama-engine-0")
            ome.settle()
            [condition] = replica(cluster, namespace)["status"]["conditions"]
            assert condition["status"] == "False"
            # Taken away while it runs: nothing fails, and what is there stays.
            remove(cluster)
            ome.settle()
            assert names(cluster, "pods", namespace) == list(pods)
            [condition] = replica(cluster, namespace)["status"]["conditions"]
            assert condition["status"] == "True"
            assert wrong(ome, namespace) == []


def remove(cluster: Cluster) -> None:
    cluster.api.delete(CRDS, GROUPS)

    def gone() -> bool:
        try:
            cluster.api.request("GET", "/apis/scheduling.x-k8s.io/v1alpha1/podgroups")
        except ApiError as error:
            return error.status == 404
        return False

    cluster.wait(gone, 20, "PodGroups to be no kind any more")


# What needs no cluster.


def plan(**fields: Any) -> Plan:
    thing = service(metadata={"namespace": "ns", "uid": "u"}, **fields)
    [found] = replicas(thing).values()
    found["metadata"]["uid"] = "r"
    return Plan(found)


@pytest.mark.parametrize(
    ("base", "index", "expected"),
    [
        ("llama", 3, "llama-engine-3"),
        ("x" * 54, 0, "x" * 54 + "-engine-0"),
        ("x" * 55, 0, "a2976adb-" + "x" * 45 + "-engine-0"),
        ("model-00-" + "y" * 50, 0, "a48c0f43-" + "y" * 45 + "-engine-0"),
        ("q" * 20 + "-" + "z" * 44, 0, "a6402499--" + "z" * 44 + "-engine-0"),
    ],
)
def test_names(base: str, index: int, expected: str) -> None:
    found = plan(engine=engine())
    found.replica["spec"]["parentRef"]["name"] = base
    assert found.group_name(index) == expected


@pytest.mark.parametrize(
    ("fields", "sizes", "schedulers"),
    [
        ({"leader": {}, "worker": {}}, {"leader": 1, "worker": 1}, [None, None]),
        ({"leader": {}, "worker": {"size": 5}, "schedulerName": "a"}, {"leader": 1, "worker": 5}, ["a", "a"]),
        (
            {"leader": {"schedulerName": "b"}, "worker": {"schedulerName": ""}, "schedulerName": "a"},
            {"leader": 1, "worker": 1},
            ["b", "a"],
        ),
        ({"leader": {"schedulerName": "b"}}, {"default": 1}, ["b"]),
        ({"worker": {"schedulerName": "b"}}, {"default": 1}, [None]),
    ],
)
def test_shapes(fields: Object, sizes: dict[str, int], schedulers: list[str | None]) -> None:
    found = plan(engine=fields)
    assert found.sizes == sizes
    assert [one["template"]["spec"].get("schedulerName") for one in found.replica["spec"]["runners"]] == schedulers


@pytest.mark.parametrize(
    ("said", "clamp", "expected"),
    [
        (None, (60, 600), 600),
        ("30s", (60, 600), 60),
        ("3m", (60, 600), 180),
        ("0s", (60, 600), 600),
        ("15m", None, 900),
        ("1.9s", None, 1),
        (None, None, 1800),
        ("1h30m", None, 5400),
    ],
)
def test_timeouts(said: str | None, clamp: tuple[float, float] | None, expected: int) -> None:
    lifecycle: Object = {"lifecycle": {"instanceReadyTimeout": said}} if said else {}
    assert timeout(plan(engine=engine(**lifecycle)), 1800, clamp) == expected


def test_durations() -> None:
    assert [duration(text) for text in ("1h30m", "90s", "-5m", "1.5h")] == [5400, 90, -300, 5400]
