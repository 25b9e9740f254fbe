"""An explanation as text for a terminal of 80 columns, and as JSON for programs."""

from __future__ import annotations

from ..gangs.keys import OUR_VERSION
from . import findings as said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ..findings import Finding, Place, Ref
    from ..gangs.reasons import Explained, Group, Reason, Source
    from ..review import Explanation, Subject

_WIDTH = 80
_NAME = 24
_VALUE = 18
_NOTHING = "nothing here comes to a gang: no InferenceService, no InferenceReplica"
# More Instances than these are named by their number only.
_MOST = 20


def text(explanation: Explanation, file: str) -> Iterator[str]:
    """Yield the lines; `file` is what the stream was read from."""
    blank = False
    for line in _lines(explanation, file):
        if line and blank:
            yield ""
        blank = not line
        if line:
            yield line


def _lines(explanation: Explanation, file: str) -> Iterator[str]:
    for subject in explanation.subjects:
        yield from map(said.printable, _subject(subject, file))
        yield ""
    if not (explanation.subjects or explanation.findings):
        yield from map(said.printable, _wrapped("", nothing(explanation), 0))
    yield from _said(explanation.findings, file, "")


def nothing(explanation: Explanation) -> str:
    """Return that nothing is explained, and what there is that looks like it."""
    return "; ".join((_NOTHING, *explanation.overlooked))


def _subject(subject: Subject, file: str) -> Iterator[str]:
    yield f"{_called(subject.ref)}  ({_at(subject.place, file)})"
    if subject.note:
        yield f"  {subject.note}"
    for component in subject.components:
        yield from _component(component, subject, file)
    yield from _said(subject.findings, file, "  ")


def _component(explained: Explained, subject: Subject, file: str) -> Iterator[str]:
    name = f"{explained.component}: " if explained.component else ""
    if not explained.groups:
        yield f"  {name}{explained.mode}, no gang"
    else:
        yield from _wrapped(f"  {name}".rstrip(), f"{explained.mode}, {size(explained)}", 2 + len(name))
        yield ""
        yield from _groups(explained)
    yield ""
    for reason in explained.reasons:
        yield from _reason(reason, subject.ref, file)
    yield ""


def size(explained: Explained) -> str:
    """Return how many Instances and pods a component comes to, in words."""
    instances, workers = explained.instances, explained.workers
    each = f"a leader and {_many(workers, 'worker')}"
    if instances == 1:
        return f"1 Instance of {each} ({_many(1 + workers, 'pod')})"
    return f"{_many(instances, 'Instance')}, each of {each} ({_many(instances * (1 + workers), 'pod')})"


def _many(count: int, noun: str) -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}s"


def _groups(explained: Explained) -> Iterator[str]:
    for group in explained.groups[:_MOST]:
        yield f"    PodGroup {group.name}"
        yield f"      {holds(group)}"
        for index in range(group.first, group.first + min(group.instances, _MOST)):
            what = "spare, no pods yet" if group.spare else ""
            if explained.pods is not None and not group.spare:
                what = members(explained, index)
            yield from _wrapped(f"      Instance {index}", what, 20)
        if group.instances > _MOST:
            yield f"      and {group.instances - _MOST:,} Instances more"
    if len(explained.groups) > _MOST:
        yield f"    and {len(explained.groups) - _MOST:,} PodGroups more"


def holds(group: Group) -> str:
    """Return what a PodGroup says, in words."""
    timeout = "no timeout" if group.seconds is None else f"timeout {group.seconds:,} s"
    topology = f", one domain of {group.topology_key}" if group.topology_key else ""
    return f"minMember {group.min_member:,}, {timeout}{topology}"


def members(explained: Explained, index: int) -> str:
    """Return what the pods of an Instance are called, those between the first and the last worker left out."""
    pods, workers = explained.pods, explained.workers
    if pods is None:
        return ""
    names = [pods.leader_of(index), pods.worker_of(index, 0)]
    if workers > 1:
        names.append(f"{'… ' if workers > 2 else ''}{pods.worker_of(index, workers - 1)}")
    return ", ".join(names)


def _reason(reason: Reason, ref: Ref, file: str) -> Iterator[str]:
    said = ["; ".join(part for part in (reason.why, _written(reason, ref, file)) if part)]
    said += [f"over {quoted(source.value)}, {at(source, ref, file)}" for source in reason.hidden]
    indent = 4 + _NAME + _VALUE
    if any(len(word) > _WIDTH - indent for words in said for word in words.split()):
        indent -= _VALUE
    head = f"    {reason.name:<{_NAME}}{reason.value:<{_VALUE}}"
    for words in said:
        yield from _wrapped(head, words, indent)
        head = ""


def _written(reason: Reason, ref: Ref, file: str) -> str:
    """Return who wrote what decided a value, and what that was where it is not the value itself."""
    source = reason.source
    if source is None:
        return ""
    value = f"{quoted(source.value)}, " if source.value.replace(",", "") != reason.value.replace(",", "") else ""
    return f"{value}{at(source, ref, file)}"


def quoted(value: str) -> str:
    """Return a value as a reader sees that it is there, if it is empty."""
    return value or '""'


def at(source: Source, ref: Ref, file: str) -> str:
    """Return who wrote a value and where; the object itself is not named again."""
    own = source.by == f"{ref.kind} {ref.name!r}"
    who = source.field if own else ": ".join(part for part in (source.by, source.field) if part)
    return f"{who} ({_at(source.place, '' if own else file)})" if source.place else who


def _at(place: Place, file: str) -> str:
    name = place.file or file
    return f"{name}:{place.line}:{place.column}" if name else f"line {place.line}"


def _wrapped(head: str, words: str, indent: int) -> Iterator[str]:
    """Yield a head and words beside it, or below where there is no room, in 80 columns."""
    from textwrap import wrap

    whole = words.replace("(line ", "(line\0")  # a number alone on a line says nothing
    lines = wrap(whole, _WIDTH - indent, break_on_hyphens=False, break_long_words=False) if words else []
    lines = [line.replace("\0", " ") for line in lines]
    if lines and len(head.rstrip()) < indent:
        yield f"{head.rstrip():<{indent}}{lines.pop(0)}"
    elif head:
        yield head.rstrip()
    for line in lines:
        yield f"{'':<{indent}}{line}"


def _called(ref: Ref) -> str:
    return f"{ref.kind} {ref.namespace}/{ref.name}" if ref.namespace else f"{ref.kind} {ref.name}"


def _said(findings: Iterable[Finding], file: str, indent: str) -> Iterator[str]:
    for finding in findings:
        place = f"{_at(finding.place, file)}: " if finding.place else ""
        field = f"{finding.field}: " if finding.field else ""
        words = f"{place}{field}{finding.message}; {finding.remedy} [{finding.code}]"
        yield from map(said.printable, _wrapped(f"{indent}{finding.severity}:", words, len(indent) + 9))


def json(explanation: Explanation, file: str) -> Iterator[str]:
    """Yield one JSON object, as `postrender schema explanation` describes it."""
    from json import dumps

    yield dumps(
        {
            "apiVersion": OUR_VERSION,
            "kind": "Explanation",
            "objects": [
                {
                    **_ref(subject.ref),
                    **said.where(subject.place, file),
                    "note": subject.note or None,
                    "components": [_members(component, file) for component in subject.components],
                    "findings": [said.members(finding, file) for finding in subject.findings],
                }
                for subject in explanation.subjects
            ],
            "findings": [said.members(finding, file) for finding in explanation.findings],
        },
        indent=2,
    )


def _ref(ref: Ref) -> dict[str, str]:
    return {"kind": ref.kind, "namespace": ref.namespace, "name": ref.name}


def _members(explained: Explained, file: str) -> dict[str, Any]:
    ganged = bool(explained.groups)
    pods = explained.pods
    return {
        "component": explained.component or None,
        "mode": explained.mode,
        "madeBy": explained.made_by or None,
        "instances": explained.instances if ganged else None,
        "workers": explained.workers if ganged else None,
        "podNames": {"leader": pods.leader, "worker": pods.worker, "firstWorker": pods.first_worker} if pods else None,
        "podGroups": [
            {
                "name": group.name,
                "firstIndex": group.first,
                "instances": group.instances,
                "spare": group.spare,
                "minMember": group.min_member,
                "scheduleTimeoutSeconds": group.seconds,
                "topologyKey": group.topology_key or None,
            }
            for group in explained.groups
        ],
        "decisions": [
            {
                "name": reason.name,
                "value": reason.value,
                "why": reason.why or None,
                "source": _json_source(reason.source, file) if reason.source else None,
                "hidden": [_json_source(source, file) for source in reason.hidden],
            }
            for reason in explained.reasons
        ],
    }


def _json_source(source: Source, file: str) -> dict[str, Any]:
    return {
        "value": source.value,
        "by": source.by,
        "field": source.field or None,
        **said.where(source.place, file),
    }
