"""`postrender diff`: a diff that git takes for a patch, under the right names, and safe to look at."""

from __future__ import annotations

import io
import os
import pty
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import postrender
from postrender import review
from postrender.hosts import review as host
from postrender.hosts.joined import together
from postrender.manifests.stream import BOM
from postrender.options import Source
from postrender.views import diff
from tests.test_cases import STREAMS

SCRIPT = Path(sys.executable).with_name("postrender")
RENDERED = [case for case in STREAMS if case.expected_name in case.files]
CHANGED = [case for case in RENDERED if case.output != case.data]
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def encoded(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape")


def applied(before: dict[str, bytes], patch: bytes, folder: Path) -> dict[str, bytes]:
    """Return what git makes of these files by a patch."""
    for name, data in before.items():
        (folder / name).write_bytes(data)
    around = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(folder)}
    around["GIT_CEILING_DIRECTORIES"] = str(folder.parent)
    if patch:
        subprocess.run(
            ["git", "apply", "--whitespace=nowarn"], cwd=folder, env=around, input=patch, check=True, timeout=60
        )
    return {name: (folder / name).read_bytes() for name in before}


# -- any two texts ---------------------------------------------------------------------------------------------------

# Lines that look like a part of a diff, that are no UTF-8, or that end in CR.
LINES = [b"a", b"b", b"c", b"", b"---", b"-- a/x", b"++ b/x", b"@@ -1 +1 @@", b"\\ No newline at end of file",
    b"\xff\xfe", "é 模".encode(), b"crlf\r", b"\r", b"tab\t", b" ", b"# Source: a", b"\x0b\x0c", b"\xe2\x80\xa8"]  # fmt: skip


def text(lines: list[bytes], ended: bool) -> bytes:
    return b"\n".join(lines) + (b"\n" if ended and lines else b"")


def edited(rng: random.Random) -> tuple[bytes, bytes]:
    """Return a text and another one made from it by a few edits, or by none."""
    old = [
        rng.choice(LINES) + rng.choice((b"", b"%d" % rng.randrange(30))) for _ in range(rng.choice((0, 1, 3, 12, 40)))
    ]
    new = [*old]
    for _ in range(rng.randrange(5)):
        at = rng.randrange(len(new) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            new[at:at] = [rng.choice(LINES) for _ in range(rng.randrange(1, 5))]
        elif kind == 1:
            del new[at : at + rng.randrange(1, 5)]
        elif kind == 2:
            new[at : at + 1] = [rng.choice(LINES)]
        else:
            new[at:at] = new[:3]
    return text(old, rng.random() < 0.7), text(new, rng.random() < 0.7)


def test_git_makes_the_new_text_of_the_old_one(tmp_path):
    rng = random.Random(20)
    pairs = {f"f{number}": edited(rng) for number in range(400)}
    pairs |= {"empty": (b"", b""), "filled": (b"", b"a\nb"), "emptied": (b"a\nb", b""), "ended": (b"a", b"a\n")}
    patch = b"".join(encoded(list(diff.lines(old, new, name, name))) for name, (old, new) in pairs.items())
    made = applied({name: old for name, (old, _) in pairs.items()}, patch, tmp_path)
    assert made == {name: new for name, (_, new) in pairs.items()}


def test_equal_texts_have_no_diff():
    assert list(diff.lines(b"a\nb", b"a\nb", "x", "x")) == []


def test_pieces_come_to_a_patch_for_the_whole(tmp_path):
    """Pieces as a stream has them: each ends a line but the last, most are alike."""
    rng = random.Random(21)
    before, after, patch = {}, {}, b""
    for number in range(100):
        pairs = [edited(rng) for _ in range(rng.randrange(1, 6))]
        ended = [tuple(side if side.endswith(b"\n") or not side else side + b"\n" for side in pair) for pair in pairs]
        pairs = [*ended[:-1], pairs[-1]]
        pieces = [review.Piece(old, old if rng.random() < 0.4 else new, "") for old, new in pairs]
        name = f"f{number}"
        before[name] = b"".join(piece.old for piece in pieces)
        after[name] = b"".join(piece.new for piece in pieces)
        patch += encoded(list(diff.stream(pieces, name)))
    assert applied(before, patch, tmp_path) == after


def test_texts_without_a_line_of_its_own_take_no_longer(tmp_path):
    """All lines alike, and more than are compared one by one: the whole is taken for changed."""
    old, new = b"a\nb\n" * 10_000, b"b\na\n" * 10_001
    lines = list(diff.lines(old, new, "x", "x"))
    assert len(lines) < 41_000
    assert applied({"x": old}, encoded(lines), tmp_path) == {"x": new}


def test_a_name_with_a_blank_ends_in_a_tab_as_git_writes_it(tmp_path):
    lines = list(diff.lines(b"a\n", b"b\n", "my chart.yaml", "my chart.yaml"))
    assert lines[:2] == ["--- a/my chart.yaml\t", "+++ b/my chart.yaml\t"]
    assert applied({"my chart.yaml": b"a\n"}, encoded(lines), tmp_path) == {"my chart.yaml": b"b\n"}


def test_a_file_that_is_not_there_is_dev_null(tmp_path):
    assert list(diff.lines(b"", b"b\n", "", "new")) == ["--- /dev/null", "+++ b/new", "@@ -0,0 +1 @@", "+b"]
    assert list(diff.lines(b"b\n", b"", "old", "")) == ["--- a/old", "+++ /dev/null", "@@ -1 +0,0 @@", "-b"]


# -- streams ---------------------------------------------------------------------------------------------------------


def compared(data: bytes) -> list[str]:
    return list(diff.stream(review.compare(data).pieces, "all.yaml"))


def test_the_diff_of_every_golden_case_is_a_patch_for_it(tmp_path):
    before, patch = {}, b""
    for number, case in enumerate(RENDERED):
        found = review.compare(case.data, case.options)
        name = f"case{number}"
        assert (found.refused, found.changed) == (False, case.output != case.data), case.why
        before[name] = case.data
        # One name for all pieces: then it is a patch for the file.
        patch += encoded(list(diff.stream([piece._replace(source="") for piece in found.pieces], name)))
    made = applied(before, patch, tmp_path)
    assert len(CHANGED) > 200
    for case, data in zip(RENDERED, made.values(), strict=True):
        assert data == case.output, case.why


def test_hunks_say_where_their_lines_stand() -> None:
    for case in CHANGED:
        old, new = case.data.split(b"\n"), case.output.split(b"\n")
        i = k = 0
        for line in diff.stream(review.compare(case.data, case.options).pieces, "all.yaml"):
            found = HUNK.fullmatch(line)
            if found:
                i, k = int(found[1]) - (found[2] != "0"), int(found[3]) - (found[4] != "0")
            elif line.startswith(("--- a/", "+++ b/", "\\")):
                continue
            else:
                if line[0] in " -":
                    assert old[i].decode() == line[1:], case.why
                    i += 1
                if line[0] in " +":
                    assert new[k].decode() == line[1:], case.why
                    k += 1


def service(name: str, source: str = "", annotation: str = "") -> str:
    return (
        "---\n"
        + (f"# Source: {source}\n" if source else "")
        + f"apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: {name}\n"
        + (f"  annotations:\n    {annotation}\n" if annotation else "")
        + "spec:\n  engine:\n    leader: {}\n    worker: {size: 1}\n"
    )


def pod_group(name: str, source: str = "", filename: str = "") -> list[str]:
    """Return the added lines of a PodGroup of two pods, as OME writes it for 1.3."""
    lines = ["---", *([f"# Source: {source}"] if source else []),
        "apiVersion: scheduling.x-k8s.io/v1alpha1", "kind: PodGroup", "metadata:", f"  name: {name}-engine-0",
        "  labels:", "    component: engine", f"    ome.io/inferenceservice: {name}", '    ome.io/instance-index: "0"',
        "    ome.io/managed-by: OMENative", "  annotations:", f"    postrender/for: InferenceService/{name}",
        *([f"    postrenderer.helm.sh/postrender-filename: {filename}"] if filename else []),
        "spec:", "  minMember: 2", "  scheduleTimeoutSeconds: 600"]  # fmt: skip
    return [f"+{line}" for line in lines]


def labels(name: str) -> list[str]:
    return ["   engine:", "     leader: {}", "     worker: {size: 1}",
        "+    labels:", f"+      scheduling.x-k8s.io/pod-group: {name}-engine-0"]  # fmt: skip


OTHER = "---\n# Source: c/templates/config.yaml\nkind: ConfigMap\nmetadata:\n  name: c\n"


def test_each_part_stands_under_the_file_that_it_is_from():
    """A PodGroup directly below what another file ends with is not told of that one."""
    stream = OTHER + service("a", "c/templates/a.yaml") + service("b", "c/templates/b.yaml") + service("c")
    assert compared(stream.encode()) == [
        "--- a/c/templates/a.yaml",
        "+++ b/c/templates/a.yaml",
        "@@ -6,3 +6,19 @@",
        *pod_group("a", "c/templates/a.yaml"),
        " ---",
        " # Source: c/templates/a.yaml",
        " apiVersion: ome.io/v1beta1",
        "@@ -13,3 +29,5 @@",
        *labels("a"),
        "--- a/c/templates/b.yaml",
        "+++ b/c/templates/b.yaml",
        "@@ -16,3 +34,19 @@",
        *pod_group("b", "c/templates/b.yaml"),
        " ---",
        " # Source: c/templates/b.yaml",
        " apiVersion: ome.io/v1beta1",
        "@@ -23,3 +57,5 @@",
        *labels("b"),
        "--- a/all.yaml",
        "+++ b/all.yaml",
        "@@ -26,3 +62,18 @@",
        *pod_group("c"),
        " ---",
        " apiVersion: ome.io/v1beta1",
        " kind: InferenceService",
        "@@ -32,3 +83,5 @@",
        *labels("c"),
    ]


def test_two_services_of_one_file_stand_under_one_head():
    stream = service("a", "c/templates/a.yaml") + service("b", "c/templates/a.yaml")
    assert [line for line in compared(stream.encode()) if line.startswith(("--- ", "+++ "))] == [
        "--- a/c/templates/a.yaml",
        "+++ b/c/templates/a.yaml",
    ]


@pytest.mark.parametrize(
    ("source", "annotation", "name"),
    [
        ("", "", "all.yaml"),
        ("c/templates/a.yaml", "", "c/templates/a.yaml"),
        ("", "postrenderer.helm.sh/postrender-filename: c/templates/h.yaml", "c/templates/h.yaml"),
        ("", "config.kubernetes.io/path: base/k.yaml", "base/k.yaml"),
        ("", "config.kubernetes.io/path: 'base/k.yaml'", "base/k.yaml"),
        ("", "internal.config.kubernetes.io/path: base/i.yaml", "base/i.yaml"),
        ("c/templates/a.yaml", "config.kubernetes.io/path: base/k.yaml", "c/templates/a.yaml"),
        ("/abs.yaml", "", "abs.yaml"),
        ("c/\u202ea.yaml", "", "all.yaml"),
    ],
)  # fmt: skip
def test_a_part_has_the_name_of_the_file_that_it_says(source, annotation, name):
    heads = [line for line in compared(service("a", source, annotation).encode()) if line.startswith(("--- ", "+++ "))]
    assert heads == [f"--- a/{name}", f"+++ b/{name}"]


def in_list(kind: str, version: str, *items: str) -> bytes:
    text = "".join("- " + item.removeprefix("---\n").rstrip().replace("\n", "\n  ") + "\n" for item in items)
    return f"apiVersion: {version}\nkind: {kind}\nitems:\n{text}".encode()


PATHS = ["config.kubernetes.io/path: a.yaml", "config.kubernetes.io/path: b.yaml"]


@pytest.mark.parametrize(
    ("kind", "version"),
    [("ResourceList", "config.kubernetes.io/v1"), ("List", "v1"), ("InferenceServiceList", "ome.io/v1beta1")],
)
@pytest.mark.parametrize(("second", "name"), [(0, "a.yaml"), (1, "all.yaml")])
def test_a_list_has_a_name_if_all_its_items_are_of_one_file(kind, version, second, name, tmp_path):
    data = in_list(kind, version, service("a", "", PATHS[0]), service("b", "", PATHS[second]))
    lines = compared(data)
    assert [line for line in lines if line.startswith(("--- a/", "+++ b/"))] == [f"--- a/{name}", f"+++ b/{name}"]
    assert applied({name: data}, encoded(lines), tmp_path) == {name: postrender.render(data).data}


def test_a_long_stream(tmp_path):
    """Twenty thousand lines, most of them alike: changed are the few around the services, at both ends."""
    quiet = "".join(f"---\nkind: ConfigMap\nmetadata:\n  name: c{number}\n" for number in range(5_000))
    data = (service("a") + quiet + service("b")).encode()
    lines = compared(data)
    assert len(lines) < 80
    assert applied({"all.yaml": data}, encoded(lines), tmp_path) == {"all.yaml": postrender.render(data).data}


def test_bytes_that_are_no_utf_8_come_out_as_they_are(tmp_path):
    data = b"kind: ConfigMap # \xff\xfe\n" + service("a").encode()
    lines = compared(data)
    assert " kind: ConfigMap # \udcff\udcfe" in lines
    assert applied({"all.yaml": data}, encoded(lines), tmp_path) == {"all.yaml": postrender.render(data).data}


# -- several files -----------------------------------------------------------------------------------------------------

BESIDE = [b"# of b\nkind: B", b"\xef\xbb\xbf# of c\n---\nkind: C\n", b"%YAML 1.1\n---\nkind: D\n", b"", b"{}\n",
    b"# of z\n" + service("z").encode(), service("y").removeprefix("---\n").removesuffix("\n").encode()]  # fmt: skip


def test_the_diff_of_a_folder_is_a_patch_for_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = random.Random(22)
    seen = 0
    for number, case in enumerate(CHANGED[::3]):
        held = [case.data, *rng.sample(BESIDE, 4)]
        rng.shuffle(held)
        folder = Path(f"case{number}")
        folder.mkdir()
        sources = [Source(f"{folder}/{at}.yaml", data) for at, data in enumerate(held)]
        for source in sources:
            Path(source.name).write_bytes(source.data)
        rendered = postrender.render(together(sources).data)
        target = io.BytesIO()
        code = host.diff(str(folder), {}, host.Streams(None, target, io.StringIO(), False))
        assert (code == 1) == rendered.refused, case.why
        if code != 3:
            continue
        seen += 1
        made = applied({source.name: source.data for source in sources}, target.getvalue(), tmp_path)
        anew = together(map(Source, made, made.values())).data
        assert bare(anew) == bare(rendered.data), case.why
        # What joins them drops the byte-order marks.
        assert all(made[one.name].startswith(BOM) == one.data.startswith(BOM) for one in sources), case.why
    assert seen > 50


def bare(data: bytes) -> bytes:
    """Return a stream without a separator at its head, which one has or has not where its first file is empty."""
    return data.removeprefix(b"---\n")


def test_what_is_found_in_a_folder_stands_in_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("all").mkdir()
    Path("all/a.yaml").write_text("kind: A\n")
    Path("all/b.yaml").write_text(service("b"))
    target, errors = io.BytesIO(), io.StringIO()
    assert host.diff("all", {}, host.Streams(None, target, errors, False)) == 3
    assert target.getvalue().decode().splitlines()[:3] == ["--- a/all/b.yaml", "+++ b/all/b.yaml", "@@ -1,3 +1,18 @@"]
    assert "warning: all/b.yaml:2:1: InferenceService/b: spec.runtime: " in errors.getvalue()


# -- the command -----------------------------------------------------------------------------------------------------


def told(data: bytes, **flags: str) -> tuple[int, str, str]:
    """Return the exit code, and what goes to stdout and stderr."""
    target, errors = io.BytesIO(), io.StringIO()
    code = host.diff("-", flags, host.Streams(io.BytesIO(data), target, errors, False))
    return code, target.getvalue().decode(), errors.getvalue()


def test_the_exit_code_says_whether_anything_would_change():
    changed, shown, said = told(service("a").encode(), accept="ome-not-said")
    assert (changed, shown.splitlines()[0]) == (3, "--- a/stdin")
    # What is found is said beside it, and is no part of the patch.
    assert "[runtime-unresolved]\n" in said
    assert "warning" not in shown
    rendered = postrender.render(service("a").encode()).data
    assert told(rendered, accept="ome-not-said,runtime-unresolved,surge-without-spare") == (0, "", "")
    assert told(b"kind: ConfigMap\n") == (0, "", "")


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (service("a").replace("size: 1", "size: no").encode(), "invalid-field"),  # a plan that is refused
        (service("a").replace("engine:", "engine: &e").encode() + b"  decoder: *e\n", "edit-refused"),  # an edit
    ],
)
def test_what_is_refused_has_no_diff(data, code):
    exit_code, shown, said = told(data)
    assert (exit_code, shown) == (1, "")
    assert f"[{code}]\n" in said


def test_no_such_file(tmp_path):
    done = subprocess.run([SCRIPT, "diff", str(tmp_path / "none.yaml")], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (4, b"")
    assert (
        done.stderr == f"postrender: error: {tmp_path}/none.yaml cannot be read: No such file or directory\n".encode()
    )


# -- what is looked at -----------------------------------------------------------------------------------------------


def test_colors():
    lines = ["--- a/x", "+++ b/x", "@@ -1,2 +1,2 @@", " kept", "-old", "+new"]
    assert list(diff.colored(lines)) == [
        "\x1b[1m--- a/x\x1b[m", "\x1b[1m+++ b/x\x1b[m", "\x1b[36m@@ -1,2 +1,2 @@\x1b[m", " kept",
        "\x1b[31m-old\x1b[m", "\x1b[32m+new\x1b[m"]  # fmt: skip


@pytest.mark.parametrize(
    ("char", "shown"),
    [("\r", "^M"), ("\x1b", "\\x1b"), ("\x07", "\\x07"), ("\x9b", "\\x9b"), ("\u202e", "\\u202e"), ("\udcff", "\\udcff"), ("\t", "\t"), ("é", "é")],
)  # fmt: skip
def test_what_would_move_the_cursor_is_shown(char, shown):
    assert list(diff.printable([f"+a{char}b"])) == [f"+a{shown}b"]
    assert list(diff.colored([f"+a{char}b"])) == [f"\x1b[32m+a{shown}b\x1b[m"]


# The first document is not even read as YAML, which knows no such bytes.
HOSTILE = "kind: ConfigMap  # \x1b[31m\u202e\n" + service("a")


@pytest.mark.parametrize(
    ("terminal", "environment", "colored"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"FORCE_COLOR": "1"}, True),
        (True, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, {"NO_COLOR": "1"}, False),
    ],
)
def test_colors_are_for_a_terminal_unless_somebody_says_otherwise(terminal, environment, colored, tmp_path):
    (tmp_path / "in.yaml").write_text(HOSTILE)
    shown = on_a_terminal if terminal else in_a_pipe
    printed = shown([SCRIPT, "diff", "in.yaml"], tmp_path, environment)
    assert ("\x1b[32m+" in printed) == colored
    assert ("\x1b[31m\u202e" in printed) == (not terminal and not colored)
    assert ("\\x1b[31m\\u202e" in printed) == (terminal or colored)


def in_a_pipe(command: list[object], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=60, check=False)
    assert done.returncode == 3
    return done.stdout.decode()


def on_a_terminal(command: list[object], folder: Path, environment: dict[str, str]) -> str:
    """Return what a program writes to a terminal."""
    ours, its = pty.openpty()
    try:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=its, stderr=subprocess.DEVNULL)
        os.close(its)
        printed = b""
        while True:
            try:
                part = os.read(ours, 65_536)
            except OSError:  # Linux says so when the other side is closed
                break
            if not part:
                break
            printed += part
        assert process.wait(60) == 3
    finally:
        os.close(ours)
    return printed.decode()
