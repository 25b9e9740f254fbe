"""Requests to an API server, one at a time; the only importer of the official Kubernetes client.

Of that client we take what every cluster needs done differently: kubeconfig with all its ways to log in, the token of a
pod, proxies, TLS. Its models, its Watch and its informer are not used. It is asked for no retries: whether and when a
request is made again is decided by who makes it, for a write may have been done.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
import threading
import time
from urllib.parse import quote, urlencode

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, TypeAlias

    Json: TypeAlias = dict[str, Any]
    Timeout: TypeAlias = tuple[float, float]

# As pyproject.toml has it: what to install where it is not there.
REQUIREMENT = "kubernetes>=37.0.2,<38"
MERGE_PATCH = "application/merge-patch+json"
# Seconds to connect, and to wait for bytes; the API server itself ends a request after 60 s.
TIMEOUT = (10.0, 65.0)
PAGE = 500
_LONGEST_MESSAGE = 300


class Missing(Exception):  # noqa: N818 - it names what is missing
    """Raised where the official client is not installed."""


class Unreachable(Exception):  # noqa: N818 - it says of the cluster that it is so
    """Raised where no answer came: no configuration, no connection, a time-out, a broken answer.

    A write may have been done all the same.
    """


class Refused(Exception):  # noqa: N818 - the API server's, not ours
    """Raised where the API server answered with an error: its status, its reason as a word, its message.

    `retry_after` is how many seconds it asks to wait, 0 if it does not say.
    """

    def __init__(self, status: int, reason: str, message: str, retry_after: float = 0.0) -> None:
        """Keep all four."""
        super().__init__(f"{message} (HTTP {status}{f', {reason}' if reason else ''})")
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class Page(Record):
    """One page of a list: its objects, the resourceVersion of the list, and what to ask on with, empty at its end."""

    items: list[Json]
    resource_version: str
    following: str


class Client:
    """Makes requests to one API server. Threads may share it."""

    def __init__(self, load: Callable[[], Any], name: str) -> None:
        """Take what loads a configuration of the official client; `name` is how messages name the cluster.

        It is loaded again when the server does not know us any more, for tokens and certificates are renewed.
        """
        self.name = name
        self._load = load
        self._loaded = 0.0
        self._renewing = threading.Lock()
        self._log_in()

    def _log_in(self) -> None:
        from kubernetes.client.rest import RESTClientObject

        configuration = self._load()
        configuration.retries = False
        configuration.socket_options = _KEEPALIVE
        self._loaded = time.monotonic()
        # Both at once, for threads that are at work.
        self._configuration, self._rest = configuration, RESTClientObject(configuration)

    def get(self, path: str, query: Mapping[str, str | int] | None = None, timeout: Timeout = TIMEOUT) -> Json:
        """Return the object at a path; raises Refused, or Unreachable."""
        return self._json("GET", path, query or {}, None, "", timeout)

    def post(self, path: str, body: Json, timeout: Timeout = TIMEOUT) -> Json:
        """Create an object; raises Refused, or Unreachable, and then it may be there or not."""
        return self._json("POST", path, {}, body, "application/json", timeout)

    def patch(self, path: str, body: Json, timeout: Timeout = TIMEOUT) -> Json:
        """Merge `body` into an object; raises Refused, or Unreachable, and then it may be done or not."""
        return self._json("PATCH", path, {}, body, MERGE_PATCH, timeout)

    def page(self, path: str, query: Mapping[str, str | int] | None = None, following: str = "") -> Page:
        """Return a page of the list at a path, from the beginning or on from the page before."""
        asked = {**(query or {}), "limit": PAGE, **({"continue": following} if following else {})}
        held = self.get(path, asked)
        metadata = held.get("metadata") or {}
        return Page(
            held.get("items") or [], str(metadata.get("resourceVersion", "")), str(metadata.get("continue") or "")
        )

    def pages(self, path: str, query: Mapping[str, str | int] | None = None) -> Iterator[Json]:
        """Yield all objects of the list at a path, which is begun again where the server has forgotten it."""
        for _ in range(_TRIES):
            found: list[Json] = []
            following = ""
            try:
                while True:
                    page = self.page(path, query, following)
                    found.extend(page.items)
                    following = page.following
                    if not following:
                        break
            except Refused as refused:
                if refused.status != 410 or not following:
                    raise
                continue
            yield from found
            return
        raise Unreachable(f"{self.name}: the list {path} changed faster than it could be read")

    def lines(self, path: str, query: Mapping[str, str | int], timeout: Timeout) -> Iterator[bytes]:
        """Yield the lines of an answer that goes on, as a watch does, until its end; raises as `get` does.

        The second of `timeout` is how long the line may stay silent. An answer that breaks off raises Unreachable, and
        a line that was begun is not yielded.
        """
        response = self._send("GET", path, query, None, "", timeout)
        try:
            held = b""
            for piece in self._pieces(response):
                *whole, held = (held + piece).split(b"\n")
                yield from whole
            if held:
                yield held
        finally:
            response.close()
            response.release_conn()

    def close(self) -> None:
        """Let the connections go."""
        self._rest.close()

    def _pieces(self, response: Any) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError

        try:
            # What is there is handed on at once; a fixed amount would wait for more.
            while piece := response.read1(1 << 16):
                yield piece
        except (HTTPError, OSError, ValueError) as error:
            raise Unreachable(f"{self.name}: the answer broke off: {_words(error)}") from None

    def _json(
        self, method: str, path: str, query: Mapping[str, str | int], body: Json | None, kind: str, timeout: Timeout
    ) -> Json:
        response = self._send(method, path, query, body, kind, timeout)
        try:
            data = b"".join(self._pieces(response))
        finally:
            response.release_conn()
        try:
            held = json.loads(data)
        except ValueError:
            raise Unreachable(f"{self.name}: the answer to {method} {path} is no JSON") from None
        if not isinstance(held, dict):
            raise Unreachable(f"{self.name}: the answer to {method} {path} is no object")
        return held

    def _send(
        self, method: str, path: str, query: Mapping[str, str | int], body: Json | None, kind: str, timeout: Timeout
    ) -> Any:
        """Return an answer whose body is still to be read."""
        from kubernetes.client.exceptions import ApiException
        from urllib3.exceptions import HTTPError

        url = self._configuration.host.rstrip("/") + path
        if query:
            url += "?" + urlencode(query, quote_via=quote)
        headers = {"Accept": "application/json", "User-Agent": "postrender"}
        if kind:
            headers["Content-Type"] = kind
        try:
            # Asked each time, for a token changes while we run.
            for setting in self._configuration.auth_settings().values():
                headers[setting["key"]] = setting["value"]
            response = self._rest.request(  # type: ignore[no-untyped-call]
                method, url, headers=headers, body=body, _request_timeout=timeout
            ).response
        except (HTTPError, OSError, ApiException) as error:  # the last for TLS alone
            raise Unreachable(f"{self.name} does not answer: {_words(error)}") from None
        except _config_exception() as error:
            raise Unreachable(f"{self.name}: no way to log in: {_words(error)}") from None
        if response.status >= 400:
            refused = self._refused(response)
            if refused.status == 401:
                self._renew()
            raise refused
        return response

    def _renew(self) -> None:
        """Log in again, unless that was just done; where it does not go well, what we have may do again."""
        with self._renewing:
            if time.monotonic() - self._loaded <= _RENEWED:
                return
            try:
                self._log_in()
            except Exception:  # a file that is just being written may be anything
                self._loaded = time.monotonic()

    def _refused(self, response: Any) -> Refused:
        """Return the error that the API server's Status object tells."""
        try:
            data = b"".join(self._pieces(response))
        except Unreachable:
            data = b""
        finally:
            response.release_conn()
        try:
            status = json.loads(data)
            message, reason = str(status.get("message") or ""), str(status.get("reason") or "")
        except (ValueError, AttributeError):
            message, reason = data.decode(errors="replace").strip(), ""
        message = " ".join(message.split())[:_LONGEST_MESSAGE] or str(response.reason)
        return Refused(response.status, reason, message, _seconds(response.headers.get("Retry-After")))


_TRIES = 3
_SHOWN = 20  # of the names of contexts
_RENEWED = 5.0  # seconds in which it is not loaded once more
# A dead peer shows in about a minute where nothing is sent: probes after 30 s, every 10 s, three of them.
_KEEPALIVE = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
        if hasattr(socket, name)
    ),
]


def _seconds(header: str | None) -> float:
    return float(header) if header is not None and header.isascii() and header.isdigit() else 0.0


def _words(error: BaseException) -> str:
    """Return an error in one line, without the Python object that urllib3 puts before its own."""
    reason = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, BaseException) else error) or type(error).__name__
    if text.startswith(("HTTP", "<urllib3")):
        text = text.partition(": ")[2] or text
    return " ".join(text.split())[:_LONGEST_MESSAGE]


def _config_exception() -> type[Exception]:
    from kubernetes.config.config_exception import ConfigException

    held: type[Exception] = ConfigException
    return held


def connect(context: str = "", kubeconfig: str = "") -> Client:
    """Return a client for a context of the kubeconfig, the current one if none is named, or for the cluster we run in.

    The kubeconfig is `kubeconfig`, else what KUBECONFIG names, else `~/.kube/config`; where none of these is there, and
    no context is asked for, the token of the pod is taken. Raises Missing or Unreachable.
    """
    try:
        from kubernetes import config
        from kubernetes.client.configuration import Configuration
    except ImportError:
        raise Missing(f"this needs the Kubernetes client: pip install '{REQUIREMENT}'") from None
    inside = not (context or kubeconfig) and _in_cluster()
    files = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"

    def load() -> Configuration:
        configuration = Configuration()
        if inside:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            return configuration
        _HEARD.error = None
        config.load_kube_config(  # type: ignore[no-untyped-call]
            config_file=files, context=context or None, client_configuration=configuration
        )
        if _HEARD.error is not None:  # it would go on as nobody
            raise _HEARD.error
        return configuration

    root = logging.getLogger()
    if _HEARD not in root.handlers:
        root.addHandler(_HEARD)
    name = "the cluster"
    try:
        held = [load()]
        if not inside:
            name = f"the cluster {context!r}" if context else f"the cluster at {held[0].host}"
        return Client(lambda: held.pop() if held else load(), name)  # a program that logs in is not run twice
    except Exception as error:  # a file may be anything, and the loader raises what its reading of YAML does
        why = f"the pod's token: {_words(error)}" if inside else _no_kubeconfig(files, context, error)
        raise Unreachable(f"no cluster to ask: {why}") from None


class _Heard(logging.Handler):
    """Keeps the last error that the client's loader logs where it should raise it; nothing of it is printed."""

    error: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            self.error = sys.exc_info()[1] or RuntimeError(record.getMessage())


_HEARD = _Heard()


def _no_kubeconfig(files: str, context: str, error: BaseException) -> str:
    """Return in words why a kubeconfig leads to no cluster, and where it can be said what to do."""
    from kubernetes.config.kube_config import KubeConfigMerger

    if isinstance(error, OSError) and error is _HEARD.error:
        why = f"the program {error.filename!r}, which logs in, cannot be run: {error.strerror}"
        return f"{files}: {why}; install it, or put it on PATH"
    if not any(os.path.exists(os.path.expanduser(path)) for path in files.split(os.pathsep)):
        return f"{files}: no such file"
    try:
        held = KubeConfigMerger(files).config.value  # type: ignore[no-untyped-call]
        names = [str(one["name"]) for one in held["contexts"]]
        wanted = context or held.get("current-context")
    except Exception:  # as above
        return f"{files}: {_words(error)}"
    if wanted in names:
        return f"{files}: {_words(error)}"
    if not names:
        return f"{files}: it has no contexts"
    there = f"it has {', '.join(names[:_SHOWN])}"
    return f"{files} has no context {wanted!r}; {there}" if wanted else f"{files} has no current context; {there}"


def _in_cluster() -> bool:
    if os.environ.get("KUBECONFIG") or os.path.exists(os.path.expanduser("~/.kube/config")):
        return False
    return "KUBERNETES_SERVICE_HOST" in os.environ
