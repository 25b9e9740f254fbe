"""The proxy."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

from tests.e2e.cluster.certificates import Authority

from .exchange import Exchange, Link, Pair, Server
from .kinds import Answer, Fault
from .kubeconfig import Kubeconfig
from .records import Request, request_of
from .rules import Rule
from .wire import Body, Peer, read_head

HOST = "127.0.0.1"
# How long, in seconds, a call from the test's thread may take in the loop's.
PATIENCE = 30.0
_T = TypeVar("_T")


class FaultProxy:
    """The proxy; a context. `front` is the certificate it shows, `server` is what it passes requests on to."""

    def __init__(self, server: Server, front: Pair) -> None:
        self.server = server
        self.port = 0
        self.requests: list[Request] = []
        # When a client connected, whether or not it then asked anything.
        self.connections: list[float] = []
        self._front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._front.load_cert_chain(*front)
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._listener: socket.socket | None = None
        self._accepting: asyncio.Future[None] | None = None
        self._clients: set[asyncio.Future[None]] = set()
        # Answers on their way, and where to say what befalls them.
        self._open: dict[asyncio.Future[Fault], Request] = {}
        self._wrong: list[BaseException] = []

    @property
    def url(self) -> str:
        """Where the proxy listens."""
        return f"https://{HOST}:{self.port}"

    # The test's side.

    def __enter__(self) -> FaultProxy:
        self._loop.set_exception_handler(self._unhandled)
        self._thread.start()
        self._call(self._bind())
        self._call(self._listen())
        return self

    def __exit__(self, *raised: object) -> None:
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()
        if self._wrong and raised[0] is None:
            raise self._wrong[0]

    def add(
        self,
        fault: Fault,
        *,
        method: str = "",
        path: str = "",
        watch: bool | None = None,
        times: int | None = None,
        skip: int = 0,
    ) -> Rule:
        """Add a rule behind those that are there; requests that come from now on meet it."""
        rule = Rule(fault, method, path, watch, times, skip)
        with self._lock:
            self._rules.append(rule)
        return rule

    def remove(self, *rules: Rule) -> None:
        """Take rules back; without one, all."""
        with self._lock:
            self._rules = [rule for rule in self._rules if rules and not any(rule is one for one in rules)]

    def strike(self, fault: Fault, *, method: str = "", path: str = "", watch: bool | None = True) -> int:
        """Let a fault befall the answers that have begun, the watches as a rule; return how many these are."""
        return self._call(self._strike(Rule(fault, method, path, watch)))

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """End all connections and refuse new ones, as a machine does on which the server has ended."""
        self._call(self._bind())
        try:
            yield
        finally:
            self._call(self._listen())

    @contextlib.contextmanager
    def deaf(self) -> Iterator[None]:
        """Leave new connections without a word; those that are open go on, or `strike(Hang())` them."""
        self._call(self._stop_accepting())
        try:
            yield
        finally:
            self._call(self._listen())

    def seen(self, *, method: str = "", path: str = "", watch: bool | None = None, since: float = 0.0) -> list[Request]:
        """Return the requests so far that a rule of these words would fit, in the order in which they came."""
        rule = Rule(Fault(), method, path, watch)
        with self._lock:
            return [one for one in self.requests if one.time >= since and rule.fits(one)]

    def wait(
        self,
        count: int = 1,
        *,
        seconds: float = 10.0,
        method: str = "",
        path: str = "",
        watch: bool | None = None,
        since: float = 0.0,
        answered: bool = False,
    ) -> list[Request]:
        """Return such requests as soon as there are `count`; if `answered`, so many that a status was told."""
        end = time.monotonic() + seconds
        while True:
            found = self.seen(method=method, path=path, watch=watch, since=since)
            if answered:
                found = [one for one in found if one.status is not None]
            if len(found) >= count:
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"{len(found)} of {count} requests within {seconds:g} s: {found}")
            time.sleep(0.02)

    # The loop's side.

    def _call(self, work: Coroutine[Any, Any, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    def _unhandled(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        wrong = context.get("exception")
        # A connection that broke is what this is for.
        if wrong is not None and not isinstance(wrong, OSError):
            self._wrong.append(wrong)

    async def _bind(self) -> None:
        """End everything, and hold the port without listening on it: who connects is refused."""
        await self._close()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind((HOST, self.port))
        self._listener.setblocking(False)
        self.port = self._listener.getsockname()[1]

    async def _listen(self) -> None:
        assert self._listener
        self._listener.listen(128)
        self._accepting = asyncio.ensure_future(self._accept(self._listener))

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            accepted, _ = await self._loop.sock_accept(listener)
            self.connections.append(time.monotonic())
            task = asyncio.ensure_future(self._serve(accepted))
            self._clients.add(task)
            task.add_done_callback(self._served)

    async def _serve(self, accepted: socket.socket) -> None:
        client = Peer()
        try:
            await self._loop.connect_accepted_socket(lambda: client, accepted, ssl=self._front)
        except OSError:
            return  # it did not want our certificate, or went away
        link = Link(client, self.server)
        # What ends one connection ends the other: the client sees what the proxy saw.
        try:
            with contextlib.suppress(OSError, EOFError):
                while not client.gone.is_set():
                    await self._exchange(link)
        finally:
            link.forget()
            client.cut()
            await client.gone.wait()

    def _served(self, task: asyncio.Future[None]) -> None:
        self._clients.remove(task)
        if not task.cancelled() and (wrong := task.exception()):
            self._wrong.append(wrong)

    async def _exchange(self, link: Link) -> None:
        """Deal with one request: it meets its fault, unless another strikes meanwhile, or the client goes."""
        head = await read_head(link.client.reader)
        if "100-continue" in head.get("expect"):
            await link.client.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = await Body(link.client.reader, head).whole()
        request = request_of(head)
        exchange = Exchange(link, request, head, body)
        struck: asyncio.Future[Fault] = self._loop.create_future()
        self._open[struck] = request
        running = asyncio.ensure_future(self._meet(exchange).run(exchange))
        gone = asyncio.ensure_future(link.client.gone.wait())
        tasks: list[asyncio.Future[Any]] = [running, gone, struck]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if struck.done() and not running.done():
                # It stops where it waits: for the next event, as a rule, so no line is torn.
                await cancelled(running)
                request.fault = repr(struck.result())
                running = asyncio.ensure_future(struck.result().strike(exchange))
                tasks.append(running)
                await asyncio.wait([running, gone], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
        finally:
            del self._open[struck]
            request.ended = time.monotonic()
            await cancelled(*tasks)
        if "close" in head.get("connection"):
            link.client.cut()

    def _meet(self, exchange: Exchange) -> Fault:
        """Record a request and return the fault it meets, or the one that does nothing."""
        request = exchange.request
        with self._lock:
            self.requests.append(request)
            fault = next((rule.fault for rule in self._rules if rule.takes(request)), None)
        if exchange.head.get("upgrade"):
            fault = Answer(501, message="this proxy passes requests on, and speaks no other protocol")
        request.fault = repr(fault) if fault else ""
        return fault or Fault()

    async def _strike(self, rule: Rule) -> int:
        # An answer that has not begun has nothing to be struck in.
        found = [
            struck
            for struck, request in self._open.items()
            if request.status is not None and rule.fits(request) and not struck.done()
        ]
        for struck in found:
            struck.set_result(rule.fault)
        return len(found)

    async def _stop_accepting(self) -> None:
        if self._accepting:
            await cancelled(self._accepting)
            self._accepting = None

    async def _close(self) -> None:
        await self._stop_accepting()
        if self._listener:
            self._listener.close()
            self._listener = None
        await cancelled(*self._clients)
        # Connections to the server that were cut say so in the loop's next rounds.
        await asyncio.sleep(0.02)


async def cancelled(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks and wait for their end; what they raise then is nobody's."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def before(kubeconfig: Path, folder: Path) -> Iterator[tuple[FaultProxy, Path]]:
    """Run a proxy before the server of a kubeconfig's current context; yield it and a kubeconfig that leads to it.

    `folder`, which must not be there yet, takes the certificates. A client certificate of the kubeconfig is shown to the
    server by the proxy, since the client's TLS ends here; a token goes through.
    """
    authority = Authority(folder)
    front = Pair(*authority.server("proxy"))
    config = Kubeconfig(kubeconfig, folder)
    server = Server(config.host, config.port, config.ca, Pair(*config.client) if config.client else None)
    with FaultProxy(server, front) as proxy:
        yield proxy, config.turned(proxy.url, authority.certificate)
