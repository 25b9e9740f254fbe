"""What stands in for a cluster in the unit tests and properties of the reconciler, against the real programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from postrender.cluster.client import Client, Refused, connect
from tests.reconciler.controller import settled
from tests.reconciler.memory import Memory

from .cluster import Cluster
from .reconciler import groups, services
from .test_cluster import create, pod, podgroup, stays
from .test_facts import status
from .test_reconciler import GROUP, define


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(parts=("etcd", "apiserver", "podgroup-controller")) as running:
        define(running)
        yield running


def asked(call: Any) -> Any:
    """What comes of a request: a status, or what it returns."""
    try:
        return call()
    except Refused as refused:
        return refused.status


def script(client: Client | Memory, namespace: str) -> list[Any]:
    """Requests as the reconciler makes them, and what matters of each answer."""
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups"
    one = f"{path}/svc-engine-0"
    events = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    found: list[Any] = []

    def patched(version: str, phase: str, **metadata: str) -> Any:
        body = {
            "metadata": {"resourceVersion": version, **metadata},
            "status": {"phase": phase},
            "spec": {"minMember": 9},
        }
        held = asked(lambda: client.patch(f"{one}/status", body))
        return held if isinstance(held, int) else (held["status"], held["spec"]["minMember"])

    first = client.get(one)
    version = first["metadata"]["resourceVersion"]
    found.append(asked(lambda: client.get(f"{path}/nobody")))
    found.append(asked(lambda: client.patch(f"{path}/nobody/status", {"status": {"phase": "Pending"}})))
    found.append(patched(version, "Failed"))
    found.append(patched(version, "Pending"))  # stale
    now = client.get(one)["metadata"]["resourceVersion"]
    found.append(now != version)
    found.append(patched(now, "Failed"))  # what is there already
    found.append(client.get(one)["metadata"]["resourceVersion"] == now)
    found.append(patched(now, "Pending", uid="11111111-1111-1111-1111-111111111111"))
    found.append(patched(now, "Failed", uid=first["metadata"]["uid"]))
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "an-event", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "type": "Normal",
        "reason": "Made",
        "action": "Make",
        "note": "n",
        "reportingController": "test/it",
        "reportingInstance": "it",
        "regarding": {"kind": "InferenceService", "namespace": namespace, "name": "svc"},
    }
    found.append(asked(lambda: client.post(events, event))["reason"])
    found.append(asked(lambda: client.post(events, event)))
    series = {"series": {"count": 2, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}}
    found.append(client.patch(f"{events}/an-event", series)["series"]["count"])
    found.append(asked(lambda: client.patch(f"{events}/nobody", series)))
    for query in (
        {"labelSelector": "scheduling.x-k8s.io/pod-group=svc-engine-0", "fieldSelector": "status.phase=Failed"},
        {"labelSelector": "scheduling.x-k8s.io/pod-group=svc-engine-0"},
        {"labelSelector": "scheduling.x-k8s.io/pod-group", "fieldSelector": "status.phase=Failed"},
    ):
        for where in ("/api/v1/pods", f"/api/v1/namespaces/{namespace}/pods"):
            items = client.get(where, query)["items"]
            found.append(sorted(held["metadata"]["name"] for held in items))
    found.append(asked(lambda: client.get("/apis/ome.io/v1beta1/namespaces/x/inferenceservices/svc")))
    return found


def test_the_api_server_in_memory_answers_as_the_real_one(cluster: Cluster, namespace: str) -> None:
    services(cluster, namespace, "svc")
    other = cluster.namespace()
    pods = [
        (namespace, "a", "svc-engine-0", "Failed"),
        (namespace, "b", "svc-engine-0", "Running"),
        (other, "c", "svc-engine-0", "Failed"),
        (namespace, "d", "svc-engine-1", "Failed"),
    ]
    memory = Memory()
    for space, name, group, phase in pods:
        create(cluster, space, pod(name, "nobody", group))
        cluster.api.patch("pods", name, {"status": {"phase": phase}}, space, "status")
        memory.pod(space, name, group, phase)
    with cluster.part("podgroup-controller").paused():
        [group] = groups(namespace, ["svc-engine-0"])
        cluster.api.create(group)
        memory.put("podgroups", group)
        real = script(connect(kubeconfig=str(cluster.folder / "admin.kubeconfig")), namespace)
    assert script(memory, namespace) == real
    cluster.discard(other)


CASES = [
    ("", ["Running"] * 2, 3),
    ("", ["Pending"] * 3, 3),
    ("", ["Running"] * 3, 3),
    ("", ["Running", "Running", "Failed"], 3),
    ("", ["Running", "Running", "Running", "Failed"], 3),
    ("", ["Failed", "Pending", "Pending"], 3),
    ("", ["Succeeded", "Succeeded"], 2),
    ("", ["Succeeded", "Running"], 2),
    ("", ["Failed"], 2),
    ("Pending", ["Running", "Running"], 2),
    ("Pending", ["Failed", "Running"], 2),
    ("Failed", ["Running", "Running"], 2),
    ("Finished", ["Running"], 2),
    ("Running", ["Running"], 2),
    ("Unknown", ["Running", "Running"], 2),
]


def test_the_model_of_the_podgroup_controller_counts_as_the_real_one(cluster: Cluster, namespace: str) -> None:
    """All at once: from a phase and the phases of pods to where nothing changes any more; one pod of each is elsewhere."""
    other = cluster.namespace()
    with cluster.part("podgroup-controller").paused():
        for number, (phase, phases, least) in enumerate(CASES):
            create(cluster, namespace, podgroup(f"case-{number}", minMember=least))
            if phase:
                cluster.api.patch(GROUP, f"case-{number}", {"status": {"phase": phase}}, namespace, "status")
            for member, one in enumerate(phases):
                # A namesake's pod counts, so one of them is that.
                space = other if member == 1 else namespace
                create(cluster, space, pod(f"case-{number}-{member}", "nobody", f"case-{number}"))
                cluster.api.patch("pods", f"case-{number}-{member}", {"status": {"phase": one}}, space, "status")
    expected = {f"case-{number}": settled(*case) for number, case in enumerate(CASES)}

    def real() -> dict[str, str]:
        return {name: status(cluster, namespace, name).get("phase", "") for name in expected}

    cluster.wait(lambda: real() == expected, 20, f"the phases {expected}")
    stays(cluster, lambda: real() == expected, 1)
    cluster.discard(other)
