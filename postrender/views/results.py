"""Findings as the `results` of a ResourceList (KRM functions specification, v1)."""

from __future__ import annotations

from ..findings import ERROR, NOTE, WARNING
from ..record import Record
from .findings import message, shown, what

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..findings import Finding, Place, Ref
    from ..manifests.change import Pairs, Value
    from ..options import Form

_SEVERITIES = {ERROR: "error", WARNING: "warning", NOTE: "info"}
# More is read by nobody, and a list of results must stay an object of a size that every reader takes.
MOST = 1_000


class Origin(Record):
    """What a result says of an object beside its name: the apiVersion, and its file and place in it, if known."""

    api_version: str
    path: str = ""
    position: int = 0


def results(
    findings: Iterable[Finding], form: Form, known: Mapping[Ref, Sequence[tuple[Place, Origin]]]
) -> tuple[Pairs, ...]:
    """Return a result for each finding that is shown, in the same order.

    `known` are the objects that are spoken of, and where they begin: of one name there may be several.
    """
    listed = list(shown(findings, form))
    made = [_result(finding, known) for finding in listed[:MOST]]
    if len(listed) > MOST:
        rest = f"{len(listed) - MOST:,} more findings are on stderr alone"
        made.append((("message", rest), ("severity", "info")))
    return tuple(made)


def _result(finding: Finding, known: Mapping[Ref, Sequence[tuple[Place, Origin]]]) -> Pairs:
    """Return one result; a field needs an object, and an object needs apiVersion, kind and name."""
    ref = finding.ref
    origin = _origin(finding, known.get(ref, ())) if ref is not None and ref.kind and ref.name else None
    if origin is not None and not origin.api_version:
        origin = None
    members: list[tuple[str, Value]] = [("message", message(finding) if origin else what(finding))]
    members.append(("severity", _SEVERITIES[finding.severity]))
    if ref is not None and origin is not None:
        called = [("apiVersion", origin.api_version), ("kind", ref.kind), ("name", ref.name)]
        if ref.namespace:
            called.append(("namespace", ref.namespace))
        members.append(("resourceRef", tuple(called)))
        if finding.field:
            members.append(("field", (("path", finding.field),)))
    if origin is not None and origin.path:
        members.append(("file", (("path", origin.path), ("index", origin.position))))
    elif finding.place is not None and finding.place.file:
        members.append(("file", (("path", finding.place.file),)))
    members.append(("tags", (("code", finding.code),)))
    return tuple(members)


def _origin(finding: Finding, known: Sequence[tuple[Place, Origin]]) -> Origin | None:
    """Return which of the objects of one name is meant: the last that begins before the place, else the first."""
    place = finding.place
    if place is not None and not place.file:
        before = [origin for start, origin in known if (start.line, start.column) <= (place.line, place.column)]
        if before:
            return before[-1]
    return known[0][1] if known else None
