"""The API server in memory behind HTTP, for processes: `python -m tests.reconciler.server --groups 5000 --failed 500`.

It prints the path of a kubeconfig, and ends when its stdin does.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from postrender.cluster.client import Refused

from .memory import Memory

NOTHING: Callable[[str, str], None] = lambda *_: None  # noqa: E731


class Server(ThreadingHTTPServer):
    """Serves what is in memory on a port of 127.0.0.1; `hold` is called before each request, and may take its time."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, memory: Memory) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.memory = memory
        self.lock = threading.Lock()
        self.hold = NOTHING
        self.ended = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def kubeconfig(self, folder: Path, **user: str) -> Path:
        """Write a kubeconfig that leads here."""
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": self.url}}],
            "users": [{"name": "me", "user": user or {"token": "secret"}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "current-context": "it",
        }
        path = folder / "kubeconfig"
        path.write_text(json.dumps(config))
        return path

    def handle_error(self, *_: object) -> None:
        """A client that goes is no news."""


class Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        query = dict(parse_qsl(place.query))
        if query.get("watch"):
            self.watch(place.path, query)
        else:
            self.answer(lambda: self.server.memory.get(place.path, query))

    def do_POST(self) -> None:
        body = self.body()
        self.answer(lambda: self.server.memory.post(self.path, body))

    def do_PATCH(self) -> None:
        body = self.body()
        self.answer(lambda: self.server.memory.patch(self.path, body))

    def body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, work: Callable[[], Any]) -> None:
        self.server.hold(self.command, self.path)
        code = 200
        try:
            with self.server.lock:
                held = work()
        except Refused as refused:
            code = refused.status
            held = {"kind": "Status", "code": code, "reason": refused.reason, "message": refused.message}
        data = json.dumps(held).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def watch(self, path: str, query: dict[str, str]) -> None:
        self.server.hold("WATCH", path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        since = int(query["resourceVersion"])
        end = time.monotonic() + float(query["timeoutSeconds"])
        while time.monotonic() < end and not self.server.ended.wait(0.02):
            with self.server.lock:
                found = [held for held in self.server.memory.history if held[0] > since]
            for version, kind, held in found:
                since = version
                self.chunk(json.dumps({"type": kind, "object": held}).encode() + b"\n")
        self.chunk(b"")

    def chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def serving(memory: Memory) -> Iterator[Server]:
    """Serve for the length of a block."""
    server = Server(memory)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.ended.set()
        server.shutdown()
        server.server_close()
        thread.join()


def filled(count: int, failed: int) -> Memory:
    """Return one with so many PodGroups as postrender makes them, some of them Failed, of services of ten."""
    memory = Memory()
    for number in range(count):
        service = f"service-{number // 10}"
        if number % 10 == 0:
            memory.owner("ns", service)
        labels = {
            "component": "engine",
            "ome.io/inferenceservice": service,
            "ome.io/instance-index": str(number % 10),
            "ome.io/managed-by": "OMENative",
        }
        fields = {"manager": "helm", "operation": "Update", "fieldsV1": {f"f:{key}": {} for key in range(40)}}
        phase = "Failed" if number < failed else "Running"
        memory.group(
            "ns",
            f"{service}-engine-{number % 10}",
            phase,
            f"InferenceService/{service}",
            labels=labels,
            managedFields=[fields],
        )
    return memory


def main() -> None:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser("python -m tests.reconciler.server")
    parser.add_argument("--groups", type=int, default=0)
    parser.add_argument("--failed", type=int, default=0)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, serving(filled(told.groups, told.failed)) as server:
        print(server.kubeconfig(Path(folder)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
