"""One request on its way, and the connections it goes over."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from .records import Request
from .wire import Body, Head, Peer, read_head


class Pair(NamedTuple):
    """A certificate and its key, as files in PEM."""

    certificate: Path
    key: Path


class Server:
    """The server behind: where it listens, who vouches for it, and the certificate to show it, or none."""

    def __init__(self, host: str, port: int, ca: Path, client: Pair | None = None) -> None:
        self.host = host
        self.port = port
        self.identified = client is not None
        self._tls = ssl.create_default_context(cafile=str(ca))
        if client:
            self._tls.load_cert_chain(*client)

    async def connect(self) -> Peer:
        """Return a new connection to it."""
        _, peer = await asyncio.get_running_loop().create_connection(
            Peer, self.host, self.port, ssl=self._tls, server_hostname=self.host
        )
        return peer


class Link:
    """A client's connection, and the one to the server that belongs to it: made when first needed, kept while it lasts."""

    def __init__(self, client: Peer, server: Server) -> None:
        self.client = client
        self.server = server
        self._connection: Peer | None = None

    async def connected(self) -> Peer:
        """Return the connection to the server; a new one when the last has ended."""
        if self._connection is None or self._connection.gone.is_set() or self._connection.reader.at_eof():
            self.forget()
            self._connection = await self.server.connect()
        return self._connection

    def forget(self) -> None:
        """End the connection to the server: an answer on it was not read to its end."""
        if self._connection is not None:
            self._connection.cut()
            self._connection = None


class Exchange:
    """One request on its way: what a fault has to work with."""

    def __init__(self, link: Link, request: Request, head: Head, body: bytes) -> None:
        self.link = link
        self.client = link.client
        self.request = request
        self.head = head
        self.body = body
        self.answer = Head("", [])
        self._answered = Body(link.client.reader, self.answer)
        # What has come of a watch's next event.
        self._rest = b""

    async def ask(self) -> None:
        """Pass the request on and read the head of the answer."""
        server = await self.link.connected()
        dropped = {"connection", "content-length", "expect", "host", "keep-alive", "transfer-encoding"}
        if self.link.server.identified:
            dropped.add("authorization")
        headers = [(key, value) for key, value in self.head.headers if key not in dropped]
        headers.append(("host", f"{self.link.server.host}:{self.link.server.port}"))
        if self.body or self.head.get("content-length"):
            headers.append(("content-length", str(len(self.body))))
        await server.send(Head(self.head.first, headers).encoded() + self.body)
        self.answer = await read_head(server.reader)
        self.request.served = int(self.answer.first.split(" ", 2)[1])
        bare = self.request.method == "HEAD" or self.request.served in (204, 304)
        if not bare and not self.answer.get("content-length") and not self.answer.get("transfer-encoding"):
            raise ValueError(f"an answer that ends with its connection: {self.answer}")
        self._answered = Body(server.reader, Head("", []) if bare else self.answer)

    @property
    def stream(self) -> bool:
        """Whether the answer is a watch's: chunks without an end."""
        return self.request.watch and self.request.served == 200 and self._answered.chunked

    async def piece(self) -> bytes:
        """The next piece of the answer, of a watch the next event; nothing at the end."""
        # Only in JSON an event is a line; another form comes in chunks of its own.
        if not self.stream or "json" not in self.answer.get("content-type"):
            return await self._answered.piece()
        while b"\n" not in self._rest:
            piece = await self._answered.piece()
            if not piece:
                last, self._rest = self._rest, b""
                return last
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line + b"\n"

    async def whole(self) -> bytes:
        """The answer to its end; a watch has none, and is not waited for."""
        return b"" if self.stream else await self._answered.whole()

    async def begin(self) -> None:
        """Tell the client the head of the answer."""
        self.request.status = self.request.served
        headers = [(key, value) for key, value in self.answer.headers if key not in ("connection", "keep-alive")]
        await self.client.send(Head(self.answer.first, headers).encoded())

    async def send(self, piece: bytes) -> None:
        """Tell the client a piece of the answer."""
        await self.client.send(b"%x\r\n%b\r\n" % (len(piece), piece) if self._answered.chunked else piece)

    async def event(self, line: bytes) -> None:
        """Tell the client a whole event of a watch."""
        self.request.events += 1
        await self.send(line)

    async def end(self) -> None:
        """Say that the answer is whole, when that has to be said."""
        if self._answered.chunked:
            await self.client.send(b"0\r\n\r\n")

    async def relay(self, send: Callable[[bytes], Awaitable[None]] | None = None) -> None:
        """Pass the answer on from head to end, piece by piece."""
        await self.begin()
        send = send or (self.event if self.stream else self.send)
        while piece := await self.piece():
            await send(piece)
        await self.end()

    async def part(self, events: int, half: bool) -> bool:
        """Pass on the first `events` events of a watch, and half of the next if `half`; of another answer, half.

        Return False when the server ended the watch before: then that has been passed on.
        """
        await self.begin()
        if not self.stream:
            body = await self.whole()
            # As many bytes as were promised never come; a chunk is told as one that does not end.
            promise = b"%x\r\n" % len(body) if self._answered.chunked else b""
            await self.client.send(promise + body[: len(body) // 2])
            return True
        for _ in range(events):
            if not (piece := await self.piece()):
                await self.end()
                return False
            await self.event(piece)
        if half:
            if not (piece := await self.piece()):
                await self.end()
                return False
            await self.client.send(b"%x\r\n%b" % (len(piece), piece[: len(piece) // 2]))
        return True
