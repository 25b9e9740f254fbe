"""The commands of the page on Helm, run with the Helm that each block is for."""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
BIN = ROOT / ".programs/bin"
PAGE = (ROOT / "docs/helm.md").read_text()
BLOCK = re.compile(r"^<!-- helm (\d) -->\n```sh-session\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", re.MULTILINE)
HELMS = {"3": ["helm-3.17", "helm-3.19"], "4": ["helm-4.1", "helm-4.2", "helm-4.3"]}


def matches(shown: str, printed: str) -> bool:
    """Whether this was printed; `…` stands for anything, on a line of its own for any lines."""
    parts = re.split(r"^…\n", shown, flags=re.MULTILINE)
    return re.fullmatch("(?:.*\n)*?".join(re.escape(part).replace("…", ".*") for part in parts), printed) is not None


def test_every_block_with_a_prompt_is_run() -> None:
    assert PAGE.count("```sh-session\n") == len(BLOCK.findall(PAGE)) > 4
    assert "```console" not in PAGE


@pytest.mark.parametrize("helm", [helm for helms in HELMS.values() for helm in helms])
def test_the_commands(helm: str, tmp_path: pathlib.Path) -> None:
    assert (BIN / helm).exists(), "run 'make e2e': it brings the Helms"
    shutil.copytree(ROOT / "examples/helm-qwen3/chart", tmp_path / "chart")
    for name, text in re.findall(r"^```yaml\n# (\S+\.yaml)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(text)
    path = tmp_path / "bin"
    path.mkdir()
    (path / "helm").symlink_to(BIN / helm)
    environment = {
        "PATH": f"{path}{os.pathsep}{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
    }
    blocks = [text for major, text in BLOCK.findall(PAGE) if major == helm.removeprefix("helm-")[0]]
    assert blocks
    # One shell for all, as a reader has: what is exported stays. A line no command prints parts the answers.
    commands = [found for text in blocks for found in COMMAND.findall(text)]
    script = "".join(f"{{ {command.rstrip()}\n}} 2>&1 || true\necho '=====' $?\n" for command, _ in commands)
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    answers = re.split(r"^===== \d+\n", done.stdout, flags=re.MULTILINE)
    for (command, shown), printed in zip(commands, answers, strict=False):
        assert matches(shown, printed), f"$ {command}{printed}"
