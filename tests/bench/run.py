"""Measures the budgets of speed and memory: `python tests/bench/run.py [--rows 1,2] [--runs N] [--markdown]`.

Whole processes are measured, from start to exit, stdin from a file and stdout to nowhere: the installed script without
arguments against a peer, in turns (A B A B ...), so that a slow stretch of the machine meets both. A budget is a
ratio within one turn; the median of the turns is held against it. Milliseconds are printed, never judged.

A child's peak memory is what `wait4` says, and Linux counts the parent's pages in it where a child was forked. So this
process stays small: streams are made by processes of their own, and nothing here holds one.

Exit codes: 0 every budget kept, 1 one missed or a process failed, 4 a program is missing.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = ROOT / ".programs" / "bin"
PYTHON = sys.executable
MIB = 1 << 20

# Turns of each row, unless `--runs` says otherwise: many for processes of milliseconds, few for those of seconds.
TURNS = {1: 41, 2: 21, 3: 15, 4: 7, 5: 5, 6: 3, 7: 5, 8: 3}

# What must not be imported where there is nothing to do: each costs more than all the rest of such a run.
COSTLY = ("yaml", "click", "re", "typing")

LOAD_AND_DUMP = (
    "import sys, yaml\n"
    "documents = yaml.load_all(sys.stdin.buffer, yaml.CSafeLoader)\n"
    "yaml.dump_all(documents, sys.stdout, Dumper=yaml.CSafeDumper, sort_keys=False, allow_unicode=True)\n"
)


class MissingError(Exception):
    """A program that a row needs is not there."""


class FailedError(Exception):
    """A measured process did not end well, so its time says nothing."""


class Command(NamedTuple):
    name: str
    argv: tuple[str, ...]
    stdin: str = os.devnull


class Usage(NamedTuple):
    seconds: float
    peak: int


class Line(NamedTuple):
    """One line of the table, as text but for whether the budget was kept."""

    row: int
    what: str
    peer: str
    ours: str
    theirs: str
    ratio: str
    budget: str
    ok: bool


class Setting(NamedTuple):
    """What all rows share: the command under test, whether it is the installed script, where the peers lie."""

    ours: tuple[str, ...]
    installed: bool
    programs: Path
    scratch: Path


def environment() -> dict[str, str]:
    """Returns ours without what would make a child slower or another: Python's switches, hosts' and our own options."""
    return {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "POSTRENDER_", "HELM_"))}


def measure(command: Command) -> Usage:
    """Runs the command once; returns its wall time in seconds and its peak memory in bytes."""
    files = [
        (os.POSIX_SPAWN_OPEN, 0, command.stdin, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    around = environment()
    start = time.perf_counter()
    child = os.posix_spawn(command.argv[0], command.argv, around, file_actions=files)
    _, status, usage = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    if status:
        raise FailedError(f"{command.name} ended with {ending(status)}: {complaint(command)}")
    # Linux counts in KiB, macOS in bytes.
    return Usage(seconds, usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024)


def run(argv: Sequence[str], stdin: str, **files: Any) -> subprocess.CompletedProcess[bytes]:
    """Runs a command unmeasured; stdout and stderr go nowhere unless `files` says otherwise."""
    with open(stdin, "rb") as file:
        places = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **files}
        return subprocess.run(argv, stdin=file, env=environment(), check=False, **places)


def ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"exit status {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def complaint(command: Command) -> str:
    """Runs a failed command again; returns the last line of its stderr."""
    done = run(command.argv, command.stdin, stderr=subprocess.PIPE)
    return (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing on stderr"])[-1]


def in_turns(commands: Sequence[Command], turns: int) -> list[list[Usage]]:
    """Returns what each command took in each turn, after one turn that only fills caches."""
    for command in commands:
        measure(command)
    taken: list[list[Usage]] = [[] for _ in commands]
    for _ in range(turns):
        for usages, command in zip(taken, commands, strict=True):
            usages.append(measure(command))
    return taken


def in_time(row: int, what: str, peer: str, ours: list[Usage], theirs: list[Usage], budget: float) -> Line:
    ratios = [our.seconds / their.seconds for our, their in zip(ours, theirs, strict=True)]
    return judged(row, what, peer, milliseconds(ours), milliseconds(theirs), ratios, budget)


def in_memory(row: int, what: str, ours: list[Usage], stdin: str, budget: float) -> Line:
    size = os.path.getsize(stdin)
    peak = median(usage.peak for usage in ours)
    ratios = [usage.peak / size for usage in ours]
    return judged(row, f"{what}, peak", "its input", f"{peak / MIB:.1f} MiB", f"{size / MIB:.1f} MiB", ratios, budget)


def judged(row: int, what: str, peer: str, ours: str, theirs: str, ratios: list[float], budget: float) -> Line:
    middle = median(ratios)
    spread = f"{min(ratios):.2f} / {middle:.2f} / {max(ratios):.2f}"
    return Line(row, what, peer, ours, theirs, spread, f"≤ {budget:g}", middle <= budget)


def milliseconds(usages: list[Usage]) -> str:
    return f"{median(usage.seconds for usage in usages) * 1000:.1f} ms"


def stream(name: str, count: int) -> str:
    """Returns the file that holds the stream, made by a process of its own."""
    argv = [PYTHON, str(HERE / "streams.py"), name, str(count)]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def program(setting: Setting, name: str) -> str:
    path = setting.programs / name
    if not path.is_file():
        raise MissingError(f"{path} is missing; `python tests/e2e/programs/get.py` puts it there")
    return str(path.resolve())


def postrender(setting: Setting, stdin: str) -> Command:
    return Command("postrender", setting.ours, stdin)


def working(setting: Setting, stdin: str, gangs: int) -> Command:
    """Returns the command on that stream, once it has shown that it makes so many PodGroups: a copier is not fast."""
    command = postrender(setting, stdin)
    if not setting.installed:
        return command
    with tempfile.TemporaryFile(dir=setting.scratch) as output:
        done = run(command.argv, stdin, stdout=output)
        if done.returncode:
            raise FailedError(f"postrender ended with exit status {done.returncode}: {complaint(command)}")
        output.seek(0)
        made = sum(line.strip(b" -\n") == b"kind: PodGroup" for line in output)
    if made != gangs:
        raise FailedError(f"postrender made {made} PodGroups of {gangs} for {Path(stdin).name}")
    return command


def nothing_of_interest(setting: Setting, turns: int) -> list[Line]:
    what = "nothing of interest, 30 documents"
    stdin = stream("nothing", 30)
    ours, bare = in_turns([postrender(setting, stdin), Command("python", (PYTHON, "-c", "pass"))], turns)
    lines = [in_time(1, what, "python -c pass", ours, bare, 1.6)]
    if setting.installed:
        # What the interpreter imports by itself (site, .pth files) is in the denominator too, so it does not count.
        own = imported(setting.ours, stdin) - imported(("-c", "pass"), stdin)
        costly = sorted({name.partition(".")[0] for name in own} & set(COSTLY))
        names = ", ".join(costly) or "none"
        lines.append(Line(1, f"{what}, imports", f"none of {', '.join(COSTLY)}", names, "", "", "none", not costly))
    return lines


def imported(arguments: Sequence[str], stdin: str) -> set[str]:
    """Returns the modules that the interpreter names when it runs with these arguments under `-X importtime`."""
    argv = [PYTHON, "-X", "importtime", *arguments]
    done = run(argv, stdin, stderr=subprocess.PIPE)
    if done.returncode:
        raise FailedError(f"{shlex.join(argv)} ended with exit status {done.returncode}")
    lines = done.stderr.decode(errors="replace").splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def against_kustomize(setting: Setting, turns: int) -> list[Line]:
    stdin = stream("mix", 30)
    folder = setting.scratch / "kustomization"
    folder.mkdir(exist_ok=True)
    shutil.copy(stdin, folder / "resources.yaml")  # kustomize reads no file outside its folder
    (folder / "kustomization.yaml").write_text("resources: [resources.yaml]\nlabels:\n  - pairs: {bench: kustomize}\n")
    kustomize = Command("kubectl kustomize", (program(setting, "kubectl"), "kustomize", str(folder)))
    ours, theirs = in_turns([working(setting, stdin, 4), kustomize], turns)
    return [in_time(2, "30 documents, 4 services", "kubectl kustomize adding labels", ours, theirs, 0.6)]


def against_go(setting: Setting, turns: int) -> list[Line]:
    stdin = stream("mix", 500)
    go = Command("the Go filter", (program(setting, "filter"),), stdin)
    ours, theirs = in_turns([working(setting, stdin, 50), go], turns)
    return [in_time(3, "500 documents", "Go, yaml.v3", ours, theirs, 0.6)]


def against_all(setting: Setting, turns: int) -> list[Line]:
    stdin = stream("mix", 5_000)
    go = Command("the Go filter", (program(setting, "filter"),), stdin)
    pyyaml = Command("PyYAML", (PYTHON, "-c", LOAD_AND_DUMP), stdin)
    ours, compiled, interpreted = in_turns([working(setting, stdin, 467), go, pyyaml], turns)
    what = "5,000 documents"
    return [
        in_time(4, what, "Go, yaml.v3", ours, compiled, 0.3),
        in_time(4, what, "PyYAML, C load and dump", ours, interpreted, 0.15),
        in_memory(4, what, ours, stdin, 5),
    ]


def services_alone(setting: Setting, turns: int) -> list[Line]:
    few, many, listed_few, listed = (
        working(setting, stream(name, count), count) for name in ("services", "resource-list") for count in (500, 5_000)
    )
    short, long, short_list, long_list = in_turns([few, many, listed_few, listed], turns)
    services, items = "5,000 services", "ResourceList of 5,000"
    return [
        in_time(5, services, "500 services", long, short, 11),
        in_memory(5, services, long, many.stdin, 6),
        in_time(5, items, "ResourceList of 500", long_list, short_list, 11),
        in_time(5, items, "the same as a stream", long_list, long, 3),
        in_memory(5, items, long_list, listed.stdin, 6),
    ]


def growth(setting: Setting, turns: int) -> list[Line]:
    lengths = (1_000, 10_000, 100_000)
    taken = in_turns([postrender(setting, stream("scaled", length)) for length in lengths], turns)
    pairs = zip(lengths, lengths[1:], taken, taken[1:], strict=False)
    return [in_time(6, f"{ten:,} documents", f"{one:,} documents", long, short, 11) for one, ten, short, long in pairs]


def under_helm(setting: Setting, turns: int) -> list[Line]:
    """Measures whole `helm template` runs: ours against a post-renderer that prints what ours would."""
    if not setting.installed:
        return []
    chart, plugins = setting.scratch / "chart", setting.scratch / "plugins"
    (chart / "templates").mkdir(parents=True, exist_ok=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: bench\nversion: 0.1.0\n")
    documents = Path(stream("mix", 5_000)).read_text().split("\n---\n")
    for start in range(0, len(documents), 100):  # Helm takes no single file of this size
        (chart / f"templates/{start:04}.yaml").write_text("\n---\n".join(documents[start : start + 100]) + "\n")
    given, finished = setting.scratch / "given.yaml", setting.scratch / "finished.yaml"
    for name, script in (("keep", f"tee {given}"), ("print", f"cat {finished}")):
        (plugins / name).mkdir(parents=True, exist_ok=True)
        (plugins / name / "run").write_text(f"#!/bin/sh\nexec {script}\n")
        (plugins / name / "run").chmod(0o755)
        (plugins / name / "plugin.yaml").write_text(
            f"apiVersion: v1\ntype: postrenderer/v1\nname: {name}\nversion: 0.1.0\nruntime: subprocess\n"
            'runtimeConfig:\n  platformCommand:\n  - command: "${HELM_PLUGIN_DIR}/run"\n'
        )
    ours = HERE.parents[1] / "plugins/helm/postrender"

    def template(name: str) -> Command:
        around = (f"HELM_PLUGINS={plugins}:{ours}", f"PATH={Path(PYTHON).parent}:{os.environ['PATH']}")
        words = ("template", "bench", str(chart), "--post-renderer", name)
        return Command(f"helm with {name}", ("/usr/bin/env", *around, program(setting, "helm-4.3"), *words))

    measure(template("keep"))
    with finished.open("wb") as output:
        if run(setting.ours, str(given), stdout=output).returncode:
            raise FailedError("postrender refused what Helm 4 gave it")
    gangs = sum(line == b"kind: PodGroup\n" for line in finished.open("rb"))
    if gangs != 467:
        raise FailedError(f"postrender made {gangs} PodGroups of 467 under Helm 4")
    mine, printed = in_turns([template("postrender"), template("print")], turns)
    return [in_time(7, "Helm 4, 5,000 documents", "the same, printing the output", mine, printed, 1.15)]


def reconciler(setting: Setting, turns: int) -> list[Line]:
    """Measures what `postrender reconcile` holds while it knows 5,000 PodGroups and has reset 50 of them."""
    if not setting.installed:
        return []
    peaks = [resident(setting, 5_000, 50) for _ in range(turns)]
    what, peak = "reconciler, 5,000 PodGroups, peak", f"{median(peaks) / MIB:.1f} MiB"
    return [judged(8, what, "96 MiB", peak, "96 MiB", [peak / (96 * MIB) for peak in peaks], 1)]


def resident(setting: Setting, groups: int, failed: int) -> int:
    """Returns the peak memory of the reconciler in bytes, beside an API server in memory that has so many PodGroups."""
    argv = [PYTHON, "-m", "tests.reconciler.server", "--groups", str(groups), "--failed", str(failed)]
    log = setting.scratch / "reconciler.log"
    server = subprocess.Popen(argv, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdin is not None
        assert server.stdout is not None
        kubeconfig = server.stdout.readline().strip()
        words = (
            "reconcile",
            "--kubeconfig",
            kubeconfig,
            "--listen",
            "127.0.0.1:0",
            "--rate",
            "1000",
            "--burst",
            "1000",
        )
        to = [(os.POSIX_SPAWN_OPEN, 2, str(log), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)]
        child = os.posix_spawn(setting.ours[0], (*setting.ours, *words), environment(), file_actions=to)
        end = time.monotonic() + 60
        try:
            while log.read_text().count('"msg": "reset"') < failed:
                if time.monotonic() > end:
                    raise FailedError(f"the reconciler reset too few of {failed} PodGroups: {log.read_text()[-500:]}")
                time.sleep(0.1)
            time.sleep(1)
        finally:
            os.kill(child, signal.SIGTERM)
            _, _, usage = os.wait4(child, 0)
        return usage.ru_maxrss if sys.platform == "darwin" else usage.ru_maxrss * 1024
    finally:
        server.kill()
        server.communicate()


ROWS: dict[int, Callable[[Setting, int], list[Line]]] = {
    1: nothing_of_interest,
    2: against_kustomize,
    3: against_go,
    4: against_all,
    5: services_alone,
    6: growth,
    7: under_helm,
    8: reconciler,
}

TITLES = ("row", "what", "peer", "ours", "peer's", "ratio min / median / max", "budget", "")


def cells(line: Line) -> tuple[str, ...]:
    return (str(line.row), *line[1:-1], "ok" if line.ok else "MISSED")


def plain(lines: Sequence[Line]) -> str:
    rows = [TITLES, *map(cells, lines)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def markdown(lines: Sequence[Line]) -> str:
    rows = [TITLES, ("---",) * len(TITLES), *map(cells, lines)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def machine(setting: Setting, pinned: bool) -> str:
    """Returns one line about what was measured on, for whoever compares two tables."""
    model = sys.platform
    if os.path.exists("/proc/cpuinfo"):
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        model = found[1] if found else model
    cores = os.cpu_count() or 1
    facts = [f"{model}, {cores} core{'s' * (cores > 1)}{', pinned to one' if pinned else ''}"]
    facts.append(f"Python {sys.version.split()[0]}")
    asked = "import yaml; print('PyYAML', yaml.__version__, 'with libyaml', yaml._yaml.get_version_string())"
    facts.append(said(PYTHON, "-c", asked))
    kubectl, go = setting.programs / "kubectl", setting.programs / "filter"
    if kubectl.is_file():
        versions = re.findall(r"(?:Client|Kustomize) Version: v(\S+)", said(str(kubectl), "version", "--client"))
        facts.append(" with kustomize ".join(["kubectl " + versions[0], *versions[1:]]) if versions else "kubectl")
    if go.is_file():
        # A Go program carries the versions it was built from, so no toolchain is asked.
        data = go.read_bytes()
        built = [re.search(rb"\xff Go buildinf:.{19}go([0-9.]+)", data, re.DOTALL)]
        built.append(re.search(rb"dep\tgopkg\.in/yaml\.v3\tv([0-9.]+)", data))
        names = [f"{name} {found[1].decode()}" for name, found in zip(("Go", "yaml.v3"), built, strict=True) if found]
        facts.append(" with ".join(names) or "Go")
    return "; ".join(facts) + "."


def said(*argv: str) -> str:
    return run(argv, os.devnull, stdout=subprocess.PIPE).stdout.decode(errors="replace").strip()


def pin() -> bool:
    """Keeps this process and its children on one core; returns whether that was possible."""
    try:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    except (AttributeError, OSError):
        return False
    return True


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description="Measures the budgets of speed and memory.")
    parser.add_argument("--rows", default=",".join(map(str, ROWS)), help="which rows, such as 1,2 (all)")
    parser.add_argument("--runs", type=int, help="turns of every row (many for short processes, few for long ones)")
    parser.add_argument("--markdown", action="store_true", help="print a line about the machine, and a Markdown table")
    parser.add_argument("--ours", help="measure this command, whatever it does, instead of the installed script")
    parser.add_argument("--programs", type=Path, default=PROGRAMS, help="the folder of kubectl and filter")
    given = parser.parse_args()
    names = {str(row): row for row in ROWS}
    given.rows = [names.get(row.strip()) for row in given.rows.split(",")]
    if None in given.rows:
        parser.error(f"--rows takes numbers from {min(ROWS)} to {max(ROWS)}, with commas between them")
    if given.runs is not None and given.runs < 1:
        parser.error("--runs takes a number from 1 up")
    return given


def table(given: argparse.Namespace) -> tuple[list[Line], Setting]:
    """Measures the rows asked for; returns their lines and what they were measured with."""
    script = str(Path(PYTHON).parent / "postrender")
    name, *rest = shlex.split(given.ours) if given.ours else [script]
    found = shutil.which(name)
    if found is None:
        raise MissingError(f"{name} is missing; `pip install -e .` puts it there")
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as scratch:
        setting = Setting((found, *rest), not given.ours, given.programs, Path(scratch))
        for row in given.rows:
            turns = given.runs or TURNS[row]
            sys.stderr.write(f"row {row}: {turns} turns\n")
            lines += ROWS[row](setting, turns)
    return lines, setting


def main() -> int:
    given = arguments()
    pinned = pin()
    try:
        lines, setting = table(given)
    except (MissingError, FailedError) as error:
        sys.stderr.write(f"bench: {error}\n")
        return 4 if isinstance(error, MissingError) else 1
    text = f"{machine(setting, pinned)}\n\n{markdown(lines)}" if given.markdown else plain(lines)
    sys.stdout.write(f"{text}\n")
    return 0 if all(line.ok for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
