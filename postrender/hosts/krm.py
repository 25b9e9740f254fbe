"""A KRM function, as kustomize and kpt run one: a ResourceList in, the ResourceList out, findings as its `results`.

On an error the items come back as they came, with the results, and the exit code is 1. Nothing comes back only where
the list cannot be read, or where options from elsewhere are wrong: kustomize deletes what is missing from a list.
"""

from __future__ import annotations

import os

from ..findings import DONE, ERROR, REFUSED, UNREACHABLE, USAGE, Finding, Place, Ref, Refusal
from ..manifests import edit, inflate, lookup, objects, stream, tree
from ..manifests.change import Extend, Spot
from ..manifests.scalars import write
from ..options import FUNCTION_FILES, GENERATE, MODE, TRANSFORM, VALIDATE, Form, Options, Source
from ..pipeline import render
from ..record import Record
from ..sources import Misuse, Unreadable, settle, value
from ..views.findings import lines, shown
from ..views.results import MOST, Origin, results
from . import function_config
from .filter import written
from .joined import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import BinaryIO

    from ..manifests.change import Change, Pairs
    from ..manifests.tree import Node
    from ..pipeline import Report

_GROUP = "config.kubernetes.io/"
# What says which file of a package an item is from: the names of today, and those before them.
_PATHS = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
_INDEXES = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")


class Call(Record):
    """A ResourceList as it came: the stream, the number of the list's span, and its root, the items handed out.

    `items` says how many there were; `config` is the functionConfig, or None.
    """

    data: bytes
    spans: tuple[stream.Span, ...]
    number: int
    root: Node
    items: int
    config: Node | None

    @property
    def document(self) -> bytes:
        """The text of the list."""
        return stream.document(self.data, self.spans[self.number])

    def said(self, unfit: tree.Unfit) -> Finding:
        """Return what is wrong with the list as a finding."""
        return edit.refusal(unfit, stream.Places(self.data, self.spans), self.number).finding

    def is_config(self, item: Node) -> bool:
        """Return whether an item is the functionConfig: kustomize hands over a copy where there is nothing else."""
        version = ("apiVersion",)
        return (
            self.config is not None
            and _ref(item) == _ref(self.config)
            and lookup.value_at(item, version) == lookup.value_at(self.config, version)
        )

    def report(self, form: Form) -> Report:
        """Return what makes a change of the list of findings: its results."""

        def report(findings: tuple[Finding, ...]) -> tuple[Change, ...]:
            made = self.results(findings, form)
            return (Extend(Spot(self.number), "results", made),) if made else ()

        return report

    def results(self, findings: tuple[Finding, ...], form: Form) -> tuple[Pairs, ...]:
        """Return the results of findings about the items and the functionConfig."""
        known = _origins(self.data, list(shown(findings, form))[:MOST])
        if self.config is not None:
            origin = Origin(lookup.value_at(self.config, ("apiVersion",)))
            known.setdefault(_ref(self.config), []).append((Place(0, 0), origin))
        return results(findings, form, known)

    def made(self, items: bytes, made: tuple[Pairs, ...]) -> bytes:
        """Return a list of its own kind with other items, and with these results."""
        version = lookup.value_at(self.root, ("apiVersion",))
        text = f"apiVersion: {write(version)}\nkind: {objects.RESOURCE_LIST}\n".encode() + items
        return edit.splice(text, stream.cut(text), [Extend(Spot(0), "results", made)] if made else [])


class Answer(Record):
    """What comes of a call: the list to write, empty for none, and what is said, in which form."""

    data: bytes
    findings: tuple[Finding, ...]
    form: Form


def is_call(data: bytes) -> bool:
    """Return whether a stream begins with a ResourceList; only a first look."""
    try:
        head = tree.head(data.removeprefix(stream.BOM))
    except tree.Unfit:
        return False
    return head is not None and _is_list(head)


def _is_list(head: tree.Head) -> bool:
    return head.kind == objects.RESOURCE_LIST and head.api_version.startswith(_GROUP)


def run(
    file: str,
    data: bytes,
    target: BinaryIO,
    say: Callable[[str], None],
    flags: Mapping[str, str | Sequence[str]],
) -> int:
    """Do what a ResourceList asks for; return the exit code. `file` is what messages call the input.

    Options come from `flags`, the environment and the list's functionConfig. A reader that has gone away raises
    BrokenPipeError.
    """
    try:
        call = read(data)
        answer = _answer(call, flags)
    except Refusal as refusal:
        answer, call = Answer(b"", (refusal.finding,), Form()), None
    except Misuse as error:
        say(f"postrender: error: {error}\n")
        return UNREACHABLE if isinstance(error, Unreadable) else USAGE
    for line in lines(answer.findings, file, answer.form):
        say(line + "\n")
    refused = any(finding.severity == ERROR for finding in answer.findings)
    # Where there is nothing else, kustomize hands over the functionConfig as an item.
    if call is not None and answer.data == call.data and call.items < 2 and not _handed(call):
        say(f"postrender: warning: {file}: the ResourceList has no items, so there is nothing to do\n")
    code = REFUSED if refused else DONE
    return written(answer.data, target, say, code) if answer.data else code


def read(data: bytes) -> Call:
    """Return the call that a stream is; raises Refusal where it is none, or cannot be read."""
    spans = tuple(stream.cut(data))
    call: Call | None = None
    for number, span in enumerate(spans):
        try:
            # A second document need not be split, for there must be none.
            root, count = _root(stream.document(data, span), call is None)
            if root is None:
                continue
            _check(root, call is None)
            config = lookup.find(root, "functionConfig")
        except tree.Unfit as unfit:
            raise edit.refusal(unfit, stream.Places(data, spans), number) from None
        call = Call(data, spans, number, root, count, config.value.resolved() if config else None)
    if call is None:
        raise Refusal(Finding("unreadable", "the input holds no ResourceList", _ELSEWHERE, place=Place(1, 1)))
    return call


def _root(document: bytes, split: bool) -> tuple[Node | None, int]:
    """Return the root of a document without its items, or None for an empty one, and how many items there are."""
    root, count = None, 0
    # As deep as the functionConfig's options lie: spec.context[].
    for item, node in tree.nodes(document, split, 4):
        root = node
        count += item >= 0
    return (None if root is None or root.null() else root), count


def _check(root: Node, first: bool) -> None:
    """Raise Unfit unless a document is the ResourceList of a call."""
    if not first:
        raise tree.Unfit("unreadable", root.start, "a second document after the ResourceList", _ALONE)
    if root.kind != tree.MAP or not _is_list(objects.settled(root)):
        raise tree.Unfit("unreadable", root.start, f"no ResourceList of {_GROUP}v1", _ELSEWHERE)
    objects.check_list(root)


_ALONE = "a function is handed one list, and nothing beside it"
_ELSEWHERE = "kustomize and kpt write one for a function; a stream of manifests goes to postrender without krm"


class _Asked(Record):
    """What a call asks for."""

    options: Options
    form: Form
    mode: str
    files: tuple[Source, ...]


def _answer(call: Call, flags: Mapping[str, str | Sequence[str]]) -> Answer:
    """Return what comes of a call; raises Misuse where options are wrong that are not the functionConfig's."""
    try:
        asked = _asked(call, flags)
    except tree.Unfit as unfit:
        return _refused(call, Form(), _of_config(call, unfit))
    except Misuse as error:
        if error.given is None or not error.given.field:
            raise
        message, _, remedy = error.reason.partition("; ")
        remedy = remedy or ("name it from the working directory" if isinstance(error, Unreadable) else "correct it")
        wrong = tree.Unfit("invalid-field", error.given.at, message, remedy, error.given.field)
        return _refused(call, Form(), _of_config(call, wrong))
    return _MODES[asked.mode](call, asked)


def _asked(call: Call, flags: Mapping[str, str | Sequence[str]]) -> _Asked:
    """Return what is asked for; raises Unfit for what the functionConfig says in vain, and Misuse."""
    given = function_config.read(call.config) if call.config is not None else {}
    options, form = settle(flags, os.environ, given)
    mode, files = given.get(MODE.name), given.get(FUNCTION_FILES.name)
    how = str(value(MODE, mode)) if mode else TRANSFORM
    if files is not None and how != GENERATE:
        remedy = f"say mode: {GENERATE}, or remove it"
        raise tree.Unfit("invalid-field", files.at, f"is not read in mode {how}", remedy, files.field)
    if mode is not None and files is None and how == GENERATE:
        field = mode.field.removesuffix(MODE.name) + FUNCTION_FILES.name
        raise tree.Unfit("invalid-field", mode.at, "nothing to generate from is named", "name files", field)
    return _Asked(options, form, how, tuple(value(FUNCTION_FILES, files)) if files else ())


def _of_config(call: Call, unfit: tree.Unfit) -> Finding:
    """Return what is wrong with the functionConfig."""
    unfit.remedy = unfit.remedy or "take one that `postrender schema functionconfig` lists"
    return call.said(unfit)._replace(ref=_ref(call.config) if call.config is not None else None)


def _transformed(call: Call, asked: _Asked) -> Answer:
    rendered = render(call.data, asked.options, call.report(asked.form))
    if rendered.refused:
        return _refused(call, asked.form, *rendered.findings)
    return Answer(rendered.data, rendered.findings, asked.form)


def _validated(call: Call, asked: _Asked) -> Answer:
    """Return no items: kustomize takes any that come back from a validator for changed, by annotations of its own."""
    findings = render(call.data, asked.options).findings
    return Answer(call.made(b"items: []\n", call.results(findings, asked.form)), findings, asked.form)


def _generated(call: Call, asked: _Asked) -> Answer:
    """Return the objects of files with their gangs; what was handed in is the functionConfig itself, and goes."""
    handed = _handed(call)
    if handed:
        message = "a generator is handed no items, and these would be lost"
        wrong = tree.Unfit("invalid-field", handed[0].start, message, "list it under generators:")
        return _refused(call, asked.form, _of_config(call, wrong))
    try:
        joined = join(asked.files)
        rendered = render(joined.data, asked.options)
        findings = tuple(joined.named(finding) for finding in rendered.findings)
        if rendered.refused:
            return _refused(call, asked.form, *findings)
        items = b"items:\n" + inflate.items(rendered.data)
    except Refusal as refusal:
        return _refused(call, asked.form, refusal.finding)
    made = results(findings, asked.form, _origins(joined.data, findings))
    return Answer(call.made(items, made), findings, asked.form)


def _handed(call: Call) -> list[Node]:
    """Return the items but the functionConfig itself."""
    items = (node.resolved() for number, node in tree.nodes(call.document, True, 2) if number >= 0)
    return [item for item in items if not call.is_config(item)]


_MODES = {TRANSFORM: _transformed, GENERATE: _generated, VALIDATE: _validated}


def _refused(call: Call, form: Form, *findings: Finding) -> Answer:
    """Return the items as they came with the findings as results, or nothing where these cannot be written there."""
    try:
        return Answer(edit.splice(call.data, call.spans, call.report(form)(findings)), findings, form)
    except Refusal as refusal:
        new = () if refusal.finding in findings else (refusal.finding,)
        return Answer(b"", (*findings, *new), form)


def _origins(data: bytes, findings: Iterable[Finding]) -> dict[Ref, list[tuple[Place, Origin]]]:
    """Return where the objects begin that findings are about, and what results say of them; a name may have several."""
    meant = {finding.ref for finding in findings if finding.ref is not None}
    found: dict[Ref, list[tuple[Place, Origin]]] = {}
    spans = stream.cut(data) if meant else []
    places = stream.Places(data, spans)
    for number, span in enumerate(spans):
        try:
            for item in objects.items(stream.document(data, span), _any, 3):
                if (ref := _ref(item.root)) in meant:
                    origin = Origin(item.api_version, *_file(item.root))
                    found.setdefault(ref, []).append((places.place(number, item.root.start), origin))
        except tree.Unfit:
            continue  # which is one of the findings
    return found


def _any(_: str, __: str) -> bool:
    return True


def _ref(root: Node) -> Ref:
    """Return who an object says it is, as far as it does."""
    return Ref(*(lookup.value_at(root, path) for path in (("kind",), ("metadata", "namespace"), ("metadata", "name"))))


def _file(root: Node) -> tuple[str, int]:
    """Return the file of its package that an item is from, and its number in there."""
    path, index = (
        next((text for key in keys if (text := lookup.value_at(root, ("metadata", "annotations", key)))), "")
        for keys in (_PATHS, _INDEXES)
    )
    return path, int(index) if index.isascii() and index.isdigit() and len(index) < 10 else 0
