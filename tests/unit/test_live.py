"""What is said of gangs that run, row by row: pods and PodGroups as an API server hands them out -> one cause."""

from __future__ import annotations

import ast
import copy
import json
import pathlib
import subprocess
from typing import Any

import pytest

from postrender import pipeline
from postrender.cluster import causes, live, state
from postrender.cluster.causes import Judge
from postrender.cluster.client import Refused
from postrender.cluster.commands import Commands
from postrender.cluster.server import Server
from postrender.findings import Finding
from postrender.options import Options
from postrender.views import live as view
from postrender.views import schema

Json = dict[str, Any]
NOW = 1_800_000_000.0  # 2027-01-15T08:00:00Z
GANGS = "scheduler-plugins-scheduler"
LABEL = "scheduling.x-k8s.io/pod-group"
INDEX = "leaderworkerset.sigs.k8s.io/group-index"
REVISION = "leaderworkerset.sigs.k8s.io/template-revision-hash"
NAME = "lws-blue-engine-0"
NO_ROOM = "0/4 nodes are available: 4 Insufficient nvidia.com/gpu."
SERVICE = b"""apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: blue, namespace: llm}
spec:
  engine:
    minReplicas: REPLICAS
    leader: {}
    worker: {size: 2}
    OTHER: {}
"""
COMMANDS = Commands((), (), "", (GANGS,), "", "ome", "1.34")


def pod(
    name: str,
    node: str = "",
    group: str | None = NAME,
    index: int = 0,
    says: str | None = NO_ROOM,
    scheduler: str | None = GANGS,
    deleted: bool = False,
    phase: str = "",
    age: int = 60,
    size: str = "3",
    revision: str = "a",
    gates: tuple[str, ...] = (),
    native: bool = False,
) -> Json:
    labels = {
        "ome.io/inferenceservice": "blue",
        "component": "engine",
        ("ome.io/instance-index" if native else INDEX): str(index),
        REVISION: revision,
        **({LABEL: group} if group is not None else {}),
    }
    conditions = []
    if node:
        conditions = [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "2027-01-15T07:00:00Z"}]
    elif gates:
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "gated"}]
    elif says is not None:
        one = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": says}
        conditions = [{**one, "lastTransitionTime": "2027-01-15T07:50:00Z"}]
    return {
        "metadata": {
            "name": name,
            "namespace": "llm",
            "labels": labels,
            "annotations": {"leaderworkerset.sigs.k8s.io/size": size} if size else {},
            "creationTimestamp": stamp(NOW - age),
            **({"deletionTimestamp": stamp(NOW)} if deleted else {}),
        },
        "spec": {"schedulerName": scheduler, "nodeName": node, "schedulingGates": [{"name": gate} for gate in gates]},
        "status": {"phase": phase or ("Running" if node else "Pending"), "conditions": conditions},
    }


def stamp(seconds: float) -> str:
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def group(name: str = NAME, min_member: int | None = 3, phase: str = "Scheduling", owner: Json | None = None) -> Json:
    spec = {"scheduleTimeoutSeconds": 600, **({"minMember": min_member} if min_member else {})}
    owners = [{"controller": True, **owner}] if owner else []
    return {
        "metadata": {"name": name, "namespace": "llm", "ownerReferences": owners},
        "spec": spec,
        "status": {"phase": phase},
    }


HOLDER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}
BY_OME = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica", "name": "blue-engine"}


def found(
    pods: list[Json],
    groups: list[Json],
    options: Options,
    replicas: int = 1,
    **known: Any,
) -> live.Live:
    data = SERVICE.replace(b"REPLICAS", str(replicas).encode())
    stream = pipeline.read(data, options)
    decided = pipeline.decide(stream, options).decided
    held = {"served": True, **known}
    running = state.State(NOW, tuple(map(state.pod, pods)), tuple(map(state.pod_group, groups)), **held)
    return live.compare(decided, "default", running, Judge(running, COMMANDS))


BEFORE = Options(ome="1.2", strict=True)
FROM_1_3 = Options(ome="1.3")


def waiting(**fields: Any) -> list[Json]:
    return [pod(name, **fields) for name in ("l", "w-1", "w-2")]


def half(**fields: Any) -> list[Json]:
    return [pod("l", "n1", **fields), pod("w-1", "n2", **fields), pod("w-2", **fields)]


def whole(**fields: Any) -> list[Json]:
    return [pod(name, f"n-{name}", **fields) for name in ("l", "w-1", "w-2")]


PLAIN: Json = {"scheduler": None}
ROWS = [
    # what, pods, PodGroups, options, what is known besides, state, cause, codes
    ("whole", whole(), [group()], BEFORE, {}, "bound", "", []),
    ("default scheduler", half(**PLAIN), [group()], BEFORE, {}, "half-bound", "scheduler-ignores-label", ["gang-half-bound"]),
    ("whole by luck", whole(**PLAIN), [group()], BEFORE, {}, "bound", "", ["no-gang-scheduler"]),
    ("no room, and no gang", waiting(**PLAIN), [group()], BEFORE, {}, "waiting", "no-room", ["gang-waiting", "no-gang-scheduler"]),
    ("two schedulers", [*half()[:2], pod("w-2", scheduler="volcano")], [group()], BEFORE, {}, "half-bound", "scheduler-ignores-label", ["gang-half-bound"]),
    ("no label", half(group=None), [group()], BEFORE, {}, "half-bound", "label-missing", ["gang-half-bound"]),
    ("no label, whole", whole(group=None), [group()], BEFORE, {}, "bound", "", ["not-rendered"]),
    ("one without label", [*half()[:2], pod("w-2", group=None)], [group()], BEFORE, {}, "half-bound", "label-missing", ["gang-half-bound"]),
    ("no PodGroup", waiting(says="PodGroup not found"), [], BEFORE, {}, "waiting", "podgroup-missing", ["gang-waiting"]),
    ("no PodGroup, whole", whole(), [], BEFORE, {}, "bound", "", ["podgroup-missing"]),
    ("no PodGroup and nobody to read it", waiting(**PLAIN), [], BEFORE, {}, "waiting", "no-room", ["gang-waiting", "no-gang-scheduler", "podgroup-missing"]),
    ("no definition", waiting(), [], BEFORE, {"served": False}, "waiting", "podgroup-crd-missing", ["gang-waiting", "podgroup-crd-missing"]),
    ("no definition, whole", whole(), [], BEFORE, {"served": False}, "bound", "", ["podgroup-crd-missing"]),
    ("minMember 2", half(), [group(min_member=2)], BEFORE, {}, "half-bound", "min-member-below-pods", ["gang-half-bound"]),
    ("no minMember", half(), [group(min_member=None)], BEFORE, {}, "half-bound", "min-member-below-pods", ["gang-half-bound"]),
    ("minMember 2, whole", whole(), [group(min_member=2)], BEFORE, {}, "bound", "", ["podgroup-differs"]),
    ("minMember 2, none placed", waiting(), [group(min_member=2)], BEFORE, {}, "waiting", "no-room", ["gang-waiting", "podgroup-differs"]),
    ("minMember 4", waiting(), [group(min_member=4)], BEFORE, {}, "waiting", "min-member-above-pods", ["gang-waiting"]),
    ("the pods say 4", [*waiting(size="4"), pod("w-3", size="4")], [group(min_member=4)], BEFORE, {}, "waiting", "no-room", ["gang-waiting"]),
    ("old pods terminate", [*half(), pod("old", "n3", deleted=True)], [group()], BEFORE, {}, "half-bound", "quorum-of-old-pods", ["gang-half-bound"]),
    ("old revision", [pod("o", "n1", revision="z", age=900), pod("l", "n2"), pod("w-1"), pod("w-2")], [group()], BEFORE, {}, "half-bound", "quorum-of-old-pods", ["gang-half-bound"]),
    ("changed in place, pod by pod", [pod("l", "n1", revision="b"), *whole()[1:]], [group()], BEFORE, {}, "bound", "", []),
    ("an ended pod is no old pod", [*half(), pod("old", "n3", phase="Failed")], [group()], BEFORE, {}, "half-bound", "no-room", ["gang-half-bound"]),
    ("a pod of a namespace elsewhere", [*half(), {**pod("x", "n"), "metadata": {**pod("x")["metadata"], "namespace": "other"}}], [group()], BEFORE, {}, "half-bound", "no-room", ["gang-half-bound"]),
    ("one replaced", half(), [group()], BEFORE, {}, "half-bound", "no-room", ["gang-half-bound"]),
    ("none fits", waiting(), [group()], BEFORE, {}, "waiting", "no-room", ["gang-waiting"]),
    ("a pod too few", waiting()[:2], [group()], BEFORE, {}, "waiting", "pods-missing", ["gang-waiting"]),
    ("a pod too few a moment ago", [pod("l", age=2), pod("w-1", age=1)], [group()], BEFORE, {}, "waiting", "no-room", ["gang-waiting"]),
    ("none there", [], [group()], BEFORE, {}, "absent", "pods-missing", ["gang-waiting"]),
    ("no policy", waiting(group="postrender-policy-missing"), [group()], BEFORE, {"policy": False}, "waiting", "policy-missing", ["gang-waiting"]),
    ("no policy known", waiting(group="postrender-policy-missing"), [group()], BEFORE, {}, "waiting", "policy-missing", ["gang-waiting"]),
    ("before the policy", waiting(group="postrender-policy-missing"), [group()], BEFORE, {"policy": True}, "waiting", "policy-missing", ["gang-waiting"]),
    ("gates", waiting(gates=("kueue.x-k8s.io/admission",)), [group()], BEFORE, {}, "waiting", "scheduling-gated", ["gang-waiting"]),
    ("nobody looks", waiting(says=None), [group()], BEFORE, {}, "waiting", "no-scheduler", ["gang-waiting"]),
    ("nobody has looked yet", waiting(says=None, age=3), [group()], BEFORE, {}, "waiting", "no-room", ["gang-waiting"]),
    ("Failed, whole", whole(), [group(phase="Failed")], BEFORE, {}, "bound", "", ["podgroup-failed"]),
    ("controlled by another", whole(), [group(owner=HOLDER)], BEFORE, {}, "bound", "", ["podgroup-foreign"]),
]  # fmt: skip


def native(pods: list[Json], index: int = 0) -> list[Json]:
    """The same pods as OMENative makes them, under another index."""
    for one in pods:
        labels = one["metadata"]["labels"]
        labels.pop(INDEX)
        labels["ome.io/instance-index"] = str(index)
        one["metadata"]["annotations"] = {}
        if LABEL in labels:
            labels[LABEL] = f"blue-engine-{index}"
    return pods


OME_GROUP = group("blue-engine-0", owner=BY_OME)
NATIVE_ROWS = [
    ("whole", native(whole()), [OME_GROUP], FROM_1_3, {}, "bound", "", []),
    ("at another index", native(whole(), 7), [group("blue-engine-7", owner=BY_OME)], FROM_1_3, {}, "bound", "", []),
    ("no controller", [], [group("blue-engine-0")], FROM_1_3, {}, "absent", "podgroup-foreign", ["gang-waiting"]),
    ("another's", [], [group("blue-engine-0", owner=HOLDER)], FROM_1_3, {}, "absent", "podgroup-foreign", ["gang-waiting"]),
    ("Failed, held back", [], [group("blue-engine-0", phase="Failed", owner=BY_OME)], FROM_1_3, {}, "absent", "podgroup-failed", ["gang-waiting"]),
    ("Failed, one held back", native(half()[:2]), [group("blue-engine-0", phase="Failed", owner=BY_OME)], FROM_1_3, {}, "half-bound", "podgroup-failed", ["gang-half-bound"]),
    ("older than the definition", native(waiting()), [], FROM_1_3, {"defined": 20.0, "started": 10.0}, "waiting", "ome-started-before-crd", ["gang-waiting"]),
    ("younger than the definition", native(waiting()), [], FROM_1_3, {"defined": 10.0, "started": 20.0}, "waiting", "podgroup-missing", ["gang-waiting"]),
    ("OME says so", native(waiting()), [], FROM_1_3, {"unavailable": frozenset([("llm", "blue", "engine")])}, "waiting", "ome-started-before-crd", ["gang-waiting"]),
    ("no definition", native(waiting()), [], FROM_1_3, {"served": False}, "waiting", "podgroup-crd-missing", ["gang-waiting", "podgroup-crd-missing"]),
]  # fmt: skip


def codes_of(seen: live.Live) -> list[str]:
    return [one.finding.code for one in seen.told] + [one.code for one in seen.findings]


@pytest.mark.parametrize("row", ROWS + NATIVE_ROWS, ids=lambda row: f"{row[3].ome}: {row[0]}")
def test_one_cause(row: tuple[str, list[Json], list[Json], Options, Json, str, str, list[str]]) -> None:
    _, pods, groups, options, known, expected, cause, codes = row
    seen = found(pods, groups, options, **known)
    [service] = seen.services
    [gang] = service.gangs
    assert (gang.state, gang.cause) == (expected, cause)
    assert codes_of(seen) == codes
    for told in seen.told:
        assert told.commands
        assert told.finding.remedy == " && ".join(told.commands)


def test_every_cause_has_a_row() -> None:
    assert {row[6] for row in ROWS + NATIVE_ROWS} == {*causes.NAMES, ""}


def made_for_real() -> dict[str, list[str]]:
    """The tests on a control plane that wait for a cause, by it: what is given to `comes_to` there, by its name or place."""
    made: dict[str, list[str]] = {}
    for file in sorted((pathlib.Path(__file__).parents[1] / "e2e").glob("test_live*.py")):
        for test in ast.parse(file.read_text()).body:
            if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
                continue
            for call in ast.walk(test):
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "comes_to":
                    cause = call.args[4]  # after cluster, namespace, state and bound
                    assert isinstance(cause, ast.Constant), f"{file.name}: {test.name}: a cause is written out"
                    if cause.value is not None:
                        made.setdefault(cause.value, []).append(f"{file.name}::{test.name}")
    return made


def test_every_cause_is_made_for_real() -> None:
    assert {*made_for_real()} == {*causes.NAMES}


@pytest.mark.parametrize("pods", [half()[:2], []], ids=["half", "absent"])
def test_a_failed_pod_is_to_go_before_its_podgroup_is_made_anew(pods: list[Json]) -> None:
    """OME makes none anew while there is one, and deletes it by itself when there is none."""
    failed = group("blue-engine-0", phase="Failed", owner=BY_OME)
    dead = [pod(name, "n9", phase="Failed") for name in ("dead-1", "dead-2")]
    elsewhere = pod("dead-3", "n9", phase="Failed")
    elsewhere["metadata"]["namespace"] = "other"
    members = native([*copy.deepcopy(pods), *dead, elsewhere])
    [told] = found(members, [failed], FROM_1_3).told
    assert told.commands == ("kubectl delete pods dead-1 dead-2 -n llm",)
    assert told.finding.message.endswith(
        "until it has made it anew, which it does once no failed pod is left: dead-1 and 1 more"
    )
    [told] = found(native(copy.deepcopy(pods)), [failed], FROM_1_3).told
    assert told.commands == ("kubectl delete podgroups.scheduling.x-k8s.io blue-engine-0 -n llm",)


LASTING = {"no-room", "scheduling-gated"}


def test_what_would_wait_for_ever_is_an_error() -> None:
    for _, pods, groups, options, known, where, cause, _ in ROWS + NATIVE_ROWS:
        seen = found(pods, groups, options, **known)
        first = next(seen.told, None)
        if where == "waiting" and first is not None:
            assert first.finding.severity == ("warning" if cause in LASTING else "error"), cause


def test_several_instances_and_a_surge() -> None:
    options = BEFORE._replace(replicas="policy")
    pods = [
        pod(f"{index}-{n}", f"n-{index}-{n}", f"lws-blue-engine-{index}", index) for index in (0, 2) for n in range(3)
    ]
    groups = [group(f"lws-blue-engine-{index}") for index in range(3)]
    [service] = found(pods, groups, options, replicas=2).services
    assert [(gang.name, gang.state) for gang in service.gangs] == [
        ("lws-blue-engine-0", "bound"),
        ("lws-blue-engine-2", "bound"),
    ]
    [service] = found(pods[:3], groups, options, replicas=2).services
    assert [(gang.name, gang.state) for gang in service.gangs] == [
        ("lws-blue-engine-0", "bound"),
        ("lws-blue-engine-1", "absent"),
    ]


def test_all_replicas_as_one_and_what_an_update_brings_up() -> None:
    options = BEFORE._replace(replicas="whole")
    name = "lws-blue-engine"
    running = [pod(f"{index}-{n}", f"n-{index}-{n}", name, index) for index in (0, 1) for n in range(3)]
    groups = [group(name, 6)]
    [service] = found(running, groups, options, replicas=2).services
    assert [(gang.name, gang.size, gang.bound) for gang in service.gangs] == [(name, 6, 6)]
    surge = [pod("2-0", "n", name, 2), pod("2-1", group=name, index=2), pod("2-2", group=name, index=2)]
    seen = found([*running, *surge], groups, options, replicas=2)
    [first, second] = seen.services[0].gangs
    assert (first.state, first.cause) == ("bound", "")
    assert (second.name, second.size, second.bound, second.cause) == (f"{name}, group 2", 3, 1, "quorum-of-old-pods")
    assert codes_of(seen) == ["gang-half-bound"]
    surge[0] = pod("2-0", group=name, index=2)
    seen = found([*running, *surge], groups, options, replicas=2)
    assert [gang.cause for gang in seen.services[0].gangs] == ["", "no-room"]
    assert codes_of(seen) == ["gang-waiting"]


def test_the_pod_that_says_most_is_heard() -> None:
    pods = waiting()
    words = [
        "0/1 nodes are available: 1 optimistic rejection in PostFilter.",
        "rejected due to timeout after waiting 20s",
        NO_ROOM,
    ]
    for one, message in zip(pods, words, strict=True):
        one["status"]["conditions"][0]["message"] = message
    [service] = found(pods, [group()], BEFORE).services
    assert (service.gangs[0].message, service.gangs[0].age) == (NO_ROOM, 600)


@pytest.mark.parametrize(("grace", "left"), [(900, 300), (60, 0), (None, None)])
def test_the_time_that_ome_leaves(grace: int | None, left: int | None) -> None:
    [service] = found(native(waiting()), [OME_GROUP], FROM_1_3, grace=grace).services
    assert service.gangs[0].left == left
    [service] = found(waiting(), [group()], BEFORE, grace=grace).services
    assert service.gangs[0].left is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"unschedulableGracePeriod": "15m"}', 900),
        ('{"UnschedulableGracePeriod": "1h30m"}', 5400),
        ('{"unschedulableGracePeriod": null}', None),
        ('{"unschedulableGracePeriod": 15}', None),
        ('{"unschedulableGracePeriod": "-1m"}', None),
        ('{"unschedulableGracePeriod": "soon"}', None),
        ("{}", None),
        ("[]", None),
        ("{", None),
    ],
)
def test_the_grace_period(text: str, expected: int | None) -> None:
    assert state._grace({"data": {"lifecycle": text}}) == expected


class Table:
    """A cluster where most may not be read."""

    name = "it"

    def __init__(self, **held: Any) -> None:
        self.held = held

    def get(self, path: str, query: Any = None) -> Json:
        for end, answer in self.held.items():
            if path.endswith(end):
                return answer  # type: ignore[no-any-return]
        raise Refused(403, "Forbidden", "no")

    def pages(self, path: str, query: Any = None) -> Any:
        yield from self.get(path, query)["items"]


def test_what_only_helps_may_be_forbidden() -> None:
    table = Table(pods={"items": [pod("l")]}, podgroups={"items": [group()]})

    class Elsewhere(Table):
        def get(self, path: str, query: Any = None) -> Json:
            if "/namespaces/ome/" in path:
                raise Refused(403, "Forbidden", "no")
            return table.get(path, query)

    seen = state.read(Server(Elsewhere()), ["llm"], False, "ome", NOW)
    assert (len(seen.pods), len(seen.groups)) == (1, 1)
    assert (seen.served, seen.defined, seen.started, seen.policy, seen.grace) == (True, None, None, None, None)


@pytest.mark.parametrize(
    ("message", "little"),
    [
        ("0/1 nodes are available: 1 optimistic rejection in PostFilter.", True),
        ("0/1 nodes are available: 1 rejection in Unreserve.", True),
        ("rejected due to timeout after waiting 20s at plugin Coscheduling", True),
        ("0/1 nodes are available: 1 PodGroup not found.", False),
        (NO_ROOM, False),
        (
            f"{NO_ROOM} preemption: none, PodGroup a/b gets rejected due to Pod c is unschedulable even after PostFilter",
            False,
        ),
        ("0/4 nodes are available: 1 optimistic rejection in PostFilter, 3 Insufficient cpu. preemption: no", False),
    ],
)
def test_what_says_little(message: str, little: bool) -> None:
    assert state.says_little(message) is little


@pytest.mark.parametrize("allowed", [True, False])
def test_events_say_what_conditions_do_not(allowed: bool) -> None:
    pods = [pod(name, says="0/1 nodes are available: 1 optimistic rejection in PostFilter.") for name in "abc"]

    class Asked(Table):
        def get(self, path: str, query: Any = None) -> Json:
            if path != "/api/v1/namespaces/llm/events":
                return super().get(path, query)
            if not allowed:
                raise Refused(403, "Forbidden", "no")
            assert query["limit"] <= 100
            named = query["fieldSelector"].rpartition("=")[2]
            return {
                "items": [
                    {"message": pods[0]["status"]["conditions"][0]["message"]},
                    *([{"message": NO_ROOM}] if named == "b" else []),
                ]
            }

    seen = state.read(Server(Asked(pods={"items": pods}, podgroups={"items": []})), ["llm"], False, "ome", NOW)
    assert [one.message == NO_ROOM for one in seen.pods] == [False, allowed, False]


# How it is shown


def shown() -> list[str]:
    lines: list[str] = []
    for _, pods, groups, options, known, _, _, _ in ROWS + NATIVE_ROWS:
        lines += view.text(found(pods, groups, options, grace=900, **known))
    return lines


def test_a_terminal_of_80_columns_is_enough() -> None:
    for line in shown():
        # Neither a word nor a quoted part of a command is broken.
        assert len(line) <= 80 or " " not in line.strip().removesuffix(" \\") or line.strip().startswith("'{"), line


# A shell in which our programs print their arguments.
SHELL = r"""
kubectl() { printf 'kubectl'; printf ' [%s]' "$@"; echo; cat; }
postrender() { printf 'postrender'; printf ' [%s]' "$@"; echo; cat; }
sleep() { echo "sleep $*"; }
date() { echo 1; }
"""


def test_commands_are_pasted_as_they_stand(tmp_path: pathlib.Path) -> None:
    rows = ROWS + NATIVE_ROWS
    commands = {command for row in rows for told in found(*row[1:4], **row[4]).told for command in told.commands}
    assert len(commands) >= 20
    for command in commands:
        lines = list(view._command(command))
        one, several = (
            subprocess.run(
                ["bash", "-c", f"{SHELL}{text}\ncat context.yaml"],
                cwd=tmp_path,
                capture_output=True,
                check=False,
                stdin=subprocess.DEVNULL,
            ).stdout
            for text in (command, "\n".join(lines))
        )
        assert one == several != b""


def test_what_comes_from_a_cluster_moves_no_cursor() -> None:
    lines = list(view.text(found(waiting(says="\x1b[2Jgone"), [group()], BEFORE)))
    assert any("\\u001b[2Jgone" in line for line in lines)
    assert all(line.isprintable() for line in lines)


def test_json_holds_to_its_schema() -> None:
    described = schema.live()
    for row in ROWS + NATIVE_ROWS:
        seen = found(row[1], row[2], row[3], grace=900, **row[4])
        [text] = view.json(seen, (Finding("gang-unknown", "m", "r"),), "f")
        holds(json.loads(text), described)


def holds(value: Any, described: Json) -> None:
    """Fail unless a value is as a schema says, of the words that ours use."""
    if "const" in described:
        assert value == described["const"]
    if "enum" in described:
        assert value in described["enum"]
    if "type" in described:
        kinds = described["type"] if isinstance(described["type"], list) else [described["type"]]
        names = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean", type(None): "null"}
        assert names[type(value)] in kinds, (value, described)
    if isinstance(value, dict):
        assert value.keys() == described["properties"].keys()
        for key, one in value.items():
            holds(one, described["properties"][key])
    if isinstance(value, list):
        assert len(value) >= described.get("minItems", 0)
        for one in value:
            holds(one, described["items"])
    if isinstance(value, int) and "minimum" in described:
        assert value >= described["minimum"]


def test_what_is_accepted_is_not_said() -> None:
    seen = found(waiting(), [group()], BEFORE)
    assert codes_of(live.judged(seen, Options(accept=("gang-waiting",)))) == []
    [told] = live.judged(seen, Options(strict=True)).told
    assert told.finding.severity == "error"


def test_commands_reach_the_same_cluster() -> None:
    commands = COMMANDS._replace(
        cluster=("--context", "a b"), ours=("--kube-context", "a b"), gang_schedulers=("mine",)
    )
    running = state.State(NOW, tuple(map(state.pod, half(group=None))), (), True)
    decided = pipeline.decide(pipeline.read(SERVICE.replace(b"REPLICAS", b"1"), BEFORE), BEFORE).decided
    [told, *_] = live.compare(decided, "d", running, Judge(running, commands)).told
    assert "--context 'a b'" in told.commands[0]
    assert "scheduler" in told.commands[0]
