"""Behind the real kustomize, started as a program and as a container: what a build comes to with us, held against what it
comes to without us, for each place where a function may stand.
"""

from __future__ import annotations

import pathlib
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import LABEL, LOCAL, QUIET, Form, config_map, ganged, gangs, good, pod_group, service, write

# The outermost kustomization, where we belong.

DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "web", "image": "web", "envFrom": [{"configMapRef": {"name": "settings"}}]}],
            },
        },
    },
}
LAYERS = {
    "base/kustomization.yaml": {
        "resources": ["all.yaml"],
        "namePrefix": "a-",
        "configMapGenerator": [{"name": "settings", "literals": ["port=8080"]}],
    },
    "base/all.yaml": [service("qwen", minReplicas=1), DEPLOYMENT, config_map("plain", note="yes", size="1e3")],
    "kustomization.yaml": {
        "resources": ["base"],
        "namePrefix": "prod-",
        "nameSuffix": "-v1",
        "namespace": "models",
        "labels": [{"pairs": {"team": "ml"}, "includeSelectors": False}],
        "images": [{"name": "web", "newTag": "1.2"}],
    },
}


def outermost(form: Form, files: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Return a kustomization with our function in its outermost layer."""
    root = {**files["kustomization.yaml"], "transformers": ["gangs.yaml"]}
    return {**files, "kustomization.yaml": root, "gangs.yaml": form.function(**spec)}


def test_outermost_every_name_is_final(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    without = form.build(write(tmp_path / "without", LAYERS))
    folder = write(tmp_path / "with", outermost(form, LAYERS))
    built = form.build(folder)
    wanted = good(without, reader)
    name = "prod-a-qwen-v1"
    wanted[f"InferenceService/models/{name}"] = ganged(wanted[f"InferenceService/models/{name}"], name)
    wanted[f"PodGroup/models/{name}-engine-0"] = pod_group(name, "models")
    assert exact(good(built, reader)) == exact(wanted)
    # What is not ours is the same text too, and ours comes last.
    *others, ours = built.texts()
    assert "kind: PodGroup\n" in ours
    assert [one for one in others if LABEL not in one] == [
        one for one in without.texts() if "kind: InferenceService\n" not in one
    ]
    assert form.build(folder) == built


RUNTIMES = [
    {
        "apiVersion": "ome.io/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"engineConfig": {"leader": {}, "worker": {"size": workers}}},
    }
    for kind, name, workers in (("ServingRuntime", "near", 1), ("ClusterServingRuntime", "wide", 3))
]


def by_runtime(name: str, runtime: str, kind: str) -> dict[str, Any]:
    made = service(name)
    return {**made, "spec": {"runtime": {"name": runtime, "kind": kind}, "engine": {"minReplicas": 1}}}


def test_runtimes_are_found_by_their_earlier_names(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """A prefix renames them and not who names them; `namespace:` is put on cluster-wide kinds too."""
    files = {
        "base/kustomization.yaml": {"resources": ["all.yaml"], "namePrefix": "a-"},
        "base/all.yaml": [
            by_runtime("qwen", "near", "ServingRuntime"),
            by_runtime("llama", "wide", "ClusterServingRuntime"),
            *RUNTIMES,
        ],
        "kustomization.yaml": {"resources": ["base"], "namePrefix": "prod-", "namespace": "models"},
    }
    found = good(form.build(write(tmp_path, outermost(form, files))), reader)
    assert found["ClusterServingRuntime/models/prod-a-wide"]["metadata"]["namespace"] == "models"
    groups = [pod_group("prod-a-llama", "models", members=4), pod_group("prod-a-qwen", "models", members=2)]
    assert exact([one for name, one in sorted(found.items()) if name.startswith("PodGroup")]) == exact(groups)
    assert gangs(found)["labels"] == ["prod-a-llama-engine-0", "prod-a-qwen-engine-0"]


def test_a_local_config_runtime_is_read_and_a_local_config_service_is_not(
    form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    local = {LOCAL: "true"}
    [runtime, _] = RUNTIMES
    hidden = service("hidden")
    files = {
        "all.yaml": [
            by_runtime("qwen", "near", "ServingRuntime"),
            {**runtime, "metadata": {"name": "near", "annotations": local}},
            {**hidden, "metadata": {"name": "hidden", "annotations": local}},
        ],
        "kustomization.yaml": {"resources": ["all.yaml"]},
    }
    found = good(form.build(write(tmp_path, outermost(form, files))), reader)
    assert sorted(found) == ["InferenceService/qwen", "PodGroup/qwen-engine-0"]


def test_one_name_in_two_namespaces(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = {
        "all.yaml": [service("qwen", "a"), service("qwen", "b", workers=3)],
        "kustomization.yaml": {"resources": ["all.yaml"], "namePrefix": "p-"},
    }
    accept = [*QUIET, "same-name-two-namespaces"]
    found = good(form.build(write(tmp_path, outermost(form, files, accept=accept))), reader)
    groups = [pod_group("p-qwen", "a"), pod_group("p-qwen", "b", members=4)]
    assert exact([one for name, one in sorted(found.items()) if name.startswith("PodGroup")]) == exact(groups)
    assert gangs(found)["labels"] == ["p-qwen-engine-0"] * 2


def test_the_items_of_a_list(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """kustomize hands them over one by one."""
    files = {
        "all.yaml": {"apiVersion": "v1", "kind": "List", "items": [service("qwen"), config_map("c"), service("llama")]},
        "kustomization.yaml": {"resources": ["all.yaml"]},
    }
    found = good(form.build(write(tmp_path, outermost(form, files))), reader)
    groups = ["PodGroup/llama-engine-0", "PodGroup/qwen-engine-0"]
    assert gangs(found) == {"groups": groups, "labels": ["llama-engine-0", "qwen-engine-0"]}


def test_order(form: Form, tmp_path: pathlib.Path) -> None:
    """PodGroups are made last, and come behind services in kustomize's own order; a list of kinds may put them first."""
    kinds = []
    for order in (
        {},
        {"sortOptions": {"order": "legacy"}},
        {"sortOptions": {"order": "fifo"}},
        {"sortOptions": {"order": "legacy", "legacySortOptions": {"orderFirst": ["PodGroup"], "orderLast": []}}},
    ):
        files = {
            "all.yaml": [
                service("qwen"),
                {**DEPLOYMENT, "kind": "ZZ", "apiVersion": "example.com/v1"},
                config_map("c"),
            ],
            "kustomization.yaml": {"resources": ["all.yaml"], **order},
        }
        built = form.build(write(tmp_path, outermost(form, files)))
        kinds.append([line for line in built.stdout.splitlines() if line.startswith("kind: ")])
    as_made = ["kind: InferenceService", "kind: ZZ", "kind: ConfigMap", "kind: PodGroup"]
    legacy = ["kind: ConfigMap", "kind: ZZ", "kind: InferenceService", "kind: PodGroup"]
    first = ["kind: PodGroup", "kind: ZZ", "kind: InferenceService", "kind: ConfigMap"]
    assert kinds == [legacy, legacy, as_made, first]


def test_a_build_of_nothing(form: Form, tmp_path: pathlib.Path) -> None:
    """kustomize hands over the config of the function as the only item, for a list must not be empty to it."""
    built = form.build(write(tmp_path, outermost(form, {"kustomization.yaml": {}})))
    assert (built.code, built.stdout) == (0, "")
    assert built.stderr.startswith("postrender: warning: ")
    assert len(built.stderr.splitlines()) == 1


# Values as kustomize reads and writes them.

# Strings that PyYAML writes bare and Go then reads as numbers, and two that PyYAML cannot read.
TRICKY = (
    "1e3",
    "1E3",
    "12e03",
    "1e+3",
    "1.5e3",
    "1e-3",
    "-1e3",
    "+1e3",
    "1.e1",
    "+.5",
    "0o17",
    "08",
    "03788745",
    "=",
    "<<",
)


def test_strings_stay_strings_in_ours_and_others(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    env = [{"name": f"N{number}", "value": text} for number, text in enumerate(TRICKY)]
    labels = {f"l{number}": text for number, text in enumerate(TRICKY) if text.strip("=<+-")}
    runner = {"name": "ome-container", "args": list(TRICKY), "env": env}
    made = service("qwen", labels=labels)
    made["spec"]["engine"]["leader"] = {"runner": runner}
    made["metadata"]["labels"] = labels
    files = {
        "all.yaml": [made, config_map("c", **{f"k{number}": text for number, text in enumerate(TRICKY)})],
        "kustomization.yaml": {"resources": ["all.yaml"]},
    }
    without = form.build(write(tmp_path / "without", files))
    wanted = good(without, reader)
    assert wanted["InferenceService/qwen"]["spec"]["engine"]["leader"]["runner"]["args"] == list(TRICKY)
    wanted["InferenceService/qwen"] = ganged(wanted["InferenceService/qwen"], "qwen")
    wanted["PodGroup/qwen-engine-0"] = pod_group("qwen")
    built = form.build(write(tmp_path / "with", outermost(form, files)))
    assert exact(good(built, reader)) == exact(wanted)
    assert built.texts()[0] == without.texts()[0]


@pytest.mark.parametrize("namespace", ["08", "1e3", "123", "0x1f"])
def test_a_namespace_like_a_number_is_a_string(
    form: Form, reader: Oracle, tmp_path: pathlib.Path, namespace: str
) -> None:
    files = {"all.yaml": service("qwen", namespace), "kustomization.yaml": {"resources": ["all.yaml"]}}
    found = good(form.build(write(tmp_path, outermost(form, files))), reader)
    assert exact(found[f"PodGroup/{namespace}/qwen-engine-0"]) == exact(pod_group("qwen", namespace))


def test_annotations_of_others_come_through(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """By which an outer layer mends references to what it renames again."""
    files = {
        "base/kustomization.yaml": {
            "resources": ["all.yaml"],
            "namePrefix": "a-",
            "configMapGenerator": [{"name": "settings", "literals": ["port=8080"]}],
            "transformers": ["gangs.yaml"],
        },
        "base/gangs.yaml": form.function(),
        "base/all.yaml": [service("qwen"), DEPLOYMENT],
        "kustomization.yaml": {"resources": ["base"], "namePrefix": "prod-"},
    }
    found = good(form.build(write(tmp_path, files)), reader)
    [settings] = [name for name in found if name.startswith("ConfigMap/prod-a-settings-")]
    [holder] = found["Deployment/prod-a-web"]["spec"]["template"]["spec"]["containers"]
    assert holder["envFrom"] == [{"configMapRef": {"name": settings.removeprefix("ConfigMap/")}}]


def test_origins(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """kustomize itself says where an added object is from."""
    files = {
        "all.yaml": service("qwen"),
        "kustomization.yaml": {"resources": ["all.yaml"], "buildMetadata": ["originAnnotations"]},
    }
    found = good(form.build(write(tmp_path, outermost(form, files))), reader)
    notes = found["PodGroup/qwen-engine-0"]["metadata"]["annotations"]
    assert sorted(notes) == ["config.kubernetes.io/origin", "postrender/for"]
    assert "configuredIn: gangs.yaml\n" in notes["config.kubernetes.io/origin"]


def test_five_megabytes(form: Form, tmp_path: pathlib.Path) -> None:
    """In few objects, for kustomize's own time goes by the square of their number."""
    many = [config_map(f"c{number}", text="x" * 100_000) for number in range(50)]
    files = {"all.yaml": [service("qwen"), *many], "kustomization.yaml": {"resources": ["all.yaml"]}}
    built = form.build(write(tmp_path, outermost(form, files)))
    assert (built.code, built.stderr) == (0, "")
    assert len(built.stdout) > 5_000_000
    assert len(built.texts()) == len(many) + 2
