"""`context` and `check --live` on the command line, where there is no cluster to ask."""

from __future__ import annotations

import io
import os
import pathlib
import subprocess
import sys

import pytest

from postrender.cluster import kubeconfig
from postrender.hosts.cluster import Access, _Progress

SCRIPT = pathlib.Path(sys.executable).with_name("postrender")
COMMANDS = [("context",), ("check", "--live")]


def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.environ["PATH"]
    return subprocess.run(
        [SCRIPT, *words],
        env={"PATH": path, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("words", COMMANDS)
def test_without_the_client(words: tuple[str, ...], tmp_path: pathlib.Path) -> None:
    """The extra is not installed: one line says how."""
    (tmp_path / "kubernetes").mkdir()
    (tmp_path / "kubernetes" / "__init__.py").write_text("raise ImportError('not installed')\n")
    done = run(*words, PYTHONPATH=str(tmp_path), HOME=str(tmp_path))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "postrender: error: this needs the Kubernetes client: pip install 'postrender[cluster]'\n"


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("text", [None, "", "{", "{}", "[]"])
def test_no_kubeconfig(words: tuple[str, ...], text: str | None, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    for how in ({"KUBECONFIG": str(path)}, {}):
        flags = () if how else ("--kubeconfig", str(path))
        done = run(*words, *flags, HOME=str(tmp_path), **how)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr.startswith("postrender: error: no cluster to ask: ")
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("check", "--live", "--rendered"), "--live and --rendered are two questions"),
        (("check", "-A"), "go with --live"),
        (("check", "--kube-context", "x"), "go with --live"),
        (("check", "--live", "-A", "-n", "x"), "exclude each other"),
        (("context", "-A", "-n", "x"), "exclude each other"),
        (("check", "--live", "--ome", "new"), "'new' is not a version"),
    ],
)
def test_what_does_not_go_together(words: tuple[str, ...], message: str) -> None:
    done = run(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_file_that_is_not_there(tmp_path: pathlib.Path) -> None:
    done = run("check", "--live", str(tmp_path / "none.yaml"), HOME=str(tmp_path))
    assert done.returncode == 4
    assert "none.yaml cannot be read" in done.stderr


def test_the_namespace_of_a_check_without_a_cluster_is_the_option() -> None:
    service = "{apiVersion: ome.io/v1beta1, kind: InferenceService, metadata: {name: a}, spec: {runtime: {name: r}, engine: {}}}"
    runtime = "{apiVersion: ome.io/v1beta1, kind: ServingRuntime, metadata: {name: r, namespace: llm}, spec: {engineConfig: {leader: {}, worker: {}}}}"
    for flag in ("-n", "--namespace"):
        done = subprocess.run(
            [SCRIPT, "check", flag, "llm"],
            input=f"{service}\n---\n{runtime}\n",
            capture_output=True,
            text=True,
            check=False,
        )
        assert "gang-unknown" not in done.stdout
        assert "1 gang:" in done.stderr


def test_flags_for_kubectl_and_for_us() -> None:
    access = Access("prod", "/k", "llm", False, "system")
    assert access.kubectl == ("--context", "prod", "--kubeconfig", "/k")
    assert access.ours == ("--kube-context", "prod", "--kubeconfig", "/k", "--ome-namespace", "system")
    assert Access().kubectl == Access().ours == ()


@pytest.mark.parametrize(("text", "expected"), [(None, "default"), ("llm\n", "llm"), ("", "default")])
def test_the_namespace_of_a_pod(
    text: str | None, expected: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "namespace"
    if text is not None:
        path.write_text(text)
    monkeypatch.setattr(kubeconfig, "_POD", str(path))
    assert kubeconfig.namespace("", str(tmp_path / "none")) == expected


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_for_a_terminal_and_leaves_nothing() -> None:
    terminal, pipe = Terminal(), io.StringIO()
    for target in (terminal, pipe, None):
        progress = _Progress(target)
        progress("pods")
        progress.end()
    assert pipe.getvalue() == ""
    shown = terminal.getvalue()
    assert "reading pods" in shown
    assert shown.endswith("\r\x1b[K")
    assert "\n" not in shown
