"""The queue: nothing is lost, a key is in one hand at a time, namespaces take turns; and the token bucket."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from postrender.reconciler.queue import REST, Queue, Rate

KEYS = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from(["0", "1", "2"]))


class Model(RuleBasedStateMachine):
    """The queue beside a dict of what is wanted when."""

    def __init__(self):
        super().__init__()
        self.queue = Queue()
        self.now = 0.0
        self.wanted = {}
        self.in_hand = {}
        self.rest = {}

    @rule(key=KEYS, seconds=st.sampled_from([0.0, 0.5, 3.0, 60.0]))
    def add(self, key, seconds):
        self.queue.add(key, self.now + seconds)
        if key in self.in_hand:
            self.in_hand[key] = min(self.in_hand[key], self.now + seconds)
        else:
            at = max(self.now + seconds, self.rest.get(key, 0.0))
            self.wanted[key] = min(at, self.wanted.get(key, at))

    @rule(seconds=st.sampled_from([0.1, 0.4, 1.0, 5.0, 100.0]))
    def passes(self, seconds):
        self.now += seconds

    @rule()
    def take(self):
        key = self.queue.take(self.now)
        ripe = {one for one, at in self.wanted.items() if at <= self.now}
        assert (key in ripe) if ripe else key is None
        if key is not None:
            assert key not in self.in_hand
            del self.wanted[key]
            self.in_hand[key] = float("inf")

    @rule(data=st.data())
    def done(self, data):
        if not self.in_hand:
            return
        key = data.draw(st.sampled_from(sorted(self.in_hand)))
        self.queue.done(key, self.now)
        again = self.in_hand.pop(key)
        self.rest[key] = self.now + REST
        if again < float("inf"):
            self.wanted[key] = max(again, self.now + REST)

    @invariant()
    def waits_as_long_as_it_must(self):
        assert len(self.queue) == len(self.wanted)
        seconds = self.queue.wait(self.now)
        if not self.wanted:
            assert seconds is None or seconds > 0
            return
        # It may wake for what was moved; it never sleeps over what is due.
        assert seconds is not None
        assert seconds <= max(0.0, min(self.wanted.values()) - self.now) + 1e-9

    @invariant()
    def holds_no_more_than_it_must(self):
        assert len(self.queue._later) <= 2 * len(self.wanted) + 66
        assert len(self.queue._rest) <= 9


TestQueue = Model.TestCase
TestQueue.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def drained(queue, now=0.0):
    taken = []
    while (key := queue.take(now)) is not None:
        taken.append(key)
        queue.done(key, now)
    return taken


def test_namespaces_take_turns():
    queue = Queue()
    for number in range(500):
        queue.add(("a-lot", str(number)), 0.0)
    for number in range(2):
        queue.add(("few", str(number)), 0.0)
    taken = drained(queue)
    assert len(taken) == 502
    assert [namespace for namespace, _ in taken[:4]].count("few") == 2


@given(st.lists(KEYS, max_size=30))
@settings(max_examples=50, deadline=None)
def test_nobody_waits_for_more_than_a_turn_of_each_other_namespace(keys):
    queue = Queue()
    for key in keys:
        queue.add(key, 0.0)
    taken = [namespace for namespace, _ in drained(queue)]
    assert {*taken[: len(set(taken))]} == {*taken}
    for namespace in set(taken):
        at = [number for number, one in enumerate(taken) if one == namespace]
        assert all(after - before <= len(set(taken)) for before, after in pairwise(at))


def test_what_is_moved_to_now_again_and_again_does_not_pile_up():
    queue = Queue()
    for number in range(2_000):
        queue.add(("a", "0"), number * 10 + 5_000_000.0)
        queue.add(("a", "0"), number * 10.0)
        assert queue.take(number * 10.0) == ("a", "0")
        queue.done(("a", "0"), number * 10.0)
    assert len(queue._later) < 100


def test_what_is_written_all_the_time_is_taken_every_two_seconds():
    queue = Queue()
    taken = 0
    for step in range(400):  # twenty times a second
        now = step / 20
        queue.add(("a", "0"), now)
        if (key := queue.take(now)) is not None:
            taken += 1
            queue.done(key, now)
    assert 400 / 20 / REST <= taken <= 400 / 20 / REST + 1


@pytest.mark.parametrize(("rate", "burst"), [(10.0, 20), (0.5, 1), (100.0, 1)])
def test_the_rate_is_kept(rate, burst):
    bucket = Rate(rate, burst, 0.0)
    now, starts = 0.0, []
    for _ in range(200):
        now += bucket.reserve(now)
        starts.append(now)
    assert starts[burst - 1] == 0
    assert starts[-1] == pytest.approx((200 - burst) / rate)


def test_a_bucket_refills_to_its_burst_and_no_further():
    bucket = Rate(1.0, 3, 0.0)
    assert [bucket.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert bucket.take(101.0)
