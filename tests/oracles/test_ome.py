"""OME 1.2.2 itself on what our rules say of it: names, sizes, what makes a LeaderWorkerSet and what makes a panic."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.oracles.client import OracleError
from tests.oracles.ome.client import Made, Object, Ome

POD_GROUP = "scheduling.x-k8s.io/pod-group"
RUNNER = {"runner": {"name": "server", "image": "sglang"}}
LEADER: Object = {"leader": RUNNER}
LONG = "a-very-long-inferenceservice-name"


def worker(**fields: Any) -> Object:
    return {"worker": {**RUNNER, **fields}}


PAIR: Object = {**LEADER, **worker(size=1)}


def stream(spec: Object, runtime: Object | None = None, name: str = "svc", **metadata: Any) -> str:
    """An InferenceService and the runtime it names, whose spec is given; JSON is YAML."""
    service = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": "team", **metadata},
        "spec": {"model": {"name": "m"}, "runtime": {"name": "rt"}, **spec},
    }
    its = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": "rt"},
        "spec": {"supportedModelFormats": [{"modelFormat": {"name": "safetensors"}}], **(runtime or {})},
    }
    return f"{json.dumps(service)}\n---\n{json.dumps(its)}\n"


@pytest.fixture(scope="module")
def ome() -> Iterator[Ome]:
    with Ome() as running:
        yield running


@pytest.fixture(params=["steps", "controller"])
def make(ome: Ome, request: pytest.FixtureRequest) -> Any:
    """Both ways of asking must say the same."""

    def made(*what: Any, **more: Any) -> Made:
        return ome.make(stream(*what, **more), reconcile=request.param == "controller")

    return made


def the_set(made: Made, component: str = "engine") -> Object:
    assert made.errors == {}
    found = made.set(component)
    assert found is not None
    return found


def templates(found: Object) -> tuple[Object, Object]:
    template = found["spec"]["leaderWorkerTemplate"]
    return template["leaderTemplate"], template["workerTemplate"]


def size(found: Object) -> int:
    return int(found["spec"]["leaderWorkerTemplate"]["size"])


@pytest.mark.parametrize(
    ("service", "component", "name"),
    [
        ("svc", "engine", "lws-svc-engine"),
        ("a" * 24, "engine", f"lws-{'a' * 24}-engine"),
        ("a" * 25, "engine", "lws-a3c20626-aaaaaaaaaaaaaaa-engine"),
        ("a" * 23, "decoder", f"lws-{'a' * 23}-decoder"),
        ("a" * 24, "decoder", "lws-ade79431-aaaaaaaaaaaaaa-decoder"),
        (LONG, "engine", "lws-a49edcaa-nceservice-name-engine"),
    ],
)
def test_name(make: Any, service: str, component: str, name: str) -> None:
    made = make({"engine": PAIR, component: PAIR}, name=service)
    assert the_set(made, component)["metadata"]["name"] == name
    assert the_set(made, component)["metadata"]["namespace"] == "team"


@pytest.mark.parametrize(
    ("engine", "runtime", "expected"),
    [
        ({**LEADER, **worker(size=3)}, {}, 4),
        ({**LEADER, **worker()}, {}, 1),  # unset, so no worker
        ({**LEADER, **worker(size=0)}, {}, 1),
        ({**LEADER, **worker(size=-1)}, {}, 0),
        ({"minReplicas": 1}, {**LEADER, **worker(size=2)}, 3),
        ({"worker": {"size": 5}}, {**LEADER, **worker(size=2)}, 6),
        ({"worker": {"size": 0}}, {**LEADER, **worker(size=2)}, 1),
        ({"worker": {}}, {**LEADER, **worker(size=2)}, 3),
    ],
)
def test_size(make: Any, engine: Object, runtime: Object, expected: int) -> None:
    made = make({"engine": engine}, {"engineConfig": runtime} if runtime else {})
    assert made.modes == {"engine": "MultiNode"}
    assert size(the_set(made)) == expected


@pytest.mark.parametrize(
    ("fields", "replicas"), [({}, 1), ({"minReplicas": 0}, 0), ({"minReplicas": 3, "maxReplicas": 5}, 3)]
)
def test_replicas(make: Any, fields: Object, replicas: int) -> None:
    # The webhook writes 1 into the service, so what the runtime says never counts.
    made = make({"engine": {**PAIR, **fields}}, {"engineConfig": {"minReplicas": 7}})
    assert the_set(made)["spec"]["replicas"] == replicas


@pytest.mark.parametrize("engine", [LEADER, {**RUNNER, "annotations": {"ome.io/deploymentMode": "MultiNode"}}])
def test_without_worker_it_panics(make: Any, engine: Object) -> None:
    made = make({"engine": engine})
    assert made.sets == []
    [error] = made.errors.values()
    assert error.startswith("panic: runtime error: invalid memory address or nil pointer dereference at ome@v1.2.2/")
    assert "/lws_reconciler.go:" in error


def test_a_worker_alone_makes_a_set(make: Any) -> None:
    made = make({"engine": {**RUNNER, "schedulerName": "of-the-component", **worker(size=2)}})
    leader, follower = templates(the_set(made))
    assert size(the_set(made)) == 3
    assert leader["spec"]["schedulerName"] == "of-the-component"
    assert follower["spec"]["schedulerName"] == "default-scheduler"


def test_labels_reach_both_templates(make: Any) -> None:
    labels = {POD_GROUP: "svc-engine"}
    made = make({"engine": {**PAIR, "labels": labels}, "decoder": PAIR}, {}, labels={"of": "the-service"})
    for template in (*templates(the_set(made)), the_set(made)):
        assert template["metadata"]["labels"].items() >= {**labels, "of": "the-service", "component": "engine"}.items()
    for template in templates(the_set(made, "decoder")):
        assert POD_GROUP not in template["metadata"]["labels"]


def test_scheduler_names_do_not_fill_downwards(make: Any) -> None:
    engine = {"schedulerName": "no", "leader": {**RUNNER, "schedulerName": "yes"}, **worker(size=1)}
    made = make({"engine": engine}, {"schedulerName": "no", "engineConfig": {"schedulerName": "no"}})
    assert [one["spec"]["schedulerName"] for one in templates(the_set(made))] == ["yes", "default-scheduler"]


@pytest.mark.parametrize(
    ("engine", "decoder", "modes"),
    [
        (RUNNER, None, {"engine": "RawDeployment"}),
        (
            {**RUNNER, **PAIR, "annotations": {"ome.io/deploymentMode": "RawDeployment"}},
            None,
            {"engine": "RawDeployment"},
        ),
        ({**PAIR, "annotations": {"ome.io/deploymentMode": "OMENative"}}, None, {"engine": "MultiNode"}),
        (
            RUNNER,
            {**PAIR, "annotations": {"ome.io/deploymentMode": "RawDeployment"}},
            {"engine": "RawDeployment", "decoder": "MultiNode"},
        ),
    ],
)
def test_mode(ome: Ome, engine: Object, decoder: Object | None, modes: dict[str, str]) -> None:
    made = ome.make(stream({"engine": engine, **({"decoder": decoder} if decoder else {})}))
    assert made.modes == modes
    for component, mode in modes.items():
        assert (made.set(component) is not None) is (mode == "MultiNode")
        assert (made.deployment(component) is not None) is (mode == "RawDeployment")


def test_a_virtual_deployment_is_nothing(make: Any) -> None:
    made = make({"engine": PAIR}, annotations={"ome.io/deploymentMode": "VirtualDeployment"})
    assert (made.sets, made.deployments, made.errors) == ([], [], {})


def test_runtime(ome: Ome) -> None:
    manifests = stream({"engine": {"minReplicas": 1}}, {"engineConfig": PAIR})
    assert ome.make(manifests).runtime == "ClusterServingRuntime/rt"
    local = {"supportedModelFormats": [], "engineConfig": {**LEADER, **worker(size=8)}}
    shadow = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ServingRuntime",
        "metadata": {"name": "rt", "namespace": "team"},
        "spec": local,
    }
    made = ome.make(f"{manifests}---\n{json.dumps(shadow)}\n")
    assert (made.runtime, size(the_set(made))) == ("ServingRuntime/rt", 9)
    assert ome.make(manifests.replace('"name": "rt"', '"name": "gone"', 1)).errors.keys() == {"runtime"}
    assert ome.make(stream({"engine": PAIR}, {"disabled": True})).errors.keys() == {"runtime"}


def test_with_a_model_both_ways_make_the_same_objects(ome: Ome) -> None:
    model = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterBaseModel",
        "metadata": {"name": "m"},
        "spec": {"modelFormat": {"name": "safetensors"}},
    }
    engine = {"minReplicas": 2, "labels": {"a": "b"}, "worker": {"size": 2}}
    runtime = {"nodeSelector": {"gpu": "h100"}, "engineConfig": PAIR, "decoderConfig": PAIR, "routerConfig": RUNNER}
    manifests = stream({"engine": engine, "decoder": {}, "router": {}}, runtime) + f"---\n{json.dumps(model)}\n"
    made = ome.make(manifests)
    assert made == ome.make(manifests, reconcile=True)
    assert made.modes == {"engine": "MultiNode", "decoder": "MultiNode", "router": "RawDeployment"}
    assert (len(made.sets), len(made.deployments), made.errors) == (2, 1, {})


def test_only_the_controller_wants_a_model(ome: Ome) -> None:
    manifests = stream({"engine": PAIR, "model": None})
    assert size(the_set(ome.make(manifests))) == 2
    made = ome.make(manifests, reconcile=True)
    assert (made.sets, made.errors) == ([], {"reconcile": "model reference is required"})


def test_other_documents_are_not_read(ome: Ome) -> None:
    other = "apiVersion: v1\nkind: InferenceService\nmetadata: 7\n---\n# nothing\n---\n"
    assert ome.make(other + stream({"engine": PAIR})) == ome.make(stream({"engine": PAIR}))


def test_unknown_fields(ome: Ome) -> None:
    made = ome.make(stream({"engine": {**PAIR, "topologyKey": "zone"}}))
    assert made.unknown_fields == ['InferenceService: unknown field "spec.engine.topologyKey"']
    assert the_set(made)


@pytest.mark.parametrize(
    ("manifests", "message"),
    [
        ("", "no InferenceService"),
        (stream({"engine": PAIR}) + "---\n" + stream({"engine": PAIR}), "more than one InferenceService"),
        (stream({"engine": {**PAIR, "labels": {"a": True}}}), "cannot unmarshal bool"),
        (stream({"engine": {**PAIR, "minReplicas": "1"}}), "cannot unmarshal string"),
        (stream({"engine": PAIR}) + "---\n" + stream({}).partition("---")[2], '"rt" already exists'),
        ("a: *x", "unknown anchor"),
    ],
)
def test_what_cannot_be_asked(ome: Ome, manifests: str, message: str) -> None:
    with pytest.raises(OracleError, match=message):
        ome.make(manifests)
    assert ome.make(stream({"engine": PAIR})).errors == {}


def test_hundreds_take_seconds(ome: Ome) -> None:
    began = time.monotonic()
    for i in range(300):
        assert size(the_set(ome.make(stream({"engine": {**LEADER, **worker(size=i)}}, name=f"svc-{i}")))) == i + 1
    assert time.monotonic() - began < 30


def test_no_binary(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^run 'make e2e' once: it builds \.programs/bin/ome-oracle$"):
        Ome(tmp_path / "ome-oracle")


def test_a_crash_is_no_refusal(tmp_path: Path) -> None:
    crashing = tmp_path / "ome-oracle"
    crashing.write_text("#!/bin/sh\nread line\nexit 3\n")
    crashing.chmod(0o755)
    with Ome(crashing) as ome, pytest.raises(RuntimeError, match=r"exit code 3\) on 'x'"):
        ome.make("x")
