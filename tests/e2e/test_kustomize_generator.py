"""A generator of kustomize: it reads manifests that something else has rendered, and returns them with their gangs, so that
what kustomize does to names in that layer is done to all of it.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import (
    IMAGE,
    LABEL,
    PLUGINS,
    QUIET,
    Container,
    Content,
    Form,
    config_map,
    ganged,
    gangs,
    good,
    pod_group,
    service,
    write,
)
from .test_kustomize_config import failed

REFERENCES = (PLUGINS / "namereference.yaml").read_text()


def generator(form: Form, *files: str, **spec: Any) -> dict[str, Any]:
    """Return a config that reads files of the folder `charts`, which a container must be given."""
    config = form.function(mode="generate", files=list(files), **spec)
    if isinstance(form, Container):
        mounts = [{"type": "bind", "src": "charts", "dst": "/work/charts"}]
        config["metadata"] = form.metadata(how={"container": {"image": IMAGE, "mounts": mounts}})
    return config


def kustomization(form: Form, config: dict[str, Any], files: dict[str, Content], **more: Any) -> dict[str, Content]:
    return {
        "kustomization.yaml": {"generators": ["gangs.yaml"], **more},
        "gangs.yaml": config,
        "charts/README": "so that there is a folder to mount\n",
        **files,
    }


def test_what_is_in_the_file_and_its_gangs(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    made = [service("qwen", "models"), config_map("c", note="yes")]
    files = kustomization(form, generator(form, "charts/all.yaml"), {"charts/all.yaml": made})
    folder = write(tmp_path, files)
    built = form.build(folder)
    wanted = {
        "InferenceService/models/qwen": ganged(made[0], "qwen"),
        "PodGroup/models/qwen-engine-0": pod_group("qwen", "models"),
        "ConfigMap/c": made[1],
    }
    assert exact(good(built, reader)) == exact(wanted)
    assert form.build(folder) == built


def test_several_files(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """A runtime of one file counts for a service of another."""
    runtime = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ServingRuntime",
        "metadata": {"name": "near"},
        "spec": {"engineConfig": {"leader": {}, "worker": {"size": 3}}},
    }
    asks = {**service("qwen"), "spec": {"runtime": {"name": "near", "kind": "ServingRuntime"}, "engine": {}}}
    files = {"charts/a.yaml": asks, "charts/b.yaml": [runtime, config_map("c")]}
    config = generator(form, "charts/a.yaml", "charts/b.yaml")
    found = good(form.build(write(tmp_path, kustomization(form, config, files))), reader)
    assert sorted(found) == ["ConfigMap/c", "InferenceService/qwen", "PodGroup/qwen-engine-0", "ServingRuntime/near"]
    assert exact(found["PodGroup/qwen-engine-0"]) == exact(pod_group("qwen", members=4))


def test_with_a_prefix_a_namespace_and_references_in_the_same_layer(
    form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    more = {"namePrefix": "pre-", "namespace": "models", "configurations": ["namereference.yaml"]}
    files = {"charts/all.yaml": service("llama"), "namereference.yaml": REFERENCES}
    found = good(
        form.build(write(tmp_path, kustomization(form, generator(form, "charts/all.yaml"), files, **more))), reader
    )
    groups = ["PodGroup/models/pre-llama-engine-0"]
    assert gangs(found) == {"groups": groups, "labels": ["pre-llama-engine-0"]}


def test_and_our_function_behind_it(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """No references are needed then: it runs on final names."""
    more = {"namePrefix": "pre-", "nameSuffix": "-x", "namespace": "models", "transformers": ["final.yaml"]}
    files = {"charts/all.yaml": service("llama"), "final.yaml": form.function("final")}
    found = good(
        form.build(write(tmp_path, kustomization(form, generator(form, "charts/all.yaml"), files, **more))), reader
    )
    assert exact(found) == exact(
        {
            "InferenceService/models/pre-llama-x": ganged(service("pre-llama-x", "models"), "pre-llama-x"),
            "PodGroup/models/pre-llama-x-engine-0": pod_group("pre-llama-x", "models"),
        }
    )


def test_beside_resources(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = {"charts/all.yaml": service("llama"), "c.yaml": config_map("c")}
    config = generator(form, "charts/all.yaml")
    found = good(form.build(write(tmp_path, kustomization(form, config, files, resources=["c.yaml"]))), reader)
    assert sorted(found) == ["ConfigMap/c", "InferenceService/llama", "PodGroup/llama-engine-0"]


# Strings that PyYAML writes bare and Go then reads as numbers, two that PyYAML cannot read, and what YAML 1.1 takes for others.
WRITTEN = (
    "'1e3'",
    '"0o17"',
    '"08"',
    "'='",
    "'<<'",
    "yes",
    "no",
    "12:30",
    "0x1f",
    "1_000",
    "2001-12-14",
    "~",
    "1.0",
    ".5",
    "017",
)

FORMS: dict[str, str] = {
    "a heading and comments": "# Source: a\n---\n# Source: b\n{service}# the end\n",
    "Helm's documents": "---\n# Source: a/templates/a.yaml\n{service}---\n# Source: a/templates/b.yaml\n{map}",
    "block scalars": "{service}---\n{map}  text: |\n    first\n      second\n\n    third\n  kept: |+\n    line\n\n---\n{other}",
    "folded": "{map}  text: >-\n    first\n    second\n  over: a plain one\n    over lines\n---\n{service}",
    "quotes over lines": '{map}  text: "first\n    second\\n\n    third"\n---\n{service}',
    "anchors": "{map}  a: &a one\n  b: *a\n---\n{service}",
    "no last line break": "{service}---\n{map}",
    "a document end": "{service}...\n---\n{map}",
    "a BOM": "\ufeff{service}---\n{map}",
    "CRLF": "{service}---\n{map}",
    "an indentation indicator": "{map}  text: |2-\n      first\n    second\n---\n{service}",
    "a block scalar at the end": "{service}---\n{map}  text: |+\n    first\n\n\n",
    "lines that look like more documents": "{map}  text: |\n    ---\n    kind: Secret\n    ...\n    - x: y\n---\n{service}",
    "a comment behind the marker": "{map}--- # said here\n{service}",
    "flow over lines": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: flow,\n    labels: {a: b,\n\n   c: d}}\n---\n{service}",
    "flow at the left edge": '{"apiVersion": "v1", "kind": "ConfigMap",\n"metadata": {"name": "flow"\n}\n}\n---\n{service}',
    "JSON": '{"apiVersion": "v1", "kind": "ConfigMap",\n\t"metadata": {"name": "flow"},\n\t"data": {"a": "x\\ty"}}\n---\n{service}',
    "tabs behind values": "{map}  tabbed: 'x'\t\n  plain: y\t# said\n---\n{service}",
    "spaces behind values": "{map}  plain: y   \n  text: |  \n    kept  \n---\n{service}",
    "explicit keys": "{map}  ? long\n  : value\n---\n{service}",
    "tags": "{map}  number: !!str 5\n  word: !!str yes\n---\n{service}",
    "lists at the key's column": "{map}---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  finalizers:\n  - a/b\n  -\n   c/d\n---\n{service}",
    "a List": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: in-a-list}\n---\n{service}",
    "a comment less deep than its value": "{map}  plain: y\n# said\n  other: z\n---\n{service}",
    "empty documents": "---\n---\n{service}---\n# nothing\n---\n{map}---\n",
    "values": "{map}" + "".join(f"  k{number}: {text}\n" for number, text in enumerate(WRITTEN)) + "---\n{service}",
}


@pytest.mark.parametrize("written", FORMS)
def test_a_file_is_read_as_kustomize_itself_reads_it(
    written: str, form: Form, reader: Oracle, tmp_path: pathlib.Path
) -> None:
    """As a resource, without us; with us nothing differs but the gang."""
    parts = {
        "service": "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: qwen\n"
        "spec:\n  engine:\n    leader: {}\n    worker: # of one\n      size: 1\n",
        "map": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  first: a\n",
        "other": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n",
    }
    text = FORMS[written]
    for name, part in parts.items():
        text = text.replace("{" + name + "}", part)
    if written == "no last line break":
        text = text.removesuffix("\n")
    if written == "CRLF":
        text = text.replace("\n", "\r\n")
    without = write(tmp_path / "without", {"kustomization.yaml": {"resources": ["all.yaml"]}, "all.yaml": text})
    config = generator(form, "charts/all.yaml")
    folder = write(tmp_path / "with", kustomization(form, config, {"charts/all.yaml": text}))
    wanted = good(form.build(without), reader)
    wanted["InferenceService/qwen"] = ganged(wanted["InferenceService/qwen"], "qwen")
    wanted["PodGroup/qwen-engine-0"] = pod_group("qwen")
    assert exact(good(form.build(folder), reader)) == exact(wanted)


# What is refused.

# What cannot be put below `items:` and surely be read as it was.
UNSAFE = {
    "a value behind the marker": "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n",
    "a block scalar that the end of the file ends": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  text: |\n    x",
}


@pytest.mark.parametrize("text", UNSAFE)
def test_what_cannot_be_indented_safely(text: str, form: Form, tmp_path: pathlib.Path) -> None:
    files = kustomization(form, generator(form, "charts/all.yaml"), {"charts/all.yaml": UNSAFE[text]})
    line = failed(form.build(write(tmp_path, files)))
    assert line.startswith("postrender: error: charts/all.yaml:")
    assert line.endswith("[edit-refused]")


def test_a_missing_file(form: Form, tmp_path: pathlib.Path) -> None:
    files = kustomization(form, generator(form, "charts/none.yaml"), {})
    assert "charts/none.yaml" in failed(form.build(write(tmp_path, files)))


@pytest.mark.parametrize("content", ["", "# nothing here\n", "---\n---\n"])
def test_an_empty_file(content: str, form: Form, tmp_path: pathlib.Path) -> None:
    """A rendering that failed half-way must not come out as nothing at all."""
    files = kustomization(form, generator(form, "charts/all.yaml"), {"charts/all.yaml": content})
    assert "charts/all.yaml" in failed(form.build(write(tmp_path, files)))


def test_no_files(form: Form, tmp_path: pathlib.Path) -> None:
    assert "spec.files" in failed(form.build(write(tmp_path, kustomization(form, form.function(mode="generate"), {}))))


@pytest.mark.parametrize(
    "path", ["../secret.yaml", "charts/../../secret.yaml", "charts/link.yaml", "charts/up/secret.yaml"]
)
def test_a_path_that_leads_out(path: str, form: Form, tmp_path: pathlib.Path) -> None:
    """By its words or by a link."""
    write(tmp_path, {"secret.yaml": config_map("secret")})
    folder = write(tmp_path / "k", kustomization(form, generator(form, path), {}))
    if isinstance(form, Container):
        # In a container there is only what is mounted: a link leads nowhere.
        path = path.replace("charts/link.yaml", "charts/none.yaml")
    else:
        os.symlink(tmp_path / "secret.yaml", folder / "charts/link.yaml")
        os.symlink(tmp_path, folder / "charts/up")
    built = form.build(folder)
    assert "spec.files" in failed(built)
    assert "secret" not in built.stdout


def test_a_whole_path(form: Form, tmp_path: pathlib.Path) -> None:
    write(tmp_path, {"secret.yaml": config_map("secret")})
    config = generator(form, str(tmp_path / "secret.yaml"))
    assert "spec.files" in failed(form.build(write(tmp_path / "k", kustomization(form, config, {}))))


def test_broken_yaml(form: Form, tmp_path: pathlib.Path) -> None:
    files = kustomization(form, generator(form, "charts/all.yaml"), {"charts/all.yaml": "kind: [InferenceService\n"})
    assert "charts/all.yaml" in failed(form.build(write(tmp_path, files)))


def test_what_render_refuses(form: Form, tmp_path: pathlib.Path) -> None:
    """The message names the file, not stdin."""
    made = service("qwen", labels={LABEL: "theirs"})
    files = kustomization(form, generator(form, "charts/all.yaml"), {"charts/all.yaml": made})
    line = failed(form.build(write(tmp_path, files)))
    assert line.endswith("[label-taken]")
    assert "charts/all.yaml" in line


def test_warnings(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = generator(form, "charts/all.yaml", accept=list(QUIET[1:]))
    built = form.build(write(tmp_path, kustomization(form, config, {"charts/all.yaml": service("qwen")})))
    assert sorted(built.objects(reader)) == ["InferenceService/qwen", "PodGroup/qwen-engine-0"]
    assert built.stderr.count("\n") == 1
    assert "[ome-not-said]" in built.stderr


def test_a_generator_listed_as_transformer_is_refused(form: Form, tmp_path: pathlib.Path) -> None:
    """It would return its files alone, and kustomize would delete all else."""
    files = kustomization(
        form, generator(form, "charts/all.yaml"), {"charts/all.yaml": service("qwen"), "c.yaml": config_map("c")}
    )
    files["kustomization.yaml"] = {"resources": ["c.yaml"], "transformers": ["gangs.yaml"]}
    assert "a generator is handed no items" in failed(form.build(write(tmp_path, files)))
