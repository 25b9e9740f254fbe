"""Behind the real kpt, which rewrites the files of a package in place: as programs, for there are no containers here."""

from __future__ import annotations

import difflib
import os
import pathlib
import re
import subprocess
from typing import Any

import pytest

from tests.oracles.client import Oracle, exact

from .kustomize import BIN, LABEL, QUIET, SCRIPTS, Content, pod_group, write

KPT = BIN / "kpt"

# Nothing here is as kpt would write it: order, quotes, comments, indentation.
SERVICE = """\
# Two nodes.
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
    name: qwen   # the name
    namespace: models
spec:
    engine:
        minReplicas: 1
        # The leader is counted apart.
        leader: {}
        worker:
            size: 1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data:
  size: "1e3"   # a string
  fast: 'yes'
"""


def function(name: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "annotations": {"config.kubernetes.io/local-config": "true"}}
    return {"apiVersion": "postrender/v1alpha1", "kind": "Gangs", "metadata": metadata, "spec": spec}


def package(**pipeline: Any) -> dict[str, Content]:
    """Return a package with a service; its functions are programs."""
    kptfile = {"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "package"}, "pipeline": pipeline}
    return {"Kptfile": kptfile, "isvc.yaml": SERVICE}


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    assert KPT.exists(), "run 'make e2e': it brings kpt"


def kpt(folder: pathlib.Path, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {"PATH": f"{SCRIPTS}{os.pathsep}/usr/bin:/bin", "HOME": str(folder.parent)}
    return subprocess.run(
        [KPT, "fn", *words], cwd=folder, env=environ, capture_output=True, text=True, timeout=120, check=False
    )


def render(folder: pathlib.Path) -> subprocess.CompletedProcess[str]:
    return kpt(folder, "render", "--allow-exec", ".")


def files(folder: pathlib.Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


MUTATOR = {"exec": "postrender", "configPath": "gangs.yaml"}
VALIDATOR = {"exec": "postrender", "configPath": "sound.yaml"}


def test_a_package_is_rendered_in_place(reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Two lines more in the service's file than kpt itself writes, and a file more for the PodGroup; twice is once."""
    written = {
        **package(mutators=[MUTATOR], validators=[VALIDATOR]),
        "gangs.yaml": function("gangs", accept=list(QUIET)),
        "sound.yaml": function("sound", mode="validate", strict=True, accept=list(QUIET)),
    }
    folder = write(tmp_path / "package", written)
    formatted = write(tmp_path / "formatted", {**written, **package(mutators=[{"exec": "cat"}])})
    assert render(formatted).returncode == 0
    done = render(folder)
    assert done.returncode == 0, done.stderr
    before, after = files(formatted), files(folder)
    assert "# The leader is counted apart." in before["isvc.yaml"]
    group = after.pop("models/podgroup_qwen-engine-0.yaml")
    assert exact(reader.v3(group)) == exact(pod_group("qwen", "models"))
    service, plain = after.pop("isvc.yaml"), before.pop("isvc.yaml")
    new = [line for line in difflib.ndiff(plain.splitlines(), service.splitlines()) if line[0] in "+-"]
    assert new == ["+     labels:", f"+       {LABEL}: qwen-engine-0"]
    assert {**after, "Kptfile": ""} == {**before, "Kptfile": ""}
    once = files(folder)
    assert render(folder).returncode == 0
    assert files(folder) == once


def test_words_as_config(reader: Oracle, tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "package", {"isvc.yaml": SERVICE})
    done = kpt(folder, "eval", ".", "--exec", "postrender", "--", f"accept={','.join(QUIET)}", "spares=1")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert sorted(files(folder)) == [
        "isvc.yaml",
        "models/podgroup_qwen-engine-0.yaml",
        "models/podgroup_qwen-engine-1.yaml",
    ]


def test_no_words_and_the_results(tmp_path: pathlib.Path) -> None:
    """kpt hands over an empty ConfigMap, and shows what kustomize hides."""
    folder = write(tmp_path / "package", {"isvc.yaml": SERVICE})
    done = kpt(folder, "eval", ".", "--exec", "postrender")
    assert done.returncode == 0, done.stderr
    results = re.findall(r"^    \[(\w+)\](.*) \[([a-z-]+)\]$", done.stderr, re.MULTILINE)
    assert sorted(code for _, _, code in results) == ["ome-not-said", "runtime-unresolved", "surge-without-spare"]
    assert {severity for severity, _, _ in results} == {"warning"}
    assert any(
        said.startswith(" ome.io/v1beta1/InferenceService/models/qwen spec.engine.lifecycle.updateStrategy.type: ")
        for _, said, _ in results
    )


@pytest.mark.parametrize("where", ["mutators", "validators"])
def test_an_error_leaves_the_package_as_it_was(where: str, reader: Oracle, tmp_path: pathlib.Path) -> None:
    written = package(**{where: [MUTATOR]})
    written["gangs.yaml"] = function(
        "gangs", accept=list(QUIET), mode="transform" if where == "mutators" else "validate"
    )
    written["isvc.yaml"] = SERVICE.replace("size: 1", 'size: "1"')
    folder = write(tmp_path / "package", written)
    before = files(folder)
    done = render(folder)
    assert done.returncode == 1
    assert '[FAIL] "postrender"' in done.stderr
    assert (
        "    [error] ome.io/v1beta1/InferenceService/models/qwen spec.engine.worker.size:"
        ' is "1", a string; write an integer without quotes [invalid-field]\n'
    ) in done.stderr
    assert files(folder) == before


def test_a_wrong_config(tmp_path: pathlib.Path) -> None:
    folder = write(tmp_path / "package", {**package(mutators=[MUTATOR]), "gangs.yaml": function("gangs", sparse=1)})
    done = render(folder)
    assert done.returncode == 1
    assert "    [error] postrender/v1alpha1/Gangs/gangs spec.sparse: " in done.stderr


def test_a_subpackage_first(reader: Oracle, tmp_path: pathlib.Path) -> None:
    """The function runs there, and then over all of it above: the group is made once."""
    inner = {f"inner/{name}": content for name, content in package(mutators=[MUTATOR]).items()}
    written = {
        **package(mutators=[MUTATOR]),
        **inner,
        "gangs.yaml": function("gangs", accept=list(QUIET)),
        "inner/gangs.yaml": function("gangs", accept=list(QUIET)),
        "isvc.yaml": SERVICE.replace("name: qwen", "name: llama").replace("name: settings", "name: others"),
    }
    folder = write(tmp_path / "package", written)
    done = render(folder)
    assert done.returncode == 0, done.stderr
    groups = sorted(name for name in files(folder) if "podgroup" in name)
    assert groups == ["inner/models/podgroup_qwen-engine-0.yaml", "models/podgroup_llama-engine-0.yaml"]


def test_a_group_goes_to_a_new_size(reader: Oracle, tmp_path: pathlib.Path) -> None:
    """Rewritten where it lies."""
    written = {**package(mutators=[MUTATOR]), "gangs.yaml": function("gangs", accept=list(QUIET))}
    folder = write(tmp_path / "package", written)
    assert render(folder).returncode == 0
    service = folder / "isvc.yaml"
    service.write_text(service.read_text().replace("size: 1", "size: 3"))
    assert render(folder).returncode == 0
    found = {name: text for name, text in files(folder).items() if "podgroup" in name}
    assert list(found) == ["models/podgroup_qwen-engine-0.yaml"]
    assert exact(reader.v3(found["models/podgroup_qwen-engine-0.yaml"])) == exact(
        pod_group("qwen", "models", members=4)
    )


def test_a_group_whose_service_has_gone_is_said(tmp_path: pathlib.Path) -> None:
    written = {**package(mutators=[MUTATOR]), "gangs.yaml": function("gangs", accept=list(QUIET))}
    folder = write(tmp_path / "package", written)
    assert render(folder).returncode == 0
    (folder / "isvc.yaml").unlink()
    done = render(folder)
    assert done.returncode == 0
    assert re.search(
        r"^    \[warning\] scheduling.x-k8s.io/v1alpha1/PodGroup/models/qwen-engine-0.*\[stale-podgroup\]$",
        done.stderr,
        re.MULTILINE,
    )
    assert (folder / "models/podgroup_qwen-engine-0.yaml").exists()
