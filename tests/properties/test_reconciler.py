"""Random interleavings of two reconcilers with what may happen around them, on an API server in memory.

The reconcilers are the real code, each in a thread that stops before every request but the watch's until it is told to go
on: the request is made, or never arrives, or is made and its answer lost, or the program dies there. Meanwhile pods fail, go and come,
the PodGroup controller writes what it has counted some time ago, others take the PodGroup's name, owners go. What is
written is judged at the moment it is written; when all is quiet, the gang must end as running.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postrender.cluster.client import Page, Unreachable
from postrender.reconciler import decide
from postrender.reconciler.api import Api
from postrender.reconciler.decide import NO_FAILURES, Failures, Group
from postrender.reconciler.keeper import Keeper
from tests.properties.tally import FUZZ
from tests.reconciler.clock import Clock
from tests.reconciler.controller import step
from tests.reconciler.memory import Memory, parsed
from tests.reconciler.running import Running

NS, ELSEWHERE, NAME = "ns", "other", "svc-engine-0"
KEY = ("podgroups", NS, NAME)
MEMBERS = ("a", "b")
PATIENCE = 20.0
OUTCOMES = ("never arrives", "answer lost", "dies")
EXAMPLES = FUZZ // 10 if FUZZ else 200


class Dead(BaseException):
    """The program ends here."""


class Door:
    """A client that waits for leave before each request."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.judge: Callable[[str, str, Any], Any] = lambda *_: None
        self.outcome = ""
        self.waits = threading.Event()
        self.leave = threading.Event()
        self.wrong: list[AssertionError] = []

    def get(self, path: str, query: Mapping[str, str | int] | None = None, timeout: object = None) -> Any:
        return self.through("GET", path, query, lambda: self.memory.get(path, query))

    def post(self, path: str, body: Any, timeout: object = None) -> Any:
        return self.through("POST", path, body, lambda: self.memory.post(path, body))

    def patch(self, path: str, body: Any, timeout: object = None) -> Any:
        return self.through("PATCH", path, body, lambda: self.memory.patch(path, body))

    def page(self, path: str, query: Mapping[str, str | int] | None = None, following: str = "") -> Page:
        return self.memory.page(path, query, following)

    def lines(self, path: str, query: Mapping[str, str | int], timeout: object = None) -> Iterator[bytes]:
        return self.memory.lines(path, query)

    def through(self, method: str, path: str, said: Any, work: Callable[[], Any]) -> Any:
        self.leave.clear()
        self.waits.set()
        assert self.leave.wait(PATIENCE)
        if self.outcome == "dies":
            raise Dead
        if self.outcome == "never arrives":
            raise Unreachable("made up by a test")
        try:
            done = self.judge(method, path, said)
            answer = work()
            if done:
                done()
        except AssertionError as error:
            self.wrong.append(error)
            raise
        if self.outcome == "answer lost":
            raise Unreachable("made up by a test")
        return answer


class Replica:
    """One reconciler, at rest or before a request."""

    def __init__(self, memory: Memory, clock: Clock, judge: Callable[[Replica, str, str, Any], Any]) -> None:
        self.memory, self.clock, self.judge = memory, clock, judge
        self.thread: threading.Thread | None = None
        self.born()

    def born(self) -> None:
        self.door = Door(self.memory)
        self.door.judge = lambda method, path, said: self.judge(self, method, path, said)
        self.running = Running(self.door, self.clock)  # type: ignore[arg-type]
        self.seen: Failures | None = None  # what its last list of pods held, since it read the PodGroup
        self.read: Any = None
        self.resets: dict[str, float] = {}

    def begin(self) -> None:
        """Hear what there is, and look at what is due, as far as the first request."""
        self.door.waits.clear()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        assert self.door.waits.wait(PATIENCE)

    def work(self) -> None:
        try:
            self.running.step()
        except Dead:
            pass
        finally:
            self.thread = None
            self.door.waits.set()

    def go(self, outcome: str) -> None:
        """Let it go on as far as its next request, or its rest."""
        self.door.waits.clear()
        self.door.outcome = outcome
        door = self.door
        self.door.leave.set()
        assert door.waits.wait(PATIENCE)
        self.right()
        if outcome == "dies":
            self.born()

    def right(self) -> None:
        """Raise what was wrong; the program itself goes on after any error."""
        if self.door.wrong:
            raise self.door.wrong[0]
        assert not self.running.log(level="error")

    def rest(self) -> None:
        while self.thread is not None:
            self.go("")

    def end(self) -> None:
        """Let go of the thread, whatever it was about to do."""
        if self.thread is not None:
            self.door.waits.clear()
            self.door.outcome = "dies"
            self.door.leave.set()
            assert self.door.waits.wait(PATIENCE)


class World:
    """All of it."""

    def __init__(self) -> None:
        self.memory, self.clock = Memory(), Clock()
        self.made: set[str] = set()  # the versions at which a reset was made
        self.stale: tuple[str, list[str]] | None = None  # what the controller has read
        self.memory.owner(NS, "svc")
        self.ours()
        for name in MEMBERS:
            self.memory.pod(NS, name, NAME, "Running")
        self.replicas = [Replica(self.memory, self.clock, self.judged) for _ in range(2)]
        for replica in self.replicas:
            replica.begin()

    def ours(self) -> None:
        self.memory.drop("podgroups", NS, NAME)
        self.memory.group(NS, NAME, "Running")

    # What a reconciler may do

    def judged(self, replica: Replica, method: str, path: str, said: Any) -> Any:
        """Judge a request at the moment it is made."""
        resource, namespace, name = parsed(path)
        if method == "GET" and resource == "podgroups":
            replica.read, replica.seen = self.memory.objects.get(KEY), None
        if method == "GET" and resource == "pods" and "fieldSelector" in said:
            replica.seen = self.failed()
        if method == "GET":
            return None
        if resource == "events":
            if method == "POST" and said["reason"] == "PodGroupReset":
                assert said["related"]["resourceVersion"] in self.made, "an Event of what was not done"
            return None
        assert (method, resource, namespace, name) == ("PATCH", "podgroups/status", NS, NAME)
        assert said["status"] == {"phase": "Pending"}
        assert {*said} <= {"metadata", "status"}
        before = self.memory.objects.get(KEY)

        def written() -> None:
            assert before is not None
            metadata = before["metadata"]
            assert metadata["annotations"].get("postrender/for"), "what is not marked was written"
            assert not metadata.get("ownerReferences"), "what another controls was written"
            assert before["status"]["phase"] == "Failed", "what had not failed was written"
            assert replica.seen == NO_FAILURES, "there was a failed member"
            assert before is replica.read, "it was not read before"
            last = replica.resets.get(metadata["uid"])
            assert last is None or self.clock() - last >= 5, "it was reset again too soon"
            replica.resets[metadata["uid"]] = self.clock()
            self.made.add(metadata["resourceVersion"])

        return written

    def failed(self) -> Failures:
        places = [
            key[1]
            for key, held in self.memory.objects.items()
            if key[0] == "pods" and held["status"]["phase"] == "Failed"
        ]
        return Failures(places.count(NS), tuple(sorted({*places} - {NS})))

    def all_is_right(self) -> None:
        for replica in self.replicas:
            replica.right()

    # What happens

    def begins(self, number: int) -> None:
        """It hears what there is; three seconds have passed, so that nothing rests any more."""
        if self.replicas[number].thread is None:
            self.clock.now += 3
            self.replicas[number].begin()

    def goes_on(self, number: int, outcome: str, times: int) -> None:
        for left in reversed(range(times)):
            if self.replicas[number].thread is not None:
                self.replicas[number].go("" if left else outcome)

    def passes(self, seconds: float) -> None:
        self.clock.now += seconds

    def a_pod(self, name: str, phase: str, going: bool) -> None:
        """It fails, perhaps while it is deleted; or is replaced by one that runs or waits."""
        going = going and phase == "Failed"
        self.memory.pod(NS, name, NAME, phase, **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if going else {}))

    def a_namesake_elsewhere(self, phase: str) -> None:
        self.memory.drop("pods", ELSEWHERE, "x")
        if phase:
            self.memory.pod(ELSEWHERE, "x", NAME, phase)

    def the_controller_counts(self) -> None:
        held = self.memory.objects.get(KEY)
        pods = [one for key, one in self.memory.objects.items() if key[0] == "pods"]
        self.stale = (held["status"]["phase"], [one["status"]["phase"] for one in pods]) if held else None

    def the_controller_writes(self) -> None:
        """By name, with no version: also into what was made since."""
        if self.stale is not None and KEY in self.memory.objects:
            before, pods = self.stale
            after, counts = step(before, pods, 2)
            change = {**({"phase": after} if after != before else {}), **(counts or {})}
            self.memory.patch(
                "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/" + NAME + "/status", {"status": change}
            )
        self.stale = None

    def it_fails(self, replaced: bool) -> None:
        """The shortest way there: a pod fails, is counted, and is perhaps replaced."""
        if KEY in self.memory.objects:
            self.a_pod("a", "Failed", False)
            for _ in range(4):
                self.the_controller_counts()
                self.the_controller_writes()
            if replaced:
                self.a_pod("a", "Running", False)

    def others(self, what: str) -> None:
        """Somebody writes the PodGroup, takes its name, or brings ours back."""
        held = self.memory.objects.get(KEY)
        if what == "touched" and held:
            self.memory.put(
                "podgroups", {**held, "metadata": {**held["metadata"], "labels": {"at": str(self.memory.version)}}}
            )
        if what == "mended" and held:
            self.memory.put("podgroups", {**held, "status": {**held["status"], "phase": "Running"}})
        if what == "made anew":
            self.ours()
        if what in ("unmarked", "controlled"):
            self.memory.drop("podgroups", NS, NAME)
            owners = (
                [{"apiVersion": "v1", "kind": "X", "name": "x", "controller": True}] if what == "controlled" else []
            )
            mark = None if what == "unmarked" else ""
            self.memory.group(NS, NAME, "Failed", mark, **({"ownerReferences": owners} if owners else {}))  # type: ignore[arg-type]

    def the_owner(self, there: bool) -> None:
        if there:
            self.memory.owner(NS, "svc")
        else:
            self.memory.drop("inferenceservices", NS, "svc")

    # When all is quiet

    def quiet(self) -> None:
        """Let all requests through, replace what failed, and wait for the gang to run."""
        for replica in self.replicas:
            replica.rest()
        self.memory.owner(NS, "svc")
        self.memory.drop("pods", ELSEWHERE, "x")
        for name in MEMBERS:
            self.memory.pod(NS, name, NAME, "Running")
        held = self.memory.objects.get(KEY)
        mine = held and held["metadata"]["annotations"] and not held["metadata"].get("ownerReferences")
        for _ in range(30):
            if not mine or self.memory.phase(NS, NAME) == "Running":
                return
            for replica in self.replicas:
                replica.begin()
                replica.rest()
            for _ in range(3):
                self.the_controller_counts()
                self.the_controller_writes()
            self.clock.now += 30
        raise AssertionError("it is never reset")


ACTIONS = [
    *[("begins", number) for number in (0, 1)] * 6,
    *[("goes_on", number, "", times) for number in (0, 1) for times in (1, 2, 3, 5)] * 3,
    *[("goes_on", number, how, times) for number in (0, 1) for how in OUTCOMES for times in (1, 4)],
    *[("passes", seconds) for seconds in (1.0, 6.0, 30.0, 700.0)],
    *[
        ("a_pod", name, *how)
        for name in MEMBERS
        for how in (("Failed", True), ("Failed", False), ("Running", False), ("Pending", False))
    ],
    *[("a_namesake_elsewhere", phase) for phase in ("Failed", "")] * 2,
    *[("the_controller_counts",), ("the_controller_writes",)] * 3,
    *[("it_fails", replaced) for replaced in (True, True, False)] * 4,
    *[("others", what) for what in ("touched", "mended", "made anew", "unmarked", "controlled", "controlled")] * 3,
    *[("the_owner", there) for there in (True, False)],
]


def play(actions: Sequence[Any]) -> None:
    """Let this happen in this order; raises what is wrong."""
    world = World()
    try:
        for name, *words in actions:
            getattr(world, name)(*words)
            world.all_is_right()
        world.quiet()
    finally:
        for replica in world.replicas:
            replica.end()


def run(examples: int) -> None:
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=not FUZZ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(st.sampled_from(ACTIONS), min_size=10, max_size=40))
    def hold(actions: list[Any]) -> None:
        play(actions)

    hold()


def test_whatever_happens_in_whatever_order() -> None:
    run(EXAMPLES)


def unguarded(self: Api, one: Group) -> None:
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{one.namespace}/podgroups/{one.name}/status"
    self._ask("patch", "podgroups/status", lambda: self._client.patch(path, {"status": {"phase": "Pending"}}))


def guarded_by_uid(self: Api, one: Group) -> None:
    path = f"/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{one.namespace}/podgroups/{one.name}/status"
    body = {"metadata": {"uid": one.uid}, "status": {"phase": "Pending"}}
    self._ask("patch", "podgroups/status", lambda: self._client.patch(path, body))


PLAIN = Api.failures


# What is broken, what notices it, and the shortest run in which that comes out.
BROKEN = {
    "no guard": (
        (Api, "reset", unguarded),
        "what is not marked was written",
        [("it_fails", True), ("begins", 0), ("goes_on", 0, "", 1), ("others", "unmarked")],
    ),
    "guarded by the uid alone": (
        (Api, "reset", guarded_by_uid),
        "what had not failed was written",
        [("it_fails", True), ("begins", 0), ("goes_on", 0, "", 1), ("others", "mended")],
    ),
    "failed members are not asked for": (
        (Api, "failures", lambda *_: NO_FAILURES),
        "there was a failed member",
        [("it_fails", False), ("begins", 0)],
    ),
    "failed members do not count": (
        (Api, "failures", lambda self, one: PLAIN(self, one)._replace(here=0)),
        "there was a failed member",
        [("it_fails", False), ("begins", 0)],
    ),
    "elsewhere does not count": (
        (Api, "failures", lambda self, one: PLAIN(self, one)._replace(elsewhere=())),
        "there was a failed member",
        [("a_namesake_elsewhere", "Failed"), ("it_fails", True), ("begins", 0)],
    ),
    "whatever is there is ours": (
        (Group, "ours", property(lambda self: True)),
        "what another controls was written",
        [("it_fails", True), ("begins", 0), ("others", "controlled")],
    ),
    "a lost answer is no reset": (
        (Keeper, "_unknown", lambda *_: None),
        "it was reset again too soon",
        [
            *[("it_fails", True), ("begins", 0), ("goes_on", 0, "", 3), ("goes_on", 0, "answer lost", 1)],
            *[("it_fails", True), ("begins", 0), ("goes_on", 0, "", 5)],
        ],
    ),
    "it is never reset again": (
        (decide, "after_reset", lambda history, now: history._replace(not_before=now + 1e9)),
        "it is never reset",
        [
            *[("it_fails", True), ("begins", 0), ("goes_on", 0, "", 5)],
            *[("it_fails", True), ("begins", 1), ("goes_on", 1, "", 5)],
            *[("it_fails", True), ("begins", 0), ("begins", 1)],
        ],
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_protocol_is_noticed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    (where, what, broken), message, actions = BROKEN[name]
    play(actions)
    monkeypatch.setattr(where, what, broken)
    with pytest.raises(AssertionError, match=message):
        play(actions)
