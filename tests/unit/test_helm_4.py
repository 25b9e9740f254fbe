"""Helm 4: what is written where it hides stderr and takes no empty output, and where its plugin may be put.

The Helms are scripts that answer as the real ones do; tests/e2e has the real ones.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import postrender
from postrender import cli
from postrender.hosts import filter as host
from postrender.hosts import helm_plugin
from tests.unit.test_filter import BROKEN, SERVICE

SCRIPT = Path(sys.executable).with_name("postrender")
HELM_4 = {"HELM_PLUGIN_NAME": "postrender", "HELM_PLUGIN_DIR": "/plugins/postrender"}
# Warnings of the first, then the errors of two.
SEVERAL = b"---\n".join([SERVICE.replace(b"qwen", b"first"), BROKEN, BROKEN.replace(b"qwen", b"last")])


@pytest.fixture
def helm_4(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in HELM_4.items():
        monkeypatch.setenv(name, value)


def run(data: bytes, flags: dict[str, str] | None = None) -> tuple[int, bytes, str]:
    target, errors = io.BytesIO(), io.StringIO()
    code = host.run(host.STDIN, io.BytesIO(data), target, errors, flags)
    return code, target.getvalue(), errors.getvalue()


# -- the filter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\n"])
def test_nothing_to_deploy_is_a_comment(helm_4: None, data: bytes) -> None:
    assert run(data) == (0, b"# nothing to deploy\n", "")


def test_nothing_to_deploy_is_nothing_elsewhere() -> None:
    assert run(b"\n") == (0, b"\n", "")


@pytest.mark.parametrize("data", [SERVICE, b"kind: ConfigMap\n", b"# a comment\n"])
def test_what_is_deployed_is_the_same(helm_4: None, data: bytes) -> None:
    code, written, _ = run(data)
    assert (code, written) == (0, postrender.render(data).data)


def test_an_error_is_a_separator_that_helm_refuses(helm_4: None) -> None:
    code, written, said = run(SEVERAL)
    first = said.splitlines()[0]
    assert first.startswith("postrender: error: <stdin>:")
    assert "InferenceService/qwen" in first
    assert "InferenceService/last" in said
    assert ": warning: " in said
    assert (code, written.decode()) == (0, f"#\n---{first}\n")


@pytest.mark.parametrize(
    "environ", [{"HELM_PLUGIN_NAME": "diff", "HELM_PLUGIN_DIR": "/plugins/diff"}, {"HELM_PLUGIN_NAME": "postrender"}]
)
def test_an_error_is_an_exit_code_elsewhere(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert run(BROKEN)[:2] == (1, b"")


def test_a_separator_is_one_line_that_helm_prints_whole() -> None:
    assert host.shown_by_helm_4("\nfirst\nsecond\n") == b"#\n---first\n"
    assert host.shown_by_helm_4("\udcff.yaml cannot be read") == b"#\n---\\udcff.yaml cannot be read\n"
    assert host.shown_by_helm_4("x" * 2_000) == b"#\n---" + b"x" * 900 + b"\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"spares": "many"}, "postrender: error: --spares: 'many' is not a number from 0 to 1,000"),
        ({"context": "missing"}, "postrender: error: --context: missing cannot be read: No such file or directory"),
    ],
)
def test_a_wrong_option_is_shown(helm_4: None, flags: dict[str, str], message: str) -> None:
    assert run(SERVICE, flags) == (0, f"#\n---{message}\n".encode(), message + "\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--nonsense"], b"#\n---postrender: error: No such option"),
        (["missing.yaml"], b"#\n---postrender: error: missing.yaml cannot be read: No such file or directory\n"),
    ],
)
def test_a_wrong_command_line_is_shown(
    helm_4: None, monkeypatch: pytest.MonkeyPatch, words: list[str], message: bytes
) -> None:
    target = io.BytesIO()
    out = io.TextIOWrapper(target, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    assert cli.run(words) == 0
    out.flush()
    assert target.getvalue().startswith(message)


def test_a_bug_of_ours_is_shown(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import postrender.pipeline as pipeline\ndef broken(*_): raise LookupError('no luck')\npipeline.plan = broken\n"
    )
    environ = {**os.environ, **HELM_4, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([SCRIPT], input=SERVICE, capture_output=True, env=environ, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"#\n---postrender: error: a bug of postrender: LookupError: no luck at ")
    assert done.stdout.count(b"\n") == 2


# -- the plugin ------------------------------------------------------------------------------------------------------


class Machine:
    """A PATH of one folder, with our program and scripts that answer as Helms do."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.plugins = folder / "plugins"
        self.plugins.mkdir()
        self.place = self.plugins / "postrender"
        self.environ = {"PATH": str(self.bin)}
        self.script("postrender", "exit 1")

    def script(self, name: str, text: str) -> None:
        (self.bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.bin / name).chmod(0o755)

    def helm(self, name: str, version: str, plugins: Path | str | None = None) -> None:
        """Put a Helm of a version under a name; its plugins stand in HELM_PLUGINS, else in the folder of all or another."""
        answers = f"version) echo {version};; env) echo ${{HELM_PLUGINS:-{plugins or self.plugins}}};;"
        self.script(name, f'case "$1" in {answers} *) exit 1;; esac')

    def install(self, helm: str = "helm") -> str:
        return helm_plugin.install(helm, self.environ)

    def refusal(self, helm: str = "helm") -> str:
        """Return why nothing is installed."""
        before = sorted(self.plugins.rglob("*"))
        with pytest.raises(helm_plugin.Refused) as refused:
            self.install(helm)
        assert sorted(self.plugins.rglob("*")) == before
        return str(refused.value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


SHIPPED = helm_plugin.folder() / "plugin.yaml"


@pytest.mark.parametrize("version", ["v4.0.0", "v4.3.0-rc.1", "4.1.2", "v10.0.1"])
def test_it_is_put_where_a_helm_4_looks(machine: Machine, version: str) -> None:
    machine.helm("helm", version)
    assert machine.install() == f"{machine.place} installed; use it as --post-renderer postrender"
    assert [path.name for path in machine.place.iterdir()] == ["plugin.yaml"]
    assert (machine.place / "plugin.yaml").read_bytes() == SHIPPED.read_bytes()
    assert machine.install() == f"{machine.place} is there already"


def test_of_several_folders_the_first(machine: Machine) -> None:
    machine.helm("helm4", "v4.1.0", f"{machine.plugins}{os.pathsep}/nowhere")
    machine.install("helm4")
    assert (machine.place / "plugin.yaml").exists()


def test_an_older_one_of_ours_is_replaced(machine: Machine) -> None:
    machine.helm("helm", "v4.1.0")
    machine.place.mkdir()
    (machine.place / "plugin.yaml").write_text("apiVersion: v1\nname: postrender\nversion: 0.0.1\n")
    machine.install()
    assert (machine.place / "plugin.yaml").read_bytes() == SHIPPED.read_bytes()


@pytest.mark.parametrize("version", ["v3.19.2", "3.9.0", "v2.17.0", "", "latest"])
def test_no_other_helm_gets_it(machine: Machine, version: str) -> None:
    machine.helm("helm", version)
    assert "which needs no plugin: use --post-renderer postrender" in machine.refusal()


@pytest.mark.parametrize("name", ["helm", "helm3", "helm-3.19", "helm_v3.19.2", "helm.exe", "helm3.exe"])
def test_no_helm_3_may_read_the_folder(machine: Machine, name: str) -> None:
    machine.helm("helm-four", "v4.1.0")
    machine.helm(name, "v3.19.2")
    refusal = machine.refusal("helm-four")
    assert refusal.startswith(f"{machine.bin / name} is Helm v3.19.2 and reads {machine.plugins} too: ")


def test_no_helm_3_may_read_the_folder_by_another_path(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(machine.plugins)
    machine.helm("helm", "v4.1.0")
    machine.helm("helm3", "v3.19.2", tmp_path / "link")
    assert "helm3 is Helm v3.19.2 and reads" in machine.refusal()


def test_a_helm_3_with_a_folder_of_its_own_does_not_matter(machine: Machine, tmp_path: Path) -> None:
    machine.helm("helm", "v4.1.0")
    machine.helm("helm3", "v3.19.2", tmp_path / "own")
    machine.script("helm2", "exit 1")
    machine.helm("helmfile", "v3.0.0")  # no Helm
    assert machine.install().startswith(f"{machine.place} installed")


def test_helm_plugins_is_set_for_this_helm_alone(machine: Machine, tmp_path: Path) -> None:
    machine.helm("helm", "v4.1.0")
    machine.helm("helm3", "v3.19.2")
    machine.environ["HELM_PLUGINS"] = str(tmp_path / "fours")
    assert machine.install().startswith(f"{tmp_path / 'fours' / 'postrender'} installed")


def test_a_link_to_a_checkout_stays(machine: Machine, tmp_path: Path) -> None:
    machine.helm("helm", "v4.1.0")
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "plugin.yaml").write_text("name: postrender\nversion: 0.0.1\n")
    machine.place.symlink_to(checkout)
    assert machine.refusal() == f"{machine.place} is a link to {checkout.resolve()}, another version; remove it first"
    assert (checkout / "plugin.yaml").read_text() == "name: postrender\nversion: 0.0.1\n"


def test_what_stands_there_stays(machine: Machine) -> None:
    machine.helm("helm", "v4.1.0")
    machine.place.mkdir()
    (machine.place / "plugin.yaml").write_text("name: postrender-other\n")
    assert machine.refusal() == f"{machine.place} holds another plugin; remove it first"
    assert (machine.place / "plugin.yaml").read_text() == "name: postrender-other\n"
    (machine.place / "plugin.yaml").unlink()
    assert machine.refusal() == f"{machine.place} is there and is no plugin; remove it first"
    machine.place.rmdir()
    machine.place.symlink_to("nowhere")
    assert machine.refusal() == f"{machine.place} is there and is no plugin; remove it first"


def test_its_program_must_be_on_path(machine: Machine) -> None:
    machine.helm("helm", "v4.1.0")
    (machine.bin / "postrender").unlink()
    assert machine.refusal().startswith("postrender is not on PATH, where the plugin looks for it")


def test_a_helm_that_is_missing_or_fails(machine: Machine) -> None:
    assert machine.refusal("helm5") == "helm5: there is no such program; name a Helm 4 with --helm"
    machine.script("helm", "echo no >&2; exit 1")
    assert machine.refusal() == f"{machine.bin / 'helm'} version failed: no"
