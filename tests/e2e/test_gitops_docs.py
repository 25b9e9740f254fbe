"""The commands of the pages on GitOps and Flux, run with a Helm 3, a Helm 4 and kustomize."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from .test_helm_docs import BIN, COMMAND, ROOT, matches

PAGES = ("gitops", "flux")
BLOCK = re.compile(r"^```(\S+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("helm", ["helm-3.19", "helm-4.3"])
@pytest.mark.parametrize("page", PAGES)
def test_the_commands(page: str, helm: str, tmp_path: pathlib.Path) -> None:
    shutil.copytree(ROOT / "examples/helm-qwen3/chart", tmp_path / "chart")
    path = tmp_path / "bin"
    path.mkdir()
    for name, program in (("helm", helm), ("kustomize", "kustomize")):
        assert (BIN / program).exists(), "run 'make e2e': it brings the programs"
        (path / name).symlink_to(BIN / program)
    commands = []
    for language, text in BLOCK.findall((ROOT / f"docs/{page}.md").read_text()):
        named = re.match(r"# (\S+\.yaml)\n", text)
        if language == "yaml" and named:
            (tmp_path / named[1]).parent.mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(text[named.end() :])
        if language == "sh-session":
            commands += COMMAND.findall(text)
    assert len(commands) > 5
    environment = {
        "PATH": f"{path}{os.pathsep}{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
    }
    # One shell for all, as a reader has: what is exported stays. A line no command prints parts the answers.
    script = "".join(f"{{ {command.rstrip()}\n}} 2>&1 || true\necho '=====' $?\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    answers = re.split(r"^===== \d+\n", done.stdout, flags=re.MULTILINE)
    for (command, shown), printed in zip(commands, answers, strict=False):
        assert matches(shown, printed), f"$ {command}{printed}"
