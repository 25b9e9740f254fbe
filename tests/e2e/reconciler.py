"""The reconciler as a process beside a cluster, with exactly the rights that it is shipped with.

with Reconciler(cluster, account(cluster)) as it:
    it.wait_log("reset", name="svc-engine-0")
    assert it.metric("postrender_podgroups", phase="Running") == 1
"""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from .cluster import Cluster
from .cluster.api import Object, Objects

ROOT = Path(__file__).resolve().parents[2]
RBAC = ROOT / "plugins" / "reconciler" / "base" / "rbac.yaml"
NAME = "postrender-reconciler"
USER = f"system:serviceaccount:{{}}:{NAME}"
_NUMBERS = itertools.count(1)


def rules() -> Objects:
    """Return the rules that are shipped."""
    [role] = [one for one in yaml.safe_load_all(RBAC.read_text()) if one["kind"] == "ClusterRole"]
    return list(role["rules"])


def account(cluster: Cluster, namespace: str, granted: Objects | None = None) -> Path:
    """Make its account in a namespace, with these rules or with those that are shipped; return a kubeconfig."""
    return cluster.service_account(NAME, namespace, rules() if granted is None else granted, everywhere=True)


def role_of(namespace: str) -> str:
    """Return the name of the ClusterRole of the account in a namespace."""
    return f"cluster:{namespace}:{NAME}"


class Reconciler:
    """A running `postrender reconcile`; it is killed with its block, and what it logged can be read."""

    def __init__(
        self,
        cluster: Cluster,
        kubeconfig: Path,
        *words: str,
        wanted: bool = True,
        program: Sequence[str] = ("-m", "postrender"),
    ) -> None:
        self.cluster = cluster
        self.kubeconfig = kubeconfig
        self.words = words
        self.wanted = wanted  # to become ready
        self.program = program  # what Python runs
        self.port = 0
        self.path = cluster.folder / "logs" / f"reconciler-{next(_NUMBERS)}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Reconciler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it serves, and is ready if it is to be."""
        before = len(self.log("started"))
        command = [sys.executable, *self.program, "reconcile", "--kubeconfig", str(self.kubeconfig)]
        with self.path.open("ab") as log:
            self.process = subprocess.Popen(
                [*command, "--listen", "127.0.0.1:0", "-v", *self.words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                # Its mark makes the watchdog end it, should we go without having done so.
                env=self.cluster.environment,
                start_new_session=True,
            )
        self.wait(lambda: len(self.log("started")) > before, 20, "it to start")
        self.port = self.log("started")[-1]["port"]
        if self.wanted:
            self.wait(lambda: self.get("/readyz")[0] == 200, 20, "it to be ready")

    def kill(self) -> None:
        """End it as `kill -9` does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def stop(self, seconds: float = 15.0) -> tuple[int, float]:
        """End it with SIGTERM; return its exit code and how long that took."""
        assert self.process is not None
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds), time.monotonic() - began

    def pause(self) -> None:
        """Stop it in its tracks."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def wait(self, predicate: Callable[[], Any], seconds: float, what: str) -> Any:
        """Ask until the answer is true, and return it; that it ended is an end."""
        end = time.monotonic() + seconds
        while not (found := _tried(predicate)):
            assert self.process is not None
            assert self.process.poll() is None, f"it ended with {self.process.returncode}:\n{self.tail()}"
            assert time.monotonic() < end, f"waited {seconds} s in vain for {what}:\n{self.tail()}"
            time.sleep(0.05)
        return found

    # What it says

    def log(self, message: str = "", **fields: object) -> list[Object]:
        """Return its lines with this message and these fields; every line it writes is JSON."""
        if not self.path.exists():
            return []
        lines = [json.loads(line) for line in self.path.read_bytes().split(b"\n")[:-1]]
        return [
            line
            for line in lines
            if (not message or line["msg"] == message) and all(line.get(key) == value for key, value in fields.items())
        ]

    def wait_log(self, message: str, seconds: float = 15.0, count: int = 1, **fields: object) -> list[Object]:
        """Return such lines as soon as there are `count`."""
        what = f"{count} lines {message!r} {fields}"
        self.wait(lambda: len(self.log(message, **fields)) >= count, seconds, what)
        return self.log(message, **fields)

    def tail(self, lines: int = 20) -> str:
        """Return the end of its log."""
        return "\n".join(self.path.read_text(errors="replace").splitlines()[-lines:])

    def get(self, path: str) -> tuple[int, str]:
        """Return status and text of what it serves."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

    def metric(self, name: str, **labels: str) -> float:
        """Return the value of a metric, of all that have these labels together."""
        found = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", self.get("/metrics")[1], re.MULTILINE)
        wanted = {f'{key}="{value}"' for key, value in labels.items()}
        return sum(float(value) for held, value in found if wanted <= set(held.split(",")))

    # What it is made of

    def status(self, key: str) -> int:
        """Return a number of /proc/PID/status, such as VmRSS (KiB) or Threads."""
        assert self.process is not None
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+)", text, re.MULTILINE)
        assert found
        return int(found[1])

    def descriptors(self) -> int:
        """Return how many files it has open."""
        assert self.process is not None
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))


def _tried(predicate: Callable[[], Any]) -> Any:
    try:
        return predicate()
    except (OSError, http.client.HTTPException):
        return None


def once(cluster: Cluster, kubeconfig: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run it once."""
    command = [sys.executable, "-m", "postrender", "reconcile", "--once", "--kubeconfig", str(kubeconfig), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT, env=cluster.environment
    )


def services(cluster: Cluster, namespace: str, *names: str) -> None:
    """Make InferenceServices of no content."""
    for name in names:
        cluster.api.create(
            {
                "apiVersion": "ome.io/v1beta1",
                "kind": "InferenceService",
                "metadata": {"name": name, "namespace": namespace},
                "spec": {},
            }
        )


def groups(namespace: str, names: Sequence[str], service: str = "svc", members: int = 1) -> Objects:
    """Return PodGroups that are marked as ours."""
    return [
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {"component": "engine", "ome.io/inferenceservice": service},
                "annotations": {"postrender/for": f"InferenceService/{service}"},
            },
            "spec": {"minMember": members},
        }
        for name in names
    ]
