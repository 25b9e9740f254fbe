"""What is kept of a cluster: all that planning reads, and no more; and what is said where something may not be read."""

from __future__ import annotations

import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from postrender import pipeline
from postrender.cluster import client, server, snapshot
from postrender.gangs import resources
from postrender.gangs.world import World
from postrender.manifests.objects import View
from postrender.manifests.write import block
from postrender.options import Options, Source

ROOT = pathlib.Path(__file__).parents[2]
Json = dict[str, Any]
RESOURCES = {
    one.kind: one
    for one in (
        server.SERVICES,
        server.REPLICAS,
        server.RUNTIMES,
        server.CLUSTER_RUNTIMES,
        server.CONFIG_MAPS,
        server.SETS,
    )
}


class Fake:
    """A cluster as a table: what is at each path, or the status that its API server answers with."""

    name = "the cluster 'fake'"

    def __init__(self, held: dict[str, Any]) -> None:
        self.held: dict[str, Any] = {
            "/version": {"gitVersion": "v1.34.4"},
            "/api": {"versions": ["v1"]},
            "/apis": {"groups": []},
            **held,
        }
        self.asked: list[str] = []

    def get(self, path: str, query: dict[str, str | int] | None = None) -> Json:
        self.asked.append(path)
        found = self.held.get(path, 404)
        if isinstance(found, int):
            raise client.Refused(found, "", "no")
        return found  # type: ignore[no-any-return]

    def pages(self, path: str, query: dict[str, str | int] | None = None) -> Iterator[Json]:
        yield from self.get(path, query)["items"]


def taken(held: dict[str, Any], namespace: str = "") -> snapshot.Snapshot:
    return snapshot.take(server.Server(Fake(held)), namespace, "ome")


def cluster_document(held: dict[str, Any]) -> Json:
    found: Json = next(yaml.safe_load_all(taken(held).data))
    return found


OME = {"groups": [{"versions": [{"groupVersion": "ome.io/v1beta1"}]}]}
MANAGERS = "/apis/apps/v1/namespaces/ome/deployments"


def served(*kinds: str) -> dict[str, Any]:
    resources = [{"name": kind.lower() + "s", "kind": kind} for kind in kinds]
    return {"/apis": OME, "/apis/ome.io/v1beta1": {"resources": [*resources, {"name": "x/status", "kind": "X"}]}}


def deployed(image: str) -> dict[str, Any]:
    spec = {"template": {"spec": {"containers": [{"image": image}]}}}
    return {MANAGERS: {"items": [{"metadata": {"name": "m"}, "spec": spec}]}}


@pytest.mark.parametrize(
    ("image", "kinds", "expected", "notes"),
    [
        ("ghcr.io/moirai-internal/ome-manager:v1.2.1", (), "1.2.1", 0),
        ("ome-manager:v1.3.0", ("InferenceReplica",), "1.3.0", 0),
        ("registry:5000/ome-manager:v1.3.0-rc1@sha256:abc", (), "1.3.0-rc1", 0),
        ("registry:5000/ome-manager", ("InferenceReplica",), "1.3", 1),
        ("ome-manager:latest", ("InferenceService",), "1.2", 1),
    ],
)
def test_which_ome_it_is(image: str, kinds: tuple[str, ...], expected: str, notes: int) -> None:
    held = {**served(*kinds), **deployed(image)}
    assert cluster_document(held)["spec"]["omeVersion"] == expected
    assert len([note for note in taken(held).notes if "taken for" in note]) == notes


def test_no_ome_no_version() -> None:
    found = taken({})
    assert yaml.safe_load(found.data) == {
        "apiVersion": "postrender/v1alpha1",
        "kind": "Cluster",
        "spec": {"kubernetesVersion": "v1.34.4", "apiVersions": ["v1"]},
    }
    assert found.kubernetes == "1.34"
    assert [note.partition(" ")[0] for note in found.notes] == [
        "clusterservingruntimes.ome.io",
        "servingruntimes.ome.io",
        "no",
    ]


def test_kinds_are_listed_of_the_groups_that_matter() -> None:
    held = served("InferenceService")
    held["/apis"] = {"groups": [*OME["groups"], {"versions": [{"groupVersion": "apps/v1"}]}]}
    assert cluster_document(held)["spec"]["apiVersions"] == [
        "apps/v1",
        "ome.io/v1beta1",
        "ome.io/v1beta1/InferenceService",
        "v1",
    ]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/apis/ome.io/v1beta1/clusterservingruntimes", "may not list clusterservingruntimes.ome.io;"),
        ("/apis/ome.io/v1beta1/servingruntimes", "may not list servingruntimes.ome.io in all namespaces;"),
        (MANAGERS, "may not list deployments.apps in the namespace 'ome';"),
        ("/api/v1/namespaces/ome/configmaps/inferenceservice-config", "may not get configmaps in the namespace 'ome';"),
        ("/apis", "may not get /apis; bind the ClusterRole system:discovery"),
    ],
)
def test_the_right_that_is_missing_is_named(path: str, words: str) -> None:
    held = {**served("InferenceService"), **deployed("x:v1.3")}
    with pytest.raises(server.Denied) as caught:
        taken({**held, path: 403})
    assert words in str(caught.value)
    with pytest.raises(server.Denied, match=r"does not know who you are \(401\)"):
        taken({**held, path: 401})
    with pytest.raises(client.Unreachable):
        taken({**held, path: 503})


def test_a_namespace_narrows_what_is_read() -> None:
    fake = Fake(served("ServingRuntime"))
    snapshot.take(server.Server(fake), "llm", "ome")
    assert "/apis/ome.io/v1beta1/namespaces/llm/servingruntimes" in fake.asked
    assert "/apis/ome.io/v1beta1/servingruntimes" not in fake.asked
    assert not [path for path in fake.asked if "secret" in path]


def test_what_is_kept() -> None:
    whole = {
        "metadata": {
            "name": "rt",
            "namespace": "llm",
            "uid": "u",
            "managedFields": [{}],
            "annotations": {"ome.io/inherit-from": "base", "mine": "secret"},
        },
        "spec": {
            "engineConfig": {
                "leader": {},
                "worker": {"size": 3, "runner": {"image": "secret"}},
                "labels": {"team": "secret", "scheduling.x-k8s.io/pod-group": "yes"},
            },
            "containers": [{"env": [{"value": "secret"}]}],
        },
    }
    assert snapshot.document(server.RUNTIMES, whole).decode() == (
        "apiVersion: ome.io/v1beta1\nkind: ServingRuntime\n"
        "metadata:\n  name: rt\n  namespace: llm\n  annotations:\n    ome.io/inherit-from: base\n"
        "spec:\n  engineConfig:\n    leader: {}\n    worker:\n      size: 3\n"
        '    labels:\n      scheduling.x-k8s.io/pod-group: "yes"\n'
    )


def test_lists_are_written_as_lists() -> None:
    value = (("a", [1, "yes", (), [], (("b", 2), ("c", (("d", 3),))), [4, [5]], True, 1.5]), ("e", []))
    text = block(value, 0, "\n")
    expected = {"a": [1, "yes", {}, [], {"b": 2, "c": {"d": 3}}, [4, [5]], True, 1.5], "e": []}
    assert yaml.safe_load(text) == expected


# Planning with what is kept is planning with the whole.

CASES = ROOT / "tests/cases/plan"
# Some of the cases: they differ in what is written, and all of it is read the same way.
INPUTS = sorted(CASES.rglob("input.yaml"))[::6] + sorted((ROOT / "examples").glob("*/input.yaml"))
CONTEXTS = sorted(CASES.rglob("context.yaml"))[::6]
OPTIONS = [
    Options(),
    Options(ome="1.2", replicas="policy"),
    Options(ome="1.3", scheduler_name="s", leaderworkersets=True),
    Options(ome="1.2", leaderworkersets=True, namespace="ns"),
]


def objects_of(path: pathlib.Path) -> list[Json]:
    """The objects of a stream as an API server would hand them out; none where it would not take them."""
    try:
        found = list(yaml.safe_load_all(path.read_bytes()))
    except yaml.YAMLError:
        return []
    kinds = [one for one in found if isinstance(one, dict) and isinstance(one.get("metadata"), dict)]
    if len(kinds) != len([one for one in found if one]):
        return []
    return kinds if all(json_safe(one) for one in kinds) else []


def json_safe(one: Json) -> bool:
    try:
        return bool(json.loads(json.dumps(one)) == one)
    except TypeError:
        return False


def stream(found: list[Json], reduced: bool) -> bytes:
    def text(one: Json) -> bytes:
        resource = RESOURCES.get(str(one.get("kind")))
        group = str(one.get("apiVersion", "")).partition("/")[0]
        if reduced and resource is not None and group in (resource.group, "v1"):
            return snapshot.document(resource, one)
        return json.dumps(one).encode() + b"\n"

    return b"---\n".join(text(one) for one in found)


def planned(data: bytes, options: Options) -> object:
    found = pipeline.read(data, options)
    plan = pipeline.decide(found, options)
    findings = [(one.code, one.message, one.ref, one.field) for one in (*found.findings, *plan.findings)]
    gangs = [
        (one.name, one.min_member, one.schedule_timeout_seconds, one.topology_key)
        for decided in plan.decided
        for one in decided.gangs
    ]
    return (
        findings,
        gangs,
        [change._replace(spot=None) if hasattr(change, "spot") else change.value for change in plan.changes],
    )


def test_what_is_kept_plans_as_the_whole() -> None:
    compared = ganged = 0
    for path in INPUTS:
        found = objects_of(path)
        for options in OPTIONS if found else ():
            whole, kept = (planned(stream(found, reduced), options) for reduced in (False, True))
            # A message may name the line of another object.
            assert lineless(kept) == lineless(whole), (path, options)
            compared += 1
            ganged += bool(whole[1])  # type: ignore[index]
    assert compared > 100
    assert ganged > 30


def lineless(value: object) -> str:
    return re.sub(r"on line \d+", "on line N", repr(value))


def test_all_that_is_read_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each field that reading the cases asks for, whether it is there or not, stands in the table."""
    asked: dict[str, set[tuple[str, ...]]] = {}
    kind = ""
    read, value = resources.read, View._value

    def reading(span: int, item: Any, file: int = 0) -> Any:
        nonlocal kind
        kind = item.kind
        return read(span, item, file)

    def asking(view: View, key: str) -> Any:
        path = tuple(re.sub(r"\[\d+\]$", "", one) for one in (*view.path, key))
        asked.setdefault(kind, set()).add(path)
        return value(view, key)

    monkeypatch.setattr(resources, "read", reading)
    monkeypatch.setattr(View, "_value", asking)
    for path in sorted(CASES.rglob("*.yaml")):
        if path.name in ("input.yaml", "context.yaml"):
            # As the stream and as a context, where other kinds are read.
            pipeline.read(path.read_bytes(), Options(leaderworkersets=True))
            reader = pipeline.Reader(path.read_bytes(), 1, "context.yaml")
            list(reader.read(range(len(reader.spans))))
    assert asked.keys() >= snapshot.FIELDS.keys()
    for name, fields in snapshot.FIELDS.items():
        for path_ in asked[name] - {("metadata", "generateName")}:  # no object in a cluster has that alone
            held: Any = fields
            for key in path_:
                assert key in held, (name, path_)
                held = held[key]
                if held is None:
                    break


def test_what_is_kept_of_runtimes_is_a_context_like_the_whole() -> None:
    compared = ganged = 0
    for path in CONTEXTS:
        found, data = objects_of(path), path.with_name("input.yaml").read_bytes()
        for options in OPTIONS if found else ():
            both = [
                planned(data, options._replace(context=(Source("context.yaml", stream(found, reduced)),)))
                for reduced in (False, True)
            ]
            assert lineless(both[0]) == lineless(both[1]), path
            compared += 1
            ganged += bool(both[0][1])  # type: ignore[index]
    assert compared > 100
    assert ganged > 30


def test_a_disabled_runtime_is_kept_as_such() -> None:
    """A context that is whole tells that a component is single-pod, if no runtime that OME could choose says more."""
    spec = {"disabled": True, "engineConfig": {"leader": {}, "worker": {"size": 1}}}
    held = served("ClusterServingRuntime")
    service = b"{apiVersion: ome.io/v1beta1, kind: InferenceService, metadata: {name: a}, spec: {engine: {}}}"
    for disabled, codes in ((True, []), (False, ["gang-unknown"])):
        items = [{"metadata": {"name": "rt"}, "spec": {**spec, "disabled": disabled}}]
        data = taken({**held, "/apis/ome.io/v1beta1/clusterservingruntimes": {"items": items}}).data
        options = Options(ome="1.3", context=(Source("context.yaml", data),))
        plan = pipeline.decide(pipeline.read(service, options), options)
        assert [one.code for one in plan.findings] == codes


def test_a_world_reads_the_document() -> None:
    held = {**served("InferenceReplica"), **deployed("x:v1.3.0")}
    held["/apis"] = {"groups": [*OME["groups"], {"versions": [{"groupVersion": "scheduling.x-k8s.io/v1alpha1"}]}]}
    held["/apis/scheduling.x-k8s.io/v1alpha1"] = {"resources": [{"name": "podgroups", "kind": "PodGroup"}]}
    options = Options(context=(Source("context.yaml", taken(held).data),))
    reader = pipeline.Reader(options.context[0].data, 1, "context.yaml")
    world = World(reader.read(range(len(reader.spans))), options)
    assert world.ome == (1, 3)
    assert world.whole
    assert world.serves_pod_groups
    assert world.ome_makes_pod_groups
