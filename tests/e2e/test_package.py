"""The wheel and the source package, built and installed as a user does: away from the checkout, with nothing around."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

import postrender

ROOT = pathlib.Path(__file__).parents[2]
INPUT = (ROOT / "examples/pipe/rendered.yaml").read_bytes()


def run(*words: object, **how: object) -> bytes:
    done = subprocess.run([str(word) for word in words], capture_output=True, check=False, **how)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stderr.decode()
    return bytes(done.stdout)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module", params=["whl", "tar.gz"])
def script(
    request: pytest.FixtureRequest, built: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """Return the script of an installation in a virtual environment of its own, which is how pipx installs."""
    [package] = built.glob(f"*.{request.param}")
    home = tmp_path_factory.mktemp("home")
    run(sys.executable, "-m", "venv", home / "venv")
    run(home / "venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", package)
    return home / "venv/bin/postrender"


def test_the_wheel_holds_what_it_should(built: pathlib.Path) -> None:
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        names = set(files.namelist())
    modules = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "postrender").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    shipped = {
        f"postrender/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / "plugins").rglob("*") if path.is_file()
    }
    own = {name for name in names if ".dist-info/" not in name}
    assert own == modules | shipped


def test_an_installation_works_by_itself(script: pathlib.Path, tmp_path: pathlib.Path) -> None:
    alone = {"cwd": tmp_path, "env": {}}
    assert run(script, "version", **alone).startswith(f"postrender {postrender.__version__} ".encode())
    assert run(script, input=INPUT, **alone) == postrender.render(INPUT).data
    plugin = pathlib.Path(run(script, "helm-plugin", "path", **alone).decode().strip())
    assert script.parents[1] in plugin.parents
    assert (plugin / "plugin.yaml").read_bytes() == (ROOT / "plugins/helm/postrender/plugin.yaml").read_bytes()
    assert not os.listdir(tmp_path)
