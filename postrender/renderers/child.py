"""One run of a program: its output whole or not at all, and no trace of it afterwards."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import signal
import subprocess
import sys
import threading

from .requests import LARGEST, Failed, Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import FrameType

GRACE = 2  # seconds from TERM to KILL; Argo CD gives us five
_MOST_SAID = 64 << 10  # bytes of stderr that are kept
_LONGEST = 1_000  # characters of it in a message
_SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_PR_SET_PDEATHSIG = 1


def run(name: str, words: Iterable[str], environ: Mapping[str, str], folder: str) -> Output:
    """Return what a program prints; `name` is how to call it in a message, `folder` where it runs.

    Raises Failed, KeyboardInterrupt on INT. Either way the program and all it has started have ended.
    """
    argv = [_word(name, word) for word in words]
    with _Signals() as signals:
        try:
            child = subprocess.Popen(  # noqa: S603 - words, no shell
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environ),
                cwd=folder,
                start_new_session=True,  # a group of its own, to end all of
                preexec_fn=_tied(os.getpid()),
            )
        except OSError as error:
            reason = "its arguments are too long together" if error.errno == errno.E2BIG else error.strerror
            raise Failed(f"{name} cannot be run ({argv[0]}): {reason}") from None
        with child:
            try:
                data, said = _collected(name, child, signals)
                code = _waited(name, child, signals)
            except BaseException:
                _end(child)
                raise
    said = said.replace(folder + os.sep, "")  # another one each time
    if code:
        how = f"exit code {code}" if code > 0 else f"signal {-code}, {signal.strsignal(-code)}"
        raise Failed(f"{name}: {_essence(said) or 'it says nothing'} ({how})", said)
    return Output(data, said)


def _word(name: str, word: str) -> str:
    """Return a word that the operating system can hand over."""
    try:
        if "\0" not in word and os.fsencode(word):
            return word
    except UnicodeEncodeError:
        pass
    raise Failed(f"{name}: {word[:80]!r}: is no text that a program can be given")


def _tied(parent: int) -> Callable[[], None] | None:
    """Return what a child does first: ask to be killed when we are, for KILL leaves us no time to end it.

    Argo CD kills a plugin at its deadline, and the group that it then ends is ours, not the child's.
    """
    if sys.platform != "linux":
        return None
    import ctypes

    prctl = ctypes.CDLL(None).prctl

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return tie


class _Signals:
    """While entered, signals that end us do not, but come out of the file descriptor `reader`, a byte each."""

    def __enter__(self) -> _Signals:
        self.reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._before: dict[signal.Signals, Callable[[int, FrameType | None], object] | int | None] = {}
        if threading.current_thread() is threading.main_thread():  # no other may set a handler
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup sets it
                    self._before[number] = signal.signal(number, _pass_over)
            self._fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.set_wakeup_fd(self._fd)
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        os.close(self.reader)
        os.close(self._writer)

    def check(self, name: str) -> None:
        """Read what came; raises if it was one of those that end us."""
        for number in os.read(self.reader, 64):
            if number == signal.SIGINT:
                raise KeyboardInterrupt
            if number in _SIGNALS:
                raise Failed(f"{name} was stopped: {signal.Signals(number).name} came while it ran")


def _pass_over(_: int, __: FrameType | None) -> None:
    """Do nothing: the byte in the pipe says it."""


def _collected(name: str, child: subprocess.Popen[bytes], signals: _Signals) -> tuple[bytes, str]:
    """Return all that a child writes to stdout, and the beginning of what it writes to stderr."""
    assert child.stdout is not None
    assert child.stderr is not None
    out, err = child.stdout.fileno(), child.stderr.fileno()
    parts: dict[int, list[bytes]] = {out: [], err: []}
    sizes = {out: 0, err: 0}
    with selectors.DefaultSelector() as open_ones:
        for fd in (signals.reader, out, err):
            open_ones.register(fd, selectors.EVENT_READ)
        while len(open_ones.get_map()) > 1:
            for key, _ in open_ones.select():
                if key.fd == signals.reader:
                    signals.check(name)
                    continue
                part = os.read(key.fd, 1 << 16)
                if not part:
                    open_ones.unregister(key.fd)
                    continue
                if key.fd == out or sizes[err] < _MOST_SAID:
                    parts[key.fd].append(part)
                sizes[key.fd] += len(part)
                if sizes[out] > LARGEST:
                    raise Failed(f"{name} prints more than {LARGEST >> 20} MiB; render fewer manifests at once")
    return b"".join(parts[out]), b"".join(parts[err]).decode(errors="backslashreplace")


def _waited(name: str, child: subprocess.Popen[bytes], signals: _Signals) -> int:
    """Return the exit status of a child that has closed its output, which need not mean that it ends."""
    with selectors.DefaultSelector() as waiting:
        waiting.register(signals.reader, selectors.EVENT_READ)
        while True:
            try:
                return child.wait(0.1)
            except subprocess.TimeoutExpired:
                if waiting.select(0):
                    signals.check(name)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a child and what it has started: TERM, and after a grace KILL."""
    _signal(child, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(GRACE)
    _signal(child, signal.SIGKILL)
    child.wait()


def _signal(child: subprocess.Popen[bytes], number: signal.Signals) -> None:
    # PermissionError is macOS's, of a group whose last one has ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _essence(said: str) -> str:
    """Return what is wrong, of all that a failed program says: from its line `Error:` to the next empty line."""
    lines = [line.strip() for line in said.splitlines()]
    errors = [number for number, line in enumerate(lines) if line.startswith("Error: ")]
    begin = errors[0] if errors else next((number for number, line in enumerate(lines) if line), 0)
    paragraph = []
    for line in lines[begin:]:
        if not line:
            break
        paragraph.append(line)
    text = " ".join(paragraph).removeprefix("Error: ")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
