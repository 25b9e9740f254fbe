"""The client and the protocol: what goes over the pipe arrives as it was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.oracles.client import Oracle, OracleError, exact


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("0", 0),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("-5m", -300_000_000_000),
        ("+5s", 5_000_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("1m1m", 120_000_000_000),
        ("7\u00b5s", 7_000),  # micro sign
        ("7\u03bcs", 7_000),  # Greek letter mu
        ("7us", 7_000),
        ("9223372036854775807ns", 2**63 - 1),
        ("-9223372036854775808ns", -(2**63)),
    ],
)
def test_duration(oracle: Oracle, text: str, nanoseconds: int) -> None:
    assert oracle.duration(text) == nanoseconds


@pytest.mark.parametrize(
    "text", ["", "1", "30d", "1_000s", " 5s", "5s ", "1 h", "s", ".s", "+-5s", "1e3s", "5S", "9223372036854775808ns"]
)
def test_no_duration(oracle: Oracle, text: str) -> None:
    with pytest.raises(OracleError, match=r"^time: "):
        oracle.duration(text)


@pytest.mark.parametrize(
    ("stream", "sigs", "v3"),
    [
        ("", [], []),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        ("---\na: 1\n", [{"a": 1}], [{"a": 1}]),
        ("--- # c\r\na: 1\r\n--- \r\nb: 2", [{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        # Comments alone are a document to kubectl's cut and none to yaml.v3.
        ("# c\n---\na: 1\n", [None, {"a": 1}], [{"a": 1}]),
        ("---\n---\n", [None], [None, None]),
        ("a: 1\n...\n---\nb: 2\n", [{"a": 1}, {"b": 2}], [{"a": 1}, {"b": 2}]),
        # kubectl adds the last line break, and a kept one counts.
        ("a: |+\n  b", [{"a": "b\n"}], [{"a": "b"}]),
    ],
)
def test_stream(oracle: Oracle, stream: str, sigs: list[object], v3: list[object]) -> None:
    assert oracle.sigs_all(stream) == sigs
    assert oracle.v3_all(stream) == v3


def test_kubectl_refuses_a_document_on_the_marker_line(oracle: Oracle) -> None:
    with pytest.raises(OracleError, match="invalid Yaml document separator"):
        oracle.sigs_all("--- {a: 1}\n")
    assert oracle.v3_all("--- {a: 1}\n") == [{"a": 1}]


def test_kubectl_does_not_cut_at_dots(oracle: Oracle) -> None:
    text = "a: 1\n...\nb: 2\n"
    assert oracle.sigs_all(text) == [{"a": 1}]
    with pytest.raises(OracleError, match="did not find expected <document start>"):
        oracle.v3_all(text)


def test_a_broken_document_is_named(oracle: Oracle) -> None:
    for read in (oracle.sigs_all, oracle.v3_all):
        with pytest.raises(OracleError, match=r"^document 1: "):
            read("a: 1\n---\nb: *x\n")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a: 1, b: [1.0, x]}", {"a": 1, "b": [{"!float": "1"}, "x"]}),
        ("{'!float': '1'}", {"!map": [["!float", "1"]]}),
        ("{1: a, '2': b, 1.0: c}", {"!map": [["2", "b"], [1, "a"], [{"!float": "1"}, "c"]]}),
        (
            "{a: {2001-01-01: [{~: x}]}}",
            {"a": {"!map": [[{"!time": "2001-01-01T00:00:00Z"}, [{"!map": [[None, "x"]]}]]]}},
        ),
    ],
)
def test_v3_tells_types_apart(oracle: Oracle, text: str, value: object) -> None:
    assert exact(oracle.v3(text)) == exact(value)


@pytest.mark.parametrize(
    ("text", "plain"),
    [("a b", True), ("a#b", True), ("a # b", False), (" a", False), ("a ", False), ("a\n  b", False), ("'a'", False),
     ("!!str a", False), ("&x a", False), ("{a: b}", False), ("a: b", False), ("a\nw: 1", False), ("a\n---\nb", False),
     ("|\n  a", False), ("*x", False), ("@a", False)],
)  # fmt: skip
def test_plain_is_the_whole_text(oracle: Oracle, text: str, plain: bool) -> None:
    assert oracle.scalar(text).plain is plain


@pytest.mark.parametrize("text", ["é", "𝄞", "<&>", "\u2028", "\ufffd", "a\\b", "\u0085x"])
def test_every_character_arrives(oracle: Oracle, text: str) -> None:
    quoted = '"' + "".join(f"\\U{ord(character):08x}" for character in text) + '"'
    assert oracle.sigs(quoted) == oracle.v3(quoted) == text
    if text.isprintable():
        assert oracle.sigs(f"'{text}'") == oracle.v3(f"'{text}'") == text


def test_a_long_text_arrives(oracle: Oracle) -> None:
    content = "some content\n" * 200_000
    text = "a: |\n" + "".join(f"  {line}\n" for line in content.splitlines())
    assert oracle.sigs(text) == oracle.v3(text) == {"a": content}


def test_a_lone_surrogate_is_not_sent(oracle: Oracle) -> None:
    with pytest.raises(UnicodeEncodeError):
        oracle.sigs("a: \ud800")
    assert oracle.sigs("a: 1") == {"a": 1}


def test_exact_tells_apart_what_python_holds_equal() -> None:
    assert len({exact(value) for value in (True, 1, 1.0, "1", None, [1], {"a": 1}, {"a": True})}) == 8
    assert exact({"a": 1, "b": 2}) == exact({"b": 2, "a": 1})


def test_no_binary(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"^run 'make e2e' once: it builds \.programs/bin/oracle$"):
        Oracle(tmp_path / "oracle")


def test_a_crash_is_no_refusal(tmp_path: Path) -> None:
    crashing = tmp_path / "oracle"
    crashing.write_text("#!/bin/sh\nread line\nexit 3\n")
    crashing.chmod(0o755)
    with Oracle(crashing) as oracle, pytest.raises(RuntimeError, match=r"exit code 3\) when asked sigs of 'a: 1'"):
        oracle.sigs("a: 1")
