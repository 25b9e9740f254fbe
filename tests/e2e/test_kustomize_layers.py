"""Where our function stands in kustomizations that stand on each other, and what becomes of names it has already made.

Outermost is right. Below, kustomize renames the PodGroup and not the label that names it, unless it is told of that
reference; and it renames the finished string. Run again further out, the function brings all of it to the final name.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import LABEL, PLUGINS, Content, Form, config_map, ganged, gangs, good, pod_group, service, write

REFERENCES = (PLUGINS / "namereference.yaml").read_text()
FUNCTION = {"transformers": ["gangs.yaml"]}
TOLD = {"configurations": ["namereference.yaml"]}
OVERLAY = {"namePrefix": "p-", "nameSuffix": "-x", "namespace": "models"}


def layers(form: Form, base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Content]:
    """Return a base with one service, and an overlay; each may have our function and the references beside it."""
    files: dict[str, Content] = {
        "base/kustomization.yaml": {"resources": ["llama.yaml"], **base},
        "base/llama.yaml": service("llama"),
        "overlay/kustomization.yaml": {"resources": ["../base"], **overlay},
    }
    for folder in ("base", "overlay"):
        files[f"{folder}/gangs.yaml"] = form.function()
        files[f"{folder}/namereference.yaml"] = REFERENCES
    return files


# What base and overlay say; the PodGroup that comes out, and the label that the service's pods have.
ROWS: dict[str, tuple[Mapping[str, Any], Mapping[str, Any], str, str]] = {
    "outermost, with a prefix": ({}, {**FUNCTION, "namePrefix": "pre-"}, "pre-llama-engine-0", "pre-llama-engine-0"),
    "in the base, and nothing else": (FUNCTION, {"namePrefix": "prod-"}, "prod-llama-engine-0", "llama-engine-0"),
    "in the base, told there": (
        {**FUNCTION, **TOLD},
        {"namePrefix": "prod-"},
        "prod-llama-engine-0",
        "prod-llama-engine-0",
    ),
    "in the base, told in the overlay": (
        FUNCTION,
        {**TOLD, "namePrefix": "prod-"},
        "prod-llama-engine-0",
        "prod-llama-engine-0",
    ),
    "in the base behind its own prefix and suffix": (
        {**FUNCTION, **TOLD, "namePrefix": "a-", "nameSuffix": "-v1"},
        {"namePrefix": "prod-", "namespace": "models"},
        "models/prod-a-llama-v1-engine-0",
        "prod-a-llama-v1-engine-0",
    ),
    "in the base, a suffix in the overlay": ({**FUNCTION, **TOLD}, OVERLAY, "models/p-llama-engine-0-x", "p-llama-engine-0-x"),
    "in both": (FUNCTION, {**FUNCTION, "namePrefix": "prod-"}, "prod-llama-engine-0", "prod-llama-engine-0"),
    "in both, told": (
        {**FUNCTION, **TOLD},
        {**FUNCTION, "namePrefix": "prod-"},
        "prod-llama-engine-0",
        "prod-llama-engine-0",
    ),
    "in both, a suffix in the overlay": (
        FUNCTION,
        {**FUNCTION, **OVERLAY},
        "models/p-llama-x-engine-0",
        "p-llama-x-engine-0",
    ),
    "in both, a suffix in the overlay, told": (
        {**FUNCTION, **TOLD},
        {**FUNCTION, **OVERLAY},
        "models/p-llama-x-engine-0",
        "p-llama-x-engine-0",
    ),
    "in both, prefixes in both": (
        {**FUNCTION, "namePrefix": "a-"},
        {**FUNCTION, **OVERLAY},
        "models/p-a-llama-x-engine-0",
        "p-a-llama-x-engine-0",
    ),
    "in both, and nothing is renamed": (FUNCTION, FUNCTION, "llama-engine-0", "llama-engine-0"),
}


@pytest.mark.parametrize("row", ROWS)
def test_the_group_and_the_label(row: str, form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    base, overlay, group, label = ROWS[row]
    folder = write(tmp_path, layers(form, base, overlay)) / "overlay"
    built = form.build(folder)
    assert gangs(good(built, reader)) == {"groups": [f"PodGroup/{group}"], "labels": [label]}
    assert form.build(folder) == built


@pytest.mark.parametrize("row", [row for row in ROWS if row.startswith(("in both", "outermost"))])
def test_run_on_final_names_the_group_is_whole(row: str, form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Also who it was made for, and its labels: as if it had not run before."""
    base, overlay, _, _ = ROWS[row]
    found = good(form.build(write(tmp_path, layers(form, base, overlay)) / "overlay"), reader)
    [(name, group)] = [(name, one) for name, one in found.items() if name.startswith("PodGroup/")]
    namespace = "models" if name.count("/") == 2 else ""
    final = name.split("/")[-1].removesuffix("-engine-0")
    [made] = [one for name, one in found.items() if name.startswith("InferenceService/")]
    wanted = ganged(service(final, namespace), final)
    assert (exact(group), exact(made)) == (exact(pod_group(final, namespace)), exact(wanted))


def test_the_label_of_the_service_is_told_too(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Below the outermost, what a PodGroup says of its service follows it as well."""
    files = layers(form, {**FUNCTION, **TOLD}, OVERLAY)
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert found["PodGroup/models/p-llama-engine-0-x"]["metadata"]["labels"] == {
        "component": "engine",
        "ome.io/inferenceservice": "p-llama-x",
        "ome.io/instance-index": "0",
        "ome.io/managed-by": "OMENative",
    }


def component(form: Form, *, told: bool) -> dict[str, Content]:
    """Return a base, a component with our function, and an overlay of both that renames."""
    kustomization = {"apiVersion": "kustomize.config.k8s.io/v1alpha1", "kind": "Component", **FUNCTION}
    return {
        "base/kustomization.yaml": {"resources": ["llama.yaml"]},
        "base/llama.yaml": [service("llama"), config_map("other")],
        "gangs/kustomization.yaml": {**kustomization, **(TOLD if told else {})},
        "gangs/gangs.yaml": form.function(),
        "gangs/namereference.yaml": REFERENCES,
        "overlay/kustomization.yaml": {"resources": ["../base"], "components": ["../gangs"], **OVERLAY},
    }


@pytest.mark.parametrize(("told", "label"), [(True, "p-llama-engine-0-x"), (False, "llama-engine-0")])
def test_a_component(told: bool, label: str, form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """It runs before its overlay renames: consistent if told, and not of the final shape."""
    found = good(form.build(write(tmp_path, component(form, told=told)) / "overlay"), reader)
    assert gangs(found) == {"groups": ["PodGroup/models/p-llama-engine-0-x"], "labels": [label]}


def test_a_component_and_outermost(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = component(form, told=True)
    files["overlay/kustomization.yaml"] = {"resources": ["../base"], "components": ["../gangs"], **OVERLAY, **FUNCTION}
    files["overlay/gangs.yaml"] = form.function("outermost")
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert gangs(found) == {"groups": ["PodGroup/models/p-llama-x-engine-0"], "labels": ["p-llama-x-engine-0"]}


def test_three_layers_each_with_our_function(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = layers(form, FUNCTION, {**FUNCTION, **OVERLAY})
    files["top/kustomization.yaml"] = {"resources": ["../overlay"], **FUNCTION, "namePrefix": "top-", "namespace": "other"}
    files["top/gangs.yaml"] = form.function()
    found = good(form.build(write(tmp_path, files) / "top"), reader)
    assert gangs(found) == {"groups": ["PodGroup/other/top-p-llama-x-engine-0"], "labels": ["top-p-llama-x-engine-0"]}
    assert exact(found["PodGroup/other/top-p-llama-x-engine-0"]) == exact(pod_group("top-p-llama-x", "other"))


def test_two_bases_of_one_service(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """One base under two names: a group each, also where the function ran in the base."""
    files: dict[str, Content] = {
        **layers(form, FUNCTION, {"namePrefix": "blue-"}),
        "green/kustomization.yaml": {"resources": ["../base"], "namePrefix": "green-"},
        "all/kustomization.yaml": {"resources": ["../overlay", "../green"], **FUNCTION},
        "all/gangs.yaml": form.function(),
    }
    found = good(form.build(write(tmp_path, files) / "all"), reader)
    names = ["blue-llama-engine-0", "green-llama-engine-0"]
    assert gangs(found) == {"groups": [f"PodGroup/{name}" for name in names], "labels": names}


def test_several_instances_in_both(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Each index keeps its own group, in whatever order they come."""
    files = layers(form, FUNCTION, {**FUNCTION, **OVERLAY})
    files["base/llama.yaml"] = service("llama", minReplicas=3)
    for name in ("base", "overlay"):
        files[f"{name}/gangs.yaml"] = form.function(accept=[*form.function()["spec"]["accept"], "several-instances"])
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    groups = [pod_group("p-llama-x", "models", index) for index in range(3)]
    assert exact([one for name, one in sorted(found.items()) if name.startswith("PodGroup/")]) == exact(groups)


def test_a_generated_group_is_patched_by_what_comes_after(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    patch = {
        "apiVersion": "builtin",
        "kind": "PatchTransformer",
        "metadata": {"name": "longer"},
        "target": {"kind": "PodGroup"},
        "patch": '[{"op": "replace", "path": "/spec/scheduleTimeoutSeconds", "value": 900}]',
    }
    files = layers(form, {}, {"transformers": ["gangs.yaml", "patch.yaml"]})
    files["overlay/patch.yaml"] = patch
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert found["PodGroup/llama-engine-0"]["spec"] == {"minMember": 2, "scheduleTimeoutSeconds": 900}


@pytest.mark.parametrize(("inline", "name"), [(False, "p-llama-engine-0"), (True, "llama-engine-0")])
def test_inline_configs_run_before_files(
    inline: bool, name: str, form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """Whatever their order in the list: a prefix by a file comes too late for a function that is inline."""
    prefix = {
        "apiVersion": "builtin",
        "kind": "PrefixTransformer",
        "metadata": {"name": "prefix"},
        "prefix": "p-",
        "fieldSpecs": [{"path": "metadata/name"}],
    }
    ours = json.dumps(form.function()) if inline else "gangs.yaml"
    files = layers(form, {}, {"transformers": ["prefix.yaml", ours]})
    files["overlay/prefix.yaml"] = prefix
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert gangs(found)["labels"] == [name]
