"""`context` and `check --live` on the command line, where there is no cluster to ask."""

from __future__ import annotations

import io
import os
import pathlib
import re
import subprocess
import sys

import pytest

from postrender.cluster import kubeconfig
from postrender.cluster.client import REQUIREMENT
from postrender.hosts.cluster import Access, _Progress
from tests import within

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
    assert done.stderr == f"postrender: error: this needs the Kubernetes client: pip install '{REQUIREMENT}'\n"


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("text", [None, "", "{", "{}", "[]"])
def test_no_kubeconfig(words: tuple[str, ...], text: str | None, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    done = within.run(*words, "--kubeconfig", str(path), env={"HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.startswith(f"postrender: error: no cluster to ask: {path}: ".encode())
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("text", [None, "{"])
def test_no_kubeconfig_where_the_environment_says(
    words: tuple[str, ...], text: str | None, tmp_path: pathlib.Path
) -> None:
    """A process each: the client looks at the environment when it is imported."""
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    done = run(*words, HOME=str(tmp_path), KUBECONFIG=str(path))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"postrender: error: no cluster to ask: {path}: ")
    assert done.stderr.count("\n") == 1


def test_the_client_is_what_the_package_asks_for() -> None:
    text = (pathlib.Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert re.findall(r'"(kubernetes[<>=][^"]*)"', text) == [REQUIREMENT, REQUIREMENT]


CONFIG = """\
apiVersion: v1
kind: Config
clusters:
- {name: c, cluster: {server: "https://127.0.0.1:1"}}
users:
- name: u
  user: USER
contexts:
- {name: one, context: {cluster: c, user: u}}
- {name: two, context: {cluster: c, user: u}}
"""
EXEC = "{exec: {apiVersion: client.authentication.k8s.io/v1, command: COMMAND, interactiveMode: Never}}"


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("user", "message"),
    [
        (
            EXEC.replace("COMMAND", "aws-nope"),
            "the program 'aws-nope', which logs in, cannot be run: No such file or directory;"
            " install it, or put it on PATH",
        ),
        (EXEC.replace("COMMAND", "'false'"), "exec: process returned 1"),
        (EXEC.replace("COMMAND", "'true'"), "exec: failed to decode process output: "),
    ],
)
def test_a_program_that_does_not_log_in(
    words: tuple[str, ...], user: str, message: str, tmp_path: pathlib.Path
) -> None:
    """The client goes on as nobody then, and tells it in a form of its own."""
    path = tmp_path / "config"
    path.write_text(CONFIG.replace("USER", user) + "current-context: one\n")
    done = run(*words, "--kubeconfig", str(path))
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr.startswith(f"postrender: error: no cluster to ask: {path}: {message}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "words", "message"),
    [
        (None, (), "PATH: no such file"),
        ("current-context: one\n", ("--kube-context", "zz"), "PATH has no context 'zz'; it has one, two"),
        ("current-context: zz\n", (), "PATH has no context 'zz'; it has one, two"),
        ("current-context: ''\n", (), "PATH has no current context; it has one, two"),
        ("", (), "PATH has no current context; it has one, two"),
    ],
)
def test_a_kubeconfig_without_what_is_asked_for(
    text: str | None, words: tuple[str, ...], message: str, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(CONFIG.replace("USER", "{}") + text)
    for flags, environment in ((("--kubeconfig", str(path)), {}), ((), {"KUBECONFIG": str(path)})):
        done = run("context", *flags, *words, **environment)
        assert (done.returncode, done.stdout) == (4, "")
        assert done.stderr == f"postrender: error: no cluster to ask: {message.replace('PATH', str(path))}\n"


def test_a_program_that_logs_in_is_run_once(tmp_path: pathlib.Path) -> None:
    program = tmp_path / "login"
    answer = '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "t"}}'
    program.write_text(f"#!/bin/sh\necho run >> {tmp_path}/runs\necho '{answer}'\n")
    program.chmod(0o755)
    path = tmp_path / "config"
    path.write_text(CONFIG.replace("USER", EXEC.replace("COMMAND", str(program))) + "current-context: one\n")
    done = run("context", "--kubeconfig", str(path))
    assert (done.returncode, "does not answer" in done.stderr) == (4, True)
    assert (tmp_path / "runs").read_text() == "run\n"


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
    done = within.run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert message in done.stderr.decode()


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
