"""What is shipped for kustomize, each file as it stands, in builds of the real kustomize."""

from __future__ import annotations

import pathlib
import shutil
from typing import Any

import pytest
import yaml

from tests.oracles.client import Oracle, exact

from .kustomize import (
    IMAGE,
    LABEL,
    LOCAL,
    PLUGINS,
    QUIET,
    Container,
    Content,
    Exec,
    Form,
    config_map,
    ganged,
    gangs,
    pod_group,
    service,
    write,
)

FILES = sorted(path.name for path in PLUGINS.glob("*.yaml"))
CONFIGS = [name for name in FILES if name.startswith(("transformer", "validator"))]
# What the shipped files do not accept, as they know no cluster.
ACCEPTED = ",".join(QUIET)


def shipped(*names: str) -> dict[str, Content]:
    return {name: (PLUGINS / name).read_text() for name in names}


@pytest.fixture
def program(tmp_path_factory: pytest.TempPathFactory) -> Exec:
    form = Exec(tmp_path_factory.mktemp("exec"))
    form.environ["POSTRENDER_ACCEPT"] = ACCEPTED
    return form


def build(
    form: Form, folder: pathlib.Path, kustomization: dict[str, Any], files: dict[str, Content], reader: Oracle
) -> Any:
    return form.build(write(folder, {"kustomization.yaml": kustomization, **files})).objects(reader)


def test_the_transformer_as_a_program(program: Exec, reader: Oracle, tmp_path: pathlib.Path) -> None:
    kustomization = {"resources": ["all.yaml"], "namePrefix": "p-", "transformers": ["transformer-exec.yaml"]}
    files = {"all.yaml": service("qwen"), **shipped("transformer-exec.yaml")}
    found = build(program, tmp_path, kustomization, files, reader)
    assert gangs(found) == {"groups": ["PodGroup/p-qwen-engine-0"], "labels": ["p-qwen-engine-0"]}


def test_the_transformer_as_a_container(container: Container, reader: Oracle, tmp_path: pathlib.Path) -> None:
    kustomization = {"resources": ["all.yaml"], "namePrefix": "p-", "transformers": ["transformer-container.yaml"]}
    files = {"all.yaml": service("qwen"), **shipped("transformer-container.yaml")}
    found = build(container, tmp_path, kustomization, files, reader)
    assert gangs(found) == {"groups": ["PodGroup/p-qwen-engine-0"], "labels": ["p-qwen-engine-0"]}
    [call] = container.calls()
    assert call.argv[-1] == IMAGE


def test_the_validator(program: Exec, reader: Oracle, tmp_path: pathlib.Path) -> None:
    kustomization = {
        "resources": ["all.yaml"],
        "transformers": ["transformer-exec.yaml"],
        "validators": ["validator-exec.yaml"],
    }
    files = {"all.yaml": service("qwen"), **shipped("transformer-exec.yaml", "validator-exec.yaml")}
    found = build(program, tmp_path, kustomization, files, reader)
    assert gangs(found) == {"groups": ["PodGroup/qwen-engine-0"], "labels": ["qwen-engine-0"]}
    # It is strict: a warning that nobody accepts fails the build.
    built = program.build(tmp_path, POSTRENDER_ACCEPT="runtime-unresolved,surge-without-spare")
    assert (built.code, built.stdout) == (1, "")
    assert "[ome-not-said]" in built.stderr


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_among_resources_does_not_come_out(
    name: str, program: Exec, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    found = build(
        program, tmp_path, {"resources": ["c.yaml", name]}, {"c.yaml": config_map("c"), **shipped(name)}, reader
    )
    assert sorted(found) == ["ConfigMap/c"]


def test_no_two_configs_collide() -> None:
    """Two of one name in one kustomization do; one of the transformers is used at a time."""
    names = {name: yaml.safe_load((PLUGINS / name).read_text())["metadata"]["name"] for name in CONFIGS}
    assert names["transformer-exec.yaml"] != names["validator-exec.yaml"]


def test_the_folder_is_a_component(program: Exec, reader: Oracle, tmp_path: pathlib.Path) -> None:
    shutil.copytree(PLUGINS, tmp_path / "kustomize")
    kustomization = {"resources": ["all.yaml"], "components": ["../kustomize"], "namePrefix": "p-", "nameSuffix": "-x"}
    found = build(program, tmp_path / "overlay", kustomization, {"all.yaml": service("llama")}, reader)
    assert gangs(found) == {"groups": ["PodGroup/p-llama-engine-0-x"], "labels": ["p-llama-engine-0-x"]}


# References.


def test_every_place_that_names_a_group(program: Exec, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """And a name that is not in the build stays."""
    template = {"metadata": {"labels": {LABEL: "g", "other": "g"}}}
    everywhere = service("a", labels={LABEL: "g"})
    everywhere["metadata"]["labels"] = {LABEL: "g"}
    everywhere["spec"]["decoder"] = {"labels": {LABEL: "g"}}
    sets = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "b"},
        "spec": {"leaderWorkerTemplate": {"size": 2, "leaderTemplate": template, "workerTemplate": template}},
    }
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "c"}, "spec": {"template": template}}
    elsewhere = service("d", labels={LABEL: "not-here"})
    group = {**pod_group("g"), "metadata": {"name": "g"}}
    kustomization = {"resources": ["all.yaml"], "namePrefix": "p-", "configurations": ["namereference.yaml"]}
    files = {"all.yaml": [everywhere, sets, job, elsewhere, group], **shipped("namereference.yaml")}
    found = build(program, tmp_path, kustomization, files, reader)
    renamed = {"metadata": {"labels": {LABEL: "p-g", "other": "g"}}}
    service_found = found["InferenceService/p-a"]
    assert service_found["metadata"]["labels"] == {LABEL: "p-g"}
    assert service_found["spec"]["engine"]["labels"] == service_found["spec"]["decoder"]["labels"] == {LABEL: "p-g"}
    templates = found["LeaderWorkerSet/p-b"]["spec"]["leaderWorkerTemplate"]
    assert (templates["leaderTemplate"], templates["workerTemplate"]) == (renamed, renamed)
    assert found["Job/p-c"]["spec"]["template"] == renamed
    assert found["InferenceService/p-d"]["spec"]["engine"]["labels"] == {LABEL: "not-here"}


def ome(kind: str, name: str, **annotations: str) -> dict[str, Any]:
    metadata = {"name": name, **({"annotations": annotations} if annotations else {})}
    spec = {"engineConfig": {"leader": {}, "worker": {"size": 1}}} if kind.endswith("Runtime") else {}
    return {"apiVersion": "ome.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}


@pytest.mark.parametrize("runtime", ["ServingRuntime", "ClusterServingRuntime"])
@pytest.mark.parametrize("model", ["BaseModel", "ClusterBaseModel"])
def test_ome_names_follow(runtime: str, model: str, program: Exec, reader: Oracle, tmp_path: pathlib.Path) -> None:
    made = service("qwen")
    made["spec"]["runtime"] = {"name": "two", "kind": runtime}
    made["spec"]["model"] = {"name": "base", "kind": model, "fineTunedWeights": ["tuned", "of-the-cluster"]}
    objects = [made, ome(runtime, "two"), ome(model, "base"), ome("FineTunedWeight", "tuned")]
    files = {"all.yaml": objects, **shipped("namereference-ome.yaml", "transformer-exec.yaml")}
    kustomization = {
        "resources": ["all.yaml"],
        "namePrefix": "p-",
        "configurations": ["namereference-ome.yaml"],
        "transformers": ["transformer-exec.yaml"],
    }
    found = build(program, tmp_path, kustomization, files, reader)
    wanted = ganged({**made, "metadata": {"name": "p-qwen"}}, "p-qwen")
    wanted["spec"]["runtime"]["name"] = "p-two"
    wanted["spec"]["model"] |= {"name": "p-base", "fineTunedWeights": ["p-tuned", "of-the-cluster"]}
    assert exact(found["InferenceService/p-qwen"]) == exact(wanted)
    assert exact(found["PodGroup/p-qwen-engine-0"]) == exact(pod_group("p-qwen"))


@pytest.mark.parametrize(("told", "name"), [(False, "two"), (True, "p-two")])
def test_a_local_config_runtime_that_is_renamed(
    told: bool, name: str, program: Exec, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """The trap: told of the reference, kustomize makes the service name a runtime that never comes out."""
    made = {**service("qwen"), "spec": {"runtime": {"name": "two", "kind": "ServingRuntime"}, "engine": {}}}
    files = {
        "all.yaml": [made, ome("ServingRuntime", "two", **{LOCAL: "true"})],
        **shipped("namereference-ome.yaml", "transformer-exec.yaml"),
    }
    kustomization = {"resources": ["all.yaml"], "namePrefix": "p-", "transformers": ["transformer-exec.yaml"]}
    if told:
        kustomization["configurations"] = ["namereference-ome.yaml"]
    found = build(program, tmp_path, kustomization, files, reader)
    assert sorted(found) == ["InferenceService/p-qwen", "PodGroup/p-qwen-engine-0"]
    assert found["InferenceService/p-qwen"]["spec"]["runtime"]["name"] == name
