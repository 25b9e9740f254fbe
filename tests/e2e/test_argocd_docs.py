"""The commands of the page on Argo CD, and its Application, run with each Helm."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml

from postrender.hosts import argocd

from .test_helm_docs import BIN, COMMAND, HELMS, ROOT, matches

PAGE = (ROOT / "docs/argocd.md").read_text()
BLOCK = re.compile(r"^```sh-session\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("helm", [helm for helms in HELMS.values() for helm in helms])
def test_the_commands(helm: str, tmp_path: pathlib.Path) -> None:
    assert (BIN / helm).exists(), "run 'make e2e': it brings the Helms"
    shutil.copytree(ROOT / "examples/helm-qwen3/chart", tmp_path / "chart")
    path = tmp_path / "bin"
    path.mkdir()
    (path / "helm").symlink_to(BIN / helm)
    environment = {
        "PATH": f"{path}{os.pathsep}{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": "/dev/null/home",
    }
    commands = [found for text in BLOCK.findall(PAGE) for found in COMMAND.findall(text)]
    assert len(commands) > 6
    # One shell for all, as a reader has: what is exported stays. A line no command prints parts the answers.
    script = "".join(f"{{ {command.rstrip()}\n}} 2>&1 || true\necho '=====' $?\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    answers = re.split(r"^===== \d+\n", done.stdout, flags=re.MULTILINE)
    for (command, shown), printed in zip(commands, answers, strict=False):
        assert matches(shown, printed), f"$ {command}{printed}"


def test_the_application_gives_parameters_that_are_taken() -> None:
    [text] = re.findall(r"^```yaml\n# application\.yaml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    plugin = yaml.safe_load(text)["spec"]["source"]["plugin"]
    told = argocd.parameters.read({"ARGOCD_APP_PARAMETERS": json.dumps(plugin["parameters"])})
    assert told.words("values-files") == ("values/prod.yaml", "/clusters/prod.yaml")
    assert f"name: {plugin['name']}\n" in (ROOT / "plugins/argocd/applications/helm.yaml").read_text().replace(
        "  #", "\n"
    )


def test_every_parameter_of_ours_is_on_the_page() -> None:
    for name in argocd.parameters.OWN:
        assert f"`{name}`" in PAGE, name
