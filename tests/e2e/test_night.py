"""The page for the person who was woken: what it says the scheduler says is what it says, and its commands work."""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from .cluster import Cluster, watchdog
from .test_cluster import GANGS, create, pod, podgroup
from .test_helm import BIN, ROOT, ours

PAGE = (ROOT / "docs/night.md").read_text()
CHART = ROOT / "examples/helm-qwen3/chart"


def section(title: str) -> str:
    found = re.search(rf"^## {title}\n(.*?)(?=^## )", PAGE, re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


def blocks(text: str) -> list[str]:
    return re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def patterns() -> dict[str, re.Pattern[str]]:
    """Return the messages that the page tells from each other, as they are written there and as they are matched."""
    rows = re.findall(r"^\| `(.*?)` \|", section("Pods are Pending"), re.MULTILINE)
    return {row: re.compile(re.escape(row).replace("…", ".*")) for row in rows}


def gang(name: str, count: int, gpus: int, **spec: int) -> list[dict[str, Any]]:
    pods = [pod(f"{name}-{number}", GANGS, name, gpus=gpus) for number in range(count)]
    return [podgroup(name, minMember=count, **spec), *pods]


def gated() -> dict[str, Any]:
    held = pod("gated", GANGS, "gated")
    held["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
    return held


def test_what_the_scheduler_says(cluster: Cluster, namespace: str) -> None:
    """Each message of the page is said, and what is said of a pod that waits is on the page."""
    alone = [pod("alone", GANGS, "none"), pod("few", GANGS, "few"), podgroup("few", minMember=3), gated()]
    create(cluster, namespace, *alone, pod("unseen", "nobody"))
    with cluster.part("scheduler").paused():
        create(cluster, namespace, *gang("large", 5, 8))
    heard: set[str] = set()
    ended = "skip schedule deleting pod"  # of a pod that is deleted while it waits, if the scheduler is quick enough

    def listen() -> set[str]:
        for one in cluster.list("pods", namespace):
            conditions = one["status"].get("conditions") or []
            heard.update(condition.get("message", "") for condition in conditions if condition["status"] == "False")
        said = [one for one in cluster.list("events", namespace) if one["reason"] == "FailedScheduling"]
        heard.update(one["message"] for one in said if not one["message"].startswith(ended))
        return {row for row, pattern in patterns().items() if not any(pattern.search(text) for text in heard)}

    late = {"rejection in Unreserve", "rejected due to timeout after waiting … at plugin Coscheduling"}
    cluster.wait(lambda: listen() <= late, 30, "all messages but two")
    assert re.search(
        r"^gated .* SchedulingGated ", cluster.kubectl("get", "pods", "--namespace", namespace).stdout, re.MULTILINE
    )
    unseen = cluster.get("pod", "unseen", namespace)["status"]
    assert "conditions" not in unseen
    assert "nothing, and no event" in section("Pods are Pending")
    cluster.api.request("DELETE", cluster.api.path("pods", namespace), gracePeriodSeconds="0")
    with cluster.part("scheduler").paused():
        create(cluster, namespace, *gang("near", 33, 1, scheduleTimeoutSeconds=3))
    cluster.wait(lambda: not listen(), 40, "the last messages")
    assert {text for text in heard if not any(pattern.search(text) for pattern in patterns().values())} == set()


def definition(kind: str, scope: str) -> dict[str, Any]:
    """A kind of OME that takes anything: its own definitions are so large that the API server takes long to serve them."""
    plural = f"{kind.lower()}s"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.ome.io"},
        "spec": {
            "group": "ome.io",
            "names": {"kind": kind, "plural": plural},
            "scope": scope,
            "versions": [version],
        },
    }


@pytest.fixture(scope="module")
def services(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with kinds of OME."""
    kinds = {"InferenceService": "Namespaced", "ServingRuntime": "Namespaced", "ClusterServingRuntime": "Cluster"}
    made = [cluster.api.create(definition(kind, scope))["metadata"]["name"] for kind, scope in kinds.items()]
    for name in made:
        cluster.wait_defined(name)
    yield cluster
    for name in made:
        cluster.api.delete("customresourcedefinitions", name)
    cluster.api.kinds = {}


@pytest.fixture
def shell(services: Cluster, namespace: str, tmp_path: pathlib.Path) -> Any:
    """Run a block of the page as a person does, who writes names for the words in capitals; the exit code."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").symlink_to(BIN / "helm-3.19")  # takes us as we are
    path = [str(tmp_path / "bin"), str(pathlib.Path(sys.executable).parent), str(BIN), os.environ["PATH"]]
    environ = {key: value for key, value in services.environment.items() if key != watchdog.MARK}
    environ |= {"PATH": os.pathsep.join(path), "HOME": str(tmp_path / "home")}
    names = {"NS": namespace, "NAME": "qwen3-engine-0", "RELEASE": "qwen3", "CHART": str(CHART)}

    def run(block: str, **other: str) -> tuple[int, str]:
        text = re.sub(r"\b(NS|NAME|RELEASE|CHART)\b", lambda word: {**names, **other}[word[0]], block)
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", text],
            env=environ,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    return run


def test_a_forgotten_post_renderer_is_told_by_the_exit_code(shell: Any) -> None:
    [block] = blocks(section("PodGroups are gone"))
    install, upgrade = "helm install RELEASE CHART -n NS", "helm upgrade RELEASE CHART -n NS --post-renderer postrender"
    for command, code in ((install, 0), (block, 3), (upgrade, 0), (block, 0)):
        done = shell(command)
        assert done[0] == code, done[1]


@pytest.fixture
def system(services: Cluster) -> Iterator[str]:
    """The namespace that the page takes the reconciler to be in."""
    name = services.namespace("postrender-system")
    yield name
    services.discard(name, gone=True)


def test_every_command_works(
    services: Cluster, system: str, namespace: str, shell: Any, tmp_path: pathlib.Path
) -> None:
    cluster = services
    assert f" -n {system}" in PAGE
    code, said = shell("helm install RELEASE CHART -n NS --post-renderer postrender")
    assert code == 0, said
    create(cluster, namespace, pod("one", GANGS, "qwen3-engine-0", gpus=1))
    cluster.wait(lambda: cluster.get("podgroup", "qwen3-engine-0", namespace).get("status"), 10, "a status")
    cluster.api.patch("podgroups", "qwen3-engine-0", {"status": {"phase": "Failed"}}, namespace, "status")
    for block in blocks(PAGE):
        if "kubectl logs" in block:
            continue  # there is no kubelet that has any
        other = {"NAME": "qwen3"} if "inferenceservices" in block or "InferenceService/" in block else {}
        code, said = shell(block, **other)
        # A check ends with 1 where it has found something, and grep where it has not: no scheduler is a pod here.
        assert code in ((0, 1) if "check --live" in block or "grep" in block else (0,)), f"{block}{said}"
        assert "Traceback" not in said
    group = cluster.get("podgroup", "qwen3-engine-0", namespace)
    assert group["status"]["phase"] != "Failed"
    assert group["metadata"]["annotations"]["postrender/tried"].isdigit()
    assert cluster.list("pods", namespace) == []
    assert (tmp_path / "night.yaml").stat().st_size > 0
    assert '"LiveCheck"' in (tmp_path / "night.json").read_text()


def test_which_options_the_page_uses(shell: Any) -> None:
    """`explain --object` finds the service that a chart renders."""
    [block] = blocks(section("The numbers make no sense"))
    code, said = shell(block, NAME="qwen3")
    assert code == 0
    assert "minMember" in said
    assert ours("explain", "--help", environ={}).stdout
