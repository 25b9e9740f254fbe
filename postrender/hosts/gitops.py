"""Rendered manifests -> the files of a folder that Git holds: one an object, and a kustomization that applies them.

A file holds the bytes of its document, so a change of an object is a change of its file and of nothing else.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter

from .. import renderers
from ..findings import Place, Refusal
from ..gangs import keys
from ..manifests import edit, objects, stream, tree
from ..manifests.lines import has_marker, skip
from ..manifests.lookup import find
from ..manifests.objects import shorten
from ..pipeline import render
from ..record import Record
from .folder import File, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from ..findings import Finding
    from ..options import Options

    Starts: TypeAlias = tuple[tuple[int, int, str], ...]

KUSTOMIZATION = "kustomization.yaml"
_KUSTOMIZATIONS = (KUSTOMIZATION, "kustomization.yml", "Kustomization")
_CHART = "Chart.yaml"

# What Helm installs first (InstallOrder of its releaseutil), definitions before all; what stands in neither comes last.
_ORDER = (
    "CustomResourceDefinition",
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    keys.POD_GROUP_KIND,
)
_RANKS = {kind: rank for rank, kind in enumerate(_ORDER)}

_MARKER = re.compile(rb"---[ \t]*\r?\n")
_UNSAFE = re.compile(r"[^a-z0-9]+")
# A file's name has at most 255 bytes anywhere; what is longer is cut, and told apart by a digest.
_LONGEST_NAME = 200
_DIGITS = 10

# What Helm takes for one NAME=VALUE of several: up to a comma, unless that is escaped or in a list in braces.
_PAIR = re.compile(r"((?:\\.|[^\\,=])+)=(\{[^}]*\}|(?:\\.|[^\\,])*)(?:,|\Z)", re.DOTALL)


class Misuse(Exception):  # noqa: N818 - the user's, not ours
    """Raised where what is asked for makes no sense; the message says what to write."""


class Helm(Record):
    """What is said for a chart alone, as `helm template` takes it."""

    release: str = ""
    values: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    set_strings: tuple[str, ...] = ()
    kube_version: str = ""
    include_crds: bool = False


class Built(Record):
    """The files of a source, none if a finding is an error; the findings, and what the renderer said beside them."""

    files: tuple[File, ...]
    findings: tuple[Finding, ...]
    refused: bool
    said: str


class _Object(Record):
    """An object of the stream: who it is, the bytes that say so, and the number of their span."""

    who: tree.Identity
    data: bytes
    number: int

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What tells it apart from every other object, to kustomize: no version, and no namespace is `default`."""
        return self.who.api_version.rpartition("/")[0], self.who.kind, self.who.namespace or "default", self.who.name


def build(source: str, helm: Helm, options: Options, environ: Mapping[str, str]) -> Built:
    """Return the files of what a source renders to, gangs added.

    Raises Misuse or Refused, and renderers.Failed where there is nothing to build from.
    """
    asked = request(source, helm, options)
    output = renderers.run(asked, environ)
    rendered = render(output.data, options)
    findings = tuple(_in_file(finding, output.starts) for finding in rendered.findings)
    if rendered.refused:
        return Built((), findings, True, output.said)
    try:
        if not isinstance(asked, renderers.Folder):
            made = files(rendered.data, True)
        else:
            made = _of_folder(rendered.data, output)
        return Built(made, findings, False, output.said)
    except Refusal as refusal:
        return Built((), (*findings, _in_file(refusal.finding, output.starts)), True, output.said)


def _of_folder(data: bytes, output: renderers.Output) -> tuple[File, ...]:
    """Return the files of what was rendered from a folder; what is wrong is told of what stands in the folder."""
    try:
        return files(data)
    except (Refusal, Refused):
        files(output.data, starts=output.starts)
        raise


def _in_file(finding: Finding, starts: Starts) -> Finding:
    """Return a finding with its place in the file of a folder."""
    return finding.moved(lambda place: _moved(place, starts)) if starts else finding


def _moved(place: Place, starts: Starts) -> Place:
    _, own, path = next(start for start in reversed(starts) if start[0] <= place.line)
    return Place(max(place.line - own + 1, 1), place.column, file=path)


def request(source: str, helm: Helm, options: Options) -> renderers.Chart | renderers.Kustomization | renderers.Folder:
    """Return how a source is rendered, by what it is: a chart, a kustomization, or a folder of manifests.

    Raises Misuse where it is none, or where more is said than such a source takes, or less.
    """
    packed = os.path.isfile(source) and source.endswith((".tgz", ".tar.gz"))
    if packed or os.path.isfile(os.path.join(source, _CHART)):
        if not helm.release:
            raise Misuse("a chart needs the name of its release; say --release-name NAME")
        return renderers.Chart(
            source,
            helm.release,
            options.namespace,
            helm.values,
            sets=_pairs("--set", helm.sets),
            set_strings=_pairs("--set-string", helm.set_strings),
            kube_version=helm.kube_version,
            api_versions=options.api_versions,
            include_crds=helm.include_crds,
            skip_tests=True,
        )
    if helm != Helm():
        named = {"release": "release-name", "sets": "set", "set_strings": "set-string"}
        said = next(name for name, value in zip(Helm._fields, helm, strict=True) if value)
        flag = named.get(said, said).replace("_", "-")
        raise Misuse(f"--{flag} is for a chart, and {source} is none; leave it out, or name a folder with a {_CHART}")
    if any(os.path.isfile(os.path.join(source, name)) for name in _KUSTOMIZATIONS):
        return renderers.Kustomization(source)
    if not os.path.exists(source):
        raise Misuse(f"{source}: no such file or folder")
    if not os.path.isdir(source):
        raise Misuse(f"{source}: is no chart, kustomization or folder; pack a chart as .tgz, or name its folder")
    return renderers.Folder(source)


def _pairs(flag: str, words: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return names and values of `a.b=1,c={x,y}`, cut at the commas at which Helm cuts."""
    pairs = []
    for word in words:
        at = 0
        while at < len(word):
            match = _PAIR.match(word, at)
            if match is None:
                raise Misuse(f"{flag} {word!r}: is no NAME=VALUE; write one, or several with commas between them")
            pairs.append((match[1], match[2]))
            at = match.end()
    return tuple(pairs)


def files(data: bytes, checked: bool = False, starts: Starts = ()) -> tuple[File, ...]:
    """Return the files of a stream: one for each of its documents that holds an object, and a kustomization.

    `checked` says that a renderer has read all of it, so that it is YAML; `starts` are the files that it is from.
    Raises Refusal for a document that is no object; Refused where one object stands twice, for kustomize takes no such.
    """
    spans = stream.cut(data)
    found = sorted(_objects(data, spans, checked), key=_rank)
    seen: dict[tuple[str, str, str, str], _Object] = {}
    for one in found:
        first = seen.setdefault(one.key, one) if one.who.name else one
        if first is not one:
            who = "/".join(part for part in (one.who.kind, one.who.namespace, one.who.name) if part)
            again, before = (_where(data, spans, twin.number, starts) for twin in (one, first))
            raise Refused(f"{again.partition(' ')[2]}: {who}: stands twice, first {before}; remove one of the two")
    made = [File(name, one.data) for name, one in zip(_names(found), found, strict=True)]
    lines = ["apiVersion: kustomize.config.k8s.io/v1beta1", "kind: Kustomization", "sortOptions:", "  order: fifo"]
    lines += ["resources:", *(f"- {file.name}" for file in made)] if made else ["resources: []"]
    return (*made, File(KUSTOMIZATION, "".join(line + "\n" for line in lines).encode()))


def _objects(data: bytes, spans: Sequence[stream.Span], checked: bool) -> Iterator[_Object]:
    """Yield the objects of a stream; a document of comments is none."""
    for number, span in enumerate(spans):
        text = stream.document(data, span)
        try:
            who = tree.identity(text) if checked and not _borrows(text) else _identity(tree.read(text, 2))
            if who is None:
                continue
            _check(who, text)
        except tree.Unfit as unfit:
            raise edit.refusal(unfit, stream.Places(data, spans), number) from None
        yield _Object(who, _bare(text), number)


def _borrows(text: bytes) -> bool:
    """Return whether a document may say who it is by an alias or a merge key."""
    return b"<<" in text or (b"*" in text and b"&" in text)


def _check(who: tree.Identity, text: bytes) -> None:
    """Refuse what kustomize would not take from the folder."""
    if not who.kind:
        message = "the document is no object: it has no kind"
        raise tree.Unfit("unreadable", _start(text), message, "leave it out of the source")
    if not who.name and not objects.holds_items(who.kind):
        message = f"a {shorten(who.kind)} without a name, which kustomize does not take (a generateName is none)"
        raise tree.Unfit("invalid-field", _start(text), message, "write a name", "metadata.name")


def _where(data: bytes, spans: Sequence[stream.Span], number: int, starts: Starts) -> str:
    """Return in words where an object stands in its file, or in the rendered stream with the template it is from."""
    place = stream.Places(data, spans).place(number, _start(stream.document(data, spans[number])))
    if starts:
        place = _moved(place, starts)
        return f"at {place.file}:{place.line}"
    return f"on line {place.line} ({place.source})" if place.source else f"on line {place.line}"


def _start(text: bytes) -> int:
    """Return the code point where a document's content begins."""
    decoded = text.decode(errors="replace")
    return skip(decoded, 3 if has_marker(decoded) else 0)


def _identity(root: tree.Node | None) -> tree.Identity | None:
    """Return who an object is that was read, merges followed."""
    if root is None or root.null():
        return None
    metadata = _at(root, "metadata")
    said = (_at(root, "apiVersion"), _at(root, "kind"), _at(metadata, "namespace"), _at(metadata, "name"))
    return tree.Identity(*(node.value if node is not None and node.kind == tree.SCALAR else "" for node in said))


def _at(node: tree.Node | None, key: str) -> tree.Node | None:
    entry = find(node, key) if node is not None and node.kind == tree.MAP else None
    return entry.value.resolved() if entry is not None else None


def _bare(text: bytes) -> bytes:
    """Return a document without the line `---` before it, which parts it from others; one with directives keeps it."""
    marker = _MARKER.match(text)
    return text[marker.end() :] if marker else text


def _rank(one: _Object) -> int:
    return _RANKS.get(one.who.kind, len(_ORDER))


def _names(found: Sequence[_Object]) -> list[str]:
    """Return a file name for each object: plain where that tells it apart, else with a digest of who it is.

    Names are lower-case, so they stay apart where a file system makes no difference of case.
    """
    numbers: Counter[str] = Counter()
    bases = []
    for one in found:
        base = _safe("-".join(part for part in (one.who.kind, one.who.namespace, one.who.name) if part))
        if not one.who.name:
            numbers[base] += 1
            base += f"-{numbers[base]}"
        bases.append(base)
    named = [base[:_LONGEST_NAME] for base in bases]
    unclear = {number for number, base in enumerate(bases) if len(base) > _LONGEST_NAME}
    while True:
        for number in unclear:
            named[number] = f"{bases[number][:_LONGEST_NAME]}-{_digest(found[number])}"
        held = Counter([*named, KUSTOMIZATION.removesuffix(".yaml")])
        more = {number for number, name in enumerate(named) if held[name] > 1}
        if not more:
            return [f"{name}.yaml" for name in named]
        if more <= unclear:
            raise Refused(f"two objects come to the file {named[min(more)]}.yaml; rename one of them")
        unclear |= more


def _safe(text: str) -> str:
    """Return a text as part of a file name: nothing leads elsewhere, nothing is hidden, nothing a shell reads."""
    return _UNSAFE.sub(_dot_or_dash, text.lower()).strip("-.") or "object"


def _dot_or_dash(found: re.Match[str]) -> str:
    return "." if found[0] == "." else "-"


def _digest(one: _Object) -> str:
    return hashlib.sha256("\0".join((*one.key, one.who.api_version)).encode()).hexdigest()[:_DIGITS]
