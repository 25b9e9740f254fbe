"""Go durations, and the scheduling timeout that OME computes from the ready timeout."""

from __future__ import annotations

from ..options import SECOND

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,  # U+00B5
    "μs": 1_000,  # U+03BC
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
}
_LIMIT = 1 << 63
_MOST_SECONDS = 2**31 - 1


def parse(text: str) -> int:
    """Return the nanoseconds of a duration, read exactly as Go's time.ParseDuration reads it.

    Raises ValueError, with Go's reason, for everything that Go refuses: a number without a unit, an unknown unit
    (there is no `d`), and what does not fit 63 bits.

    >>> parse("1h30m") // SECOND
    5400
    """
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return 0
    if not rest:
        raise ValueError("it is empty")
    total = 0
    while rest:
        part, rest = _part(rest)
        total += part
        if total > _LIMIT:
            raise ValueError("it is longer than 292 years")
    if negative:
        return -total
    if total == _LIMIT:
        raise ValueError("it is longer than 292 years")
    return total


def _part(text: str) -> tuple[int, str]:
    """Return the nanoseconds of the first number with its unit, and what follows."""
    whole, rest = _digits(text)
    fraction = ""
    if rest.startswith("."):
        fraction, rest = _digits(rest[1:])
    if not whole and not fraction:
        raise ValueError("a number must stand before the unit")
    unit, rest = _unit(rest)
    if not unit:
        raise ValueError("the unit is missing")
    if unit not in _UNITS:
        raise ValueError(f"there is no unit {unit!r}, only ns, us, ms, s, m and h")
    scale = _UNITS[unit]
    number = int(whole or "0") if len(whole.lstrip("0")) < 20 else _LIMIT + 1
    if number > _LIMIT // scale:
        raise ValueError("it is longer than 292 years")
    number *= scale
    if fraction:
        value, power = _fraction(fraction)
        if value:
            number += int(float(value) * (float(scale) / power))
    return number, rest


def _digits(text: str) -> tuple[str, str]:
    rest = text.lstrip("0123456789")
    return text[: len(text) - len(rest)], rest


def _unit(text: str) -> tuple[str, str]:
    for index, char in enumerate(text):
        if char in ".0123456789":
            return text[:index], text[index:]
    return text, ""


def _fraction(digits: str) -> tuple[int, float]:
    """Return the digits that Go keeps of a fraction, as a number, and its power of ten: it drops what overflows."""
    value, power = 0, 1.0
    for digit in digits:
        if value > (_LIMIT - 1) // 10 or value * 10 + int(digit) > _LIMIT:
            break
        value = value * 10 + int(digit)
        power *= 10
    return value, power


def seconds(duration: int) -> int:
    """Return whole seconds, truncated toward zero as Go's integer division does."""
    return duration // SECOND if duration >= 0 else -(-duration // SECOND)


def schedule_timeout(ready: int, least: int, most: int) -> int | None:
    """Return `scheduleTimeoutSeconds` for a ready timeout (0: none) and a clamp (both 0: none); None for no field.

    Each is truncated to whole seconds by itself, as OME does. Raises ValueError where the seconds do not fit the
    field's int32; what OME does there depends on its processor.
    """
    wait = seconds(ready)
    if least or most:
        low, high = seconds(least), seconds(most)
        wait = low if wait <= 0 or wait < low else min(wait, high)
    elif wait <= 0:
        return None
    if seconds(ready) > _MOST_SECONDS:
        raise ValueError("it is longer than 2,147,483,647 seconds, the most that the field holds")
    return wait


def text(duration: int) -> str:
    """Return a duration in nanoseconds as people write it: `1h30m`, `600s` as `10m`, `none` for 0.

    >>> text(90 * 60 * SECOND)
    '1h30m'
    """
    if duration == 0:
        return "none"
    rest, part = divmod(duration, SECOND)
    hours, rest = divmod(rest, 3_600)
    minutes, rest = divmod(rest, 60)
    fraction = f".{part:09}".rstrip("0") if part else ""
    written = "".join(f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m")) if count)
    return f"{written}{rest}{fraction}s" if rest or fraction else written
