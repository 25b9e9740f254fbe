"""The model by itself, on OME's own vectors and worked cases: what the property of the rules compares with."""

from __future__ import annotations

from typing import Any

import pytest

from tests.properties.model import DURATIONS, SECOND, expect, pod_group_name

LONG = "example-tenant-production-very-long-inference-service-name-v2"
PAIR: dict[str, Any] = {"leader": {}, "worker": {"size": 1}}
RAW, MULTINODE, OMENATIVE = ({"ome.io/deploymentMode": mode} for mode in ("RawDeployment", "MultiNode", "OMENative"))
# (base, component, index, name): the first three are in OME's tests, the rest is SHA-256 worked out beside.
NAMES = [
    ("llama", "engine", 3, "llama-engine-3"),
    ("llama-70b", "decoder", 1, "llama-70b-decoder-1"),
    ("llama-70b-instruct", "engine", 12, "llama-70b-instruct-engine-12"),
    ("x" * 54, "engine", 0, "x" * 54 + "-engine-0"),
    ("x" * 55, "engine", 0, "a2976adb-" + "x" * 45 + "-engine-0"),
    ("x" * 70, "engine", 12, "af2b1358-" + "x" * 44 + "-engine-12"),
    ("x" * 70, "engine", 13, "c935453f-" + "x" * 44 + "-engine-13"),
    (LONG, "engine", 0, "d1443aa7-roduction-very-long-inference-service-name-v2-engine-0"),
    (LONG, "decoder", 10, "e411c9fe-duction-very-long-inference-service-name-v2-decoder-10"),
    ("model-00-" + "y" * 50, "engine", 0, "a48c0f43-" + "y" * 45 + "-engine-0"),
    ("q" * 20 + "-" + "z" * 44, "engine", 0, "a6402499--" + "z" * 44 + "-engine-0"),
]
# (ready timeout, clamp, scheduleTimeoutSeconds)
CHART, SUBSECOND = ("60s", "600s"), ("500ms", "800ms")
TIMEOUTS: list[tuple[str | None, tuple[str, str] | None, int | None]] = [
    (None, CHART, 60), ("30s", CHART, 60), ("3m", CHART, 180), ("10m", CHART, 600), ("30m", CHART, 600),
    ("30m", None, 1800), (None, None, None), ("15m", None, 900), ("5m", None, 300), ("900ms", None, None),
    ("1.9s", None, 1), ("59.9s", CHART, 60), ("600.9s", CHART, 600), ("1.5h", None, 5400),
    ("30s", ("1500ms", "2500ms"), 2), ("500ms", ("1500ms", "2500ms"), 1), ("30m", SUBSECOND, 0), (None, SUBSECOND, 0),
    ("596523h14m7s", None, 2147483647), ("30m", ("60s", "60s"), 60), ("-900ms", CHART, 60), ("0s", None, None),
]  # fmt: skip
# Clamps that OME takes for none: (min, max)
NO_CLAMP = [
    (None, "600s"),
    ("60s", None),
    ("soon", "600s"),
    ("60s", "30"),
    ("0s", "600s"),
    ("60s", "-5m"),
    ("10m", "60s"),
]
# (leader, worker, seen as without a gang scheduler)
SCHEDULERS = [
    ("", "", True),
    ("default-scheduler", "x", True),
    ("default-scheduler", "", True),
    ("", "default-scheduler", True),
    ("x", "", False),
    ("x", "default-scheduler", False),
    ("", "x", False),
]
# name: (spec of the service, spec of its runtime, options, {PodGroup: (minMember, scheduleTimeoutSeconds)})
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any], dict[str, tuple[int, int | None]]]] = {
    "one Instance": ({"engine": {"minReplicas": 1, **PAIR}}, {"engineConfig": PAIR}, {}, {"svc-engine-0": (2, 600)}),
    "two Instances, 45m": (
        {"engine": {"minReplicas": 2, "lifecycle": {"instanceReadyTimeout": "45m"}, **PAIR}}, {"engineConfig": PAIR}, {},
        {"svc-engine-0": (2, 600), "svc-engine-1": (2, 600)},
    ),
    "5m": (
        {"engine": {"lifecycle": {"instanceReadyTimeout": "5m"}, **PAIR}}, {"engineConfig": PAIR}, {},
        {"svc-engine-0": (2, 300)},
    ),
    "0s hides the runtime's": (
        {"engine": {"lifecycle": {"instanceReadyTimeout": "0s"}, **PAIR}},
        {"engineConfig": {"lifecycle": {"instanceReadyTimeout": "5m"}, **PAIR}}, {}, {"svc-engine-0": (2, 600)},
    ),
    "all from the runtime": (
        {"engine": {}}, {"engineConfig": {"leader": {}, "worker": {"size": 3}}}, {}, {"svc-engine-0": (4, 600)},
    ),
    "no size anywhere": (
        {"engine": {"leader": {}, "worker": {}}}, {"engineConfig": {"leader": {}, "worker": {}}}, {},
        {"svc-engine-0": (2, 600)},
    ),
    "the service's size": ({"engine": {"worker": {"size": 5}}}, {"engineConfig": PAIR}, {}, {"svc-engine-0": (6, 600)}),
    "engine and decoder": (
        {"engine": PAIR, "decoder": {"leader": {}, "worker": {"size": 2}, "minReplicas": 2}}, {}, {},
        {"svc-engine-0": (2, 600), "svc-decoder-0": (3, 600), "svc-decoder-1": (3, 600)},
    ),
    "annotation RawDeployment": ({"engine": {"annotations": RAW, **PAIR}}, {}, {}, {}),
    "annotation MultiNode": ({"engine": {"annotations": MULTINODE, **PAIR}}, {}, {}, {}),
    "spec RawDeployment": ({"deploymentMode": "RawDeployment", "engine": PAIR}, {}, {}, {}),
    "spec OMENative, one pod": ({"deploymentMode": "OMENative", "engine": {}}, {}, {}, {}),
    "the runtime's annotation beats the service's spec": (
        {"deploymentMode": "RawDeployment", "engine": PAIR}, {"engineConfig": {"annotations": OMENATIVE}}, {},
        {"svc-engine-0": (2, 600)},
    ),
    "minReplicas 0": ({"engine": {"minReplicas": 0, **PAIR}}, {"engineConfig": {"minReplicas": 3}}, {}, {"svc-engine-0": (2, 600)}),
    "kustomize": ({"engine": PAIR}, {}, {"ome_install": "kustomize"}, {"svc-engine-0": (2, 1800)}),
    "no lifecycle": ({"engine": PAIR}, {}, {"ome_install": "none"}, {"svc-engine-0": (2, None)}),
    "a decoder that the service does not have": ({"engine": {}}, {"decoderConfig": PAIR}, {}, {}),
    "left to OME": ({"engine": PAIR}, {}, {"ome": "1.3"}, {}),
}  # fmt: skip


def service(spec: dict[str, Any]) -> dict[str, Any]:
    named = {"runtime": {"name": "rt"}, **spec}
    return {"kind": "InferenceService", "metadata": {"name": "svc", "namespace": "llm"}, "spec": named}


def runtime(spec: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "ClusterServingRuntime", "metadata": {"name": "rt"}, "spec": spec}


@pytest.mark.parametrize(("base", "component", "index", "name"), NAMES)
def test_names(base: str, component: str, index: int, name: str) -> None:
    assert pod_group_name(base, component, index) == name


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    spec, config, options, wanted = CASES[case]
    found = expect([service(spec), runtime(config)], [], options)
    assert not found.errors
    assert {
        group["metadata"]["name"]: (group["spec"]["minMember"], group["spec"].get("scheduleTimeoutSeconds"))
        for group in found.pod_groups
    } == wanted


@pytest.mark.parametrize(("ready", "clamp", "seconds"), TIMEOUTS)
def test_timeouts(ready: str | None, clamp: tuple[str, str] | None, seconds: int | None) -> None:
    spec = {"engine": {**PAIR, "lifecycle": {"instanceReadyTimeout": ready}}}
    bounds = dict(
        zip(("gang_timeout_min", "gang_timeout_max"), (DURATIONS[text] for text in clamp or ()), strict=False)
    )
    found = expect([service(spec), runtime({})], [], {"ome_install": "none", **bounds})
    assert found.pod_groups[0]["spec"].get("scheduleTimeoutSeconds") == seconds
    assert not found.errors


def test_a_timeout_no_int32_holds() -> None:
    spec = {"engine": {**PAIR, "lifecycle": {"instanceReadyTimeout": "596523h14m8s"}}}
    assert expect([service(spec), runtime({})], [], {}).errors


@pytest.mark.parametrize(("low", "high"), NO_CLAMP)
def test_clamps_that_are_none(low: str | None, high: str | None) -> None:
    values = {"ome": {"controller": {"lifecycle": {"gangScheduleTimeout": {"min": low, "max": high}}}}}
    found = expect([service({"engine": PAIR}), runtime({})], [], {"ome_values": values})
    assert found.pod_groups[0]["spec"]["scheduleTimeoutSeconds"] == 1800
    assert ("cluster-setting-invalid", "") in found.codes


@pytest.mark.parametrize(("lifecycle", "seconds", "said"), [
    (None, None, False),
    ('{"instanceReadyTimeout": "5m"}', 300, False),
    ('{"instanceReadyTimeout": "", "gangScheduleTimeout": {"min": "60s", "max": "600s"}}', 60, False),
    ('{"instanceReadyTimeout": "30", "gangScheduleTimeout": {"min": "60s", "max": "600s"}}', 60, True),
    ('{"instanceReadyTimeout": 30, "gangScheduleTimeout": {"min": "60s", "max": "600s"}}', None, True),
    ('{"instanceReadyTimeout": "5m", "gangScheduleTimeout": {"min": 60, "max": "600s"}}', None, True),
    ("instanceReadyTimeout: 5m", None, True),
])  # fmt: skip
def test_config_maps(lifecycle: str | None, seconds: int | None, said: bool) -> None:
    data = {} if lifecycle is None else {"lifecycle": lifecycle}
    held = {"kind": "ConfigMap", "metadata": {"name": "inferenceservice-config", "namespace": "ome"}, "data": data}
    found = expect([service({"engine": PAIR}), runtime({})], [held], {})
    assert found.pod_groups[0]["spec"].get("scheduleTimeoutSeconds") == seconds
    assert (("cluster-setting-invalid", "") in found.codes) == said


@pytest.mark.parametrize(("leader", "worker", "said"), SCHEDULERS)
def test_schedulers(leader: str, worker: str, said: bool) -> None:
    spec = {"engine": {"leader": {"schedulerName": leader}, "worker": {"schedulerName": worker}}}
    found = expect([service(spec), runtime({})], [], {"gang_scheduler": ("x",)})
    assert (("no-gang-scheduler", "InferenceService/llm/svc") in found.codes) == said


def test_the_order_of_scheduler_names() -> None:
    """Each rung hides what is below it; `leader` and `worker` of the runtime beat the service's component."""
    low = {"schedulerName": "top", "engineConfig": {**PAIR}}
    rungs: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
        ("top", PAIR, low),
        ("config", PAIR, {**low, "engineConfig": {"schedulerName": "config"}}),
        ("component", {"schedulerName": "component", **PAIR}, {**low, "engineConfig": {"schedulerName": "config"}}),
        ("runner", {"schedulerName": "component", **PAIR}, {"engineConfig": {"leader": {"schedulerName": "runner"}}}),
        ("own", {"leader": {"schedulerName": "own"}, "worker": {}},
         {"engineConfig": {"leader": {"schedulerName": "runner"}, "worker": {"schedulerName": "own"}}}),
    ]  # fmt: skip
    for name, engine, config in rungs:
        codes = expect([service({"engine": engine}), runtime(config)], [], {"gang_scheduler": (name,)}).codes
        assert "no-gang-scheduler" not in {code for code, _ in codes}, name


def test_a_group_field_by_field() -> None:
    engine = {"lifecycle": {"instanceReadyTimeout": "15m"}, "topologyKey": "network.example.com/fabric-domain",
              "leader": {}, "worker": {"size": 3}}  # fmt: skip
    owner = service({"engine": engine})
    owner["metadata"] = {"name": "llama-engine", "namespace": "prod-models"}
    found = expect([owner, runtime({})], [], {"ome_install": "none"})
    assert found.pod_groups == [{
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": "llama-engine-engine-0",
            "namespace": "prod-models",
            "labels": {"ome.io/inferenceservice": "llama-engine", "component": "engine",
                       "ome.io/managed-by": "OMENative", "ome.io/instance-index": "0"},
            "annotations": {"ome.io/topology-key": "network.example.com/fabric-domain",
                            "postrender/for": "InferenceService/llama-engine"},
        },
        "spec": {"minMember": 4, "scheduleTimeoutSeconds": 900},
    }]  # fmt: skip
    assert found.documents[:1] == found.pod_groups
    assert found.services == {
        ("prod-models", "llama-engine"): {
            ("spec", "engine", "labels", "scheduling.x-k8s.io/pod-group"): "llama-engine-engine-0"
        }
    }


def test_a_standalone_replica() -> None:
    runners = [{"name": "leader", "size": 1}, {"name": "worker", "size": 2}]
    spec = {"component": "engine", "runners": runners}
    found = expect([{"kind": "InferenceReplica", "metadata": {"name": "pool"}, "spec": spec}], [], {})
    assert [group["metadata"]["name"] for group in found.pod_groups] == ["pool-engine-0"]
    assert found.pod_groups[0]["metadata"]["labels"]["ome.io/inferenceservice"] == "pool"
    assert found.pod_groups[0]["spec"] == {"minMember": 3, "scheduleTimeoutSeconds": 600}


def test_the_table_of_durations_adds_up() -> None:
    assert DURATIONS["596523h14m7s"] == (596523 * 3600 + 14 * 60 + 7) * SECOND
    assert DURATIONS["1h30m"] == DURATIONS["1.5h"] == 90 * 60 * SECOND
