"""The commands of the page on kustomize and of the README's section, and the examples, run with the real kustomize."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from .kustomize import BIN, PLUGINS, ROOT, SCRIPTS, Container
from .test_helm_docs import COMMAND, matches

PAGES = {"README.md": ROOT / "README.md", "kustomize.md": ROOT / "docs/kustomize.md"}
BLOCK = re.compile(r"^<!-- kustomize -->\n```sh-session\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = ROOT / "examples"


@pytest.fixture
def environ(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return an environment with kustomize, kubectl, Helm, our script and the stand-in for docker on PATH."""
    folder = Container(tmp_path_factory.mktemp("container")).bin
    for name, program in {
        "kustomize": BIN / "kustomize",
        "kubectl": BIN / "kubectl",
        "helm": BIN / "helm-4.3",
        "postrender": SCRIPTS / "postrender",
    }.items():
        assert program.exists(), "run 'make e2e': it brings the programs"
        (folder / name).symlink_to(program)
    return {"PATH": f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin", "HOME": str(folder)}


def test_every_block_with_a_prompt_is_run() -> None:
    text = PAGES["kustomize.md"].read_text()
    assert text.count("```sh-session\n") == len(BLOCK.findall(text)) > 4
    assert "```console" not in text
    assert len(BLOCK.findall(PAGES["README.md"].read_text())) == 1


@pytest.mark.parametrize("page", PAGES)
def test_the_commands(page: str, environ: dict[str, str], tmp_path: pathlib.Path) -> None:
    text = PAGES[page].read_text()
    shutil.copytree(EXAMPLES / "kustomize-transformer", tmp_path, dirs_exist_ok=True)
    shutil.copytree(EXAMPLES / "helm-qwen3/chart", tmp_path / "helm/charts/qwen3")
    shutil.copy(EXAMPLES / "pipe/rendered.yaml", tmp_path / "rendered.yaml")
    for name, content in re.findall(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    # One shell for all, as a reader has. A line no command prints parts the answers.
    commands = [found for block in BLOCK.findall(text) for found in COMMAND.findall(block)]
    script = "".join(f"{{ {command.rstrip()}\n}} 2>&1 || true\necho '=====' $?\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=120, check=True
    )
    answers = re.split(r"^===== \d+\n", done.stdout, flags=re.MULTILINE)
    for (command, shown), printed in zip(commands, answers, strict=False):
        assert matches(shown, printed), f"$ {command}{printed}"


BUILDS = sorted(path.parent.name for path in EXAMPLES.glob("*/build"))


@pytest.mark.parametrize("example", BUILDS)
def test_an_example(example: str, environ: dict[str, str]) -> None:
    done = subprocess.run(
        ["bash", "build"], cwd=EXAMPLES / example, env=environ, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (EXAMPLES / example / "expected.yaml").read_text()


def test_there_are_examples() -> None:
    assert BUILDS == ["kustomize-generator", "kustomize-transformer"]


def test_the_example_has_the_references_that_are_shipped() -> None:
    copy = EXAMPLES / "kustomize-transformer/overlay/namereference-ome.yaml"
    assert copy.read_bytes() == (PLUGINS / "namereference-ome.yaml").read_bytes()
