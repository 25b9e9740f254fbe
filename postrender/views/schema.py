"""JSON schemas: of a config file, made from the table of options, of a finding, an explanation and a live check."""

from __future__ import annotations

from ..cluster import causes, instances
from ..findings import ACCEPTABLE, ERROR, NOTE, SEVERITIES, WARNING
from ..gangs.keys import OUR_VERSION
from ..gangs.reasons import NAMES
from ..options import CHOICE, CODES, DURATION, FILES, LIST, NUMBER, SWITCH, TABLE, VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..options import Option

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NAME = {"type": "string", "minLength": 1}


def config() -> dict[str, Any]:
    """Return the schema of a config file: each option of the table, and nothing else."""
    return {
        "$schema": _DIALECT,
        "title": "postrender config",
        "type": "object",
        "additionalProperties": False,
        "properties": {option.name: {"description": option.help, **_of(option)} for option in TABLE},
    }


def finding() -> dict[str, Any]:
    """Return the schema of one line of `--format json`."""
    return {"$schema": _DIALECT, "title": "postrender finding", **_closed(_finding())}


def _finding() -> dict[str, Any]:
    words = {"type": ["string", "null"]}
    number = {"type": ["integer", "null"], "minimum": 1}
    return {
        "severity": {"enum": [ERROR, WARNING, NOTE]},
        "code": {"enum": list(SEVERITIES)},
        "message": {"type": "string"},
        "remedy": {"type": "string"},
        "object": {
            **_closed({key: {"type": "string"} for key in ("kind", "namespace", "name")}),
            "type": ["object", "null"],
        },
        "field": words,
        "file": words,
        "line": number,
        "column": number,
        "source": words,
    }


def explanation() -> dict[str, Any]:
    """Return the schema of `explain --format json`."""
    words = {"type": ["string", "null"]}
    text = {"type": "string"}
    number = {"type": ["integer", "null"], "minimum": 1}
    count = {"type": "integer", "minimum": 0}
    place = {"file": words, "line": number, "column": number, "source": words}
    one = finding()
    findings = {"type": "array", "items": {key: held for key, held in one.items() if key not in ("$schema", "title")}}
    source = _closed({"value": text, "by": text, "field": words, **place})
    group = {
        "name": text,
        "firstIndex": count,
        "instances": {"type": "integer", "minimum": 1},
        "spare": {"type": "boolean"},
        "minMember": {"type": "integer", "minimum": 2},
        "scheduleTimeoutSeconds": {"type": ["integer", "null"], "minimum": 0},
        "topologyKey": words,
    }
    decision = {
        "name": {"enum": list(NAMES)},
        "value": text,
        "why": words,
        "source": {"oneOf": [{"type": "null"}, source]},
        "hidden": {"type": "array", "items": source},
    }
    component = {
        "component": words,
        "mode": text,
        "madeBy": {"enum": ["postrender", "OME", None]},
        "instances": number,
        "workers": number,
        "podNames": {
            "oneOf": [{"type": "null"}, _closed({"leader": text, "worker": text, "firstWorker": count})],
        },
        "podGroups": {"type": "array", "items": _closed(group)},
        "decisions": {"type": "array", "items": _closed(decision)},
    }
    subject = {
        **dict.fromkeys(("kind", "namespace", "name"), text),
        **place,
        "note": words,
        "components": {"type": "array", "items": _closed(component)},
        "findings": findings,
    }
    return {
        "$schema": _DIALECT,
        "title": "postrender explanation",
        **_closed(
            {
                "apiVersion": {"const": OUR_VERSION},
                "kind": {"const": "Explanation"},
                "objects": {"type": "array", "items": _closed(subject)},
                "findings": findings,
            }
        ),
    }


def live() -> dict[str, Any]:
    """Return the schema of `check --live --format json`."""
    text = {"type": "string"}
    words = {"type": ["string", "null"]}
    count = {"type": "integer", "minimum": 0}
    seconds = {"type": ["integer", "null"], "minimum": 0}
    commands = {"type": "array", "items": text, "minItems": 1}
    gang = {
        "name": text,
        "index": count,
        "size": {"type": "integer", "minimum": 2},
        "pods": count,
        "bound": count,
        "state": {"enum": list(instances.STATES)},
        "phase": words,
        "cause": {"enum": [*causes.NAMES, None]},
        "schedulerSays": words,
        "schedulerSaysForSeconds": seconds,
        "failsInSeconds": seconds,
        "findings": {"type": "array", "items": _closed({**_finding(), "commands": commands})},
    }
    service = {
        **dict.fromkeys(("kind", "namespace", "name"), text),
        "component": words,
        "mode": text,
        "madeBy": {"enum": ["postrender", "OME"]},
        "gangs": {"type": "array", "items": _closed(gang)},
    }
    return {
        "$schema": _DIALECT,
        "title": "postrender live check",
        **_closed(
            {
                "apiVersion": {"const": OUR_VERSION},
                "kind": {"const": "LiveCheck"},
                "services": {"type": "array", "items": _closed(service)},
                "findings": {"type": "array", "items": _closed(_finding())},
            }
        ),
    }


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these properties and no other."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _of(option: Option) -> dict[str, Any]:
    """Return the schema of an option's value; a list may be written as one word too."""
    if option.kind in (LIST, FILES):
        return {"oneOf": [_NAME, {"type": "array", "items": _NAME}]}
    if option.kind == CODES:
        code = {"enum": [code for code in SEVERITIES if SEVERITIES[code] != ERROR or code in ACCEPTABLE]}
        return {"oneOf": [code, {"type": "array", "items": code}]}
    if option.kind == CHOICE:
        return {"enum": list(option.choices)}
    if option.kind == NUMBER:
        return {"type": "integer", "minimum": 0, "maximum": 1000}
    if option.kind == SWITCH:
        return {"type": "boolean"}
    if option.kind == VERSION:
        return {"type": ["string", "number"]}
    if option.kind == DURATION:
        return {"type": "string", "pattern": r"^\+?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"}
    return _NAME
