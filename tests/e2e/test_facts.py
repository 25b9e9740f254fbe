"""What the programs that gangs stand on do, where our rules and pages rely on it and no other test shows it."""

from __future__ import annotations

import contextlib
import datetime
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from .cluster import ApiError, Cluster
from .cluster.api import Object, Objects
from .test_cluster import GANGS, LABEL, bound, create, pod, podgroup, stays, why, workers

PLAIN = "default-scheduler"
GANG = "postrender/gang"
GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
POD_INDEX = "apps.kubernetes.io/pod-index"


@pytest.fixture
def elsewhere(cluster: Cluster) -> Iterator[str]:
    """A second namespace."""
    name = cluster.namespace()
    yield name
    cluster.discard(name)


def status(cluster: Cluster, namespace: str, name: str) -> Object:
    found: Object = cluster.get("podgroup", name, namespace).get("status", {})
    return found


def wait_phase(cluster: Cluster, namespace: str, name: str, phase: str, **counters: int) -> None:
    """Wait until a PodGroup has a phase, and these numbers of pods that run, succeeded and failed."""

    def reached() -> bool:
        now = status(cluster, namespace, name)
        return now.get("phase") == phase and all(now.get(one, 0) == count for one, count in counters.items())

    cluster.wait(reached, 15, f"{name} to be {phase} with {counters}")


def wait_running(cluster: Cluster, namespace: str, count: int) -> None:
    def phases() -> list[str]:
        return [one["status"].get("phase") for one in cluster.list("pods", namespace)]

    cluster.wait(lambda: phases() == ["Running"] * count, 30, f"{count} pods to run")


def fail(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.api.patch("pods", name, {"status": {"phase": "Failed"}}, namespace, "status")


def remove(cluster: Cluster, namespace: str, name: str) -> None:
    """Delete a pod, and wait until it is gone."""
    cluster.api.delete("pods", name, namespace, gracePeriodSeconds="0")
    cluster.wait(
        lambda: name not in [one["metadata"]["name"] for one in cluster.list("pods", namespace)], 10, "its end"
    )


def refused(call: Callable[[], Any]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value


# The status of PodGroups


def running_gang(cluster: Cluster, namespace: str, name: str = "red", count: int = 3) -> None:
    create(cluster, namespace, podgroup(name, minMember=count))
    create(cluster, namespace, *(pod(f"{name}-{number}", GANGS, name, gpus=1) for number in range(count)))
    wait_phase(cluster, namespace, name, "Running", running=count)


def test_the_phases_of_a_podgroup(cluster: Cluster, namespace: str) -> None:
    """A PodGroup is Pending until its pods are there, Scheduling until they run, then Running."""
    create(cluster, namespace, podgroup("red", minMember=3))
    wait_phase(cluster, namespace, "red", "Pending")
    with cluster.part("scheduler").paused():
        create(cluster, namespace, pod("red-0", GANGS, "red"), pod("red-1", GANGS, "red"))
        stays(cluster, lambda: status(cluster, namespace, "red")["phase"] == "Pending", 0.5)
        create(cluster, namespace, pod("red-2", GANGS, "red"))
        wait_phase(cluster, namespace, "red", "Scheduling")
    wait_phase(cluster, namespace, "red", "Running", running=3)


def test_a_failed_podgroup_stays_failed_until_its_status_is_repaired(cluster: Cluster, namespace: str) -> None:
    """One pod Failed makes a PodGroup Failed for good, though pods are placed; a merge patch to Pending mends it."""
    running_gang(cluster, namespace)
    fail(cluster, namespace, "red-1")
    wait_phase(cluster, namespace, "red", "Failed", running=2, failed=1)

    remove(cluster, namespace, "red-1")
    create(cluster, namespace, pod("red-new", GANGS, "red", gpus=1))
    wait_running(cluster, namespace, 3)
    stays(cluster, lambda: status(cluster, namespace, "red")["phase"] == "Failed", 1)

    def repair(version: str) -> Object:
        change = {"metadata": {"resourceVersion": version}, "status": {"phase": "Pending"}}
        return cluster.api.patch("podgroups", "red", change, namespace, "status")

    stale = cluster.get("podgroup", "red", namespace)["metadata"]["resourceVersion"]
    cluster.api.patch("podgroups", "red", {"metadata": {"labels": {"touched": "yes"}}}, namespace)
    assert refused(lambda: repair(stale)).status == 409
    assert status(cluster, namespace, "red")["phase"] == "Failed"

    def repaired() -> bool:
        try:
            repair(cluster.get("podgroup", "red", namespace)["metadata"]["resourceVersion"])
        except ApiError as error:
            if error.status != 409:  # the controller has written in between
                raise
            return False
        return True

    cluster.wait(repaired, 5, "the repair to be accepted")
    wait_phase(cluster, namespace, "red", "Running", running=3, failed=0)


def test_a_greater_minmember_makes_a_running_podgroup_pending(cluster: Cluster, namespace: str) -> None:
    """Raising minMember makes a PodGroup Pending; neither that nor its deletion touches pods that run."""
    running_gang(cluster, namespace)
    before = {one["metadata"]["uid"] for one in cluster.list("pods", namespace)}

    def untouched() -> bool:
        pods = cluster.list("pods", namespace)
        phases = {one["status"]["phase"] for one in pods}
        return {one["metadata"]["uid"] for one in pods} == before and phases == {"Running"}

    cluster.api.patch("podgroups", "red", {"spec": {"minMember": 4}}, namespace)
    wait_phase(cluster, namespace, "red", "Pending")
    assert untouched()
    cluster.api.delete("podgroups", "red", namespace)
    cluster.wait(lambda: not cluster.list("podgroups", namespace), 10, "the PodGroup to be gone")
    stays(cluster, untouched, 1)


def test_equal_names_in_two_namespaces(cluster: Cluster, namespace: str, elsewhere: str) -> None:
    """The controller counts pods of equally named PodGroups of all namespaces together, and the scheduler does not."""
    running_gang(cluster, namespace, "same", count=2)
    create(cluster, elsewhere, podgroup("same", minMember=2))
    wait_phase(cluster, elsewhere, "same", "Running", running=2)
    assert cluster.list("pods", elsewhere) == []

    fail(cluster, namespace, "same-0")
    create(cluster, elsewhere, pod("same-0", GANGS, "same", gpus=1))
    wait_phase(cluster, elsewhere, "same", "Failed", running=1, failed=1)
    reason = "current pods number: 1, minMember of group: 2"
    cluster.wait(lambda: reason in why(cluster, elsewhere, "same-0"), 10, "the scheduler to count right")
    assert bound(cluster, elsewhere) == []

    create(cluster, elsewhere, pod("same-1", GANGS, "same", gpus=1))
    wait_running(cluster, elsewhere, 2)


# Requests


def test_delete_with_preconditions(cluster: Cluster, namespace: str) -> None:
    """DELETE heeds a uid and a resourceVersion: with another one it is a 409, and the object stays."""
    create(cluster, namespace, podgroup("red", minMember=3))
    wait_phase(cluster, namespace, "red", "Pending")
    first = cluster.get("podgroup", "red", namespace)["metadata"]
    now = cluster.api.patch("podgroups", "red", {"metadata": {"labels": {"touched": "yes"}}}, namespace)["metadata"]

    def delete(**preconditions: str) -> None:
        cluster.api.request("DELETE", cluster.api.path("podgroups", namespace, "red"), {"preconditions": preconditions})

    other = "00000000-0000-4000-8000-000000000000"
    assert refused(lambda: delete(uid=other, resourceVersion=now["resourceVersion"])).status == 409
    assert refused(lambda: delete(uid=now["uid"], resourceVersion=first["resourceVersion"])).status == 409
    assert cluster.get("podgroup", "red", namespace)["metadata"]["uid"] == first["uid"]
    delete(uid=now["uid"], resourceVersion=now["resourceVersion"])
    assert cluster.list("podgroups", namespace) == []


def event(regarding: Object, uid: str = "", **fields: Any) -> Object:
    """An event about an object; a field that is None is left out."""
    metadata = regarding["metadata"]
    whole = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": fields.pop("generateName", "ev-"), "namespace": metadata["namespace"]},
        "eventTime": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "type": "Normal",
        "reason": "Tried",
        "note": "it was tried",
        "action": "Trying",
        "reportingController": "example.com/tests",
        "reportingInstance": "tests-0",
        "regarding": {
            "apiVersion": regarding["apiVersion"],
            "kind": regarding["kind"],
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": uid or metadata["uid"],
        },
        **fields,
    }
    return {key: value for key, value in whole.items() if value is not None}


def test_what_an_event_needs(cluster: Cluster, namespace: str) -> None:
    """An event wants action, reportingInstance, no dot at generateName's end, and the uid, or it is not described."""
    create(cluster, namespace, podgroup("red", minMember=3))
    group = cluster.get("podgroup", "red", namespace)
    for missing in ("action", "reportingInstance"):
        error = refused(functools.partial(cluster.api.create, event(group, "", **{missing: None})))
        assert error.status == 422
        assert f"{missing}: Required value" in error.message
    error = refused(lambda: cluster.api.create(event(group, generateName="ev.")))
    assert error.status == 422
    assert "metadata.generateName: Invalid value" in error.message

    cluster.api.create(event(group, uid="00000000-0000-4000-8000-000000000000", reason="OfAnother"))
    cluster.api.create(event(group))
    shown = cluster.kubectl("describe", "podgroup", "red", "-n", namespace).stdout
    assert "it was tried" in shown
    assert "Tried" in shown
    assert "OfAnother" not in shown


def test_kubectl_patches_a_status_with_the_right_to_read_it(cluster: Cluster, namespace: str) -> None:
    """`kubectl patch --subresource=status` wants to get the subresource, not only to patch it."""
    create(cluster, namespace, podgroup("red", minMember=3))

    def rules(*verbs: str) -> Objects:
        start: Object = {"apiGroups": ["scheduling.x-k8s.io"]}
        return [
            {**start, "resources": ["podgroups"], "verbs": ["get", "list", "patch"]},
            {**start, "resources": ["podgroups/status"], "verbs": list(verbs)},
        ]

    words = ["patch", "podgroup", "red", "-n", namespace, "--subresource=status", "--type=merge"]
    words.append('--patch={"status": {"occupiedBy": "tests"}}')
    blind = cluster.user(f"blind-{namespace}", rules("patch"), namespace)
    done = cluster.kubectl(*words, as_=blind, check=False)
    assert done.returncode == 1
    assert 'cannot get resource "podgroups/status"' in done.stderr
    seeing = cluster.user(f"seeing-{namespace}", rules("get", "patch"), namespace)
    cluster.kubectl(*words, as_=seeing)
    assert status(cluster, namespace, "red")["occupiedBy"] == "tests"


# An admission policy that numbers the gangs of a LeaderWorkerSet

LABELS = "object.metadata.labels"
INDEX = f"('{GROUP_INDEX}' in {LABELS} ? {LABELS}['{GROUP_INDEX}'] : {LABELS}['{POD_INDEX}'])"
NUMBERED = f"{LABELS}['{GANG}'] + '-' + {INDEX}"
APPLY = {
    "patchType": "ApplyConfiguration",
    "applyConfiguration": {
        "expression": f"Object{{metadata: Object.metadata{{labels: {{'{LABEL}': {NUMBERED}}}}},"
        f" spec: Object.spec{{schedulerName: '{GANGS}'}}}}"
    },
}
JSON_PATCH = {
    "patchType": "JSONPatch",
    "jsonPatch": {
        "expression": "["
        f"JSONPatch{{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('{LABEL}'), value: {NUMBERED}}},"
        f"JSONPatch{{op: 'add', path: '/spec/schedulerName', value: '{GANGS}'}}]"
    },
}
GUARD = f"'{GROUP_INDEX}' in {LABELS} || '{POD_INDEX}' in {LABELS}"


def policy(name: str, mutation: Object, guarded: bool = True) -> Object:
    """A policy for pods that name their gang."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1beta1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "reinvocationPolicy": "IfNeeded",
            "matchConstraints": {
                "objectSelector": {"matchExpressions": [{"key": GANG, "operator": "Exists"}]},
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ],
            },
            "matchConditions": [{"name": "has-an-index", "expression": GUARD}] if guarded else [],
            "mutations": [mutation],
        },
    }


@contextlib.contextmanager
def in_force(cluster: Cluster, *policies: tuple[str, Object]) -> Iterator[None]:
    """Bind each policy to a namespace, wait until all of them act, and take them away in the end."""
    names = [one["metadata"]["name"] for _, one in policies]
    try:
        for namespace, one in policies:
            cluster.api.create(one)
            selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
            cluster.api.create(
                {
                    "apiVersion": one["apiVersion"],
                    "kind": "MutatingAdmissionPolicyBinding",
                    "metadata": one["metadata"],
                    "spec": {
                        "policyName": one["metadata"]["name"],
                        "matchResources": {"namespaceSelector": selector},
                    },
                }
            )
        cluster.wait(lambda: all(acts(cluster, namespace) for namespace, _ in policies), 20, "the policies to act")
        yield
    finally:
        for name in names:
            cluster.api.delete("mutatingadmissionpolicybindings", name)
            cluster.api.delete("mutatingadmissionpolicies", name)


def tried(cluster: Cluster, namespace: str, **labels: str) -> Object:
    """What would become of a pod of the gang svc with these labels."""
    one = pod("tried", PLAIN, "preset")
    one["metadata"] = {"name": "tried", "namespace": namespace, "labels": {LABEL: "preset", GANG: "svc", **labels}}
    return cluster.api.create(one, dryRun="All")


def acts(cluster: Cluster, namespace: str) -> bool:
    return group_of(tried(cluster, namespace, **{POD_INDEX: "7"})) == "svc-7"


def group_of(one: Object) -> str:
    return str(one["metadata"]["labels"][LABEL])


def test_a_policy_numbers_pods_and_needs_a_guard(cluster: Cluster, namespace: str, elsewhere: str) -> None:
    """A MutatingAdmissionPolicy overwrites preset fields, and a missing label denies the pod unless guarded."""
    endless = policy(f"endless-{namespace}", APPLY)
    del endless["spec"]["reinvocationPolicy"]
    error = refused(lambda: cluster.api.create(endless))
    assert error.status == 422
    assert "reinvocationPolicy" in error.message

    guarded, bare = policy(f"guarded-{namespace}", JSON_PATCH), policy(f"bare-{namespace}", APPLY, guarded=False)
    with in_force(cluster, (namespace, guarded), (elsewhere, bare)):
        for place in (namespace, elsewhere):
            both = tried(cluster, place, **{GROUP_INDEX: "1", POD_INDEX: "2"})
            assert (group_of(both), both["spec"]["schedulerName"]) == ("svc-1", GANGS)
        neither = tried(cluster, namespace)
        assert (group_of(neither), neither["spec"]["schedulerName"]) == ("preset", PLAIN)
        error = refused(lambda: tried(cluster, elsewhere))
        assert "no such key" in error.message
        assert "denied request" in error.message


@pytest.mark.parametrize("mutation", [APPLY, JSON_PATCH], ids=lambda mutation: mutation["patchType"])
def test_a_policy_gives_each_replica_a_gang(cluster: Cluster, namespace: str, mutation: Object) -> None:
    """Without the policy pods of a LeaderWorkerSet find no PodGroup; made again under it, each replica is a gang."""
    service = workers("LeaderCreated")
    spec = service["spec"]["leaderWorkerTemplate"]
    spec["size"], service["spec"]["replicas"] = 2, 2
    spec["leaderTemplate"]["metadata"]["labels"] |= {GANG: "svc"}
    spec["workerTemplate"]["metadata"]["labels"] |= {GANG: "svc"}
    names = ["svc-0", "svc-0-1", "svc-1", "svc-1-1"]
    create(cluster, namespace, podgroup("svc-0", minMember=2), podgroup("svc-1", minMember=2), service)

    def reasons() -> list[str]:
        return [why(cluster, namespace, name) for name in names]

    cluster.wait(lambda: all("PodGroup not found" in reason for reason in reasons()), 30, "the reasons")
    assert bound(cluster, namespace) == []

    def settled() -> bool:
        pods = {one["metadata"]["name"]: one for one in cluster.list("pods", namespace)}
        groups = {name: group_of(one) for name, one in pods.items()}
        running = [one["status"].get("phase") for one in pods.values()] == ["Running"] * 4
        return running and groups == {"svc-0": "svc-0", "svc-0-1": "svc-0", "svc-1": "svc-1", "svc-1-1": "svc-1"}

    with in_force(cluster, (namespace, policy(f"gangs-{namespace}", mutation))):
        # Each deleted worker may cost its group one more restart, so what is seen in between is not asserted.
        cluster.api.request("DELETE", cluster.api.path("pods", namespace), gracePeriodSeconds="0")
        cluster.wait(settled, 30, "both gangs to run")
        for name in ("svc-0", "svc-1"):
            wait_phase(cluster, namespace, name, "Running", running=2)


# Gangs that wait


def failures(cluster: Cluster, namespace: str) -> Objects:
    return [one for one in cluster.list("events", namespace) if one["reason"] == "FailedScheduling"]


def create_gang(cluster: Cluster, namespace: str, count: int, gpus: int = 8, **spec: int) -> None:
    """A gang, all of whose pods are there before the scheduler sees the first."""
    with cluster.part("scheduler").paused():
        create(cluster, namespace, podgroup("red", minMember=count, **spec))
        create(cluster, namespace, *(pod(f"red-{number}", GANGS, "red", gpus=gpus) for number in range(count)))


def wait_said(cluster: Cluster, namespace: str, text: str) -> None:
    """Wait until the scheduler has said so of a pod."""
    cluster.wait(lambda: any(text in one["message"] for one in failures(cluster, namespace)), 20, text)


def test_a_gang_that_fits_nowhere_holds_nothing(cluster: Cluster, namespace: str) -> None:
    """A gang of five nodes on four leaves all of them to others."""
    create_gang(cluster, namespace, 5)
    wait_said(cluster, namespace, "is unschedulable even after PostFilter")
    assert bound(cluster, namespace) == []
    create(cluster, namespace, *(pod(f"other-{number}", PLAIN) for number in range(4)))
    cluster.wait(lambda: len(bound(cluster, namespace, "other")) == 4, 5, "the others to be placed")
    assert bound(cluster, namespace, "red") == []


def test_a_gang_that_nearly_fits_holds_what_it_has_until_its_timeout(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gang that misses at most a tenth of its members keeps others out until it is rejected due to timeout."""
    lack = "Insufficient nvidia.com/gpu"
    create_gang(cluster, namespace, 33, gpus=1, scheduleTimeoutSeconds=6)
    begin = time.monotonic()
    wait_said(cluster, namespace, lack)
    create(cluster, namespace, *(pod(f"small-{number}", PLAIN, gpus=1) for number in range(4)))
    cluster.wait(lambda: all(lack in why(cluster, namespace, f"small-{n}") for n in range(4)), 3, "refusals")
    stays(cluster, lambda: bound(cluster, namespace) == [], begin + 5 - time.monotonic())
    wait_said(cluster, namespace, "rejected due to timeout after waiting 6s at plugin Coscheduling")
    rejected = time.monotonic()
    # At once, unless the gang is quicker and holds the nodes for another round.
    cluster.wait(lambda: len(bound(cluster, namespace, "small")) == 4, 30, "the small ones to be placed")
    with capsys.disabled():
        print(f" [rejected after {rejected - begin:.1f} s, {time.monotonic() - rejected:.1f} s later placed]", end="")
    assert bound(cluster, namespace, "red") == []


def beside_a_free_node(cluster: Cluster, namespace: str, nodes: int) -> None:
    """A gang of two nodes where one is free."""
    create(cluster, namespace, *(pod(f"filler-{number}", PLAIN) for number in range(nodes - 1)))
    cluster.wait(lambda: len(bound(cluster, namespace)) == nodes - 1, 20, "the others to be placed")
    create_gang(cluster, namespace, 2)
    wait_said(cluster, namespace, "is unschedulable even after PostFilter")


def test_a_waiting_gang_beside_a_free_node_is_tried_all_the_time(
    cluster: Cluster, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gang that waits beside one free node makes a stream of FailedScheduling events."""
    beside_a_free_node(cluster, namespace, 4)
    before, begin = len(failures(cluster, namespace)), time.monotonic()
    time.sleep(3)
    rate = (len(failures(cluster, namespace)) - before) / (time.monotonic() - begin)
    with capsys.disabled():
        print(f" [{rate:.0f} events a second]", end="")
    assert rate >= 20
    assert bound(cluster, namespace, "red") == []


def test_a_back_off_ends_the_stream_and_misses_the_room_that_appears() -> None:
    """With podGroupBackoffSeconds no event follows, nor is room noticed that appears, until the PodGroup changes."""
    with Cluster(nodes=2, gpus=8, coscheduling={"podGroupBackoffSeconds": 10}) as cluster:
        namespace = cluster.namespace()
        beside_a_free_node(cluster, namespace, 2)
        begin = time.monotonic()
        wait_phase(cluster, namespace, "red", "Scheduling")
        time.sleep(1)
        before = failures(cluster, namespace)
        time.sleep(3)
        assert len(failures(cluster, namespace)) == len(before)
        remove(cluster, namespace, "filler-0")
        stays(cluster, lambda: bound(cluster, namespace) == [], begin + 12 - time.monotonic())
        cluster.api.patch("podgroups", "red", {"metadata": {"labels": {"touched": "yes"}}}, namespace)
        cluster.wait(lambda: len(bound(cluster, namespace)) == 2, 5, "the gang to be placed")
