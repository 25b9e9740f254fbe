"""`postrender reconcile`: once, for ever, and how it ends; against an API server in memory behind HTTP."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from postrender.cluster.client import REQUIREMENT, Refused
from postrender.reconciler import run as host
from postrender.reconciler.loop import Settings
from tests.reconciler.memory import Memory
from tests.reconciler.server import serving

NS, NAME = "ns", "svc-engine-0"


@pytest.fixture
def memory():
    held = Memory()
    held.owner(NS, "svc")
    held.group(NS, NAME)
    return held


@pytest.fixture
def server(memory):
    with serving(memory) as running:
        yield running


@pytest.fixture
def kubeconfig(server, tmp_path):
    return server.kubeconfig(tmp_path)


def once(kubeconfig, **settings):
    """Run it once in this process; its exit code, and its lines."""
    written = io.StringIO()
    code = host.run(Settings(**settings), "", str(kubeconfig), "127.0.0.1:0", True, False, written)
    return code, [json.loads(line) for line in written.getvalue().splitlines()]


@contextlib.contextmanager
def started(kubeconfig, *words):
    """Run it as a process until the block ends."""
    command = [
        sys.executable,
        "-m",
        "postrender",
        "reconcile",
        "--kubeconfig",
        str(kubeconfig),
        "--listen",
        "127.0.0.1:0",
    ]
    process = subprocess.Popen(
        [*command, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    lines = []

    def read():
        for line in process.stderr:
            lines.append(json.loads(line))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield process, lines
    finally:
        process.kill()
        process.wait()
        reader.join()
        assert process.stdout.read() == b""
        process.stdout.close()
        process.stderr.close()


def wait(predicate, seconds=20):
    end = time.monotonic() + seconds
    while not predicate():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_once(memory, kubeconfig):
    code, lines = once(kubeconfig)
    assert (code, memory.phase(NS, NAME)) == (0, "Pending")
    assert [line["msg"] for line in lines] == ["podgroups.scheduling.x-k8s.io is served", "reset"]


def test_once_with_nothing_to_do(memory, kubeconfig):
    memory.group(NS, NAME, "Running")
    assert once(kubeconfig)[0] == 0
    assert {method for method, *_ in memory.asked} == {"GET"}


def test_once_looks_again_where_it_changed_meanwhile(memory, kubeconfig):
    left = [2]

    def meddle(method, resource, name):
        if method == "PATCH" and left[0]:
            left[0] -= 1
            memory.put("podgroups", {**memory.objects["podgroups", NS, NAME], "touched": left[0]})

    memory.before = meddle
    assert once(kubeconfig)[0] == 0
    assert memory.phase(NS, NAME) == "Pending"


def test_once_dry(memory, kubeconfig):
    code, lines = once(kubeconfig, dry_run=True)
    assert (code, memory.phase(NS, NAME)) == (0, "Failed")
    assert {method for method, *_ in memory.asked} == {"GET"}
    assert lines[-1]["msg"] == "would reset"


def refuse(memory, status, method, resource="", name="", times=99):
    left = [times]

    def befall(asked, what, who):
        if asked == method and what.startswith(resource) and name in ("", who) and left[0]:
            left[0] -= 1
            raise Refused(status, "Made", "made up by a test")

    memory.before = befall


@pytest.mark.parametrize(
    ("status", "resource", "code", "text"),
    [
        (403, "podgroups", 1, "made up by a test (HTTP 403, Made)"),
        (500, "podgroups", 1, "made up by a test (HTTP 500, Made)"),
        (404, "podgroups", 1, "podgroups.scheduling.x-k8s.io is not served"),
        (410, "podgroups", 1, "made up by a test (HTTP 410, Made)"),
    ],
)
def test_once_without_a_list(memory, kubeconfig, status, resource, code, text):
    refuse(memory, status, "GET", resource)
    got, lines = once(kubeconfig)
    assert (got, len(lines), lines[0]["level"]) == (code, 1, "error")
    assert lines[0]["msg"].startswith(text)


def test_once_begins_a_list_again_that_expired(memory, kubeconfig):
    refuse(memory, 410, "GET", "podgroups", times=2)
    assert once(kubeconfig)[0] == 0
    assert memory.phase(NS, NAME) == "Pending"


def test_once_does_the_others_where_one_is_refused(memory, kubeconfig):
    memory.group(NS, "svc-engine-1")
    refuse(memory, 403, "PATCH", name=NAME)
    code, lines = once(kubeconfig)
    assert (code, memory.phase(NS, NAME), memory.phase(NS, "svc-engine-1")) == (1, "Failed", "Pending")
    assert [line["level"] for line in lines if line["msg"].startswith("made up")] == ["warning", "error"]


def test_once_gives_up_a_server_that_fails(memory, kubeconfig):
    for number in range(1, 20):
        memory.group(NS, f"svc-engine-{number}")
    refuse(memory, 503, "PATCH")
    code, lines = once(kubeconfig)
    assert code == 1
    assert [line["level"] for line in lines[1:]] == ["warning"] * 3 + ["error"]


def test_nobody_there(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        config = {"server": f"http://127.0.0.1:{taken.getsockname()[1]}"}
        path = tmp_path / "kubeconfig"
        path.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "it", "cluster": config}],
                    "users": [{"name": "me", "user": {}}],
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                    "current-context": "it",
                }
            )
        )
        code, lines = once(path)
    assert (code, len(lines)) == (4, 1)
    assert "does not answer" in lines[0]["msg"]


@pytest.mark.parametrize("text", [None, "", "a: [", "[]", "apiVersion: v1\nkind: Config\n", "\0"])
def test_a_kubeconfig_that_is_none(tmp_path, text):
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
    code, lines = once(path)
    assert (code, len(lines), lines[0]["level"]) == (4, 1, "error")
    assert str(path) in lines[0]["msg"]


def test_without_the_client(monkeypatch, kubeconfig):
    for name in [name for name in sys.modules if name.partition(".")[0] == "kubernetes"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kubernetes", None)
    code, lines = once(kubeconfig)
    assert code == 4
    assert f"pip install '{REQUIREMENT}'" in lines[0]["msg"]


@pytest.mark.parametrize("listen", ["8080", "127.0.0.1:", "127.0.0.1:http", ":65536", "[::1]:-1"])
def test_listen_is_a_host_and_a_port(kubeconfig, listen):
    written = io.StringIO()
    assert host.run(Settings(), "", str(kubeconfig), listen, False, False, written) == 2
    assert "is no HOST:PORT" in json.loads(written.getvalue())["msg"]


def test_a_port_that_is_taken(kubeconfig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        written = io.StringIO()
        assert host.run(Settings(), "", str(kubeconfig), listen, False, False, written) == 4
    assert json.loads(written.getvalue())["msg"] == f"--listen {listen}: Address already in use"


def test_for_ever_and_an_end_on_a_signal(memory, server, kubeconfig):
    with started(kubeconfig) as (process, lines):
        wait(lambda: memory.phase(NS, NAME) == "Pending")
        with server.lock:
            memory.group(NS, "svc-engine-1")
        wait(lambda: memory.phase(NS, "svc-engine-1") == "Pending")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0
        assert time.monotonic() - began < 5
        wait(lambda: lines[-1]["msg"] == "stopped")
        assert (lines[-1]["signal"], lines[-1]["unfinished"]) == ("SIGTERM", 0)
        assert {line["level"] for line in lines} == {"info"}
        assert {tuple(line)[:3] for line in lines} == {("ts", "level", "msg")}


def test_a_second_signal_ends_it_at_once(memory, server, kubeconfig):
    hung = threading.Event()

    def hold(method, path):
        if "/pods" in path:
            hung.set()
            server.ended.wait(30)

    server.hold = hold
    with started(kubeconfig) as (process, _):
        assert hung.wait(20)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(5) == -signal.SIGTERM
        assert time.monotonic() - began < 5


def test_the_token_is_in_no_line(memory, server, tmp_path):
    kubeconfig = server.kubeconfig(tmp_path, token="t0ps3cret")
    refuse(memory, 401, "GET")
    written = io.StringIO()
    host.run(Settings(), "", str(kubeconfig), "127.0.0.1:0", True, True, written)
    assert "t0ps3cret" not in written.getvalue()
    assert os.path.exists(kubeconfig)
