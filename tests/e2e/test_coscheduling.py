"""The model of Coscheduling that stands for the scheduler where there is no cluster says what the real one does.

Worlds are played side by side, each on nodes of its own, so that their gangs also come between each other in the queue.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.scheduling.coscheduling import Coscheduling, Pod, State, World
from tests.scheduling.worlds import SEEDS, worlds

from .cluster import Cluster, ClusterError
from .cluster.api import Object
from .test_cluster import GANGS, create, pod, podgroup, stays


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    # A pod that waits at Permit for one that never comes there keeps others from its node that long, again and again.
    parts = ("etcd", "apiserver", "controller-manager", "scheduler", "kwok")
    with Cluster(parts=parts, coscheduling={"permitWaitingTimeSeconds": 1}) as running:
        yield running


@pytest.fixture
def namespaces(cluster: Cluster) -> Iterator[dict[str, str]]:
    """The namespaces of the worlds, by the names they have there."""
    made = {name: cluster.namespace() for name in ("a", "b")}
    yield made
    for name in made.values():
        cluster.discard(name)


class Played:
    """A world on the cluster, and how it may end."""

    def __init__(self, cluster: Cluster, namespaces: dict[str, str], name: str, world: World) -> None:
        self.cluster, self.namespaces, self.name, self.world = cluster, namespaces, name, world
        self.nodes = [cluster.create_nodes(1, gpus, {"world": name})[0] for gpus in world.nodes]
        self.pods = {f"{name}-{number}": one for number, one in enumerate(world.pods)}
        self.model = Coscheduling(world)
        self.ends = self.model.rests()

    def furnish(self) -> None:
        """Create what is there before."""
        for (space, group), members in self.world.groups.items():
            spec = {"minMember": members} if members else {}
            create(self.cluster, self.namespaces[space], podgroup(f"{self.name}-{group}", **spec))
        self.create(bound=True)

    def create(self, bound: bool) -> None:
        """Create the pods that are bound, or those that are not."""
        for name, one in self.pods.items():
            if bound == (one.node is not None):
                create(self.cluster, self.namespaces[one.namespace], self.manifest(name, one))

    def manifest(self, name: str, one: Pod) -> Object:
        group = f"{self.name}-{one.group}" if one.group else None
        made: Object = pod(name, GANGS if one.gangs else "default-scheduler", group, one.gpus)
        made["spec"]["nodeSelector"] = {"world": self.name}
        if one.node is not None:
            made["spec"]["nodeName"] = self.nodes[one.node]
        if one.gated:
            made["spec"]["schedulingGates"] = [{"name": "example.com/gate"}]
        return made

    def state(self, there: dict[str, Object]) -> State:
        """Return which pods are where."""
        names = [there[name]["spec"].get("nodeName") for name in self.pods]
        return self.model.state([self.nodes.index(name) if name else None for name in names])


def unheard(pods: dict[str, Object]) -> list[str]:
    """Return the pods without a node of which the scheduler has not yet said why."""
    waiting = {name: one for name, one in pods.items() if not one["spec"].get("nodeName")}
    return [name for name, one in waiting.items() if "PodScheduled" not in str(one["status"].get("conditions"))]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_model_says_what_the_scheduler_does(cluster: Cluster, namespaces: dict[str, str], seed: int) -> None:
    played = [Played(cluster, namespaces, f"world-{seed}-{number}", one) for number, one in enumerate(worlds(seed))]
    cluster.wait_nodes([node for one in played for node in one.nodes], 60)
    # What is bound is seen first, or a pod could be put where there is no room any more.
    for one in played:
        one.furnish()
    with cluster.part("scheduler").paused():  # so that all are there when it begins
        for one in played:
            one.create(bound=False)

    def pods() -> dict[str, Object]:
        there = [one for namespace in namespaces.values() for one in cluster.list("pods", namespace)]
        return {one["metadata"]["name"]: one for one in there}

    def wrong() -> list[str]:
        there = pods()
        told = [f"{one.world} ends as {state}" for one in played if (state := one.state(there)) not in one.ends]
        return told or unheard(there)

    with contextlib.suppress(ClusterError):
        cluster.wait(lambda: not wrong(), 60, "each world to end as the model says")
    found = wrong()
    assert not found, "\n".join(found)

    def states() -> list[State]:
        there = pods()
        return [one.state(there) for one in played]

    ended = states()
    stays(cluster, lambda: states() == ended, 3)
