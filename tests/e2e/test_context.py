"""`postrender context` on a real API server: what it holds, what it asks for, and what it says when it may not."""

from __future__ import annotations

import copy
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from postrender import render
from postrender.options import Options, Source
from tests.e2e import ome
from tests.e2e.cluster import Cluster, kubeconfig
from tests.e2e.cluster.api import Object, Objects
from tests.e2e.omenative import definitions

from .test_live import check, gangs, manager, run
from .test_multinode import SCHEDULER, stream

DOCS = Path(__file__).parents[2] / "docs" / "live.md"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(nodes=2, lws=True) as running:
        ome.start(running)
        running.api.create(ome.model("qwen"))
        running.api.create(manager())
        lifecycle = '{"instanceReadyTimeout": "20m", "gangScheduleTimeout": {"min": "60s", "max": "300s"}}'
        running.api.patch("configmaps", "inferenceservice-config", {"data": {"lifecycle": lifecycle}}, ome.NAME)
        for name, size in (("two", 1), ("three", 2)):
            running.api.create(runtime(name, size))
        yield running


def runtime(name: str, size: int) -> Object:
    """A runtime for the whole cluster, with much that is nobody's business."""
    found: Object = json.loads(stream("x", workers=size, replicas=1).split(b"---\n")[0])
    found["kind"] = "ClusterServingRuntime"
    found["metadata"] = {"name": name, "annotations": {"owner": "somebody"}}
    server = {"name": "server", "image": "private", "env": [{"name": "KEY", "value": "private"}]}
    found["spec"]["engineConfig"]["runner"] = server
    return found


def rules() -> Objects:
    """The rules of the role that the page shows."""
    [text] = re.findall(r"^```yaml\n# role.yaml\n(.*?)^```$", DOCS.read_text(), re.DOTALL | re.MULTILINE)
    role = yaml.safe_load(text)
    assert role["kind"] == "ClusterRole"
    return list(role["rules"])


def test_what_it_holds_and_what_it_asks_for(cluster: Cluster) -> None:
    reader = cluster.user("reader", rules())
    before = cluster.audit.position()
    done = run(cluster, "context", as_=reader)
    assert (done.returncode, done.stderr) == (0, "")
    found = list(yaml.safe_load_all(done.stdout))
    assert [one["kind"] for one in found] == ["Cluster", "ClusterServingRuntime", "ClusterServingRuntime", "ConfigMap"]
    said = found[0]["spec"]
    assert (said["omeVersion"], said["kubernetesVersion"]) == ("1.2.2", "v1.34.4")
    served = cluster.kubectl("api-versions").stdout.split()
    assert [one for one in said["apiVersions"] if one.count("/") < 2] == sorted(served)
    assert "scheduling.x-k8s.io/v1alpha1/PodGroup" in said["apiVersions"]
    assert "ome.io/v1beta1/InferenceService" in said["apiVersions"]
    for word in ("managedFields", "private", "somebody", "ingress", "supportedModelFormats"):
        assert word not in done.stdout
    cluster.wait(lambda: len(cluster.audit.requests(before, user="reader")) > 8, 10, "the audit log")
    asked = cluster.audit.requests(before, user="reader")
    assert {one["verb"] for one in asked} == {"get", "list"}
    assert "secrets" not in {one.get("objectRef", {}).get("resource") for one in asked}
    assert {one["responseStatus"]["code"] for one in asked} == {200}


def test_a_render_with_it_is_a_render_with_the_live_objects(cluster: Cluster) -> None:
    whole = cluster.kubectl("get", "clusterservingruntimes,servingruntimes", "-A", "-o", "yaml").stdout
    whole += (
        "---\n" + cluster.kubectl("get", "configmap", "inferenceservice-config", "-n", ome.NAME, "-o", "yaml").stdout
    )
    context = run(cluster, "context").stdout
    for name, pods in (("two", 2), ("three", 3)):
        service = json.dumps(json.loads(stream("blue", 1, 1).split(b"---\n")[1])).replace('"rt"', f'"{name}"').encode()
        options = Options(ome="1.2", scheduler_name=SCHEDULER)
        both = [
            render(service, options._replace(context=(Source("context.yaml", text.encode()),)))
            for text in (whole, context)
        ]
        assert both[0] == both[1]
        # By the version in the document nothing need be said; 20m is clamped to 300s.
        own = render(service, Options(scheduler_name=SCHEDULER, context=(Source("context.yaml", context.encode()),)))
        assert own.data == both[0].data
        [group, _] = yaml.safe_load_all(own.data)
        assert group["spec"] == {"minMember": pods, "scheduleTimeoutSeconds": 300}


def test_a_check_asks_and_never_writes(cluster: Cluster, namespace: str) -> None:
    cluster.apply(stream("blue", workers=1, replicas=1), namespace)
    cluster.wait(lambda: cluster.list("leaderworkersets", namespace), 30, "a LeaderWorkerSet")
    checker = cluster.user("checker", rules())
    before = cluster.audit.position()
    for words in (["-n", namespace], ["-A"], ["-n", namespace, "--leaderworkersets"]):
        done = run(cluster, "check", "--live", "--format", "json", *words, as_=checker)
        assert done.stderr == ""
        assert gangs(json.loads(done.stdout))
    cluster.wait(lambda: len(cluster.audit.requests(before, user="checker")) > 30, 10, "the audit log")
    asked = cluster.audit.requests(before, user="checker")
    assert {one["verb"] for one in asked} == {"get", "list"}
    assert {one["responseStatus"]["code"] for one in asked} <= {200, 404}  # 404: the policy of --replicas policy


def test_the_rights_that_only_help_may_be_missing(cluster: Cluster, namespace: str) -> None:
    cluster.apply(stream("blue", workers=1, replicas=1), namespace)
    groups = ("apiextensions.k8s.io", "admissionregistration.k8s.io", "leaderworkerset.x-k8s.io")
    needed = [rule for rule in rules() if rule["apiGroups"][0] not in groups and rule["resources"] != ["events"]]
    done = run(cluster, "check", "--live", "-n", namespace, as_=cluster.user("frugal", needed))
    assert done.returncode in (0, 1)
    assert "may not" not in done.stderr


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("clusterservingruntimes", "may not list clusterservingruntimes.ome.io;"),
        ("servingruntimes", "may not list servingruntimes.ome.io in all namespaces;"),
        ("configmaps", "may not get configmaps in the namespace 'ome';"),
        ("deployments", "may not list deployments.apps in the namespace 'ome';"),
    ],
)
def test_the_right_that_is_missing_is_named(cluster: Cluster, resource: str, words: str) -> None:
    done = run(cluster, "context", as_=cluster.user(f"without-{resource}", without(resource)))
    assert (done.returncode, done.stdout) == (1, "")
    assert words in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("resource", ["inferenceservices", "inferencereplicas", "podgroups", "pods"])
def test_the_right_that_a_check_lacks_is_named(cluster: Cluster, namespace: str, resource: str) -> None:
    if resource == "inferencereplicas":
        served = [one["kind"] for one in cluster.api.request("GET", "/apis/ome.io/v1beta1")["resources"]]
        assert "InferenceReplica" not in served  # of OME 1.2, so it is 403 before it is 404
    cluster.apply(stream("blue", workers=1, replicas=1), namespace)
    user = cluster.user(f"blind-{resource}", without(resource))
    done = run(cluster, "check", "--live", "-n", namespace, as_=user)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"may not list {resource}" in done.stderr
    assert f"in the namespace '{namespace}'" in done.stderr


def without(resource: str) -> Objects:
    found = copy.deepcopy(rules())
    for rule in found:
        rule["resources"] = [one for one in rule["resources"] if one != resource]
    return [rule for rule in found if rule["resources"]]


def test_one_namespace_is_enough_for_who_may_see_no_more(cluster: Cluster, namespace: str) -> None:
    runtimes = {"apiGroups": ["ome.io"], "resources": ["clusterservingruntimes"], "verbs": ["list"]}
    user = cluster.user(f"local-{namespace}", [runtimes])
    cluster.grant(
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"local-{namespace}"}, rules(), namespace
    )
    cluster.grant(
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"local-{namespace}"}, rules(), ome.NAME
    )
    done = run(cluster, "context", "-n", namespace, as_=user)
    assert (done.returncode, done.stderr) == (0, "")
    done = run(cluster, "check", "--live", "-n", namespace, as_=user)
    assert (done.returncode, done.stdout) == (0, "")
    done = run(cluster, "check", "--live", "-A", as_=user)
    assert done.returncode == 1
    assert "in all namespaces" in done.stderr


def test_who_is_not_known(cluster: Cluster) -> None:
    path = cluster.write_kubeconfig("nobody", {"token": "none"})
    done = run(cluster, "context", as_=path)
    assert done.returncode == 1
    assert "does not know who you are (401)" in done.stderr


def test_no_answer(cluster: Cluster, tmp_path: Path) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        server = f"https://127.0.0.1:{closed.getsockname()[1]}"
        path = kubeconfig.write(tmp_path / "config", server, cluster.authority.certificate, {"token": "x"})
        for command in (["context"], ["check", "--live"]):
            done = run(cluster, *command, "--kubeconfig", str(path))
            assert (done.returncode, done.stdout) == (4, "")
            assert "does not answer" in done.stderr
            assert done.stderr.count("\n") == 1


def test_no_such_context(cluster: Cluster) -> None:
    done = run(cluster, "context", "--kube-context", "elsewhere")
    assert done.returncode == 4
    assert "elsewhere" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_kubeconfig_says_the_namespace(cluster: Cluster, namespace: str) -> None:
    cluster.apply(stream("blue", workers=1, replicas=1), namespace)
    path = cluster.user(f"at-home-{namespace}", rules(), None)
    config = json.loads(path.read_text())
    config["contexts"].append(
        {"name": "other", "context": {**config["contexts"][0]["context"], "namespace": namespace}}
    )
    path.write_text(json.dumps(config))
    done = run(cluster, "check", "--live", "--format", "json", as_=path)
    assert json.loads(done.stdout)["services"] == []
    done = run(cluster, "check", "--live", "--format", "json", "--kube-context", "other", as_=path)
    [service] = json.loads(done.stdout)["services"]
    assert (service["namespace"], service["name"]) == (namespace, "blue")
    # What is to be pasted goes to the same cluster.
    [gang] = service["gangs"]
    assert all("--context other" in one for told in gang["findings"] for one in told["commands"] if "kubectl" in one)


def test_files_instead_of_services(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    """What a file should come to is missed where nothing of it runs."""
    path = tmp_path / "deploy.yaml"
    path.write_bytes(stream("green", workers=1, replicas=1))
    found = check(cluster, namespace, str(path))
    [service] = found["services"]
    assert (service["namespace"], service["name"]) == (namespace, "green")
    assert [gang["state"] for gang in service["gangs"]] == ["absent"]


def test_a_cluster_without_ome() -> None:
    with Cluster(parts=("etcd", "apiserver")) as bare:
        done = run(bare, "context")
        assert done.returncode == 0
        [found] = yaml.safe_load_all(done.stdout)
        assert found["kind"] == "Cluster"
        assert "omeVersion" not in found["spec"]
        assert "clusterservingruntimes.ome.io are not served" in done.stderr
        for one in definitions.documents():
            bare.api.create(one)
        for name in definitions.NAMES:
            bare.wait_defined(name)
        done = run(bare, "context")
        assert next(yaml.safe_load_all(done.stdout))["spec"]["omeVersion"] == "1.3"
        assert "taken for 1.3" in done.stderr
