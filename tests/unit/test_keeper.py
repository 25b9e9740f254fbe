"""What is done for a PodGroup, against an API server in memory: which requests, which Events, which lines."""

import pytest

from postrender.cluster.client import Refused, Unreachable
from tests.reconciler.clock import Clock
from tests.reconciler.memory import Memory
from tests.reconciler.running import Running, running

NS, NAME = "ns", "svc-engine-0"
RESET = ("PATCH", "podgroups/status", NAME)


@pytest.fixture
def memory():
    held = Memory()
    held.owner(NS, "svc")
    return held


def writes(memory):
    return [asked for asked in memory.asked if asked[0] not in ("GET", "LIST", "WATCH")]


def raising(error, method, resource="", times=1):
    """What befalls so many requests of a kind."""
    left = [times]

    def befall(asked, what, name):
        if asked == method and what.startswith(resource) and left[0]:
            left[0] -= 1
            raise error

    return befall


def test_a_reset_is_three_reads_a_guarded_write_and_an_event(memory):
    memory.group(NS, NAME)
    it = running(memory)
    assert memory.phase(NS, NAME) == "Pending"
    assert memory.asked == [
        ("LIST", "podgroups", ""),
        ("GET", "podgroups", NAME),
        ("GET", "inferenceservices", "svc"),
        ("GET", "pods", ""),
        RESET,
        ("POST", "events", memory.events()[0]["metadata"]["name"]),
    ]
    assert it.metric("podgroup_resets_total", "done") == 1
    assert it.log("reset", namespace=NS, name=NAME, failed=1, of=2)
    # What it has written itself is no reason to ask again.
    memory.asked.clear()
    it.step(3)
    assert memory.asked == [("WATCH", "podgroups", "")]


@pytest.mark.parametrize("kind", ["InferenceService", "InferenceReplica", "LeaderWorkerSet"])
def test_a_podgroup_is_made_for_one_of_three_kinds(memory, kind):
    memory.owner(NS, "it", kind)
    memory.group(NS, NAME, made_for=f"{kind}/it")
    running(memory)
    assert memory.phase(NS, NAME) == "Pending"
    assert memory.events()[0]["regarding"]["kind"] == kind


@pytest.mark.parametrize(
    "made_for",
    [
        "InferenceService/gone",
        "Deployment/svc",
        "InferenceService",
        "/",
        "InferenceService/../pods/x",
        "InferenceService/svc?x=y",
        "InferenceService/Svc",
        "InferenceService/" + "a" * 254,
    ],
)
def test_what_it_was_made_for_must_be_there_and_be_a_name(memory, made_for):
    """An annotation is anybody's text: nothing of it gets into a path that is no name."""
    memory.group(NS, NAME, made_for=made_for)
    it = running(memory)
    assert memory.phase(NS, NAME) == "Failed"
    assert it.metric("podgroup_resets_held", "OwnerMissing") == 1
    assert {name for _, resource, name in memory.asked if resource == "inferenceservices"} <= {"gone"}


def test_the_owners_definition_may_be_missing(memory):
    memory.served.discard("inferenceservices")
    memory.group(NS, NAME)
    it = running(memory)
    assert it.metric("podgroup_resets_held", "OwnerMissing") == 1
    assert not writes(memory)


def test_a_pod_that_failed_holds_it_back_until_it_is_gone(memory):
    memory.group(NS, NAME)
    memory.pod(NS, "a", NAME, "Failed", deletionTimestamp="2026-01-01T00:00:00Z")
    memory.pod(NS, "b", NAME, "Running")
    it = running(memory)
    assert it.log("held back", reason="FailedMember", name=NAME)
    it.until(20)
    assert not writes(memory)
    memory.drop("pods", NS, "a")
    it.until(25)
    assert writes(memory)[0] == RESET
    assert it.metric("podgroup_resets_held", "FailedMember") == 0


def test_a_namesake_in_another_namespace_holds_it_back(memory):
    memory.group(NS, NAME)
    memory.pod("other", "a", NAME, "Failed")
    it = running(memory)
    assert it.metric("podgroup_resets_held", "ForeignNamespaceMember") == 1
    memory.drop("pods", "other", "a")
    it.until(6)
    assert memory.phase(NS, NAME) == "Pending"


def test_what_holds_it_back_is_told_after_a_quarter_of_an_hour_and_once(memory):
    memory.group(NS, NAME)
    memory.pod("other", "a", NAME, "Failed")
    it = running(memory)
    it.until(890, apart=10)
    assert not memory.events()
    it.until(3_600, apart=10)
    [event] = memory.events()
    assert event["reason"] == "PodGroupResetHeld"
    assert "another namespace" in event["note"]
    assert len(it.log(reason="ForeignNamespaceMember", level="warning")) == 1


def test_an_owner_that_is_missing_is_told_in_the_log(memory):
    memory.drop("inferenceservices", NS, "svc")
    memory.group(NS, NAME)
    it = running(memory)
    it.until(1_000, apart=10)
    assert [line["reason"] for line in it.log(level="warning")] == ["OwnerMissing"]


def test_a_gang_that_fails_again_and_again_is_reset_ten_times_an_hour(memory):
    memory.group(NS, NAME)
    it = running(memory)
    for _ in range(3_600):
        it.step(1)
        if memory.phase(NS, NAME) == "Pending":
            memory.group(NS, NAME)
    assert writes(memory).count(RESET) == 10
    assert len(memory.events("PodGroupResetSuspended")) == 1
    assert it.metric("podgroup_resets_held", "Suspended") == 1
    # Of ten resets the first five are told, then one a minute.
    assert 5 <= len(memory.events("PodGroupReset")) <= 10


# Whose it is


@pytest.mark.parametrize(
    "owners",
    [
        [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "x", "controller": True, "uid": "u"}],
        [{"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "x", "controller": True, "uid": "u"}],
    ],
)
def test_what_somebody_controls_is_left_alone(memory, owners):
    memory.group(NS, NAME, ownerReferences=owners)
    it = running(memory)
    it.until(100)
    assert memory.phase(NS, NAME) == "Failed"
    assert all(method == "POST" for method, *_ in writes(memory))
    foreign = owners[0]["kind"] == "StatefulSet"
    assert [event["reason"] for event in memory.events()] == (["PodGroupOwnershipConflict"] if foreign else [])
    assert it.metric("podgroup_ownership_conflicts") == foreign
    if foreign:
        assert "is controlled by StatefulSet/x" in memory.events()[0]["note"]


def test_an_owner_that_does_not_control_it_does_not_matter(memory):
    memory.group(NS, NAME, ownerReferences=[{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}])
    running(memory)
    assert memory.phase(NS, NAME) == "Pending"


def test_what_is_not_marked_is_never_written(memory):
    memory.group(NS, NAME, made_for=None)
    it = running(memory)
    it.until(200)
    assert not writes(memory)


def test_a_podgroup_of_our_name_that_is_not_ours_is_reported(memory):
    """Where pods of a service carry its name as their label, and it is not marked as ours."""
    memory.group(NS, NAME, "Pending", made_for=None)
    memory.pod(NS, "a", NAME, "Pending", labels={"component": "engine", "ome.io/inferenceservice": "svc"})
    it = running(memory)
    it.until(59)
    assert not memory.events()
    it.until(3)
    [event] = memory.events()
    assert event["reason"] == "PodGroupOwnershipConflict"
    assert "is not marked as ours and has no controller" in event["note"]
    assert it.metric("podgroup_ownership_conflicts") == 1
    # When it is ours after all, there is no conflict any more.
    memory.group(NS, NAME, "Failed")
    it.step(3)
    assert it.metric("podgroup_ownership_conflicts") == 0
    assert memory.phase(NS, NAME) == "Pending"


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("batch-7", {}),
        (NAME, {"component": "engine"}),
        ("x-engine-0", {"component": "engine", "ome.io/inferenceservice": "svc"}),
    ],
)
def test_other_podgroups_are_nobodys_business(memory, name, labels):
    memory.group(NS, name, "Pending", made_for=None)
    memory.pod(NS, "a", name, "Pending", labels=labels)
    it = running(memory)
    it.until(200)
    assert not writes(memory)


def test_a_thousand_of_others_keep_nobody_waiting(memory):
    """Who is asked whose pods it has waits its turn: one a second."""
    for number in range(200):
        memory.group(NS, f"x-engine-{number}", "Pending", made_for=None)
    it = running(memory)
    memory.asked.clear()
    it.until(120)
    assert 55 <= sum(asked == ("GET", "pods", "") for asked in memory.asked) <= 62
    memory.asked.clear()
    it.until(100)
    # A change of it is no reason to ask again within the hour.
    memory.group(NS, "x-engine-0", "Scheduling", made_for=None)
    memory.asked.clear()
    it.until(200)
    assert sum(asked == ("GET", "pods", "") for asked in memory.asked) <= 100


# The scheduler


def scheduled(memory, leader, worker):
    for runner, scheduler in (("worker", worker), ("leader", leader)):
        held = memory.pod(
            NS, f"z-{runner}" if runner == "leader" else "a-worker", NAME, "Pending", labels={"ome.io/runner": runner}
        )
        held["spec"]["schedulerName"] = scheduler


# OME's matrix: the leader's name counts, and only the default is warned of.
@pytest.mark.parametrize(
    ("leader", "worker", "warned"),
    [
        ("default-scheduler", "default-scheduler", True),
        ("default-scheduler", "custom", True),
        ("custom", "default-scheduler", False),
        ("custom", "custom", False),
    ],
)
def test_a_gang_that_waits_for_a_scheduler_without_gangs_is_warned_of_once(memory, leader, worker, warned):
    memory.group(NS, NAME, "Scheduling", labels={"component": "engine"})
    memory.group(NS, "svc-engine-1", "Scheduling", labels={"component": "engine"})
    scheduled(memory, leader, worker)
    for name in ("a-worker", "z-leader"):
        held = memory.objects["pods", NS, name]
        memory.pod(
            NS,
            name + "-1",
            "svc-engine-1",
            "Pending",
            labels={**held["metadata"]["labels"], "scheduling.x-k8s.io/pod-group": "svc-engine-1"},
        )["spec"] = held["spec"]
    it = running(memory)
    it.until(8_000, apart=10)
    events = memory.events("MaybeNoGangScheduler")
    assert len(events) == warned
    if warned:
        assert "'default-scheduler'" in events[0]["note"]


def test_the_default_scheduler_may_place_gangs(memory):
    memory.group(NS, NAME, "Scheduling")
    scheduled(memory, "default-scheduler", "default-scheduler")
    it = running(memory, gang_schedulers=("default-scheduler",))
    it.until(100)
    assert not memory.events()


# What goes wrong with a write


def test_what_has_changed_since_is_not_written(memory):
    """It is read, decided, and written by somebody else before us: the guard holds, and the next look decides anew."""
    memory.group(NS, NAME)

    def meddle(method, resource, name):
        if method == "PATCH" and resource == "podgroups/status":
            memory.before = lambda *_: None
            memory.group(NS, NAME, "Running")

    memory.before = meddle
    it = running(memory)
    assert memory.phase(NS, NAME) == "Running"
    assert it.metric("podgroup_resets_total", "conflict") == 1
    it.until(10)
    assert writes(memory) == [RESET]
    assert not memory.events()


def test_a_writer_that_never_rests(memory):
    memory.group(NS, NAME)

    def meddle(method, resource, name):
        if method == "PATCH":
            memory.put("podgroups", {**memory.objects["podgroups", NS, NAME], "touched": str(memory.version)})

    memory.before = meddle
    it = running(memory)
    it.until(60)
    # Each pass reads first, and there are two seconds between two passes.
    assert 20 <= writes(memory).count(RESET) <= 31
    assert memory.phase(NS, NAME) == "Failed"


@pytest.mark.parametrize("error", [Unreachable("broke off"), Refused(504, "Timeout", ""), Refused(500, "", "")])
def test_a_lost_answer_is_counted_and_told_once(memory, error):
    memory.group(NS, NAME)
    memory.after = raising(error, "PATCH", "podgroups")
    it = running(memory)
    assert memory.phase(NS, NAME) == "Pending"
    assert not memory.events()
    it.until(10)
    assert writes(memory)[0] == RESET
    assert writes(memory).count(RESET) == 1
    assert len(memory.events("PodGroupReset")) == 1
    assert it.metric("podgroup_resets_total", "done") == 1
    assert len(it.loop._keeper._histories[NS, NAME].resets) == 1


def test_a_write_that_never_came_is_made_later(memory):
    memory.group(NS, NAME)
    memory.before = raising(Unreachable("refused"), "PATCH")
    it = running(memory)
    it.until(3)
    assert memory.phase(NS, NAME) == "Failed"
    it.until(5)
    assert memory.phase(NS, NAME) == "Pending"
    assert len(memory.events("PodGroupReset")) == 1


def test_without_a_status_subresource_it_says_so(memory):
    memory.served.discard("podgroups/status")
    memory.group(NS, NAME)
    it = running(memory)
    it.until(280)
    assert writes(memory) == [RESET]
    [line] = it.log(level="error")
    assert "no status subresource" in line["msg"]


def test_what_is_gone_when_it_is_to_be_written_is_forgotten(memory):
    memory.group(NS, NAME)

    def meddle(method, resource, name):
        if method == "PATCH":
            memory.drop("podgroups", NS, NAME)

    memory.before = meddle
    it = running(memory)
    it.until(10)
    assert not it.log(level="warning")
    assert not it.loop._keeper._histories


@pytest.mark.parametrize(("status", "seconds"), [(403, 60), (422, 60), (400, 1)])
def test_a_refusal_is_waited_out(memory, status, seconds):
    memory.group(NS, NAME)
    memory.before = raising(Refused(status, "", "no"), "PATCH", times=1)
    it = running(memory)
    [line] = it.log(level="warning")
    assert (line["again_s"], line["attempt"]) == (seconds, 1)
    it.until(seconds + 2)
    assert memory.phase(NS, NAME) == "Pending"


def test_a_change_is_looked_at_before_a_long_wait_is_over(memory):
    memory.group(NS, NAME)
    memory.before = raising(Refused(403, "", "no"), "PATCH", times=1)
    it = running(memory)
    memory.put("podgroups", {**memory.objects["podgroups", NS, NAME], "touched": "yes"})
    it.until(5)
    assert memory.phase(NS, NAME) == "Pending"


@pytest.mark.parametrize("error", [Refused(403, "Forbidden", "no"), Unreachable("gone"), Refused(500, "", "")])
def test_an_event_that_is_not_taken_costs_nothing_but_itself(memory, error):
    memory.group(NS, NAME)
    memory.before = raising(error, "POST", times=99)
    it = running(memory)
    it.until(30)
    assert memory.phase(NS, NAME) == "Pending"
    assert [line["msg"].startswith("the Event was not taken") for line in it.log(level="warning")] == [True]
    assert it.metric("events_posted_total", "PodGroupReset", "failed") == 1


# Again, and elsewhere


def test_a_second_replica_has_nothing_to_do(memory):
    memory.group(NS, NAME)
    clock = Clock()
    one, other = Running(memory, clock), Running(memory, clock)
    one.hear()
    other.hear()
    one.work()
    other.work()
    assert writes(memory).count(RESET) == 1
    assert len(memory.events()) == 1


def test_of_two_that_have_both_decided_one_is_refused(memory):
    memory.group(NS, NAME)
    clock = Clock()
    one, other = Running(memory, clock), Running(memory, clock)
    one.hear()
    other.hear()

    def meanwhile(method, resource, name):
        if method == "PATCH":
            memory.before = lambda *_: None
            other.work()

    memory.before = meanwhile
    one.work()
    assert (one.metric("podgroup_resets_total", "conflict"), other.metric("podgroup_resets_total", "done")) == (1, 1)
    assert len(memory.events()) == 1


def test_after_a_restart_the_same_is_not_said_twice(memory):
    memory.group(NS, NAME, ownerReferences=[{"apiVersion": "v1", "kind": "X", "name": "x", "controller": True}])
    for _ in range(3):
        running(memory)
    [event] = memory.events()
    assert event["series"]["count"] == 2


def test_another_of_the_same_name_begins_anew(memory):
    memory.group(NS, NAME)
    it = running(memory)
    memory.drop("podgroups", NS, NAME)
    memory.group(NS, NAME)
    it.step(3)
    assert memory.phase(NS, NAME) == "Pending"
    assert writes(memory).count(RESET) == 2


def test_a_blip_of_the_server_forgets_no_reset(memory):
    """An API server that has just started may not know the kind for a moment."""
    memory.group(NS, NAME)
    it = running(memory)
    memory.group(NS, NAME)
    memory.served.discard("podgroups")
    it.until(2)
    memory.served.add("podgroups")
    it.until(2)
    assert memory.phase(NS, NAME) == "Failed"
    assert it.metric("podgroup_resets_held", "BackOff") == 1
    it.until(8)
    assert memory.phase(NS, NAME) == "Pending"


def test_nothing_is_remembered_of_what_is_gone_for_long(memory):
    memory.group(NS, NAME)
    memory.group(NS, "svc-engine-1", "Pending")
    memory.group(NS, "svc-engine-2", ownerReferences=[{"kind": "X", "name": "x", "controller": True}])
    it = running(memory)
    it.until(100)
    keeper = it.loop._keeper
    assert len(keeper._histories) == len(keeper._conflicts) == 1
    for number in range(3):
        memory.drop("podgroups", NS, f"svc-engine-{number}")
    it.step(5)
    assert {*keeper._conflicts, *keeper._asked, *keeper._unsaid} == set()
    it.until(3_700, apart=20)
    assert not keeper._histories


def test_a_mark_that_is_taken_away(memory):
    memory.group(NS, NAME)
    memory.pod(NS, "a", NAME, "Failed")
    it = running(memory)
    memory.group(NS, NAME, made_for=None)
    memory.drop("pods", NS, "a")
    it.until(100)
    assert it.metric("podgroup_resets_held", "FailedMember") == 0
    assert not writes(memory)


def test_dry_run_writes_nothing(memory):
    memory.group(NS, NAME)
    memory.group(NS, "svc-engine-1", ownerReferences=[{"kind": "X", "name": "x", "controller": True}])
    it = running(memory, dry_run=True)
    it.until(30)
    assert not writes(memory)
    assert it.log("would reset", name=NAME, dry_run=True)
    assert it.log("would say", reason="PodGroupOwnershipConflict")


# The CRD


def test_a_missing_crd_is_told_to_whom_it_matters(memory):
    memory.served.discard("podgroups")
    memory.owner(NS, "gone-soon")
    for name in ("svc", "gone-soon", "never-there"):
        memory.pod(NS, name, f"{name}-engine-0", "Pending", labels={"ome.io/inferenceservice": name})
    memory.pod(NS, "bare", "bare-0", "Pending")
    it = running(memory)
    assert {event["regarding"]["name"] for event in memory.events("GangSchedulingUnavailable")} == {"svc", "gone-soon"}
    assert it.metric("gang_crd_available") == 0
    assert len(it.log(level="warning")) == 1
    memory.owner(NS, "late")
    memory.pod(NS, "late", "late-engine-0", "Pending", labels={"ome.io/inferenceservice": "late"})
    it.until(1_300, apart=30)
    assert len(memory.events()) == 3
    memory.served.add("podgroups")
    memory.group(NS, NAME)
    it.until(60, apart=30)
    assert it.metric("gang_crd_available") == 1
    assert memory.phase(NS, NAME) == "Pending"
    memory.asked.clear()
    it.until(1_300, apart=30)
    assert ("GET", "pods", "") not in memory.asked


def test_who_cannot_be_told_is_told_later(memory):
    memory.served.discard("podgroups")
    memory.pod(NS, "svc", NAME, "Pending", labels={"ome.io/inferenceservice": "svc"})
    memory.before = raising(Unreachable("gone"), "GET", "pods")
    it = running(memory)
    assert not memory.events()
    it.until(31, apart=10)
    assert len(memory.events("GangSchedulingUnavailable")) == 1
