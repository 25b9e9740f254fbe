"""The claims of docs/proof.md: each holds with us, and fails as soon as we are left out. The run at scale, smaller."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .proof import scale
from .proof.scenarios import MULTINODE, NATIVES, Scenario
from .proof.stage import Stage, multinode, native
from .proof.whole_way import LIMITS, WAYS

BOTH = pytest.mark.parametrize("ours", [False, True], ids=["without", "with"])


@pytest.fixture(scope="module")
def on_ome() -> Iterator[Stage]:
    with multinode() as stage:
        yield stage


@pytest.fixture(scope="module")
def on_stand_in() -> Iterator[Stage]:
    with native() as stage:
        yield stage


def named(scenarios: tuple[Scenario, ...]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("scenario", scenarios, ids=[one.name for one in scenarios])


@BOTH
@named(MULTINODE + WAYS)
def test_a_claim(on_ome: Stage, scenario: Scenario, ours: bool) -> None:
    outcome = scenario.play(on_ome, ours)
    assert scenario.claim(outcome) is ours, outcome
    if scenario.name == "two-gangs":
        assert outcome.partial == (0 if ours else 2), outcome


@BOTH
@named(NATIVES)
def test_a_claim_about_ome_1_3(on_stand_in: Stage, scenario: Scenario, ours: bool) -> None:
    outcome = scenario.play(on_stand_in, ours)
    assert scenario.claim(outcome) is ours, outcome


@named(LIMITS)
def test_what_we_do_not_mend_is_as_the_page_says(on_ome: Stage, scenario: Scenario) -> None:
    # It may happen and need not: the old workers can be gone before the scheduler counts them.
    tries = (scenario.play(on_ome, True) for _ in range(3))
    assert not all(map(scenario.claim, tries)), "not once in three times; if it is mended, say so on the page"


def test_many_gangs() -> None:
    """Twenty gangs of eight on forty nodes, each with room for two pods: ten whole, ten with nothing."""
    done = scale.run(gangs=20, nodes=40)
    assert sorted(gang.bound for gang in done.gangs) == [0] * 10 + [8] * 10, done.facts
