"""How a renderer is run, with scripts in the place of helm and kustomize; tests/e2e has the real ones."""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from postrender import renderers
from postrender.renderers import Chart, Failed, Folder, Kustomization, child, folder, requests

MANIFEST = "kind: ConfigMap"


class Machine:
    """A PATH with one helm and one kustomize, both scripts, and a chart to render."""

    def __init__(self, place: pathlib.Path) -> None:
        self.place = place
        self.bin = place / "bin"
        self.bin.mkdir()
        self.temporary = place / "tmp"
        self.temporary.mkdir()
        self.chart = place / "chart"
        self.chart.mkdir()
        self.environ = {"PATH": f"{self.bin}{os.pathsep}{os.defpath}", "HOME": str(place / "home"), "SECRET": "x"}

    def helm(self, script: str, name: str = "helm") -> None:
        """Make a program of a script."""
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    def run(self, **told: Any) -> str:
        """Return what a chart renders to."""
        return renderers.run(Chart(str(self.chart), "release", **told), self.environ).data.decode()

    def failure(self, **told: Any) -> str:
        """Return why a chart does not render."""
        with pytest.raises(Failed) as failed:
            self.run(**told)
        return str(failed.value)


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(made.temporary))
    return made


def test_the_environment_is_what_is_named(machine: Machine) -> None:
    machine.environ |= {"HTTPS_PROXY": "http://proxy", "KUBECONFIG": "k", "HELM_PLUGINS": "p", "POSTRENDER_OME": "1.2"}
    machine.helm("env; pwd; tty || true")
    *lines, cwd, tty = machine.run().splitlines()
    seen = dict(line.split("=", 1) for line in lines)
    home = seen["HOME"]
    assert pathlib.Path(home).parent == machine.temporary
    assert cwd == home
    assert tty == "not a tty"
    assert {key: value for key, value in seen.items() if key not in ("PWD", "_", "SHLVL", "OLDPWD")} == {
        "PATH": machine.environ["PATH"],
        "HTTPS_PROXY": "http://proxy",
        **dict.fromkeys(("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), home),
    }
    assert list(machine.temporary.iterdir()) == []


WORDS = [
    ({}, ["--include-crds", "--", "release", "CHART"]),
    ({"include_crds": False, "skip_tests": True}, ["--skip-tests", "--", "release", "CHART"]),
    ({"namespace": "--help"}, ["--namespace=--help", "--include-crds", "--", "release", "CHART"]),
    (
        {"sets": (("a.b", "1,2"), ("c", "{1,2}")), "set_strings": (("d", "{1,2"), ("e", r"\,;$(x)"))},
        [r"--set=a.b=1\,2", "--set=c={1,2}", r"--set-string=d=\{1\,2", r"--set-string=e=\,;$(x)", "--include-crds", "--", "release", "CHART"],
    ),
    (
        {"kube_version": "1.34.1", "api_versions": ("v1", 'a,"b'), "values": ("/v/a,b.yaml",)},
        ["--kube-version=1.34.1", '--values="/v/a,b.yaml"', '--api-versions="v1"', '--api-versions="a,""b"', "--include-crds", "--", "release", "CHART"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("told", "words"), WORDS)
def test_the_words_for_helm(machine: Machine, told: dict[str, Any], words: list[str]) -> None:
    machine.helm("for word; do printf '%s\\n' \"$word\"; done")
    wanted = ["template", *(word.replace("CHART", str(machine.chart)) for word in words)]
    assert machine.run(**told).splitlines() == wanted


def test_the_words_for_kustomize(machine: Machine) -> None:
    machine.helm("for word; do printf '%s\\n' \"$word\"; done", "kustomize")
    done = renderers.run(Kustomization(str(machine.chart)), machine.environ)
    assert done.data.decode().splitlines() == ["build", "--", str(machine.chart)]


def test_values_as_text_are_a_file_as_long_as_helm_runs(machine: Machine) -> None:
    machine.helm('for word; do case "$word" in --values=*) word=${word#--values=\\"}; cat "${word%\\"}";; esac; done')
    assert machine.run(inline="a: é\r\n") == "a: é\r\n"
    assert list(machine.temporary.iterdir()) == []


NAMES = ["", "-f", "--help", "A", "a b", "a\n", "a;b", "{{ env }}", "a_b", "a..b", "x" * 54]


@pytest.mark.parametrize("name", NAMES)
def test_a_release_that_helm_would_not_take(machine: Machine, name: str) -> None:
    machine.helm("echo never")
    with pytest.raises(Failed, match="is no name of a Helm release"):
        renderers.run(Chart(str(machine.chart), name), machine.environ)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"sets": (("a=b", "1"),)}, "--set 'a=b': is no path of a value; write one such as image.tag"),
        ({"set_strings": (("", "1"),)}, "--set-string '': is no path of a value; write one such as image.tag"),
        ({"sets": (("a", "x\0y"),)}, r"helm: '--set=a=x\x00y': is no text that a program can be given"),
        ({"namespace": "\ud800"}, r"helm: '--namespace=\ud800': is no text that a program can be given"),
        ({"inline": "\ud800"}, "the values are no text: they hold half of a surrogate pair"),
    ],
)
def test_words_that_cannot_be_said(machine: Machine, told: dict[str, Any], message: str) -> None:
    machine.helm("echo never")
    assert machine.failure(**told) == message


SAID = [
    ("echo 'Error: it broke' >&2; exit 1", "helm: it broke (exit code 1)"),
    ("echo 'WARNING: a'; echo 'WARNING: b' >&2; echo 'Error: c' >&2; exit 3", "helm: c (exit code 3)"),
    ("printf 'Error: several:\\n- a\\n- b\\n\\nUse --debug\\n' >&2; exit 1", "helm: several: - a - b (exit code 1)"),
    ("printf '\\n plain \\n\\nmore' >&2; exit 1", "helm: plain (exit code 1)"),
    ("exit 9", "helm: it says nothing (exit code 9)"),
    ("kill -9 $$", "helm: it says nothing (signal 9, Killed)"),
    ("printf 'Error: \\377' >&2; exit 1", "helm: \\xff (exit code 1)"),
    ('echo "Error: in $HOME/inline-values.yaml" >&2; exit 1', "helm: in inline-values.yaml (exit code 1)"),
]


@pytest.mark.parametrize(("script", "message"), SAID)
def test_what_is_said_of_a_failure(machine: Machine, script: str, message: str) -> None:
    machine.helm(f"echo '{MANIFEST}'; {script}")
    assert machine.failure() == message


def test_a_long_failure_is_cut(machine: Machine) -> None:
    machine.helm("echo Error: $(head -c 5000 /dev/zero | tr '\\0' x) >&2; exit 1")
    assert machine.failure() == f"helm: {'x' * 999}… (exit code 1)"


def test_warnings_are_kept(machine: Machine) -> None:
    machine.helm(f"echo '{MANIFEST}'; echo careful >&2")
    done = renderers.run(Chart(str(machine.chart), "release"), machine.environ)
    assert (done.data, done.said) == (f"{MANIFEST}\n".encode(), "careful\n")


EMPTY = ["", "\n", "# a comment\n---\n# another\n", "---\n...\n", "\ufeff---\n", "null\n", "--- # a\n", "---\n{}\n"]


@pytest.mark.parametrize("printed", EMPTY)
def test_nothing_is_refused(machine: Machine, printed: str) -> None:
    (machine.place / "printed").write_text(printed)
    machine.helm(f"cat {machine.place}/printed")
    assert machine.failure() == (
        f"{machine.chart} renders to nothing; were it deployed, all that it had deployed would be removed; check the path and its values"
    )
    request = Chart(str(machine.chart), "release")
    assert renderers.run(request, machine.environ, allow_empty=True).data == printed.encode()


@pytest.mark.parametrize("printed", [b"a: 1", b"--- {a: 1}", b"# a\n---\na: 1\n", b"- a", b"{"])
def test_something_is_not_nothing(printed: bytes) -> None:
    assert not renderers.is_empty(printed)


def test_too_much_is_refused_and_ended(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "LARGEST", 1 << 20)
    machine.helm("exec cat /dev/zero")
    started = time.monotonic()
    assert machine.failure() == "helm prints more than 1 MiB; render fewer manifests at once"
    assert time.monotonic() - started < 30


def test_a_flood_of_warnings_is_read_and_forgotten(machine: Machine) -> None:
    machine.helm(f"head -c 3000000 /dev/zero | tr '\\0' x >&2; echo '{MANIFEST}'")
    done = renderers.run(Chart(str(machine.chart), "release"), machine.environ)
    assert done.data == f"{MANIFEST}\n".encode()
    assert len(done.said) < 200_000


def test_a_program_that_is_not_there(machine: Machine) -> None:
    machine.environ["PATH"] = str(machine.bin)
    assert machine.failure() == "helm: there is no such program; set POSTRENDER_HELM or PATH"
    machine.environ["POSTRENDER_HELM"] = "/no/helm"
    assert machine.failure() == "/no/helm (POSTRENDER_HELM): there is no such program; set POSTRENDER_HELM or PATH"


def test_a_program_by_another_name(machine: Machine) -> None:
    machine.helm("echo from: four", "helm4")
    machine.environ["POSTRENDER_HELM"] = "helm4"
    assert machine.run() == "from: four\n"
    machine.environ["POSTRENDER_HELM"] = str(machine.bin / "helm4")
    assert machine.run() == "from: four\n"


def test_a_program_that_is_none(machine: Machine) -> None:
    program = machine.bin / "helm"
    program.write_text("no program")
    program.chmod(0o755)
    assert machine.failure() == f"helm cannot be run ({program}): Exec format error"


def test_a_chart_that_is_not_there(machine: Machine) -> None:
    machine.chart.rmdir()
    assert machine.failure() == f"{machine.chart}: there is no such file or folder"


def test_without_a_folder_for_temporary_files(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.helm("echo never")
    monkeypatch.setattr("tempfile.tempdir", "/dev/null/tmp")
    assert machine.failure() == "there is no folder for temporary files: Not a directory; make /tmp writable"


# -- signals: in a process of its own, for they are the process's -----------------------------------------------------

RUN = """
import sys
from postrender import renderers
try:
    renderers.run(renderers.Chart(sys.argv[1], "release"), {"PATH": sys.argv[2]})
except renderers.Failed as failed:
    print(failed)
    sys.exit(1)
"""
# Ends on TERM after it has said so, or not at all; and leaves a child of its own that would outlive it.
WAITS = """\
echo $$ > {pids}
sleep 100 & echo $! >> {pids}
trap 'echo TERM >> {pids}; {then}' TERM
touch {ready}
while :; do wait; done
"""


def alive(pid: int) -> bool:
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(what: Any) -> None:
    end = time.monotonic() + 20
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked up in /proc")
@pytest.mark.parametrize(
    ("number", "then", "code", "said"),
    [
        (signal.SIGTERM, "exit", 1, "helm was stopped: SIGTERM came while it ran"),
        (signal.SIGTERM, "", 1, "helm was stopped: SIGTERM came while it ran"),
        (signal.SIGHUP, "exit", 1, "helm was stopped: SIGHUP came while it ran"),
        (signal.SIGINT, "exit", -signal.SIGINT, ""),
        (signal.SIGKILL, "exit", -signal.SIGKILL, ""),
    ],
)
def test_what_ends_us_ends_the_renderer(
    machine: Machine, number: signal.Signals, then: str, code: int, said: str
) -> None:
    pids, ready = machine.place / "pids", machine.place / "ready"
    machine.helm(WAITS.format(pids=pids, ready=ready, then=then))
    process = subprocess.Popen(
        [sys.executable, "-c", RUN, machine.chart, machine.environ["PATH"]],
        env={"TMPDIR": str(machine.temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until(ready.exists)
    helm, sleeper = (int(line) for line in pids.read_text().split())
    try:
        process.send_signal(number)
        out, _ = process.communicate(timeout=20)
        assert (process.returncode, out.decode().strip()) == (code, said)
        until(lambda: not alive(helm))
        if number != signal.SIGKILL:  # which leaves us no time: only Helm itself goes with us
            assert "TERM" in pids.read_text()
            until(lambda: not alive(sleeper))
            assert list(machine.temporary.iterdir()) == []
    finally:
        process.kill()
        for pid in (helm, sleeper):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_handlers_are_as_before(machine: Machine) -> None:
    machine.helm(f"echo '{MANIFEST}'")
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    machine.run()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    fd = signal.set_wakeup_fd(-1)
    assert fd == -1


# -- folders ---------------------------------------------------------------------------------------------------------


def read(place: pathlib.Path, **files: bytes) -> bytes:
    for name, data in files.items():
        (place / name.replace("_", ".")).write_bytes(data)
    return renderers.run(Folder(str(place)), {}).data


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: pathlib.Path) -> None:
    stream = read(
        tmp_path,
        b_yaml=b"---\r\nb: 1\r\n",
        a_yml=b"a: 1",
        c_json=b'{"c":\t1}\n',
        d_txt=b"no manifest",
        e_yaml=b"\xef\xbb\xbf# comment\n--- !!map\ne: 1\n...\n",
    )
    assert stream == (
        b"---\n# Source: a.yml\na: 1\n"
        b"---\n# Source: b.yaml\nb: 1\r\n"
        b'---\n# Source: c.json\n{"c":\t1}\n'
        b"---\n# Source: e.yaml\n# comment\n--- !!map\ne: 1\n...\n"
    )


def test_directives_follow_an_end(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, a_yaml=b"%YAML 1.2\n---\na: 1\n", b_yaml=b"%YAML 1.2\n---\nb: 1\n") == (
        b"%YAML 1.2\n---\na: 1\n...\n%YAML 1.2\n---\nb: 1\n"
    )


@pytest.mark.parametrize("last", [b"a: |\n  text", b"a:\n- b: >-2 # c\n     text\n    more", b"a: |\n  text\n\n  ", b"a: |+\n  x\n    y\n  z"])  # fmt: skip
def test_a_block_scalar_without_a_line_break_is_refused(tmp_path: pathlib.Path, last: bytes) -> None:
    with pytest.raises(Failed, match=r"a\.yaml: ends within a block scalar and without a line break; add one"):
        read(tmp_path, a_yaml=last, b_yaml=b"b: 1\n")


@pytest.mark.parametrize(
    "last", [b"a: |\n  text\nb: 1", b"a:\n  b:\n    c: 1", b"{a: [\n  1]}", b"- |\n  a\n- b", b'a: "x |"']
)
def test_other_ends_are_taken(tmp_path: pathlib.Path, last: bytes) -> None:
    assert (
        read(tmp_path, a_yaml=last, b_yaml=b"b: 1\n")
        == b"---\n# Source: a.yaml\n" + last + b"\n---\n# Source: b.yaml\nb: 1\n"
    )


def test_the_last_file_stays_without_a_line_break(tmp_path: pathlib.Path) -> None:
    assert read(tmp_path, a_yaml=b"a: |\n  text").endswith(b"a: |\n  text")


def test_folders_below_are_taken_where_that_is_asked_for(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "b"
    inner.mkdir()
    (inner / "c.yaml").write_bytes(b"c: 1\n")
    (tmp_path / "a.yaml").write_bytes(b"a: 1\n")
    (tmp_path / "z").symlink_to(inner)
    assert b"c: 1" not in renderers.run(Folder(str(tmp_path)), {}).data
    found = renderers.run(Folder(str(tmp_path), recurse=True), {}).data
    assert found == b"---\n# Source: a.yaml\na: 1\n---\n# Source: b/c.yaml\nc: 1\n"


def test_a_link_leads_within_the_root(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "apps"
    inner.mkdir()
    (tmp_path / "shared.yaml").write_bytes(b"a: 1\n")
    (inner / "link.yaml").symlink_to("../shared.yaml")
    assert renderers.run(Folder(str(inner), root=str(tmp_path)), {}).data.endswith(b"a: 1\n")
    with pytest.raises(Failed, match=rf"link\.yaml: is a link that leads out of {inner}"):
        renderers.run(Folder(str(inner)), {})
    (inner / "link.yaml").unlink()
    (inner / "link.yaml").symlink_to("missing.yaml")
    with pytest.raises(Failed, match=r"link\.yaml cannot be read: No such file or directory"):
        renderers.run(Folder(str(inner)), {})


def test_what_is_no_file_is_not_opened(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(Failed, match=r"pipe\.yaml: is no file"):
        renderers.run(Folder(str(tmp_path)), {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.jsonnet", "Jsonnet is not rendered here; leaving it out would remove what it deploys"),
        ("a\nkind: Pod\n.yaml", "is no name for a file of manifests"),
    ],
)
def test_names_that_are_refused(tmp_path: pathlib.Path, name: str, message: str) -> None:
    (tmp_path / name).write_bytes(b"a: 1\n")
    with pytest.raises(Failed, match=message):
        renderers.run(Folder(str(tmp_path)), {})


def test_a_mark_leaves_a_file_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"# +skip\na: 1\n")
    (tmp_path / "b.yaml").write_bytes(b"b: 1\n")
    assert renderers.run(Folder(str(tmp_path), skip_mark=b"+skip"), {}).data == b"---\n# Source: b.yaml\nb: 1\n"


def test_a_word_may_be_needed(tmp_path: pathlib.Path) -> None:
    for name, data in (("a.yaml", b"kind: A\n"), ("b.yaml", b"values: 1\n"), ("c.json", b"{}\n")):
        (tmp_path / name).write_bytes(data)
    found = renderers.run(Folder(str(tmp_path), needs=b"kind"), {}).data
    assert found == b"---\n# Source: a.yaml\nkind: A\n---\n# Source: c.json\n{}\n"
    assert b"values" in renderers.run(Folder(str(tmp_path)), {}).data


def test_a_folder_has_a_limit(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder, "LARGEST", 1 << 20)
    (tmp_path / "a.yaml").write_bytes(b"#" * (1 << 19))
    (tmp_path / "b.yaml").write_bytes(b"#" * (1 << 19) + b"\n")
    with pytest.raises(Failed, match="holds more than 1 MiB of manifests"):
        renderers.run(Folder(str(tmp_path)), {})
    assert requests.LARGEST == 256 << 20


def test_a_folder_that_is_not_there(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Failed, match="missing cannot be read: No such file or directory"):
        renderers.run(Folder(str(tmp_path / "missing")), {})
