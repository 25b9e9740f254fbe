"""`check`, `diff` and `explain`: files or stdin in; what was asked for on stdout, what goes wrong on stderr."""

from __future__ import annotations

import os

from .. import review
from ..findings import DONE, ERROR, REFUSED, UNREACHABLE, USAGE, WARNING, WOULD_CHANGE
from ..options import Source
from ..sources import Misuse, Unreadable, files, settle
from ..views.findings import lines, printable
from .filter import STDIN, TERMINAL
from .joined import together

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO, TextIO, TypeAlias

    from ..sources import Settled
    from .joined import Joined

    Flags: TypeAlias = Mapping[str, str | Sequence[str]]


class Streams:
    """The streams of a command, None for one that is closed; `color` says whether what it prints is colored."""

    def __init__(self, source: BinaryIO | None, target: BinaryIO | None, errors: TextIO | None, color: bool) -> None:
        """Keep all four."""
        self.source = source
        self.target = target
        self.errors = errors
        self.color = color

    def write(self, text: Iterable[str]) -> None:
        """Write lines to stdout; bytes that are no UTF-8 as they came."""
        self.put(line.encode(errors="surrogateescape") + b"\n" for line in text)

    def put(self, pieces: Iterable[bytes]) -> None:
        """Write bytes to stdout; raises Stopped where they cannot be."""
        if self.target is None:
            raise Stopped("stdout is closed; give it a pipe or a file", UNREACHABLE)
        try:
            for piece in pieces:
                self.target.write(piece)
            self.target.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise Stopped(f"the output could not be written: {error.strerror or error}", UNREACHABLE) from None

    def say(self, line: str) -> None:
        """Write a line to stderr."""
        if self.errors is not None:
            self.errors.write(line + "\n")


class Stopped(Exception):  # noqa: N818 - it ends a command
    """Raised where a command cannot go on, with its exit code."""

    def __init__(self, message: str, code: int) -> None:
        """Keep both."""
        super().__init__(message)
        self.code = code


def check(names: Sequence[str], rendered: bool, flags: Flags, streams: Streams) -> int:
    """Print what is found in all the files together; return the exit code."""
    try:
        settled = settled_of(flags)
        joined = together(read(names, streams))
        checked = review.check(joined.data, settled.options, rendered)
        findings = [joined.named(finding) for finding in checked.findings]
        streams.write(lines(findings, "", settled.form))
    except Stopped as stopped:
        return stop(stopped, streams)
    if settled.form.format == "text":
        streams.say(_summary(checked))
    if any(finding.severity == ERROR and finding.code != "not-rendered" for finding in findings):
        return REFUSED
    return WOULD_CHANGE if rendered and checked.changed else DONE


def _summary(checked: review.Checked) -> str:
    """Return one line that says what was looked at: nothing found is good news only where there was something."""
    if checked.empty:
        return "postrender: the input is empty"
    found = []
    for severity in (ERROR, WARNING):
        count = sum(finding.severity == severity for finding in checked.findings)
        found += [_many(count, severity)] if count else []
    gangs = _many(checked.gangs, "gang") if checked.gangs else "no gang"
    seen = f"{_many(checked.objects, 'object')}, {gangs}"
    return "; ".join((f"postrender: {seen}: {', '.join(found) or 'nothing found'}", *checked.overlooked))


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def diff(name: str, flags: Flags, streams: Streams) -> int:
    """Print what a render would change, as a unified diff; return the exit code."""
    from ..views import diff as view

    try:
        settled = settled_of(flags)
        joined = together(read([name], streams))
        compared = review.compare(joined.data, settled.options)
        for line in lines(map(joined.named, compared.findings), "", settled.form):
            streams.say(line)
        if compared.refused:
            return REFUSED
        shown = _shown(joined, compared)
        if streams.color:
            shown = view.colored(shown)
        elif streams.target is not None and streams.target.isatty():
            shown = view.printable(shown)
        streams.write(shown)
    except Stopped as stopped:
        return stop(stopped, streams)
    return WOULD_CHANGE if compared.changed else DONE


def _shown(joined: Joined, compared: review.Comparison) -> Iterator[str]:
    """Return the lines of a diff: of several files each is its own, with its own lines, so that it is a patch."""
    from ..views import diff as view

    [(_, name), *others] = joined.starts
    if not others:
        return view.stream(compared.pieces, "stdin" if name == STDIN else name)
    try:
        parts = [*joined.parts(compared.pieces)]
    except ValueError as error:
        raise Stopped(str(error), REFUSED) from None
    return (line for name, old, new in parts for line in view.lines(old, new, name, name))


def explain(name: str, wanted: str, form: str, flags: Flags, streams: Streams) -> int:
    """Print what a render decides and why, of the `wanted` object or of all; return the exit code."""
    from ..views import explanation as view

    try:
        settled = settled_of(flags)
        joined = together(read([name], streams))
        explained = review.explain(joined.data, settled.options)
        file = joined.starts[0][1]
        if len(joined.starts) > 1:
            file, explained = name, joined.explained(explained)
        if wanted:
            explained = _only(explained, wanted)
        if form == "html":
            from ..views import page

            streams.write(page.page(explained, file))
        else:
            streams.write(view.json(explained, file) if form == "json" else view.text(explained, file))
    except Stopped as stopped:
        return stop(stopped, streams)
    return REFUSED if explained.refused else DONE


def _only(explained: review.Explanation, wanted: str) -> review.Explanation:
    """Return what is explained of `KIND/NAME` or `KIND/NAMESPACE/NAME`; the kind as kubectl takes it."""
    kind, _, rest = wanted.partition("/")
    kind = kind.lower()
    namespace, _, name = rest.rpartition("/")
    kept = tuple(
        subject
        for subject in explained.subjects
        if kind in (subject.ref.kind.lower(), f"{subject.ref.kind.lower()}s", _SHORT.get(subject.ref.kind))
        and subject.ref.name == name
        and (not namespace or subject.ref.namespace == namespace)
    )
    if not kept:
        here = ["/".join(part for part in subject.ref if part) for subject in explained.subjects[:_SHOWN]]
        more = len(explained.subjects) - len(here)
        listed = ", ".join(here) + (f" and {more:,} more" if more else "")
        message = f"--object: there is no {wanted}; there {'is' if len(here) == 1 else 'are'} {listed or 'none at all'}"
        raise Stopped(message, REFUSED)
    return review.Explanation(kept, ())


_SHOWN = 10
# As `kubectl get` takes them (the CRDs' shortNames).
_SHORT = {"InferenceService": "isvc", "LeaderWorkerSet": "lws"}


def settled_of(flags: Flags) -> Settled:
    """Return the options that were given; raises Stopped where one is wrong."""
    try:
        return settle(flags, os.environ)
    except Misuse as error:
        raise Stopped(str(error), UNREACHABLE if isinstance(error, Unreadable) else USAGE) from None


def read(names: Sequence[str], streams: Streams) -> list[Source]:
    """Return the files that are named, those of a folder too, or stdin where none is."""
    sources: list[Source] = []
    for name in names or ("-",):
        if name != "-":
            try:
                sources.extend(files(name))
            except Unreadable as error:
                raise Stopped(str(error), UNREACHABLE) from None
            continue
        if streams.source is None:
            raise Stopped("stdin is closed; give it a pipe, or name a FILE", UNREACHABLE)
        if streams.source.isatty():
            raise Stopped(TERMINAL, USAGE)
        try:
            sources.append(Source(STDIN, streams.source.read()))
        except OSError as error:
            raise Stopped(f"{STDIN} cannot be read: {error.strerror or error}", UNREACHABLE) from None
    return sources


def stop(stopped: Stopped, streams: Streams) -> int:
    """Say why a command ends; return its exit code."""
    streams.say(printable(f"postrender: error: {stopped}"))
    return stopped.code
