"""What Coscheduling makes of what we write, by its model: no gang ends with a part of its pods bound.

Streams are for OME below 1.3. The pods are those that OME 1.2.2 and LeaderWorkerSet make of the rendered services: the
service's block over the runtime's, field by field; the component's labels on leader and workers of every replica.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import yaml

from postrender import render
from postrender.options import Options
from tests.properties.tally import FUZZ, SEED, Tally
from tests.scheduling.coscheduling import Coscheduling, Pod, World
from tests.scheduling.worlds import SEEDS, WRONG, worlds

Object = dict[str, Any]
DRAWS = FUZZ or 60
OME = "ome.io/v1beta1"
GANGS = "scheduler-plugins-scheduler"
POD_GROUP, GANG = "scheduling.x-k8s.io/pod-group", "postrender/gang"
COMPONENTS = {"engine": "engineConfig", "decoder": "decoderConfig"}


class Drawn(NamedTuple):
    """A stream, how its replicas are told apart, and the GPUs of the nodes."""

    stream: list[Object]
    how: str
    nodes: list[int]


def drawn(chance: random.Random) -> Drawn:
    """Return a stream, with room for half of its pods or more."""
    homes = chance.sample(
        [("svc", "a"), ("svc", "b"), ("a-service-with-a-name-of-its-own", "a")], chance.choice((1, 2))
    )
    how = chance.choice(("", "policy", "policy", "whole"))
    stream: list[Object] = []
    gpus = 0
    for name, namespace in homes:
        spec: Object = {"model": {"name": "m"}, "runtime": {"name": name}}
        runtime: Object = {}
        for component in ("engine", "decoder")[: chance.choice((1, 1, 1, 2))]:
            leader, worker = chance.choice(((2, 2), (4, 4), (4, 2)))
            size = chance.choice((1, 1, 2))
            replicas = chance.choice((1, 2)) if how and len(homes) == 1 else 1
            runtime[COMPONENTS[component]] = {
                "leader": block(leader),
                "worker": {**block(worker), "size": chance.choice((size, 3))},
            }
            spec[component] = {"minReplicas": replicas, "worker": {"size": size}}
            if chance.random() < 0.3:
                spec[component]["leader"] = {"schedulerName": GANGS}
            gpus += replicas * (leader + size * worker)
        metadata = {"name": name, "namespace": namespace}
        stream.append({"apiVersion": OME, "kind": "ServingRuntime", "metadata": metadata, "spec": runtime})
        stream.append({"apiVersion": OME, "kind": "InferenceService", "metadata": metadata, "spec": spec})
    return Drawn(stream, how, [4] * max(1, gpus // 8 + chance.choice((0, 1, 2, 3))))


def block(gpus: int) -> Object:
    return {"runner": {"name": "it", "image": "it", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}}


def pods(documents: list[Object], how: str) -> Iterator[Pod]:
    """Yield what OME and LeaderWorkerSet make of the services, under our policy where it is asked for."""
    runtimes = {place(one): one["spec"] for one in documents if one["kind"] == "ServingRuntime"}
    for service in documents:
        if service["kind"] != "InferenceService":
            continue
        for component, config in COMPONENTS.items():
            own = service["spec"].get(component)
            if own is None:
                continue
            base = runtimes[place(service)][config]
            leader, worker = ({**base[part], **own.get(part, {})} for part in ("leader", "worker"))
            labels = own.get("labels", {})
            for replica in range(own["minReplicas"]):
                group = f"{labels[GANG]}-{replica}" if GANG in labels else labels.get(POD_GROUP, "")
                instance = "/".join((*place(service), component, *([] if how == "whole" else [str(replica)])))
                for part in (leader, *[worker] * worker["size"]):
                    gpus = int(part["runner"]["resources"]["limits"]["nvidia.com/gpu"])
                    gangs = part.get("schedulerName") == GANGS
                    yield Pod(service["metadata"]["namespace"], gpus, group, gangs, instance=instance)


def place(one: Object) -> tuple[str, str]:
    return one["metadata"]["namespace"], one["metadata"]["name"]


def world(documents: list[Object], one: Drawn) -> World:
    groups = {place(found): found["spec"]["minMember"] for found in documents if found["kind"] == "PodGroup"}
    return World(one.nodes, groups, [*pods(documents, one.how)])


def halves(of: World) -> tuple[bool, bool]:
    """Return whether a gang may end with a part of its pods bound, and whether one must wait."""
    whole = Counter(pod.instance for pod in of.pods)
    model = Coscheduling(of)
    partial = waits = False
    for state in model.rests():
        bound: Counter[str] = Counter()
        for pod, count in model.bound(state).items():
            bound[pod.instance] += count
        partial |= any(0 < bound[name] < count for name, count in whole.items())
        waits |= any(not bound[name] for name in whole)
    return partial, waits


def rendered(one: Drawn) -> list[Object]:
    data = "---\n".join(json.dumps(document) + "\n" for document in one.stream).encode()
    made = render(data, Options(ome="1.2", scheduler_name=GANGS, replicas=one.how))
    assert made.data, made.findings
    return [*yaml.safe_load_all(made.data)]


DRAWN = [drawn(random.Random(f"{SEED}-{number}")) for number in range(DRAWS)]
TALLY = Tally(f"gangs under Coscheduling, seed {SEED}")


@pytest.fixture(scope="module")
def made() -> list[World]:
    return [world(rendered(one), one) for one in DRAWN]


def test_no_gang_is_bound_in_part(made: list[World]) -> None:
    for one in made:
        partial, waits = halves(one)
        assert not partial, one
        TALLY.add("a gang may wait" if waits else "all are bound")
    assert min(TALLY.under("a gang may wait"), TALLY.under("all are bound")) >= DRAWS // 6


def as_they_came(_: World, one: Drawn) -> World:
    return world(one.stream, one)


def without_label(of: World, _: Drawn) -> World:
    return of._replace(pods=[pod._replace(group="") for pod in of.pods])


def without_scheduler(of: World, _: Drawn) -> World:
    return of._replace(pods=[pod._replace(gangs=False) for pod in of.pods])


def without_min_member(of: World, _: Drawn) -> World:
    return of._replace(groups=dict.fromkeys(of.groups, 0))


def of_one_pod_less(of: World, _: Drawn) -> World:
    return of._replace(groups={key: count - 1 for key, count in of.groups.items()})


@pytest.mark.parametrize("take", [as_they_came, without_label, without_scheduler, without_min_member, of_one_pod_less])
def test_without_each_of_it_one_is(made: list[World], take: Callable[[World, Drawn], World]) -> None:
    assert any(halves(take(of, one))[0] for of, one in zip(made, DRAWN, strict=True))


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_the_real_scheduler_tells_the_model_from_a_wrong_one(wrong: type[Coscheduling]) -> None:
    """A world that is played on it (tests/e2e) never ends as the wrong one says."""
    played = [one for number in SEEDS for one in worlds(number)]
    assert any(wrong(one).rests().isdisjoint(Coscheduling(one).rests()) for one in played)
