"""`context` and `check --live`: a cluster is read, and what was asked for goes to stdout; it is never written to."""

from __future__ import annotations

import time

from .. import pipeline
from ..cluster import client, kubeconfig, live, snapshot, state
from ..cluster.causes import Judge
from ..cluster.commands import Commands
from ..cluster.server import Denied, Server
from ..findings import DONE, ERROR, REFUSED, UNREACHABLE
from ..options import Source
from ..record import Record
from ..views import live as view
from ..views.findings import lines, printable
from . import review
from .joined import together
from .review import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import TextIO, TypeVar

    from ..cluster.snapshot import Snapshot
    from ..cluster.state import State
    from ..findings import Finding
    from ..gangs.shapes.shape import Decided
    from ..options import Options
    from .joined import Joined
    from .review import Flags, Streams

    Held = TypeVar("Held")

# What the cluster itself answers: whether PodGroups are served is said of all gangs, whoever makes them; and of a gang
# that is known the pods show what an unread runtime comes to.
_ANSWERED = ("podgroup-crd-missing", "runtime-unresolved")
# How messages name what was read of the cluster and stands in no file.
_CLUSTER = "<cluster>"


class Access(Record):
    """Which cluster, and what of it: `context` and `kubeconfig` are empty for kubectl's own choice.

    `namespace` is empty where none is named; `everywhere` asks for all of them.
    """

    context: str = ""
    kubeconfig: str = ""
    namespace: str = ""
    everywhere: bool = False
    ome_namespace: str = "ome"

    @property
    def kubectl(self) -> tuple[str, ...]:
        """The flags by which kubectl reaches the same cluster."""
        named = (("--context", self.context), ("--kubeconfig", self.kubeconfig))
        return tuple(word for flag, value in named if value for word in (flag, value))

    @property
    def ours(self) -> tuple[str, ...]:
        """The flags by which we do."""
        named = (("--kube-context", self.context), ("--kubeconfig", self.kubeconfig))
        own = ("--ome-namespace", self.ome_namespace) if self.ome_namespace != "ome" else ()
        return (*(word for flag, value in named if value for word in (flag, value)), *own)


class _Progress:
    """Says on a terminal what is read, on one line that goes when it is done."""

    def __init__(self, errors: TextIO | None) -> None:
        self._target = errors if errors is not None and errors.isatty() else None

    def __call__(self, what: str) -> None:
        self._write(f"\r\x1b[Kpostrender: reading {what} ")

    def end(self) -> None:
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if self._target is not None:
            self._target.write(text)
            self._target.flush()


def context(access: Access, streams: Streams) -> int:
    """Print what a cluster knows as a context; return the exit code."""

    def read(server: Server) -> Snapshot:
        return snapshot.take(server, access.namespace, access.ome_namespace)

    try:
        taken = _asked(access, streams, read)
        for note in taken.notes:
            streams.say(printable(f"postrender: warning: {note}"))
        streams.put([taken.data])
    except Stopped as stopped:
        return review.stop(stopped, streams)
    return DONE


class _Seen(Record):
    """What was decided of files or services and said of that, in a cluster that is like this and runs that."""

    decided: tuple[Decided, ...]
    findings: tuple[Finding, ...]
    default: str
    state: State
    snapshot: Snapshot


def check(names: Sequence[str], access: Access, flags: Flags, streams: Streams) -> int:
    """Compare what files come to, or the services of the cluster where none is named, with what runs.

    Print what is found; return the exit code.
    """
    try:
        settled = review.settled_of(flags)
        options, form = settled.options, settled.form
        joined = together(review.read(names, streams)) if names else None

        def read(server: Server) -> _Seen:
            return _seen(server, access, options, joined.data if joined else None)

        seen = _asked(access, streams, read)
        judge = Judge(seen.state, _commands(access, options, seen.snapshot))
        compared = live.judged(live.compare(seen.decided, seen.default, seen.state, judge), options)
        rest = (*compared.findings, *_of_plan(seen.findings, options, joined))
        found = (*(told.finding for told in compared.told), *rest)
        file = joined.starts[0][1] if joined else _CLUSTER
        for note in seen.snapshot.notes:
            streams.say(printable(f"postrender: warning: {note}"))
        if form.format == "json":
            streams.write(view.json(compared, rest, file))
        elif form.format == "github":
            streams.write(lines(found, file, form))
        else:
            streams.write(view.text(compared))
            streams.write(lines(rest, file, form))
            streams.say(view.summary(compared, found))
    except Stopped as stopped:
        return review.stop(stopped, streams)
    return REFUSED if any(finding.severity == ERROR for finding in found) else DONE


def _seen(server: Server, access: Access, options: Options, data: bytes | None) -> _Seen:
    """Return what there is to compare. The context is the cluster itself; a namespace narrows what is read of it."""
    default = access.namespace or options.namespace or kubeconfig.namespace(access.context, access.kubeconfig)
    narrow = "" if access.everywhere or (data is not None and not access.namespace) else default
    taken = snapshot.take(server, narrow, access.ome_namespace)
    options = options._replace(
        context=(*options.context, Source(_CLUSTER, taken.data)), namespace=options.namespace or default
    )
    if data is None:
        streams = snapshot.services(server, narrow, options.leaderworkersets, options.replicas)
    else:
        streams = ((options.replicas, data),)
    decided: list[Decided] = []
    findings: list[Finding] = []
    for replicas, stream in streams:
        asked = options._replace(replicas=replicas)
        found = pipeline.read(stream, asked)
        planned = pipeline.decide(found, asked)
        decided += planned.decided
        findings += (*found.findings, *planned.findings)
    spaces = sorted({one.owner.namespace or default for one in decided if one.gangs})
    running = state.read(
        server,
        ("",) if access.everywhere else spaces,
        options.leaderworkersets,
        access.ome_namespace,
        time.time(),
    )
    return _Seen(tuple(decided), tuple(findings), default, running, taken)


def _of_plan(findings: Iterable[Finding], options: Options, joined: Joined | None) -> tuple[Finding, ...]:
    """Return what keeps a gang from being known; all else that a check says of manifests needs no cluster.

    What was read of the cluster stands in no file.
    """
    errors = [one for one in findings if one.severity == ERROR and one.code not in _ANSWERED]
    placed = [joined.named(one) if joined else one._replace(place=None) for one in errors]
    return pipeline.judged(placed, options)


def _commands(access: Access, options: Options, taken: Snapshot) -> Commands:
    return Commands(
        access.kubectl,
        access.ours,
        options.scheduler_name,
        options.gang_scheduler,
        options.ome,
        access.ome_namespace,
        taken.kubernetes,
    )


def _asked(access: Access, streams: Streams, read: Callable[[Server], Held]) -> Held:
    """Return what is read of a cluster; raises Stopped where it cannot be."""
    progress = _Progress(streams.errors)
    try:
        connected = client.connect(access.context, access.kubeconfig)
        try:
            return read(Server(connected, progress))
        finally:
            connected.close()
    except (client.Missing, client.Unreachable) as error:
        raise Stopped(str(error), UNREACHABLE) from None
    except Denied as denied:
        raise Stopped(str(denied), REFUSED) from None
    finally:
        progress.end()
