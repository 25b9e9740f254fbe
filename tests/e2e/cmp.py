"""Argo CD's real plugin server with our plugin.yaml, and a client that speaks to it as Argo CD's repo-server does.

The messages are few and small, so they are written by hand: a tag and a varint, or a tag, a length and bytes.
"""

from __future__ import annotations

import hashlib
import io
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import grpc

ROOT = pathlib.Path(__file__).parents[2]
BIN = ROOT / ".programs/bin"
SCRIPTS = pathlib.Path(sys.executable).parent
PLUGIN = ROOT / "plugins/argocd/plugin.yaml"
_SERVICE = "/plugin.ConfigManagementPluginService/"
_CHUNK = 1 << 16


class Refused(Exception):
    """What the server answers instead of manifests, as Argo CD shows it."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _field(number: int, value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    data = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the numbers and values of a message's fields: bytes, or an integer."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 in (0, 2)
        value: Any = varint()
        if tag & 7 == 2:
            value, at = message[at : at + value], at + value
        yield tag >> 3, value


class Announcement(NamedTuple):
    """What a parameter is announced as."""

    name: str
    title: str
    required: bool
    collection: str


def _packed(repository: pathlib.Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for path in sorted(repository.rglob("*")):
            tar.add(path, path.relative_to(repository).as_posix(), recursive=False)
    return out.getvalue()


def _requests(repository: pathlib.Path, app: str, environ: Mapping[str, str]) -> Iterator[bytes]:
    archive = _packed(repository)
    entries = [_field(5, _field(1, name) + _field(2, value)) for name, value in environ.items()]
    metadata = [_field(1, "app"), _field(2, app), _field(3, hashlib.sha256(archive).hexdigest())]
    yield _field(1, b"".join([*metadata, _field(4, len(archive)), *entries]))
    for at in range(0, len(archive), _CHUNK):
        yield _field(2, _field(1, archive[at : at + _CHUNK]))


class Server:
    """The server while it is entered; `environ` is the sidecar's own environment, as a Deployment sets it."""

    def __init__(self, **environ: str) -> None:
        # A socket's path is short, so not below pytest's folder.
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cmp-"))
        self.work = self.folder / "work"
        self.temporary = self.folder / "tmp"
        for name in ("config", "plugins", "bin", "work", "tmp"):
            (self.folder / name).mkdir()
        shutil.copyfile(PLUGIN, self.folder / "config/plugin.yaml")
        self.bin = self.folder / "bin"
        for name, program in (("helm", "helm-4.2"), ("kustomize", "kustomize")):
            (self.bin / name).symlink_to(BIN / program)
        self.environ = {
            "PATH": f"{self.bin}{os.pathsep}{SCRIPTS}{os.pathsep}{os.defpath}",
            "HOME": "/dev/null/home",  # of a read-only root: nothing can be made there
            "TMPDIR": str(self.temporary),
            "ARGOCD_PLUGINSOCKFILEPATH": str(self.folder / "plugins"),
            "ARGOCD_CMP_WORKDIR": str(self.work),
            # Of every pod, and none of Helm's business.
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": "1",
            **environ,
        }

    def __enter__(self) -> Server:
        program = BIN / "argocd-cmp-server"
        assert program.exists(), "run 'make e2e': it brings the plugin server"
        self.log = (self.folder / "log").open("wb")
        self.process = subprocess.Popen(
            [program, "--config-dir-path", self.folder / "config", "--loglevel", "debug", "--logformat", "text"],
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        deadline = time.monotonic() + 30
        while not (sockets := list((self.folder / "plugins").glob("*.sock"))):
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        [self.socket] = sockets
        self.channel = grpc.insecure_channel(f"unix:{self.socket}")
        grpc.channel_ready_future(self.channel).result(timeout=30)
        return self

    def __exit__(self, *_: object) -> None:
        self.channel.close()
        self.process.kill()
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder)

    def said(self) -> str:
        """Return the server's log."""
        self.log.flush()
        return (self.folder / "log").read_text()

    def generate(
        self, repository: pathlib.Path, app: str, environ: Mapping[str, str], seconds: float = 60
    ) -> list[str]:
        """Return the manifests, a JSON text each; raises Refused."""
        answer = self._ask("GenerateManifest", repository, app, environ, seconds)
        return [value.decode() for number, value in fields(answer) if number == 1]

    def announced(self, repository: pathlib.Path, app: str) -> list[Announcement]:
        """Return the announcements of parameters."""
        found = []
        for number, value in fields(self._ask("GetParametersAnnouncement", repository, app, {}, 60)):
            held = dict(fields(value)) if number == 1 else {}
            found.append(Announcement(held[1].decode(), held[2].decode(), bool(held.get(4)), held.get(6, b"").decode()))
        return found

    def _ask(
        self, method: str, repository: pathlib.Path, app: str, environ: Mapping[str, str], seconds: float
    ) -> bytes:
        call = self.channel.stream_unary(_SERVICE + method)
        try:
            return bytes(call(_requests(repository, app, environ), timeout=seconds))
        except grpc.RpcError as error:
            raise Refused(error.details()) from None
