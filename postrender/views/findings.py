"""Findings as lines: text for people, JSON for programs, annotations for GitHub."""

from __future__ import annotations

from ..findings import ALWAYS, ERROR, NOTE, WARNING
from ..options import Form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..findings import Finding, Place

_DEFAULT = Form()
ORDER = {ERROR: 0, WARNING: 1, NOTE: 2}


def lines(findings: Iterable[Finding], file: str, form: Form | None = None) -> Iterator[str]:
    """Yield one line for each finding that is shown, errors first; `file` is what the stream was read from."""
    write = _FORMS[(form or _DEFAULT).format]
    for finding in shown(findings, form):
        yield write(finding, file)


def shown(findings: Iterable[Finding], form: Form | None = None) -> Iterator[Finding]:
    """Yield the findings that are shown, errors first."""
    for finding in sorted(findings, key=_severity):
        if (form or _DEFAULT).verbose or finding.severity != NOTE or finding.code in ALWAYS:
            yield finding


def _severity(finding: Finding) -> int:
    return ORDER[finding.severity]


def text(finding: Finding, file: str) -> str:
    """Return one line: where, which object and field, what is wrong, what to do, and the code to look up."""
    at = ""
    if finding.place is not None:
        at = f"{finding.place.file or file}:{finding.place.line}:{finding.place.column}"
        at += f" ({finding.place.source}): " if finding.place.source else ": "
    return printable(f"postrender: {finding.severity}: {at}{what(finding)}")


def what(finding: Finding) -> str:
    """Return a finding without severity and place: object and field, what is wrong, what to do, and the code."""
    who = _who(finding)
    field = f"{finding.field}: " if finding.field else ""
    return f"{who + ': ' if who else ''}{field}{message(finding)}"


def message(finding: Finding) -> str:
    """Return what is wrong, what to do, and the code."""
    return printable(f"{finding.message}; {finding.remedy} [{finding.code}]")


def _who(finding: Finding) -> str:
    ref = finding.ref
    return "/".join(part for part in (ref.kind, ref.namespace, ref.name) if part) if ref else ""


def printable(line: str) -> str:
    """Return a line in which nothing moves the cursor or colors the terminal: what we print comes from others."""
    if line.isprintable():  # nearly all are
        return line
    return "".join(char if char.isprintable() else _escape(ord(char)) for char in line)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def json(finding: Finding, file: str) -> str:
    """Return one JSON object, as `postrender schema finding` describes it."""
    from json import dumps

    return dumps(members(finding, file))


def members(finding: Finding, file: str) -> dict[str, Any]:
    """Return the members of that object."""
    ref = finding.ref
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
        "remedy": finding.remedy,
        "object": {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name} if ref else None,
        "field": finding.field or None,
        **where(finding.place, file),
    }


def where(place: Place | None, file: str) -> dict[str, str | int | None]:
    """Return a place as members of a JSON object."""
    return {
        "file": (place.file or file) if place else None,
        "line": place.line if place else None,
        "column": place.column if place else None,
        "source": (place.source or None) if place else None,
    }


_COMMANDS = {ERROR: "error", WARNING: "warning", NOTE: "notice"}


def github(finding: Finding, file: str) -> str:
    """Return a workflow command: an annotation at the line, where the stream is a file of the repository."""
    place = finding.place
    properties = {"title": f"postrender {finding.code}"}
    message = what(finding)
    if place is not None:
        name = place.file or file
        if name.startswith("<"):
            where = f"line {place.line} of the stream"
            message = f"{place.source + ', ' if place.source else ''}{where}: {message}"
        else:
            properties = {"file": name, "line": str(place.line), "col": str(place.column), **properties}
    held = ",".join(f"{key}={_escaped(value, ':,')}" for key, value in properties.items())
    return f"::{_COMMANDS[finding.severity]} {held}::{_escaped(printable(message))}"


def _escaped(value: str, more: str = "") -> str:
    """Return a value as GitHub's runner unescapes it."""
    for char in "%\r\n" + more:
        value = value.replace(char, f"%{ord(char):02X}")
    return value


_FORMS = {"text": text, "json": json, "github": github}
