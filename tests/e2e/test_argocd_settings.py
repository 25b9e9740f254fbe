"""What is shipped for Argo CD, read by the programs that it is for: its health checks, and kustomize."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.e2e.cmp import BIN, ROOT
from tests.oracles.client import CoProcess
from tests.unit.test_argocd import HEALTH, load

ARGO_CD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: argocd-repo-server
spec:
  template:
    spec:
      containers:
      - name: argocd-repo-server
        image: quay.io/argoproj/argocd
      volumes:
      - name: var-files
        emptyDir: {}
      - name: plugins
        emptyDir: {}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
data:
  url: https://argocd.example.com
"""


@pytest.fixture(scope="module")
def checker() -> Iterator[CoProcess]:
    """Argo CD's own machine for health checks."""
    with CoProcess(BIN / "argocd-health") as running:
        yield running


@pytest.mark.parametrize(("file", "key", "status", "health", "message"), HEALTH)
def test_health(checker: CoProcess, file: str, key: str, status: Any, health: str, message: str) -> None:
    question = {"script": load(file)["data"][key], "object": {} if status is None else {"status": status}}
    answer = json.loads(checker.answer(question, f"when it was asked about {status}"))
    assert answer == {"status": health, **({"message": message} if message else {})}


def test_the_component_adds_the_sidecar(tmp_path: pathlib.Path) -> None:
    shutil.copytree(ROOT / "plugins/argocd", tmp_path / "argocd")
    (tmp_path / "install.yaml").write_text(ARGO_CD)
    (tmp_path / "kustomization.yaml").write_text("resources: [install.yaml]\ncomponents: [argocd]\n")
    done = subprocess.run(
        [BIN / "kustomize", "build", tmp_path], capture_output=True, env={"PATH": os.defpath}, check=True
    )
    found = {one["metadata"]["name"]: one for one in yaml.safe_load_all(done.stdout)}
    pod = found["argocd-repo-server"]["spec"]["template"]["spec"]
    containers = {one["name"]: one for one in pod["containers"]}
    assert containers.keys() == {"argocd-repo-server", "postrender"}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert {one["name"] for one in containers["postrender"]["volumeMounts"]} <= volumes.keys()
    # Its name changes with what it says, so that a new plugin restarts the pod.
    plugin = volumes["postrender-plugin"]["configMap"]["name"]
    assert plugin.startswith("argocd-postrender-plugin-")
    assert found[plugin]["data"] == {"plugin.yaml": (ROOT / "plugins/argocd/plugin.yaml").read_text()}
    assert found["argocd-cm"]["data"] == {
        "url": "https://argocd.example.com",
        **load("argocd-cm.yaml")["data"],
    }
