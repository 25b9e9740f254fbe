"""What people ask of a stream before they trust a render: what it changes, whether all is well, and why.

Pure, as the render is; nothing here decides.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import accumulate, zip_longest

from .findings import ERROR, Finding, Ref, Refusal
from .gangs import audit, keys, labelled, reasons
from .gangs.resources import STREAM, LeaderWorkerSet, Workload
from .manifests import edit, stream, tree
from .manifests.change import Add, Replace, Set
from .manifests.lookup import value_at
from .manifests.objects import field, holds_items, settled, shorten
from .options import DEFAULTS, Options
from .pipeline import Reader, decide, deciding, judged, needles, read, refused_edit, template
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from .findings import Place
    from .gangs.labelled import AnyPodGroup, Labelled
    from .gangs.plan import Plan
    from .gangs.reasons import Explained
    from .manifests.change import Change, Spot, Value
    from .pipeline import Stream


class Piece(Record):
    """A part of a stream before and after, `old is new` where nothing changes; `source` is the file it is from."""

    old: bytes
    new: bytes
    source: str


class Comparison(Record):
    """What a render does: its pieces, which make up the stream, and the findings that count; no pieces if refused."""

    pieces: tuple[Piece, ...]
    findings: tuple[Finding, ...]

    @property
    def refused(self) -> bool:
        """Whether an error keeps the stream from being rendered."""
        return any(finding.severity == ERROR for finding in self.findings)

    @property
    def changed(self) -> bool:
        """Whether a render changes anything."""
        return any(piece.old is not piece.new for piece in self.pieces)


class Checked(Record):
    """What a check found: the findings that count, how many objects there are, and how many gangs these come to.

    `changed` says that the stream is not what a render makes of it; that is asked only of what was rendered already.
    `overlooked` are sentences about what looks like a gang and is not looked at, where nothing is; `empty` says that
    there is no text at all.
    """

    findings: tuple[Finding, ...]
    objects: int
    gangs: int
    changed: bool
    overlooked: tuple[str, ...]
    empty: bool


class Subject(Record):
    """An object that was explained: what it is, where it stands, its components, and what is said of it.

    `note` says why it has no components to speak of, or is empty.
    """

    ref: Ref
    place: Place
    note: str
    components: tuple[Explained, ...]
    findings: tuple[Finding, ...]


class Explanation(Record):
    """What a render decides and why, object by object; `findings` are those of no object among them.

    `overlooked` are sentences about what looks like a gang and is not explained, where nothing is.
    """

    subjects: tuple[Subject, ...]
    findings: tuple[Finding, ...]
    overlooked: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether an error keeps the stream from being rendered."""
        held = (*self.findings, *(finding for subject in self.subjects for finding in subject.findings))
        return any(finding.severity == ERROR for finding in held)


def compare(data: bytes, options: Options = DEFAULTS) -> Comparison:
    """Return what a render does to a stream, piece by piece."""
    options = _needed(data, options)
    found = read(data, options)
    return _compared(found, decide(found, options), options)


def _needed(data: bytes, options: Options) -> Options:
    """Return the options, without a context where a render would not read it: nothing in the stream asks for one."""
    return options._replace(context=(), ome_values=None) if stream.is_quiet(data, needles(options)) else options


def _compared(found: Stream, planned: Plan, options: Options) -> Comparison:
    data = found.data
    compared = Comparison((), judged((*found.findings, *planned.findings), options))
    if compared.refused:
        return compared
    pieces = []
    done = 0
    try:
        for number, new in edit.changed(data, found.spans, planned.changes):
            span = found.spans[number]
            old = data[span.start : span.stop]
            same = data[done : span.start]
            pieces += [Piece(same, same, ""), Piece(old, new, stream.source(data, span) or template(old, keys.FILES))]
            done = span.stop
    except Refusal as refusal:
        return compared._replace(findings=(*compared.findings, refused_edit(refusal, found)))
    rest = data[done:]
    return compared._replace(pieces=(*pieces, Piece(rest, rest, "")))


def explain(data: bytes, options: Options = DEFAULTS) -> Explanation:
    """Return what a render decides of each object, and why."""
    options = _needed(data, options)
    found = read(data, options)
    planned, world, place = deciding(found, found.workloads, options, True)
    findings = _compared(found, planned, options).findings
    components: dict[Spot, list[Explained]] = {}
    for decided in planned.decided:
        components.setdefault(decided.owner.spot, []).append(reasons.explained(decided, world, place))
    owners: list[Workload | LeaderWorkerSet] = [*found.workloads]
    owners += [one for one in found.sets if isinstance(one, LeaderWorkerSet)]
    subjects = []
    said: set[Ref] = set()
    for one in sorted(owners, key=_spot):
        ref = Ref(one.kind, one.namespace, one.name)
        note = "VirtualDeployment: OME makes nothing of it" if isinstance(one, Workload) and one.virtual else ""
        own = () if ref in said else tuple(finding for finding in findings if finding.ref == ref)
        said.add(ref)
        subjects.append(Subject(ref, place(STREAM, one.spot, one.at), note, tuple(components.get(one.spot, ())), own))
    overlooked = () if subjects else _overlooked(_heads(data), options)
    rest = tuple(finding for finding in findings if finding.ref not in said)
    return Explanation(tuple(subjects), rest, overlooked)


def _spot(one: Workload | LeaderWorkerSet) -> Spot:
    return one.spot


def check(data: bytes, options: Options = DEFAULTS, rendered: bool = False) -> Checked:
    """Return what a render would say of a stream, and what does not fit together in what it comes to.

    If it is `rendered` already, that is the stream itself, and what a render would still change is said too.
    """
    options = _needed(data, options)
    found = read(data, options)
    planned = deciding(found, found.workloads, options, True).plan
    compared = _compared(found, planned, options)
    findings = compared.findings
    if rendered:
        changes = _changes(found, planned) if compared.changed else ()
        said = set(findings)  # what cannot be read is met twice
        findings += (*changes, *(one for one in _across(data, options) if one not in said))
    elif not compared.refused:
        across = _across(b"".join(piece.new for piece in compared.pieces), options)
        findings += tuple(_moved(across, compared.pieces))
    heads = list(_heads(data))
    overlooked = () if found.workloads or found.sets else _overlooked(heads, options)
    gangs = sum(len(decided.gangs) for decided in planned.decided)
    return Checked(findings, len(heads), gangs, compared.changed, overlooked, not data.strip())


def _heads(data: bytes) -> Iterator[tree.Head]:
    """Yield what each object of a stream says it is, those of a list too, as far as it can be read."""
    try:
        spans = stream.cut(data)
    except Refusal:
        return
    for span in spans:
        document = stream.document(data, span)
        try:
            head = tree.head(document)
            if head is None:
                continue
            if not holds_items(head.kind):
                yield head
                continue
            for number, node in tree.nodes(document, True, 3):
                item = node.resolved()
                if number >= 0 and item.kind == tree.MAP:
                    said = settled(item)
                    yield said if said.kind else tree.Head(head.api_version, head.kind.removesuffix("List"))
        except tree.Unfit:
            continue


def _overlooked(heads: Iterable[tree.Head], options: Options) -> tuple[str, ...]:
    """Return what looks like a gang to a person: a kind of the same name, and sets that were not asked for."""
    found = dict.fromkeys(heads)
    others = [
        f"an {kind} of {version.partition('/')[0]} is here, and is not {keys.OME_GROUP}'s"
        for version, kind in found
        if kind in (keys.INFERENCE_SERVICE, keys.INFERENCE_REPLICA) and not keys.wanted(version, kind)
    ]
    sets = [kind for version, kind in found if keys.is_set(version, kind)]
    if sets and not options.leaderworkersets:
        others.append(f"a {sets[0]} is here (--leaderworkersets gangs those)")
    return tuple(others)


def _across(data: bytes, options: Options) -> tuple[Finding, ...]:
    """Return the findings that count across the objects of a stream as it is."""
    found = read(data, options)
    planned, _, place = deciding(found, found.workloads, options, True)
    try:
        reader = Reader(data)
    except Refusal:
        return ()  # said already
    held = list(_labelled(reader))
    return judged((*reader.findings, *audit.audit(held, planned, options, place)), options)


def _labelled(reader: Reader) -> Iterator[Labelled | AnyPodGroup]:
    """Yield the objects whose pods carry labels, and all PodGroups."""
    for number in stream.candidates(reader.data, reader.spans, labelled.NEEDLES):
        document = stream.document(reader.data, reader.spans[number])
        found: Iterator[Labelled | AnyPodGroup] = reader.each(
            number, document, labelled.wanted, labelled.DEPTH, labelled.read
        )
        yield from found


def _changes(found: Stream, planned: Plan) -> Iterator[Finding]:
    """Yield what a render would still change, as findings about the objects that it would be done to."""
    place = stream.Places(found.data, found.spans).place
    per_span: dict[int, dict[int, list[Change]]] = {}
    for change in planned.changes:
        spot = change.before if isinstance(change, Add) else change.spot
        per_span.setdefault(spot.span, {}).setdefault(spot.item, []).append(change)
    for span, per_item in sorted(per_span.items()):
        document = stream.document(found.data, found.spans[span])
        for number, node in tree.nodes(document, any(item >= 0 for item in per_item)):
            for change in per_item.get(number, ()):
                finding = _change(change, node)
                if finding is not None:
                    yield finding._replace(place=place(span, node.start))


def _change(change: Change, node: tree.Node) -> Finding | None:
    """Return what a change would do to an object; None if it holds already."""
    remedy = "deploy what a render makes of it"
    if isinstance(change, (Add, Replace)):
        ref = Ref(
            keys.POD_GROUP_KIND, *(str(_at(change.value, ("metadata", key)) or "") for key in ("namespace", "name"))
        )
        owner = _at(change.value, ("metadata", "annotations", keys.MADE_FOR))
        what = f"it is missing, and {owner} needs it" if isinstance(change, Add) else f"it is not what {owner} needs"
        return Finding("not-rendered", what, remedy, ref)
    held = value_at(node, change.path) if isinstance(change, Set) else ""
    if not isinstance(change, Set) or held == change.value:
        return None
    ref = Ref(value_at(node, ("kind",)), *(value_at(node, ("metadata", key)) for key in ("namespace", "name")))
    message = f"is {shorten(held)!r}, not {change.value!r}" if held else f"is missing; a render writes {change.value!r}"
    return Finding("not-rendered", message, remedy, ref, field(change.path))


def _at(value: Value | None, path: Sequence[str]) -> Value | None:
    for key in path:
        value = dict(value).get(key) if isinstance(value, tuple) else None
    return value


def _moved(findings: Iterable[Finding], pieces: Iterable[Piece]) -> Iterator[Finding]:
    """Yield findings about what a render comes to with the lines where they stand in what it came of."""
    held = [piece for piece in pieces if piece.new]
    # Lines before each piece.
    olds = (0, *accumulate(piece.old.count(b"\n") for piece in held))
    news = (0, *accumulate(piece.new.count(b"\n") for piece in held))
    aligned: dict[int, list[int]] = {}
    for finding in findings:
        place = finding.place
        if place is None:
            yield finding
            continue
        number = bisect_left(news, place.line, hi=len(held)) - 1
        line = place.line - news[number]
        old, new, _ = held[number]
        if old is not new:
            if number not in aligned:
                aligned[number] = _aligned(old.split(b"\n"), new.split(b"\n"))
            line = aligned[number][line - 1]
        yield finding._replace(place=place._replace(line=olds[number] + line))


def _aligned(old: Sequence[bytes], new: Sequence[bytes]) -> list[int]:
    """Return for each line of a changed text which line it was, the nearest above where it is new.

    In linear time, which the shortest diff does not take: what is not inserted stands in its order. Where one line has
    become another, a line that stands once in both is where to go on at the latest.
    """
    counts = Counter(old), Counter(new)
    once = {line: number for number, line in enumerate(old) if counts[0][line] == counts[1][line] == 1}
    lines = []
    at = 0  # how many lines of the old text are behind
    for line, following in zip_longest(new, new[1:]):
        known = once.get(line, -1)
        if known >= at:
            at = known + 1
        elif old[at : at + 1] == [line] or (following is not None and old[at + 1 : at + 2] == [following]):
            at += 1
        lines.append(max(at, 1))
    return lines
