"""Bytes + options -> bytes + findings: read, decide, write; `render` composes the three.

Pure: no file, no environment, no clock, no network. Nothing is returned to be written unless the whole of it exists and
was read back.
"""

from __future__ import annotations

from .findings import ERROR, SEVERITIES, WARNING, Finding, Ref, Refusal
from .gangs import cluster, keys, resources
from .gangs.plan import Plan, plan
from .gangs.resources import STREAM, Autoscaler, LeaderWorkerSet, PodGroup, Workload
from .gangs.world import World
from .manifests import edit, lookup, objects, stream, tree
from .options import DEFAULTS, Options
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias, TypeVar

    from .findings import Place
    from .gangs.plan import Placer
    from .gangs.resources import Object
    from .manifests.change import Change, Spot

    # What is written into the stream itself of what was found.
    Report: TypeAlias = Callable[[tuple[Finding, ...]], tuple[Change, ...]]

    T = TypeVar("T")


class Stream(Record):
    """A stream as it was read: its bytes and spans, the objects that matter, and what could not be read.

    `sets` are LeaderWorkerSets and what scales them, where these are asked for; `others` is what is looked up: runtimes
    and settings.
    """

    data: bytes
    spans: tuple[stream.Span, ...]
    workloads: tuple[Workload, ...]
    sets: tuple[LeaderWorkerSet | Autoscaler, ...]
    pod_groups: tuple[PodGroup, ...]
    others: tuple[Object, ...]
    findings: tuple[Finding, ...]


class Deciding(Record):
    """A plan, the world it was made in, and what turns the positions in it into places."""

    plan: Plan
    world: World
    place: Placer


class Rendered(Record):
    """The bytes to deploy, empty if a finding is an error; and the findings, in the order of the stream."""

    data: bytes
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """Whether an error keeps the result from being used."""
        return any(finding.severity == ERROR for finding in self.findings)


class Reader:
    """Reads the objects of one file; `file` is its number, `name` empty for the stream itself."""

    def __init__(self, data: bytes, file: int = STREAM, name: str = "") -> None:
        """Cut it; raises Refusal where it is no text."""
        self.data = data
        self.file = file
        self.name = name
        self.spans = tuple(stream.cut(data))
        self.places = stream.Places(data, self.spans)
        self.findings: list[Finding] = []

    def read(self, numbers: Iterable[int], sets: bool = False) -> Iterator[Object]:
        """Yield the objects that matter in these spans; `sets` says whether LeaderWorkerSets do."""
        for number in numbers:
            document = stream.document(self.data, self.spans[number])
            wanted = keys.wanted
            if self.name:
                wanted = keys.wanted_of_context
            elif sets:
                wanted = keys.wanted_with_sets
            elif keys.OME_CONFIG.encode() in document:
                wanted = keys.wanted_with_settings
            found: Iterator[Object] = self.each(number, document, wanted, resources.depth(document), self._read)
            yield from found

    def _read(self, number: int, item: objects.Item) -> Object | None:
        return resources.read(number, item, self.file)

    def each(
        self,
        number: int,
        document: bytes,
        wanted: Callable[[str, str], bool],
        depth: int,
        read: Callable[[int, objects.Item], T | None],
    ) -> Iterator[T]:
        """Yield what `read` makes of the wanted objects of a span, and keep as findings what it cannot read."""
        try:
            for item in objects.items(document, wanted, depth):
                try:
                    found = read(number, item)
                except tree.Unfit as unfit:
                    self.refuse(unfit, number, item)
                    continue
                if found is not None:
                    yield found
        except tree.Unfit as unfit:
            self.refuse(unfit, number, None)

    def refuse(self, unfit: tree.Unfit, number: int, item: objects.Item | None) -> None:
        """Keep what could not be read as a finding."""
        if self.name and unfit.remedy == tree.TEMPLATE:
            unfit.remedy = "fix the file"
        finding = edit.refusal(unfit, self.places, number).finding
        if finding.place is not None:
            source = finding.place.source or template(stream.document(self.data, self.spans[number]))
            finding = finding._replace(place=finding.place._replace(file=self.name, source=source))
        self.findings.append(finding if item is None else _named(finding, item))

    def place(self, span: int, index: int) -> Place:
        """Return the place of a code point."""
        place = self.places.place(span, index)
        return place._replace(file=self.name) if self.name else place


def template(document: bytes, said_by: tuple[str, ...] = (keys.FILENAME,)) -> str:
    """Return the file that a document's annotation says it is from, if it is said in one way, without reading it.

    `said_by` are the annotations that count: that of Helm 4, which every document of a stream has, or also others.
    """
    for key in said_by:
        names = {mark.partition(b"\n")[0].strip().strip(b"'\"") for mark in document.split(f" {key}:".encode())[1:]}
        if len(names) == 1:
            return names.pop().decode(errors="replace")
    return ""


def _named(finding: Finding, item: objects.Item) -> Finding:
    """Return a finding with who the object is that could not be read, as far as it says so."""
    said = [lookup.value_at(item.root, ("metadata", key)) for key in ("namespace", "name")]
    place, filename = finding.place, lookup.value_at(item.root, ("metadata", "annotations", keys.FILENAME))
    if place is not None and filename and not place.source:
        place = place._replace(source=filename)
    return finding._replace(ref=Ref(item.kind, *said), place=place)


def read(data: bytes, options: Options = DEFAULTS) -> Stream:
    """Return what a stream holds that matters to us; everything else is not even parsed."""
    try:
        reader = Reader(data)
    except Refusal as refusal:
        return Stream(data, (), (), (), (), (), (refusal.finding,))
    asked = options.leaderworkersets
    numbers = stream.candidates(data, reader.spans, needles(options), keys.LOOKED_UP)
    workloads: list[Workload] = []
    groups: list[PodGroup] = []
    others: list[Object] = []
    sets: list[LeaderWorkerSet | Autoscaler] = []
    _sort(reader.read(numbers, asked), workloads, sets, groups, others)
    if workloads or sets:  # else there is nothing to look up for
        known = set(numbers)
        named = bool(options.context) or any(workload.runtime.name for workload in workloads)
        more = stream.holding(data, reader.spans, keys.LOOKED_UP if named else (keys.OME_CONFIG.encode(),))
        _sort(reader.read(number for number in more if number not in known), workloads, sets, groups, others)
    return Stream(
        data, reader.spans, tuple(workloads), tuple(sets), tuple(groups), tuple(others), tuple(reader.findings)
    )


def needles(options: Options) -> tuple[bytes, ...]:
    """Return the words of which a document must contain one to matter."""
    return keys.NEEDLES + keys.SETS if options.leaderworkersets else keys.NEEDLES


def _sort(
    found: Iterable[Object],
    workloads: list[Workload],
    sets: list[LeaderWorkerSet | Autoscaler],
    groups: list[PodGroup],
    others: list[Object],
) -> None:
    for one in found:
        if isinstance(one, Workload):
            workloads.append(one)
        elif isinstance(one, (LeaderWorkerSet, Autoscaler)):
            sets.append(one)
        elif isinstance(one, PodGroup):
            groups.append(one)
        else:
            others.append(one)


class _Context:
    """What stands beside the stream: the files of `--context` and the values of OME's chart."""

    def __init__(self, options: Options) -> None:
        self.files: list[Reader] = []
        self.objects: list[Object] = []
        self.findings: list[Finding] = []
        for source in options.context:
            self._read(source.name, source.data)
        if options.ome_values is not None:
            self._read_values(options.ome_values.name, options.ome_values.data)

    def _open(self, name: str, data: bytes) -> Reader | None:
        try:
            reader = Reader(data, len(self.files) + 1, name)
        except Refusal as refusal:
            finding = refusal.finding
            self.findings.append(finding._replace(place=finding.place and finding.place._replace(file=name)))
            return None
        self.files.append(reader)
        return reader

    def _read(self, name: str, data: bytes) -> None:
        reader = self._open(name, data)
        if reader is not None:
            self.objects.extend(reader.read(range(len(reader.spans))))
            self.findings.extend(reader.findings)

    def _read_values(self, name: str, data: bytes) -> None:
        reader = self._open(name, data)
        if reader is None:
            return
        try:
            self.objects.append(cluster.chart_values(reader.file, tree.read(data, 5)))
        except tree.Unfit as unfit:
            reader.refuse(unfit, 0, None)
            self.findings.extend(reader.findings)


def decide(read_stream: Stream, options: Options = DEFAULTS) -> Plan:
    """Return the gangs, changes and findings for a stream."""
    return deciding(read_stream, read_stream.workloads, options, True).plan


def deciding(read_stream: Stream, workloads: Iterable[Workload], options: Options, keep: bool) -> Deciding:
    """Return the same for workloads handed over one at a time, and what it was decided with.

    What was decided of each stays out of the plan unless it is to be kept.
    """
    places = stream.Places(read_stream.data, read_stream.spans)
    context = _Context(options) if options.context or options.ome_values else None
    files = context.files if context else []

    def place(file: int, spot: Spot, index: int) -> Place:
        return places.place(spot.span, index) if file == STREAM else files[file - 1].place(spot.span, index)

    # The stream's come last, for they win.
    held = (*context.objects, *read_stream.others) if context else read_stream.others
    world = World(held, options)
    planned = plan(workloads, read_stream.sets, read_stream.pod_groups, world, place, keep)
    unread = context.findings if context else []
    if not (unread or read_stream.findings):
        return Deciding(planned, world, place)
    # What could not be read may be what is missed; once it can be, we shall know.
    rest = (one for one in planned.findings if one.code not in ("gang-unknown", "runtime-unresolved"))
    return Deciding(planned._replace(findings=(*unread, *rest)), world, place)


def write(read_stream: Stream, planned: Plan) -> bytes:
    """Return the bytes of the stream with the plan's changes made; raises Refusal where one cannot be."""
    return edit.splice(read_stream.data, read_stream.spans, planned.changes)


def render(data: bytes, options: Options = DEFAULTS, report: Report | None = None) -> Rendered:
    """Return what is to be deployed instead of `data`, and what is to be said; `report` also says it in the stream.

    >>> render(b"kind: ConfigMap").data
    b'kind: ConfigMap'
    """
    if stream.is_quiet(data, needles(options)):
        return Rendered(data, ())
    found = read(data, options)
    # What was read of a long list is as large as the list, and so is what comes of it: one goes as the other comes.
    left = list(found.workloads)
    left.reverse()
    found = found._replace(workloads=())
    planned = deciding(found, _each(left), options, False).plan
    rendered = Rendered(b"", judged((*found.findings, *planned.findings), options))
    if rendered.refused:
        return rendered
    # The iterator is the only holder of the changes, and each goes when it was made.
    spans, changes = found.spans, iter(planned.changes)
    if report is not None:
        changes = iter((*planned.changes, *report(rendered.findings)))
    del found, planned
    try:
        return rendered._replace(data=edit.splice(data, spans, changes))
    except Refusal as refusal:
        return rendered._replace(findings=(*rendered.findings, refused_edit(refusal, read(data, options))))


def refused_edit(refusal: Refusal, found: Stream) -> Finding:
    """Return what could not be edited, with the object that it was to be done for."""
    owners: list[Workload | LeaderWorkerSet] = [*found.workloads]
    owners += [one for one in found.sets if isinstance(one, LeaderWorkerSet)]
    for one in owners:
        if one.spot == refusal.spot:
            return refusal.finding._replace(ref=Ref(one.kind, one.namespace, one.name))
    return refusal.finding


def _each(left: list[Workload]) -> Iterator[Workload]:
    """Yield the workloads from the last on, and hold none that was."""
    while left:
        yield left.pop()


def judged(findings: Iterable[Finding], options: Options) -> tuple[Finding, ...]:
    """Return the findings that count: without the accepted ones, and warnings raised to errors where that is asked."""
    return tuple(
        finding._replace(raised=True) if options.strict and SEVERITIES[finding.code] == WARNING else finding
        for finding in findings
        if finding.code not in options.accept
    )
