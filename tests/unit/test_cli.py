"""The command line around the filter."""

import os
import pathlib
import subprocess
import sys

import pytest

import postrender
from tests import within
from tests.unit.test_filter import SERVICE

SCRIPT = pathlib.Path(sys.executable).with_name("postrender")


@pytest.mark.parametrize("words", [("-",), ("render",), ("render", "-")])
def test_stdin_by_name(words):
    done = subprocess.run([SCRIPT, *words], input=SERVICE, capture_output=True, timeout=60, check=True)
    assert done.stdout == postrender.render(SERVICE).data


@pytest.mark.parametrize("command", [(), ("render",)])
def test_a_file(tmp_path, command):
    path = tmp_path / "in.yaml"
    path.write_bytes(SERVICE)
    done = within.run(*command, str(path))
    assert (done.returncode, done.stdout) == (0, postrender.render(SERVICE).data)
    assert f"postrender: warning: {path}:1:1: InferenceService/qwen: spec.runtime: ".encode() in done.stderr


@pytest.mark.parametrize("command", [(), ("render",), ("patches", "--form=kustomize")])
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("missing.yaml", "cannot be read: No such file or directory"),
        (".", "holds no file that ends in .yaml, .yml, .json"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, command, name, said):
    done = within.run(*command, str(tmp_path / name))
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == f"postrender: error: {tmp_path / name} {said}\n".encode()


@pytest.mark.parametrize("command", [(), ("patches", "--form=kustomize")])
def test_a_folder_is_one_stream(tmp_path, command):
    (tmp_path / "a.yaml").write_bytes(b"kind: A")
    (tmp_path / "b.yaml").write_bytes(SERVICE)
    done = within.run(*command, str(tmp_path))
    assert (done.returncode, done.stdout) == (0, within.run(*command, data=b"kind: A\n---\n" + SERVICE).stdout)
    assert f"postrender: warning: {tmp_path}/b.yaml:1:1: InferenceService/qwen: spec.runtime: ".encode() in done.stderr


@pytest.mark.parametrize(
    "words", [(), ("render",), ("--strict",), ("krm",), ("patches", "--form=kustomize"), ("check",), ("explain",)]
)
def test_a_terminal_on_stdin_is_not_waited_for(words):
    master, slave = os.openpty()
    try:
        done = subprocess.run([SCRIPT, *words], stdin=slave, capture_output=True, timeout=60, check=False)
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert done.stderr == b"postrender: error: stdin is a terminal; give it a pipe, or name a FILE\n"


def test_a_closed_stdout_beside_a_file(tmp_path):
    (tmp_path / "in.yaml").write_bytes(SERVICE)
    command = f'"{SCRIPT}" {tmp_path}/in.yaml >&-'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (4, b"postrender: error: stdout is closed; give it a pipe or a file\n")


@pytest.mark.parametrize("words", [("--nonsense",), ("a", "b"), ("render", "a", "b"), ("render", "--nonsense")])
def test_a_wrong_command_line(words):
    done = within.run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    usage, error = done.stderr.decode().splitlines()
    assert usage.startswith("Usage: postrender ")
    assert error.startswith("postrender: error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("expalin",), "there is no command or file 'expalin'; did you mean explain?"),
        (("expalin", "in.yaml"), "there is no command or file 'expalin'; did you mean explain?"),
        (("help",), "there is no command or file 'help'; did you mean --help?"),
        (("nowhere",), "there is no command or file 'nowhere'"),
        (("--strict", "check", "in.yaml"), "options go behind the command: postrender check --strict …"),
        (
            ("--scheduler-name", "check", "diff"),
            "options go behind the command: postrender diff --scheduler-name check …",
        ),
    ],
)
def test_a_word_that_is_no_command(tmp_path, words, said):
    (tmp_path / "in.yaml").write_bytes(SERVICE)
    done = subprocess.run([SCRIPT, *words], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().splitlines()[1:] == [f"postrender: error: {said}"]


@pytest.mark.parametrize("words", [("--scheduler-name", "check", "--ome=1.2", "in"), ("--ome=1.2", "check"), ("in",)])
def test_a_file_may_be_called_as_it_likes(tmp_path, words):
    for name in ("in", "check"):
        (tmp_path / name).write_bytes(SERVICE)
    done = subprocess.run([SCRIPT, *words], cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, b"kind: PodGroup" in done.stdout) == (0, True)


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("render", "--help"), ("version", "--help")])
def test_help(words):
    done = within.run(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Usage: postrender")
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 100


@pytest.mark.parametrize("word", ["version", "--version"])
def test_version(word):
    done = within.run(word)
    assert done.stdout.startswith(f"postrender {postrender.__version__} (PyYAML ".encode())
    assert b"libyaml 0." in done.stdout


def test_a_full_disk_is_said_once():
    """A small output fails when it is flushed, and then with every flush."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [SCRIPT, "render", "-"], input=b"kind: A", stdout=full, stderr=subprocess.PIPE, env={}, check=False
        )
    assert done.returncode == 4
    assert done.stderr == b"postrender: error: the output could not be written: No space left on device\n"
