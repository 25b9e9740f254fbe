"""The reconciler with a bad network before it: what goes wrong between it and a real API server, one thing at a time.

There is no PodGroup controller here: phases are what the tests write, and stay.
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from postrender.reconciler.watch import Pace

from .cluster import Cluster
from .cluster.api import Object
from .faults import Answer, Cut, End, Error, Fault, FaultProxy, Hang, Request, before, busiest
from .reconciler import USER, Reconciler, account, groups, services
from .test_cluster import create, pod, stays
from .test_facts import fail, remove, status
from .test_reconciler import GROUP, define, events, lines, looping

PODGROUPS = "/podgroups"
NAME = "svc-engine-0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(parts=("etcd", "apiserver")) as running:
        define(running)
        yield running


class Place(NamedTuple):
    """A namespace with a service, an account for it, and a proxy before the server."""

    cluster: Cluster
    namespace: str
    proxy: FaultProxy
    kubeconfig: Path
    folder: Path

    def podgroup(self, name: str = NAME, phase: str = "Failed") -> None:
        self.cluster.api.create(groups(self.namespace, [name])[0])
        self.set(name, phase)

    def set(self, name: str = NAME, phase: str = "Failed") -> None:
        self.cluster.api.patch(GROUP, name, {"status": {"phase": phase, "failed": 1}}, self.namespace, "status")

    def wait_reset(self, name: str = NAME, seconds: float = 15) -> float:
        """Wait until it is reset; how long that took."""
        began = time.monotonic()
        self.cluster.wait(
            lambda: status(self.cluster, self.namespace, name)["phase"] == "Pending", seconds, f"a reset of {name}"
        )
        return time.monotonic() - began

    def watching(self, seconds: float = 15) -> None:
        """Wait until a watch is open."""
        since = time.monotonic() - 0.01
        open_ = [one for one in self.proxy.seen(watch=True) if one.status == 200 and one.ended is None]
        if not open_:
            self.proxy.wait(watch=True, answered=True, since=since, seconds=seconds)


@pytest.fixture
def place(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Place]:
    services(cluster, namespace, "svc")
    with before(account(cluster, namespace), tmp_path / "proxy") as (proxy, turned):
        yield Place(cluster, namespace, proxy, turned, tmp_path)
    # Nobody here empties a namespace that is deleted, and the next reconciler would find what is left.
    cluster.api.request("DELETE", cluster.api.path(GROUP, namespace))


# Paces so that what takes a minute takes seconds.
QUICK = Pace(silence=3.0, longest=1.0, absent=1.0)


def loops(requests: Sequence[Request], seconds: float = 1.0) -> int:
    """How many requests came within so many seconds, at the most; a watch right after its list is not counted."""
    counted = []
    for request in requests:
        if not (request.watch and counted and counted[-1].method == "GET" and request.time - counted[-1].time < 0.1):
            counted.append(request)
    return busiest(counted, seconds)


# The watch


@pytest.mark.parametrize(
    "fault",
    [End(), End(torn=True), Cut("middle"), Cut("middle", reset=True), Error(500)],
    ids=lambda fault: repr(fault),
)
def test_a_watch_that_breaks_goes_on_where_it_was(place: Place, fault: Fault) -> None:
    place.podgroup(phase="Running")
    place.podgroup("svc-engine-1", "Running")
    with looping(place.kubeconfig, place.folder) as loop:
        place.watching()
        place.proxy.strike(End())
        place.proxy.add(fault, watch=True, times=1)
        place.proxy.wait(2, watch=True, answered=True)
        # What a fault does within an event it can do only when there is one.
        place.set("svc-engine-1", "Scheduling")
        place.set()
        # 0.5 to 0.75 s between two watches, and up to 1.5 after the second failure; then a tenth of a second at most.
        assert place.wait_reset() < 4
        assert loop.watch.lists == {"start": 1}


@pytest.mark.parametrize("how", ["in the stream", "as an answer", "within a list"])
def test_a_place_that_is_forgotten_costs_a_list(place: Place, how: str) -> None:
    for number in range(3):
        place.podgroup(f"svc-engine-{number}", "Running")
    with looping(place.kubeconfig, place.folder) as loop:
        place.watching()
        # While nobody hears it, one goes and one fails.
        rule = place.proxy.add(Answer(410), watch=True, times=3 if how == "as an answer" else 0)
        expired = place.proxy.add(Answer(410), path="/podgroups?limit", times=2 if how == "within a list" else 0)
        place.proxy.strike(Error(410) if how != "as an answer" else End())
        place.cluster.api.delete(GROUP, "svc-engine-1", place.namespace)
        place.set("svc-engine-2")
        place.wait_reset("svc-engine-2")
        place.cluster.wait(
            lambda: (place.namespace, "svc-engine-1") not in loop.watch.groups, 10, "what went to be noticed"
        )
        assert {name for space, name in loop.watch.groups if space == place.namespace} == {NAME, "svc-engine-2"}
        assert loop.watch.lists["expired"] >= 1
        assert loops(place.proxy.seen(path=PODGROUPS + r"\?")) <= 2
        place.proxy.remove(rule, expired)


def test_a_connection_that_died_without_a_word(place: Place) -> None:
    """Half open: no byte, no end. It is noticed by its silence; /healthz would have gone on being well."""
    place.podgroup(phase="Running")
    with looping(place.kubeconfig, place.folder, QUICK) as loop:
        place.watching()
        place.proxy.strike(Hang())
        place.set()
        # Three seconds of silence (ninety, as shipped), a pause, and the event that was missed.
        assert place.wait_reset() < 3 + 2.5
        assert loop.watch.restarts["unreachable"] >= 1
        with place.proxy.deaf():
            place.proxy.strike(Hang(), watch=None)
            time.sleep(4)
            assert loop.clock() - loop.watch.progress < 11
        place.set()
        place.wait_reset(seconds=30)


# The server


@pytest.mark.parametrize(
    ("fault", "most"),
    [
        (Answer(429, retry_after=2), 3),
        (Answer(503), 4),
        (Answer(403), 4),
        (Answer(401), 4),
        (Cut("middle"), 4),
    ],
    ids=lambda value: repr(value),
)
def test_a_server_that_refuses_everything_for_a_while(place: Place, fault: Fault, most: int) -> None:
    """Few requests while it lasts, none of them twice within half a second, and it goes on without a restart."""
    names = [f"svc-engine-{number}" for number in range(6)]
    for name in names:
        place.podgroup(name, "Running")
    with looping(place.kubeconfig, place.folder, rate=100.0) as loop:
        place.watching()
        place.set(names[0])
        rule = place.proxy.add(fault)
        place.proxy.strike(End())
        began = time.monotonic()
        for name in names[1:]:
            place.set(name)
        time.sleep(4)
        seen = place.proxy.seen(since=began + 0.5)
        watching = [one for one in seen if one.path == "/apis/scheduling.x-k8s.io/v1alpha1/podgroups"]
        working = [one for one in seen if one not in watching]
        assert busiest(watching) <= 2
        assert busiest(working) <= 2
        assert len(watching) <= most + 1
        if isinstance(fault, Answer) and fault.retry_after:
            assert all(after.time - one.time >= fault.retry_after for one, after in itertools.pairwise(watching))
        place.proxy.remove(rule)
        for name in names:
            place.wait_reset(name, 20)
        assert loop.watch.present


def test_a_server_that_is_away(place: Place) -> None:
    place.podgroup()
    with looping(place.kubeconfig, place.folder) as loop:
        place.wait_reset()
        place.cluster.wait(lambda: len(events(place.cluster, place.namespace)) == 1, 5, "its Event")
        place.watching()
        before_ = len(place.proxy.connections)
        with place.proxy.down():
            time.sleep(5)
            assert loop.watch.restarts["unreachable"] <= 5
        assert len(place.proxy.connections) - before_ <= 5
        place.podgroup("svc-engine-1")
        place.wait_reset("svc-engine-1", 20)
        assert loop.watch.lists == {"start": 1}
        place.cluster.wait(lambda: len(events(place.cluster, place.namespace)) == 2, 5, "two Events")
        counted = loop.metrics._values
        place.cluster.wait(lambda: counted["podgroup_resets_total"] == {("done",): 2}, 5, "two resets, counted")


# The write


def test_a_writer_that_never_rests(place: Place) -> None:
    """Every 50 ms somebody touches the object: it is reset between two touches, or left for another pass; never unread."""
    place.podgroup()
    ended = threading.Event()

    def touch() -> None:
        count = 0
        while not ended.wait(0.05):
            count += 1
            place.cluster.api.patch(GROUP, NAME, {"metadata": {"labels": {"touched": str(count)}}}, place.namespace)

    toucher = threading.Thread(target=touch)
    toucher.start()
    try:
        with looping(place.kubeconfig, place.folder):
            time.sleep(7)
            patches = place.proxy.seen(method="PATCH", path="/status")
            reads = place.proxy.seen(method="GET", path=f"/podgroups/{NAME}$")
            assert 1 <= len(patches) <= 5
            assert len(reads) >= len(patches)
            for one in patches:
                assert any(0 < one.time - read.time < 1 for read in reads)
            # What was asked for in any second, the watch aside.
            assert busiest([*patches, *reads], 1.9) <= 4
    finally:
        ended.set()
        toucher.join()
    assert [one.served for one in patches].count(200) <= 1


@pytest.mark.parametrize("reset", [False, True])
def test_an_answer_that_is_lost(place: Place, reset: bool) -> None:
    place.podgroup()
    place.proxy.add(Cut("after", reset=reset), method="PATCH", path="/status", times=1)
    with looping(place.kubeconfig, place.folder) as loop:
        place.wait_reset()
        place.cluster.wait(lambda: len(events(place.cluster, place.namespace)) == 1, 10, "its Event")
        stays(place.cluster, lambda: len(place.proxy.seen(method="PATCH", path="/status")) == 1, 2)
        assert loop.metrics._values["podgroup_resets_total"] == {("unknown",): 1, ("done",): 1}


POINTS = {
    "it reads the PodGroup": ("GET", f"/podgroups/{NAME}$", "before"),
    "it reads the service": ("GET", "/inferenceservices/", "before"),
    "it lists pods": ("GET", "/pods\\?", "before"),
    "it writes": ("PATCH", "/status$", "before"),
    "it has written": ("PATCH", "/status$", "after"),
    "it says so": ("POST", "/events$", "before"),
    "it has said so": ("POST", "/events$", "after"),
}


@pytest.mark.parametrize("point", POINTS)
def test_killed_where(place: Place, point: str) -> None:
    """After `kill -9` at each step the next start finishes: one reset, one Event at the most, and never none at all."""
    method, path, when = POINTS[point]
    place.podgroup()
    rule = place.proxy.add(Hang(when), method=method, path=path, times=1)
    with Reconciler(place.cluster, place.kubeconfig, wanted=False) as it:
        place.proxy.wait(method=method, path=path, seconds=20)
        if when == "after":
            place.cluster.wait(
                lambda: place.proxy.seen(method=method, path=path)[0].served, 10, "the server to have done it"
            )
        it.kill()
        place.proxy.remove(rule)
        it.start()
        place.wait_reset()
        it.wait(lambda: it.get("/readyz")[0] == 200, 20, "it to be ready")
        time.sleep(0.5)
    done = [one for one in place.proxy.seen(method="PATCH", path="/status$") if one.served == 200]
    assert len(done) == 1
    said = events(place.cluster, place.namespace)
    # Where it had written, and was killed before it had said so, nobody is left who knows.
    assert len(said) == (0 if point in ("it has written", "it says so") else 1)


def test_the_end_does_not_wait_for_a_request_that_hangs(place: Place) -> None:
    place.podgroup()
    place.proxy.add(Hang(), path="/pods\\?")
    with Reconciler(place.cluster, place.kubeconfig) as it:
        place.proxy.wait(path="/pods\\?", seconds=20)
        code, seconds = it.stop()
        assert code == 0
        assert seconds < 10
        [last] = it.log("stopped")
        assert last["unfinished"] == 1
    assert status(place.cluster, place.namespace, NAME)["phase"] == "Failed"


def test_events_that_nobody_takes(place: Place) -> None:
    """A namespace that is being deleted takes none; nor does a server whose store of Events is away."""
    place.podgroup()
    place.podgroup("svc-engine-1")
    place.proxy.add(Answer(403, message="forbidden: it is being terminated"), path="/events$", times=1)
    place.proxy.add(Answer(500), path="/events$")
    with looping(place.kubeconfig, place.folder):
        place.wait_reset()
        place.wait_reset("svc-engine-1")
        place.cluster.wait(lambda: len(lines(place.folder, "the Event was not taken")) == 2, 5, "two lines")
        stays(place.cluster, lambda: len(place.proxy.seen(path="/events$")) == 2, 1)


def test_a_failed_pod_that_terminates(place: Place) -> None:
    """It is counted until it is gone: held till then, and reset once."""
    create(place.cluster, place.namespace, pod("a", "nobody", NAME))
    place.cluster.api.patch("pods", "a", {"metadata": {"finalizers": ["test/held"]}}, place.namespace)
    fail(place.cluster, place.namespace, "a")
    place.cluster.api.delete("pods", "a", place.namespace)
    place.podgroup()
    with looping(place.kubeconfig, place.folder):
        place.cluster.wait(lambda: lines(place.folder, "held back"), 10, "it to be held back")
        stays(place.cluster, lambda: status(place.cluster, place.namespace, NAME)["phase"] == "Failed", 1)
        place.cluster.api.patch("pods", "a", {"metadata": {"finalizers": None}}, place.namespace)
        remove(place.cluster, place.namespace, "a")
        place.wait_reset()
        stays(place.cluster, lambda: len(place.proxy.seen(method="PATCH", path="/status$")) == 1, 1)


# What fails again and again


def written(place: Place, count: int) -> list[Request]:
    """The writes of so many resets, waited for."""
    found = place.proxy.wait(count, method="PATCH", path="/status$", answered=True)
    assert [one.status for one in found] == [200] * count
    return found


def gaps(requests: Sequence[Request]) -> list[float]:
    return [after.time - one.time for one, after in itertools.pairwise(requests)]


def test_what_fails_again_waits_longer_each_time(place: Place) -> None:
    place.podgroup()
    with Reconciler(place.cluster, place.kubeconfig) as it:
        for resets in (1, 2):
            place.wait_reset(seconds=20)
            place.set()
            it.wait_log("held back", reason="BackOff", count=resets)
            assert it.metric("postrender_podgroup_resets_held", reason="BackOff") == 1
        place.wait_reset(seconds=30)
        [first, second] = gaps(written(place, 3))
    assert 5 <= first < 10
    assert 10 <= second < 20


# As it is shipped, the tenth reset comes after twenty minutes, and the one after it an hour later: no option shortens
# that. So in this process a second takes ten milliseconds, for these times only.
HURRIED = """
from postrender.reconciler import decide, queue, voice

for name in ("FIRST_WAIT", "LONGEST_WAIT", "FORGOTTEN_AFTER", "WINDOW", "PAUSE"):
    setattr(decide, name, getattr(decide, name) / 100)
queue.REST /= 100
voice._AT_ONCE = 20  # one a minute is a second Event in all this time

from postrender.__main__ import main

main()
"""
WAITS = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3, 3, 3]
PAUSE = 36


def test_what_failed_after_ten_resets_is_left_alone_for_a_while(place: Place) -> None:
    place.podgroup()
    with Reconciler(place.cluster, place.kubeconfig, program=("-c", HURRIED)) as it:
        for _ in range(10):
            place.wait_reset()
            place.set()
        it.wait_log("held back", reason="Suspended")
        it.wait(lambda: it.metric("postrender_podgroup_resets_held", reason="Suspended") == 1, 5, "it to be counted")
        [said] = [one for one in it.log(reason="Suspended") if one["level"] == "warning"]
        assert said["msg"].startswith(f"PodGroup {NAME} failed again after each of 10 resets within an hour")
        place.cluster.wait(lambda: told(place, "PodGroupResetSuspended"), 10, "its Event")
        waited = gaps(written(place, 10))
        assert all(gap >= wait for gap, wait in zip(waited, WAITS, strict=True)), waited
        # Somebody who writes to it meanwhile changes nothing.
        place.cluster.api.patch(GROUP, NAME, {"metadata": {"labels": {"touched": "yes"}}}, place.namespace)
        place.wait_reset(seconds=PAUSE + 20)
        it.wait(lambda: it.metric("postrender_podgroup_resets_held") == 0, 5, "nothing to be held")
        *_, pause = gaps(written(place, 11))
        assert pause >= PAUSE
        assert len(told(place, "PodGroupResetSuspended")) == 1


def told(place: Place, reason: str) -> list[Object]:
    return [one for one in events(place.cluster, place.namespace) if one["reason"] == reason]


# Many


def test_five_thousand_of_which_five_hundred_fail_at_once(cluster: Cluster, namespace: str) -> None:
    """The rate is kept, namespaces take turns, memory stays within 96 MiB, and all are reset as fast as the rate allows."""
    other = cluster.namespace()
    names = [f"svc-engine-{number}" for number in range(4_999)]
    for space in (namespace, other):
        services(cluster, space, "svc")
    create_all(cluster, groups(namespace, names))
    create_all(cluster, groups(other, [NAME]))
    begin = cluster.audit.position()
    rate, burst = 100, 20
    with Reconciler(cluster, account(cluster, namespace), "--rate", str(rate), "--burst", str(burst)) as it:
        assert it.metric("postrender_podgroups") == 5_000

        def fail_one(name: str) -> None:
            cluster.api.patch(GROUP, name, {"status": {"phase": "Failed", "failed": 1}}, namespace, "status")

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(fail_one, names[:500]))
        began = time.monotonic()
        cluster.api.patch(GROUP, NAME, {"status": {"phase": "Failed"}}, other, "status")
        cluster.wait(lambda: status(cluster, other, NAME)["phase"] == "Pending", 10, "the one elsewhere")
        assert time.monotonic() - began < 5
        it.wait(lambda: it.metric("postrender_podgroup_resets_total", result="done") >= 501, 60, "501 resets")
        assert it.metric("postrender_podgroup_resets_total") == 501
        assert it.status("VmHWM") <= 96 * 1024
        time.sleep(0.5)
    asked = cluster.audit.requests(begin, user=USER.format(namespace))
    watches = [one for one in asked if one["verb"] == "watch"]
    lists = [one for one in asked if one["verb"] == "list" and one["objectRef"]["resource"] == "podgroups"]
    assert (len(watches), len(lists)) == (1, 10)
    times = sorted(
        datetime.fromisoformat(one["requestReceivedTimestamp"].rstrip("Z")).timestamp()
        for one in asked
        if one not in watches and one not in lists
    )
    # Four requests each, and an Event for the first few: no service gets more than five at once.
    assert 501 * 4 <= len(times) <= 501 * 4 + 20
    assert max(bisect_left(times, at + 1) - start for start, at in enumerate(times)) <= rate + burst
    assert times[-1] - times[0] <= len(times) / rate * 1.25 + 1


def create_all(cluster: Cluster, held: list[Object]) -> None:
    """Create many objects of one kind, on one connection a thread."""
    path = cluster.api.path(GROUP, held[0]["metadata"]["namespace"])

    def create_some(part: list[Object]) -> None:
        link = http.client.HTTPSConnection("127.0.0.1", cluster.api.port, context=cluster.api.context, timeout=30)
        for one in part:
            link.request("POST", path, json.dumps(one), {"Content-Type": "application/json"})
            answer = link.getresponse()
            answer.read()
            assert answer.status == 201
        link.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(create_some, [held[start::4] for start in range(4)]))
