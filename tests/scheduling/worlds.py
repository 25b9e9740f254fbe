"""Small worlds for a scheduler, and models of it that are wrong, each by one rule."""

from __future__ import annotations

import random

from .coscheduling import Coscheduling, Key, Pod, World

SEEDS = (1, 2, 3)  # what is played on the real scheduler
GPUS = 4  # of a node


def worlds(seed: int) -> list[World]:
    """Return worlds of two or three gangs and some pods that are none, with room for a part of them."""
    chance = random.Random(seed)
    return [world(chance) for _ in range(20)]


def world(chance: random.Random) -> World:
    """Return one."""
    nodes = [GPUS] * chance.choice((2, 3, 3, 4))
    groups: dict[Key, int] = {}
    pods: list[Pod] = []
    names = [("a", "red"), chance.choice((("b", "red"), ("a", "blue"))), ("b", "blue")]
    for number, (namespace, name) in enumerate(names[: chance.choice((2, 2, 3))]):
        member = chance.choice((1, 2, 2, 2, 3, 3))
        if chance.random() < 0.85:
            groups[namespace, name] = member if chance.random() < 0.9 else 0
        worker = Pod(namespace, chance.choice((1, 2, 4, 4)), name)
        gang = [worker] * max(1, member + chance.choice((-1, 0, 0, 0, 1)))
        if chance.random() < 0.3:
            gang[0] = worker._replace(gpus=GPUS)
        if chance.random() < 0.15:
            gang[-1] = worker._replace(gangs=False)
        elif chance.random() < 0.15:
            gang[-1] = worker._replace(gated=True)
        elif chance.random() < 0.3:
            gang[-1] = worker._replace(node=number % len(nodes))
        pods += gang
    for _ in range(chance.choice((0, 1, 1, 2))):
        pods.append(Pod("a", chance.choice((1, 2, 4)), gangs=chance.random() < 0.5))
    return World(nodes, groups, chance.sample(pods, len(pods)))


class WithoutGangs(Coscheduling):
    """Each pod for itself, as without labels."""

    def alone(self, pod: Pod) -> bool:
        return True


class MissingIsAlone(Coscheduling):
    """A label without a PodGroup is passed over."""

    def alone(self, pod: Pod) -> bool:
        return super().alone(pod) or self.members(self.key(pod)) is None


class OfAnyNamespace(Coscheduling):
    """A name is one gang in all namespaces."""

    def key(self, pod: Pod) -> Key:
        return "a", pod.group


class NoneBefore(Coscheduling):
    """What was bound before does not count."""

    def counts(self, pod: Pod) -> bool:
        return pod.node is None and super().counts(pod)


class AnyScheduler(Coscheduling):
    """What another scheduler has bound counts."""

    def counts(self, pod: Pod) -> bool:
        return True


class AllTogether(Coscheduling):
    """A gang is all pods of its label, also where `minMember` is less."""

    def members(self, key: Key) -> int | None:
        found = super().members(key)
        return found and max(found, sum(self.key(pod) == key for pod in self.world.pods))


WRONG = (WithoutGangs, MissingIsAlone, OfAnyNamespace, NoneBefore, AnyScheduler, AllTogether)
