"""Bytes + options -> bytes + findings: read, decide, write; `render` composes the three.

Pure: no file, no environment, no clock, no network. Nothing is returned to be written unless the whole of it exists and
was read back.
"""

from __future__ import annotations

from .findings import ERROR, Finding, Ref, Refusal
from .gangs import keys, resources
from .gangs.plan import Plan, plan
from .gangs.resources import InferenceService, PodGroup
from .manifests import edit, lookup, objects, stream, tree
from .options import DEFAULTS, Options
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .findings import Place
    from .manifests.change import Spot


class Stream(Record):
    """A stream as it was read: its bytes and spans, the objects that matter, and what could not be read."""

    data: bytes
    spans: tuple[stream.Span, ...]
    services: tuple[InferenceService, ...]
    pod_groups: tuple[PodGroup, ...]
    findings: tuple[Finding, ...]


class Rendered(Record):
    """The bytes to deploy, empty if a finding is an error; and the findings, in the order of the stream."""

    data: bytes
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """Whether an error keeps the result from being used."""
        return any(finding.severity == ERROR for finding in self.findings)


def read(data: bytes) -> Stream:
    """Return what a stream holds that matters to us; everything else is not even parsed."""
    try:
        spans = tuple(stream.cut(data))
    except Refusal as refusal:
        return Stream(data, (), (), (), (refusal.finding,))
    services: list[InferenceService] = []
    groups: list[PodGroup] = []
    findings: list[Finding] = []
    places = stream.Places(data, spans)

    def refuse(unfit: tree.Unfit, number: int, item: objects.Item | None) -> None:
        finding = edit.refusal(unfit, places, number).finding
        findings.append(finding if item is None else finding._replace(ref=_ref(item)))

    for number in stream.candidates(data, spans, keys.NEEDLES):
        try:
            for item in objects.items(stream.document(data, spans[number]), keys.wanted, resources.DEPTH):
                try:
                    found = resources.read(number, item)
                except tree.Unfit as unfit:
                    refuse(unfit, number, item)
                    continue
                if isinstance(found, InferenceService):
                    services.append(found)
                else:
                    groups.append(found)
        except tree.Unfit as unfit:
            refuse(unfit, number, None)
    return Stream(data, spans, tuple(services), tuple(groups), tuple(findings))


def _ref(item: objects.Item) -> Ref:
    """Return who an object is that could not be read, as far as it says so."""
    said = [lookup.value_at(item.root, ("metadata", key)) for key in ("namespace", "name")]
    return Ref(item.kind, *said)


def decide(read_stream: Stream, options: Options = DEFAULTS) -> Plan:
    """Return the gangs, changes and findings for a stream."""
    places = stream.Places(read_stream.data, read_stream.spans)

    def place(spot: Spot, index: int) -> Place:
        return places.place(spot.span, index)

    return plan(read_stream.services, read_stream.pod_groups, options, place)


def write(read_stream: Stream, planned: Plan) -> bytes:
    """Return the bytes of the stream with the plan's changes made; raises Refusal where one cannot be."""
    return edit.splice(read_stream.data, read_stream.spans, planned.changes)


def render(data: bytes, options: Options = DEFAULTS) -> Rendered:
    """Return what is to be deployed instead of `data`, and what is to be said.

    >>> render(b"kind: ConfigMap").data
    b'kind: ConfigMap'
    """
    if stream.is_quiet(data, keys.NEEDLES):
        return Rendered(data, ())
    found = read(data)
    planned = decide(found, options)
    rendered = Rendered(b"", (*found.findings, *planned.findings))
    # What the decision rested on is no longer needed; of a long list it is as large as the list.
    found = found._replace(services=(), pod_groups=())
    planned = planned._replace(gangs=())
    if rendered.refused:
        return rendered
    try:
        return rendered._replace(data=write(found, planned))
    except Refusal as refusal:
        finding = refusal.finding
        for service in read(data).services:
            if service.spot == refusal.spot:
                finding = finding._replace(ref=Ref(keys.INFERENCE_SERVICE, service.namespace, service.name))
        return rendered._replace(findings=(*rendered.findings, finding))
