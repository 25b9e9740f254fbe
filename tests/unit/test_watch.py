"""The watch, request by request: what each answer leads to, and how long until the next."""

import json

import pytest

from postrender.cluster.client import Page, Refused, Unreachable
from postrender.reconciler.watch import PATH, Pace, Watch
from tests.reconciler.clock import Clock


def podgroup(name, phase="Running", version="1", uid="u"):
    metadata = {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version}
    return {"metadata": metadata, "status": {"phase": phase}}


def line(kind, held):
    return json.dumps({"type": kind, "object": held}).encode()


def error(code):
    return line("ERROR", {"kind": "Status", "code": code, "reason": "Expired", "message": "too old", "metadata": {}})


def bookmark(version):
    return line("BOOKMARK", {"kind": "PodGroup", "metadata": {"resourceVersion": version}})


class Server:
    """Answers from two lists: pages of lists, and watches as lines; an exception is raised, a number of seconds passes."""

    def __init__(self, clock):
        self.clock = clock
        self.pages = []
        self.watches = []
        self.asked = []

    def _next(self, answers):
        if not answers:
            raise AssertionError("nobody expected this request")
        answer = answers.pop(0) if len(answers) > 1 or not getattr(self, "forever", False) else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def page(self, path, query=None, following=""):
        assert path == PATH
        self.asked.append((self.clock(), "list", following))
        return self._next(self.pages)

    def lines(self, path, query, timeout):
        assert path == PATH
        self.asked.append((self.clock(), "watch", query["resourceVersion"]))
        self.query, self.timeout = query, timeout
        for one in self._next(self.watches):
            if isinstance(one, Exception):
                raise one
            if isinstance(one, float):
                self.clock.now += one
            else:
                yield one

    @property
    def kinds(self):
        return [kind for _, kind, _ in self.asked]


class Place:
    def __init__(self, pace=None, chance=0.0):
        self.clock = Clock()
        self.server = Server(self.clock)
        self.changed = []
        self.watch = Watch(self.server, self.changed.append, self.clock, lambda: chance, pace or Pace())

    def listed(self, *held, version="100"):
        """With these PodGroups, from a list that has just been made."""
        self.server.pages = [Page(list(held), version, "")]
        assert self.watch.once() == 0
        self.changed.clear()
        self.server.asked.clear()
        return self

    def round(self):
        """One request, and the wait after it."""
        seconds = self.watch.once()
        self.clock.now += seconds
        return seconds


def key(name):
    return ("ns", name)


def test_a_list_in_pages_and_then_a_watch_from_there():
    place = Place()
    place.server.pages = [Page([podgroup("a"), podgroup("b")], "90", "more"), Page([podgroup("c")], "91", "")]
    place.server.watches = [[line("ADDED", podgroup("d", version="92")), bookmark("95"), 250.0]]
    assert place.round() == 0
    assert (place.watch.present, place.watch.synced) == (True, place.clock())
    assert place.changed == [key("a"), key("b"), key("c")]
    assert place.round() == 0
    assert [held[1:] for held in place.server.asked] == [("list", ""), ("list", "more"), ("watch", "91")]
    assert set(place.watch.groups) == {key("a"), key("b"), key("c"), key("d")}
    assert place.server.query == {
        "watch": 1,
        "resourceVersion": "91",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": 240,
    }
    assert place.server.timeout == (10.0, 90.0)
    place.server.watches = [[250.0]]
    place.round()
    assert place.server.asked[-1][1:] == ("watch", "95")


def test_the_server_is_asked_for_another_length_each_time():
    place = Place(chance=0.999).listed()
    place.server.watches = [[250.0]]
    place.round()
    assert place.server.query["timeoutSeconds"] == 299


def test_events_are_taken_in_order():
    place = Place().listed(podgroup("a"), podgroup("b"))
    place.server.watches = [
        [
            line("MODIFIED", podgroup("a", "Failed", "101")),
            line("DELETED", podgroup("b", version="102")),
            b"",
            line("ADDED", podgroup("b", "Pending", "103", uid="new")),
        ]
    ]
    place.round()
    assert place.changed == [key("a"), key("b"), key("b")]
    assert place.watch.groups[key("a")].phase == "Failed"
    assert place.watch.groups[key("b")].uid == "new"


def test_a_list_notices_what_went_what_changed_and_what_is_failed_and_nothing_else():
    place = Place().listed(podgroup("same"), podgroup("gone"), podgroup("changed"), podgroup("failed", "Failed"))
    place.server.watches = [[error(410)]]
    place.round()
    place.server.pages = [
        Page([podgroup("same"), podgroup("changed", version="2"), podgroup("failed", "Failed")], "200", "")
    ]
    place.round()
    assert place.changed == [key("gone"), key("changed"), key("failed")]
    assert place.watch.lists == {"start": 1, "expired": 1}


def test_a_list_that_fails_in_its_middle_leaves_what_was_known():
    place = Place().listed(podgroup("a"))
    place.clock.now += 600
    place.server.pages = [Page([podgroup("b")], "200", "more"), Unreachable("gone")]
    assert place.watch.once() == 0.5
    assert list(place.watch.groups) == [key("a")]


def test_a_list_that_expires_in_its_middle_begins_again():
    place = Place()
    place.server.pages = [
        Page([podgroup("b")], "200", "more"),
        Refused(410, "Expired", ""),
        Page([podgroup("c")], "201", ""),
    ]
    assert place.round() == 0.5
    assert place.round() == 0
    assert list(place.watch.groups) == [key("c")]


# What goes wrong: how long until the next request, and whether it is a list.
@pytest.mark.parametrize(
    ("answer", "seconds", "kind", "version"),
    [
        ([250.0], 0.0, "watch", "100"),  # the server's time-out
        ([line("ADDED", podgroup("a", version="101"))], 0.5, "watch", "101"),  # ended at once
        ([0.2, bookmark("101")], 0.3, "watch", "101"),
        ([], 0.5, "watch", "100"),
        ([Unreachable("broke off")], 0.5, "watch", "100"),
        ([bookmark("101"), Unreachable("broke off")], 0.5, "watch", "101"),
        ([95.0, Unreachable("silent")], 0.5, "watch", "100"),
        (Unreachable("refused"), 0.5, "watch", "100"),
        ([b'{"type": "ADD'], 0.5, "watch", "100"),
        ([b"null"], 0.5, "watch", "100"),
        ([b'{"type": "ADDED", "object": "text"}'], 0.5, "watch", "100"),
        ([error(410)], 0.5, "list", ""),
        ([bookmark("101"), error(410)], 0.5, "list", ""),
        (Refused(410, "Expired", ""), 0.5, "list", ""),
        ([error(500)], 0.5, "watch", "100"),
        ([line("ERROR", {"message": "?"})], 0.5, "watch", "100"),
        (Refused(429, "TooManyRequests", "", 7.0), 7.0, "watch", "100"),
        (Refused(429, "TooManyRequests", "", 3_000.0), 120.0, "watch", "100"),
        (Refused(503, "ServiceUnavailable", "", 0.0), 0.5, "watch", "100"),
        (Refused(500, "InternalError", ""), 0.5, "watch", "100"),
        (Refused(403, "Forbidden", ""), 0.5, "watch", "100"),
        (Refused(401, "Unauthorized", ""), 0.5, "watch", "100"),
        (Refused(404, "NotFound", ""), 30.0, "list", ""),
    ],
)
def test_after_a_fault(answer, seconds, kind, version):
    place = Place().listed(podgroup("a"))
    place.server.watches = [answer, [250.0]]
    place.server.pages = [Page([podgroup("a")], "200", "")]
    assert place.round() == pytest.approx(seconds)
    place.round()
    assert place.server.asked[-1][1:] == (kind, version)


@pytest.mark.parametrize(
    "fault",
    [
        Unreachable("refused"),
        Refused(500, "", ""),
        Refused(403, "", ""),
        Refused(401, "", ""),
        Refused(410, "", ""),
        Refused(404, "", ""),
        Refused(429, "", "", 1.0),
        [],
        [error(410)],
        [error(500)],
        [b"no event"],
        [bookmark("101"), error(410)],
        [bookmark("101"), Refused(500, "", "")],
        [bookmark("101")],
    ],
)
def test_no_fault_makes_more_than_two_requests_a_second(fault):
    """Nor a list and a watch more than that, however long it lasts, whichever of both it befalls."""
    for befalls in ("watches", "pages"):
        if befalls == "pages" and isinstance(fault, list):
            continue
        place = Place().listed()
        place.server.forever = True
        place.server.pages, place.server.watches = [Page([], "100", "")], [[250.0]]
        setattr(place.server, befalls, [fault])
        if befalls == "pages":
            place.clock.now += 600
        begin = place.clock()
        while place.clock() < begin + 120:
            place.round()
        # A list and the watch that follows it at once count as one.
        times = [at for at, kind, _ in place.server.asked if kind == "watch" or befalls == "pages"]
        assert max(sum(at <= other < at + 1 for other in times) for at in times) <= 2
        assert len(place.server.asked) <= 2 * 120


def test_pauses_double_up_to_half_a_minute_and_half_as_much_by_chance():
    place = Place()
    place.server.forever = True
    place.server.pages = [Refused(503, "", "")]
    assert [place.round() for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    place = Place(chance=1.0)
    place.server.forever = True
    place.server.pages = [Refused(503, "", "")]
    assert [place.round() for _ in range(8)] == [0.75, 1.5, 3, 6, 12, 24, 45, 45]


def test_a_list_does_not_end_the_doubling_and_a_watch_that_lasts_does():
    place = Place().listed()
    place.server.watches = [[error(410)], [error(410)], [error(410)], [6.0, Unreachable("broke off")], Unreachable("")]
    waits = []
    for _ in range(8):
        if not place.server.pages:
            place.server.pages = [Page([], "100", "")]
        waits.append(place.round())
    # 410, list, 410, list, 410, list, broken off, refused
    assert waits == [0.5, 0, 1, 0, 2, 0, 0.5, 1]


def test_what_is_heard_in_a_watch_ends_the_doubling():
    place = Place().listed()
    place.server.watches = [Unreachable(""), Unreachable(""), [bookmark("101"), Unreachable("")], Unreachable("")]
    assert [place.round() for _ in range(4)] == [0.5, 1, 0.5, 1]


def test_the_list_is_made_anew_every_ten_minutes():
    place = Place().listed(podgroup("a"))
    place.server.watches = [
        [299.0, bookmark("101"), 299.0, bookmark("102"), 10.0, bookmark("103"), 50.0, bookmark("104")]
    ]
    place.server.pages = [Page([], "200", "")]
    place.round()
    assert place.clock() - place.watch.synced == 608
    place.round()
    assert place.server.kinds == ["watch", "list"]
    assert place.watch.lists == {"start": 1, "age": 1}
    assert place.changed == [key("a")]


def test_a_server_without_the_crd():
    place = Place().listed(podgroup("a"))
    place.server.watches = [Refused(404, "NotFound", "")]
    place.server.pages = [Refused(404, "", "404 page not found"), Page([podgroup("a", version="5")], "200", "")]
    assert place.round() == 30
    assert (place.watch.present, place.watch.groups, place.changed) == (False, {}, [key("a")])
    assert place.round() == 30
    assert place.round() == 0
    assert (place.watch.present, list(place.watch.groups)) == (True, [key("a")])


def test_what_is_no_answer_says_nothing_of_the_crd():
    place = Place()
    place.server.pages = [Unreachable(""), Refused(503, "", ""), Refused(403, "", ""), Refused(500, "", "")]
    for _ in range(4):
        place.round()
    assert place.watch.present is None


def test_progress_is_seen_however_long_a_request_or_a_wait_takes():
    """A liveness probe that fails after 180 s sees at most the longest wait, or the longest silence."""
    place = Place().listed()
    place.server.watches = [[95.0, Refused(429, "", "", 3_000.0)]]
    seconds = place.watch.once()
    assert place.watch.progress == place.clock()
    assert seconds == 120


def test_a_poisoned_object_stops_nobody():
    place = Place().listed()
    odd = {
        "metadata": {"namespace": "ns", "name": "odd", "uid": "u", "resourceVersion": "101", "labels": None},
        "spec": [],
        "status": "?",
    }
    place.server.watches = [[line("ADDED", odd), line("ADDED", podgroup("a", version="102"))]]
    place.round()
    assert place.changed == [key("odd"), key("a")]
