"""What is planned + what runs -> Instances: the pods of each, the PodGroup they name, and who else has its label.

Indices move: OMENative brings a changed Instance up under the lowest free index and then drops the old one, and an
autoscaler adds and takes away. So an Instance is known by the index that its pods carry, not by the one it was planned
with; only where fewer run than were planned are the planned ones missed.
"""

from __future__ import annotations

from ..gangs import keys, names
from ..gangs.resources import LeaderWorkerSet
from ..gangs.shapes.multinode import WHOLE
from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from ..gangs.shapes.shape import Decided
    from .state import Pod, PodGroup, State

    # A namespace, and the name of a PodGroup there.
    Where: TypeAlias = tuple[str, str]

BOUND = "bound"  # all of it
HALF_BOUND = "half-bound"
WAITING = "waiting"
ABSENT = "absent"  # not one pod is there
STATES = (BOUND, HALF_BOUND, WAITING, ABSENT)


class Instance(Record):
    """One gang as it runs. `name` is what its PodGroup is to be called, `group` the one that its pods name.

    `size` is how many pods it has when whole, as the pods themselves say where they do. `pods` are those that are
    neither ended nor on their way out; `others` hold a node under the same label without belonging to it as it is to
    be: pods that go, pods of an older revision, and those of another Instance.
    """

    decided: Decided
    namespace: str
    number: int
    name: str
    size: int
    pods: tuple[Pod, ...]
    others: tuple[Pod, ...]
    group: PodGroup | None

    @property
    def title(self) -> str:
        """How messages name it: as its PodGroup; several that share one are told apart by their index."""
        name = self.group.name if self.group is not None else self.name
        alone = self.number == 0 or name.endswith(f"-{self.number}")
        return name if alone else f"{name}, group {self.number}"

    @property
    def joins(self) -> bool:
        """Whether its PodGroup is that of the whole component, which an update's pods come into beside the others."""
        return self.decided.shared == WHOLE and self.number > 0

    @property
    def bound(self) -> int:
        """How many of its pods hold a node."""
        return sum(pod.bound for pod in self.pods)

    @property
    def state(self) -> str:
        """How far it has come."""
        if not self.pods:
            return ABSENT
        bound = self.bound
        return WAITING if bound == 0 else BOUND if bound >= self.size else HALF_BOUND

    @property
    def waiting(self) -> tuple[Pod, ...]:
        """Its pods that have no node."""
        return tuple(pod for pod in self.pods if not pod.bound)


def instances(decided: Decided, namespace: str, state: State, groups: dict[Where, PodGroup]) -> tuple[Instance, ...]:
    """Return the Instances of a component or of a LeaderWorkerSet; `namespace` is where it is."""
    own = [pod for pod in state.pods if pod.namespace == namespace and _belongs(pod, decided) and not pod.finished]
    held: dict[int, list[Pod]] = {}
    for pod in own:
        held.setdefault(_index(pod, decided), []).append(pod)
    wanted = 1 if decided.shared == WHOLE else decided.instances
    planned = (index for index in range(wanted + len(held)) if index not in held)
    while len(held) < wanted:
        held[next(planned)] = []
    return tuple(_instance(decided, namespace, index, held[index], state, groups) for index in sorted(held))


def _instance(
    decided: Decided, namespace: str, index: int, own: list[Pod], state: State, groups: dict[Where, PodGroup]
) -> Instance:
    staying = tuple(pod for pod in own if not pod.deleted)
    told = next((pod.size for pod in staying if pod.size), None)
    size = told or 1 + decided.workers
    if decided.shared == WHOLE and index == 0:
        size *= decided.instances
    pods = staying
    if len(staying) > size:  # one that is replaced pod by pod: what is new is to become whole
        revision = max(staying, key=_created).revision
        pods = tuple(pod for pod in staying if pod.revision == revision)
    name = name_of(decided, index)
    label = next((pod.group for pod in pods if pod.group), name)
    inside = {pod.name for pod in pods}
    others = tuple(
        pod
        for pod in state.pods
        if pod.namespace == namespace and pod.group == label and pod.bound and pod.name not in inside
    )
    return Instance(decided, namespace, index, name, size, pods, others, groups.get((namespace, label)))


def _created(pod: Pod) -> float:
    return pod.created


def _belongs(pod: Pod, decided: Decided) -> bool:
    owner = decided.owner
    if isinstance(owner, LeaderWorkerSet):
        return pod.set_name == owner.name
    return decided.merged is not None and (pod.service, pod.component) == (owner.name, decided.merged.own.name)


def _index(pod: Pod, decided: Decided) -> int:
    """Return which Instance a pod is of; where all are one gang, those that an update brings up are not in it."""
    index = pod.number or 0
    if decided.shared == WHOLE:
        return 0 if index < decided.instances else index
    return index


def name_of(decided: Decided, index: int) -> str:
    """Return what the PodGroup of an Instance is called, also of one that no render has made a PodGroup for."""
    first = decided.gangs[0].name
    if decided.merged is not None and decided.merged.mode == keys.OME_NATIVE:
        return names.pod_group(decided.owner.name, decided.merged.own.name, index)
    if not decided.shared:
        return first  # one template: what an update brings up comes under the same label
    return first if decided.shared == WHOLE else f"{first.removesuffix('-0')}-{index}"
