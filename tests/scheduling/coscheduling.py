"""Coscheduling of scheduler-plugins v0.34.7 (pkg/coscheduling), as a model: what is bound when nothing more will be.

Who comes first, on which node a pod is put and in which order a gang's pods are tried is anybody's choice, so there may be
several ends; but what has failed is tried again, so it is none while any choice leads on. A pod that has reached Permit keeps
its node until its gang has quorum, or until one of the gang fits nowhere. PreFilter's count is not here: it spares tries that
Permit would never let through. Nor is what takes time: a gang of ten or more that lacks a few holds its nodes until the timeout.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

Key = tuple[str, str]


class Pod(NamedTuple):
    """A pod as the scheduler sees it; of equal ones it does not matter which is bound."""

    namespace: str
    gpus: int
    group: str = ""  # its label
    gangs: bool = True  # on a scheduler with Coscheduling
    gated: bool = False
    node: int | None = None  # where it is bound before the scheduler looks
    instance: str = ""  # what it is a part of, whatever its label says; no scheduler knows


class World(NamedTuple):
    """The GPUs of each node, the `minMember` of each PodGroup (0: not written), and pods that are not terminal."""

    nodes: Sequence[int]
    groups: Mapping[Key, int]
    pods: Sequence[Pod]


class State(NamedTuple):
    """What is free on the nodes, whose order does not matter, and how many of each kind of pod are not bound."""

    free: tuple[int, ...]
    left: tuple[int, ...]


class Coscheduling:
    """The rules, each a method."""

    def __init__(self, world: World) -> None:
        self.world = world
        waiting = Counter(pod for pod in world.pods if pod.node is None)
        self.kinds, self.all = tuple(waiting), tuple(waiting.values())
        self.first = self.state([pod.node for pod in world.pods])

    def state(self, nodes: Sequence[int | None]) -> State:
        """Return the state in which the pods are on these nodes, None where one is on none."""
        free, left = [*self.world.nodes], Counter[Pod]()
        for pod, node in zip(self.world.pods, nodes, strict=True):
            if node is None:
                left[pod] += 1
            else:
                free[node] -= pod.gpus
        return State(tuple(sorted(free)), tuple(left[kind] for kind in self.kinds))

    def key(self, pod: Pod) -> Key:
        """Return which PodGroup a label means: one of the pod's namespace."""
        return pod.namespace, pod.group

    def alone(self, pod: Pod) -> bool:
        """Return whether Permit lets a pod through without asking for others."""
        return not (pod.gangs and pod.group)

    def members(self, key: Key) -> int | None:
        """Return the quorum of a PodGroup; without one no pod of the label is let through."""
        return self.world.groups.get(key)

    def counts(self, pod: Pod) -> bool:
        """Return whether a pod that is bound counts: it went through Permit, or the scheduler saw it first with its node."""
        return pod.gangs or pod.node is not None

    def assigned(self, key: Key, state: State) -> int:
        """Return how many of a gang are bound."""
        before = sum(pod.node is not None and self.key(pod) == key and self.counts(pod) for pod in self.world.pods)
        kinds = zip(self.kinds, self.all, state.left, strict=True)
        return before + sum(all_ - left for pod, all_, left in kinds if self.key(pod) == key and self.counts(pod))

    def tries(self, state: State) -> Iterator[tuple[list[int], int]]:
        """Yield what may be bound next: kinds of pods, and how many of them are let through together."""
        gangs: dict[Key, list[int]] = {}
        for kind, pod in enumerate(self.kinds):
            if not state.left[kind] or pod.gated:
                continue
            if self.alone(pod):
                yield [kind], 1
            elif self.members(self.key(pod)) is not None:
                gangs.setdefault(self.key(pod), []).append(kind)
        for key, kinds in gangs.items():
            missing = (self.members(key) or 0) - self.assigned(key, state)
            if missing > 1:
                yield kinds, missing
            else:
                yield from (([kind], 1) for kind in kinds)

    def after(self, kinds: list[int], count: int, state: State) -> set[State | None]:
        """Return what comes of a try, in any order and on any nodes: None if one fits nowhere, which gives all back."""
        states: set[State | None] = {state}
        for _ in range(count):
            states = {after for one in states for after in (self.placed(kinds, one) if one else (None,))}
        return states

    def placed(self, kinds: list[int], state: State) -> Iterator[State | None]:
        """Yield the states after one more pod, None where it fits nowhere or there is none."""
        here = [kind for kind in kinds if state.left[kind]]
        if not here:
            yield None
        for kind in here:
            gpus = self.kinds[kind].gpus
            rooms = {room for room in state.free if room >= gpus}
            if not rooms:
                yield None
            for room in rooms:
                free = [*state.free]
                free[free.index(room)] -= gpus
                left = (*state.left[:kind], state.left[kind] - 1, *state.left[kind + 1 :])
                yield State(tuple(sorted(free)), left)

    def rests(self) -> set[State]:
        """Return the states in which no try, however made, has a result."""
        seen, found, todo = {self.first}, set(), [self.first]
        while todo:
            state = todo.pop()
            results = [self.after(kinds, count, state) for kinds, count in self.tries(state)]
            if all(one == {None} for one in results):
                found.add(state)
            new = {one for result in results for one in result if one} - seen
            seen |= new
            todo += new
        return found

    def bound(self, state: State) -> Counter[Pod]:
        """Return how many of each kind are bound, besides what was before."""
        return Counter(dict(zip(self.kinds, map(int.__sub__, self.all, state.left), strict=True)))
