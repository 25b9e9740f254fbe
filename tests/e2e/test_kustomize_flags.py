"""Which kustomize runs a function at all, by its form and the flags given; what a user sees where it is not run.

The silent rows are why a deploy must check that PodGroups came out: nothing in the exit code or on stderr tells.
"""

from __future__ import annotations

import pathlib
import subprocess

import pytest

from .kustomize import BIN, Container, Exec, Form, service, write

RUN, SILENT = "run", "not run, nothing said"
DISABLED = "external plugins disabled; unable to load external plugin 'Gangs'"
UNKNOWN = "unknown flag"

# program and words: what comes of the exec form, and of the container form
ROWS = {
    "kustomize build": (DISABLED, DISABLED),
    "kustomize build --enable-exec": (DISABLED, DISABLED),
    "kustomize build --enable-alpha-plugins": (SILENT, RUN),
    "kustomize build --enable-alpha-plugins --enable-exec": (RUN, RUN),
    "kubectl kustomize": (DISABLED, DISABLED),
    "kubectl kustomize --enable-alpha-plugins": (SILENT, RUN),
    "kubectl kustomize --enable-alpha-plugins --enable-exec": (UNKNOWN, UNKNOWN),
    "kubectl apply --dry-run=client -k": (DISABLED, DISABLED),
    "kubectl apply --dry-run=client --enable-alpha-plugins -k": (UNKNOWN, UNKNOWN),
}


@pytest.mark.parametrize("kind", [Exec, Container])
@pytest.mark.parametrize("command", ROWS)
def test_what_is_run(command: str, kind: type[Form], tmp_path: pathlib.Path) -> None:
    form = kind(tmp_path)
    kustomization = {"resources": ["qwen.yaml"], "transformers": ["gangs.yaml"]}
    folder = write(
        tmp_path / "files",
        {"kustomization.yaml": kustomization, "qwen.yaml": service("qwen"), "gangs.yaml": form.function()},
    )
    program, *words = command.split()
    done = subprocess.run(
        [BIN / program, *words, folder], capture_output=True, text=True, env=form.environ, timeout=120, check=False
    )
    wanted = ROWS[command][kind is Container]
    if wanted in (RUN, SILENT):
        assert (done.returncode, done.stderr) == (0, "")
        assert ("kind: PodGroup\n" in done.stdout) == (wanted == RUN)
        assert "kind: InferenceService\n" in done.stdout
    else:
        assert (done.returncode, done.stdout) == (1, "")
        assert wanted in done.stderr


def test_without_a_docker_nothing_is_silent(tmp_path: pathlib.Path) -> None:
    container = Container(tmp_path)
    (container.bin / "docker").unlink()
    folder = write(
        tmp_path / "files",
        {
            "kustomization.yaml": {"resources": ["qwen.yaml"], "transformers": ["gangs.yaml"]},
            "qwen.yaml": service("qwen"),
            "gangs.yaml": container.function(),
        },
    )
    built = container.build(folder)
    assert (built.code, built.stdout) == (1, "")
    assert '"docker": executable file not found in $PATH' in built.stderr


def test_without_a_postrender_nothing_is_silent(tmp_path: pathlib.Path) -> None:
    form = Exec(tmp_path)
    (form.bin / "postrender").unlink()
    folder = write(
        tmp_path / "files",
        {
            "kustomization.yaml": {"resources": ["qwen.yaml"], "transformers": ["gangs.yaml"]},
            "qwen.yaml": service("qwen"),
            "gangs.yaml": form.function(),
        },
    )
    built = form.build(folder)
    assert (built.code, built.stdout) == (1, "")
    assert '"postrender": executable file not found in $PATH' in built.stderr
