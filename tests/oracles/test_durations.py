"""Our durations against time.ParseDuration itself."""

from __future__ import annotations

import os
import random

import pytest

from postrender.gangs import lifecycle
from tests.oracles.client import Oracle, OracleError
from tests.unit.test_lifecycle import DURATIONS

COUNT = int(os.environ.get("FUZZ_EXAMPLES", "2000"))
SEED = os.environ.get("FUZZ_SEED", "1")


def ours(text: str) -> int | None:
    try:
        return lifecycle.parse(text)
    except ValueError:
        return None


def theirs(oracle: Oracle, text: str) -> int | None:
    try:
        return oracle.duration(text)
    except OracleError:
        return None


@pytest.mark.parametrize(("text", "nanoseconds"), DURATIONS)
def test_the_table_is_right(oracle: Oracle, text: str, nanoseconds: int) -> None:
    assert theirs(oracle, text) == nanoseconds


def number(rng: random.Random) -> str:
    whole = rng.choice(["", "0", "1", "007", str(rng.randrange(10 ** rng.randrange(1, 22))), "9223372036854775807"])
    fraction = rng.choice(
        ["", "", ".", "." + str(rng.randrange(10 ** rng.randrange(1, 30))).zfill(rng.randrange(1, 30))]
    )
    return whole + fraction


def duration(rng: random.Random) -> str:
    parts = [
        number(rng) + rng.choice(["ns", "us", "µs", "μs", "ms", "s", "m", "h", "h", "m", "s", "d", ""])
        for _ in range(rng.randrange(4))
    ]
    text = rng.choice(["", "", "-", "+"]) + "".join(parts)
    if text and rng.random() < 0.1:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice([" ", "_", "e", "-", ".", "0", "٣"]) + text[at:]
    return text


def test_generated_durations(oracle: Oracle) -> None:
    rng = random.Random(SEED)
    taken = 0
    for _ in range(COUNT):
        text = duration(rng)
        expected = theirs(oracle, text)
        assert ours(text) == expected, text
        taken += expected is not None
    assert taken > COUNT / 5  # not only refusals
