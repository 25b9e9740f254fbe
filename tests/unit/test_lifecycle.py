"""Durations and the clamp; time.ParseDuration itself is asked in tests/oracles."""

import pytest

from postrender.gangs import lifecycle
from postrender.options import SECOND

DURATIONS = [
    ("0", 0), ("+0", 0), ("-0", 0), ("5s", 5 * SECOND), ("30s", 30 * SECOND), ("1478s", 1478 * SECOND),
    ("-5s", -5 * SECOND), ("+5s", 5 * SECOND), ("5.0s", 5 * SECOND), ("5.6s", 5_600_000_000), ("5.s", 5 * SECOND),
    (".5s", SECOND // 2), ("1.0s", SECOND), ("1.00s", SECOND), ("1.004s", 1_004_000_000), ("100.00100s", 100_001_000_000),
    ("10ns", 10), ("11us", 11_000), ("12µs", 12_000), ("12μs", 12_000), ("13ms", 13_000_000), ("15m", 900 * SECOND),
    ("16h", 57_600 * SECOND), ("3h30m", 12_600 * SECOND), ("1h30m", 5_400 * SECOND), ("1.5h", 5_400 * SECOND),
    ("-2m3.4s", -123_400_000_000), ("1h2m3s4ms5us6ns", 3_723_004_005_006), ("39h9m14.425s", 140_954_425_000_000),
    ("52763797000ns", 52_763_797_000), ("0.3333333333333333333h", 1_200 * SECOND),
    ("9223372036854775807ns", 2**63 - 1), ("-9223372036854775808ns", -(2**63)), ("0.100000000000000000000h", 360 * SECOND),
    ("0.830103483285477580700h", 2_988_372_539_827),
]  # fmt: skip


@pytest.mark.parametrize(("text", "nanoseconds"), DURATIONS)
def test_durations(text, nanoseconds):
    assert lifecycle.parse(text) == nanoseconds


@pytest.mark.parametrize(
    "text",
    ["", "3", "30", "-", "s", ".", "-.", ".s", "+.s", "30d", "1w", " 5s", "5s ", "1_000s", "5 s", "++5s", "1e3s", "٣s",
     "9223372036854775808ns", "-9223372036854775809ns", "3000000h", "9223372036854775.808us", "1h-5m", "5S", "99999999999999999999s"],
)  # fmt: skip
def test_what_go_refuses(text):
    with pytest.raises(ValueError, match=r"."):
        lifecycle.parse(text)


MINUTE = 60 * SECOND
# Ready timeout, clamp, scheduleTimeoutSeconds: OME's own vectors and what its arithmetic makes of the rest.
TIMEOUTS = [
    (0, (MINUTE, 10 * MINUTE), 60),
    (30 * SECOND, (MINUTE, 10 * MINUTE), 60),
    (3 * MINUTE, (MINUTE, 10 * MINUTE), 180),
    (10 * MINUTE, (MINUTE, 10 * MINUTE), 600),
    (30 * MINUTE, (MINUTE, 10 * MINUTE), 600),
    (30 * MINUTE, (0, 0), 1800),
    (0, (0, 0), None),
    (15 * MINUTE, (0, 0), 900),
    (5 * MINUTE, (0, 0), 300),
    (900_000_000, (0, 0), None),
    (1_900_000_000, (0, 0), 1),
    (59_900_000_000, (MINUTE, 10 * MINUTE), 60),
    (600_900_000_000, (MINUTE, 10 * MINUTE), 600),
    (90 * MINUTE, (0, 0), 5400),
    (SECOND, (1_500_000_000, 2_500_000_000), 1),
    (9 * SECOND, (1_500_000_000, 2_500_000_000), 2),
    (9 * SECOND, (500_000_000, 800_000_000), 0),
    ((2**31 - 1) * SECOND, (0, 0), 2**31 - 1),
    (-5 * SECOND, (MINUTE, 10 * MINUTE), 60),
]


@pytest.mark.parametrize(("ready", "clamp", "seconds"), TIMEOUTS)
def test_schedule_timeout(ready, clamp, seconds):
    assert lifecycle.schedule_timeout(ready, *clamp) == seconds


@pytest.mark.parametrize("clamp", [(0, 0), (MINUTE, 10 * MINUTE)])
def test_a_timeout_that_the_field_cannot_hold_is_refused(clamp):
    with pytest.raises(ValueError, match="2,147,483,647"):
        lifecycle.schedule_timeout(2**31 * SECOND, *clamp)
