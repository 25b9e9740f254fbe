"""The hook for pre-commit, by the real one, with the configuration that docs/ci.md shows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests import test_ci as page

ROOT = Path(__file__).parents[2]
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=tests", "-c", "user.email=tests@example.com", "-c", "init.defaultBranch=main"]
    command = ["git", *identity, "-C", str(folder), *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with manifests, held to the hook of ours as it is in this folder now."""
    hooks = tmp_path / "postrender"
    names = git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    for name in sorted({*names} - {""}):
        if not name.startswith("tests/") and (ROOT / name).is_file():
            (hooks / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, hooks / name)
    git(tmp_path, "init", "--quiet", str(hooks))
    git(hooks, "add", "--all")
    git(hooks, "commit", "--quiet", "--message", "as it is")
    config = page.SNIPPETS[".pre-commit-config.yaml"]
    config["repos"][0].update(repo=str(hooks), rev=git(hooks, "rev-parse", "HEAD"))
    mine = tmp_path / "mine"
    (mine / "deploy").mkdir(parents=True)
    (mine / "templates").mkdir()
    (mine / "templates/isvc.yaml").write_text("kind: InferenceService\nmetadata: {name: {{ .Release.Name }}}\n")
    (mine / "deploy/qwen3.yaml").write_text(page.GOOD)
    (mine / "deploy/config.yaml").write_text("kind: ConfigMap\n")
    (mine / "postrender.yaml").write_text(yaml.safe_dump(page.SNIPPETS["postrender.yaml"]))
    (mine / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(tmp_path, "init", "--quiet", str(mine))
    return mine


def committed(checkout: Path) -> tuple[int, str]:
    """Return what pre-commit says of all files."""
    git(checkout, "add", "--all")
    around = {"PATH": os.environ["PATH"], "HOME": str(checkout), "PRE_COMMIT_HOME": str(checkout.parent / "cache")}
    done = subprocess.run(
        [PRE_COMMIT, "run", "--all-files"],
        cwd=checkout,
        env=around,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_hook(checkout: Path) -> None:
    code, said = committed(checkout)
    assert code == 0, said
    assert "postrender check" in said
    assert "Passed" in said

    (checkout / "deploy/qwen3.yaml").write_text(page.STREAM.replace("size: 1", "size: 0"))
    code, said = committed(checkout)
    assert code == 1, said
    assert "postrender: error: deploy/qwen3.yaml:23:13 (qwen/templates/isvc.yaml): InferenceService/" in said
