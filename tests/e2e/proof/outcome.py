"""What a scenario came to: how many pods of each gang have a node, and a few numbers more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

Facts = Mapping[str, "int | float | str"]


@dataclass(frozen=True)
class Gang:
    """The pods of one Instance, and how many of them have a node."""

    name: str
    pods: int
    bound: int

    @property
    def partial(self) -> bool:
        """Whether it holds nodes and cannot serve."""
        return 0 < self.bound < self.pods


@dataclass(frozen=True)
class Outcome:
    """The gangs at rest, other numbers by what they are, and who has which node."""

    gangs: tuple[Gang, ...] = ()
    facts: Facts = field(default_factory=dict)
    nodes: tuple[tuple[str, str], ...] = ()

    @property
    def bound(self) -> list[int]:
        """How many pods of each gang have a node, fewest first."""
        return sorted(gang.bound for gang in self.gangs)

    @property
    def partial(self) -> int:
        """How many gangs hold nodes and cannot serve."""
        return sum(gang.partial for gang in self.gangs)

    def record(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def read(record: dict[str, Any]) -> Outcome:
    """Return the outcome that `record` was made of."""
    gangs = tuple(Gang(**gang) for gang in record["gangs"])
    return Outcome(gangs, record["facts"], tuple((node, gang) for node, gang in record["nodes"]))
