"""An explanation as one HTML page: gangs as people draw them, and why they are so, each beside what is said of it.

Nothing is loaded from elsewhere and no script runs, so that the page can be kept, sent and shown anywhere. It is small:
the end tags are left out that HTML lets one leave out, and what is the same for all gangs, or said of many objects,
stands there once.
"""

from __future__ import annotations

import html

from ..findings import ERROR, WARNING
from . import findings as said
from .explanation import holds, nothing, quoted, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..findings import Finding, Place, Ref
    from ..gangs.reasons import Explained, Group, Reason, Source
    from ..review import Explanation, Subject

# More workers, or Instances, than these are drawn as a number.
_WORKERS = 15
_INSTANCES = 12
# What holds for this many gangs and differs for none, or is said this often, is told once, above them.
_COMMON = 3
# Drawn in full already, unless it has a source.
_DRAWN = ("minMember", "scheduleTimeoutSeconds")

_STYLE = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--soft:#59636e;--line:#d1d9e0;--box:#f6f8fa;--leader:#0757ba;
--worker:#4488d8;--spare:#848d97;--error:#b3261e;--warning:#8a5a00;--note:#59636e}
@media screen and (prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e6edf3;--soft:#9aa5b1;--line:#3a434e;
--box:#1b212a;--leader:#79b8ff;--worker:#4579b8;--spare:#6e7a88;--error:#ff8f87;--warning:#e3b341;--note:#9aa5b1}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--paper);color:var(--ink);
font:15px/1.45 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem;margin:.3rem 0}
h2{font-size:1.1rem;margin:0}
h3{font-size:1rem;margin:.8rem 0 .4rem}
small,figure,dt,.s,li.c{color:var(--soft);font-size:.85rem;font-weight:400}
section{border:1px solid var(--line);border-radius:.5rem;padding:.8rem 1rem;margin:1rem 0;break-inside:avoid-page}
.g{display:flex;flex-wrap:wrap;gap:.7rem}
figure{margin:0;border:1px solid var(--line);border-radius:.4rem;padding:.5rem .6rem;background:var(--box);
width:22rem;max-width:100%}
figure>b{color:var(--ink);display:block;font-size:.9rem}
.t{border-style:dashed;border-width:2px}
.p{border-style:dotted}
.n{display:flex;flex-wrap:wrap;gap:2px 3px;align-items:center;margin:.35rem 0}
.n b,.n i{display:block;height:1rem;border-radius:.2rem;background:var(--leader);width:1.4rem}
.n i{--c:var(--worker);border-radius:0;width:calc(var(--n,1)*12px - 2px);
background:repeating-linear-gradient(90deg,var(--c) 0 10px,transparent 10px 12px)}
.p .n b{background:var(--spare)}.p .n i{--c:var(--spare)}
figure .n{color:var(--ink)}
figure .n::before{content:"Instance"}
.l b,.l i{display:inline-block;vertical-align:-.15em}
.n em{font-style:normal;font-size:.85rem}
.b{display:block;position:relative;height:.4rem;width:9rem;max-width:100%;background:var(--line);border-radius:.2rem;
margin:.3rem 0}
.b i{position:absolute;left:0;top:0;bottom:0;background:var(--leader);border-radius:.2rem}
dl{display:grid;grid-template-columns:minmax(7rem,13rem) 1fr;gap:.1rem .8rem;margin:.5rem 0;
padding-bottom:.2rem}
dd{margin:0;min-width:0;color:var(--soft);font-size:.85rem}
dd b{color:var(--ink);font-weight:400;font-size:.9rem}
dd s{text-decoration:none;display:block}
ul{list-style:none;padding:0;margin:.5rem 0;font-size:.9rem}
li{border-left:.25rem solid var(--note);padding:.1rem .6rem;margin:.3rem 0}
li.c{display:inline-block;margin:.2rem .5rem .2rem 0}
li.c b{color:var(--ink);font-size:.9rem}
li.e{border-color:var(--error)}li.e b{color:var(--error)}
li.w{border-color:var(--warning)}li.w b{color:var(--warning)}
code{font-size:.85em}
@media(max-width:32rem){body{padding:.6rem}section{padding:.6rem}dl{grid-template-columns:1fr}dt{margin-top:.3rem}}
@media print{:root{--paper:#fff;--ink:#000}body{max-width:none;padding:0}*{print-color-adjust:exact}}
"""


def page(explanation: Explanation, file: str) -> Iterator[str]:
    """Yield the lines of the page; `file` is what the stream was read from."""
    return _Page(explanation, file).lines()


def _text(text: str) -> str:
    return html.escape(said.printable(text), quote=False)


class _Page:
    """Holds what is told once."""

    def __init__(self, explanation: Explanation, file: str) -> None:
        self.explanation = explanation
        self.file = file
        self.ganged = [one for subject in explanation.subjects for one in subject.components if one.groups]
        self.findings = [
            *explanation.findings,
            *(finding for subject in explanation.subjects for finding in subject.findings),
        ]
        clamps = {one.bounds for one in self.ganged}
        self.bounds = clamps.pop() if len(clamps) == 1 else None
        self.common = self._common()
        kinds = {subject.ref.kind for subject in explanation.subjects}
        self.kind = kinds.pop() if len(kinds) == 1 else ""  # of all objects, if it is one
        times: dict[tuple[str, str], int] = {}
        for finding in self.findings:
            times[finding.code, finding.message] = times.get((finding.code, finding.message), 0) + 1
        # Codes of which one message is said often; it stands above, and the code beside the object.
        self.often = {key: count for key, count in times.items() if count >= _COMMON}
        titles: dict[str, set[str]] = {}
        for one in self.ganged:
            for reason in one.reasons:
                for source in (*((reason.source,) if reason.source else ()), *reason.hidden):
                    titles.setdefault(_name(source.by), set()).add(source.by)
        self.unique = {name for name, held in titles.items() if len(held) == 1}

    def _common(self) -> list[Reason]:
        """Return what is decided alike for all gangs, and hides nothing."""
        if len(self.ganged) < _COMMON:
            return []
        first, *others = ({reason.name: _alike(reason, one) for reason in one.reasons} for one in self.ganged)
        return [
            reason
            for reason in first.values()
            if not reason.hidden and all(other.get(reason.name) == reason for other in others)
        ]

    def lines(self) -> Iterator[str]:
        name = _text(self.file)
        yield "<!doctype html>"
        yield '<html lang=en><meta charset=utf-8><meta name=viewport content="width=device-width">'
        yield f"<title>{name}: gangs</title><style>{_STYLE}</style>"
        yield f"<h1>Gangs of {name}</h1>"
        yield f"<p class=s>{self._counts()}"
        yield from self._legend()
        yield from self._said(self.explanation.findings)
        yield from self._often()
        if self.common:
            yield "<section><h2>The same for all gangs</h2><dl>"
            yield from self._rows(self.common, None, "")
            yield "</dl></section>"
        if not (self.explanation.subjects or self.findings):
            words = nothing(self.explanation)
            yield f"<p>{_text(words[0].upper() + words[1:])}."
        for subject in self.explanation.subjects:
            yield from self._subject(subject)

    def _counts(self) -> str:
        gangs = sum(len(one.groups) for one in self.ganged)
        pods = sum(one.instances * (1 + one.workers) for one in self.ganged)
        counts = [(len(self.explanation.subjects), self.kind or "object"), (gangs, "gang"), (pods, "pod")]
        counts += [(sum(one.severity == severity for one in self.findings), severity) for severity in (ERROR, WARNING)]
        return " · ".join(f"{count:,} {noun if count == 1 else noun + 's'}" for count, noun in counts)

    def _legend(self) -> Iterator[str]:
        groups = [group for one in self.ganged for group in one.groups]
        if not groups:
            return
        words = ["a frame is a PodGroup: its pods are placed together or not at all"]
        if any(group.topology_key for group in groups):
            words.append("dashed: all in one topology domain")
        if any(group.spare for group in groups):
            words.append("dotted: spare, no pods yet")
        if self.bounds:
            words.append(f"bar: the timeout, from {self.bounds[0]:,} to {self.bounds[1]:,} s")
        yield f"<p class='l n s'><span><b></b> leader <i></i> worker · {' · '.join(words)}</span>"

    def _often(self) -> Iterator[str]:
        """Yield what is said of many objects, with how many."""
        once = {(finding.code, finding.message): finding for finding in self.findings}
        lines = []
        for key, count in sorted(self.often.items(), key=lambda held: (said.ORDER[once[held[0]].severity], -held[1])):
            finding = once[key]
            words = f"{_text(finding.message)}; {_text(finding.remedy)} <small>{finding.code}</small>"
            lines.append(f"<li{_kind(finding)}><b>{finding.severity}</b> {count:,} times: {words}")
        if lines:
            yield f"<ul>{''.join(lines)}</ul>"

    def _subject(self, subject: Subject) -> Iterator[str]:
        ref, place = subject.ref, subject.place
        name = f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
        words = [*([] if self.kind else [ref.kind]), self._at(place), *([place.source] if place.source else [])]
        yield f"<section><h2>{_text(name)} <small>{_text(', '.join(words))}</small></h2>"
        if subject.note:
            yield f"<p class=s>{_text(subject.note)}"
        for component in subject.components:
            yield from self._component(component)
        yield from self._said(subject.findings)
        yield "</section>"

    def _component(self, explained: Explained) -> Iterator[str]:
        words = f"{explained.mode}, no gang"
        if explained.groups:
            mode = "" if any(reason.name == "mode" for reason in self.common) else f"{explained.mode}, "
            words = f"{mode}{size(explained)}, {_schedulers(explained)}"
        yield f"<h3>{explained.component} <small>{_text(words)}</small></h3>"
        if explained.groups:
            yield f"<div class=g>{''.join(self._group(group, explained) for group in explained.groups)}</div>"
        told = [
            reason
            for reason in explained.reasons
            if not explained.groups
            or not (_alike(reason, explained) in self.common or (reason.name in _DRAWN and reason.source is None))
        ]
        if told:
            base = f"spec.{explained.component}." if explained.component else "spec."
            yield f"<dl>{''.join(self._rows(told, explained.ref, base))}</dl>"

    def _group(self, group: Group, explained: Explained) -> str:
        kinds = " ".join(kind for kind, so in (("t", group.topology_key), ("p", group.spare)) if so)
        start = f"<figure class='{kinds}'>" if " " in kinds else f"<figure class={kinds}>" if kinds else "<figure>"
        shown = min(group.instances, _INSTANCES)
        boxes = "".join(_instance(explained, index) for index in range(group.first, group.first + shown))
        if group.instances > shown:
            boxes += f"<div class=s>and {group.instances - shown:,} Instances more</div>"
        words = holds(group) + (", spare" if group.spare else "")
        bar = self._bar(group.seconds, explained.bounds)
        return f"{start}<b>{_text(group.name)}</b>{_text(words)}{bar}{boxes}</figure>"

    def _bar(self, seconds: int | None, bounds: tuple[int, int] | None) -> str:
        """Return where the timeout lies between the bounds of the clamp, as a bar."""
        if seconds is None or bounds is None or bounds[1] <= 0:
            return ""
        low, high = bounds
        part = 100 * (seconds - low) / (high - low) if high > low else 100
        title = "" if bounds == self.bounds else f' title="{low:,} to {high:,} s"'
        return f"<span class=b{title}><i style=width:{min(max(part, 3), 100):.0f}%></i></span>"

    # Rows

    def _rows(self, told: Iterable[Reason], ref: Ref | None, base: str) -> Iterator[str]:
        named: set[str] = set()  # whom the rows have named already
        for reason in _paired(told):
            parts = [_text(reason.why)] if reason.why else []
            if reason.source is not None:
                parts.append(self._source(reason.source, reason, ref, base, named))
            hidden = "".join(f"<s>over {self._source(one, None, ref, base, named)}</s>" for one in reason.hidden)
            yield f"<dt>{reason.name}<dd><b>{_text(reason.value)}</b> {'; '.join(parts)}{hidden}"

    def _source(self, source: Source, reason: Reason | None, ref: Ref | None, base: str, named: set[str]) -> str:
        """Return what was written, by whom and where, as briefly as a reader can still find it."""
        parts = []
        if reason is None or source.value.replace(",", "") != reason.value.replace(",", ""):
            parts.append(quoted(source.value))
        own = ref is not None and source.by == f"{ref.kind} {ref.name!r}"
        if not own:
            name = _name(source.by)
            name = name if ref is not None and name in self.unique else source.by
            if name != source.by and "ServingRuntime '" in source.by:
                name = f"runtime {name}"
            parts.append("same" if name in named and source.place is not None else name)
            named.add(name)
        field = source.field.removeprefix(base)
        if (own or ref is None) and field and (reason is None or field != reason.name):
            parts.append(field)
        if source.place is not None:
            parts.append(self._at(source.place))
        return _text(", ".join(parts))

    def _at(self, place: Place) -> str:
        return f"{place.file} line {place.line}" if place.file else f"line {place.line}"

    # Findings

    def _said(self, findings: Iterable[Finding]) -> Iterator[str]:
        lines = [self._finding(finding) for finding in findings]
        if lines:
            yield f"<ul>{''.join(lines)}</ul>"

    def _finding(self, finding: Finding) -> str:
        where = f"{self._at(finding.place)}" if finding.place is not None else ""
        if (finding.code, finding.message) in self.often:
            return f"<li{_kind(finding, 'c')}><b>{finding.code}</b> {_text(where)}"
        field = f"<code>{_text(finding.field)}</code>: " if finding.field else ""
        words = f"{field}{_text(finding.message)}; {_text(finding.remedy)}"
        where = f"<small>{_text(where)}:</small> " if where else ""
        return f"<li{_kind(finding)}><b>{finding.severity}</b> {where}{words} <small>{finding.code}</small>"


def _paired(told: Iterable[Reason]) -> Iterator[Reason]:
    """Yield the reasons, those of leader and worker as one where they are alike."""
    before: Reason | None = None
    for reason in told:
        role, _, field = reason.name.partition(".")
        if before is not None and role == "worker" and before == reason._replace(name=f"leader.{field}"):
            yield reason._replace(name=field)
            before = None
            continue
        if before is not None:
            yield before
        before = reason
    if before is not None:
        yield before


def _kind(finding: Finding, more: str = "") -> str:
    kinds = [kind for kind in (more, {ERROR: "e", WARNING: "w"}.get(finding.severity, "")) if kind]
    return f" class={kinds[0]}" if len(kinds) == 1 else f" class='{' '.join(kinds)}'" if kinds else ""


def _name(title: str) -> str:
    """Return the name in an object's title, such as `ClusterServingRuntime 'x'`; other words as they are."""
    kind, quote, rest = title.partition(" '")
    return rest.removesuffix("'") if quote and kind.isalpha() else title


def _alike(reason: Reason, explained: Explained) -> Reason:
    """Return a reason as it is compared with those of other gangs: each has the label of its own PodGroup."""
    if reason.value == explained.groups[0].name if explained.groups else False:
        return reason._replace(value="the PodGroup's name")
    return reason


def _schedulers(explained: Explained) -> str:
    leader, worker = explained.scheduler
    known = " as far as is known" if explained.missing and not (leader and worker) else ""
    if leader == worker:
        return leader or f"no scheduler named{known}"
    return f"{leader or 'no scheduler'} for the leader, {worker or 'none'} for workers{known}"


def _instance(explained: Explained, index: int) -> str:
    workers = explained.workers
    more = f"<em>+{workers - _WORKERS:,}</em>" if workers > _WORKERS else ""
    return f"<div class=n>{index} <b></b><i style=--n:{min(workers, _WORKERS)}></i>{more}</div>"
