"""One program of the control plane, running."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import ports
from .errors import ClusterError

TRIES = 5


@dataclass(frozen=True)
class Program:
    """How a part is started: its command on given ports, and how to see that it is well."""

    name: str
    ports: int
    command: Callable[[list[int]], list[str]]
    healthy: Callable[[list[int]], bool]


class Part:
    """A program with its ports and its log; it keeps its ports over a restart."""

    def __init__(self, program: Program, environment: dict[str, str], logs: Path) -> None:
        self.name = program.name
        self.program = program
        self.environment = environment
        self.log = logs / f"{program.name}.log"
        self.ports: list[int] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = False
        self.settled = False  # its ports have been its own once

    def launch(self) -> None:
        """Start the program, without waiting."""
        if not self.ports:
            self.ports = ports.pick(self.program.ports)
        command = self.program.command(self.ports)
        with self.log.open("ab") as log:
            # A session of its own: Ctrl-C at the terminal is for the owner, who ends us in order.
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment, start_new_session=True
            )
        self.wanted = True

    def settle(self, seconds: float = 60) -> None:
        """Wait until it is well. A port that was taken before it came is exchanged, or tried again if others know it."""
        end = time.monotonic() + seconds
        tries = 1
        while not self.well():
            if self.running():
                if time.monotonic() > end:
                    raise ClusterError(f"{self.name} is not well after {seconds} s:\n{self.tail()}")
                time.sleep(0.05)
                continue
            if "address already in use" not in self.tail().lower() or tries == TRIES:
                raise self.ended()
            tries += 1
            if self.settled:
                time.sleep(0.5)
            else:
                self.ports = []
            self.launch()
        self.settled = True

    def start(self, seconds: float = 60) -> None:
        """Start it and wait until it is well."""
        if not self.running():
            self.launch()
        self.settle(seconds)

    def kill(self) -> None:
        """Kill it as `kill -9` does, paused or not."""
        self.wanted = False
        if self.process:
            self.process.kill()
            self.process.wait()

    def restart(self, seconds: float = 60) -> None:
        """Kill it, start it again on the same ports, wait until it is well."""
        self.kill()
        self.start(seconds)

    def pause(self) -> None:
        """Stop it in its tracks: its connections stay open and nobody answers."""
        self.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Pause it for the length of a block."""
        self.pause()
        try:
            yield
        finally:
            self.resume()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        if not self.running() or self.process is None:
            raise self.ended()
        self.process.send_signal(number)

    def running(self) -> bool:
        """Whether there is a process, paused or not."""
        return self.process is not None and self.process.poll() is None

    def well(self) -> bool:
        """Whether it listens on its ports, itself and not a stranger, and says that it is well."""
        if not self.running() or self.process is None:
            return False
        try:
            listens = {port for _, port in ports.listening(self.process.pid)}
            return listens >= set(self.ports) and self.program.healthy(self.ports)
        except OSError:
            return False

    def check(self) -> None:
        """Raise if it has ended though nobody asked it to."""
        if self.wanted and not self.running():
            raise self.ended()

    def ended(self) -> ClusterError:
        """What to say of one that does not run."""
        code = self.process.poll() if self.process else None
        return ClusterError(f"{self.name} has ended with code {code}:\n{self.tail()}")

    def tail(self, lines: int = 15) -> str:
        """The end of its log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
