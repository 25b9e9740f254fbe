"""The reconciler as it is shipped: kustomize and Helm give one set of objects, a real API server takes them under Pod
Security, what runs by them works with their rights, and nothing of it is left in the end.
"""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from postrender.reconciler.metrics import FAMILIES, PREFIX

from .cluster import ApiError, Cluster, modules
from .cluster.api import Object, Objects
from .test_helm import BIN, ROOT, SCRIPT, VERSIONS, Helm, ours
from .test_helm_docs import COMMAND, matches

PLACE = ROOT / "plugins/reconciler"
CHART = PLACE / "chart"
NAME = "postrender-reconciler"
HELMS = (VERSIONS[0], VERSIONS[-1])  # the oldest and the newest; Helm 3 and 4 check values by different libraries
HELMS_OWN = ("app.kubernetes.io/instance", "app.kubernetes.io/managed-by", "helm.sh/chart")
COMPONENTS = {
    "networkpolicy": "networkPolicy",
    "servicemonitor": "serviceMonitor",
    "alerts": "alerts",
    "policy": "policy",
}
POLICIES = ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding")


@pytest.fixture(scope="module")
def helms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Helm]:
    return {version: Helm(version, tmp_path_factory.mktemp(f"helm-{version}-")) for version in HELMS}


def chart(helm: Helm, values: Object, *words: str, kubernetes: str = "1.36") -> subprocess.CompletedProcess[str]:
    given = [f"--set-json={key}={json.dumps(value)}" for key, value in values.items()]
    return helm.run("template", "gangs", CHART, "--namespace=gangs", f"--kube-version={kubernetes}", *given, *words)


def build(folder: pathlib.Path, *components: str, namespace: str = "gangs", **more: Any) -> str:
    """Return what kustomize makes of the base and these components, in a kustomization as a user writes one."""
    place = pathlib.Path(os.path.relpath(PLACE, folder))
    wanted = {
        "namespace": namespace,
        "resources": [str(place / "base")],
        "components": [str(place / "components" / name) for name in components],
        **more,
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(wanted))
    done = subprocess.run([BIN / "kustomize", "build", folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def objects(text: str) -> dict[tuple[str, str], Object]:
    """Return objects by kind and name, without what only Helm writes.

    kustomize gives the policy, whose kind it does not know, a namespace; the API server takes no notice of it.
    """
    found: dict[tuple[str, str], Object] = {}
    for one in yaml.safe_load_all(text):
        metadata = one["metadata"]
        for label in HELMS_OWN:
            metadata.get("labels", {}).pop(label, None)
        if one["kind"] in POLICIES:
            metadata.pop("namespace", None)
        assert (one["kind"], metadata["name"]) not in found
        found[one["kind"], metadata["name"]] = one
    return found


# One set of objects


class Option(NamedTuple):
    """An option by the values of the chart, and by components and what else stands in a kustomization."""

    values: Object
    components: tuple[str, ...] = ()
    more: Object = {}  # noqa: RUF012


def patch(kind: str, *operations: tuple[str, str, Any]) -> Object:
    made = [{"op": op, "path": path, "value": value} for op, path, value in operations]
    return {"target": {"kind": kind}, "patch": json.dumps(made)}


POD = "/spec/template/spec"
DIGEST = "sha256:" + 64 * "0"
OPTIONS = {
    "nothing": Option({}),
    **{name: Option({f"{key}.enabled": True}, (name,)) for name, key in COMPONENTS.items()},
    "all": Option({f"{key}.enabled": True for key in COMPONENTS.values()}, tuple(COMPONENTS)),
    "an image": Option(
        {"image.repository": "example.com/a/b", "image.tag": "1.10", "imagePullSecrets": [{"name": "pull"}]},
        more={
            "images": [{"name": "postrender", "newName": "example.com/a/b", "newTag": "1.10"}],
            "patches": [patch("Deployment", ("add", f"{POD}/imagePullSecrets", [{"name": "pull"}]))],
        },
    ),
    "an image by digest": Option(
        {"image.digest": DIGEST, "image.pullPolicy": "Always"},
        more={
            "images": [{"name": "postrender", "newTag": "0.1.0", "digest": DIGEST}],
            "patches": [patch("Deployment", ("replace", f"{POD}/containers/0/imagePullPolicy", "Always"))],
        },
    ),
    "arguments": Option(
        {"dryRun": True, "verbose": True, "gangSchedulers": ["default-scheduler", "x"], "rate": 0.5, "burst": 1},
        more={
            "patches": [
                patch(
                    "Deployment",
                    ("replace", f"{POD}/containers/0/args/1", "--rate=0.5"),
                    ("replace", f"{POD}/containers/0/args/2", "--burst=1"),
                    ("add", f"{POD}/containers/0/args/-", "--dry-run"),
                    ("add", f"{POD}/containers/0/args/-", "--verbose"),
                    ("add", f"{POD}/containers/0/args/-", "--gang-scheduler=default-scheduler"),
                    ("add", f"{POD}/containers/0/args/-", "--gang-scheduler=x"),
                )
            ]
        },
    ),
    "a pod": Option(
        {
            "resources": {"limits": {"memory": "1Gi"}},
            "priorityClassName": "high",
            "nodeSelector": {"pool": "system"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
        more={
            "patches": [
                patch(
                    "Deployment",
                    ("replace", f"{POD}/containers/0/resources/limits/memory", "1Gi"),
                    ("add", f"{POD}/priorityClassName", "high"),
                    ("add", f"{POD}/nodeSelector", {"pool": "system"}),
                    ("add", f"{POD}/tolerations", [{"key": "gpu", "operator": "Exists"}]),
                )
            ]
        },
    ),
    "an API server": Option(
        {
            "networkPolicy.enabled": True,
            "networkPolicy.apiServer": {"cidrs": ["192.0.2.10/32"], "ports": [6443]},
            "networkPolicy.scrapedFrom": ["prometheus", "other"],
        },
        ("networkpolicy",),
        {
            "patches": [
                patch(
                    "NetworkPolicy",
                    ("replace", "/spec/egress/0/to", [{"ipBlock": {"cidr": "192.0.2.10/32"}}]),
                    ("replace", "/spec/egress/0/ports", [{"port": 6443, "protocol": "TCP"}]),
                    (
                        "replace",
                        "/spec/ingress/0/from",
                        [
                            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}}}
                            for name in ("prometheus", "other")
                        ],
                    ),
                )
            ]
        },
    ),
    "no scrapes": Option(
        {"networkPolicy.enabled": True, "networkPolicy.scrapedFrom": []},
        ("networkpolicy",),
        {"patches": [{"target": {"kind": "NetworkPolicy"}, "patch": '[{"op": "remove", "path": "/spec/ingress"}]'}]},
    ),
    "labels for Prometheus": Option(
        {
            "serviceMonitor": {"enabled": True, "interval": "1m", "labels": {"release": "kps"}},
            "alerts": {"enabled": True, "labels": {"release": "kps"}},
        },
        ("servicemonitor", "alerts"),
        {
            "patches": [
                patch("(ServiceMonitor|PrometheusRule)", ("add", "/metadata/labels/release", "kps")),
                patch("ServiceMonitor", ("replace", "/spec/endpoints/0/interval", "1m")),
            ]
        },
    ),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_helm_and_kustomize_give_the_same_objects(helms: dict[str, Helm], tmp_path: pathlib.Path, name: str) -> None:
    option = OPTIONS[name]
    by_kustomize = objects(build(tmp_path, *option.components, **option.more))
    assert len(by_kustomize) == 5 + len(option.components) + ("policy" in option.components)
    for helm in helms.values():
        done = chart(helm, option.values)
        assert (done.returncode, done.stderr) == (0, "")
        assert objects(done.stdout) == by_kustomize


def test_helm_finds_nothing_wrong_with_the_chart(helms: dict[str, Helm]) -> None:
    for helm in helms.values():
        done = helm.run("lint", "--strict", CHART)
        assert done.returncode == 0, done.stdout


def test_a_namespace_of_numbers(helms: dict[str, Helm], tmp_path: pathlib.Path) -> None:
    """Both write it as a string, everywhere."""
    by_kustomize = objects(build(tmp_path, "networkpolicy", namespace="123"))
    assert by_kustomize["ClusterRoleBinding", NAME]["subjects"][0]["namespace"] == "123"
    for helm in helms.values():
        done = chart(helm, {"networkPolicy.enabled": True}, "--namespace=123")
        assert objects(done.stdout) == by_kustomize


@pytest.mark.parametrize("kubernetes", ["1.34", "1.35", "1.36"])
def test_the_policy_is_the_one_that_is_printed(helms: dict[str, Helm], kubernetes: str) -> None:
    printed = ours("policy", "--kube-version", kubernetes, environ={}).stdout
    for helm in helms.values():
        done = chart(helm, {"policy.enabled": True}, "--show-only=templates/policy.yaml", kubernetes=kubernetes)
        shown = re.split(r"^---\n# Source: .*\n", done.stdout, flags=re.MULTILINE)
        assert [text.strip() for text in shown if text.strip()] == [text.strip() for text in printed.split("---\n")]


def test_no_policy_for_a_kubernetes_without(helms: dict[str, Helm]) -> None:
    said = ours("policy", "--kube-version", "1.33", environ={}).stderr.partition("no MutatingAdmissionPolicy")[2]
    for helm in helms.values():
        done = chart(helm, {"policy.enabled": True}, kubernetes="1.33")
        assert (done.returncode, done.stdout) == (1, "")
        assert "policy.enabled: Kubernetes v1.33" in done.stderr.replace("v1.33.0", "v1.33")
        assert said.partition(";")[0] in done.stderr


REFUSED = {
    "image.tga": "1",
    "image.digest": "latest",
    "image.tag": 1.1,
    "image.repository": "",
    "image.pullPolicy": "Sometimes",
    "image": None,
    "replicas": 2,
    "dryRun": "yes",
    "rate": 0,
    "burst": 1.5,
    "gangSchedulers": "default-scheduler",
    "resources.limits.gpu": 1,
    "tolerations": [{"effect": "Never"}],
    "networkPolicy.apiServer.cidrs": [],
    "networkPolicy.apiServer.ports": ["https"],
    "networkPolicy.scrapedFrom": ["a b"],
    "serviceMonitor.interval": "often",
    "alerts.severity": "page",
    "policy.enabled": "true",
}


@pytest.mark.parametrize("path", REFUSED)
def test_a_wrong_value_is_refused(helms: dict[str, Helm], path: str) -> None:
    for helm in helms.values():
        done = chart(helm, {path: REFUSED[path]})
        assert (done.returncode, done.stdout) == (1, "")
        assert re.search(r"values don't meet the specifications of the schema", done.stderr)
        assert path.split(".")[-1] in done.stderr


def test_as_a_part_of_another_chart(helms: dict[str, Helm], tmp_path: pathlib.Path) -> None:
    """A parent hands over `global`, and `enabled` where its condition reads that."""
    shutil.copytree(CHART, tmp_path / "charts" / NAME)
    parent = {
        "apiVersion": "v2",
        "name": "parent",
        "version": "1.0.0",
        "dependencies": [{"name": NAME, "version": "*", "condition": f"{NAME}.enabled"}],
    }
    (tmp_path / "Chart.yaml").write_text(yaml.safe_dump(parent))
    for helm in helms.values():
        for enabled in (True, False):
            words = [f"--set={NAME}.enabled={str(enabled).lower()}", "--set=global.region=here"]
            done = helm.run("template", "gangs", tmp_path, "--namespace=gangs", *words)
            assert (done.returncode, done.stderr) == (0, "")
            assert objects(done.stdout) == (objects(chart(helm, {}).stdout) if enabled else {})


# On a real API server


@pytest.fixture(scope="module")
def operators(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, with the definitions of the Prometheus operator."""
    module = modules.source("prometheus-operator", "github.com/prometheus-operator/prometheus-operator")
    names = ("servicemonitors", "prometheusrules")
    for name in names:
        cluster.define(module / f"example/prometheus-operator-crd/monitoring.coreos.com_{name}.yaml")
    for name in names:
        cluster.wait_defined(f"{name}.monitoring.coreos.com")
    yield cluster
    for name in names:
        cluster.api.delete("customresourcedefinitions", f"{name}.monitoring.coreos.com")
    cluster.api.kinds = {}


def restrict(cluster: Cluster, namespace: str) -> None:
    """Have Pod Security refuse, and warn of, all but restricted pods."""
    labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn", "audit")}
    cluster.api.patch("namespaces", namespace, {"metadata": {"labels": labels}})


def runs(cluster: Cluster, namespace: str) -> bool:
    return cluster.get("deployment", NAME, namespace).get("status", {}).get("readyReplicas") == 1


def everything(cluster: Cluster) -> set[str]:
    """Return the paths of all objects that the API server lists, but for what comes and goes by itself."""
    cluster.api.discover()
    found = set()
    for place in sorted({place for place, _ in cluster.api.kinds.values()}):
        if place.endswith(("/events", "/leases")):
            continue
        try:
            held = cluster.api.request("GET", place)["items"]
        except ApiError as error:
            if error.status not in (404, 405):  # what can only be created
                raise
            continue
        names = [one["metadata"] for one in held]
        found |= {"/".join([place, name.get("namespace", ""), name["name"]]) for name in names}
    return found


def test_the_objects_are_taken_and_restricted_pods_run(
    operators: Cluster, namespace: str, tmp_path: pathlib.Path
) -> None:
    cluster = operators
    restrict(cluster, namespace)
    # The API server is a 1.34.
    text = build(tmp_path, *COMPONENTS, namespace=namespace)
    text = text.replace("admissionregistration.k8s.io/v1\n", "admissionregistration.k8s.io/v1beta1\n")
    done = cluster.kubectl("apply", "--validate=strict", "--filename=-", input=text)
    assert done.stderr == ""
    assert done.stdout.count(" created\n") == 10
    cluster.wait(lambda: runs(cluster, namespace), 30, "the reconciler's pod to run")
    assert "namespace" not in cluster.get("mutatingadmissionpolicy", "postrender-gang")["metadata"]

    def without(*path: str) -> str:
        deployment = objects(text)["Deployment", NAME]
        held = deployment["spec"]["template"]["spec"]
        for step in path[:-1]:
            held = held[int(step) if step.isdigit() else step]
        del held[path[-1]]
        dry = cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=json.dumps(deployment))
        return dry.stderr

    context = ("containers", "0", "securityContext")
    assert "runAsNonRoot" in without("securityContext", "runAsNonRoot")
    assert "seccompProfile" in without("securityContext", "seccompProfile")
    assert "allowPrivilegeEscalation" in without(*context, "allowPrivilegeEscalation")
    assert "capabilities" in without(*context, "capabilities")

    gone = cluster.kubectl("delete", "--filename=-", "--wait", input=text).stdout
    assert gone.count(" deleted") == 10


@pytest.mark.parametrize("version", HELMS)
def test_a_release_comes_and_goes(operators: Cluster, namespace: str, version: str, tmp_path: pathlib.Path) -> None:
    cluster, helm = operators, Helm(version, tmp_path)
    environ = {"KUBECONFIG": cluster.environment["KUBECONFIG"]}
    restrict(cluster, namespace)
    cluster.wait(lambda: cluster.list("configmaps", namespace), 10, "what a controller puts into each namespace")
    before = everything(cluster)

    def run(*words: str) -> str:
        done = helm.run(*words, f"--namespace={namespace}", **environ)
        assert (done.returncode, "PodSecurity" in done.stderr) == (0, False), done.stderr
        return done.stdout

    every = [f"--set={key}.enabled=true" for key in COMPONENTS.values()]
    notes = run("install", "gangs", str(CHART), *every)
    assert f"kubectl logs -n {namespace} deployment/{NAME}\n" in notes
    cluster.wait(lambda: runs(cluster, namespace), 30, "the reconciler's pod to run")
    assert "It writes nothing" in run("upgrade", "gangs", str(CHART), *every, "--set=dryRun=true")
    [held] = cluster.get("deployment", NAME, namespace)["spec"]["template"]["spec"]["containers"]
    assert held["args"][-1] == "--dry-run"
    cluster.wait(lambda: runs(cluster, namespace), 30, "the new pod to run")
    run("uninstall", "gangs")

    cluster.wait(lambda: not everything(cluster) - before, 30, "nothing to be left")


# The page

PAGE = (ROOT / "docs/reconciler.md").read_text()
BLOCK = re.compile(r"^<!-- ([\w, ]+) -->\n```sh-session\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_every_block_with_a_prompt_is_run() -> None:
    assert PAGE.count("```sh-session\n") == len(BLOCK.findall(PAGE))
    assert "```console" not in PAGE


@pytest.mark.parametrize("tool", ["kustomize", *(f"helm-{version}" for version in HELMS)])
def test_the_commands_of_the_page(cluster: Cluster, tool: str, tmp_path: pathlib.Path) -> None:
    """From the copy to the end of it, in one folder, on a real API server."""
    for name, text in re.findall(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/helm").symlink_to(BIN / (tool if tool.startswith("helm") else "helm-4.3"))
    path = [str(tmp_path / "bin"), str(SCRIPT.parent), str(BIN), os.defpath]
    environ = {**cluster.environment, "PATH": os.pathsep.join(path), "HOME": str(tmp_path)}
    blocks = [text for tools, text in BLOCK.findall(PAGE) if tool.partition("-")[0] in tools.split(", ")]
    commands = [found for text in blocks for found in COMMAND.findall(text)]
    assert len(commands) > 2
    try:
        for command, shown in commands:
            done = subprocess.run(
                ["bash", "-c", f"{{ {command.rstrip()}\n}} 2>&1"],
                cwd=tmp_path,
                env=environ,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert matches(shown, done.stdout), f"$ {command}{done.stdout}"
            assert done.returncode == 0
        cluster.wait(lambda: not [one for one in everything(cluster) if NAME in one], 30, "nothing to be left")
    finally:
        cluster.discard("postrender-system", gone=True)


# What runs

NO_WRITES = """
import os, sys

def heard(event, args):
    if event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        os.write(2, f"opened for writing: {args[0]}\\n".encode())

sys.addaudithook(heard)
"""


def group(namespace: str, name: str, owner: str) -> Object:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": {"postrender/for": f"LeaderWorkerSet/{owner}"},
        },
        "spec": {"minMember": 2},
    }


def leaderworkerset(namespace: str, name: str) -> Object:
    template = {"spec": {"containers": [{"name": "it", "image": "it"}]}}
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }


def answer(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        got = connection.getresponse()
        return got.status, got.read().decode()
    finally:
        connection.close()


def lines(path: pathlib.Path) -> Objects:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_what_runs_by_the_manifests(cluster: Cluster, namespace: str, tmp_path: pathlib.Path) -> None:
    """With the rights and arguments of the manifests a PodGroup is reset; no file is written, no trace stays but Events."""
    text = build(tmp_path, namespace=namespace)
    cluster.kubectl("apply", "--filename=-", input=text)
    deployment = objects(text)["Deployment", NAME]
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    token = {"token": cluster.token(NAME, namespace)}
    (tmp_path / "sitecustomize.py").write_text(NO_WRITES)
    environ = {
        **cluster.environment,
        "KUBECONFIG": str(cluster.write_kubeconfig("reconciler", token, namespace)),
        "PYTHONPATH": str(tmp_path),
        "PYTHONDONTWRITEBYTECODE": "1",  # as in the image
    }
    cluster.api.create(leaderworkerset(namespace, "svc"))
    cluster.api.create(group(namespace, "svc-0", "svc"))
    cluster.wait(lambda: cluster.get("podgroup", "svc-0", namespace).get("status"), 10, "a status")
    cluster.api.patch("podgroups", "svc-0", {"status": {"phase": "Failed"}}, namespace, "status")
    before = cluster.get("podgroup", "svc-0", namespace)
    log = tmp_path / "log"
    with log.open("wb") as target:
        program = subprocess.Popen(
            [SCRIPT, *container["args"], "--listen", "127.0.0.1:0"],
            env=environ,
            stderr=target,
            start_new_session=True,
        )
    try:
        cluster.wait(lambda: any(line["msg"] == "reset" for line in lines(log)), 20, "the reset")
        [port] = [line["port"] for line in lines(log) if line["msg"] == "started"]
        for probe in ("livenessProbe", "readinessProbe"):
            assert answer(port, container[probe]["httpGet"]["path"])[0] == 200
        status, metrics = answer(port, "/metrics")
        assert status == 200
        assert all(f"# TYPE {PREFIX}{family.name} {family.kind}\n" in metrics for family in FAMILIES)
    finally:
        program.terminate()
        assert program.wait(deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]) == 0
    assert {line["level"] for line in lines(log)} == {"info"}
    after = cluster.get("podgroup", "svc-0", namespace)
    assert after["status"]["phase"] == "Pending"
    shown = cluster.kubectl("describe", "leaderworkerset", "svc", "-n", namespace).stdout
    assert "PodGroupReset" in shown

    cluster.kubectl("delete", "--filename=-", input=text)
    for one in (before, after):
        del one["status"], one["metadata"]["resourceVersion"], one["metadata"]["managedFields"]
    assert after == before
