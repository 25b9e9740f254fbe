"""What our function is told by its config, and what a failed build says: kustomize shows stderr, and throws results away."""

from __future__ import annotations

import difflib
import json
import pathlib
import re
import subprocess
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import (
    IMAGE,
    LABEL,
    QUIET,
    SCRIPTS,
    Built,
    Container,
    Content,
    Form,
    config_map,
    gangs,
    good,
    pod_group,
    service,
    write,
)


def one_layer(config: Content, objects: Content | None = None, field: str = "transformers") -> dict[str, Content]:
    """Return a kustomization of one file of objects, and a config of our function."""
    return {
        "kustomization.yaml": {"resources": ["all.yaml"], field: ["gangs.yaml"]},
        "all.yaml": service("qwen") if objects is None else objects,
        "gangs.yaml": config,
    }


def by_config_map(form: Form, **data: str) -> dict[str, Any]:
    """Return a config of our function as a ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": form.metadata(), "data": data}


def failed(built: Built) -> str:
    """Return the first line that a failed build says, which must be ours, and the exit code be told."""
    assert (built.code, built.stdout) == (1, "")
    line = built.stderr.splitlines()[0]
    assert line.startswith("postrender: error: ")
    assert "Traceback" not in built.stderr
    assert re.search(r"couldn't execute function: exit status 1\b", built.stderr)
    return line


# Configs.


def test_options(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = form.function(spares=2, scheduler_name="volcano", gang_scheduler=["volcano"], ome_install="none")
    found = good(form.build(write(tmp_path, one_layer(config))), reader)
    assert gangs(found)["groups"] == [f"PodGroup/qwen-engine-{index}" for index in range(3)]
    assert found["InferenceService/qwen"]["spec"]["engine"] == {
        "labels": {LABEL: "qwen-engine-0"},
        "leader": {"schedulerName": "volcano"},
        "worker": {"size": 1, "schedulerName": "volcano"},
    }
    assert found["PodGroup/qwen-engine-0"]["spec"] == {"minMember": 2}


def test_a_config_map(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = by_config_map(
        form, accept=",".join(QUIET), spares="2", **{"scheduler-name": "volcano", "gang-scheduler": "volcano"}
    )
    found = good(form.build(write(tmp_path, one_layer(config))), reader)
    assert gangs(found)["groups"] == [f"PodGroup/qwen-engine-{index}" for index in range(3)]
    assert found["InferenceService/qwen"]["spec"]["engine"]["leader"] == {"schedulerName": "volcano"}


@pytest.mark.parametrize("written", ["no spec", "null", "empty", "empty ConfigMap", "ConfigMap without data"])
def test_nothing_said_is_the_defaults(form: Form, reader: Oracle, tmp_path: pathlib.Path, written: str) -> None:
    gangs_kind = {"apiVersion": "postrender/v1alpha1", "kind": "Gangs", "metadata": form.metadata()}
    config = {
        "no spec": gangs_kind,
        "null": {**gangs_kind, "spec": None},
        "empty": {**gangs_kind, "spec": {}},
        "empty ConfigMap": by_config_map(form),
        "ConfigMap without data": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": form.metadata()},
    }[written]
    built = form.build(write(tmp_path, one_layer(config)))
    found = built.objects(reader)
    assert exact(found["PodGroup/qwen-engine-0"]) == exact(pod_group("qwen"))
    codes = re.findall(r"^postrender: warning: .* \[(.*)\]$", built.stderr, re.MULTILINE)
    assert sorted(codes) == ["ome-not-said", "runtime-unresolved", "surge-without-spare"]
    assert len(codes) == len(built.stderr.splitlines())


def test_the_environment_is_nearer_than_the_config(tmp_path: pathlib.Path, reader: Oracle, form: Form) -> None:
    config = form.function(spares=1)
    if isinstance(form, Container):
        config["metadata"] = form.metadata(how={"container": {"image": IMAGE, "envs": ["POSTRENDER_SPARES=2"]}})
        built = form.build(write(tmp_path, one_layer(config)))
    else:
        built = form.build(write(tmp_path, one_layer(config)), POSTRENDER_SPARES="2")
    assert len(gangs(good(built, reader))["groups"]) == 3


def test_context_from_the_folder_of_the_kustomization(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """As a program we run there; into a container it must be mounted."""
    runtime = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": "wide"},
        "spec": {"engineConfig": {"leader": {}, "worker": {"size": 3}}},
    }
    asks = {**service("qwen"), "spec": {"runtime": {"name": "wide", "kind": "ClusterServingRuntime"}, "engine": {}}}
    config = form.function(context=["cluster"])
    if isinstance(form, Container):
        mounts = [{"type": "bind", "src": "cluster", "dst": "/work/cluster"}]
        config["metadata"] = form.metadata(how={"container": {"image": IMAGE, "mounts": mounts}})
    files = {**one_layer(config, asks), "cluster/runtimes.yaml": runtime}
    found = good(form.build(write(tmp_path, files)), reader)
    assert sorted(found) == ["InferenceService/qwen", "PodGroup/qwen-engine-0"]
    assert exact(found["PodGroup/qwen-engine-0"]) == exact(pod_group("qwen", members=4))


# Errors.

WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "unknown option": ({"sparse": 1}, "spec.sparse: there is no such option; did you mean spares?"),
    "a word for a number": ({"spares": "many"}, "spec.spares"),
    "a map for a word": ({"ome": {"version": "1.3"}}, "spec.ome"),
    "unknown mode": ({"mode": "transmogrify"}, "spec.mode"),
    "no such finding": ({"accept": ["ome-not-sad"]}, "did you mean ome-not-said?"),
    "files of a transformer": ({"files": ["a.yaml"]}, "spec.files"),
    "context above the folder": ({"context": ["../elsewhere"]}, "spec.context"),
    "context by a whole path": ({"context": ["/etc"]}, "spec.context"),
}


@pytest.mark.parametrize("row", WRONG)
def test_a_wrong_config(row: str, form: Form, tmp_path: pathlib.Path) -> None:
    spec, says = WRONG[row]
    assert says in failed(form.build(write(tmp_path / "k", one_layer(form.function(**spec)))))


def test_a_wrong_key_of_a_config_map(form: Form, tmp_path: pathlib.Path) -> None:
    line = failed(form.build(write(tmp_path, one_layer(by_config_map(form, sparse="1")))))
    assert "data.sparse: there is no such option; did you mean spares?" in line


def test_another_kind_of_config(form: Form, tmp_path: pathlib.Path) -> None:
    config = {**form.function(), "kind": "Gang"}
    line = failed(form.build(write(tmp_path, one_layer(config))))
    assert "Gangs" in line
    assert "postrender/v1alpha1" in line


def test_refused_input(form: Form, tmp_path: pathlib.Path) -> None:
    made = service("qwen")
    made["spec"]["engine"]["worker"]["size"] = "1"
    line = failed(form.build(write(tmp_path, one_layer(form.function(), made))))
    assert (
        'InferenceService/qwen: spec.engine.worker.size: is "1", a string; write an integer without quotes [invalid-field]'
        in line
    )


def test_strict(form: Form, tmp_path: pathlib.Path) -> None:
    line = failed(form.build(write(tmp_path, one_layer(form.function(strict=True, accept=list(QUIET[1:]))))))
    assert line.endswith("[ome-not-said]")


def test_somebody_elses_group(form: Form, tmp_path: pathlib.Path) -> None:
    theirs = pod_group("qwen", members=7)
    del theirs["metadata"]["annotations"]
    line = failed(form.build(write(tmp_path, one_layer(form.function(), [service("qwen"), theirs]))))
    assert line.endswith("[podgroup-conflict]")


def test_an_equal_group_is_left(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    theirs = pod_group("qwen")
    del theirs["metadata"]["annotations"]
    found = good(form.build(write(tmp_path, one_layer(form.function(), [service("qwen"), theirs]))), reader)
    assert exact(found["PodGroup/qwen-engine-0"]) == exact(theirs)


def test_our_older_group_is_replaced(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    """And kustomize knows it for the same: it carries what kustomize wrote on it."""
    ours = pod_group("qwen", members=7)
    found = good(form.build(write(tmp_path, one_layer(form.function(), [service("qwen"), ours]))), reader)
    assert exact(found["PodGroup/qwen-engine-0"]) == exact(pod_group("qwen"))


def test_a_foreign_label(form: Form, tmp_path: pathlib.Path) -> None:
    made = service("qwen", labels={LABEL: "theirs"})
    assert failed(form.build(write(tmp_path, one_layer(form.function(), made)))).endswith("[label-taken]")


def test_input_that_is_no_utf_8_never_reaches_us(form: Form, tmp_path: pathlib.Path) -> None:
    made = json.dumps(service("qwen")).encode().replace(b'"qwen"', b'"qwen", "labels": {"a": "\xff"}')
    built = form.build(write(tmp_path, one_layer(form.function(), made)))
    assert (built.code, built.stdout) == (1, "")
    assert "postrender" not in built.stderr
    assert "invalid leading UTF-8 octet" in built.stderr


# Validators.

SOUND = [config_map("c"), service("small")]


def test_a_validator_passes_what_is_sound(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = form.function(mode="validate", strict=True)
    built = form.build(write(tmp_path, one_layer(config, SOUND, "validators")))
    assert sorted(good(built, reader)) == ["ConfigMap/c", "InferenceService/small"]


def test_a_validator_behind_the_transformer(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    files = one_layer(form.function())
    files["kustomization.yaml"] = {
        "resources": ["all.yaml"],
        "transformers": ["gangs.yaml"],
        "validators": ["sound.yaml"],
    }
    files["sound.yaml"] = form.function("sound", mode="validate", strict=True)
    found = good(form.build(write(tmp_path, files)), reader)
    assert gangs(found) == {"groups": ["PodGroup/qwen-engine-0"], "labels": ["qwen-engine-0"]}


def test_a_validator_fails_the_build(form: Form, tmp_path: pathlib.Path) -> None:
    made = service("qwen", labels={LABEL: "theirs"})
    built = form.build(write(tmp_path, one_layer(form.function(mode="validate"), made, "validators")))
    assert failed(built).endswith("[label-taken]")


def test_a_validator_warns(form: Form, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = form.function(mode="validate", accept=list(QUIET[1:]))
    built = form.build(write(tmp_path, one_layer(config, field="validators")))
    assert sorted(built.objects(reader)) == ["InferenceService/qwen"]
    assert re.fullmatch(r"postrender: warning: .* \[ome-not-said\]\n", built.stderr)


def test_a_transformer_as_validator_is_refused_by_kustomize(form: Form, tmp_path: pathlib.Path) -> None:
    built = form.build(write(tmp_path, one_layer(form.function(), field="validators")))
    assert (built.code, built.stdout) == (1, "")
    assert "validator shouldn't modify the resource map" in built.stderr


def test_a_validator_listed_as_transformer_empties_the_build(form: Form, tmp_path: pathlib.Path) -> None:
    """A validator must return nothing, which kustomize takes for a wish; nothing tells a function where it is listed."""
    built = form.build(write(tmp_path, one_layer(form.function(mode="validate"))))
    assert (built.code, built.stdout) == (0, "")


# The container.


def test_what_the_image_is_given(container: Container, reader: Oracle, tmp_path: pathlib.Path) -> None:
    config = container.function()
    how = {"container": {"image": IMAGE, "envs": ["POSTRENDER_SPARES=1"]}}
    config["metadata"] = container.metadata(how=how)
    folder = write(tmp_path, one_layer(config))
    assert len(gangs(good(container.build(folder), reader))["groups"]) == 2
    [call] = container.calls()
    assert call.argv == [
        *("run", "--rm", "-i", "-a", "STDIN", "-a", "STDOUT", "-a", "STDERR", "--network", "none", "--user", "nobody"),
        *("--security-opt=no-new-privileges", "-e", "LOG_TO_STDERR=true", "-e", "POSTRENDER_SPARES=1"),
        *("-e", "STRUCTURED_RESULTS=true", IMAGE),
    ]
    assert call.cwd == str(folder)
    assert call.stdin.startswith("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")


# What kustomize hands over, handed over by hand: what it never does itself.


def by_hand(stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([SCRIPTS / "postrender"], input=stdin, capture_output=True, env={}, timeout=60, check=False)


@pytest.fixture
def handed(container: Container, tmp_path: pathlib.Path) -> bytes:
    """Return the list of a build that renames, as kustomize wrote it."""
    files = one_layer(container.function(), [service("qwen"), config_map("c", note="yes")])
    files["kustomization.yaml"] = {"resources": ["all.yaml"], "namePrefix": "p-", "transformers": ["gangs.yaml"]}
    assert container.build(write(tmp_path, files)).code == 0
    [call] = container.calls()
    return call.stdin.encode()


def test_all_that_kustomize_wrote_comes_back(handed: bytes) -> None:
    """Two places are new, a label and a group at the end; a second run changes nothing."""
    once = by_hand(handed)
    assert (once.returncode, once.stderr) == (0, b"")
    lines, after = handed.decode().splitlines(), once.stdout.decode().splitlines()
    new = [line[2:] for line in difflib.ndiff(lines, after) if line[0] in "+-"]
    assert [line for line in lines if line in after] == lines
    assert new[:2] == ["      labels:", f"        {LABEL}: p-qwen-engine-0"]
    assert sum("kubernetes.io" in line or "k8s.io/id" in line for line in new) == 0
    twice = by_hand(once.stdout)
    assert (twice.returncode, twice.stdout) == (0, once.stdout)


def test_an_older_list(handed: bytes) -> None:
    """v1beta1 has the same shape, and is what comes back."""
    old = handed.replace(b"config.kubernetes.io/v1\n", b"config.kubernetes.io/v1beta1\n", 1)
    done = by_hand(old)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == by_hand(handed).stdout.replace(
        b"config.kubernetes.io/v1\n", b"config.kubernetes.io/v1beta1\n", 1
    )


def test_a_list_that_is_no_utf_8(handed: bytes) -> None:
    done = by_hand(handed.replace(b'"yes"', b'"\xff"'))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"postrender: error: ")
    assert b"Traceback" not in done.stderr


def test_a_reader_that_went_away(handed: bytes) -> None:
    command = f"'{SCRIPTS}/postrender' | true; exit ${{PIPESTATUS[0]}}"
    big = handed.replace(b'"yes"', b'"' + b"x" * 1_000_000 + b'"')
    done = subprocess.run(["bash", "-c", command], input=big, capture_output=True, env={}, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (141, b"")


def test_on_an_error_the_items_come_back_with_the_results(handed: bytes, reader: Oracle) -> None:
    """Which kustomize throws away, and kpt shows."""
    wrong = handed.replace(b"        size: 1\n", b'        size: "1"\n')
    done = by_hand(wrong)
    assert done.returncode == 1
    before, after = reader.v3(wrong.decode()), reader.v3(done.stdout.decode())
    assert exact(after["items"]) == exact(before["items"])
    [result] = after["results"]
    assert result["severity"] == "error"
    assert result["resourceRef"] == {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "name": "p-qwen"}
    assert result["field"]["path"] == "spec.engine.worker.size"
    assert result["tags"] == {"code": "invalid-field"}
    assert 'is "1", a string' in result["message"]
    assert done.stdout.startswith(wrong.rstrip(b"\n"))
