"""HTTP/1.1 on asyncio: connections, heads, bodies."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import NamedTuple

# The longest line or head that is read.
LIMIT = 1 << 20


class Peer(asyncio.StreamReaderProtocol):
    """One end of a connection: its two streams, and an event that is set when it is gone."""

    writer: asyncio.StreamWriter

    def __init__(self) -> None:
        self.reader = asyncio.StreamReader(limit=LIMIT)
        self.gone = asyncio.Event()
        super().__init__(self.reader)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert isinstance(transport, asyncio.Transport)
        # So that `drain` comes back only when all has left; with 0, TLS of Python 3.11 pauses writers that have left nothing.
        transport.set_write_buffer_limits(high=1, low=0)
        self.writer = asyncio.StreamWriter(transport, self, self.reader, asyncio.get_running_loop())

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.gone.set()

    async def send(self, data: bytes) -> None:
        """Return when all of it has gone out."""
        self.writer.write(data)
        await self.writer.drain()

    def cut(self, reset: bool = False) -> None:
        """End the connection at once, without TLS's good-bye: with FIN, or with RST."""
        if reset:
            with contextlib.suppress(OSError):
                link = self.writer.get_extra_info("socket")
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Head(NamedTuple):
    """The first line and the headers of a message, the names in lower case."""

    first: str
    headers: list[tuple[str, str]]

    def get(self, name: str) -> str:
        """The value of a header, or nothing."""
        return next((value for key, value in self.headers if key == name), "")

    def encoded(self) -> bytes:
        """As it is sent."""
        return "".join([self.first, "\r\n", *(f"{key}: {value}\r\n" for key, value in self.headers), "\r\n"]).encode(
            "latin-1"
        )


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Read as far as the empty line."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    pairs = (line.partition(":") for line in lines)
    return Head(first, [(key.strip().lower(), value.strip()) for key, _, value in pairs])


class Body:
    """The body of a message, read in the pieces in which it comes: the chunks of one that has chunks."""

    def __init__(self, reader: asyncio.StreamReader, head: Head) -> None:
        self._reader = reader
        self.chunked = "chunked" in head.get("transfer-encoding")
        self._left = int(head.get("content-length") or 0)

    async def piece(self) -> bytes:
        """The next piece; nothing at the end."""
        if self.chunked:
            size = int((await self._reader.readuntil(b"\r\n")).partition(b";")[0], 16)
            piece = await self._reader.readexactly(size)
            # After the last, empty chunk comes a trailer, which nobody uses: an empty line.
            await self._reader.readexactly(2)
            return piece
        piece = await self._reader.read(min(self._left, 1 << 16))
        if self._left and not piece:
            raise EOFError("the body ended too soon")
        self._left -= len(piece)
        return piece

    async def whole(self) -> bytes:
        """All that is left."""
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)
