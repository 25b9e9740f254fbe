"""The cluster the other tests stand on: it starts, it ends without a trace, and the real programs do what we say they do."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

import pytest

from .cluster import ApiError, Cluster, ClusterError, Part, ports, programs, watchdog
from .cluster.part import Program

ROOT = pathlib.Path(__file__).parents[2]
GANGS = "scheduler-plugins-scheduler"
LABEL = "scheduling.x-k8s.io/pod-group"


def pod(name: str, scheduler: str, group: str | None = None, gpus: int = 8) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {LABEL: group} if group else {}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "it", "image": "it", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
        },
    }


def create(cluster: Cluster, namespace: str, *objects: dict) -> None:
    for one in objects:
        cluster.api.create({**one, "metadata": {**one["metadata"], "namespace": namespace}})


def podgroup(name: str, **spec: int) -> dict:
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def bound(cluster: Cluster, namespace: str, start: str = "") -> list[str]:
    return [
        one["metadata"]["name"]
        for one in cluster.list("pods", namespace)
        if one["spec"].get("nodeName") and one["metadata"]["name"].startswith(start)
    ]


def why(cluster: Cluster, namespace: str, name: str) -> str:
    """What the scheduler says of a pod that has no node."""
    conditions = cluster.get("pod", name, namespace)["status"].get("conditions") or []
    return " ".join(one.get("message", "") for one in conditions if one["type"] == "PodScheduled")


def scheduled_all(cluster: Cluster, namespace: str, count: int) -> bool:
    """Whether the scheduler has said something of each pod: a node, or why not."""
    pods = cluster.list("pods", namespace)
    said = [one for one in pods if "PodScheduled" in {c["type"] for c in one["status"].get("conditions") or []}]
    return len(said) == count


def stays(cluster: Cluster, predicate, seconds: float = 2) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert predicate()
        time.sleep(0.2)


# Beginning and end


def traces(folder: str) -> list[str]:
    """The processes that have to do with a cluster, found by all that they show of themselves."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            shown = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if folder.encode() in shown:
            found.append(shown.split(b"\0")[0].decode())
    return found


def nothing_is_left(folder: str, taken: set[tuple[str, int]], seconds: float) -> None:
    end = time.monotonic() + seconds
    while traces(folder) or os.path.exists(folder) or not all(ports.free(port) for _, port in taken):
        assert time.monotonic() < end, (traces(folder), os.path.exists(folder), taken)
        time.sleep(0.1)


def addresses(folder: str) -> set[tuple[str, int]]:
    return {address for process in watchdog.processes(folder) for address in ports.listening(process)}


def test_start_and_end(capsys):
    begin = time.monotonic()
    with Cluster(nodes=4, gpus=8) as cluster:
        started = time.monotonic()
        folder, taken = str(cluster.folder), addresses(str(cluster.folder))
        assert len(traces(folder)) == 7  # six parts and the watchdog
        assert {host for host, _ in taken} == {"127.0.0.1"}
        assert {port for _, port in taken} == {port for part in cluster.parts.values() for port in part.ports}
        # Somebody a test has started with our environment, and forgotten.
        stray = subprocess.Popen(["sleep", "600"], env=cluster.environment)
        ending = time.monotonic()
    nothing_is_left(folder, taken, seconds=0)
    assert stray.wait() == -signal.SIGKILL
    with capsys.disabled():
        print(f" [up in {started - begin:.1f} s, down in {time.monotonic() - ending:.1f} s]", end="")


def by_hand(*words: str) -> tuple[subprocess.Popen, str]:
    owner = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.cluster", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    lines = []
    while not lines or "Ctrl-C" not in lines[-1]:
        lines.append(owner.stdout.readline())
        assert lines[-1], lines
    assert lines[0].startswith("export KUBECONFIG=")
    return owner, str(pathlib.Path(lines[0].strip().partition("=")[2]).parent)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM], ids=["kill -9", "Ctrl-C", "kill"])
def test_nothing_is_left_when_the_owner_goes(how):
    few = ["--parts=etcd,apiserver", "--nodes=0"] if how != signal.SIGKILL else ["--nodes=1"]
    owner, folder = by_hand(*few)
    with owner:
        taken = addresses(folder)
        assert taken
        assert os.path.exists(folder)
        owner.send_signal(how)
        nothing_is_left(folder, taken, seconds=10)
        assert owner.wait() == (-signal.SIGKILL if how == signal.SIGKILL else 0)


@pytest.mark.parametrize("seconds", [0.3, 2])
def test_nothing_is_left_when_the_owner_dies_while_it_starts(seconds):
    with tempfile.TemporaryDirectory(prefix="owner-", dir="/tmp") as place:
        with subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.cluster"], cwd=ROOT, env={**os.environ, "TMPDIR": place}
        ) as owner:
            time.sleep(seconds)
            assert owner.poll() is None
            assert len(traces(place)) > 1
            owner.kill()
        nothing_is_left(f"{place}/postrender-cluster", set(), seconds=10)
        assert os.listdir(place) == []


def test_a_missing_program_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "BIN", tmp_path)
    with pytest.raises(ClusterError, match="run 'make e2e'"):
        Cluster().start()


def test_a_port_that_is_taken_is_exchanged_for_another(monkeypatch, tmp_path):
    def web(given):
        return [sys.executable, "-m", "http.server", "--bind=127.0.0.1", str(given[0])]

    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        right = ports.pick
        offers = iter([[other.getsockname()[1]]])
        monkeypatch.setattr(ports, "pick", lambda count: next(offers, None) or right(count))
        part = Part(Program("web", 1, web, lambda given: True), dict(os.environ), tmp_path)
        try:
            part.start()
            assert part.ports != [other.getsockname()[1]]
        finally:
            part.kill()


def test_a_part_that_dies_ends_the_waiting_and_shows_its_log(cluster, namespace):
    part = cluster.part("podgroup-controller")
    os.kill(part.process.pid, signal.SIGKILL)
    with pytest.raises(ClusterError, match=r"(?s)podgroup-controller has ended with code -9:.*Starting workers"):
        cluster.wait(lambda: False, 10, "nothing")


def test_waiting_in_vain_says_for_what(cluster):
    with pytest.raises(ClusterError, match=r"in vain for a miracle; last seen: ApiError.*404"):
        cluster.wait(lambda: cluster.get("pod", "miracle", "default"), 0.2, "a miracle")


# What may be done to a part


def test_a_part_is_restarted(cluster, namespace):
    scheduler = cluster.part("scheduler")
    before, where = scheduler.process.pid, scheduler.ports
    scheduler.kill()
    create(cluster, namespace, pod("late", "default-scheduler"))
    stays(cluster, lambda: not bound(cluster, namespace), 1)
    scheduler.restart()
    assert scheduler.process.pid != before
    assert scheduler.ports == where
    cluster.wait(lambda: bound(cluster, namespace) == ["late"], 10, "the pod to be placed")


def test_a_part_is_paused(cluster, namespace):
    with cluster.part("scheduler").paused():
        create(cluster, namespace, pod("late", "default-scheduler"))
        stays(cluster, lambda: not bound(cluster, namespace), 1)
    cluster.wait(lambda: bound(cluster, namespace) == ["late"], 10, "the pod to be placed")


def test_the_api_server_comes_back_with_all_it_knew(cluster, namespace):
    create(cluster, namespace, podgroup("kept", minMember=2))
    cluster.part("apiserver").restart()
    cluster.part("etcd").restart()
    kept = cluster.wait(lambda: cluster.get("podgroup", "kept", namespace), 20, "the PodGroup")
    assert kept["spec"] == {"minMember": 2}
    create(cluster, namespace, pod("after", "default-scheduler"))
    cluster.wait(lambda: bound(cluster, namespace) == ["after"], 30, "the pod to be placed")


# Who may do what, and who did


def test_a_role_may_do_no_more_than_it_is_given(cluster, namespace):
    rules = [{"apiGroups": ["scheduling.x-k8s.io"], "resources": ["podgroups"], "verbs": ["get", "list"]}]
    other = cluster.namespace()
    create(cluster, namespace, podgroup("ours", minMember=2))
    since = cluster.audit.position()
    for reader in (cluster.user("reader", rules, namespace), cluster.service_account("reader", namespace, rules)):
        read = cluster.kubectl("get", "podgroups", "-n", namespace, "-o", "name", as_=reader)
        assert read.stdout == "podgroup.scheduling.x-k8s.io/ours\n"
        for words in (
            ["get", "pods", "-n", namespace],
            ["get", "podgroups", "-n", other],
            ["get", "nodes"],
            ["delete", "podgroup", "ours", "-n", namespace],
        ):
            refused = cluster.kubectl(*words, as_=reader, check=False)
            assert refused.returncode == 1
            assert "Forbidden" in refused.stderr

    def asked(user: str) -> list[tuple]:
        return [
            (
                one["verb"],
                one["objectRef"]["resource"],
                one["objectRef"].get("namespace"),
                one["responseStatus"]["code"],
            )
            for one in cluster.audit.requests(since, user=user)
            if "objectRef" in one
        ]

    for user in ("reader", f"system:serviceaccount:{namespace}:reader"):
        cluster.wait(lambda user=user: "delete" in str(asked(user)), 5, "the audit log to have the last request")
        assert asked(user) == [
            ("list", "podgroups", namespace, 200),
            ("list", "pods", namespace, 403),
            ("list", "podgroups", other, 403),
            ("list", "nodes", None, 403),
            ("delete", "podgroups", namespace, 403),
        ]


def test_an_admission_policy_acts(cluster, namespace):
    """A pod is only tried (dry run) until the policy acts, which takes a moment."""
    name = f"mark-{namespace}"
    cluster.apply(f"""
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {{name: {name}}}
spec:
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules: [{{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: 'Object{{metadata: Object.metadata{{labels: {{"marked": "yes"}}}}}}'
---
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {{name: {name}}}
spec:
  policyName: {name}
  matchResources: {{namespaceSelector: {{matchLabels: {{kubernetes.io/metadata.name: {namespace}}}}}}}
""")
    tried = pod("tried", "default-scheduler")
    tried["metadata"]["namespace"] = namespace

    def marked() -> bool:
        return cluster.api.create(tried, dryRun="All")["metadata"].get("labels") == {"marked": "yes"}

    try:
        cluster.wait(marked, 20, "the policy to act")
    finally:
        cluster.api.delete("mutatingadmissionpolicybindings", name)
        cluster.api.delete("mutatingadmissionpolicies", name)


# What the schedulers do


def two_gangs(scheduler: str, group: bool) -> list[dict]:
    """Three pods of eight GPUs each for red and for blue, in turn."""
    return [
        pod(f"{gang}-{number}", scheduler, gang if group else None) for number in range(3) for gang in ("red", "blue")
    ]


def test_the_default_scheduler_gives_two_gangs_half_of_what_they_need(cluster, namespace):
    create(cluster, namespace, *two_gangs("default-scheduler", group=False))
    cluster.wait(lambda: scheduled_all(cluster, namespace, 6), 20, "the scheduler to have seen all")
    assert sorted(len(bound(cluster, namespace, gang)) for gang in ("red", "blue")) == [2, 2]


def test_coscheduling_gives_one_gang_all_and_the_other_nothing(cluster, namespace):
    create(cluster, namespace, podgroup("red", minMember=3), podgroup("blue", minMember=3))
    create(cluster, namespace, *two_gangs(GANGS, group=True))

    def share() -> list[int]:
        return sorted(len(bound(cluster, namespace, gang)) for gang in ("red", "blue"))

    cluster.wait(lambda: share() == [0, 3], 20, "one gang to be placed")
    stays(cluster, lambda: share() == [0, 3])
    loser = "red" if not bound(cluster, namespace, "red") else "blue"
    cluster.wait(
        lambda: any("rejected" in why(cluster, namespace, f"{loser}-{number}") for number in range(3)), 10, "a reason"
    )
    winner = "blue" if loser == "red" else "red"

    def phase(gang: str) -> str | None:
        return cluster.get("podgroup", gang, namespace).get("status", {}).get("phase")

    cluster.wait(lambda: (phase(winner), phase(loser)) == ("Running", "Scheduling"), 10, "the phases")


def test_a_label_without_podgroup_waits_for_it(cluster, namespace, capsys):
    create(cluster, namespace, *(pod(f"red-{number}", GANGS, "red") for number in range(3)))
    cluster.wait(lambda: "PodGroup not found" in why(cluster, namespace, "red-0"), 20, "the reason")
    stays(cluster, lambda: not bound(cluster, namespace), 1)
    begin = time.monotonic()
    create(cluster, namespace, podgroup("red", minMember=3))
    cluster.wait(lambda: len(bound(cluster, namespace)) == 3, 20, "the gang to be placed")
    with capsys.disabled():
        print(f" [placed {time.monotonic() - begin:.2f} s after its PodGroup]", end="")


def test_a_podgroup_without_minmember_is_no_gang(cluster, namespace):
    create(cluster, namespace, podgroup("loose"), *(pod(f"loose-{number}", GANGS, "loose") for number in range(5)))
    cluster.wait(lambda: len(bound(cluster, namespace)) == 4, 20, "four of five to be placed")
    cluster.wait(
        lambda: cluster.get("podgroup", "loose", namespace).get("status", {}).get("phase") == "Finished", 10, "Finished"
    )
    with pytest.raises(ApiError, match="should be greater than or equal to 1") as refused:
        create(cluster, namespace, podgroup("none", minMember=0))
    assert refused.value.status == 422


def workers(startup: str) -> dict:
    """A LeaderWorkerSet of one leader and two workers, ganged."""
    template = pod("ignored", GANGS, "svc")
    template = {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "svc"},
        "spec": {
            "replicas": 1,
            "startupPolicy": startup,
            "leaderWorkerTemplate": {"size": 3, "leaderTemplate": template, "workerTemplate": template},
        },
    }


def test_a_leaderworkerset_is_ganged(cluster, namespace):
    create(cluster, namespace, podgroup("svc", minMember=3), workers("LeaderCreated"))
    cluster.wait(lambda: sorted(bound(cluster, namespace)) == ["svc-0", "svc-0-1", "svc-0-2"], 30, "leader and workers")
    leader = cluster.get("pod", "svc-0", namespace)["metadata"]["labels"]
    assert leader["leaderworkerset.sigs.k8s.io/group-index"] == "0"  # by the webhook


def test_a_leader_that_must_be_ready_first_waits_for_ever(cluster, namespace):
    create(cluster, namespace, podgroup("svc", minMember=3), workers("LeaderReady"))
    reason = "current pods number: 1, minMember of group: 3"
    cluster.wait(lambda: reason in why(cluster, namespace, "svc-0"), 30, "the reason")
    stays(cluster, lambda: [one["metadata"]["name"] for one in cluster.list("pods", namespace)] == ["svc-0"])
    assert not bound(cluster, namespace)
