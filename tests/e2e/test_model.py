"""The model of the PodGroup controller that the reconciler's tests stand on says what the real one does.

Pods are moved one phase at a time, by hand: nobody places them, so nobody else has a say in it.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from tests.reconciler.controller import step

from .cluster import Cluster, ClusterError
from .cluster.api import Object
from .test_cluster import create, pod, podgroup

GROUPS, STEPS = 16, 12
PHASES = ("Pending", "Running", "Running", "Succeeded", "Failed")


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(parts=("etcd", "apiserver", "podgroup-controller")) as running:
        yield running


class History:
    """A PodGroup, its pods' phases, and what the model makes of them."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name, self.chance = name, chance
        self.min_member = chance.randint(1, 3)
        self.pods: dict[str, str] = {}
        self.phase, self.counts = "", {}

    def look(self) -> None:
        """Let the model look until nothing changes."""
        while True:
            phase, counts = step(self.phase, [*self.pods.values()], self.min_member)
            self.counts = self.counts if counts is None else counts
            if phase == self.phase:
                return
            self.phase = phase

    def go_on(self, cluster: Cluster, namespace: str) -> None:
        """Make a pod, end one, or give one another phase."""
        deed = self.chance.choice(["make", "end", "move", "move", "move"])
        if not self.pods or (deed == "make" and len(self.pods) < 4):
            name = f"{self.name}-{len(self.pods)}-{self.chance.randrange(10**6)}"
            create(cluster, namespace, pod(name, "nobody", self.name))
            self.pods[name] = "Pending"
            return
        name = self.chance.choice(sorted(self.pods))
        if deed == "end" and len(self.pods) > 1:
            cluster.api.delete("pods", name, namespace, gracePeriodSeconds="0")
            del self.pods[name]
            return
        self.pods[name] = self.chance.choice(PHASES)
        cluster.api.patch("pods", name, {"status": {"phase": self.pods[name]}}, namespace, "status")

    def agrees(self, status: Object) -> bool:
        """Whether the real status is what the model says."""
        counted = {name: status.get(name, 0) for name in self.counts}
        return (status.get("phase", ""), counted) == (self.phase, self.counts)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_model_says_what_the_controller_does(cluster: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    namespace = cluster.namespace()
    histories = [History(f"gang-{seed}-{number}", chance) for number in range(GROUPS)]
    create(cluster, namespace, *(podgroup(one.name, minMember=one.min_member) for one in histories))

    def wrong() -> list[str]:
        real = {one["metadata"]["name"]: one.get("status", {}) for one in cluster.list("podgroups", namespace)}
        return [
            f"{one.name} of {one.min_member}, {sorted(one.pods.values())}: {one.phase} {one.counts}, not {real[one.name]}"
            for one in histories
            if not one.agrees(real[one.name])
        ]

    phases = set()
    for _ in range(STEPS):
        for one in histories:
            one.look()
        with contextlib.suppress(ClusterError):
            cluster.wait(lambda: not wrong(), 10, "the real one to say what the model says")
        assert wrong() == []
        phases |= {one.phase for one in histories}
        for one in histories:
            one.go_on(cluster, namespace)
    assert phases == {"Pending", "Scheduling", "Running", "Failed", "Finished"}
