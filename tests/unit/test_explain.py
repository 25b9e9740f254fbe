"""`postrender explain`: each value with the one that decided it, where that stands, and what it hid or was bounded by.

Rows are those of OME's own rules, by the section numbers that tests/unit/test_vectors.py has too: 4 timeouts, 5 scheduler
names, 3 shapes and sizes, 9 modes. A place is checked by a comment on its line: `size: 3  # service` is where `service` is.
"""

from __future__ import annotations

import ast
import functools
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from postrender import pipeline, review
from postrender.findings import Finding
from postrender.gangs import reasons
from postrender.hosts import review as host
from postrender.options import SECOND, Options
from postrender.options import Source as File
from postrender.views import explanation as view
from postrender.views import schema
from tests.test_cases import STREAMS, Case

MINUTE = 60 * SECOND


class Said(NamedTuple):
    """What a source is to be: the value, who wrote it, in which field, and the comment on its line."""

    value: str
    by: str
    field: str = ""
    line: str = ""


def own(value: str, field: str, line: str = "service") -> Said:
    return Said(value, "InferenceService 'llm'", field, line)


def of_runtime(value: str, field: str, line: str = "runtime") -> Said:
    return Said(value, "ClusterServingRuntime 'rt'", field, line)


def option(value: str, flag: str) -> Said:
    return Said(value, f"--{flag}")


INSTALLED = Said("30m", "the default of OME's chart")
LEAST = Said("1m", "the default of OME's chart")
MOST = Said("10m", "the default of OME's chart")


class Why(NamedTuple):
    """A value, what decided it, what it hid; and a part of the words beside it, if there is something to say."""

    value: str
    source: Said | None = None
    hidden: tuple[Said, ...] = ()
    words: str = ""


def runtime(spec: str, name: str = "rt", annotations: str = "") -> str:
    return f"apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata:\n  name: {name}\n{annotations}spec:\n{spec}---\n"


def service(engine: str, spec: str = "") -> str:
    return (
        "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: llm}\n"
        f"spec:\n  runtime: {{name: rt}}\n{spec}  engine:\n{engine}"
    )


PAIR = "    leader: {}\n    worker: {}\n"
NO_RUNTIME = runtime("  engineConfig: {}\n")


def line_of(text: str, comment: str) -> int:
    [number] = [number for number, line in enumerate(text.split("\n"), 1) if line.endswith(f"# {comment}")]
    return number


def said(source: reasons.Source | None, text: str) -> Said | None:
    """Return a source as a row has it, with the comment of its line; of a place without a comment its number."""
    if source is None:
        return None
    line = ""
    if source.place is not None:
        assert not source.place.file
        held = text.split("\n")[source.place.line - 1]
        assert held[source.place.column - 1 :].startswith((source.value, f'"{source.value}"', f"'{source.value}'"))
        line = held.partition("  # ")[2] or str(source.place.line)
    return Said(source.value, source.by, source.field, line)


def components(text: str, options: Options = Options()) -> dict[str, reasons.Explained]:  # noqa: B008
    [subject, *_] = review.explain(text.encode(), options).subjects
    return {component.component: component for component in subject.components}


def decisions(text: str, options: Options = Options(), component: str = "engine") -> dict[str, reasons.Reason]:  # noqa: B008
    """Return what is decided of a component by the names of the decisions, each there once, in their order."""
    found = [reason.name for reason in components(text, options)[component].reasons]
    assert found == [name for name in reasons.NAMES if name in found]
    return {reason.name: reason for reason in components(text, options)[component].reasons}


def holds(found: reasons.Reason, wanted: Why, text: str) -> None:
    assert found.value == wanted.value
    assert said(found.source, text) == wanted.source
    assert tuple(said(one, text) for one in found.hidden) == wanted.hidden
    assert wanted.words in found.why
    assert bool(wanted.words) == bool(found.why), found.why


# -- 4: timeouts -----------------------------------------------------------------------------------------------------

READY = "lifecycle.instanceReadyTimeout"


def waits(value: str, comment: str = "service") -> str:
    return f"{PAIR}    lifecycle:\n      instanceReadyTimeout: {value}  # {comment}\n"


RUNTIME_WAITS = runtime("  engineConfig:\n    lifecycle:\n      instanceReadyTimeout: 4m  # runtime\n")
OWN_READY, RUNTIME_READY = f"spec.engine.{READY}", f"spec.engineConfig.{READY}"
# Section 4.1: which ready timeout counts, and what it hides.
TIMEOUTS: list[tuple[str, str, Options, Why]] = [
    ("the service's over all", RUNTIME_WAITS + service(waits("3m")), Options(),
        Why("3m", own("3m", OWN_READY), (of_runtime("4m", RUNTIME_READY),))),
    ("the runtime's over the cluster's", RUNTIME_WAITS + service(PAIR), Options(),
        Why("4m", of_runtime("4m", RUNTIME_READY))),
    ("the cluster's is hidden where it is written", NO_RUNTIME + service(waits("3m")), Options(instance_ready_timeout=5 * MINUTE),
        Why("3m", own("3m", OWN_READY), (option("5m", "instance-ready-timeout"),))),
    ("the cluster's, of the chart", NO_RUNTIME + service(PAIR), Options(), Why("30m", INSTALLED)),
    ("the cluster's, of kustomize", NO_RUNTIME + service(PAIR), Options(ome_install="kustomize"),
        Why("30m", Said("30m", "the default of OME's kustomize install"))),
    ("the cluster's, by an option", NO_RUNTIME + service(PAIR), Options(instance_ready_timeout=5 * MINUTE),
        Why("5m", option("5m", "instance-ready-timeout"))),
    ("the cluster's, by a variable", NO_RUNTIME + service(PAIR),
        Options(instance_ready_timeout=5 * MINUTE, origins=(("instance-ready-timeout", "POSTRENDER_INSTANCE_READY_TIMEOUT"),)),
        Why("5m", Said("5m", "POSTRENDER_INSTANCE_READY_TIMEOUT"))),
    ("none", NO_RUNTIME + service(PAIR), Options(ome_install="none"),
        Why("none", Said("none", "no setting of the cluster is known"))),
    ("nothing is hidden where the cluster says none", NO_RUNTIME + service(waits("3m")), Options(ome_install="none"),
        Why("3m", own("3m", OWN_READY))),
    ("0s of a component counts as unset, and hides", RUNTIME_WAITS + service(waits("0s")), Options(),
        Why("30m", INSTALLED, (own("0s", OWN_READY), of_runtime("4m", RUNTIME_READY)), "0s counts as unset")),
    ("so does a negative one", RUNTIME_WAITS + service(waits("-3m")), Options(),
        Why("30m", INSTALLED, (own("-3m", OWN_READY), of_runtime("4m", RUNTIME_READY)), "-3m counts as unset")),
    ("0s of the runtime", runtime("  engineConfig:\n    lifecycle:\n      instanceReadyTimeout: 0s  # runtime\n") + service(PAIR), Options(),
        Why("30m", INSTALLED, (of_runtime("0s", RUNTIME_READY),), "0s counts as unset")),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "options", "why"), TIMEOUTS, ids=[row[0] for row in TIMEOUTS])
def test_the_ready_timeout(what: str, text: str, options: Options, why: Why) -> None:
    holds(decisions(text, options)["readyTimeout"], why, text)


# Section 4.3, row for row: ready timeout (empty for none), clamp, field, and the bound that counts.
USUAL, ODD, TINY = (60_000, 600_000), (1_500, 2_500), (500, 800)
ARITHMETIC = [
    ("", USUAL, "60", "min"),
    ("30s", USUAL, "60", "min"),
    ("3m", USUAL, "180", ""),
    ("10m", USUAL, "600", ""),
    ("30m", USUAL, "600", "max"),
    ("30m", None, "1,800", ""),
    ("", None, "not set", ""),
    ("15m", None, "900", ""),
    ("5m", None, "300", ""),
    ("900ms", None, "not set", ""),
    ("1.9s", None, "1", ""),
    ("59.9s", USUAL, "60", "min"),
    ("600.9s", USUAL, "600", ""),  # 600 is not above 600
    ("1.5h", None, "5,400", ""),
    ("", ODD, "1", "min"),
    ("1s", ODD, "1", ""),
    ("2s", ODD, "2", ""),
    ("30m", ODD, "2", "max"),
    ("", TINY, "0", "min"),
    ("30m", TINY, "0", "max"),
    ("596523h14m7s", None, "2,147,483,647", ""),
    # Both bounds alike: which of them counts is a question of the side.
    ("30s", (120_000, 120_000), "120", "min"),
    ("30m", (120_000, 120_000), "120", "max"),
]
TEXT = {500: "0.5s", 800: "0.8s", 1_500: "1.5s", 2_500: "2.5s", 60_000: "1m", 600_000: "10m", 120_000: "2m"}


@pytest.mark.parametrize(("ready", "clamp", "value", "side"), ARITHMETIC)
def test_the_scheduling_timeout(ready: str, clamp: tuple[int, int] | None, value: str, side: str) -> None:
    text = NO_RUNTIME + service(waits(ready) if ready else PAIR)
    least, most = clamp or (0, 0)
    options = Options(ome_install="none", gang_timeout_min=least * 1_000_000, gang_timeout_max=most * 1_000_000)
    found = decisions(text, options)["scheduleTimeoutSeconds"]
    assert found.value == value
    if side:
        bound = {"min": least, "max": most}[side]
        wanted = Why(value, option(TEXT[bound], f"gang-timeout-{side}"),
            words={"min": "raised to", "max": "lowered to"}[side] + f" gangScheduleTimeout.{side}")  # fmt: skip
        holds(found, wanted, text)
    elif value == "not set":
        holds(found, Why(value, words="no ready timeout of a second or more, and no clamp"), text)
    else:
        holds(found, Why(value, words="the ready timeout in whole seconds"), text)


@pytest.mark.parametrize("clamp", [None, USUAL])
@pytest.mark.parametrize("ready", ["596523h14m8s", "600000h"])
def test_a_timeout_that_the_field_does_not_hold_is_no_gang(ready: str, clamp: tuple[int, int] | None) -> None:
    options = Options() if clamp else Options(ome_install="kustomize")
    text = NO_RUNTIME + service(waits(ready))
    assert review.explain(text.encode(), options).refused
    holds(decisions(text, options)["gang"], Why("none", words="a finding says why"), text)


SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: inferenceservice-config, namespace: ome}
data:
  lifecycle: '{"instanceReadyTimeout": "20s", "gangScheduleTimeout": {"min": "40s", "max": "50s"}}'  # config
---
"""


def test_settings_of_the_stream_and_of_a_context_say_where_they_stand() -> None:
    text = NO_RUNTIME + service(PAIR)
    here = decisions(SETTINGS + text)
    there = decisions(text, Options(context=(File("ome.yaml", SETTINGS.encode()),)))
    for found, file in ((here, ""), (there, "ome.yaml")):
        ready, timeout = found["readyTimeout"].source, found["scheduleTimeoutSeconds"].source
        assert ready
        assert ready.place
        assert timeout
        assert timeout.place
        assert (ready.value, ready.by, ready.place.file, ready.place.line) == (
            "20s", "the ConfigMap inferenceservice-config", file, line_of(SETTINGS, "config"))  # fmt: skip
        assert (timeout.value, timeout.place.line, found["scheduleTimeoutSeconds"].value) == (
            "40s",
            ready.place.line,
            "40",
        )


# -- 5: schedulers ---------------------------------------------------------------------------------------------------

OWN_PAIR = "    leader:\n      schedulerName: sl  # leader\n    worker:\n      schedulerName: sw  # worker\n"
OWN_NAME = "    schedulerName: sc  # component\n"
RUNTIME_TOP = "  schedulerName: rt  # top\n"
RUNTIME_PAIR = (
    "    leader:\n      schedulerName: rl  # runtime-leader\n    worker:\n      schedulerName: rw  # runtime-worker\n"
)
RUNTIME_NAME = "    schedulerName: rc  # runtime-component\n"
ALL_RUNTIME = runtime(f"{RUNTIME_TOP}  engineConfig:\n{RUNTIME_NAME}{RUNTIME_PAIR}")
RL = of_runtime("rl", "spec.engineConfig.leader.schedulerName", "runtime-leader")
RW = of_runtime("rw", "spec.engineConfig.worker.schedulerName", "runtime-worker")
SL = own("sl", "spec.engine.leader.schedulerName", "leader")
SW = own("sw", "spec.engine.worker.schedulerName", "worker")
SC = own("sc", "spec.engine.schedulerName", "component")
RC = of_runtime("rc", "spec.engineConfig.schedulerName", "runtime-component")
RT = of_runtime("rt", "spec.schedulerName", "top")
NOBODY = Why("none", words="nobody names one, so it is default-scheduler")
FILL = Options(scheduler_name="filled")
FILLED = Why("filled", option("filled", "scheduler-name"), words="nobody names one, so it is filled in")
BELOW = Options(ome="1.2")
UNFOLDED = Why("none", None, (SC,), "the component's name does not reach it below OME 1.3, so it is default-scheduler")

SCHEDULERS: list[tuple[str, str, Options, Why, Why]] = [
    ("1 leader and worker of the service", ALL_RUNTIME + service(OWN_NAME + OWN_PAIR), Options(),
        Why("sl", SL, (RL, SC, RC, RT)), Why("sw", SW, (RW, SC, RC, RT))),
    ("2 leader and worker of the runtime", ALL_RUNTIME + service(OWN_NAME + PAIR), Options(),
        Why("rl", RL, (SC, RC, RT)), Why("rw", RW, (SC, RC, RT))),
    ("3 the service's component", runtime(f"{RUNTIME_TOP}  engineConfig:\n{RUNTIME_NAME}") + service(OWN_NAME + PAIR), Options(),
        Why("sc", SC, (RC, RT)), Why("sc", SC, (RC, RT))),
    ("4 the runtime's component", runtime(f"{RUNTIME_TOP}  engineConfig:\n{RUNTIME_NAME}") + service(PAIR), Options(),
        Why("rc", RC, (RT,)), Why("rc", RC, (RT,))),
    ("5 the runtime", runtime(f"{RUNTIME_TOP}  engineConfig: {{}}\n") + service(PAIR), Options(), Why("rt", RT), Why("rt", RT)),
    ("6 nobody", NO_RUNTIME + service(PAIR), Options(), NOBODY, NOBODY),
    ("leader and worker apart", NO_RUNTIME + service(OWN_PAIR), Options(), Why("sl", SL), Why("sw", SW)),
    ("the runtime's leader beats the service's component",
        runtime("  engineConfig:\n    leader:\n      schedulerName: rl  # runtime-leader\n") + service(OWN_NAME + PAIR), Options(),
        Why("rl", RL, (SC,)), Why("sc", SC)),
    ("the leader's alone", NO_RUNTIME + service("    leader:\n      schedulerName: sl  # leader\n    worker: {}\n"), Options(),
        Why("sl", SL), NOBODY),
    ("filled in", NO_RUNTIME + service(PAIR), FILL, FILLED, FILLED),
    ("a half-written pair takes what is written", NO_RUNTIME + service("    leader:\n      schedulerName: sl  # leader\n    worker: {}\n"), FILL,
        Why("sl", SL), Why("sl", SL, words="filled in: the name of the others")),
    ("the other half", NO_RUNTIME + service("    leader: {}\n    worker:\n      schedulerName: sw  # worker\n"), FILL,
        Why("sw", SW, words="filled in: the name of the others"), Why("sw", SW)),
    ("what is written is not filled", NO_RUNTIME + service(OWN_PAIR), FILL, Why("sl", SL), Why("sw", SW)),
    ("below 1.3 the component's name reaches no pod", NO_RUNTIME + service(OWN_NAME + PAIR.replace("{}\n", "{size: 1}\n")), BELOW, UNFOLDED, UNFOLDED),
    ("and is shown beside what is filled in", NO_RUNTIME + service(OWN_NAME + PAIR.replace("{}\n", "{size: 1}\n")), BELOW._replace(scheduler_name="filled"),
        FILLED._replace(hidden=(SC,), words="the component's name does not reach it below OME 1.3, so it is filled in"),
        FILLED._replace(hidden=(SC,), words="the component's name does not reach it below OME 1.3, so it is filled in")),
    ("below 1.3 a worker alone has its leader from the component", NO_RUNTIME + service(OWN_NAME + "    worker: {size: 1}\n"), BELOW,
        Why("sc", SC), UNFOLDED),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "text", "options", "leader", "worker"), SCHEDULERS, ids=[row[0] for row in SCHEDULERS]
)
def test_schedulers(what: str, text: str, options: Options, leader: Why, worker: Why) -> None:
    found = decisions(text, options)
    holds(found["leader.schedulerName"], leader, text)
    holds(found["worker.schedulerName"], worker, text)
    named = tuple("" if why.value == "none" else why.value for why in (leader, worker))
    assert components(text, options)["engine"].scheduler == named


# -- shapes, sizes, modes --------------------------------------------------------------------------------------------

MODE = "annotations[ome.io/deploymentMode]"


def annotated(mode: str, comment: str = "service") -> str:
    return f"    annotations:\n      ome.io/deploymentMode: {mode}  # {comment}\n"


def inheriting(spec: str, parent: str) -> str:
    return runtime(parent, "base") + runtime(spec, "rt", "  annotations: {ome.io/inherit-from: base}\n")


def of_parent(value: str, field: str) -> Said:
    return Said(value, "ClusterServingRuntime 'base'", field, "parent")


KEY = "    topologyKey: own-key  # service\n"
RUNTIME_KEY = runtime("  engineConfig:\n    topologyKey: rack  # runtime\n")
VALUES: list[tuple[str, str, str, Options, Why]] = [
    ("mode", "the component's annotation over all", runtime(f"  engineConfig:\n{annotated('RawDeployment', 'runtime')}")
        + service(annotated("OMENative") + PAIR, "  deploymentMode: RawDeployment  # spec\n"), Options(),
        Why("OMENative", own("OMENative", f"spec.engine.{MODE}"),
            (of_runtime("RawDeployment", f"spec.engineConfig.{MODE}"), own("RawDeployment", "spec.deploymentMode", "spec")))),
    ("mode", "the runtime's annotation", runtime(f"  engineConfig:\n{annotated('OMENative', 'runtime')}")
        + service(PAIR, "  deploymentMode: RawDeployment  # spec\n"), Options(),
        Why("OMENative", of_runtime("OMENative", f"spec.engineConfig.{MODE}"), (own("RawDeployment", "spec.deploymentMode", "spec"),))),
    ("mode", "spec.deploymentMode", NO_RUNTIME + service(PAIR, "  deploymentMode: OMENative  # spec\n"), Options(),
        Why("OMENative", own("OMENative", "spec.deploymentMode", "spec"))),
    ("mode", "an annotation that OME does not know is passed over", NO_RUNTIME + service(annotated("Serverless") + PAIR), Options(),
        Why("OMENative", None, (own("Serverless", f"spec.engine.{MODE}"),), "leader and worker are both there")),
    ("mode", "the shape", NO_RUNTIME + service(PAIR), Options(), Why("OMENative", words="leader and worker are both there")),
    ("mode", "half a shape", NO_RUNTIME + service("    leader: {}\n"), Options(), Why("OMENative", words="a leader is there")),
    ("mode", "no shape", NO_RUNTIME + service("    minReplicas: 1\n"), Options(), Why("RawDeployment", words="neither leader nor worker is there")),
    ("mode", "below 1.3 the shape is MultiNode's, and spec.deploymentMode is not read",
        NO_RUNTIME + service("    leader: {}\n    worker: {size: 1}\n", "  deploymentMode: RawDeployment  # spec\n"), BELOW,
        Why("MultiNode", None, (own("RawDeployment", "spec.deploymentMode", "spec"),), "leader and worker are both there")),
    ("mode", "what is not known is said", service("    minReplicas: 1\n"), Options(),
        Why("RawDeployment", words="neither leader nor worker is there, as far as is known: the runtime 'rt' is not read")),
    ("workers", "the service's", runtime("  engineConfig:\n    worker:\n      size: 3  # runtime\n")
        + service("    leader: {}\n    worker:\n      size: 5  # service\n"), Options(),
        Why("5", own("5", "spec.engine.worker.size"), (of_runtime("3", "spec.engineConfig.worker.size"),))),
    ("workers", "the runtime's", runtime("  engineConfig:\n    worker:\n      size: 3  # runtime\n") + service(PAIR), Options(),
        Why("3", of_runtime("3", "spec.engineConfig.worker.size"))),
    ("workers", "nobody's", NO_RUNTIME + service(PAIR), Options(), Why("1", words="OME's default")),
    ("instances", "the service's", inheriting("  engineConfig:\n    minReplicas: 3  # runtime\n", "  engineConfig:\n    minReplicas: 4  # parent\n")
        + service(PAIR + "    minReplicas: 2  # service\n"), Options(),
        Why("2", own("2", "spec.engine.minReplicas"),
            (of_runtime("3", "spec.engineConfig.minReplicas"), of_parent("4", "spec.engineConfig.minReplicas")))),
    ("instances", "the runtime's", inheriting("  engineConfig:\n    minReplicas: 3  # runtime\n", "  engineConfig:\n    minReplicas: 4  # parent\n")
        + service(PAIR), Options(), Why("3", of_runtime("3", "spec.engineConfig.minReplicas"), (of_parent("4", "spec.engineConfig.minReplicas"),))),
    ("instances", "what the runtime inherits", inheriting("  engineConfig: {}\n", "  engineConfig:\n    minReplicas: 4  # parent\n")
        + service(PAIR), Options(), Why("4", of_parent("4", "spec.engineConfig.minReplicas"))),
    ("instances", "nobody's", NO_RUNTIME + service(PAIR), Options(), Why("1", words="OME's default")),
    ("instances", "0 counts as 1", NO_RUNTIME + service(PAIR + "    minReplicas: 0  # service\n"), Options(),
        Why("1", own("0", "spec.engine.minReplicas"), words="0 counts as 1")),
    ("maxReplicas", "the service's", NO_RUNTIME + service(PAIR + "    maxReplicas: 4  # service\n"), Options(),
        Why("4", own("4", "spec.engine.maxReplicas"))),
    ("minMember", "a leader and its workers", NO_RUNTIME + service("    leader: {}\n    worker: {size: 3}\n"), Options(),
        Why("4", words="a leader and 3 workers")),
    ("minMember", "all of them", NO_RUNTIME + service("    minReplicas: 2\n    leader: {}\n    worker: {size: 3}\n"),
        Options(ome="1.2", replicas="whole"), Why("8", words="2 Instances, each of a leader and 3 workers (--replicas whole)")),
    ("topologyKey", "the service's", RUNTIME_KEY + service(KEY + PAIR), Options(),
        Why("own-key", own("own-key", "spec.engine.topologyKey"), (of_runtime("rack", "spec.engineConfig.topologyKey"),))),
    ("topologyKey", "an empty one hides the runtime's", RUNTIME_KEY + service('    topologyKey: ""  # service\n' + PAIR), Options(),
        Why("none", own("", "spec.engine.topologyKey"), (of_runtime("rack", "spec.engineConfig.topologyKey"),))),
    ("topologyKey", "nobody's", NO_RUNTIME + service(PAIR), Options(), Why("none", words="nobody names one")),
    ("topologyKey", "below 1.3", NO_RUNTIME + service(PAIR.replace("{}\n", "{size: 1}\n")), BELOW, Why("none", words="OME below 1.3 has none")),
    ("leader.priorityClassName", "the component's", NO_RUNTIME + service(PAIR + "    priorityClassName: high  # service\n"), Options(),
        Why("high", own("high", "spec.engine.priorityClassName"))),
    ("updateStrategy", "nobody's", NO_RUNTIME + service(PAIR), Options(), Why("SurgeThenDrain", words="OME's default")),
    ("updateStrategy", "the service's", NO_RUNTIME + service(PAIR + "    lifecycle:\n      updateStrategy:\n        type: Recreate  # service\n"), Options(),
        Why("Recreate", own("Recreate", "spec.engine.lifecycle.updateStrategy.type"))),
    ("spares", "by an option", NO_RUNTIME + service(PAIR), Options(spares=2), Why("2", option("2", "spares"))),
    ("podGroupLabel", "written for one Instance", NO_RUNTIME + service(PAIR), Options(), Why("llm-engine-0", words="written into spec.engine.labels")),
    ("podGroupLabel", "OME's for several", NO_RUNTIME + service(PAIR + "    minReplicas: 2\n"), Options(),
        Why("the PodGroup of its Instance", words="OME labels each pod itself")),
    ("podGroupLabel", "OME's where it makes the PodGroups", NO_RUNTIME + service(PAIR), Options(ome="1.3"),
        Why("the PodGroup of its Instance", words="OME labels each pod itself")),
    ("podGroupLabel", "the policy's", NO_RUNTIME + service("    minReplicas: 2\n    leader: {}\n    worker: {size: 1}\n"),
        Options(ome="1.2", replicas="policy"), Why("the PodGroup of its Instance", words="the admission policy labels each pod")),
    ("podGroupLabel", "the whole component's", NO_RUNTIME + service("    minReplicas: 2\n    leader: {}\n    worker: {size: 1}\n"),
        Options(ome="1.2", replicas="whole"), Why("lws-llm-engine", words="written into spec.engine.labels")),
    ("podGroupsBy", "nothing said", NO_RUNTIME + service(PAIR), Options(), Why("postrender", words="which OME runs it is not said")),
    ("podGroupsBy", "OME 1.3", NO_RUNTIME + service(PAIR), Options(ome="1.3"), Why("OME", option("1.3", "ome"))),
    ("podGroupsBy", "OME 1.2", NO_RUNTIME + service(PAIR.replace("{}\n", "{size: 1}\n")), BELOW, Why("postrender", words="nobody else makes any for MultiNode")),
    ("podGroupsBy", "emit", NO_RUNTIME + service(PAIR), Options(ome="1.3", podgroups="emit"), Why("postrender", option("emit", "podgroups"))),
    ("podGroupsBy", "omit", NO_RUNTIME + service(PAIR), Options(podgroups="omit"), Why("OME", option("omit", "podgroups"))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "what", "text", "options", "why"), VALUES, ids=[f"{row[0]}, {row[1]}" for row in VALUES]
)
def test_values(name: str, what: str, text: str, options: Options, why: Why) -> None:
    holds(decisions(text, options)[name], why, text)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("topologyKey", "nobody names one"),
        ("leader.schedulerName", "nobody names one, so it is default-scheduler"),
        ("worker.schedulerName", "nobody names one, so it is default-scheduler"),
        ("instances", "OME's default"),
        ("updateStrategy", "OME's default"),
    ],
)
def test_what_a_runtime_that_is_not_read_may_say_is_so_as_far_as_is_known(row: str, words: str) -> None:
    engine = service("    leader: {}\n    worker: {size: 3}\n")
    unread = "as far as is known: the runtime 'rt' is not read"
    assert decisions(engine)[row].why == f"{words}, {unread}"
    assert decisions(NO_RUNTIME + engine)[row].why == words
    assert decisions(engine, FILL)["leader.schedulerName"].why == f"{FILLED.words}, {unread}"
    # Below 1.3 nothing of the runtime counts there.
    assert decisions(engine, BELOW)["instances"].why == "OME's default"


# Why there is none.
NO_GANG = [
    ("one pod", NO_RUNTIME + service("    minReplicas: 1\n"), Options(), "an Instance is one pod"),
    ("RawDeployment", NO_RUNTIME + service(PAIR, "  deploymentMode: RawDeployment\n"), Options(), "RawDeployment runs no leader and workers"),
    ("half a pair", NO_RUNTIME + service("    leader: {}\n"), Options(), "a leader without a worker"),
    ("the other half", NO_RUNTIME + service("    worker: {}\n"), Options(), "a worker without a leader"),
    ("not known", service("    minReplicas: 1\n"), Options(), "taken for one pod: the runtime 'rt' is not read"),
    ("nor is how many workers", service(PAIR), BELOW, "a finding says why"),
    ("refused", NO_RUNTIME + service("    leader: {}\n    worker: {size: -1}\n"), Options(), "a finding says why"),
    ("no workers", NO_RUNTIME + service("    leader: {}\n    worker: {size: 0}\n"), Options(), "it has no workers"),
    ("no workers below 1.3, where nobody says how many", NO_RUNTIME + service(PAIR), BELOW, "it has no workers"),
    ("no Instances below 1.3", NO_RUNTIME + service("    minReplicas: 0\n    leader: {}\n    worker: {size: 1}\n"), BELOW,
        "it has no Instances"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "options", "words"), NO_GANG, ids=[row[0] for row in NO_GANG])
def test_why_there_is_no_gang(what: str, text: str, options: Options, words: str) -> None:
    found = components(text, options)["engine"]
    assert (found.groups, found.made_by, found.pods) == ((), "", None)
    assert [reason.name for reason in found.reasons] == ["mode", "gang"]
    assert found.reasons[-1] == reasons.Reason("gang", "none", why=words)


def test_a_set_that_is_not_handled_is_not_said_to_have_no_workers() -> None:
    text = "apiVersion: disaggregatedset.x-k8s.io/v1\nkind: DisaggregatedSet\nmetadata: {name: pd}\nspec: {roles: []}\n"
    [reason] = components(text, Options(leaderworkersets=True))[""].reasons
    assert (reason.name, reason.value, reason.why) == ("gang", "none", "it is not handled")


def test_a_leader_worker_set() -> None:
    """The API's defaults are one replica of one pod; the size counts the leader."""
    text = """\
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec:
  leaderWorkerTemplate:
    size: 4  # size
    workerTemplate:
      spec:
        schedulerName: mine  # scheduler
        containers: []
"""
    options = Options(leaderworkersets=True)
    found = components(text, options)[""]
    assert (found.mode, found.instances, found.workers, found.pods) == (
        "LeaderWorkerSet", 1, 3, reasons.Pods("vllm-{index}", "vllm-{index}-{number}", 1))  # fmt: skip
    title = "LeaderWorkerSet 'vllm'"
    held = decisions(text, options, "")
    holds(held["replicas"], Why("1", words="the API's default"), text)
    size = Said("4", title, "spec.leaderWorkerTemplate.size", "size")
    holds(held["workers"], Why("3", size, words="size counts the leader too"), text)
    holds(held["minMember"], Why("4", words="a leader and 3 workers"), text)
    field = "spec.leaderWorkerTemplate.workerTemplate.spec.schedulerName"
    for role in ("leader", "worker"):  # one template serves both
        holds(held[f"{role}.schedulerName"], Why("mine", Said("mine", title, field, "scheduler")), text)
    holds(held["podGroupLabel"], Why("vllm-0", words="written into the pod templates of the set"), text)
    holds(held["podGroupsBy"], Why("postrender", words="nobody else makes any for a LeaderWorkerSet"), text)


REPLICA = """\
apiVersion: ome.io/v1beta1
kind: InferenceReplica
metadata: {name: pool}
spec:
  component: engine
  replicas: 2  # replicas
  runners:
  - {name: leader, size: 1, template: {}}
  - name: worker
    size: 2  # size
    template: {}
"""


def test_a_standalone_replica() -> None:
    found = components(REPLICA)["engine"]
    assert [(group.name, group.min_member) for group in found.groups] == [("pool-engine-0", 3), ("pool-engine-1", 3)]
    held = decisions(REPLICA)
    title = "InferenceReplica 'pool'"
    holds(held["mode"], Why("OMENative", words="an InferenceReplica is OMENative"), REPLICA)
    holds(held["instances"], Why("2", Said("2", title, "spec.replicas", "replicas")), REPLICA)
    holds(held["workers"], Why("2", Said("2", title, "spec.runners[worker].size", "size")), REPLICA)
    holds(held["podGroupLabel"], Why("the PodGroup of its Instance", words="OME labels each pod itself"), REPLICA)


def test_names_of_pods() -> None:
    """`<service>-<component>-<index>-<runner>-<ordinal>`; of a LeaderWorkerSet `<set>-<index>` and `<set>-<index>-<number>`, from 1 on."""
    native = components(NO_RUNTIME + service("    leader: {}\n    worker: {size: 2}\n"))["engine"].pods
    assert native
    assert [native.leader_of(1), native.worker_of(1, 0), native.worker_of(1, 1)] == [
        "llm-engine-1-leader-0", "llm-engine-1-worker-0", "llm-engine-1-worker-1"]  # fmt: skip
    multi = components(NO_RUNTIME + service("    leader: {}\n    worker: {size: 2}\n"), BELOW)["engine"].pods
    assert multi
    assert [multi.leader_of(0), multi.worker_of(0, 0), multi.worker_of(0, 1)] == [
        "lws-llm-engine-0", "lws-llm-engine-0-1", "lws-llm-engine-0-2"]  # fmt: skip


def test_spares_are_no_instances() -> None:
    found = components(
        NO_RUNTIME + service(PAIR + "    minReplicas: 2\n    maxReplicas: 3\n"), Options(spares=1, instances="max")
    )["engine"]
    assert [(group.name, group.first, group.spare) for group in found.groups] == [
        ("llm-engine-0", 0, False), ("llm-engine-1", 1, False), ("llm-engine-2", 2, True), ("llm-engine-3", 3, True)]  # fmt: skip
    assert found.instances == 2


def test_a_virtual_deployment_says_so() -> None:
    text = service(PAIR).replace("{name: llm}", "{name: llm, annotations: {ome.io/deploymentMode: VirtualDeployment}}")
    [subject] = review.explain(text.encode()).subjects
    assert (subject.components, subject.note) == ((), "VirtualDeployment: OME makes nothing of it")


def test_a_refused_stream_is_explained_all_the_same() -> None:
    text = (
        NO_RUNTIME
        + service(PAIR)
        + "---\n"
        + service("    leader: {}\n    worker: {size: 0}\n").replace("name: llm", "name: bad")
    )
    found = review.explain(text.encode())
    good, bad = found.subjects
    assert found.refused
    assert [group.name for group in good.components[0].groups] == ["llm-engine-0"]
    assert "invalid-field" in [finding.code for finding in bad.findings]
    assert "invalid-field" not in [finding.code for finding in good.findings]


# -- every golden case -----------------------------------------------------------------------------------------------

PLANNED = [case for case in STREAMS if case.expected_name in case.files]
REFUSED = [case for case in STREAMS if case.text("exit").strip() == "1"]


@functools.cache
def explained(case: Case) -> reasons.Explanation:
    return review.explain(case.data, case.options)


def test_what_is_explained_is_what_is_rendered() -> None:
    """The PodGroups told as ours are those of the output."""
    count = 0
    for case in PLANNED:
        told = {
            (group.name, group.min_member, group.seconds, group.topology_key)
            for subject in explained(case).subjects
            for component in subject.components
            for group in component.groups
            if component.made_by == "postrender"
        }
        before, after = ({group.name for group in pipeline.read(data).pod_groups} for data in (case.data, case.output))
        assert after - before <= {name for name, *_ in told} <= after, case.why
        held = case.output.decode(errors="replace")
        for _, members, seconds, key in told:
            assert re.search(rf'"?minMember"?: *{members}\b', held), case.why
            assert seconds is None or re.search(rf'"?scheduleTimeoutSeconds"?: *{seconds}\b', held), case.why
            assert key in held, case.why
        count += len(told)
    assert count > 200


def test_the_text_fits_a_terminal() -> None:
    """80 columns, unless a word alone is longer than the room it has."""
    for case in PLANNED:
        for line in view.text(explained(case), "in.yaml"):
            assert line.isprintable(), case.why
            assert len(line) <= 80 or too_long(line), f"{case.why}\n{line}"


def too_long(line: str) -> bool:
    """Return whether a line is a single word that cannot be broken, with a head before it or a place behind it."""
    return len(line.split()) == 1 or bool(re.fullmatch(r" *(PodGroup|Instance \d+|[\w.]+:?) +\S+( +\(\S+\))?", line))


TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list, "null": type(None)}
WORDS = {"type", "enum", "const", "minimum", "properties", "required", "additionalProperties", "items", "oneOf", "$schema", "title"}  # fmt: skip


def valid(value: Any, said: dict[str, Any]) -> bool:
    """Return whether a value is what a JSON schema says, by the words of the language that ours use."""
    assert set(said) <= WORDS
    types = said.get("type")
    types = [types] if isinstance(types, str) else types
    if types and not any(
        isinstance(value, TYPES[one]) and (one != "integer" or not isinstance(value, bool)) for one in types
    ):
        return False
    if ("enum" in said and value not in said["enum"]) or ("const" in said and value != said["const"]):
        return False
    if "minimum" in said and isinstance(value, int) and value < said["minimum"]:
        return False
    if "oneOf" in said:
        return sum(valid(value, one) for one in said["oneOf"]) == 1
    if isinstance(value, list):
        return all(valid(one, said["items"]) for one in value)
    if isinstance(value, dict):
        assert said["additionalProperties"] is False
        properties = said["properties"]
        return set(said["required"]) <= set(value) <= set(properties) and all(
            valid(held, properties[key]) for key, held in value.items()
        )
    return True


SCHEMA = schema.explanation()


def test_the_json_is_what_the_schema_says() -> None:
    for case in PLANNED + REFUSED:
        [text] = view.json(explained(case), "in.yaml")
        assert valid(json.loads(text), SCHEMA), case.why
        assert explained(case).refused == (case in REFUSED), case.why


def test_the_schema_refuses_what_is_not_said() -> None:
    [line] = view.json(review.explain((NO_RUNTIME + service(PAIR)).encode()), "in.yaml")
    good = json.loads(line)
    assert valid(good, SCHEMA)
    assert good["apiVersion"] == "postrender/v1alpha1"
    for path, wrong in [
        (("apiVersion",), "postrender/v2"),
        (("objects", 0, "line"), 0),
        (("objects", 0, "components", 0, "madeBy"), "me"),
        (("objects", 0, "components", 0, "instances"), True),
        (("objects", 0, "components", 0, "podGroups", 0, "minMember"), 1),
        (("objects", 0, "components", 0, "decisions", 0, "name"), "size"),
        (("objects", 0, "components", 0, "more"), None),
    ]:
        held = json.loads(line)
        inner = held
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = wrong
        assert not valid(held, SCHEMA), path


# -- the command -----------------------------------------------------------------------------------------------------


def told(text: str, wanted: str = "", form: str = "text", **flags: str) -> tuple[int, str, str]:
    target, errors = io.BytesIO(), io.StringIO()
    code = host.explain("-", wanted, form, flags, host.Streams(io.BytesIO(text.encode()), target, errors, False))
    return code, target.getvalue().decode(), errors.getvalue()


TWO = (
    service(PAIR).replace("{name: llm}", "{name: llm, namespace: a}")
    + "---\n"
    + service(PAIR).replace("{name: llm}", "{name: llm, namespace: b}")
    + "---\n"
    + REPLICA
)


@pytest.mark.parametrize(
    ("wanted", "heads"),
    [
        ("InferenceService/llm", ["InferenceService a/llm", "InferenceService b/llm"]),
        ("InferenceService/b/llm", ["InferenceService b/llm"]),
        ("inferenceservice/a/llm", ["InferenceService a/llm"]),
        ("inferenceservices/a/llm", ["InferenceService a/llm"]),
        ("isvc/a/llm", ["InferenceService a/llm"]),
        ("InferenceReplica/pool", ["InferenceReplica pool"]),
    ],
)
def test_an_object_by_name(wanted: str, heads: list[str]) -> None:
    code, shown, _ = told(TWO, wanted)
    assert code == 0
    assert [line.partition("  (")[0] for line in shown.splitlines() if line[:1].isupper()] == heads


@pytest.mark.parametrize(
    "wanted", ["InferenceService/none", "isvc/c/llm", "lws/llm", "llm", "/llm", "InferenceService/LLM"]
)
def test_an_object_that_is_not_there(wanted: str) -> None:
    here = "InferenceService/a/llm, InferenceService/b/llm, InferenceReplica/pool"
    assert told(TWO, wanted) == (1, "", f"postrender: error: --object: there is no {wanted}; there are {here}\n")


def test_an_object_where_there_is_none() -> None:
    code, shown, said = told("kind: ConfigMap\n", "isvc/llm")
    assert (code, shown, said) == (1, "", "postrender: error: --object: there is no isvc/llm; there are none at all\n")


def test_nothing_to_explain() -> None:
    assert told("kind: ConfigMap\n") == (
        0,
        "nothing here comes to a gang: no InferenceService, no InferenceReplica\n",
        "",
    )


def test_a_folder_is_explained_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each place is one in the file that it is in, and the runtime of one file is that of a service in another."""
    monkeypatch.chdir(tmp_path)
    Path("all").mkdir()
    texts = {
        "all/a.yaml": "# of a\n" + runtime("  engineConfig:\n    worker: {size: 3}\n    leader: {}\n"),
        "all/b.yaml": service("    labels: {}\n    topologyKey: rack\n"),
    }
    for name, text in texts.items():
        Path(name).write_text(text)
    shown = {}
    for form in ("text", "json", "html"):
        target = io.BytesIO()
        assert host.explain("all", "", form, {}, host.Streams(None, target, io.StringIO(), False)) == 0
        shown[form] = target.getvalue().decode()
    [subject] = json.loads(shown["json"])["objects"]
    assert (subject["file"], subject["line"], subject["column"]) == ("all/b.yaml", 1, 1)
    [component] = subject["components"]
    sources = {one["name"]: one["source"] for one in component["decisions"] if one["source"]}
    for name, file, value in (("workers", "all/a.yaml", "3"), ("topologyKey", "all/b.yaml", "rack")):
        source = sources[name]
        assert (source["file"], source["value"]) == (file, value)
        assert texts[file].split("\n")[source["line"] - 1][source["column"] - 1 :].startswith(value)
    for finding in subject["findings"]:
        assert finding["file"] in texts
    assert shown["text"].startswith("InferenceService llm  (all/b.yaml:1:1)\n")
    assert "<small>all/b.yaml line 1</small></h2>" in shown["html"]


def test_what_is_refused_ends_in_1() -> None:
    code, shown, said = told(NO_RUNTIME + service("    leader: {}\n    worker: {size: 0}\n"))
    assert (code, said) == (1, "")
    assert "  error:   <stdin>:" in shown


@pytest.mark.parametrize("form", ["text", "json", "html"])
def test_names_of_others_move_no_cursor(form: str) -> None:
    """A comment, and a scheduler's name, with what turns the writing round."""
    code, shown, _ = told(NO_RUNTIME + service('    schedulerName: "a\\u202eb\\e[31m"\n' + PAIR), form=form)
    assert code == 0
    assert not {"\u202e", "\x1b"} & set(shown)
    assert "a\\u202eb" in shown


# -- who imports what ------------------------------------------------------------------------------------------------

VIEWS = Path(view.__file__).parent
# What is decided is told in values; of rules a view knows none.
TELLING = {"reasons", "keys"}


@pytest.mark.parametrize("path", sorted(VIEWS.glob("*.py")), ids=lambda path: path.name)
def test_a_view_imports_no_rule(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            module = (node.module or "").split(".")
            assert "shapes" not in module
            if module[0] == "gangs":
                names = {module[1]} if len(module) > 1 else {alias.name for alias in node.names}
                assert names <= TELLING, f"{path.name} imports {names - TELLING}"
            assert module[0] not in ("pipeline", "manifests") or module == ["manifests", "change"], path.name


def test_findings_stand_with_their_object() -> None:
    text = NO_RUNTIME + service("    leader:\n      schedulerName: x\n    worker: {}\n")
    found = review.explain(text.encode())
    assert {finding.code for finding in found.subjects[0].findings} >= {"mixed-schedulers", "surge-without-spare"}
    assert [finding.code for finding in found.findings] == ["ome-not-said"]
    assert all(isinstance(finding, Finding) for finding in found.findings)
