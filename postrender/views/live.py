"""What was found in a live cluster, for a terminal of 80 columns at night, and as JSON for programs."""

from __future__ import annotations

from ..findings import ERROR, WARNING
from ..gangs import keys
from . import findings as said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..cluster.live import Gang, Live, Service, Told
    from ..findings import Finding, Ref

_WIDTH = 80
_NAME = 50
_MAKERS = {keys.OURS: "deployed", keys.OME: "made by OME"}


def text(live: Live) -> Iterator[str]:
    """Yield the lines: a section for each service, with its gangs and below each what is wrong and what ends it."""
    last: Ref | None = None
    for service in live.services:
        if service.ref != last:
            if last is not None:
                yield ""
            yield said.printable(f"{service.ref.kind} {service.ref.namespace}/{service.ref.name}")
        last = service.ref
        yield from map(said.printable, _service(service))


def _service(service: Service) -> Iterator[str]:
    name = f"{service.component}: " if service.component else ""
    yield f"  {name}{service.mode}, PodGroups {_MAKERS[service.made_by]}"
    for gang in service.gangs:
        counts = f"{f'{gang.bound:,}/{gang.size:,}':>7} bound  {gang.phase or '-'}"
        if len(gang.name) > _NAME:
            yield f"    {gang.name}"
        yield f"    {gang.name if len(gang.name) <= _NAME else '':<{_NAME}} {counts}"
        for told in gang.told:
            yield from _told(told)
        if gang.message:
            since = f", for {duration(gang.age)}" if gang.age is not None else ""
            yield from _wrapped(f"the scheduler says{since}: {gang.message}")
        if gang.left is not None:
            yield from _wrapped(f"OME fails the Instance in {duration(gang.left)} (unschedulableGracePeriod)")


def _told(told: Told) -> Iterator[str]:
    finding = told.finding
    yield from _wrapped(f"{finding.severity}: {finding.message} [{finding.code}]")
    for command in told.commands:
        yield from _command(command)


def _wrapped(words: str) -> Iterator[str]:
    from textwrap import wrap

    yield from wrap(
        words, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8, break_on_hyphens=False, break_long_words=False
    )


def _command(command: str) -> Iterator[str]:
    """Yield a command in lines that a shell takes as they are: broken between words, a backslash at the end of each."""
    from re import findall

    line = " " * 8
    for word in findall(r"""(?:'[^']*'|"[^"]*"|[^\s'"])+""", command):
        if line.strip() and len(line) + len(word) + 3 > _WIDTH:
            yield f"{line} \\"
            line = " " * 10
        line += f" {word}" if line.strip() else word
    yield line


def duration(seconds: int | None) -> str:
    """Return a time as people say it: 45 s, 12 min, 3 h, 2 d.

    >>> duration(750)
    '12 min'
    """
    for least, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if (seconds or 0) >= least:
            return f"{(seconds or 0) // least:,} {unit}"
    return f"{seconds or 0} s"


def summary(live: Live, found: tuple[Finding, ...]) -> str:
    """Return one line that says what was looked at and how it stands."""
    gangs = [gang for service in live.services for gang in service.gangs]
    states: dict[str, int] = {}
    for gang in gangs:
        states[gang.state] = states.get(gang.state, 0) + 1
    parts = [f"{count:,} {state}" for state, count in states.items()]
    counted = [(severity, sum(one.severity == severity for one in found)) for severity in (ERROR, WARNING)]
    parts += [f"{count:,} {severity}{'s' if count > 1 else ''}" for severity, count in counted if count]
    many = "1 gang" if len(gangs) == 1 else f"{len(gangs):,} gangs"
    return f"postrender: {many}: {', '.join(parts)}" if parts else f"postrender: {many}"


def json(live: Live, found: tuple[Finding, ...], file: str) -> Iterator[str]:
    """Yield one JSON object, as `postrender schema live` describes it; `found` are findings of no gang."""
    from json import dumps

    yield dumps(
        {
            "apiVersion": keys.OUR_VERSION,
            "kind": "LiveCheck",
            "services": [
                {
                    "kind": service.ref.kind,
                    "namespace": service.ref.namespace,
                    "name": service.ref.name,
                    "component": service.component or None,
                    "mode": service.mode,
                    "madeBy": service.made_by,
                    "gangs": [_gang(gang) for gang in service.gangs],
                }
                for service in live.services
            ],
            "findings": [said.members(finding, file) for finding in found],
        },
        indent=2,
    )


def _gang(gang: Gang) -> dict[str, Any]:
    return {
        "name": gang.name,
        "index": gang.number,
        "size": gang.size,
        "pods": gang.pods,
        "bound": gang.bound,
        "state": gang.state,
        "phase": gang.phase or None,
        "cause": gang.cause or None,
        "schedulerSays": gang.message or None,
        "schedulerSaysForSeconds": gang.age,
        "failsInSeconds": gang.left,
        "findings": [{**said.members(told.finding, ""), "commands": list(told.commands)} for told in gang.told],
    }
