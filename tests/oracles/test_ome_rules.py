"""What we make of services for OME below 1.3, held against OME 1.2.2's own functions.

For each drawn service and runtime OME makes the same LeaderWorkerSets of our output as of the input, but for labels and
scheduler names; and a PodGroup is there for each group that has more than one pod, with its size.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from postrender import render
from postrender.options import Options
from tests.oracles.ome.client import Ome
from tests.properties.tally import FUZZ, SEED, Tally

DRAWS = min(FUZZ, 4_000) or 300
TALLY = Tally(f"OME 1.2.2, seed {SEED}")
SCHEDULER = "scheduler-plugins-scheduler"
POD_GROUP, GANG = "scheduling.x-k8s.io/pod-group", "postrender/gang"
MODE = "ome.io/deploymentMode"

NAMES = ("a", "svc", "a" * 24, "a" * 25, "a" * 23, "model-with-a-name-of-its-own-that-is-long", "x" * 45)
MODES = ("RawDeployment", "MultiNode", "OMENative", "Serverless", "")
SCHEDULERS = ("", "default-scheduler", "volcano", SCHEDULER)


@pytest.fixture(scope="module")
def ome() -> Iterator[Ome]:
    with Ome() as running:
        yield running


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), strategy)


@st.composite
def blocks(draw: st.DrawFn, sized: bool) -> dict[str, Any]:
    block: dict[str, Any] = {}
    if sized and (size := draw(optional(st.sampled_from((0, 1, 1, 2, 3, 7))))) is not None:
        block["size"] = size
    if (name := draw(optional(st.sampled_from(SCHEDULERS)))) is not None:
        block["schedulerName"] = name
    return block


@st.composite
def components(draw: st.DrawFn) -> dict[str, Any]:
    component: dict[str, Any] = {}
    if draw(st.integers(0, 2)):
        component["leader"] = draw(blocks(False))
    if draw(st.integers(0, 2)):
        component["worker"] = draw(blocks(True))
    if (replicas := draw(optional(st.sampled_from((0, 1, 1, 2, 3))))) is not None:
        component["minReplicas"] = replicas
    if (name := draw(optional(st.sampled_from(SCHEDULERS)))) is not None:
        component["schedulerName"] = name
    if draw(st.integers(0, 5)) == 0:
        component["annotations"] = {MODE: draw(st.sampled_from(MODES))}
    if draw(st.integers(0, 3)) == 0:
        component["labels"] = {"team": "a"}
    return component


@st.composite
def streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    spec: dict[str, Any] = {"model": {"name": "m"}, "runtime": {"name": "rt"}, "engine": draw(components())}
    runtime: dict[str, Any] = {"engineConfig": draw(components())}
    if draw(st.booleans()):
        spec["decoder"] = draw(components())
        runtime["decoderConfig"] = draw(components())
    if draw(st.booleans()):
        runtime["schedulerName"] = draw(st.sampled_from(SCHEDULERS))
    # Without something to run OME makes nothing of a pod.
    runner = {"name": "ome-container", "image": "i"}
    for component in (runtime.get("engineConfig"), runtime.get("decoderConfig"), spec["engine"], spec.get("decoder")):
        for part in (component, *((component or {}).get(key) for key in ("leader", "worker"))):
            if part is not None:
                part["runner"] = runner
    runtimes = [
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "ServingRuntime",
            "metadata": {"name": "rt", "namespace": "ml"},
            "spec": runtime,
        }
    ]
    if draw(st.booleans()):  # hidden by the namespace's
        other = {"engineConfig": {"leader": {}, "worker": {"size": 5}}}
        runtimes.append(
            {"apiVersion": "ome.io/v1beta1", "kind": "ClusterServingRuntime", "metadata": {"name": "rt"}, "spec": other}
        )
    service = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": draw(st.sampled_from(NAMES)), "namespace": "ml"},
        "spec": spec,
    }
    return [*runtimes, service]


def sets(ome: Ome, text: str) -> tuple[dict[str, dict[str, Any]], bool]:
    """Return the LeaderWorkerSets that OME makes, by component, and whether it panicked on the way."""
    made = ome.make(text)
    found = {component: one for component in ("engine", "decoder") if (one := made.set(component)) is not None}
    return found, any("panic" in str(error) or "nil pointer" in str(error) for error in made.errors.values())


def bare(found: dict[str, Any]) -> dict[str, Any]:
    """Return a set without the labels and scheduler names that we write.

    And without the annotation by which OME's webhook notes what it takes the service's own shape for; it chooses no
    mode, and a leader block with a scheduler's name beside a worker's changes it.
    """
    found = copy.deepcopy(found)
    template = found["spec"]["leaderWorkerTemplate"]
    for one in (found, template.get("leaderTemplate") or {}, template["workerTemplate"]):
        for key in (POD_GROUP, GANG):
            one.get("metadata", {}).get("labels", {}).pop(key, None)
        one.get("metadata", {}).get("annotations", {}).pop(MODE, None)
    for key in ("leaderTemplate", "workerTemplate"):
        (template.get(key) or {}).get("spec", {}).pop("schedulerName", None)
    return found


def schedulers(found: dict[str, Any]) -> list[str]:
    template = found["spec"]["leaderWorkerTemplate"]
    return [
        (template.get(key) or template["workerTemplate"])["spec"].get("schedulerName", "")
        for key in ("leaderTemplate", "workerTemplate")
    ]


@seed(SEED)
@settings(max_examples=DRAWS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(streams(), st.sampled_from(("policy", "whole")), st.booleans())
def test_ome_makes_the_same_sets(ome: Ome, stream: list[dict[str, Any]], how: str, fill: bool) -> None:
    text = "---\n".join(json.dumps(one) + "\n" for one in stream)
    before, panics = sets(ome, text)
    made = render(text.encode(), Options(ome="1.2.2", replicas=how, scheduler_name=SCHEDULER if fill else ""))
    codes = {finding.code for finding in made.findings if finding.severity == "error"}
    TALLY.add("draws")
    assert panics == ("leader-without-worker" in codes), codes
    if codes:
        assert codes == {"leader-without-worker"}
        TALLY.add("OME panics")
        return
    documents = [one for one in yaml.safe_load_all(made.data) if one]
    groups = [one for one in documents if one["kind"] == "PodGroup"]
    after, _ = sets(ome, "---\n".join(json.dumps(one) + "\n" for one in documents if one["kind"] != "PodGroup"))
    assert {name: bare(one) for name, one in after.items()} == {name: bare(one) for name, one in before.items()}
    wanted = {}
    for component, one in before.items():
        size, replicas = one["spec"]["leaderWorkerTemplate"]["size"], one["spec"]["replicas"]
        if size <= 1 or replicas <= 0:
            assert after[component] == one
            continue
        name = one["metadata"]["name"]
        if how == "whole":
            wanted[name] = replicas * size
            labels = {POD_GROUP: name}
        else:
            wanted.update({f"{name}-{index}": size for index in range(replicas + 1)})
            labels = {POD_GROUP: "postrender-policy-missing", GANG: name}
        template = after[component]["spec"]["leaderWorkerTemplate"]
        for key in ("leaderTemplate", "workerTemplate"):
            held = template.get(key) or template["workerTemplate"]
            assert held["metadata"]["labels"].items() >= labels.items()
        was, now = schedulers(one), schedulers(after[component])
        for old, new in zip(was, now, strict=True):
            # OME writes default-scheduler where nobody wrote a name; one that was written stays.
            assert new == old or (fill and old == "default-scheduler")
        TALLY.add("gangs")
    assert {one["metadata"]["name"]: one["spec"]["minMember"] for one in groups} == wanted
