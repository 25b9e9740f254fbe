"""Findings as other programs read them: the schemas hold what the program takes and says, and annotations unescape."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from postrender import sources
from postrender.findings import SEVERITIES, Finding, Place, Ref
from postrender.options import DURATION, INTEGER, NUMBER, SWITCH, TABLE
from postrender.views import findings, schema

PROPERTIES: dict[str, dict[str, Any]] = schema.config()["properties"]
PLACE = Place(3, 7, "chart/templates/a.yaml", "context.yaml")
REF = Ref("InferenceService", "", "llm")


def taken(name: str, word: str) -> bool:
    """Return whether the program takes a word for an option."""
    try:
        sources.settle({name: word}, {})
    except sources.Misuse:
        return False
    return True


def test_the_schema_takes_the_codes_that_can_be_accepted() -> None:
    one, several = PROPERTIES["accept"]["oneOf"]
    assert one["enum"] == [code for code in SEVERITIES if taken("accept", code)]
    assert several == {"type": "array", "items": one}


@pytest.mark.parametrize("name", [option.name for option in TABLE if option.kind == DURATION])
@pytest.mark.parametrize("word", ["0", "+0", "30m", "1h30m", "1.5h", ".5s", "1.s", "+90s", "100µs", "100μs", "2ns", "0s",
    "30", "", "-1s", "1d", "s", "1 h", "1h 30m", "soon", ".s", "1h30", "++1s", "30m\n"])  # fmt: skip
def test_the_schema_takes_the_durations_that_the_program_takes(name: str, word: str) -> None:
    pattern = PROPERTIES[name]["pattern"]
    # JSON Schema's `$` is the end, and Python's may stand before a line break.
    assert bool(re.search(pattern[:-1] + r"\Z", word)) == (word != "" and taken(name, word))


@pytest.mark.parametrize("option", TABLE, ids=lambda option: option.name)
def test_the_schema_takes_the_words_that_the_program_takes(option: Any) -> None:
    said = PROPERTIES[option.name]
    if option.choices:
        assert said["enum"] == list(option.choices)
        assert all(taken(option.name, word) for word in option.choices)
    elif option.kind == NUMBER:
        assert [taken(option.name, str(number)) for number in (said["minimum"], said["maximum"])] == [True, True]
        assert not taken(option.name, str(said["minimum"] - 1))
        assert not taken(option.name, str(said["maximum"] + 1))
    elif option.kind == INTEGER:
        assert said == {"type": "integer", "description": option.help}
        words = ("-1", "0", "7", "1.5", "-", "+1", "1" * 10)
        assert [word for word in words if taken(option.name, word)] == ["-1", "0", "7"]
    elif option.kind == SWITCH:
        assert said["type"] == "boolean"
        assert [taken(option.name, word) for word in ("true", "false", "maybe")] == [True, True, False]


FINDINGS = [
    Finding("ome-not-said", "a", "b"),
    Finding("invalid-field", "a", "b", REF, "spec.engine", PLACE),
    Finding("stale-podgroup", "a", "b", REF, place=Place(1, 1)),
    Finding("topology-key-ignored", "a", "b", REF),
    Finding("surge-without-spare", "a", "b", REF, raised=True),
]
TYPES = {"string": str, "integer": int, "object": dict, "null": type(None)}


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda finding: finding.code)
def test_the_schema_takes_what_is_said_in_json(finding: Finding) -> None:
    hold(json.loads(findings.json(finding, "<stdin>")), schema.finding())


def hold(value: Any, said: dict[str, Any]) -> None:
    """Fail unless a value is what a schema says, by the words that are used there."""
    types = said.get("type", [])
    types = [types] if isinstance(types, str) else types
    assert not types or isinstance(value, tuple(TYPES[one] for one in types))
    assert "enum" not in said or value in said["enum"]
    assert "minimum" not in said or value is None or value >= said["minimum"]
    if isinstance(value, dict):
        assert sorted(value) == sorted(said["required"]) == sorted(said["properties"])
        for key, held in value.items():
            hold(held, said["properties"][key])


def test_an_annotation_unescapes_to_what_was_meant() -> None:
    """GitHub's runner ends a property at a comma, its command at a colon, and undoes %25, %0D, %0A, %3A and %2C."""
    finding = Finding("invalid-field", "100% of\nit, all: this", "b", REF, place=Place(3, 7))
    line = findings.github(finding, "charts/a,b:100%.yaml")
    command, _, message = line.removeprefix("::").partition("::")
    name, _, held = command.partition(" ")
    properties = dict(part.split("=") for part in held.split(","))
    assert name == "error"
    assert {key: unescaped(value) for key, value in properties.items()} == {
        "file": "charts/a,b:100%.yaml",
        "line": "3",
        "col": "7",
        "title": "postrender invalid-field",
    }
    assert unescaped(message) == "InferenceService/llm: 100% of\\u000ait, all: this; b [invalid-field]"


def unescaped(text: str) -> str:
    return re.sub("%(0A|0D|25|2C|3A)", lambda found: chr(int(found[1], 16)), text)
