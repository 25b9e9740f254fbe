"""The fault proxy before a small server of this test's own, and before the real API server."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import queue
import socket
import ssl
import threading
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.cluster.certificates import Authority
from tests.e2e.faults import (
    Answer,
    Cut,
    End,
    Error,
    Fault,
    FaultProxy,
    Hang,
    Pair,
    Request,
    Server,
    Slow,
    before,
    busiest,
)

# What a client may see when its connection breaks.
BROKEN = (OSError, http.client.HTTPException)
BIG = json.dumps({"items": ["x" * 1000] * 300}).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    """A list with a length, a big one in chunks, a watch of what is put in its queue, and PATCHes, which it keeps."""

    protocol_version = "HTTP/1.1"
    patched: ClassVar[list[tuple[str, bytes]]]
    events: ClassVar[queue.Queue[bytes]]

    def log_message(self, *words: Any) -> None:
        pass

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            return self.chunks(iter(self.events.get, b""))
        if self.path == "/big":
            return self.chunks(iter([BIG[:100_000], BIG[100_000:]]))
        return self.whole({"who": self.who(), "authorization": self.headers["Authorization"], "path": self.path})

    def do_HEAD(self) -> None:
        self.whole({"who": self.who()})

    def do_PATCH(self) -> None:
        if self.headers["Transfer-Encoding"]:
            raise NotImplementedError("the proxy gives every body a length")
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.patched.append((self.path, body))
        self.whole({"patched": len(self.patched)})

    def who(self) -> str:
        assert isinstance(self.connection, ssl.SSLSocket)
        shown: Any = self.connection.getpeercert() or {}
        return ",".join(value for names in shown.get("subject", ()) for key, value in names if key == "commonName")

    def whole(self, said: dict[str, Any]) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunks(self, pieces: Iterator[bytes]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with contextlib.suppress(OSError):
            for piece in pieces:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")


class Small(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Connections are cut here all the time."""


class Place:
    """The server, the proxy before it, and clients of the proxy."""

    def __init__(
        self, proxy: FaultProxy, ca: Path, patched: list[tuple[str, bytes]], events: queue.Queue[bytes]
    ) -> None:
        self.proxy = proxy
        self.patched = patched
        self.events = events
        self.trust = ssl.create_default_context(cafile=str(ca))
        self._clients: list[http.client.HTTPSConnection] = []

    def client(self, timeout: float = 5.0) -> http.client.HTTPSConnection:
        client = http.client.HTTPSConnection("127.0.0.1", self.proxy.port, context=self.trust, timeout=timeout)
        self._clients.append(client)
        return client

    def get(self, path: str, **how: Any) -> tuple[int, bytes]:
        client = self.client(how.pop("timeout", 5.0))
        client.request("GET", path, **how)
        answer = client.getresponse()
        return answer.status, answer.read()

    def watch(self, timeout: float = 5.0) -> http.client.HTTPResponse:
        client = self.client(timeout)
        client.request("GET", "/things?watch=true")
        return client.getresponse()

    def event(self, number: int) -> bytes:
        line = json.dumps({"type": "ADDED", "object": number}).encode() + b"\n"
        self.events.put(line)
        return line

    def close(self) -> None:
        for client in self._clients:
            client.close()


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates") / "pki")


@pytest.fixture(scope="module")
def pairs(authority: Authority) -> dict[str, Pair]:
    servers = {name: Pair(*authority.server(name)) for name in ("front", "behind")}
    return servers | {"client": Pair(*authority.client("client", "the-proxy", "testers"))}


@contextlib.contextmanager
def placed(authority: Authority, pairs: dict[str, Pair], client: Pair | None = None) -> Iterator[Place]:
    patched: list[tuple[str, bytes]] = []
    events: queue.Queue[bytes] = queue.Queue()
    kind = type("Kept", (Handler,), {"patched": patched, "events": events})
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*pairs["behind"])
    tls.load_verify_locations(authority.certificate)
    tls.verify_mode = ssl.CERT_OPTIONAL
    server = Small(("127.0.0.1", 0), kind)
    server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        behind = Server("127.0.0.1", server.server_port, authority.certificate, client)
        with FaultProxy(behind, pairs["front"]) as proxy:
            place = Place(proxy, authority.certificate, patched, events)
            try:
                yield place
            finally:
                place.close()
    finally:
        events.put(b"")
        server.shutdown()
        server.server_close()
        thread.join(5)


@pytest.fixture
def place(authority: Authority, pairs: dict[str, Pair]) -> Iterator[Place]:
    with placed(authority, pairs) as place:
        yield place


def test_without_a_fault_nothing_changes(place: Place) -> None:
    client = place.client()
    for path in ("/things", "/things?limit=500"):
        client.request("GET", path)
        assert json.loads(client.getresponse().read())["path"] == path
    client.request("GET", "/big")
    assert client.getresponse().read() == BIG
    client.request("HEAD", "/things")
    assert client.getresponse().read() == b""
    client.request("PATCH", "/things/a", b"{}")
    assert json.loads(client.getresponse().read()) == {"patched": 1}
    # Chunks in a request are allowed too.
    client.request("PATCH", "/things/b", iter([b"a", b"bc"]), encode_chunked=True)
    assert json.loads(client.getresponse().read()) == {"patched": 2}
    assert place.patched == [("/things/a", b"{}"), ("/things/b", b"abc")]
    seen = place.proxy.seen()
    assert [(one.method, one.path, one.query, one.status) for one in seen] == [
        ("GET", "/things", {}, 200),
        ("GET", "/things", {"limit": "500"}, 200),
        ("GET", "/big", {}, 200),
        ("HEAD", "/things", {}, 200),
        ("PATCH", "/things/a", {}, 200),
        ("PATCH", "/things/b", {}, 200),
    ]
    assert {one.fault for one in seen} == {""}
    assert len(place.proxy.connections) == 1


def test_a_watch_comes_event_by_event(place: Place) -> None:
    answer = place.watch()
    lines = [place.event(1)]
    assert answer.readline() == lines[0]
    # Two in one chunk, and one in two.
    two = b'{"type": "ADDED", "object": 2}\n{"type": "ADDED", "object": 3}\n{"type": '
    place.events.put(two)
    place.events.put(b'"ADDED", "object": 4}\n')
    assert [json.loads(answer.readline())["object"] for _ in range(3)] == [2, 3, 4]
    place.events.put(b"")
    assert answer.read() == b""
    [request] = place.proxy.wait(watch=True)
    assert (request.watch, request.events, request.status) == (True, 4, 200)


def test_a_client_that_goes_takes_its_watch_with_it(place: Place) -> None:
    answer = place.watch()
    place.event(1)
    answer.readline()
    [request] = place.proxy.seen(watch=True)
    assert request.ended is None
    place.close()
    answer.close()
    end = time.monotonic() + 5
    while request.ended is None and time.monotonic() < end:
        time.sleep(0.02)
    assert request.ended is not None
    assert place.proxy.strike(Cut()) == 0


@pytest.mark.parametrize("identified", [False, True])
def test_who_asks(authority: Authority, pairs: dict[str, Pair], identified: bool) -> None:
    with placed(authority, pairs, pairs["client"] if identified else None) as place:
        _, body = place.get("/things", headers={"Authorization": "Bearer of-the-client"})
        said = json.loads(body)
        expected = ("the-proxy", None) if identified else ("", "Bearer of-the-client")
        assert (said["who"], said["authorization"]) == expected
        assert place.proxy.requests[0].token == "of-the-client"


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize(("when", "done", "told"), [("before", 0, None), ("middle", 1, 200), ("after", 1, None)])
def test_cut(place: Place, when: Any, done: int, told: int | None, reset: bool) -> None:
    place.proxy.add(Cut(when, reset=reset), method="PATCH", times=1)
    client = place.client()
    with pytest.raises(BROKEN):
        patch(client)
    assert len(place.patched) == done
    [request] = place.proxy.requests
    assert (request.served, request.status) == (200 if done else None, told)
    assert request.fault == repr(Cut(when, reset=reset))
    # A client of http.client connects again by itself.
    client.close()
    assert patch(client) == {"patched": done + 1}


def patch(client: http.client.HTTPSConnection) -> Any:
    client.request("PATCH", "/things/a", b"{}")
    return json.loads(client.getresponse().read())


@pytest.mark.parametrize("path", ["/big", "/things"])
def test_cut_in_the_middle_of_an_answer(place: Place, path: str) -> None:
    place.proxy.add(Cut("middle"), path=path)
    client = place.client()
    client.request("GET", path)
    with pytest.raises(http.client.IncompleteRead) as cut:
        client.getresponse().read()
    whole = BIG if path == "/big" else b'{"who": "", "authorization": null, "path": "/things"}'
    # http.client forgets what came of a chunk that is not whole.
    assert cut.value.partial in (b"", whole[: len(whole) // 2])


def test_cut_within_an_event(place: Place) -> None:
    place.proxy.add(Cut("middle", events=2), watch=True)
    answer = place.watch()
    lines = [place.event(number) for number in (1, 2, 3)]
    assert [answer.readline(), answer.readline()] == lines[:2]
    with pytest.raises(BROKEN):
        raise_or_end(answer, lines[2])


def raise_or_end(answer: http.client.HTTPResponse, line: bytes) -> None:
    rest = answer.readline()
    assert line.startswith(rest)
    assert len(rest) < len(line)
    answer.read()


@pytest.mark.parametrize(("when", "done"), [("before", 0), ("middle", 1), ("after", 1)])
def test_hang(place: Place, when: Any, done: int) -> None:
    place.proxy.add(Hang(when), times=1)
    client = place.client(timeout=0.5)
    with pytest.raises(TimeoutError):
        patch(client)
    assert len(place.patched) == done
    client.close()
    assert patch(client) == {"patched": done + 1}


def test_a_watch_goes_silent(place: Place) -> None:
    place.proxy.add(Hang("middle", events=1), watch=True)
    answer = place.watch(timeout=0.5)
    line = place.event(1)
    place.event(2)
    assert answer.readline() == line
    with pytest.raises(TimeoutError):
        answer.readline()


def test_slow(place: Place) -> None:
    place.proxy.add(Slow(delay=0.3), path="/things")
    place.proxy.add(Slow(rate=600_000), path="/big")
    start = time.monotonic()
    assert place.get("/things")[0] == 200
    middle = time.monotonic()
    assert 0.3 <= middle - start < 2
    assert place.get("/big") == (200, BIG)
    assert 0.4 <= time.monotonic() - middle < 3


@pytest.mark.parametrize(("code", "reason"), [(410, "Expired"), (500, "InternalError")])
def test_error_in_a_watch(place: Place, code: int, reason: str) -> None:
    place.proxy.add(Error(code, events=1), watch=True, times=1)
    answer = place.watch()
    line = place.event(1)
    assert answer.readline() == line
    event = json.loads(answer.readline())
    assert event["type"] == "ERROR"
    assert (event["object"]["kind"], event["object"]["code"], event["object"]["reason"]) == ("Status", code, reason)
    assert answer.read() == b""


@pytest.mark.parametrize("torn", [False, True])
def test_a_watch_ends(place: Place, torn: bool) -> None:
    place.proxy.add(End(events=1, torn=torn), watch=True)
    client = place.client()
    client.request("GET", "/things?watch=true")
    answer = client.getresponse()
    lines = [place.event(1), place.event(2)]
    assert answer.read() == lines[0] + (lines[1][: len(lines[1]) // 2] if torn else b"")
    # In order: the connection is good for more.
    client.request("GET", "/things")
    assert client.getresponse().status == 200
    assert len(place.proxy.connections) == 1


@pytest.mark.parametrize("fault", [Cut("middle", events=3), Hang("middle", events=3), Error(events=3), End(events=3)])
def test_a_watch_that_ends_before_its_fault(place: Place, fault: Fault) -> None:
    place.proxy.add(fault, watch=True)
    answer = place.watch()
    line = place.event(1)
    place.events.put(b"")
    assert answer.read() == line


@pytest.mark.parametrize("code", [401, 403, 410, 429, 500, 503])
def test_answers(place: Place, code: int) -> None:
    place.proxy.add(Answer(code, retry_after=2 if code == 429 else None), method="PATCH", times=1)
    client = place.client()
    client.request("PATCH", "/things/a", b"{}")
    answer = client.getresponse()
    status = json.loads(answer.read())
    assert (answer.status, status["kind"], status["code"]) == (code, "Status", code)
    assert answer.headers["Retry-After"] == ("2" if code == 429 else None)
    # The server has heard nothing, and the connection stays.
    assert place.patched == []
    assert patch(client) == {"patched": 1}
    assert len(place.proxy.connections) == 1


def test_rules_are_taken_in_order_and_used_up(place: Place) -> None:
    place.proxy.add(Answer(503), path=r"/things\?.*continue=", skip=1)
    place.proxy.add(Answer(429), path="/things", times=2)
    last = place.proxy.add(Answer(500), method="GET", watch=False)
    paths = ["/things?continue=a", "/things?limit=1&continue=b", "/things", "/big"]
    assert [place.get(path)[0] for path in paths] == [429, 503, 429, 500]
    assert last.used == 1
    place.proxy.remove(last)
    assert place.get("/things")[0] == 200
    place.proxy.remove()
    assert place.get("/things?continue=c")[0] == 200


STRIKES = {
    Error(410): [{"type": "ERROR", "code": 410}],
    End(): [],
    Cut(): None,
    Cut(reset=True): None,
}


@pytest.mark.parametrize("fault", STRIKES)
def test_strike(place: Place, fault: Fault) -> None:
    answer = place.watch()
    line = place.event(1)
    assert answer.readline() == line
    assert place.proxy.strike(fault, path="/others") == 0
    assert place.proxy.strike(fault) == 1
    if STRIKES[fault] is None:
        with pytest.raises(BROKEN):
            answer.read()
    else:
        read = [json.loads(text) for text in answer.read().splitlines()]
        assert [{"type": one["type"], "code": one["object"]["code"]} for one in read] == STRIKES[fault]
    assert place.proxy.requests[0].fault == repr(fault)
    assert place.get("/things")[0] == 200


def test_strike_with_silence(place: Place) -> None:
    answer = place.watch(timeout=0.5)
    assert place.proxy.strike(Hang()) == 1
    place.event(1)
    with pytest.raises(TimeoutError):
        answer.readline()
    # What has fallen silent can still be cut.
    assert place.proxy.strike(Cut()) == 0


def test_down(place: Place) -> None:
    answer = place.watch()
    with place.proxy.down():
        with pytest.raises(BROKEN):
            answer.read()
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                place.get("/things")
    assert place.get("/things")[0] == 200


def test_deaf(place: Place) -> None:
    answer = place.watch()
    with place.proxy.deaf():
        with pytest.raises(TimeoutError):
            place.get("/things", timeout=0.5)
        # The connection is made; it is TLS that nobody answers.
        with socket.create_connection(("127.0.0.1", place.proxy.port), timeout=0.5):
            pass
        line = place.event(1)
        assert answer.readline() == line
    assert place.get("/things")[0] == 200


def test_a_server_that_is_not_there_cuts_the_client(place: Place, authority: Authority, pairs: dict[str, Pair]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        behind = Server("127.0.0.1", taken.getsockname()[1], authority.certificate)
        with FaultProxy(behind, pairs["front"]) as proxy:
            client = http.client.HTTPSConnection("127.0.0.1", proxy.port, context=place.trust, timeout=5)
            with pytest.raises(BROKEN):
                patch(client)
            client.close()
            assert [one.status for one in proxy.requests] == [None]


def test_a_client_that_does_not_trust_the_proxy(place: Place) -> None:
    client = http.client.HTTPSConnection("127.0.0.1", place.proxy.port, timeout=5)
    with pytest.raises(ssl.SSLCertVerificationError):
        client.request("GET", "/things")
    client.close()
    assert place.get("/things")[0] == 200


def test_what_cannot_be_done_is_an_error_at_the_end(authority: Authority, pairs: dict[str, Pair]) -> None:
    around = placed(authority, pairs)
    place = around.__enter__()
    answer = place.watch()
    assert place.proxy.strike(Answer(500)) == 1
    with pytest.raises(BROKEN):
        answer.read()
    with pytest.raises(TypeError, match="cannot strike"):
        around.__exit__(None, None, None)


def test_another_protocol_is_refused(place: Place) -> None:
    assert place.get("/things", headers={"Connection": "Upgrade", "Upgrade": "SPDY/3.1"})[0] == 501


def test_wait(place: Place) -> None:
    with pytest.raises(TimeoutError, match=r"0 of 1 requests within 0\.1 s"):
        place.proxy.wait(seconds=0.1)
    later = threading.Timer(0.2, place.get, ["/things"])
    later.start()
    [request] = place.proxy.wait(path="/things", answered=True)
    later.join()
    assert place.proxy.wait(since=request.time) == [request]
    assert place.proxy.seen(since=request.time + 0.001) == []


@pytest.mark.parametrize(
    ("times", "seconds", "most"),
    [([], 1, 0), ([5.0], 1, 1), ([0, 0.5, 1.0, 1.4], 1, 3), ([0, 1, 2, 3], 1, 1), ([0, 0.1, 9, 9.1, 9.2], 5, 3)],
)
def test_busiest(times: list[float], seconds: float, most: int) -> None:
    assert busiest([Request(moment, "GET", "/", False, None) for moment in times], seconds) == most


# Before the real API server.

RULES = [
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch"]},
]


@pytest.fixture
def account(cluster: Cluster, namespace: str) -> Path:
    """A kubeconfig with a token."""
    return cluster.service_account("tester", namespace, RULES)


def config_map(cluster: Cluster, namespace: str, name: str) -> None:
    cluster.api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}})


@contextlib.contextmanager
def streamed(url: str, kubeconfig: Path, path: str) -> Iterator[http.client.HTTPResponse]:
    config = yaml.safe_load(kubeconfig.read_text())
    trust = ssl.create_default_context(cafile=config["clusters"][0]["cluster"]["certificate-authority"])
    assert config["clusters"][0]["cluster"]["server"] == url
    client = http.client.HTTPSConnection("127.0.0.1", urllib.parse.urlsplit(url).port, context=trust, timeout=20)
    headers = {"Authorization": f"Bearer {config['users'][0]['user']['token']}"}
    with contextlib.closing(client):
        client.request("GET", path, headers=headers)
        yield client.getresponse()


def test_kubectl_with_a_certificate(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    with before(cluster.folder / "admin.kubeconfig", tmp_path / "proxy") as (proxy, turned):
        proxy.add(Answer(429, retry_after=1), path="/configmaps", times=2)
        words = ("get", "configmaps", "--namespace", namespace, "--output=name")
        assert "kube-root-ca.crt" in cluster.wait(lambda: cluster.kubectl(*words, as_=turned).stdout, 20, "a ConfigMap")
        seen = proxy.seen(path="/configmaps")
        # kubectl does as it is told.
        assert [one.status for one in seen[:3]] == [429, 429, 200]
        assert busiest(seen[:3], seconds=0.9) == 1
        assert cluster.kubectl("auth", "whoami", as_=turned).stdout.count("admin") == 1


def test_a_token_goes_through(cluster: Cluster, namespace: str, account: Path, tmp_path: Path) -> None:
    with before(account, tmp_path / "proxy") as (proxy, turned):
        said = cluster.kubectl("auth", "whoami", as_=turned).stdout
        assert f"system:serviceaccount:{namespace}:tester" in said
        proxy.add(Answer(401), path="/configmaps", times=1)
        words = ("get", "configmaps", "--namespace", namespace)
        assert "You must be logged in" in cluster.kubectl(*words, as_=turned, check=False).stderr
        cluster.kubectl(*words, as_=turned)
        assert cluster.kubectl("get", "pods", "--namespace", namespace, as_=turned, check=False).returncode == 1
        assert [one.status for one in proxy.seen(path="/pods")] == [403]
        tokens = {one.token for one in proxy.requests}
        assert tokens == {yaml.safe_load(account.read_text())["users"][0]["user"]["token"]}


def test_a_lost_answer_is_done(cluster: Cluster, namespace: str, account: Path, tmp_path: Path) -> None:
    config_map(cluster, namespace, "it")
    with before(account, tmp_path / "proxy") as (proxy, turned):
        proxy.add(Cut("after"), method="PATCH", times=1)
        words = ("patch", "configmap", "it", "--namespace", namespace, "--patch", '{"data": {"a": "b"}}')
        done = cluster.kubectl(*words, as_=turned, check=False)
        assert done.returncode == 1, done.stdout
        assert [(one.served, one.status) for one in proxy.seen(method="PATCH")] == [(200, None)]
    assert cluster.get("configmap", "it", namespace)["data"] == {"a": "b"}


def test_a_real_watch(cluster: Cluster, namespace: str, account: Path, tmp_path: Path) -> None:
    path = f"/api/v1/namespaces/{namespace}/configmaps?watch=true"

    def names_until(answer: http.client.HTTPResponse, last: str) -> Any:
        events = (json.loads(answer.readline()) for _ in range(100))
        return next(one for one in events if one["type"] == "ERROR" or one["object"]["metadata"]["name"] == last)

    with before(account, tmp_path / "proxy") as (proxy, turned):
        with streamed(proxy.url, turned, path) as answer:
            config_map(cluster, namespace, "one")
            assert names_until(answer, "one")["type"] == "ADDED"
            assert proxy.strike(Error(410), path="/configmaps") == 1
            assert names_until(answer, "")["object"]["code"] == 410
            assert answer.read() == b""
        with streamed(proxy.url, turned, path) as answer:
            names_until(answer, "one")
            # The server dies; the client sees its connection end, and is cut off from then on.
            cluster.part("apiserver").kill()
            with pytest.raises(BROKEN):
                read_on(answer)
            with pytest.raises(BROKEN), streamed(proxy.url, turned, path):
                pass
            cluster.part("apiserver").start()
        with streamed(proxy.url, turned, path) as answer:
            names_until(answer, "one")
        assert [one.watch for one in proxy.requests] == [True] * 4


def read_on(answer: http.client.HTTPResponse) -> None:
    """Read to the end; an end that http.client takes for one in order is none."""
    while answer.readline():
        pass
    raise http.client.IncompleteRead(b"")
