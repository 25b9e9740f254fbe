"""`check --live` on a real control plane: each cause is made for real, named, and ended by the commands that are shown."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from postrender import render
from postrender.hosts.policy import policy
from postrender.options import Options, Source
from tests.e2e import ome
from tests.e2e.cluster import Cluster, programs, watchdog
from tests.e2e.cluster.api import Object

from .test_cluster import bound, create, pod, podgroup, workers
from .test_multinode import SCHEDULER, stream

MODEL = "qwen"
NODES = 4
GROUPS = "podgroups.scheduling.x-k8s.io"
SET = "lws-blue-engine"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(lws=True) as running:
        ome.start(running)
        running.add_nodes(NODES, labels=ome.ready(MODEL))
        running.api.create(ome.model(MODEL))
        running.api.create(manager())
        yield running


def manager(image: str = "ghcr.io/moirai-internal/ome-manager:v1.2.2") -> Object:
    """OME's Deployment as its chart has it; here the manager itself runs beside the cluster."""
    labels = {"control-plane": "ome-controller-manager"}
    container = {"name": "manager", "image": image}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "ome-controller-manager", "namespace": ome.NAME, "labels": labels},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def environment(cluster: Cluster, kubeconfig: Path | None = None) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), str(programs.BIN), os.environ["PATH"]])
    own = {"PATH": path} | ({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})
    # Its mark would be an option of ours that we do not know.
    return {key: value for key, value in {**cluster.environment, **own}.items() if key != watchdog.MARK}


def run(cluster: Cluster, *words: str, as_: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "postrender", *words]
    return subprocess.run(
        command,
        env=environment(cluster, as_),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def check(cluster: Cluster, namespace: str, *words: str) -> Object:
    """What is found of a namespace; the exit code says whether an error is in it."""
    done = run(cluster, "check", "--live", "--format", "json", "--namespace", namespace, *words)
    assert done.returncode in (0, 1), done.stderr
    found: Object = json.loads(done.stdout)
    errors = [one for one in (*gang_findings(found), *found["findings"]) if one["severity"] == "error"]
    assert bool(errors) == bool(done.returncode)
    return found


def rendered(cluster: Cluster, data: bytes, scheduler: str = SCHEDULER, **options: Any) -> str:
    """What is deployed, with the cluster itself as the context."""
    done = run(cluster, "context")
    assert (done.returncode, done.stderr) == (0, "")
    context = (Source("context.yaml", done.stdout.encode()),)
    made = render(data, Options(scheduler_name=scheduler, context=context, **options))
    assert made.data, made.findings
    return made.data.decode()


def gangs(found: Object) -> list[Object]:
    return [gang for service in found["services"] for gang in service["gangs"]]


def gang_findings(found: Object) -> list[Object]:
    return [one for gang in gangs(found) for one in gang["findings"]]


def codes(found: Object) -> list[str]:
    return [one["code"] for one in (*gang_findings(found), *found["findings"])]


def comes_to(
    cluster: Cluster, namespace: str, state: str, bound: int, cause: str | None, *words: str, of: str = ""
) -> Object:
    """Wait until a gang is found so; of several the one named."""

    def seen() -> Object | None:
        [found] = [gang for gang in gangs(check(cluster, namespace, *words)) if of in ("", gang["name"])]
        last.update(found)
        return found if (found["state"], found["bound"], found["cause"]) == (state, bound, cause) else None

    last: Object = {}
    try:
        return cluster.wait(seen, 60, f"{bound} bound, {state}, because of {cause}")  # type: ignore[return-value]
    except Exception:
        print(json.dumps(last, indent=1))
        raise


def paste(cluster: Cluster, commands: Sequence[str], folder: Path) -> None:
    """Run commands as a person would who pastes them."""
    for command in commands:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            env=environment(cluster),
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def commands(gang: Object) -> list[str]:
    """The commands of the first finding, which is about why the gang is not whole."""
    found: list[str] = gang["findings"][0]["commands"]
    assert gang["findings"][0]["remedy"] == " && ".join(found)
    return found


def fill(cluster: Cluster, namespace: str, count: int, gpus: int = 8) -> None:
    """Take nodes away."""
    create(cluster, namespace, *(pod(f"filler-{number}", "default-scheduler", gpus=gpus) for number in range(count)))
    cluster.wait(lambda: len(bound(cluster, namespace, "filler-")) == count, 30, "the fillers to be placed")


def free(cluster: Cluster, namespace: str) -> None:
    for one in cluster.list("pods", namespace):
        if one["metadata"]["name"].startswith("filler-"):
            cluster.api.delete("pods", one["metadata"]["name"], namespace, gracePeriodSeconds="0")


def edited(text: str, edit: Callable[[Object], Object | None]) -> str:
    """A rendered stream whose objects have gone through an edit; None takes one away."""
    kept = []
    for one in text.split("---\n"):
        if one.strip():
            found = edit(yaml.safe_load(one))
            kept += [json.dumps(found) + "\n"] if found else []
    return "---\n".join(kept)


def of_kind(kind: str, change: Callable[[Object], Object | None]) -> Callable[[Object], Object | None]:
    return lambda one: change(one) if one["kind"] == kind else one


def test_whole_gangs_are_fine(cluster: Cluster, namespace: str) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1)), namespace)
    comes_to(cluster, namespace, "bound", 3, None)
    cluster.wait(lambda: gangs(check(cluster, namespace))[0]["phase"] == "Running", 20, "the phase Running")
    found = check(cluster, namespace)
    assert codes(found) == []
    [service] = found["services"]
    assert (service["mode"], service["madeBy"], service["name"]) == ("MultiNode", "postrender", "blue")


def test_a_scheduler_that_ignores_the_label(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    fill(cluster, namespace, 2)
    cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1), scheduler=""), namespace)
    gang = comes_to(cluster, namespace, "half-bound", 2, "scheduler-ignores-label")
    assert gang["findings"][0]["code"] == "gang-half-bound"
    assert "Insufficient nvidia.com/gpu" in gang["schedulerSays"]
    paste(cluster, commands(gang), tmp_path)
    gang = comes_to(cluster, namespace, "waiting", 0, "no-room")
    free(cluster, namespace)
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 3, None)


def test_labels_that_are_missing(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    fill(cluster, namespace, 2)
    bare = rendered(cluster, stream("blue", workers=2, replicas=1))

    def unlabelled(one: Object) -> Object:
        del one["spec"]["engine"]["labels"]
        return one

    cluster.apply(edited(bare, of_kind("InferenceService", unlabelled)), namespace)
    gang = comes_to(cluster, namespace, "half-bound", 2, "label-missing")
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "waiting", 0, "no-room")


def test_a_podgroup_that_is_missing(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    text = rendered(cluster, stream("blue", workers=2, replicas=1))
    cluster.apply(edited(text, of_kind("PodGroup", lambda one: None)), namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "podgroup-missing")
    assert gang["findings"][0]["severity"] == "error"
    assert "PodGroup not found" in gang["schedulerSays"]
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 3, None)


def with_min_member(count: int) -> Callable[[Object], Object]:
    def change(one: Object) -> Object:
        one["spec"]["minMember"] = count
        return one

    return change


def test_a_min_member_below_the_pods(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    fill(cluster, namespace, 2)
    text = rendered(cluster, stream("blue", workers=2, replicas=1))
    cluster.apply(edited(text, of_kind("PodGroup", with_min_member(2))), namespace)
    gang = comes_to(cluster, namespace, "half-bound", 2, "min-member-below-pods")
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "waiting", 0, "no-room")


def test_a_min_member_above_the_pods(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    text = rendered(cluster, stream("blue", workers=1, replicas=1))
    cluster.apply(edited(text, of_kind("PodGroup", with_min_member(5))), namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "min-member-above-pods")
    assert "minMember of group: 5" in gang["schedulerSays"]
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 2, None)


def test_old_pods_that_make_up_the_quorum(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    name = f"{SET}-0"
    create(cluster, namespace, podgroup(name, minMember=2), *(pod(f"old-{n}", SCHEDULER, name) for n in range(2)))
    cluster.wait(lambda: len(bound(cluster, namespace)) == 2, 20, "the old pods to be placed")
    fill(cluster, namespace, 1)
    cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1)), namespace)
    gang = comes_to(cluster, namespace, "half-bound", 1, "quorum-of-old-pods")
    paste(cluster, commands(gang), tmp_path)
    comes_to(cluster, namespace, "bound", 3, None)


def test_terminating_pods_that_make_up_the_quorum(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    name = f"{SET}-0"
    create(cluster, namespace, podgroup(name, minMember=2), *(pod(f"old-{n}", SCHEDULER, name) for n in range(2)))
    cluster.wait(lambda: len(bound(cluster, namespace)) == 2, 20, "the old pods to be placed")
    fill(cluster, namespace, 1)
    # Nobody plays the kubelet, so what is deleted stays.
    with cluster.part("kwok").paused():
        for number in range(2):
            cluster.api.delete("pods", f"old-{number}", namespace, gracePeriodSeconds="600")
        cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1)), namespace)
        gang = comes_to(cluster, namespace, "half-bound", 1, "quorum-of-old-pods")
        assert "terminating" in gang["findings"][0]["message"]
        [force, again] = commands(gang)
        paste(cluster, [force], tmp_path)
        assert not [one for one in cluster.list("pods", namespace) if one["metadata"]["name"].startswith("old-")]
    paste(cluster, [again], tmp_path)
    comes_to(cluster, namespace, "bound", 3, None)


def test_no_room(cluster: Cluster, namespace: str) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=4, replicas=1)), namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "no-room")
    [finding] = gang["findings"]
    assert (finding["code"], finding["severity"]) == ("gang-waiting", "warning")

    # All of its pods may be told only that another one did not fit; then the Events say more.
    assert "Insufficient nvidia.com/gpu" in gang["schedulerSays"]
    assert 0 <= gang["schedulerSaysForSeconds"] < 60
    assert gang["failsInSeconds"] is None  # OME 1.2 fails nobody for that


def test_a_policy_that_is_missing(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=1, replicas=2), replicas="policy"), namespace)
    for name in (f"{SET}-0", f"{SET}-1"):
        gang = comes_to(cluster, namespace, "waiting", 0, "policy-missing", of=name)
    try:
        paste(cluster, commands(gang), tmp_path)
        for name in (f"{SET}-0", f"{SET}-1"):
            comes_to(cluster, namespace, "bound", 2, None, of=name)
    finally:
        cluster.kubectl("delete", "-f", "-", input=policy((1, 34)).decode())


def test_a_scheduler_that_does_not_run(cluster: Cluster, namespace: str) -> None:
    text = rendered(cluster, stream("blue", workers=1, replicas=1)).replace(SCHEDULER, "nobody")
    cluster.apply(text, namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "no-scheduler", "--gang-scheduler", "nobody")
    assert "'nobody'" in gang["findings"][0]["message"]


@pytest.mark.parametrize("who", [("leader", "worker"), ("worker",)], ids="+".join)
def test_pods_that_somebody_gates(cluster: Cluster, namespace: str, who: tuple[str, ...]) -> None:
    """As Kueue does; of one that is gated alone the others have to wait for it."""

    def held(one: Object) -> Object:
        for name in who:
            one["spec"]["engine"].setdefault(name, {})["schedulingGates"] = [{"name": "example.com/queue"}]
        return one

    text = rendered(cluster, stream("blue", workers=1, replicas=1))
    cluster.apply(edited(text, of_kind("InferenceService", held)), namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "scheduling-gated")
    [finding] = gang["findings"]
    assert (finding["code"], finding["severity"]) == ("gang-waiting", "warning")
    assert "example.com/queue; who set them has to take them away" in finding["message"]
    [command] = commands(gang)
    shown = yaml.safe_load(cluster.kubectl(*command.split()[1:]).stdout)
    assert shown["spec"]["schedulingGates"] == [{"name": "example.com/queue"}]
    ungate(cluster, namespace)
    comes_to(cluster, namespace, "bound", 2, None)


def ungate(cluster: Cluster, namespace: str) -> None:
    """What who set them does."""
    for one in cluster.list("pods", namespace):
        if one["spec"].get("schedulingGates"):
            cluster.api.patch("pods", one["metadata"]["name"], {"spec": {"schedulingGates": None}}, namespace)


def test_pods_that_cannot_be_made(cluster: Cluster, namespace: str) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few"}, "spec": {"hard": {"pods": "2"}}}
    create(cluster, namespace, quota)
    cluster.wait(lambda: cluster.get("resourcequota", "few", namespace).get("status", {}).get("used"), 20, "the quota")
    cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1)), namespace)
    gang = comes_to(cluster, namespace, "waiting", 0, "pods-missing")
    assert gang["pods"] == 2
    shown = cluster.kubectl(*commands(gang)[0].split()[1:]).stdout
    assert "exceeded quota: few" in shown


def test_a_failed_podgroup(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=1, replicas=1)), namespace)
    cluster.wait(lambda: gangs(check(cluster, namespace))[0]["phase"] == "Running", 60, "the phase Running")
    cluster.api.patch("pods", f"{SET}-0-1", {"status": {"phase": "Failed"}}, namespace, "status")
    cluster.wait(
        lambda: codes(check(cluster, namespace)) == ["podgroup-failed"], 60, "a Failed PodGroup of a whole gang"
    )
    paste(cluster, commands(gangs(check(cluster, namespace))[0]), tmp_path)
    cluster.wait(lambda: codes(check(cluster, namespace)) == [], 30, "nothing more to say")


def test_a_podgroup_of_another(cluster: Cluster, namespace: str) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=1, replicas=1)), namespace)
    create(cluster, namespace, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "holder"}})
    uid = cluster.get("configmap", "holder", namespace)["metadata"]["uid"]
    by = {"apiVersion": "v1", "kind": "ConfigMap", "name": "holder", "uid": uid, "controller": True}
    cluster.api.patch(GROUPS, f"{SET}-0", {"metadata": {"ownerReferences": [by]}}, namespace)
    comes_to(cluster, namespace, "bound", 2, None)
    [finding] = gang_findings(check(cluster, namespace))
    assert finding["code"] == "podgroup-foreign"
    assert "ConfigMap/holder" in finding["message"]


def test_a_podgroup_that_differs(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    cluster.apply(rendered(cluster, stream("blue", workers=1, replicas=1)), namespace)
    comes_to(cluster, namespace, "bound", 2, None)
    cluster.api.patch(GROUPS, f"{SET}-0", {"spec": {"scheduleTimeoutSeconds": 7}}, namespace)
    found = check(cluster, namespace)
    assert codes(found) == ["podgroup-differs"]
    paste(cluster, commands(gangs(found)[0]), tmp_path)
    assert codes(check(cluster, namespace)) == []


def test_a_set_of_any_chart(cluster: Cluster, namespace: str) -> None:
    made = rendered(cluster, json.dumps(workers("LeaderCreated")).encode(), leaderworkersets=True)
    cluster.apply(made, namespace)
    comes_to(cluster, namespace, "bound", 3, None, "--leaderworkersets")
    found = check(cluster, namespace, "--leaderworkersets")
    assert codes(found) == []
    [service] = found["services"]
    assert (service["kind"], service["component"], service["mode"]) == ("LeaderWorkerSet", None, "LeaderWorkerSet")
    assert check(cluster, namespace)["services"] == []  # unasked it is nobody's business


def test_what_the_page_shows(cluster: Cluster, tmp_path: Path) -> None:
    """Its blocks run as they stand, and the text that it shows is what comes, but for the times."""
    page = (Path(__file__).parents[2] / "docs" / "live.md").read_text()
    [context, checks] = re.findall(r"^```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    [text] = re.findall(r"^```text\n(InferenceService.*?)^```$", page, re.DOTALL | re.MULTILINE)
    runtime = json.loads(stream("x", workers=1, replicas=1).split(b"---\n")[0])
    named = {"name": "srt-qwen3-0-6b-multi-node"}
    cluster.api.create({**runtime, "kind": "ClusterServingRuntime", "metadata": named})
    shutil.copy(Path(__file__).parents[2] / "examples" / "pipe" / "rendered.yaml", tmp_path / "rendered.yaml")
    cluster.kubectl("config", "rename-context", "it", "production")
    try:
        paste(cluster, [context], tmp_path)
        assert "kind: PodGroup" in (tmp_path / "deploy.yaml").read_text()

        cluster.namespace("llm")
        fill(cluster, "llm", 2)
        cluster.apply(rendered(cluster, stream("blue", workers=2, replicas=1), scheduler=""), "llm")
        comes_to(cluster, "llm", "half-bound", 2, "scheduler-ignores-label")
        cluster.wait(lambda: gangs(check(cluster, "llm"))[0]["phase"] == "Scheduling", 20, "its phase")
        done = run(cluster, "check", "--live", "-n", "llm")
        assert timeless(done.stdout) == timeless(text)
        assert done.stderr == "postrender: 1 gang: 1 half-bound, 1 error\n"
        for command in checks.splitlines():
            # A gang is half bound, and the file's is not there at all, so each says 1 or 0 and nothing else.
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=tmp_path,
                env=environment(cluster),
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == ("deploy.yaml" not in command), (command, done.stderr)
    finally:
        cluster.kubectl("config", "rename-context", "production", "it")
        cluster.discard("llm")
        cluster.api.delete("clusterservingruntimes", named["name"])


def timeless(text: str) -> list[str]:
    """The words of a text, in which times are alike."""
    return re.sub(r"\bfor \d+ (s|min):", "for a while:", " ".join(text.split())).split()
