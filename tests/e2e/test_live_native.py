"""`check --live` beside an OME that makes the PodGroups itself: a stand-in, see its page for what it is not."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.cluster import Cluster
from tests.e2e.cluster.api import Object
from tests.e2e.omenative import OmeNative

from .test_cluster import create
from .test_facts import fail, wait_phase
from .test_facts import remove as remove_pod
from .test_live import GROUPS, NODES, check, codes, comes_to, commands, fill, free, gangs, manager, paste
from .test_omenative import change, engine, events, remove, service, wait_settled

NAME = "llama-engine-0"
CRDS = "customresourcedefinitions"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One without LeaderWorkerSets, and with definitions of OME's kinds that no other test wants."""
    with Cluster(nodes=NODES, gpus=8) as cluster:
        cluster.namespace("ome")
        lifecycle = '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60s", "max": "600s"}, "unschedulableGracePeriod": "15m"}'
        settings = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "inferenceservice-config", "namespace": "ome"},
        }
        cluster.api.create({**settings, "data": {"lifecycle": lifecycle}})
        yield cluster


@pytest.fixture
def native(cluster: Cluster) -> Iterator[OmeNative]:
    with OmeNative(cluster.folder / "admin.kubeconfig") as ome:
        yield ome


def of_nodes(**fields: object) -> Object:
    """An engine whose pods have a node each."""
    component = copy.deepcopy(engine(2, **fields))
    for one in ("leader", "worker"):
        component[one]["runner"]["resources"]["limits"]["nvidia.com/gpu"] = "8"
    return component


def test_an_instance_is_whole_under_whatever_index(cluster: Cluster, native: OmeNative, namespace: str) -> None:
    create(cluster, namespace, service(engine=engine(1, minReplicas=2)))
    wait_settled(cluster, namespace, 0, 1)
    assert codes(check(cluster, namespace)) == []
    # An update moves an Instance to the next free index first.
    change(cluster, namespace, engine=engine(1, image="two", minReplicas=2))

    def moved() -> bool:
        found = gangs(check(cluster, namespace))
        return {gang["index"] for gang in found} != {0, 1} and [gang["state"] for gang in found] == ["bound"] * 2

    cluster.wait(moved, 60, "other indices")
    cluster.wait(lambda: codes(check(cluster, namespace)) == [], 20, "nothing to say")
    [service_] = check(cluster, namespace)["services"]
    assert (service_["mode"], service_["madeBy"]) == ("OMENative", "OME")


def test_no_room_and_the_time_that_is_left(cluster: Cluster, native: OmeNative, namespace: str, tmp_path: Path) -> None:
    fill(cluster, namespace, 2)
    create(cluster, namespace, service(engine=of_nodes()))
    gang = comes_to(cluster, namespace, "waiting", 0, "no-room")
    assert gang["failsInSeconds"] + gang["schedulerSaysForSeconds"] == 15 * 60
    free(cluster, namespace)
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 3, None)


def test_a_scheduler_that_ignores_the_label(
    cluster: Cluster, native: OmeNative, namespace: str, tmp_path: Path
) -> None:
    fill(cluster, namespace, 2)
    create(cluster, namespace, service(engine=of_nodes(schedulerName="default-scheduler")))
    gang = comes_to(cluster, namespace, "half-bound", 2, "scheduler-ignores-label")
    paste(cluster, commands(gang), tmp_path)
    found = cluster.wait(
        lambda: [one for one in gangs(check(cluster, namespace)) if one["cause"] == "no-room"], 60, "a gang that waits"
    )
    assert found[-1]["bound"] == 0


@pytest.mark.parametrize("held", [False, True])
def test_a_podgroup_of_another(cluster: Cluster, native: OmeNative, namespace: str, held: bool, tmp_path: Path) -> None:
    group: Object = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": NAME},
        "spec": {"minMember": 2},
    }
    if held:
        create(cluster, namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holder"}})
        uid = cluster.get("configmap", "holder", namespace)["metadata"]["uid"]
        by = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "uid": uid, "controller": True}
        group["metadata"]["ownerReferences"] = [by]
    create(cluster, namespace, group, service(engine=engine(1)))
    gang = comes_to(cluster, namespace, "absent", 0, "podgroup-foreign")
    assert ("ConfigMap/holder" if held else "has no controller") in gang["findings"][0]["message"]
    assert gang["findings"][0]["severity"] == "error"
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 2, None)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_failed_podgroup(cluster: Cluster, native: OmeNative, namespace: str, lost: int, tmp_path: Path) -> None:
    """A failed pod that is nobody's, as `kubectl debug --copy-to --keep-labels` leaves one: OME waits for its end."""
    create(cluster, namespace, service(engine=engine(1)))
    [group] = wait_settled(cluster, namespace, 0)
    members = cluster.list("pods", namespace)
    copied = copy.deepcopy(members[0])
    copied["metadata"] = {"name": "copied", "labels": copied["metadata"]["labels"]}
    create(cluster, namespace, {"apiVersion": "v1", "kind": "Pod", **copied, "status": {}})
    # Or kwok would make it run again; and once the group is Failed, nobody counts its pods anew.
    wait_phase(cluster, namespace, NAME, "Running", running=3)
    fail(cluster, namespace, "copied")
    wait_phase(cluster, namespace, NAME, "Failed", running=2, failed=1)
    assert codes(check(cluster, namespace)) == ["podgroup-failed"]
    for one in members[:lost]:
        remove_pod(cluster, namespace, one["metadata"]["name"])
    state = "absent" if lost == len(members) else "half-bound"
    gang = comes_to(cluster, namespace, state, len(members) - lost, "podgroup-failed")
    [finding] = gang["findings"]
    assert finding["severity"] == "error"
    assert "Failed, and OME makes no pods under it" in finding["message"]
    native.settle()
    assert cluster.get(GROUPS, NAME, namespace)["metadata"]["uid"] == group["metadata"]["uid"]
    assert events(cluster, namespace, "PodGroupReset") == []
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 2, None)
    cluster.wait(lambda: codes(check(cluster, namespace)) == [], 30, "nothing more to say")
    [event] = events(cluster, namespace, "PodGroupReset")
    assert f"PodGroup {NAME} reported phase Failed: 1 of 2 members failed" in event["message"]


def test_a_failed_podgroup_that_ome_has_not_seen_to(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """OME is away while a pod fails and somebody removes it: then there is no failed pod, and the phase stays."""
    with OmeNative(cluster.folder / "admin.kubeconfig"):
        create(cluster, namespace, service(engine=engine(1)))
        wait_settled(cluster, namespace, 0)
    wait_phase(cluster, namespace, NAME, "Running", running=2)
    [lost, _] = [one["metadata"]["name"] for one in cluster.list("pods", namespace)]
    fail(cluster, namespace, lost)
    wait_phase(cluster, namespace, NAME, "Failed", running=1, failed=1)
    remove_pod(cluster, namespace, lost)
    gang = comes_to(cluster, namespace, "half-bound", 1, "podgroup-failed")
    paste(cluster, commands(gang), tmp_path)
    with OmeNative(cluster.folder / "admin.kubeconfig"):
        comes_to(cluster, namespace, "bound", 2, None)
    assert codes(check(cluster, namespace)) == []
    assert events(cluster, namespace, "PodGroupReset") == []  # nothing was left to reset


def test_the_definition_comes_after_ome(cluster: Cluster, namespace: str) -> None:
    """OME looks for it once: pods are labelled, no PodGroup is made, and they wait for ever."""
    definition = cluster.get(CRDS, GROUPS)
    remove(cluster)
    try:
        with OmeNative(cluster.folder / "admin.kubeconfig") as ome:
            create(cluster, namespace, service(engine=engine(1)))
            found = cluster.wait(
                lambda: held if gangs(held := check(cluster, namespace))[0]["pods"] else None, 30, "the pods"
            )
            comes_to(cluster, namespace, "waiting", 0, "podgroup-crd-missing")
            assert "podgroup-crd-missing" in codes(found)
            metadata = {"name": GROUPS, "annotations": definition["metadata"]["annotations"]}
            again = {key: definition[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata}
            cluster.api.create(again)
            cluster.wait_defined(GROUPS)
            ome.settle()
            # OME says so itself, in the status of the service.
            comes_to(cluster, namespace, "waiting", 0, "ome-started-before-crd")
    finally:
        if GROUPS not in [one["metadata"]["name"] for one in cluster.list(CRDS)]:
            cluster.api.create(
                {key: definition[key] for key in ("apiVersion", "kind", "spec")}
                | {"metadata": {"name": GROUPS, "annotations": definition["metadata"]["annotations"]}}
            )
            cluster.wait_defined(GROUPS)


def test_the_command_for_a_definition_that_came_late_names_the_manager(cluster: Cluster, namespace: str) -> None:
    """Without a word of OME the start of its pods tells: here the pods are OME's, and the manager only seems to run."""
    cluster.api.create(manager("ghcr.io/moirai-internal/ome-manager:v1.3.0"))
    cluster.wait(
        lambda: [one["status"].get("phase") for one in cluster.list("pods", "ome")] == ["Running"], 30, "the manager"
    )
    definition = cluster.get(CRDS, GROUPS)
    metadata = {"name": GROUPS, "annotations": definition["metadata"]["annotations"]}
    remove(cluster)
    time.sleep(1.1)  # times are whole seconds
    cluster.api.create({key: definition[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": metadata})
    cluster.wait_defined(GROUPS)
    create(cluster, namespace, service(engine=engine(1)))
    labels = {
        "ome.io/inferenceservice": "llama",
        "component": "engine",
        "ome.io/instance-index": "0",
        "scheduling.x-k8s.io/pod-group": NAME,
    }
    spec = {"schedulerName": "scheduler-plugins-scheduler", "containers": [{"name": "c", "image": "i"}]}
    for number in range(2):
        one = {"name": f"{NAME}-{number}", "labels": labels}
        create(cluster, namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": one, "spec": spec})
    gang = comes_to(cluster, namespace, "waiting", 0, "ome-started-before-crd")
    assert commands(gang) == ["kubectl rollout restart deployment ome-controller-manager -n ome"]
    cluster.kubectl(*commands(gang)[0].split()[1:])
