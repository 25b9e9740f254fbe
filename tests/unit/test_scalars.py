"""How plain scalars are read and how strings are written; the readers' own answers are in tests/oracles."""

import math

import pytest

from postrender.manifests import scalars

# What sigs.k8s.io/yaml makes of a plain scalar (reference: resolve.go of yaml.v2, and the programs themselves).
SIGS = [
    ("yes", True), ("Yes", True), ("on", True), ("y", True), ("Y", True), ("true", True), ("TRUE", True),
    ("no", False), ("off", False), ("n", False), ("N", False), ("False", False),
    ("yEs", "yEs"), ("oN", "oN"), ("tRue", "tRue"),
    ("", None), ("~", None), ("null", None), ("Null", None), ("NULL", None), ("nUll", "nUll"),
    ("12:30", "12:30"), ("1:2", "1:2"), ("190:20:30.15", "190:20:30.15"),
    ("010", 8), ("0777", 511), ("0o10", 8), ("0O10", 8), ("08", 8.0), ("09", 9.0), ("-08", -8.0), ("0o8", "0o8"),
    ("1_000", 1000), ("1_000.5", 1000.5), ("0b11", 3), ("-0b11", -3), ("0x1F", 31), ("0XfF", 255), ("0x3", 3),
    ("1e3", 1000.0), ("1E+3", 1000.0), ("1.0e3", 1000.0), ("123e4", 1230000.0), ("1e400", "1e400"), ("12e03", 12000.0),
    ("2001-12-14", "2001-12-14"), ("2024-13-45", "2024-13-45"),
    ("=", "="), ("<<", "<<"), ("+1", 1), ("-1", -1), ("+", "+"), ("-", "-"), (".", "."), ("1.", 1.0), (".5", 0.5),
    ("+.5", 0.5), ("1.e1", 10.0), ("9007199254740993", 9007199254740993),
    ("18446744073709551615", 18446744073709551615), ("18446744073709551616", 1.8446744073709552e19), ("+18446744073709551615", 1.8446744073709552e19),
    ("123456789012345678901234567890", 1.2345678901234568e29), ("-9223372036854775808", -(2**63)),
    ("80Gi", "80Gi"), ("500m", "500m"), ("v1", "v1"), ("1.2.3", "1.2.3"), ("_1", "_1"), ("1__0_", 10),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), SIGS)
def test_a_plain_scalar_is_what_sigs_reads(text, value):
    found = scalars.resolve(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN"])
def test_floats_that_json_cannot_hold(text):
    found = scalars.resolve(text)
    assert isinstance(found, float)
    assert not math.isfinite(found)


@pytest.mark.parametrize(
    ("text", "number"),
    [("3", 3), ("3.0", 3), ("3e0", 3), ("0x3", 3), ("08", 8), ("-1", -1), ("3.5", None), ("three", None), ("", None),
     ("true", None), ("1e400", None), (".inf", None), (".nan", None), ("1e30", None), ("0", 0), ("1_0", 10)],
)  # fmt: skip
def test_an_integer_field_takes_what_json_would_give_it(text, number):
    assert scalars.integer(text) == number


# Strings that some reader takes for something else when they are written plain.
NOT_PLAIN = [
    "y", "Y", "n", "N", "yes", "No", "on", "OFF", "true", "False", "null", "NULL", "~", "", " ", "1", "1e3", "0o10",
    "08", "1.0e3", "12:30", "123e4", "09", "2001-12-14", "0x1F", ".inf", "-", "=", "<<", "- a", "a: b", "a #b", "#",
    " x", "x ", "a:", "*a", "&a", "!a", "%a", "@a", "`a", "{", "}", "[", "]", ",", "|", ">", "?", "'", '"', "é",
    "a\nb", "a\tb", "---", "...", "1_000", "+1", "1.",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_looks_like_something_else_is_quoted(text):
    assert not scalars.is_plain(text)
    assert scalars.write(text)[0] == scalars.write(text)[-1] == '"'


@pytest.mark.parametrize(
    "text", ["a", "engine", "ome.io/inferenceservice", "scheduling.x-k8s.io/v1alpha1", "a-b_c.d/e", "e1"]
)
def test_plain_words_stay_plain(text):
    assert scalars.write(text) == text
    assert scalars.write(text, json=True) == f'"{text}"'
    assert scalars.is_string(text)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ('a"b', r'"a\"b"'),
        ("a\\b", r'"a\\b"'),
        ("a/b c", '"a/b c"'),  # Go refuses \/
        ("\n\r\t", r'"\n\r\t"'),
        ("\x00\x1b\x7f\x85\xa0", r'"\u0000\u001b\u007f\u0085\u00a0"'),
        ("\u2028\u2029\ufeff", r'"\u2028\u2029\ufeff"'),  # breaks and a mark to YAML
        ("ü 🚀", '"ü 🚀"'),  # surrogate escapes are refused by libyaml
    ],
)
def test_quoting(text, quoted):
    assert scalars.quote(text) == quoted


def test_numbers_and_booleans_are_written_as_json_does():
    assert [scalars.write(value) for value in (0, -1, 600, True, False)] == ["0", "-1", "600", "true", "false"]
