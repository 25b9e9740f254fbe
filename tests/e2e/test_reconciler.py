"""The reconciler on a real control plane: the real PodGroup controller fails gangs, and the shipped rights are all it has."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from postrender.cluster.client import Refused, Unreachable, connect
from postrender.reconciler.api import Api
from postrender.reconciler.log import Log
from postrender.reconciler.loop import Loop, Settings
from postrender.reconciler.metrics import Metrics
from postrender.reconciler.watch import Pace

from .cluster import ApiError, Cluster, modules
from .cluster.api import Object, Objects
from .omenative import definitions
from .reconciler import NAME, USER, Reconciler, account, groups, once, role_of, rules, services
from .test_cluster import GANGS, create, pod, stays
from .test_facts import fail, remove, status, wait_phase

GROUP = "podgroups.scheduling.x-k8s.io"
SETS = "leaderworkersets.leaderworkerset.x-k8s.io"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=1) as running:
        define(running)
        yield running


def define(cluster: Cluster) -> None:
    """What PodGroups are made for, as kinds; nothing runs that acts on them."""
    for definition in definitions.documents():
        cluster.api.create(definition)
    folder = modules.source("lws", "sigs.k8s.io/lws") / "config" / "crd" / "bases"
    cluster.define(folder / "leaderworkerset.x-k8s.io_leaderworkersets.yaml")
    for name in (*definitions.NAMES, SETS):
        cluster.wait_defined(name)


@pytest.fixture
def kubeconfig(cluster: Cluster, namespace: str) -> Path:
    """Of its account, which has the shipped rights."""
    return account(cluster, namespace)


def gang(cluster: Cluster, namespace: str, name: str = "svc-engine-0", service: str = "svc") -> None:
    """A gang of two that runs, of a service."""
    create(cluster, namespace, *groups(namespace, [name], service, members=2))
    create(cluster, namespace, *(pod(f"{name}-{number}", GANGS, name, gpus=1) for number in range(2)))
    wait_phase(cluster, namespace, name, "Running", running=2)


def failed_gang(cluster: Cluster, namespace: str, name: str = "svc-engine-0", service: str = "svc") -> None:
    gang(cluster, namespace, name, service)
    fail(cluster, namespace, f"{name}-1")
    wait_phase(cluster, namespace, name, "Failed", running=1, failed=1)


def recycle(cluster: Cluster, namespace: str, name: str = "svc-engine-0") -> None:
    """What a workload controller does with a failed pod."""
    remove(cluster, namespace, f"{name}-1")
    create(cluster, namespace, pod(f"{name}-new", GANGS, name, gpus=1))


def events(cluster: Cluster, namespace: str) -> Objects:
    """The Events of the reconciler."""
    found = cluster.list("events.events.k8s.io", namespace)
    return [one for one in found if one["reportingController"] == "postrender/reconciler"]


def test_a_failed_gang_is_reset_once_its_failed_pod_is_gone(cluster: Cluster, namespace: str, kubeconfig: Path) -> None:
    services(cluster, namespace, "svc")
    begin = cluster.audit.position()
    with Reconciler(cluster, kubeconfig) as it:
        failed_gang(cluster, namespace)
        it.wait_log("held back", reason="FailedMember", namespace=namespace, name="svc-engine-0")
        assert status(cluster, namespace, "svc-engine-0")["phase"] == "Failed"
        assert it.metric("postrender_podgroup_resets_held", reason="FailedMember") == 1
        recycle(cluster, namespace)
        gone = time.monotonic()
        wait_phase(cluster, namespace, "svc-engine-0", "Running", running=2)
        # It was held for seconds only, so it is looked at again within 10.
        assert time.monotonic() - gone < 12
        [said] = it.wait(lambda: events(cluster, namespace), 5, "its Event")
        assert it.metric("postrender_podgroup_resets_total", result="done") == 1
        assert it.metric("postrender_podgroup_resets_held") == 0
        code, seconds = it.stop()
        assert (code, seconds < 10) == (0, True)
    assert said["reason"] == "PodGroupReset"
    assert said["note"].startswith("PodGroup svc-engine-0 reported phase Failed: 1 of 2 members failed.")
    described = cluster.kubectl("describe", "inferenceservice", "svc", "--namespace", namespace).stdout
    assert "PodGroupReset" in described
    assert "svc-engine-0 reported phase Failed" in described
    cluster.wait(lambda: written(cluster, namespace, begin), 5, "the audit log")
    assert set(written(cluster, namespace, begin)) == {
        ("patch", "podgroups/status", "svc-engine-0"),
        ("create", "events", said["metadata"]["name"]),
    }


def written(cluster: Cluster, namespace: str, since: int) -> list[tuple[str, str, str]]:
    """What the reconciler has written, as verb, resource and name."""
    found = []
    for one in cluster.audit.requests(since, user=USER.format(namespace)):
        asked = one["objectRef"]
        if one["verb"] not in ("get", "list", "watch"):
            what = "/".join(filter(None, [asked["resource"], asked.get("subresource")]))
            name = asked.get("name") or one["requestObject"]["metadata"]["name"]
            found.append((one["verb"], what, name))
    return found
