"""Findings as lines for people."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..findings import Finding


def line(finding: Finding, file: str) -> str:
    """Return one line: where, which object and field, what is wrong, what to do, and the code to look up."""
    where = ""
    if finding.place is not None:
        where = f"{file}:{finding.place.line}:{finding.place.column}"
        where += f" ({finding.place.source}): " if finding.place.source else ": "
    ref = finding.ref
    who = "/".join(part for part in (ref.kind, ref.namespace, ref.name) if part) + ": " if ref else ""
    field = f"{finding.field}: " if finding.field else ""
    text = f"postrender: {finding.severity}: {where}{who}{field}{finding.message}; {finding.remedy} [{finding.code}]"
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
