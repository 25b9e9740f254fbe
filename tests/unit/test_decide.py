"""What is decided of a PodGroup: rows of conditions, and what time does to them."""

import pytest

from postrender.reconciler import decide
from postrender.reconciler.decide import Failures, Group, History, Owner, after_reset, conflict, gone, group

NOW = 10_000.0
OWNER = Owner("ome.io/v1beta1", "InferenceService", "ns", "svc", "uid-svc", False)
NONE = Failures(0, ())


def a_group(phase="Failed", **changes) -> Group:
    plain = Group("ns", "svc-engine-0", "uid-1", "7", phase, False, "InferenceService/svc", "", False, "engine", 2, 1)
    return plain._replace(**changes)


def decided(one, owner=OWNER, failures=NONE, history=None, now=NOW):
    return decide.decide(one, owner, failures, history, now)


# OME's readings of a PodGroup, with its words: absent, Running, Pending, Scheduling, Unknown and Finished are none; Failed
# is a reset, unless a dead member is there, somebody else holds it, or it is being deleted.
@pytest.mark.parametrize(
    ("one", "owner", "failures", "reset", "held"),
    [
        (a_group(), OWNER, NONE, True, ""),
        (a_group(""), OWNER, NONE, False, ""),
        (a_group("Pending"), OWNER, NONE, False, ""),
        (a_group("Scheduling"), OWNER, NONE, False, ""),
        (a_group("Running"), OWNER, NONE, False, ""),
        (a_group("Unknown"), OWNER, NONE, False, ""),
        (a_group("Finished"), OWNER, NONE, False, ""),
        (a_group("failed"), OWNER, NONE, False, ""),
        (a_group(deleted=True), OWNER, NONE, False, ""),
        (a_group(made_for=""), OWNER, NONE, False, ""),
        (a_group(controller="StatefulSet/legacy"), OWNER, NONE, False, ""),
        (a_group(controller="InferenceReplica/svc-engine", controlled_by_ome=True), OWNER, NONE, False, ""),
        (a_group(), None, NONE, False, "OwnerMissing"),
        (a_group(), OWNER._replace(deleted=True), NONE, False, "OwnerBeingDeleted"),
        (a_group(), OWNER, Failures(1, ()), False, "FailedMember"),
        (a_group(), OWNER, Failures(0, ("other",)), False, "ForeignNamespaceMember"),
        (a_group(), OWNER, Failures(2, ("other",)), False, "FailedMember"),
    ],
)
def test_when_a_podgroup_is_reset(one, owner, failures, reset, held):
    decision = decided(one, owner, failures)
    assert (decision.reset, decision.held) == (reset, held)
    assert not decision.say


def test_what_is_not_failed_needs_no_second_look():
    assert decided(a_group("Running")).look_again == 0


def again(history, now):
    """The history after a reset that the next failure follows at once."""
    decision = decided(a_group(), history=history, now=now)
    assert decision.reset, (decision, now)
    return after_reset(decision.history, now)


def test_it_waits_twice_as_long_after_each_reset_up_to_five_minutes():
    history, now, waits = None, NOW, []
    for _ in range(8):
        history = again(history, now)
        held = decided(a_group(), history=history, now=now)
        assert (held.reset, held.held) == (False, "BackOff")
        assert held.history.held == "BackOff"
        assert not decided(a_group(), history=history, now=now + held.look_again - 0.01).reset
        waits.append(held.look_again)
        now += held.look_again
    assert waits == [5, 10, 20, 40, 80, 160, 300, 300]


def test_ten_minutes_of_health_end_the_waiting():
    history = again(again(None, NOW), NOW + 5)
    well = decided(a_group("Running"), history=history, now=NOW + 10)
    assert well.look_again == 600
    nearly = decided(a_group("Running"), history=well.history, now=NOW + 609)
    assert again(nearly.history, NOW + 609).wait == 20
    forgotten = decided(a_group("Running"), history=well.history, now=NOW + 610)
    assert again(forgotten.history, NOW + 611).wait == 5


def test_a_failure_ends_the_health():
    history = decided(a_group("Running"), history=again(None, NOW), now=NOW + 5).history
    history = decided(a_group(), failures=Failures(1, ()), history=history, now=NOW + 500).history
    history = decided(a_group("Running"), history=history, now=NOW + 510).history
    assert decided(a_group("Running"), history=history, now=NOW + 700).history.wait == 5


def ten_resets(apart=0.0):
    """Ten, as soon as may be, or so many seconds apart: the history, and when the last one was."""
    history, now = None, NOW
    for number in range(10):
        now = max(NOW + number * apart, history.not_before if history else NOW)
        history = again(history, now)
    return history, now


def test_after_ten_resets_within_an_hour_it_is_left_alone_for_an_hour():
    history, last = ten_resets()
    assert last == NOW + 1_215
    suspended = decided(a_group(), history=history, now=last + 300)
    assert (suspended.reset, suspended.held, suspended.say) == (False, "Suspended", "PodGroupResetSuspended")
    assert suspended.look_again == 3600
    still = decided(a_group(), history=suspended.history, now=last + 300 + 3599)
    assert (still.reset, still.held, still.say) == (False, "Suspended", "")
    assert decided(a_group(), history=suspended.history, now=last + 300 + 3600).reset


def test_health_does_not_end_the_count_of_an_hour():
    """Whoever else resets it, there are never more than ten of ours within an hour."""
    history, last = ten_resets()
    history = decided(a_group(), history=history, now=last + 300).history
    for at in (301, 902):
        history = decided(a_group("Running"), history=history, now=last + at).history
    assert history.wait == 0
    assert decided(a_group(), history=history, now=last + 903).held == "Suspended"


def test_ten_resets_in_more_than_an_hour_are_no_reason_to_stop():
    history, last = ten_resets(apart=401.0)
    assert decided(a_group(), history=history, now=last + 401).reset


def test_it_is_looked_at_less_often_the_longer_it_is_held():
    history, looks = None, []
    for _ in range(6):
        held = decided(a_group(), failures=Failures(1, ()), history=history)
        history = held.history
        looks.append(held.look_again)
    assert looks == [5, 10, 20, 40, 60, 60]
    other = decided(a_group(), failures=Failures(0, ("other",)), history=history)
    assert other.look_again == 5


def test_it_is_told_once_when_it_has_been_held_for_fifteen_minutes_for_whatever_reason():
    history, said = None, []
    for minute in range(25):
        failures = Failures(1, ()) if minute % 2 else Failures(0, ("other",))
        held = decided(a_group(), failures=failures, history=history, now=NOW + minute * 60)
        history = held.history
        if held.say:
            said.append((minute, held.say))
    assert said == [(15, "PodGroupResetHeld")]


def test_a_reset_or_health_begins_the_fifteen_minutes_anew():
    held = decided(a_group(), failures=Failures(1, ())).history
    for history in (
        again(held, NOW + 800),
        decided(a_group("Running"), history=held, now=NOW + 800).history,
    ):
        later = decided(a_group(), failures=Failures(1, ()), history=history, now=NOW + 1_000)
        assert not later.say
        assert decided(a_group(), failures=Failures(1, ()), history=later.history, now=NOW + 1_899).say == ""
        assert decided(a_group(), failures=Failures(1, ()), history=later.history, now=NOW + 1_900).say


def test_what_was_held_only_and_is_well_leaves_nothing():
    held = decided(a_group(), failures=Failures(1, ())).history
    well = decided(a_group("Running"), history=held, now=NOW + 10).history
    assert well == History("uid-1", well_since=NOW + 10)


def test_a_namesake_that_is_gone_does_not_count():
    history, last = ten_resets()
    decision = decided(a_group(uid="uid-2"), history=history, now=last + 1)
    assert decision.reset
    assert decision.history.resets == ()


def test_resets_are_remembered_for_an_hour_after_it_has_gone():
    assert gone(again(None, NOW), NOW + 600) == 3000
    assert gone(again(None, NOW), NOW + 3600) == 0
    assert gone(History("uid-1"), NOW) == 0


@pytest.mark.parametrize(
    ("one", "holder"),
    [
        (a_group(), ""),
        (a_group("Running", controller="StatefulSet/legacy"), "StatefulSet/legacy"),
        (a_group(controller="InferenceService/svc"), "InferenceService/svc"),
        (a_group(controller="InferenceReplica/x", controlled_by_ome=True), ""),
        (a_group(controller="Job/x", made_for=""), ""),
        (a_group(controller="Job/x", deleted=True), ""),
    ],
)
def test_who_holds_it(one, holder):
    assert conflict(one) == holder


# Reading

OBJECT = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {
        "namespace": "ns",
        "name": "svc-engine-0",
        "uid": "uid-1",
        "resourceVersion": "7",
        "labels": {"component": "engine"},
        "annotations": {"postrender/for": "InferenceService/svc"},
    },
    "spec": {"minMember": 2},
    "status": {"phase": "Failed", "failed": 1},
}


def test_a_podgroup_is_read():
    assert group(OBJECT) == a_group()
    assert a_group().owner == ("InferenceService", "svc")


@pytest.mark.parametrize(
    ("owners", "controller", "of_ome"),
    [
        ([{"kind": "A", "name": "a"}], "", False),
        ([{"kind": "A", "name": "a", "controller": False}], "", False),
        (
            [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": True, "apiVersion": "v1"}],
            "B/b",
            False,
        ),
        (
            [{"kind": "InferenceReplica", "name": "r", "controller": True, "apiVersion": "ome.io/v1beta1"}],
            "InferenceReplica/r",
            True,
        ),
        (
            [{"kind": "InferenceReplica", "name": "r", "controller": True, "apiVersion": "notome.io/v1"}],
            "InferenceReplica/r",
            False,
        ),
    ],
)
def test_only_a_controller_holds_it(owners, controller, of_ome):
    one = group({**OBJECT, "metadata": {**OBJECT["metadata"], "ownerReferences": owners}})
    assert (one.controller, one.controlled_by_ome) == (controller, of_ome)


@pytest.mark.parametrize("status", [None, {}, [], "Failed", {"phase": None, "failed": "many"}, {"failed": None}])
def test_a_status_that_is_none_is_no_phase(status):
    one = group({**OBJECT, "status": status})
    assert (one.phase, one.failed) == ("", 0)


@pytest.mark.parametrize(
    "held", [{}, {"metadata": None}, {"metadata": {"resourceVersion": "9"}}, {"metadata": {"name": "a"}}]
)
def test_a_bookmark_is_no_podgroup(held):
    assert group(held) is None
