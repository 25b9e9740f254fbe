"""Hostile input: bounded time and memory, one typed finding, no traceback, nothing on stdout.

Memory is bounded by the kernel (RLIMIT_AS) and time by a generous limit; both would be passed many times over by a reader
that expands aliases or keeps what it should not.
"""

import resource
import subprocess

import pytest

from postrender import render
from postrender.manifests import lookup, scalars, stream, tree
from postrender.options import Form, Options
from postrender.views import findings
from tests.unit.test_filter import SCRIPT

HEAD = b"apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: a\n"
ENGINE = b"spec: {engine: {leader: {}, worker: {size: 1}}}\n"
MIB = 1 << 20


def bomb(width: int = 9, depth: int = 30) -> bytes:
    lines = [b"a0: &a0 [x]\n"]
    lines += [b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * width)) for n in range(1, depth)]
    return b"".join(lines)


def merges(width: int = 9, depth: int = 30) -> bytes:
    lines = [b"a0: &a0 {k: v}\n"]
    lines += [b"a%d: &a%d {<<: [%s]}\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * width)) for n in range(1, depth)]
    return b"".join(lines)


def run(data: bytes, mebibytes: int) -> subprocess.CompletedProcess[bytes]:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (mebibytes * MIB, mebibytes * MIB))

    return subprocess.run([SCRIPT], input=data, capture_output=True, timeout=60, check=False, preexec_fn=limit)


@pytest.mark.parametrize("words", [(), ("--ome=1.3",), ("check",)])
def test_an_input_without_an_end(words: tuple[str, ...]) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (200 * MIB, 200 * MIB))

    with open("/dev/zero", "rb") as endless:
        done = subprocess.run(
            [SCRIPT, *words], stdin=endless, capture_output=True, timeout=60, check=False, preexec_fn=limit
        )
    assert (done.returncode, done.stdout) == (4, b"")
    assert done.stderr == b"postrender: error: the input does not fit into memory\n"


REFUSED = {
    "unparsable": (HEAD + b"spec: {engine: [}\n", "5:17", "unreadable"),
    "a tab as indentation": (HEAD + b"spec:\n\tengine: {}\n", "6:1", "unreadable"),
    "a template left in": (HEAD + b"spec: {{ .Values.x }}\n", "5:7", "invalid-field"),
    "depth": (HEAD + b"spec: " + b"[" * 10_000, "5:1006", "unreadable"),
    "depth in block style": (HEAD + b"spec:\n" + b"".join(b" " * n + b"a:\n" for n in range(1, 1_200)), "1004:1001", "unreadable"),
    "invalid UTF-8": (HEAD + b"spec: {x: \xc3\xbc\xff}\n", "5:12", "unreadable"),
    "UTF-16": (HEAD.decode().encode("utf-16"), "1:1", "unreadable"),
    "UTF-32": (HEAD.decode().encode("utf-32-be", "strict").join([b"\x00\x00\xfe\xff", b""]), "1:1", "unreadable"),
    "NUL": (HEAD + b"spec: {x: a\0b}\n", "5:12", "unreadable"),
    "a control character": (HEAD + "# ü\nspec: {x: \x1b}\n".encode(), "6:11", "unreadable"),
    "a cycle": (HEAD + b"spec: &s {engine: *s}\n", "5:19", "unreadable"),
    "an alias of nothing": (HEAD + b"spec: {engine: *s}\n", "5:16", "unreadable"),
    "something behind the root": (HEAD + b"spec: {}\n- x\n", "6:1", "unreadable"),
    "a key that stands twice": (HEAD + ENGINE + ENGINE, "6:1", "edit-refused"),
    "a shared map": (HEAD + b"spec: {engine: &e {leader: {}, worker: {size: 1}}}\nx: *e\n", "5:16", "edit-refused"),
    "labels that are shared": (
        HEAD + b"x: &l {scheduling.x-k8s.io/pod-group: a-engine-5}\n"
        b"spec: {engine: {leader: {}, worker: {size: 1}, <<: {labels: *l}}}\n", "6:61", "edit-refused",
    ),
    "too many values": (HEAD + b"spec: {x: [" + b"a," * (tree.MAX_NODES + 1) + b"]}\n", "1:1", "unreadable"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused_with_its_place(name):
    data, place, code = REFUSED[name]
    done = run(data, 512)
    assert (done.returncode, done.stdout) == (1, b"")
    errors = [line for line in done.stderr.decode().splitlines() if ": error: " in line]
    assert len(errors) == 1
    assert errors[0].startswith(f"postrender: error: <stdin>:{place}: ")
    assert errors[0].endswith(f"[{code}]")


HARMLESS = {
    "an alias bomb": (bomb(), 256),
    "a bomb of merges": (merges(), 256),
    "a chain of merges": (
        b"a0: &a0 {k0: v}\n" + b"".join(b"a%d: &a%d {<<: *a%d, k%d: v}\n" % (n, n, n - 1, n) for n in range(1, 9_000)), 256,
    ),
    "anchors and aliases": (b"x: [" + b",".join(b"&a%d b, *a%d" % (n, n) for n in range(50_000)) + b"]\n", 512),
    "a hundred thousand keys": (b"x: {" + b",".join(b"k%d: v" % n for n in range(100_000)) + b"}\n", 512),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_it_costs_little_and_comes_through(name):
    data, mebibytes = HARMLESS[name]
    done = run(HEAD + data + ENGINE, mebibytes)
    assert done.returncode == 0, done.stderr[-500:]
    assert data in done.stdout
    assert b"scheduling.x-k8s.io/pod-group: a-engine-0" in done.stdout


def test_a_merge_bomb_on_the_path_is_looked_at_once():
    done = run(HEAD + merges() + b"spec: {<<: *a29}\n", 256)
    assert (done.returncode, done.stdout) == (0, HEAD + merges() + b"spec: {<<: *a29}\n")


def test_escapes_by_the_million():
    data = b'kind: ConfigMap\nx: "' + b"\\\n" * 2_000_000 + b'"\n'
    done = run(data, 256)
    assert (done.returncode, done.stdout) == (0, data)


def test_a_document_of_20_mb_that_is_not_ours():
    data = b"kind: ConfigMap\ndata:\n  x: InferenceService\n  y: " + b"y" * 20_000_000 + b"\n"
    done = run(data, 200)
    assert (done.returncode, done.stdout == data) == (0, True)


def test_a_document_of_100_mb_that_is_ours():
    data = HEAD + b"  annotations:\n    x: " + b"y" * 100_000_000 + b"\n" + ENGINE
    done = run(data, 1536)
    assert done.returncode == 0, done.stderr[-500:]
    assert len(done.stdout) == len(data) + len(done.stdout.partition(HEAD)[0]) + len(
        b"labels: {scheduling.x-k8s.io/pod-group: a-engine-0}, "
    )


def test_100_000_documents_with_one_of_ours():
    other = b"---\nkind: ConfigMap\nmetadata: {name: x}\n" * 100_000
    done = run(other + b"---\n" + HEAD + ENGINE, 512)
    assert done.returncode == 0
    assert done.stdout.startswith(other + b"---\napiVersion: scheduling.x-k8s.io/v1alpha1\n")


def test_20_000_times_the_same_service():
    done = run((b"---\n" + HEAD + ENGINE) * 20_000, 512)
    assert (done.returncode, done.stdout) == (1, b"")
    errors = [line for line in done.stderr.decode().splitlines() if ": error: " in line]
    assert len(errors) == 19_999
    assert errors[-1].startswith("postrender: error: <stdin>:119996:1: InferenceService/a: it stands twice;")


def test_20_000_broken_documents():
    done = run((b"---\n" + HEAD + b"spec: [}\n") * 20_000, 512)
    assert (done.returncode, done.stdout) == (1, b"")
    lines = done.stderr.decode().splitlines()
    assert len(lines) == 20_000
    assert lines[-1].startswith("postrender: error: <stdin>:120000:8: not valid YAML: ")


HOSTILE_NAMES = [
    "a\n---\nkind: Secret",
    'a"\nkind: Secret',
    "a: b",
    "${HOME}",
    "{{ .Values }}",
    "\u2028---",
    "a\x7f",
    "- a",
    "y",
    "1e3",
    "é" * 90,
]


FORMS = [Form(name, verbose=True) for name in ("text", "json", "github")]


def shown(rendered):
    """Every line that is said of a result, in every form."""
    return [line for form in FORMS for line in findings.lines(rendered.findings, "x", form)]


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if name != "y"])
@pytest.mark.parametrize("field", [b"name: a", b"namespace: b"])
def test_a_hostile_name_is_refused(name, field):
    quoted = scalars.quote(name).encode()
    head = HEAD.replace(b"name: a", b"name: a\n  namespace: b")
    rendered = render(head.replace(field, field.partition(b" ")[0] + b" " + quoted) + ENGINE)
    if field == b"namespace: b" and name == "1e3":  # a DNS label
        assert not rendered.refused
        return
    assert [finding.code for finding in rendered.findings if finding.severity == "error"] == ["invalid-field"]
    assert all(line.isprintable() for line in shown(rendered))


@pytest.mark.parametrize("text", HOSTILE_NAMES)
def test_a_hostile_text_injects_nothing(text):
    """What goes into a PodGroup and into a service: a topology key, an annotation, a scheduler's name."""
    quoted = scalars.quote(text).encode()
    head = HEAD.replace(b"name: a", b"name: a\n  annotations: {helm.sh/hook: " + quoted + b"}")
    engine = ENGINE.replace(b"engine: {", b"engine: {topologyKey: " + quoted + b", ")
    rendered = render(head + engine, Options(scheduler_name=text))
    assert not rendered.refused
    documents = [tree.read(stream.document(rendered.data, span)) for span in stream.cut(rendered.data)]
    assert [lookup.value_at(root, ("kind",)) for root in documents] == ["PodGroup", "InferenceService"]
    for key in ("ome.io/topology-key", "helm.sh/hook"):
        assert lookup.value_at(documents[0], ("metadata", "annotations", key)) == text
    assert lookup.value_at(documents[1], ("spec", "engine", "leader", "schedulerName")) == text
    assert all(line.isprintable() for line in shown(rendered))


def test_work_grows_with_the_input_only(monkeypatch):
    """Counted, not timed: ten times the documents make ten times the parsing."""
    counts = []
    for size in (20, 200):
        seen = 0
        parser = tree.CParser

        def counting(data, parser=parser):
            nonlocal seen
            seen += len(data)
            return parser(data)

        with monkeypatch.context() as patch:
            patch.setattr(tree, "CParser", counting)
            from postrender import render

            assert not render(
                b"".join(b"---\n" + HEAD.replace(b": a", b": a%03d" % n) + ENGINE for n in range(size))
            ).refused
        counts.append(seen)
    assert counts[1] == 10 * counts[0]
