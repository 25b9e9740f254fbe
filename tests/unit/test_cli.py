"""The command line around the filter."""

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


@pytest.mark.parametrize("name", ["missing.yaml", "."])
def test_a_file_that_cannot_be_read(tmp_path, name):
    done = within.run(str(tmp_path / name))
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr.startswith(f"postrender: error: {tmp_path / name}: cannot be read: ".encode())


def test_a_closed_stdout_beside_a_file(tmp_path):
    (tmp_path / "in.yaml").write_bytes(SERVICE)
    command = f'"{SCRIPT}" {tmp_path}/in.yaml >&-'
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (4, b"postrender: error: stdout is closed; give it a pipe or a file\n")


@pytest.mark.parametrize("words", [("--nonsense",), ("a", "b"), ("render", "--nonsense")])
def test_a_wrong_command_line(words):
    done = within.run(*words)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Error: " in done.stderr


@pytest.mark.parametrize("words", [("--help",), ("-h",), ("render", "--help"), ("version", "--help")])
def test_help(words):
    done = within.run(*words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"Usage: postrender")
    assert max(len(line) for line in done.stdout.decode().splitlines()) <= 100


def test_version():
    done = within.run("version")
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
