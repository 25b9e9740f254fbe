"""The reconciler on a real control plane: the real PodGroup controller fails gangs, and the shipped rights are all it has."""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import threading
import time
from collections.abc import Iterator
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
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh one; afterwards nothing is left of it that the next reconciler would find."""
    name = cluster.namespace()
    yield name
    cluster.heal()
    cluster.api.request("DELETE", cluster.api.path(GROUP, name))
    cluster.discard(name)


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
        cluster.wait(lambda: it.metric("postrender_podgroup_resets_total", result="done") == 1, 5, "it to be counted")
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
        if one["verb"] not in ("get", "list", "watch") and asked["namespace"] == namespace:
            what = "/".join(filter(None, [asked["resource"], asked.get("subresource")]))
            name = asked.get("name") or one["requestObject"]["metadata"]["name"]
            found.append((one["verb"], what, name))
    return found


# In this process: `Loop` with the rights of an account, as `postrender reconcile` runs it.


@contextlib.contextmanager
def looping(kubeconfig: Path, folder: Path, pace: Pace | None = None, **settings: Any) -> Iterator[Loop]:
    """A loop that runs until the block ends; its lines are in `log` of the folder."""
    loop = loop_of(kubeconfig, folder, pace, **settings)
    loop.start()
    try:
        yield loop
    finally:
        loop.stop()


def loop_of(kubeconfig: Path, folder: Path, pace: Pace | None = None, **settings: Any) -> Loop:
    log = Log(Lines(folder / "log"), verbose=True)
    return Loop(connect(kubeconfig=str(kubeconfig)), Settings(**settings), log, Metrics(), pace=pace or Pace())


class Lines(io.StringIO):
    """What is written to it goes to the end of a file at once."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path

    def write(self, text: str) -> int:
        with self.path.open("a") as file:
            return file.write(text)


def lines(folder: Path, message: str = "") -> list[Object]:
    found = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [one for one in found if message in one["msg"]]


def failed(cluster: Cluster, namespace: str, name: str, owner: str = "InferenceService/svc", **metadata: Any) -> Object:
    """A PodGroup that is Failed, with no pod; the real controller leaves it alone."""
    [one] = groups(namespace, [name])
    one["metadata"]["annotations"]["postrender/for"] = owner
    one["metadata"].update(metadata)
    cluster.api.create(one)
    # The controller has nothing to write any more once it is Pending: it has no pods.
    wait_phase(cluster, namespace, name, "Pending")
    return cluster.api.patch(GROUP, name, {"status": {"phase": "Failed", "failed": 1}}, namespace, "status")


def wait_reset(cluster: Cluster, namespace: str, name: str, seconds: float = 15) -> None:
    cluster.wait(lambda: status(cluster, namespace, name)["phase"] != "Failed", seconds, f"{name} to be reset")


def test_a_stale_version_changes_nothing(cluster: Cluster, namespace: str, kubeconfig: Path) -> None:
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    api = Api(connect(kubeconfig=str(kubeconfig)), Metrics(), 100, 100, lambda _: False)
    read = api.group(namespace, "svc-engine-0")
    assert read is not None
    cluster.api.patch(GROUP, "svc-engine-0", {"metadata": {"labels": {"touched": "yes"}}}, namespace)
    before = cluster.get(GROUP, "svc-engine-0", namespace)
    with pytest.raises(Refused) as refused:
        api.reset(read)
    assert refused.value.status == 409
    assert cluster.get(GROUP, "svc-engine-0", namespace) == before
    # Of an object that was made anew under the name, too.
    cluster.api.delete(GROUP, "svc-engine-0", namespace)
    failed(cluster, namespace, "svc-engine-0")
    with pytest.raises(Refused) as refused:
        api.reset(read)
    assert refused.value.status == 409
    with pytest.raises(Refused) as refused:
        api.reset(read._replace(name="svc-engine-9"))
    assert refused.value.status == 404


def test_what_is_not_ours_is_left_alone(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    services(cluster, namespace, "svc")
    owner = {"name": "x", "uid": "11111111-1111-1111-1111-111111111111", "controller": True}
    foreign = [{"apiVersion": "apps/v1", "kind": "StatefulSet", **owner}]
    of_ome = [{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", **owner}]
    # The garbage collector would take what nobody owns.
    with cluster.part("controller-manager").paused():
        kept = [
            failed(cluster, namespace, "svc-engine-0", ownerReferences=foreign),
            failed(cluster, namespace, "svc-engine-1", ownerReferences=of_ome),
            failed(cluster, namespace, "svc-engine-2", annotations={}),
            failed(cluster, namespace, "svc-engine-3", "InferenceService/gone"),
        ]
        failed(cluster, namespace, "svc-engine-4")
        begin = cluster.audit.position()
        with looping(kubeconfig, tmp_path):
            wait_reset(cluster, namespace, "svc-engine-4")
            cluster.wait(lambda: len(events(cluster, namespace)) == 2, 5, "two Events")
            stays(cluster, lambda: len(events(cluster, namespace)) == 2, 2)
        assert {one["reason"] for one in events(cluster, namespace)} == {"PodGroupReset", "PodGroupOwnershipConflict"}
        [said] = [one for one in events(cluster, namespace) if one["reason"] != "PodGroupReset"]
        assert said["note"].startswith("PodGroup svc-engine-0 is controlled by StatefulSet/x")
        for one in kept:
            assert cluster.get(GROUP, one["metadata"]["name"], namespace) == one
        for verb, what, name in written(cluster, namespace, begin):
            assert (verb, what, name) == ("patch", "podgroups/status", "svc-engine-4") or what == "events"


# Each right, and what is lost without it: which of three PodGroups are reset, and whether that is told.
WITHOUT = [
    ("", "", "", {"service", "replica", "set"}, True),
    ("scheduling.x-k8s.io", "podgroups", "list", set(), False),
    ("scheduling.x-k8s.io", "podgroups", "get", set(), False),
    ("scheduling.x-k8s.io", "podgroups/status", "patch", set(), False),
    ("", "pods", "list", set(), False),
    ("ome.io", "inferenceservices", "get", {"replica", "set"}, True),
    ("ome.io", "inferencereplicas", "get", {"service", "set"}, True),
    ("leaderworkerset.x-k8s.io", "leaderworkersets", "get", {"service", "replica"}, True),
    ("events.k8s.io", "events", "create", {"service", "replica", "set"}, False),
]
# What is seen only while it runs: `watch` of PodGroups; and where an Event is there already: `patch` of Events.
ELSEWHERE = {("scheduling.x-k8s.io", "podgroups", "watch"), ("events.k8s.io", "events", "patch")}


def less(group: str, resource: str, verb: str) -> Objects:
    """The shipped rules, one right less."""
    return [
        {"apiGroups": rule["apiGroups"], "resources": [one], "verbs": left}
        for rule in rules()
        for one in rule["resources"]
        if (left := [held for held in rule["verbs"] if (rule["apiGroups"][0], one, held) != (group, resource, verb)])
    ]


def test_each_right_that_is_shipped_is_tried() -> None:
    shipped = {
        (rule["apiGroups"][0], one, verb) for rule in rules() for one in rule["resources"] for verb in rule["verbs"]
    }
    assert shipped == {row[:3] for row in WITHOUT if row[1]} | ELSEWHERE


@pytest.mark.parametrize(("group", "resource", "verb", "reset", "told"), WITHOUT, ids=lambda value: str(value))
def test_without_a_right(
    cluster: Cluster,
    namespace: str,
    tmp_path: Path,
    group: str,
    resource: str,
    verb: str,
    reset: set[str],
    told: bool,
) -> None:
    services(cluster, namespace, "service")
    owners = {"service": "InferenceService", "replica": "InferenceReplica", "set": "LeaderWorkerSet"}
    cluster.api.create(
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "InferenceReplica",
            "metadata": {"name": "replica", "namespace": namespace},
            "spec": {},
        }
    )
    template = {"spec": {"containers": [{"name": "it", "image": "it"}]}}
    held = {"replicas": 0, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    cluster.api.create(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1",
            "kind": "LeaderWorkerSet",
            "metadata": {"name": "set", "namespace": namespace},
            "spec": held,
        }
    )
    for name, kind in owners.items():
        failed(cluster, namespace, name, f"{kind}/{name}")
    loop = loop_of(account(cluster, namespace, less(group, resource, verb)), tmp_path, rate=100, burst=100)
    if reset == set(owners):
        loop.once()
    else:
        with pytest.raises(Refused) as refused:
            loop.once()
        assert refused.value.status == 403
        assert f'cannot {verb} resource "{resource}" in API group "{group}"' in refused.value.message
    assert {name for name in owners if status(cluster, namespace, name)["phase"] != "Failed"} == reset
    assert {one["regarding"]["name"] for one in events(cluster, namespace)} == (reset if told else set())


def test_without_the_right_to_watch(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """It lists, resets what it finds, and asks to watch at ever longer intervals."""
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    kubeconfig = account(cluster, namespace, less("scheduling.x-k8s.io", "podgroups", "watch"))
    with looping(kubeconfig, tmp_path) as loop:
        wait_reset(cluster, namespace, "svc-engine-0")
        time.sleep(2)
        assert 2 <= loop.watch.restarts["403"] <= 4
        assert loop.watch.lists == {"start": 1}


def test_an_event_that_is_there_is_counted_up(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    services(cluster, namespace, "svc")
    owner = {"name": "x", "uid": "11111111-1111-1111-1111-111111111111", "controller": True}
    with cluster.part("controller-manager").paused():
        failed(
            cluster,
            namespace,
            "svc-engine-0",
            ownerReferences=[{"apiVersion": "apps/v1", "kind": "StatefulSet", **owner}],
        )
        kubeconfig = account(cluster, namespace, less("events.k8s.io", "events", "patch"))
        for _ in range(2):
            loop_of(kubeconfig, tmp_path).once()
        [said] = events(cluster, namespace)
        assert not said.get("series")
        assert 'cannot patch resource "events"' in lines(tmp_path, "the Event was not taken")[0]["msg"]
        cluster.grant({"kind": "ServiceAccount", "name": NAME, "namespace": namespace}, rules())
        cluster.wait(lambda: counted(cluster, namespace, kubeconfig, tmp_path) == 2, 10, "the Event to be counted")


def counted(cluster: Cluster, namespace: str, kubeconfig: Path, folder: Path) -> int:
    loop_of(kubeconfig, folder).once()
    [said] = events(cluster, namespace)
    return int((said.get("series") or {}).get("count", 0))


def test_once_and_dry(cluster: Cluster, namespace: str, kubeconfig: Path) -> None:
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    begin = cluster.audit.position()
    done = once(cluster, kubeconfig, "--dry-run")
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(done.stderr.splitlines()[-1])["msg"] == "would reset"
    time.sleep(0.5)
    assert written(cluster, namespace, begin) == []
    assert status(cluster, namespace, "svc-engine-0")["phase"] == "Failed"
    done = once(cluster, kubeconfig)
    assert (done.returncode, done.stdout) == (0, "")
    assert status(cluster, namespace, "svc-engine-0")["phase"] != "Failed"


def test_equal_names_in_two_namespaces(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    """The controller counts a namesake's failed pod too, so a reset waits for that."""
    services(cluster, namespace, "svc")
    other = cluster.namespace()
    try:
        failed(cluster, namespace, "svc-engine-0")
        create(cluster, other, pod("x", "nobody", "svc-engine-0"))
        fail(cluster, other, "x")
        with looping(kubeconfig, tmp_path) as loop:
            cluster.wait(lambda: lines(tmp_path, "held back"), 10, "it to be held back")
            assert lines(tmp_path, "held back")[0]["reason"] == "ForeignNamespaceMember"
            stays(cluster, lambda: status(cluster, namespace, "svc-engine-0")["phase"] == "Failed", 2)
            remove(cluster, other, "x")
            wait_reset(cluster, namespace, "svc-engine-0")
            assert loop.watch.present
    finally:
        cluster.discard(other)


def test_rights_that_go_and_come(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    services(cluster, namespace, "svc")
    name = role_of(namespace)
    with looping(kubeconfig, tmp_path) as loop:
        cluster.wait(lambda: loop.watch.synced >= 0, 10, "its list")
        cluster.api.delete("clusterrolebindings", name)
        failed(cluster, namespace, "svc-engine-0")
        cluster.wait(lambda: lines(tmp_path, "HTTP 403, Forbidden"), 15, "a refusal")
        cluster.grant({"kind": "ServiceAccount", "name": NAME, "namespace": namespace}, rules())
        # It would look again after a minute or more; a change is reason enough.
        cluster.api.patch(GROUP, "svc-engine-0", {"metadata": {"labels": {"touched": "yes"}}}, namespace)
        wait_reset(cluster, namespace, "svc-engine-0")
        assert len(lines(tmp_path, "HTTP 403, Forbidden")) <= 5


def test_a_token_that_is_renewed(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    """The old one is refused from one moment to the next; the file has the new one."""
    services(cluster, namespace, "svc")
    config = yaml.safe_load(kubeconfig.read_text())
    token = tmp_path / "token"
    token.write_text(config["users"][0]["user"]["token"])
    config["users"][0]["user"] = {"tokenFile": str(token)}
    kubeconfig.write_text(json.dumps(config))
    with looping(kubeconfig, tmp_path) as loop:
        cluster.wait(lambda: loop.watch.synced >= 0, 10, "its list")
        cluster.api.delete("serviceaccounts", NAME, namespace)
        cluster.api.create(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}
        )
        failed(cluster, namespace, "svc-engine-0")
        numbers = itertools.count(1)

        def refused() -> bool:
            """The API server believes a token that it has seen for some seconds more."""
            failed(cluster, namespace, f"svc-engine-{next(numbers)}")
            time.sleep(0.5)
            return bool(lines(tmp_path, "HTTP 401"))

        cluster.wait(refused, 30, "the old one to be refused")
        token.write_text(cluster.token(NAME, namespace))
        wait_reset(cluster, namespace, f"svc-engine-{next(numbers) - 1}", 30)


def test_the_token_of_a_pod(
    cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a cluster the kubelet renews it in its file; the client reads that again, at the latest when it is refused."""
    from kubernetes.config import incluster_config

    services(cluster, namespace, "svc")
    config = yaml.safe_load(kubeconfig.read_text())
    token = tmp_path / "token"
    token.write_text("none")
    host, _, port = cluster.server.removeprefix("https://").partition(":")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(cluster.authority.certificate))
    client = connect()
    assert client.name == "the cluster"
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{namespace}/podgroups"
    for expected in (401, 401):
        with pytest.raises(Refused) as refused:
            client.get(path)
        assert refused.value.status == expected
    token.write_text(config["users"][0]["user"]["token"])
    monkeypatch.setattr("postrender.cluster.client._RENEWED", 0.0)
    with pytest.raises(Refused):
        client.get(path)
    assert client.get(path)["items"] == []
    token.write_text("")
    with pytest.raises(Unreachable, match="no cluster to ask: the pod's token"):
        connect()


def test_two_replicas_of_which_one_sleeps(cluster: Cluster, namespace: str, kubeconfig: Path) -> None:
    services(cluster, namespace, "svc")
    begin = cluster.audit.position()
    with Reconciler(cluster, kubeconfig) as one, Reconciler(cluster, kubeconfig) as other:
        one.pause()
        failed(cluster, namespace, "svc-engine-0")
        wait_reset(cluster, namespace, "svc-engine-0")
        other.wait_log("reset", name="svc-engine-0")
        version = cluster.wait(
            lambda: cluster.get(GROUP, "svc-engine-0", namespace)["metadata"]["resourceVersion"], 5, "it"
        )
        one.resume()
        # What it hears now is long over.
        time.sleep(2)
        assert cluster.get(GROUP, "svc-engine-0", namespace)["metadata"]["resourceVersion"] == version
        # And both awake.
        failed(cluster, namespace, "svc-engine-1")
        wait_reset(cluster, namespace, "svc-engine-1")
        time.sleep(1)
        assert len(one.log("reset", name="svc-engine-1")) + len(other.log("reset", name="svc-engine-1")) == 1
    assert [one["regarding"]["name"] for one in events(cluster, namespace)] == ["svc", "svc"]
    done = [name for verb, what, name in written(cluster, namespace, begin) if what == "podgroups/status"]
    assert 2 <= len(done) <= 3


def test_one_that_has_decided_and_then_slept_is_refused(
    cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    """It is stopped before its write, longer than anybody waits; meanwhile another resets the gang, which runs."""
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    late = loop_of(kubeconfig, tmp_path)
    client = late._keeper._api._client
    about, awake = threading.Event(), threading.Event()
    patch = client.patch

    def slow(*words: Any) -> Object:
        about.set()
        assert awake.wait(30)
        return patch(*words)

    client.patch = slow  # type: ignore[method-assign]
    sleeper = threading.Thread(target=late.once)
    sleeper.start()
    try:
        assert about.wait(20)
        (tmp_path / "other").mkdir()
        loop_of(kubeconfig, tmp_path / "other").once()
        cluster.wait(lambda: status(cluster, namespace, "svc-engine-0")["phase"] != "Failed", 5, "the reset")
        time.sleep(0.5)
        before = cluster.get(GROUP, "svc-engine-0", namespace)
    finally:
        awake.set()
        sleeper.join()
    assert late.metrics._values["podgroup_resets_total"] == {("conflict",): 1}
    assert cluster.get(GROUP, "svc-engine-0", namespace) == before
    assert len(events(cluster, namespace)) == 1


def test_the_definition_goes_and_comes(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    """Also one without the status as a part of its own."""
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    create(cluster, namespace, pod("a", "nobody", "svc-engine-0"))
    cluster.api.patch("pods", "a", {"metadata": {"labels": {"ome.io/inferenceservice": "svc"}}}, namespace)
    definition = cluster.get("customresourcedefinitions", GROUP)
    new = {**definition, "metadata": {key: definition["metadata"][key] for key in ("name", "annotations")}}
    del new["status"]
    bare = json.loads(json.dumps(new))
    del bare["spec"]["versions"][0]["subresources"]
    with looping(kubeconfig, tmp_path, Pace(absent=1.0)) as loop:
        wait_reset(cluster, namespace, "svc-engine-0")
        cluster.part("podgroup-controller").kill()
        undefine(cluster)
        cluster.wait(lambda: loop.watch.present is False, 20, "it to notice")
        cluster.wait(
            lambda: reasons(cluster, namespace) == {"PodGroupReset", "GangSchedulingUnavailable"}, 10, "the Event"
        )
        assert loop.watch.groups == {}
        cluster.api.create(bare)
        cluster.wait_defined(GROUP)
        [one] = groups(namespace, ["svc-engine-1"])
        cluster.api.create({**one, "status": {"phase": "Failed"}})
        cluster.wait(lambda: lines(tmp_path, "the CRD has no status subresource"), 20, "it to say so")
        assert len(lines(tmp_path, "the CRD has no status subresource")) == 1
        undefine(cluster)
        cluster.wait(lambda: loop.watch.present is False, 20, "it to notice again")
        cluster.api.create(new)
        cluster.wait_defined(GROUP)
        [one] = groups(namespace, ["svc-engine-2"])
        cluster.api.create(one)
        cluster.api.patch(GROUP, "svc-engine-2", {"status": {"phase": "Failed"}}, namespace, "status")
        wait_reset(cluster, namespace, "svc-engine-2", 30)
        assert len(lines(tmp_path, "is not served")) == 2
    cluster.part("podgroup-controller").start()


def undefine(cluster: Cluster) -> None:
    cluster.api.delete("customresourcedefinitions", GROUP)

    def gone() -> bool:
        try:
            cluster.get("customresourcedefinitions", GROUP)
        except ApiError as error:
            return error.status == 404
        return False

    cluster.wait(gone, 30, "the definition to be gone")


def reasons(cluster: Cluster, namespace: str) -> set[str]:
    return {one["reason"] for one in events(cluster, namespace)}


def test_the_server_goes_and_comes(cluster: Cluster, namespace: str, kubeconfig: Path, tmp_path: Path) -> None:
    """The last test here: some of the other programs ask again for their rights only half a minute later."""
    services(cluster, namespace, "svc")
    failed(cluster, namespace, "svc-engine-0")
    with looping(kubeconfig, tmp_path) as loop:
        wait_reset(cluster, namespace, "svc-engine-0")
        cluster.part("apiserver").kill()
        time.sleep(5)
        tries = loop.watch.restarts.get("unreachable", 0)
        assert tries <= 5
        cluster.part("apiserver").start()
        failed(cluster, namespace, "svc-engine-1")
        wait_reset(cluster, namespace, "svc-engine-1", 30)
        # A server that has just started knows no place from before, so a list is due; and nothing was reset twice.
        assert loop.watch.lists["expired"] == 1
        # What the server has done is counted when its answer has come.
        cluster.wait(lambda: loop.metrics._values["podgroup_resets_total"] == {("done",): 2}, 5, "two resets, counted")
