"""The faults."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Literal

from .exchange import Exchange
from .wire import Head

# What an API server calls each answer in a Status.
REASONS = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    410: "Expired",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
    504: "Timeout",
}

When = Literal["before", "middle", "after"]


@dataclass(frozen=True)
class Fault:
    """What goes wrong. This one: nothing."""

    async def run(self, exchange: Exchange) -> None:
        """Deal with a request from its beginning."""
        await exchange.ask()
        await exchange.relay()

    async def strike(self, exchange: Exchange) -> None:
        """Deal with an answer that is on its way, between two events."""
        raise TypeError(f"{self} cannot strike an answer that has begun")


@dataclass(frozen=True)
class Cut(Fault):
    """The connection ends: before the server hears of it, in the middle of the answer, or instead of the answer.

    `after` is the lost answer: the server has done it. In a watch `middle` comes after so many events, within the next.
    """

    when: When = "before"
    events: int = 0
    reset: bool = False

    async def run(self, exchange: Exchange) -> None:
        if await until(exchange, self.when, self.events, half=True):
            await self.strike(exchange)

    async def strike(self, exchange: Exchange) -> None:
        # What was said before has to arrive.
        await asyncio.sleep(0.05)
        exchange.client.cut(self.reset)


@dataclass(frozen=True)
class Hang(Fault):
    """The connection stays, and nothing comes: no answer, half of one, or (a watch) so many events and no more."""

    when: When = "before"
    events: int = 0

    async def run(self, exchange: Exchange) -> None:
        if await until(exchange, self.when, self.events, half=False):
            await self.strike(exchange)

    async def strike(self, exchange: Exchange) -> None:
        await exchange.client.gone.wait()


async def until(exchange: Exchange, when: When, events: int, half: bool) -> bool:
    """Do what happens before the fault; False when it cannot happen any more."""
    if when == "before":
        return True
    await exchange.ask()
    if when == "middle":
        return await exchange.part(events, half)
    await exchange.whole()
    return True


@dataclass(frozen=True)
class Slow(Fault):
    """The answer begins `delay` seconds late and comes at `rate` bytes a second."""

    delay: float = 0.0
    rate: int | None = None

    async def run(self, exchange: Exchange) -> None:
        await exchange.ask()
        await asyncio.sleep(self.delay)
        await exchange.relay(None if self.rate is None else lambda piece: self.trickle(exchange, piece))

    async def trickle(self, exchange: Exchange, piece: bytes) -> None:
        """Send a piece in bits, ten a second."""
        assert self.rate
        step = max(1, self.rate // 10)
        for start in range(0, len(piece), step):
            bit = piece[start : start + step]
            await exchange.send(bit)
            await asyncio.sleep(len(bit) / self.rate)
        exchange.request.events += exchange.stream


@dataclass(frozen=True)
class Error(Fault):
    """After so many events a watch says ERROR with a Status of this code, and ends, as an API server does it."""

    code: int = 410
    events: int = 0

    async def run(self, exchange: Exchange) -> None:
        await exchange.ask()
        if not exchange.stream:
            await exchange.relay()
            return
        if await exchange.part(self.events, half=False):
            await self.strike(exchange)

    async def strike(self, exchange: Exchange) -> None:
        kind = exchange.answer.get("content-type")
        if "json" not in kind:
            raise TypeError(f"an ERROR event is JSON, and the client asked for {kind}")
        messages = {410: "too old resource version: 1 (2)", 500: "etcdserver: no leader"}
        event = {"type": "ERROR", "object": status_object(self.code, messages.get(self.code, "made up by a test"))}
        await exchange.event(json.dumps(event).encode() + b"\n")
        await exchange.end()
        exchange.link.forget()


@dataclass(frozen=True)
class End(Fault):
    """After so many events a watch ends as it does at its time-out; `torn`: within a line, which then is no JSON."""

    events: int = 0
    torn: bool = False

    async def run(self, exchange: Exchange) -> None:
        await exchange.ask()
        if not exchange.stream:
            await exchange.relay()
            return
        if not await exchange.part(self.events, half=False):
            return
        if self.torn:
            piece = await exchange.piece()
            await exchange.send(piece[: len(piece) // 2])
        await self.strike(exchange)

    async def strike(self, exchange: Exchange) -> None:
        await exchange.end()
        exchange.link.forget()


@dataclass(frozen=True)
class Answer(Fault):
    """An answer of the proxy's own, a Status; the server hears nothing of it."""

    code: int
    retry_after: int | None = None
    message: str = "made up by a test"

    async def run(self, exchange: Exchange) -> None:
        status = status_object(self.code, self.message)
        headers = [("content-type", "application/json")]
        if self.retry_after is not None:
            status["details"] = {"retryAfterSeconds": self.retry_after}
            headers.append(("retry-after", str(self.retry_after)))
        body = json.dumps(status).encode() + b"\n"
        headers.append(("content-length", str(len(body))))
        exchange.request.status = self.code
        first = f"HTTP/1.1 {self.code} {REASONS.get(self.code, 'Unknown')}"
        await exchange.client.send(
            Head(first, headers).encoded() + (b"" if exchange.request.method == "HEAD" else body)
        )


def status_object(code: int, message: str) -> dict[str, Any]:
    """Return the Status with which an API server says that something failed."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": REASONS.get(code, ""),
        "code": code,
    }
