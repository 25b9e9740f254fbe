"""What the Go readers make of plain scalars and of structures, asked of the programs themselves.

These rows are the ground the package's own table of scalars stands on: when a new version of a reader answers
otherwise, it shows here first.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.oracles.client import Oracle, OracleError, exact

REFUSED = object()


def real(text: str) -> dict[str, str]:
    return {"!float": text}


def time(text: str) -> dict[str, str]:
    return {"!time": text}


def integer(text: str, value: int) -> tuple[str, Any, Any]:
    return (text, value, value)


def string(text: str) -> tuple[str, Any, Any]:
    return (text, text, text)


# Text, what sigs.k8s.io/yaml reads, what yaml.v3 reads.
PLAIN = [
    *((text, True, text) for text in ("yes", "Yes", "YES", "on", "On", "ON", "y", "Y")),
    *((text, False, text) for text in ("no", "No", "NO", "off", "Off", "OFF", "n", "N")),
    *((text, True, True) for text in ("true", "True", "TRUE")),
    *((text, False, False) for text in ("false", "False", "FALSE")),
    *((text, None, None) for text in ("", "~", "null", "Null", "NULL")),
    # Not words of YAML for anyone.
    *map(string, ("yES", "oN", "tRUE", "nULL", "None", "nil", "t", "f", "inf", "nan", "NaN", "Infinity")),
    # Sexagesimal numbers are of YAML 1.1, but no Go reader has them.
    *map(string, ("12:30", "1:2", "4:00", "190:20:30.15")),
    # Integers: Go's prefixes, signs, and `_` anywhere.
    integer("0", 0),
    integer("-0", 0),
    integer("+12", 12),
    integer("-5", -5),
    integer("010", 8),
    integer("0777", 511),
    integer("-010", -8),
    integer("0o10", 8),
    integer("0O10", 8),
    integer("0b11", 3),
    integer("-0b11", -3),
    integer("0x1F", 31),
    integer("0XfF", 255),
    integer("1_000", 1000),
    integer("1__0_", 10),
    integer("9007199254740993", 9007199254740993),
    integer("9223372036854775807", 9223372036854775807),
    integer("-9223372036854775808", -9223372036854775808),
    integer("18446744073709551615", 18446744073709551615),
    *map(string, ("0o8", "0b2", "0x", "0xg", "+", "--1", "1-", "_1", "1a", "0x1.8", "0b", "0o")),
    # Leading zeros that are no octal: a float, which JSON does not show.
    ("08", 8, real("8")),
    ("09", 9, real("9")),
    ("-08", -8, real("-8")),
    # Floats. JSON writes a whole one without a point.
    ("1.5", 1.5, real("1.5")),
    ("1.", 1, real("1")),
    (".5", 0.5, real("0.5")),
    ("-.5", -0.5, real("-0.5")),
    ("+.5", 0.5, real("0.5")),
    ("1_000.5", 1000.5, real("1000.5")),
    ("1e3", 1000, real("1000")),
    ("1E+3", 1000, real("1000")),
    ("1.0e3", 1000, real("1000")),
    ("123e4", 1230000, real("1.23e+06")),
    ("1e-400", 0, real("0")),
    ("18446744073709551616", 18446744073709552000, real("1.8446744073709552e+19")),
    ("123456789012345678901234567890", 1.2345678901234568e29, real("1.2345678901234568e+29")),
    *map(string, ("1e400", "-1e400", "1e", "e3", "1e3.5", "1.2.3", ".", "..", "-.", "1.5.", "._5", "5e_")),
    # JSON has no word for these.
    (".inf", REFUSED, real("+Inf")),
    ("+.Inf", REFUSED, real("+Inf")),
    ("-.INF", REFUSED, real("-Inf")),
    (".NaN", REFUSED, real("NaN")),
    (".nan", REFUSED, real("NaN")),
    # Dates.
    ("2001-12-14", "2001-12-14", time("2001-12-14T00:00:00Z")),
    ("2001-1-4", "2001-1-4", time("2001-01-04T00:00:00Z")),
    ("2001-12-14T21:59:43.1+01:00", "2001-12-14T21:59:43.1+01:00", time("2001-12-14T21:59:43.1+01:00")),
    *map(string, ("2024-13-45", "2001-12", "v2001-12-14")),
    # Words that other readers stumble over.
    *map(string, ("=", "<<")),
]  # fmt: skip

TAGGED = [
    ("!!binary aGk=", "hi", "hi"),
    ("!!binary /w==", "\ufffd", {"!bytes": "/w=="}),
    ("!!binary x", REFUSED, REFUSED),
    ("!Ref x", "x", "x"),
    ("!Ref 1", "1", "1"),
    ("!!str 1", "1", "1"),
    ("!!float 1", 1, real("1")),
    ("!!int x", REFUSED, REFUSED),
    ("!!python/object:os.system x", "x", "x"),
    ("'y'", "y", "y"),
    ('"1e3"', "1e3", "1e3"),
    ("&a y", True, "y"),
]

MERGED = "base: &b {k: merged, l: 1}\nmore: &c {k: more, m: 2}\n"

# Name, text, what sigs.k8s.io/yaml reads, what yaml.v3 reads.
STRUCTURES = [
    ("duplicate key", "m: {a: 1, a: 2}\n", {"a": 2}, REFUSED),
    ("own key, then <<", "b: &b {k: merged}\nm:\n  k: own\n  <<: *b\n", {"k": "merged"}, {"k": "own"}),
    ("<<, then own key", "b: &b {k: merged}\nm:\n  <<: *b\n  k: own\n", {"k": "own"}, {"k": "own"}),
    (
        "<< of two maps",
        f"{MERGED}m:\n  <<: [*b, *c]\n",
        {"k": "merged", "l": 1, "m": 2},
        {"k": "merged", "l": 1, "m": 2},
    ),
    ("anchor defined twice", "a: &x 1\nb: &x 2\nm: *x\n", 2, 2),
    ("undefined alias", "m: *x\n", REFUSED, REFUSED),
    ("alias to what holds it", "m: &x [*x]\n", REFUSED, REFUSED),
    (
        "alias bomb",
        "a0: &a0 x\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 9)) + "m: *a8\n",
        REFUSED,
        REFUSED,
    ),
    ("tab after colon", "m:\tb\n", "b", "b"),
    ("tab before comment", "m: b\t# c\n", "b", "b"),
    ("JSON indented by tabs", '{\n\t"m": {\n\t\t"k": 1\n\t}\n}\n', {"k": 1}, {"k": 1}),
    ("escaped slash", r'm: "\/"' "\n", REFUSED, REFUSED),
    ("surrogate pair", r'm: "\ud83d\ude00"' "\n", REFUSED, REFUSED),
    ("byte-order mark first", "\ufeffm: 1\n", 1, 1),
    ("byte-order mark further in", "m:\n  a: 1\n  \ufeffb: 2\n", {"a": 1, "\ufeffb": 2}, {"a": 1, "\ufeffb": 2}),
    ("long key", f"{'k' * 1025}: 1\n", REFUSED, REFUSED),
    ("control character", "m: a\x01b\n", REFUSED, REFUSED),
    ("DEL", "m: a\x7fb\n", REFUSED, REFUSED),
    ("NUL", "m: a\0b\n", REFUSED, REFUSED),
    ("no blank after the colon in a flow map", "m: {a:1}\n", {"a:1": None}, {"a:1": None}),
    ("keys 1 and true", "m: {1: a, true: b}\n", {"1": "a", "true": "b"}, {"!map": [[1, "a"], [True, "b"]]}),
    ("null key", "m: {~: a}\n", REFUSED, {"!map": [[None, "a"]]}),
    ("keys y and n", "m: {y: a, n: b}\n", {"true": "a", "false": "b"}, {"y": "a", "n": "b"}),
    ("block scalar", "m: |+\n  a\n\n", "a\n\n", "a\n\n"),
]


def check(answer: Any, expected: Any) -> None:
    if expected is REFUSED:
        assert isinstance(answer, OracleError)
    else:
        assert not isinstance(answer, OracleError), answer
        assert exact(answer) == exact(expected)


@pytest.mark.parametrize(("text", "sigs", "v3"), PLAIN, ids=[repr(row[0]) for row in PLAIN])
def test_plain(oracle: Oracle, text: str, sigs: Any, v3: Any) -> None:
    answer = oracle.scalar(text)
    assert answer.plain
    check(answer.sigs, sigs)
    check(answer.v3, v3)


@pytest.mark.parametrize(("text", "sigs", "v3"), TAGGED, ids=[repr(row[0]) for row in TAGGED])
def test_not_plain(oracle: Oracle, text: str, sigs: Any, v3: Any) -> None:
    answer = oracle.scalar(text)
    assert not answer.plain
    check(answer.sigs, sigs)
    check(answer.v3, v3)


@pytest.mark.parametrize(("text", "sigs", "v3"), [row[1:] for row in STRUCTURES], ids=[row[0] for row in STRUCTURES])
def test_structure(oracle: Oracle, text: str, sigs: Any, v3: Any) -> None:
    for read, expected in ((oracle.sigs, sigs), (oracle.v3, v3)):
        try:
            answer = read(text)
        except OracleError as refusal:
            answer = refusal
        else:
            answer = answer["m"]
        check(answer, expected)


def test_deep_nesting_is_fine(oracle: Oracle) -> None:
    depth = 1500
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(10 * depth)  # for Python's own reading of the answer
    try:
        for read in (oracle.sigs, oracle.v3):
            value, levels = read("[" * depth + "]" * depth), 0
            while isinstance(value, list):
                value, levels = (value or [None])[0], levels + 1
            assert levels == depth
    finally:
        sys.setrecursionlimit(limit)


def test_too_deep_nesting_is_refused(oracle: Oracle) -> None:
    for read in (oracle.sigs, oracle.v3):
        with pytest.raises(OracleError, match="exceeded max depth"):
            read("[" * 10_001 + "]" * 10_001)
