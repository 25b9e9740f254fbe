"""Ports on 127.0.0.1 that nobody uses, and who listens where."""

from __future__ import annotations

import os
import random
import re
import socket
from pathlib import Path

RANGE = range(20000, 32000)  # below what Linux gives to outgoing connections, so that a port stays free over a restart
GIVEN: set[int] = set()


def pick(count: int) -> list[int]:
    """Choose free ports. Whoever starts on one must be ready to see it taken, and then ask for another."""
    chosen: list[int] = []
    while len(chosen) < count:
        port = random.choice(RANGE)
        if port not in GIVEN and free(port):
            GIVEN.add(port)
            chosen.append(port)
    return chosen


def free(port: int) -> bool:
    """Whether a server could listen on it; connections that have just been closed do not hinder one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            probe.listen()
        except OSError:
            return False
    return True


def listening(process: int) -> set[tuple[str, int]]:
    """The addresses a process accepts TCP connections on: ("127.0.0.1", 20000)."""
    sockets = set()
    for link in Path(f"/proc/{process}/fd").iterdir():
        try:
            found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(link))
        except OSError:
            continue
        if found:
            sockets.add(found[1])
    addresses = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in sockets:
                host, port = words[1].split(":")
                addresses.add((readable(host), int(port, 16)))
    return addresses


def readable(host: str) -> str:
    """An address as /proc writes it, in the usual form: numbers of four bytes in the byte order of the machine."""
    raw = b"".join(int(host[i : i + 8], 16).to_bytes(4, "little") for i in range(0, len(host), 8))
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)
