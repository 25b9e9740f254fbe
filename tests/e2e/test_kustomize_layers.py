"""Where our function stands in kustomizations that stand on each other, and what becomes of names it has already made.

Outermost is right. Below, kustomize renames the PodGroup and not the label that names it, unless it is told of that
reference; and it renames the finished string. Run again further out, the function brings all of it to the final name.
"""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import LABEL, PLUGINS, QUIET, Content, Form, config_map, ganged, gangs, good, pod_group, service, write

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


def builtin(kind: str, **said: Any) -> dict[str, Any]:
    """Return a transformer of kustomize's own, for the list in which ours stands."""
    return {"apiVersion": "builtin", "kind": kind, "metadata": {"name": kind.lower()}, **said}


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
    "in the base, a suffix in the overlay": (
        {**FUNCTION, **TOLD},
        OVERLAY,
        "models/p-llama-engine-0-x",
        "p-llama-engine-0-x",
    ),
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


def test_below_the_outermost_a_group_says_the_earlier_name_of_its_service(
    form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """References mend what the scheduler reads, and that alone."""
    files = layers(form, {**FUNCTION, **TOLD}, OVERLAY)
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    wanted = pod_group("llama", "models")
    wanted["metadata"]["name"] = "p-llama-engine-0-x"
    assert exact(found["PodGroup/models/p-llama-engine-0-x"]) == exact(wanted)


@pytest.mark.parametrize(
    ("base", "outermost", "labels"),
    [
        (FUNCTION, FUNCTION, ["llama-engine-0", "second-llama-engine-0"]),
        ({**FUNCTION, **TOLD}, {}, ["second-llama-engine-0", "second-llama-engine-0"]),
        ({**FUNCTION, **TOLD}, FUNCTION, ["second-llama-engine-0", "second-llama-engine-0"]),
    ],
    ids=["in both", "told in the base", "both"],
)
def test_a_base_under_its_own_name_and_under_another(
    base: Mapping[str, Any],
    outermost: Mapping[str, Any],
    labels: list[str],
    form: Form,
    reader: Oracle,
    tmp_path: pathlib.Path,
) -> None:
    """Told of the reference, kustomize takes the group of the other for the first: both services are in one, and nothing is
    said. It does so after all transformers, so that our running outermost as well does not help.
    """
    files: dict[str, Content] = {
        **layers(form, base, {"namePrefix": "second-"}),
        "all/kustomization.yaml": {"resources": ["../base", "../overlay"], **outermost},
        "all/gangs.yaml": form.function(),
    }
    found = good(form.build(write(tmp_path, files) / "all"), reader)
    groups = ["PodGroup/llama-engine-0", "PodGroup/second-llama-engine-0"]
    assert gangs(found) == {"groups": groups, "labels": labels}


def test_a_base_twice_and_then_a_suffix(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Every service has its own group; one of the base that cannot be told from another's is left, and it is said."""
    files: dict[str, Content] = {
        **layers(form, FUNCTION, {"namePrefix": "second-"}),
        "all/kustomization.yaml": {"resources": ["../base", "../overlay"], "nameSuffix": "-x", **FUNCTION},
        "all/gangs.yaml": form.function(),
    }
    built = form.build(write(tmp_path, files) / "all")
    found = built.objects(reader)
    for name in ("llama-x", "second-llama-x"):
        assert exact(found[f"InferenceService/{name}"]) == exact(ganged(service(name), name))
        assert exact(found.pop(f"PodGroup/{name}-engine-0")) == exact(pod_group(name))
    left = [name for name in found if name.startswith("PodGroup/")]
    said = re.findall(r"^postrender: warning: \S+ (\S+): .* \[stale-podgroup\]$", built.stderr, re.MULTILINE)
    assert sorted(said) == sorted(left)


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
    files["top/kustomization.yaml"] = {
        "resources": ["../overlay"],
        **FUNCTION,
        "namePrefix": "top-",
        "namespace": "other",
    }
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


def test_what_comes_after_reaches_our_groups(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    patch = '[{"op": "replace", "path": "/spec/scheduleTimeoutSeconds", "value": 900}]'
    files = layers(
        form,
        {},
        {
            "transformers": ["gangs.yaml", "patch.yaml", "label.yaml"],
            # These run before us.
            "labels": [{"pairs": {"early": "yes"}}],
        },
    )
    files["overlay/patch.yaml"] = builtin("PatchTransformer", target={"kind": "PodGroup"}, patch=patch)
    fields = [{"path": "metadata/labels", "create": True}]
    files["overlay/label.yaml"] = builtin("LabelTransformer", labels={"team": "ml"}, fieldSpecs=fields)
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    wanted = pod_group("llama")
    wanted["metadata"]["labels"]["team"] = "ml"
    wanted["spec"]["scheduleTimeoutSeconds"] = 900
    assert exact(found["PodGroup/llama-engine-0"]) == exact(wanted)


@pytest.mark.parametrize(("inline", "name"), [(False, "p-llama-engine-0"), (True, "llama-engine-0")])
def test_inline_configs_run_before_files(
    inline: bool, name: str, form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """Whatever their order in the list: a prefix by a file comes too late for a function that is inline."""
    ours = json.dumps(form.function()) if inline else "gangs.yaml"
    files = layers(form, {}, {"transformers": ["prefix.yaml", ours]})
    files["overlay/prefix.yaml"] = builtin("PrefixTransformer", prefix="p-", fieldSpecs=[{"path": "metadata/name"}])
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert gangs(found)["labels"] == [name]


def accepting(form: Form, *codes: str, **spec: Any) -> dict[str, Any]:
    """Return a config that also accepts these."""
    return form.function(accept=[*QUIET, *codes], **spec)


def groups_of(objects: Mapping[str, Any]) -> list[Any]:
    return [one for name, one in sorted(objects.items()) if name.startswith("PodGroup/")]


def test_a_patch_of_the_overlay_counts_outermost(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """What ran in the base has seen two pods, and what is deployed has four."""
    patch = '[{"op": "replace", "path": "/spec/engine/worker/size", "value": 3}]'
    patches = {"patches": [{"target": {"kind": "InferenceService"}, "patch": patch}]}
    found = good(
        form.build(write(tmp_path / "both", layers(form, FUNCTION, {**FUNCTION, **patches})) / "overlay"), reader
    )
    assert exact(groups_of(found)) == exact([pod_group("llama", members=4)])
    found = good(form.build(write(tmp_path / "base", layers(form, FUNCTION, patches)) / "overlay"), reader)
    assert exact(groups_of(found)) == exact([pod_group("llama", members=2)])


def test_a_service_that_the_overlay_deletes(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Its group is not ours to delete, for there is no telling who else sees it; it is said."""
    delete = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "llama"},
        "$patch": "delete",
    }
    files = layers(form, FUNCTION, {**FUNCTION, "patches": [{"patch": json.dumps(delete)}]})
    built = form.build(write(tmp_path, files) / "overlay")
    assert sorted(built.objects(reader)) == ["PodGroup/llama-engine-0"]
    assert "[stale-podgroup]" in built.stderr


def test_fewer_groups_outermost_than_in_the_base(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """A spare one of the base is left, and it is said."""
    files = layers(form, FUNCTION, {**FUNCTION, "namePrefix": "p-"})
    files["base/gangs.yaml"] = form.function(spares=1)
    built = form.build(write(tmp_path, files) / "overlay")
    found = built.objects(reader)
    assert exact(found["PodGroup/p-llama-engine-0"]) == exact(pod_group("p-llama"))
    assert [name for name in found if name.startswith("PodGroup/")] == [
        "PodGroup/p-llama-engine-0",
        "PodGroup/p-llama-engine-1",
    ]
    assert "PodGroup/p-llama-engine-1" in built.stderr
    assert "[stale-podgroup]" in built.stderr


def test_more_groups_outermost_than_in_the_base(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = layers(form, FUNCTION, {**FUNCTION, **OVERLAY})
    files["overlay/gangs.yaml"] = form.function(spares=2)
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert exact(groups_of(found)) == exact([pod_group("p-llama-x", "models", index) for index in range(3)])


def test_twice_in_one_kustomization(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = layers(form, {}, {"transformers": ["gangs.yaml", "again.yaml"], **OVERLAY})
    files["overlay/again.yaml"] = form.function("again")
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert exact(groups_of(found)) == exact([pod_group("p-llama-x", "models")])


def test_engine_and_decoder_in_both(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    made = service("llama")
    made["spec"]["decoder"] = {"leader": {}, "worker": {"size": 3}}
    files = layers(form, FUNCTION, {**FUNCTION, **OVERLAY})
    files["base/llama.yaml"] = made
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert {one["metadata"]["name"]: one["spec"]["minMember"] for one in groups_of(found)} == {
        "p-llama-x-decoder-0": 4,
        "p-llama-x-engine-0": 2,
    }
    spec = found["InferenceService/models/p-llama-x"]["spec"]
    assert spec["decoder"]["labels"] == {LABEL: "p-llama-x-decoder-0"}
    assert spec["engine"]["labels"] == {LABEL: "p-llama-x-engine-0"}


# A name of 62 characters: OME cuts what becomes longer than 63 and appends a hash, and a prefix is one more reason to.
LONG = "a" * 62


def test_a_long_name_in_both_is_as_if_run_outermost_alone(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    found = []
    for name, base in (("both", FUNCTION), ("outermost", {})):
        files = layers(form, base, {**FUNCTION, "namePrefix": "p-", "namespace": "models"})
        for folder in ("base", "overlay"):
            files[f"{folder}/gangs.yaml"] = accepting(form, "name-too-long")
        files["base/llama.yaml"] = service(LONG[:50])
        found.append(good(form.build(write(tmp_path / name, files) / "overlay"), reader))
    assert exact(found[0]) == exact(found[1])
    [group] = groups_of(found[0])
    assert len(group["metadata"]["name"]) <= 63


@pytest.mark.parametrize("replicas", ["", "policy", "whole"])
def test_below_1_3_in_both_is_as_if_run_outermost_alone(
    replicas: str, form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """OME 1.2's sets have names of their own, and one group more in an update; with several replicas pods have other labels."""
    found = []
    for name, base in (("both", FUNCTION), ("outermost", {})):
        files = layers(form, base, {**FUNCTION, **OVERLAY})
        how = {"replicas": replicas} if replicas else {}
        for folder in ("base", "overlay"):
            files[f"{folder}/gangs.yaml"] = accepting(form, "policy-needed", ome="1.2", **how)
        files["base/llama.yaml"] = service("llama", minReplicas=2 if replicas else 1)
        found.append(good(form.build(write(tmp_path / name, files) / "overlay"), reader))
    assert exact(found[0]) == exact(found[1])
    wanted = {"": ["-0"], "policy": ["-0", "-1", "-2"], "whole": [""]}[replicas]
    assert [one["metadata"]["name"] for one in groups_of(found[0])] == [f"lws-p-llama-x-engine{end}" for end in wanted]


def test_the_policy_below_the_outermost_is_broken(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Its label holds a name less the index, which no reference mends."""
    files = layers(form, {**FUNCTION, **TOLD}, {"namePrefix": "p-"})
    files["base/gangs.yaml"] = accepting(form, "policy-needed", ome="1.2", replicas="policy")
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert found["InferenceService/p-llama"]["spec"]["engine"]["labels"]["postrender/gang"] == "lws-llama-engine"
    assert "PodGroup/p-lws-llama-engine-0" in found


def test_what_was_made_below_without_knowing_of_1_3_is_left_over_and_said(
    form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    files = layers(form, FUNCTION, {**FUNCTION, "namePrefix": "p-"})
    files["overlay/gangs.yaml"] = form.function(ome="1.3")
    built = form.build(write(tmp_path / "warned", files) / "overlay")
    assert "PodGroup/p-llama-engine-0" in built.objects(reader)
    assert "[stale-podgroup]" in built.stderr
    files["overlay/gangs.yaml"] = form.function(ome="1.3", strict=True)
    assert form.build(write(tmp_path / "strict", files) / "overlay").code == 1


def test_sets_of_the_stream_in_both_are_as_if_run_outermost_alone(
    form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    made = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "vllm"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template}},
    }
    found = []
    for name, base in (("both", FUNCTION), ("outermost", {})):
        files = layers(form, base, {**FUNCTION, **OVERLAY})
        for folder in ("base", "overlay"):
            files[f"{folder}/gangs.yaml"] = form.function(leaderworkersets=True)
        files["base/llama.yaml"] = made
        found.append(good(form.build(write(tmp_path / name, files) / "overlay"), reader))
    assert exact(found[0]) == exact(found[1])
    assert sorted(found[0]) == ["LeaderWorkerSet/models/p-vllm-x", "PodGroup/models/p-vllm-x-0"]
    labels = found[0]["LeaderWorkerSet/models/p-vllm-x"]["spec"]["leaderWorkerTemplate"]["workerTemplate"]["metadata"]
    assert labels["labels"] == {"app": "x", LABEL: "p-vllm-x-0"}


def test_a_new_name_that_another_service_had(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """`a` becomes `b-a`, beside a service of the overlay that is called so in another namespace, and one called `a`."""
    files = layers(form, FUNCTION, {"namePrefix": "b-", "namespace": "one"})
    files["base/llama.yaml"] = service("a")
    files["top/kustomization.yaml"] = {"resources": ["../overlay", "more.yaml"], **FUNCTION}
    files["top/more.yaml"] = [service("b-a", "two", workers=2), service("a", "one", workers=3)]
    files["top/gangs.yaml"] = accepting(form, "same-name-two-namespaces")
    found = good(form.build(write(tmp_path, files) / "top"), reader)
    wanted = [pod_group("a", "one", members=4), pod_group("b-a", "one"), pod_group("b-a", "two", members=3)]
    assert exact(groups_of(found)) == exact(wanted)
    assert gangs(found)["labels"] == ["a-engine-0", "b-a-engine-0", "b-a-engine-0"]


def test_names_that_change_places(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """`a` becomes `x-a`, and there was an `x-a`, which becomes `x-x-a`: each keeps its own group."""
    files = layers(form, FUNCTION, {**FUNCTION, "namePrefix": "x-"})
    files["base/llama.yaml"] = [service("a"), service("x-a", workers=3)]
    found = good(form.build(write(tmp_path, files) / "overlay"), reader)
    assert exact(groups_of(found)) == exact([pod_group("x-a"), pod_group("x-x-a", members=4)])
    assert gangs(found)["labels"] == ["x-a-engine-0", "x-x-a-engine-0"]


def test_below_the_outermost_a_label_may_become_too_long(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """kustomize puts a prefix before a finished name, and cuts nothing; run on the final name, it is cut as OME does."""
    made = {"namePrefix": "production-"}
    lengths = {}
    for name, base, overlay in (("below", {**FUNCTION, **TOLD}, made), ("outermost", {}, {**FUNCTION, **made})):
        files = layers(form, base, overlay)
        files["base/llama.yaml"] = service("a" * 50)
        for folder in ("base", "overlay"):
            files[f"{folder}/gangs.yaml"] = accepting(form, "name-too-long")
        found = good(form.build(write(tmp_path / name, files) / "overlay"), reader)
        [label] = gangs(found)["labels"]
        assert gangs(found)["groups"] == [f"PodGroup/{label}"]
        lengths[name] = len(label)
    assert lengths == {"below": len("production-") + 50 + len("-engine-0"), "outermost": 63}
