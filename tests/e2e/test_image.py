"""What the image holds, made without one: the Dockerfile's own commands, run in a copy of what it copies, and what comes of
them used as kustomize uses an image: nothing to write to, no home, an empty environment.

What it cannot show is the base image and its users, and Helm and kustomize in it.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from collections.abc import Iterator

import pytest

import postrender
from tests.unit.test_image import environment, values

from .kustomize import Container, config_map, service, write
from .test_kustomize_config import one_layer

ROOT = pathlib.Path(__file__).parents[2]
HOME = "/opt/postrender"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[pathlib.Path]:
    """Return what would be /opt/postrender, read-only."""
    folder = tmp_path_factory.mktemp("image")
    context = folder / "context"
    context.mkdir()
    for line in values("COPY"):
        *names, target = line.split()
        if line.startswith("--from="):
            continue
        for name in names:
            copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
            copy(ROOT / name, context / (name if target == "./" else target))
    for cache in [*context.rglob("__pycache__")]:
        shutil.rmtree(cache)
    made = folder / "postrender"
    path = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command in values("RUN"):
        if HOME in command:
            done = subprocess.run(
                ["bash", "-c", command.replace(HOME, str(made))],
                cwd=context, env={"PATH": path, "HOME": str(folder)}, capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
    shutil.rmtree(context)
    for path in [made, *made.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o222)
    yield made
    for path in [made, *made.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


# Root writes where it likes, unless that right is taken from it.
NO_RIGHTS = ("/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.getuid() == 0 else ()


def alone(*words: object, **how: object) -> subprocess.CompletedProcess[bytes]:
    """Run a program with no rights but those of its files, and nothing around it."""
    given = {"env": {}, "cwd": "/", "timeout": 60, "check": False, **how}
    return subprocess.run([*NO_RIGHTS, *map(str, words)], capture_output=True, **given)  # type: ignore[call-overload, no-any-return]


def test_the_tree_cannot_be_written_to(tree: pathlib.Path) -> None:
    """Or the tests below would show nothing."""
    done = alone("/bin/sh", "-c", f"echo > '{tree}/lib/new'")
    assert done.returncode != 0
    assert b"Permission denied" in done.stderr


def test_it_is_byte_compiled(tree: pathlib.Path) -> None:
    [package] = tree.glob("lib/python*/site-packages/postrender")
    sources = list(package.rglob("*.py"))
    assert sources
    for path in sources:
        [compiled] = path.parent.glob(f"__pycache__/{path.stem}.*.pyc")
        # PEP 552: the second word tells that it is by hash (bit 0) and is not checked against the source (bit 1 clear).
        assert int.from_bytes(compiled.read_bytes()[4:8], "little") == 0b01, path


def test_it_holds_no_installer(tree: pathlib.Path) -> None:
    names = {path.name.partition("-")[0].lower() for path in tree.glob("lib/python*/site-packages/*")}
    assert not {"pip", "setuptools", "wheel"} & names


def test_it_is_the_function(tree: pathlib.Path, container: Container, tmp_path: pathlib.Path) -> None:
    files = one_layer(container.function(), [service("qwen"), config_map("c")])
    assert container.build(write(tmp_path, files)).code == 0
    [call] = container.calls()
    done = alone(tree / "bin/postrender", input=call.stdin.encode())
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"kind: PodGroup\n" in done.stdout


def test_it_writes_nothing(tree: pathlib.Path, tmp_path: pathlib.Path) -> None:
    before = sorted(tree.rglob("*"))
    environ = {**environment(), "HOME": "/nonexistent"}
    for words in ((), ("version",), ("policy",), ("schema", "config")):
        done = alone(tree / "bin/postrender", *words, env=environ, input=b"")
        assert (done.returncode, done.stderr) == (0, b""), words
    assert sorted(tree.rglob("*")) == before


def test_it_is_this_version_with_what_hosts_need_on_disk(tree: pathlib.Path) -> None:
    assert alone(tree / "bin/postrender", "version").stdout.startswith(f"postrender {postrender.__version__} ".encode())
    folder = pathlib.Path(alone(tree / "bin/postrender", "helm-plugin", "path").stdout.decode().strip())
    assert tree in folder.parents
    assert (folder / "plugin.yaml").exists()
