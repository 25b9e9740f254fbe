"""`postrender build` with the real Helms and the real kustomize: what is in the folder is what a render gives."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from typing import Any

import pytest

from postrender import render
from tests.oracles.client import Oracle, exact

from .test_helm import BIN, CHARTS, SCRIPT, VERSIONS

KUSTOMIZE = BIN / "kustomize"
ACCEPT = "--accept=ome-not-said,no-gang-scheduler,surge-without-spare,runtime-unresolved,gang-unknown"


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    for name in ("kustomize", *(f"helm-{version}" for version in VERSIONS)):
        assert (BIN / name).exists(), "run 'make e2e': it brings the programs"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


def run(
    *words: str | pathlib.Path, cwd: pathlib.Path, helm: str = "4.3", data: bytes = b"", **environ: str
) -> subprocess.CompletedProcess[bytes]:
    around = {"PATH": os.environ["PATH"], "HOME": str(cwd), "POSTRENDER_KUSTOMIZE": str(KUSTOMIZE)}
    around |= {"POSTRENDER_HELM": str(BIN / f"helm-{helm}"), **environ}
    return subprocess.run(words, cwd=cwd, env=around, input=data, capture_output=True, timeout=120, check=False)


def build(*words: str | pathlib.Path, cwd: pathlib.Path, **how: Any) -> subprocess.CompletedProcess[bytes]:
    return run(SCRIPT, "build", ACCEPT, *words, cwd=cwd, **how)


def template(helm: str, chart: pathlib.Path, *words: str, cwd: pathlib.Path) -> bytes:
    """What `helm template` prints, tests left out."""
    done = run(BIN / f"helm-{helm}", "template", "release", chart, "--skip-tests", *words, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def kustomized(folder: pathlib.Path) -> str:
    done = run(KUSTOMIZE, "build", folder, cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


def flattened(objects: list[Any]) -> list[Any]:
    """Objects, those of a List one by one, as kustomize has them."""
    return [item for one in objects if one for item in (one["items"] if one["kind"] == "List" else [one])]


def read_by_kustomize(stream: bytes, folder: pathlib.Path) -> str:
    """What kustomize makes of a stream as it is, in one file."""
    folder.mkdir()
    (folder / "stream.yaml").write_bytes(stream)
    (folder / "kustomization.yaml").write_text("sortOptions: {order: fifo}\nresources: [stream.yaml]\n")
    return kustomized(folder)


def check(out: pathlib.Path, stream: bytes, oracle: Oracle, tmp_path: pathlib.Path) -> list[str]:
    """Hold a built folder against the stream that it is to hold; return its files in their order."""
    listed = (out / "kustomization.yaml").read_text().partition("resources:\n")[2]
    names = [line.removeprefix("- ") for line in listed.splitlines()]
    assert sorted([*names, "kustomization.yaml", ".postrender-files"]) == sorted(one.name for one in out.iterdir())
    # By bytes: each file is a piece of the stream, and together they are all that is no separator.
    rest = stream
    for name in sorted(names, key=lambda name: len((out / name).read_bytes()), reverse=True):
        data = (out / name).read_bytes()
        assert data in rest
        rest = rest.replace(data, b"", 1)
    assert {line for line in rest.decode().splitlines() if not line.startswith("#")} <= {"---", "", "...", "null"}
    # By value, to Helm and kubectl.
    files = [oracle.sigs((out / name).read_bytes().decode()) for name in names]
    wanted = [one for one in oracle.sigs_all(stream.decode()) if one is not None]
    assert sorted(map(exact, files)) == sorted(map(exact, wanted))
    # By value, to kustomize.
    built = oracle.v3_all(kustomized(out))
    assert sorted(map(exact, built)) == sorted(map(exact, oracle.v3_all(read_by_kustomize(stream, tmp_path / "whole"))))
    assert [one["kind"] for one in built] == [one["kind"] for one in flattened(files)]
    return names


CASES = ("plain", "hooks", "kept", "subchart", "anchors", "flow", "comments", "list", "crds")


@pytest.mark.parametrize("helm", VERSIONS)
@pytest.mark.parametrize("chart", CASES)
def test_a_chart(tmp_path: pathlib.Path, oracle: Oracle, helm: str, chart: str) -> None:
    words = [CHARTS / chart, "--release-name=release", "--output=out", "--include-crds"]
    done = build(*words, cwd=tmp_path, helm=helm)
    assert (done.returncode, done.stderr) == (0, b"")
    stream = render(template(helm, CHARTS / chart, "--include-crds", cwd=tmp_path)).data
    names = check(tmp_path / "out", stream, oracle, tmp_path)
    assert any(name.startswith("podgroup-") for name in names) or chart == "list"
    before = {one: one.read_bytes() for one in (tmp_path / "out").iterdir()}
    done = build(*words, "--check", cwd=tmp_path, helm=helm)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    done = build(*words, cwd=tmp_path, helm=helm)
    assert (done.returncode, done.stdout) == (0, b"out: nothing to change\n")
    assert {one: one.read_bytes() for one in (tmp_path / "out").iterdir()} == before


def test_definitions_come_first_and_only_when_asked_for(tmp_path: pathlib.Path) -> None:
    words = [CHARTS / "crds", "--release-name=release", "--output=out"]
    assert build(*words, "--include-crds", cwd=tmp_path).returncode == 0
    names = (tmp_path / "out/kustomization.yaml").read_text().partition("resources:\n- ")[2]
    assert names.startswith("customresourcedefinition-inferenceservices.ome.io.yaml\n")
    assert build(*words, cwd=tmp_path).returncode == 0
    assert not list((tmp_path / "out").glob("customresourcedefinition-*"))


@pytest.fixture
def chart(tmp_path: pathlib.Path) -> pathlib.Path:
    """A chart that shows what it is told, with a hook and a test."""
    folder = tmp_path / "chart"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: told\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text("a: {}\n")
    (folder / "templates/told.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: told\ndata:\n"
        "  release: {{ .Release.Name | quote }}\n  namespace: {{ .Release.Namespace | quote }}\n"
        "  kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}\n"
        '  has: {{ .Capabilities.APIVersions.Has "example.com/v1/Thing" | quote }}\n  a: {{ .Values.a | toJson | quote }}\n'
    )
    for name, hook in (("hook", "pre-install"), ("test", "test")):
        (folder / f"templates/{name}.yaml").write_text(
            f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  annotations: {{helm.sh/hook: {hook}}}\n"
        )
    return folder


@pytest.mark.parametrize("helm", ["3.19", "4.3"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_a_chart_is_told(
    tmp_path: pathlib.Path, oracle: Oracle, chart: pathlib.Path, helm: str, packed: bool
) -> None:
    source = chart
    if packed:
        source = tmp_path / "told-0.1.0.tgz"
        with tarfile.open(source, "w:gz") as archive:
            archive.add(chart, "told")
    (tmp_path / "v.yaml").write_text("a: {k: 1, m: 1, z: 1}\n")
    words = ["--release-name=qwen", "--namespace=llm", "--kube-version=1.34.2", "--api-versions=example.com/v1/Thing"]
    words += ["--values=v.yaml", "--set=a.m=2,a.l={p,q}", "--set-string=a.z=3"]
    done = build(source, "--output=out", *words, cwd=tmp_path, helm=helm)
    # The API list of the cluster lacks PodGroups, but none are made.
    assert (done.returncode, done.stderr) == (0, b"")
    told = oracle.sigs((tmp_path / "out/configmap-told.yaml").read_text())["data"]
    assert told == {
        "release": "qwen",
        "namespace": "llm",
        "kubernetes": "v1.34.2",
        "has": "true",
        "a": '{"k":1,"l":["p","q"],"m":2,"z":"3"}',
    }
    # A hook is kept, with its annotation; a test is nothing to deploy.
    assert sorted(one.name for one in (tmp_path / "out").glob("pod-*")) == ["pod-hook.yaml"]
    assert "helm.sh/hook: pre-install" in (tmp_path / "out/pod-hook.yaml").read_text()


@pytest.mark.parametrize("value", ["--post-renderer=touch", "; touch pwned", "$(touch pwned)", "a\nb: c", "-f", "'\"#"])
def test_a_value_stays_a_value(tmp_path: pathlib.Path, oracle: Oracle, chart: pathlib.Path, value: str) -> None:
    done = build(chart, "--release-name=r", "--output=out", f"--set-string=a.v={value}", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    told = oracle.sigs((tmp_path / "out/configmap-told.yaml").read_text())["data"]
    assert oracle.sigs(told["a"]) == {"v": value}
    assert sorted(one.name for one in tmp_path.iterdir() if one.name not in ("chart", "out")) == []


@pytest.mark.parametrize("name", ["--help", "-f", "a b", "a\nb", "../x", "A"])
def test_a_name_that_is_none(tmp_path: pathlib.Path, chart: pathlib.Path, name: str) -> None:
    done = build(chart, f"--release-name={name}", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(f"postrender: error: {name!r} is no name of a Helm release; ".encode())
    assert not (tmp_path / "out").exists()


def test_a_chart_that_fails_leaves_the_folder(tmp_path: pathlib.Path, chart: pathlib.Path) -> None:
    words = [chart, "--release-name=r", "--output=out"]
    assert build(*words, cwd=tmp_path).returncode == 0
    before = {one: one.read_bytes() for one in (tmp_path / "out").iterdir()}
    (chart / "templates/zz.yaml").write_text('{{ fail "half way" }}\n')
    for more in ([], ["--check"]):
        done = build(*words, *more, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"postrender: error: helm: ")
        assert b"half way" in done.stderr.splitlines()[0]
    assert {one: one.read_bytes() for one in (tmp_path / "out").iterdir()} == before


def test_an_empty_chart_leaves_the_folder(tmp_path: pathlib.Path, chart: pathlib.Path) -> None:
    words = [chart, "--release-name=r", "--output=out"]
    assert build(*words, cwd=tmp_path).returncode == 0
    shutil.rmtree(chart / "templates")
    done = build(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"renders to nothing" in done.stderr
    assert (tmp_path / "out/configmap-told.yaml").exists()


def test_a_gang_that_cannot_be_is_refused_where_it_stands(tmp_path: pathlib.Path) -> None:
    source = tmp_path / "chart"
    shutil.copytree(CHARTS / "plain", source)
    isvc = source / "templates/isvc.yaml"
    isvc.write_text(isvc.read_text().replace("size: 3", "size: three"))
    done = build(source, "--release-name=r", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert f"<{source}>:".encode() in done.stderr
    assert b"(plain/templates/isvc.yaml): InferenceService/pair: spec.engine.worker.size: is three" in done.stderr
    assert not (tmp_path / "out").exists()


SERVICE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: qwen   # a comment that kustomize drops
spec:
  engine:
    leader: {}
    worker: {size: 1}
"""


def test_a_kustomization(tmp_path: pathlib.Path, oracle: Oracle) -> None:
    source = tmp_path / "overlay"
    source.mkdir()
    (source / "service.yaml").write_text(SERVICE)
    (source / "kustomization.yaml").write_text("namePrefix: prod-\nnamespace: llm\nresources: [service.yaml]\n")
    done = build(source, "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    stream = render(kustomized(source).encode()).data
    names = check(tmp_path / "out", stream, oracle, tmp_path)
    assert names == ["podgroup-llm-prod-qwen-engine-0.yaml", "inferenceservice-llm-prod-qwen.yaml"]


def test_a_folder(tmp_path: pathlib.Path, oracle: Oracle) -> None:
    source = tmp_path / "plain"
    source.mkdir()
    (source / "b.yaml").write_text(SERVICE)
    (source / "a.json").write_text('{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}')
    done = build(source, "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert "# a comment that kustomize drops\n" in (tmp_path / "out/inferenceservice-qwen.yaml").read_text()
    files = [
        oracle.sigs((tmp_path / "out" / name).read_text())
        for name in ("namespace-llm.yaml", "inferenceservice-qwen.yaml")
    ]
    assert [one["metadata"]["name"] for one in files] == ["llm", "qwen"]
    assert [one["kind"] for one in oracle.v3_all(kustomized(tmp_path / "out"))] == [
        "Namespace",
        "PodGroup",
        "InferenceService",
    ]


def test_names_that_are_no_file_names(tmp_path: pathlib.Path, oracle: Oracle) -> None:
    source = tmp_path / "in"
    source.mkdir()
    objects = [
        {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name}}
        for group, kind in (("rbac.authorization.k8s.io", "ClusterRole"), ("example.com", "clusterrole"))
        for name in ("system:auth", "system-auth", "System:Auth", "../../x", "a" * 253)
    ]
    (source / "all.yaml").write_text("---\n".join(f"{json.dumps(one)}\n" for one in objects))
    done = build("in", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(list((tmp_path / "out").iterdir())) == len(objects) + 2
    assert sorted(map(exact, oracle.v3_all(kustomized(tmp_path / "out")))) == sorted(map(exact, objects))


def test_a_program_that_is_missing(tmp_path: pathlib.Path, chart: pathlib.Path) -> None:
    done = build(chart, "--release-name=r", "--output=out", cwd=tmp_path, POSTRENDER_HELM="helm-of-nobody")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"helm-of-nobody (POSTRENDER_HELM): there is no such program" in done.stderr
