"""The filter as a process and as a function: what is written, what is said, and the exit codes."""

import io
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import postrender
from postrender.hosts import filter as host
from postrender.hosts import review

SCRIPT = pathlib.Path(sys.executable).with_name("postrender")
SERVICE = b"""apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: qwen
spec:
  engine:
    leader: {}
    worker:
      size: 1
"""
BROKEN = SERVICE.replace(b"size: 1", b"size: one")


def run(data: bytes, **more: object) -> subprocess.CompletedProcess[bytes]:
    """Run the installed script as a host does: no argument, pipes."""
    return subprocess.run([SCRIPT], input=data, capture_output=True, timeout=60, check=False, **more)


def test_the_public_function_gives_bytes_and_findings():
    rendered = postrender.render(SERVICE)
    assert b"name: qwen-engine-0\n" in rendered.data
    assert [finding.code for finding in rendered.findings] == [
        "surge-without-spare",
        "runtime-unresolved",
        "ome-not-said",
    ]
    assert not rendered.refused


def test_the_package_has_nothing_else():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = postrender.nothing


def test_nothing_is_written_on_an_error():
    done = run(BROKEN)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"postrender: error: <stdin>:9:13: InferenceService/qwen: spec.engine.worker.size: is one, a string;"
        b" write an integer without quotes [invalid-field]\n"
    )


def test_one_refused_document_holds_back_all():
    done = run(SERVICE + b"---\n" + BROKEN.replace(b"qwen", b"other"))
    assert (done.returncode, done.stdout) == (1, b"")


def test_nothing_comes_back_with_an_error():
    assert postrender.render(SERVICE + b"---\n" + BROKEN.replace(b"qwen", b"other")).data == b""


def test_same_bytes_same_bytes():
    assert run(SERVICE).stdout == run(SERVICE, env={"TZ": "Asia/Tokyo", "LANG": "C", "PYTHONHASHSEED": "7"}).stdout


CYCLES = """
import gc, sys
import postrender
data = sys.stdin.buffer.read()
postrender.render(data)
gc.collect()
gc.disable()
postrender.render(data)
print(gc.collect())
"""


@pytest.mark.parametrize("data", [SERVICE, BROKEN, b"kind: List\nitems: [{x: &a {}, y: *a}]\n# InferenceService\n"])
def test_a_render_leaves_no_cycles(data):
    """The filter runs with the collector off: what a cycle holds would stay, a large text for one."""
    done = subprocess.run([sys.executable, "-c", CYCLES], input=data, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"0\n", b"")


PURE = """
import os, sys, time
import postrender
data = sys.stdin.buffer.read()
expected = postrender.render(data)  # so that all is imported
class Forbidden:
    def __getattr__(self, name): raise AssertionError("the environment or the clock was asked: " + name)
os.environ = time.time = time.monotonic = Forbidden()
seen = []
def hook(event, args):
    if event.split(".")[0] in ("open", "os", "socket", "subprocess", "import", "shutil", "glob", "ctypes"):
        seen.append((event, args))
sys.addaudithook(hook)
again = postrender.render(data)
print(seen, again == expected, again.refused)
"""


def test_a_render_touches_nothing():
    """No file, environment, clock or network; the interpreter itself reports each as an audit event."""
    done = subprocess.run([sys.executable, "-c", PURE], input=SERVICE, capture_output=True, check=False)
    assert (done.stdout, done.stderr) == (b"[] True False\n", b"")


@pytest.mark.parametrize("stream", ["stdin", "stdout"])
def test_a_closed_stream_is_one_line(stream):
    closed = {"stdin": "<&-", "stdout": ">&-"}[stream]
    done = subprocess.run(
        ["/bin/sh", "-c", f'printf "kind: A" | ("$0" {closed})', SCRIPT], capture_output=True, check=False
    )
    assert done.returncode == 4
    assert done.stderr.decode().startswith(f"postrender: error: {stream} is closed; give it a pipe")
    assert done.stderr.count(b"\n") == 1


def test_a_closed_stderr_is_no_error():
    done = subprocess.run(["/bin/sh", "-c", '"$0" 2>&-', SCRIPT], input=SERVICE, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, postrender.render(SERVICE).data)


def test_a_full_disk_is_one_line():
    with open("/dev/full", "wb") as full:
        done = subprocess.run([SCRIPT], input=b"kind: A", stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert done.stderr == b"postrender: error: the output could not be written: No space left on device\n"


def test_a_reader_that_went_away_is_no_traceback():
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run([SCRIPT], input=b"kind: A\n" * 100_000, stdout=write, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_an_interrupt_is_no_traceback():
    """The signal comes while the filter waits for its input; what it has imported by then shows that it does."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    said = b""
    for line in process.stderr:
        said += line
        if b"postrender.hosts.filter" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in said + err


def test_a_bug_of_ours_is_one_line_and_70(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import postrender.gangs.plan as plan\ndef broken(*_): raise LookupError('no luck')\nplan.plan = broken\n"
        "import postrender.pipeline as pipeline\npipeline.plan = broken\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = run(SERVICE, env=environment)
    assert (done.returncode, done.stdout) == (70, b"")
    assert done.stderr.startswith(b"postrender: error: a bug of postrender: LookupError: no luck at ")
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" in run(SERVICE, env={**environment, "POSTRENDER_DEBUG": "1"}).stderr


def test_without_libyaml_one_line_says_so(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['yaml._yaml'] = None\n")
    done = run(SERVICE, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == b"postrender: error: PyYAML was built without libyaml; install PyYAML from its wheel\n"


def test_hosts_pass_unset_variables_as_empty_words():
    done = subprocess.run([SCRIPT, ""], input=SERVICE, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, postrender.render(SERVICE).data)


def test_a_terminal_on_stdin_gets_help():
    master, slave = os.openpty()
    try:
        done = subprocess.run([SCRIPT], stdin=slave, capture_output=True, timeout=30, check=False)
    finally:
        os.close(master)
        os.close(slave)
    assert done.returncode == 2
    assert done.stdout.startswith(b"Usage: postrender [OPTION]... [FILE] | COMMAND")
    assert b"Exit codes:" in done.stdout
    assert done.stderr == b"postrender: error: stdin is a terminal; give it a pipe, or name a FILE\n"


class Unreadable(io.RawIOBase):
    """A source that fails."""

    def read(self, _: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_source_that_fails_is_one_line():
    target, errors = io.BytesIO(), io.StringIO()
    assert host.run("x.yaml", Unreadable(), target, errors) == 4
    assert (target.getvalue(), errors.getvalue()) == (
        b"",
        "postrender: error: x.yaml cannot be read: Input/output error\n",
    )
    errors = io.StringIO()
    assert review.check((), False, {}, review.Streams(Unreadable(), target, errors, False)) == 4
    assert (target.getvalue(), errors.getvalue()) == (
        b"",
        "postrender: error: <stdin> cannot be read: Input/output error\n",
    )
