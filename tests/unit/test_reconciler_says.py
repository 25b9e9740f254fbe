"""What the reconciler says: Events, log lines, metrics, and its HTTP answers."""

import contextlib
import http.client
import io
import json
import re
import socket
import struct
import time
from datetime import datetime, timezone

import pytest

from postrender.cluster.client import Refused
from postrender.reconciler import events
from postrender.reconciler.decide import Group, Owner
from postrender.reconciler.log import Log
from postrender.reconciler.metrics import FAMILIES, PREFIX, Metrics
from postrender.reconciler.serve import Server
from postrender.reconciler.voice import Voice
from tests.reconciler.clock import Clock
from tests.reconciler.memory import Memory
from tests.reconciler.running import Running, running

OWNER = Owner("ome.io/v1beta1", "InferenceService", "ns", "svc", "uid-svc", False)
GROUP = Group("ns", "svc-engine-0", "uid-1", "7", "Failed", False, "InferenceService/svc", "", False, "engine", 2, 1)
NOON = datetime(2026, 11, 29, 12, 0, 0, 123456, tzinfo=timezone.utc)


def note(about="svc-engine-0", episode="7", reason=events.RESET, text="what happened", owner=OWNER):
    return events.Note(reason, owner, about, episode, text, GROUP)


# Events


def test_an_event_has_what_the_api_and_kubectl_describe_ask_for():
    body = events.body(note(), NOON, "pod-1")
    assert body["apiVersion"] == "events.k8s.io/v1"
    assert body["eventTime"] == "2026-11-29T12:00:00.123456Z"
    assert {
        key: body[key] for key in ("type", "reason", "action", "note", "reportingController", "reportingInstance")
    } == {
        "type": "Warning",
        "reason": "PodGroupReset",
        "action": "Reset",
        "note": "what happened",
        "reportingController": "postrender/reconciler",
        "reportingInstance": "pod-1",
    }
    assert body["regarding"] == {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "namespace": "ns",
        "name": "svc",
        "uid": "uid-svc",
    }
    assert (body["related"]["kind"], body["related"]["uid"]) == ("PodGroup", "uid-1")


def test_every_reason_has_an_action():
    reasons = {
        value for name, value in vars(events).items() if name.isupper() and isinstance(value, str) and value.isalpha()
    }
    assert {*events._ACTIONS} == reasons


def test_the_name_is_the_same_for_the_same_and_another_for_anything_else():
    names = {
        note().name,
        note(about="svc-engine-1").name,
        note(episode="8").name,
        note(reason=events.HELD).name,
        note(owner=OWNER._replace(uid="other")).name,
    }
    assert len(names) == 5
    assert note().name == note(text="in other words").name
    # A DNS subdomain of at most 253 characters.
    for name in (*names, note(about="a" * 253).name, note(about="a" * 229 + "-b").name):
        assert len(name) <= 253
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)


@pytest.mark.parametrize("text", ["a" * 1_024, "é" * 512, "🌍" * 400, "x" + "é" * 600])
def test_a_note_fits(text):
    cut = events.body(note(text=text), NOON, "i")["note"]
    assert len(cut.encode()) <= 1_024
    assert cut.endswith("…")
    assert text.startswith(cut[:-1])


def voice(memory, clock, **settings):
    written = io.StringIO()
    it = Running(memory, clock)
    return (
        Voice(it.loop._keeper._api, Log(written), it.metrics, "me", settings.get("dry_run", False), clock),
        written,
        it,
    )


def test_a_repeat_is_counted_up_at_most_every_five_minutes():
    memory, clock = Memory(), Clock()
    speaker, _, _ = voice(memory, clock)
    for _ in range(13):
        speaker.say(note(reason=events.CONFLICT))
        clock.now += 60
    [event] = memory.events()
    assert event["series"]["count"] == 3
    assert [method for method, *_ in memory.asked] == ["POST", "POST", "PATCH", "POST", "PATCH"]


def test_a_reset_that_is_told_already_is_not_counted():
    memory, clock = Memory(), Clock()
    voice(memory, clock)[0].say(note())
    voice(memory, clock)[0].say(note())
    assert "series" not in memory.events()[0]


def test_an_owner_gets_five_at_once_and_then_one_a_minute():
    memory, clock = Memory(), Clock()
    speaker, _, it = voice(memory, clock)
    for number in range(100):
        speaker.say(note(episode=str(number)))
    speaker.say(note(owner=OWNER._replace(uid="other")))
    assert len(memory.events()) == 6
    assert it.metric("events_posted_total", "PodGroupReset", "limited") == 95
    clock.now += 125
    for number in range(100, 200):
        speaker.say(note(episode=str(number)))
    assert len(memory.events()) == 8


def test_what_is_remembered_has_an_end():
    memory, clock = Memory(), Clock()
    speaker, _, _ = voice(memory, clock)
    for number in range(3_000):
        speaker.say(note(episode=str(number), owner=OWNER._replace(uid=str(number))))
    assert len(speaker._said) <= 1_000
    assert len(speaker._budgets) <= 1_000


def test_what_was_not_taken_may_be_said_again():
    memory, clock = Memory(), Clock()
    speaker, written, _ = voice(memory, clock)
    memory.before = lambda *_: (_ for _ in ()).throw(Refused(403, "Forbidden", "no right"))
    speaker.say(note())
    memory.before = lambda *_: None
    speaker.say(note())
    assert len(memory.events()) == 1
    assert "no right" in written.getvalue()


def test_a_step_of_the_wall_clock_changes_nothing(monkeypatch):
    """Only a monotonic clock decides: an hour more or less makes no reset early, late or lost."""
    memory = Memory()
    memory.owner("ns", "svc")
    memory.group("ns", "svc-engine-0")
    it = running(memory)
    for step in (3_600, -7_200):
        wall = time.time() + step
        monkeypatch.setattr(time, "time", lambda wall=wall: wall)
        memory.group("ns", "svc-engine-0")
        it.step(2)
        assert memory.phase("ns", "svc-engine-0") == "Failed"
        it.until(8)
        assert memory.phase("ns", "svc-engine-0") == "Pending"


# Log


def test_a_line_is_json_and_what_is_empty_is_left_out():
    written = io.StringIO()
    Log(written)("info", "held\nback", namespace="ns", name="", dry_run=None, attempt=0, bad="\ud800\x1b")
    [line] = written.getvalue().splitlines()
    held = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", held.pop("ts"))
    assert held == {"level": "info", "msg": "held\nback", "namespace": "ns", "attempt": 0, "bad": "\ud800\x1b"}
    assert line.isascii()


def test_debug_is_for_the_verbose():
    quiet, loud = io.StringIO(), io.StringIO()
    Log(quiet)("debug", "x")
    Log(loud, verbose=True)("debug", "x")
    assert (quiet.getvalue(), loud.getvalue().count("\n")) == ("", 1)


def test_who_reads_the_log_may_be_gone():
    class Gone(io.StringIO):
        def write(self, _):
            raise BrokenPipeError

    closed = io.StringIO()
    closed.close()
    for target in (None, Gone(), closed):
        Log(target)("info", "x")
    log = Log(written := io.StringIO())
    log.close()
    log("info", "x")
    assert not written.getvalue()


# Metrics


def parsed(text):
    """Read the exposition format 0.0.4 by its grammar: families in order, each with HELP, TYPE and then its samples."""
    families, name = {}, ""
    value = r"(?:[+-]?Inf|NaN|[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    label = r'[a-zA-Z_]\w*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
    assert text.endswith("\n")
    for line in text.splitlines():
        if found := re.fullmatch(r"# HELP ([a-zA-Z_:][\w:]*) (.+)", line):
            name = found[1]
            assert name not in families
            families[name] = {}
        elif found := re.fullmatch(r"# TYPE (\S+) (counter|gauge|histogram)", line):
            assert found[1] == name
            kind = found[2]
        else:
            found = re.fullmatch(rf"([a-zA-Z_:][\w:]*)(\{{{label}(?:,{label})*\}})? ({value})", line)
            assert found, line
            suffix = found[1].removeprefix(name)
            assert suffix in (("_bucket", "_sum", "_count") if kind == "histogram" else ("",)), line
            assert (found[1], found[2]) not in families[name]
            families[name][found[1], found[2]] = float(found[3])
    return families


def test_the_metrics_are_what_prometheus_reads():
    metrics = Metrics()
    metrics.set("build_info", 1, '1.0"\\\n')
    for _ in range(3):
        metrics.add("api_requests_total", "get", "pods", "200")
    metrics.set("last_successful_sync_timestamp_seconds", 1_790_000_000.25)
    metrics._values["events_posted_total"]["PodGroupReset", "posted"] = 1_234_567
    for seconds in (0.001, 0.01, 0.011, 4.0, 1_000.0):
        metrics.took(seconds)
    families = parsed(metrics.text())
    assert {*families} == {PREFIX + family.name for family in FAMILIES}
    assert families["postrender_api_requests_total"] == {
        ("postrender_api_requests_total", '{verb="get",resource="pods",code="200"}'): 3
    }
    assert families["postrender_last_successful_sync_timestamp_seconds"].popitem()[1] == 1_790_000_000.25
    assert families["postrender_events_posted_total"].popitem()[1] == 1_234_567
    buckets = families["postrender_api_request_duration_seconds"]
    of = {
        le: buckets["postrender_api_request_duration_seconds_bucket", f'{{le="{le}"}}']
        for le in ("0.01", "0.05", "5.0", "60.0", "+Inf")
    }
    assert of == {"0.01": 2, "0.05": 3, "5.0": 4, "60.0": 4, "+Inf": 5}
    assert buckets["postrender_api_request_duration_seconds_count", None] == 5
    assert buckets["postrender_api_request_duration_seconds_sum", None] == pytest.approx(1_004.022)


def test_counters_end_in_total_and_only_they():
    for family in FAMILIES:
        assert (family.kind == "counter") == family.name.endswith("_total")
        assert not {"namespace", "name", "uid"} & {*family.labels}


def test_all_that_is_counted_has_a_family():
    """A run in which much goes wrong leaves text that can be read."""
    memory = Memory()
    memory.owner("ns", "svc")
    memory.group("ns", "svc-engine-0")
    memory.group("ns", "svc-engine-1")
    memory.pod("ns", "a", "svc-engine-1", "Failed")
    memory.group("ns", "svc-engine-2", ownerReferences=[{"kind": "X", "name": "x", "controller": True}])
    it = running(memory)
    it.loop.bug(ValueError("made up"))
    it.hear()
    it.loop.gauges()
    families = parsed(it.metrics.text())
    assert families["postrender_podgroups"] == {
        ("postrender_podgroups", '{phase="Failed"}'): 2,
        ("postrender_podgroups", '{phase="Pending"}'): 1,
    }
    assert families["postrender_podgroup_resets_held"] == {
        ("postrender_podgroup_resets_held", '{reason="FailedMember"}'): 1
    }
    assert families["postrender_podgroup_ownership_conflicts"].popitem()[1] == 1
    assert families["postrender_errors_total"].popitem()[1] == 1
    assert families["postrender_gang_crd_available"].popitem()[1] == 1


# HTTP


@contextlib.contextmanager
def served(it, host="127.0.0.1"):
    server = Server(host, 0, it.loop)
    server.start()
    try:
        yield server
    finally:
        server.close()


def asked(server, path, method="GET", host="127.0.0.1"):
    with contextlib.closing(http.client.HTTPConnection(host, server.port, timeout=5)) as connection:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def test_probes():
    memory, clock = Memory(), Clock()
    it = Running(memory, clock)
    with served(it) as server:
        assert asked(server, "/healthz") == (200, "ok\n")
        assert asked(server, "/readyz")[0] == 503
        memory.before = lambda *_: (_ for _ in ()).throw(Refused(503, "", ""))
        it.hear()
        assert asked(server, "/readyz")[0] == 503
        clock.now += 179
        assert asked(server, "/healthz")[0] == 200
        clock.now += 2
        assert asked(server, "/healthz") == (500, "nothing was tried for 181 s\n")
        it.hear()
        assert asked(server, "/healthz?verbose")[0] == 200
        memory.before = lambda *_: None
        it.hear()
        assert asked(server, "/readyz") == (200, "ok\n")
        assert parsed(asked(server, "/metrics")[1])
        assert asked(server, "/healthz", "HEAD") == (200, "")
        assert asked(server, "/")[0] == 404
        assert asked(server, "/metrics", "POST")[0] == 501


def test_it_is_ready_where_the_crd_is_known_to_be_absent():
    memory = Memory()
    memory.served.discard("podgroups")
    it = running(memory)
    with served(it) as server:
        assert asked(server, "/readyz")[0] == 200


def test_probes_are_answered_on_both_ips():
    it = running()
    with served(it, "") as server:
        for host in ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",):
            assert asked(server, "/healthz", host=host)[0] == 200


def test_who_goes_before_the_answer_leaves_no_trace(capfd):
    it = running()
    with served(it) as server:
        for _ in range(5):
            link = socket.create_connection(("127.0.0.1", server.port))
            link.sendall(b"GET /metrics HTTP/1.1\r\n\r\n" * 20)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
        assert asked(server, "/healthz")[0] == 200
        server._server.handle_error(None, None)
    assert capfd.readouterr() == ("", "")
    assert it.metric("errors_total") == 0


def test_an_error_while_answering_is_a_line_of_the_log(capfd):
    it = running()
    it.loop.gauges = lambda: 1 / 0
    with served(it) as server, pytest.raises(http.client.HTTPException):
        asked(server, "/metrics")
    assert it.log(level="error")[0]["msg"].startswith("a bug: ZeroDivisionError")
    assert capfd.readouterr() == ("", "")
