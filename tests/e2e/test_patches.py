"""`postrender patches` under the real kustomize: patched, a stream is what a render of it is.

Flux's helm-controller hands its post-renderers' patches to kustomize's own library, so they are tried on kustomize.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import jsonpatch
import pytest
import yaml

from postrender import render
from postrender.options import DEFAULTS, Options
from tests.oracles.client import Oracle, exact

from .test_build import ACCEPT, CASES, flattened, kustomized, read_by_kustomize, run, template
from .test_helm import BIN, CHARTS, SCRIPT

FORMS = ("flux", "kustomize")


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    for name in ("kustomize", "helm-3.19", "helm-4.3"):
        assert (BIN / name).exists(), "run 'make e2e': it brings the programs"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


def patched(stream: bytes, form: str, folder: pathlib.Path, *words: str) -> str:
    """What kustomize makes of a stream with our patches and PodGroups, from the files as they are meant to be used."""
    (folder / "stream.yaml").write_bytes(stream)
    done = run(
        SCRIPT,
        "patches",
        ACCEPT,
        f"--form={form}",
        "--release-name=qwen",
        "--output=gangs",
        *words,
        "stream.yaml",
        cwd=folder,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    held: dict[str, Any] = {"sortOptions": {"order": "fifo"}, "resources": ["stream.yaml"]}
    if form == "kustomize":
        held["components"] = ["gangs"]
    else:
        held["resources"].append("gangs")
        release = yaml.safe_load((folder / "gangs/helmrelease.yaml").read_text())
        (renderer,) = release["spec"]["postRenderers"]
        held |= renderer["kustomize"]
    (folder / "kustomization.yaml").write_text(json.dumps(held))
    return kustomized(folder)


def check(stream: bytes, form: str, oracle: Oracle, folder: pathlib.Path, options: Options, *words: str) -> list[Any]:
    """Hold what kustomize makes of the patches against what it makes of a render; return the objects."""
    found = oracle.v3_all(patched(stream, form, folder, *words))
    wanted = oracle.v3_all(read_by_kustomize(render(stream, options).data, folder / "rendered"))
    assert sorted(map(exact, found)) == sorted(map(exact, wanted))
    return found


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("helm", ["3.19", "4.3"])
@pytest.mark.parametrize("chart", CASES)
def test_a_chart(tmp_path: pathlib.Path, oracle: Oracle, chart: str, helm: str, form: str) -> None:
    found = check(template(helm, CHARTS / chart, cwd=tmp_path), form, oracle, tmp_path, DEFAULTS)
    assert sum(one["kind"] == "PodGroup" for one in found) > 0


def service(name: str, namespace: str = "", engine: str = "", group: str = "ome.io") -> str:
    where = f"  namespace: {namespace}\n" if namespace else ""
    return (
        f"apiVersion: {group}/v1beta1\nkind: InferenceService\nmetadata:\n  name: {name}\n{where}"
        f"spec:\n  engine:\n    leader: {{}}\n    worker: {{size: 1}}\n{engine}"
    )


STREAMS = {
    # Names of which one would match another as a regular expression that is not anchored; another group; namespaces.
    "names": [
        service("a"),
        service("aa"),
        service("a-b"),
        service("a", "x"),
        service("a", "xx"),
        service("a", group="serving.kserve.io"),
    ],
    "labels": [
        service("one", engine="    labels:\n"),
        service("two", engine="    labels: {}\n"),
        service("three", engine="    labels: {a~b: c, d/e: f}\n"),
        service("four", engine="    labels: {scheduling.x-k8s.io/pod-group: four-engine-1}\n"),
    ],
    "a List": ["apiVersion: v1\nkind: List\nitems:\n- " + service("one").replace("\n", "\n  ").rstrip() + "\n"],
    "JSON": [json.dumps(yaml.safe_load(service("one"))) + "\n"],
    "anchors": [
        service(
            "one", engine="    labels: *all\n  decoder:\n    leader: {}\n    worker: {size: 1}\n    labels: *all\n"
        ).replace("spec:", "  labels: &all {a: b}\nspec:")
    ],
    "a PodGroup of ours that must change": [
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata:\n  name: one-engine-0\n"
        "  annotations: {postrender/for: InferenceService/one, old: one}\nspec: {minMember: 9, minResources: {cpu: 1}}\n",
        service("one"),
    ],
    "two runs": [render(service("one").encode()).data.decode()],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream(tmp_path: pathlib.Path, oracle: Oracle, name: str, form: str) -> None:
    options = DEFAULTS._replace(scheduler_name="ome-scheduler", scheduler_has_topology_key=True)
    words = ["--scheduler-name=ome-scheduler", "--scheduler-has-topology-key", "--accept=same-name-two-namespaces"]
    stream = "---\n".join(STREAMS[name]).encode()
    check(stream, form, oracle, tmp_path, options, *words)


@pytest.mark.parametrize("name", STREAMS)
def test_operations_by_another_reader(tmp_path: pathlib.Path, oracle: Oracle, name: str) -> None:
    """The operations of each target, made on its object as Helm and kubectl read it, by the library jsonpatch."""
    stream = "---\n".join(STREAMS[name])
    patched(stream.encode(), "kustomize", tmp_path, "--accept=same-name-two-namespaces")
    patches = yaml.safe_load((tmp_path / "gangs/kustomization.yaml").read_text())["patches"]
    objects = flattened(oracle.sigs_all(stream))
    for patch in patches:
        target = patch["target"]
        (number,) = [
            number
            for number, one in enumerate(objects)
            if one["apiVersion"].startswith(target["group"].replace("[.]", ".") + "/")
            and (one["kind"], one["metadata"]["name"]) == (target["kind"], target["name"])
            and target.get("namespace", "default") == one["metadata"].get("namespace", "default")
        ] or [None]
        objects[number] = jsonpatch.apply_patch(objects[number], oracle.sigs(patch["patch"]))
    wanted = flattened(oracle.sigs_all(render(stream.encode()).data.decode()))
    made = [one for one in oracle.sigs_all((tmp_path / "gangs/podgroups.yaml").read_text()) if one]
    assert sorted(map(exact, [*objects, *made])) == sorted(map(exact, wanted))


def test_the_release_takes_its_patches_in(tmp_path: pathlib.Path, oracle: Oracle) -> None:
    """helmrelease.yaml is a patch for the HelmRelease, whatever that is called."""
    patched(service("qwen").encode(), "flux", tmp_path)
    (tmp_path / "release.yaml").write_text(
        "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: qwen, namespace: llm}\nspec: {interval: 10m}\n"
    )
    target = {"kind": "HelmRelease", "name": "qwen"}
    held = {"resources": ["release.yaml"], "patches": [{"path": "gangs/helmrelease.yaml", "target": target}]}
    (tmp_path / "kustomization.yaml").write_text(json.dumps(held))
    (release,) = oracle.v3_all(kustomized(tmp_path))
    assert release["metadata"] == {"name": "qwen", "namespace": "llm"}
    assert release["spec"]["interval"] == "10m"
    (patch,) = release["spec"]["postRenderers"][0]["kustomize"]["patches"]
    assert patch["target"] == {"group": "ome[.]io", "kind": "InferenceService", "name": "qwen"}
    assert oracle.sigs(patch["patch"]) == [
        {
            "op": "add",
            "path": "/spec/engine/labels",
            "value": {"scheduling.x-k8s.io/pod-group": "qwen-engine-0"},
        }
    ]


def test_flux_applies_podgroups_alone(tmp_path: pathlib.Path, oracle: Oracle) -> None:
    patched(service("qwen").encode(), "flux", tmp_path)
    assert [one["kind"] for one in oracle.v3_all(kustomized(tmp_path / "gangs"))] == ["PodGroup"]
