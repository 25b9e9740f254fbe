"""The pace of the reconciler's requests: a rate, and a brake while the server is not well."""

from itertools import pairwise

import pytest

from postrender.cluster.client import Refused, Unreachable
from postrender.reconciler.api import Api
from postrender.reconciler.metrics import Metrics
from tests.reconciler.clock import Clock

WELL = {"metadata": {"name": "a", "namespace": "ns", "uid": "u"}}


class Server:
    """Answers what it is told, and remembers when it was asked."""

    def __init__(self, clock, takes=0.0):
        self.clock = clock
        self.takes = takes
        self.answers = []
        self.at = []

    def get(self, path, query=None, timeout=None):
        self.at.append(self.clock())
        self.clock.now += self.takes
        answer = self.answers.pop(0) if self.answers else WELL
        if isinstance(answer, Exception):
            raise answer
        return answer


def place(rate=10.0, burst=1, takes=0.0):
    clock = Clock()
    server = Server(clock, takes)
    return server, Api(server, Metrics(), rate, burst, clock.wait, clock)


def asked(api, count):
    for _ in range(count):
        try:
            api.group("ns", "a")
        except (Refused, Unreachable):
            continue


def apart(server):
    return [round(after - before, 3) for before, after in pairwise(server.at)]


def test_no_more_than_the_rate_and_the_burst():
    server, api = place(rate=10.0, burst=20)
    asked(api, 120)
    assert server.at[19] == server.at[0]
    assert server.at[-1] - server.at[0] == pytest.approx(10)


@pytest.mark.parametrize(
    "error", [Unreachable("gone"), Refused(500, "", ""), Refused(503, "", ""), Refused(429, "", "")]
)
def test_a_server_that_fails_is_asked_less_and_less(error):
    server, api = place()
    server.answers = [error] * 9
    asked(api, 9)
    assert apart(server) == [0.5, 1, 2, 4, 8, 16, 30, 30]
    asked(api, 2)
    assert apart(server)[-1] == 0.1


@pytest.mark.parametrize(
    "error", [Refused(404, "", ""), Refused(403, "", ""), Refused(409, "", ""), Refused(410, "", "")]
)
def test_a_refusal_is_an_answer(error):
    server, api = place()
    server.answers = [error] * 5
    asked(api, 5)
    assert apart(server) == [0.1] * 4


def test_it_waits_as_long_as_it_is_asked_to_but_no_longer_than_two_minutes():
    server, api = place()
    server.answers = [Refused(429, "", "", 7.0), WELL, Refused(429, "", "", 3_600.0)]
    asked(api, 4)
    assert apart(server) == [7.0, 0.1, 120.0]


def test_what_goes_well_for_another_does_not_end_a_wait_that_was_asked_for():
    server, api = place(takes=1.0)
    server.answers = [Refused(429, "", "", 7.0)]
    asked(api, 1)
    api._heard(False)  # the answer to a request that was under way
    asked(api, 1)
    assert apart(server) == [8.0]


def test_one_request_at_a_time_finds_out():
    """Four workers wait while one asks; they do not all ask when the time is over."""
    server, api = place(burst=100)
    server.answers = [Unreachable("gone")]
    asked(api, 1)
    turns = []
    for _ in range(4):
        api._turn()
        turns.append(api._clock())
    assert [round(after - before, 3) for before, after in pairwise(turns)] == [0.5] * 3


def test_to_stop_ends_the_waiting():
    clock = Clock()
    server = Server(clock)
    api = Api(server, Metrics(), 0.1, 1, lambda _: True, clock)
    api.group("ns", "a")
    with pytest.raises(Unreachable, match="asked to stop"):
        api.group("ns", "a")
    assert len(server.at) == 1
