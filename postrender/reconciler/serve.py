"""What is asked of us over HTTP: /healthz, /readyz and /metrics, on one port."""

from __future__ import annotations

import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .loop import Loop

# An outage of the API server is no reason to restart us: what counts is that we try.
_STUCK = 180.0


class Server:
    """Answers on an address until closed."""

    def __init__(self, host: str, port: int, loop: Loop) -> None:
        """Bind, without a host to all addresses of both IPs; raises OSError where that cannot be."""
        handler = type("_Handler", (_Handler,), {"loop": loop})
        self._server = _Listener((host, port), handler, loop)
        self.port = self._server.server_port

    def start(self) -> None:
        """Answer in a thread of its own."""
        threading.Thread(target=self._server.serve_forever, name="serve", daemon=True).start()

    def close(self) -> None:
        """Answer no more."""
        self._server.shutdown()
        self._server.server_close()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], loop: Loop) -> None:
        host, port = address
        both = not host and socket.has_dualstack_ipv6()
        self.address_family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
        self._both = both
        self._loop = loop
        super().__init__((host or ("::" if both else "0.0.0.0"), port), handler)  # noqa: S104 - probes come from outside

    def server_bind(self) -> None:
        if self._both:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        TCPServer.server_bind(self)  # that of HTTP asks the name service who we are
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def handle_error(self, *_: object) -> None:
        """Pass over who has gone before the answer; report anything else."""
        error = sys.exc_info()[1]
        if isinstance(error, Exception) and not isinstance(error, OSError):
            self._loop.bug(error)


class _Handler(BaseHTTPRequestHandler):
    loop: Loop
    timeout = 10  # of a connection that says nothing
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        loop = self.loop
        if path == "/metrics":
            loop.gauges()
            self._answer(200, loop.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")
        elif path == "/healthz":
            silent = loop.clock() - loop.watch.progress
            if loop.watch.progress >= 0 and silent > _STUCK:
                self._answer(500, f"nothing was tried for {silent:.0f} s\n")
            else:
                self._answer(200, "ok\n")
        elif path == "/readyz":
            ready = loop.watch.synced >= 0 or loop.watch.present is False
            self._answer(200 if ready else 503, "ok\n" if ready else "PodGroups were not listed yet\n")
        else:
            self._answer(404, "/healthz, /readyz or /metrics\n")

    do_HEAD = do_GET  # noqa: N815 - the name that http.server looks for

    def _answer(self, code: int, text: str, kind: str = "text/plain; charset=utf-8") -> None:
        data = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Probes come every few seconds; they are not logged."""
