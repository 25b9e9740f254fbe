"""Runs the filter over a folder of manifests that other people wrote: `python tests/corpus/run.py DIR`.

Golden cases hold what we thought of; manifests from elsewhere hold what we did not. Each file goes through the
installed script twice, the second time as it came out of the first. A run may end with 0 or 1 and with nothing else; it
may add PodGroups and change InferenceServices and LeaderWorkerSets, and nothing else; the second run may change nothing
at all.

A folder that holds `ome/v1.3` is the corpus that `expected.py` was written for: there each service is also read with
the runtimes and settings of a row, and its PodGroups must be those of the row.

Exit codes: 0 all as it should be, 1 something is not, 2 there is no such folder, no manifest in it, or no script.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from expected import ALL, ROWS, UNSURE, Gang, Row

SCRIPT = str(Path(sys.executable).parent / "postrender")
ENDINGS = {".yaml", ".yml", ".json"}
SECONDS = 60
KNOWN = "ome/v1.3"

SERVICES = {("ome.io", "InferenceService"), ("ome.io", "InferenceReplica")}
MAY_CHANGE = {("ome.io", "InferenceService"), ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")}
POD_GROUP = ("scheduling.x-k8s.io/v1alpha1", "PodGroup")
OURS = "postrender/for"
LABELS = re.compile(rb"\blabels\b|scheduling\.x-k8s\.io/pod-group")
BOM = b"\xef\xbb\xbf"


class Part(NamedTuple):
    """A document or an item of a list: its bytes, empty for an item; its node, None if it cannot be read.

    `version` and `kind` are those of a typed list's items, which need not say them.
    """

    data: bytes
    node: yaml.Node | None
    version: str = ""
    kind: str = ""

    @property
    def who(self) -> tuple[str, ...]:
        """What an object is known by."""
        where = (("apiVersion",), ("kind",), ("metadata", "namespace"), ("metadata", "name"))
        version, kind, *name = (scalar(self.node, *path) or "" for path in where)
        return (version or self.version, kind or self.kind, *name)

    @property
    def group_kind(self) -> tuple[str, str]:
        """Its API group and kind, whatever the version."""
        version, kind = self.who[:2]
        return version.partition("/")[0], kind

    @property
    def items(self) -> list[Part]:
        """The items of a list."""
        items = value(self.node, "items")
        version, kind = self.who[:2]
        if not kind.endswith("List") or not isinstance(items, yaml.SequenceNode):
            return []
        return [Part(b"", item, version, kind.removesuffix("List")) for item in items.value]

    @property
    def ours(self) -> bool:
        """Whether it is a PodGroup that we made: it may be replaced whole."""
        return self.who[:2] == POD_GROUP and scalar(self.node, "metadata", "annotations", OURS) is not None

    @property
    def may_change(self) -> bool:
        """Whether we may change it, or an item of it."""
        return self.ours or self.group_kind in MAY_CHANGE or any(item.may_change for item in self.items)

    def equals(self, other: Part) -> bool:
        """Whether both are the same bytes; of two items, whether the same is written in them.

        An item has no bytes of its own: what stands between two of them belongs to neither.
        """
        if self.data or other.data:
            return self.data == other.data
        return written(self.node) == written(other.node)

    def __str__(self) -> str:
        return "/".join(part for part in self.who[1:] if part) or "a document without a kind"


class Outcome(NamedTuple):
    """What came of a file: what is wrong, whether it was changed, its new PodGroups, the codes of errors and others."""

    faults: list[str]
    changed: bool = False
    gangs: Sequence[Gang] = ()
    errors: Sequence[str] = ()
    others: Sequence[str] = ()


def value(node: yaml.Node | None, *path: str) -> yaml.Node | None:
    """Return the node at a path of keys, merged ones last."""
    for key in path:
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        merged = (value(held, key) for name, held in pairs if name.value == "<<")
        node = next((held for name, held in pairs if name.value == key), None) or next(merged, None)
    return node


def scalar(node: yaml.Node | None, *path: str) -> str | None:
    """Return the text of the scalar at a path."""
    held = value(node, *path)
    return held.value if isinstance(held, yaml.ScalarNode) else None


def written(node: yaml.Node | None) -> object:
    """Return what is written in a node, quotes and styles with it, places without."""
    if isinstance(node, yaml.MappingNode):
        return node.tag, node.flow_style, [(written(key), written(held)) for key, held in node.value]
    if isinstance(node, yaml.SequenceNode):
        return node.tag, node.flow_style, [written(held) for held in node.value]
    return (node.tag, node.style, node.value) if isinstance(node, yaml.ScalarNode) else None


def documents(data: bytes) -> list[Part]:
    """Return the documents of a stream; their bytes, joined, are the stream.

    They are cut here and not by the program: at each line that begins with the marker, whose place no YAML reader
    disputes. A new document brings a marker of its own, so a whole stream's lines compared as sequences would not tell
    which document a marker belongs to; compared by documents, all that need not change must come out as it went in.
    """
    pieces: list[list[bytes]] = [[BOM] if data.startswith(BOM) else [], []]
    for line in data.removeprefix(BOM).splitlines(keepends=True):
        if re.match(rb"---(\s|$)", line):
            pieces.append([])
        pieces[-1].append(line)
    return [Part(b"".join(lines), parsed(b"".join(lines))) for lines in pieces if lines]


def parsed(data: bytes) -> yaml.Node | None:
    """Return the node of a document, None where it cannot be read: then it must not have changed."""
    try:
        return next(iter(yaml.compose_all(data, yaml.CSafeLoader)), None)
    except (yaml.YAMLError, RecursionError):
        return None


def compared(before: Sequence[Part], after: Sequence[Part], groups: list[Part]) -> Iterator[str]:
    """Yield what must not have changed between two streams, or lists; add the new PodGroups to `groups`."""
    rest = list(reversed(before))
    for part in after:
        old = rest[-1] if rest else None
        if old and part.equals(old):
            rest.pop()
        elif old and old.may_change and part.who == old.who:
            rest.pop()
            yield from (f"{part}: {harm}" for harm in harmed(old, part))
            yield from compared(old.items, part.items, groups)
        elif part.who[:2] == POD_GROUP:
            groups.append(part)
        else:
            yield f"{old}: changed, moved or gone" if old else f"{part}: added, and no PodGroup of {POD_GROUP[0]}"
            return
    if rest:
        yield f"{rest[-1]}: gone"


def harmed(before: Part, after: Part) -> Iterator[str]:
    """Yield what a change of a document has done to the rest of it; at most one line that is not there any more.

    All lines must be, in their order, for what is added to a service is lines. Only a comma may come behind one, and
    something between the braces of a flow collection; a line about labels may be another.
    """
    if before.ours:
        return
    breaks, others = (set(re.findall(rb"\r?\n|\r", part.data)) for part in (before, after))
    if breaks and others - breaks:
        yield "line breaks of another kind"
    if before.data.endswith(b"\n") != after.data.endswith(b"\n"):
        yield "a last line break gained or lost"
    lines = iter(after.data.splitlines())
    for line in before.data.splitlines():
        if not LABELS.search(line) and not any(kept(line, other) for other in lines):
            yield f"lost the line {line.decode(errors='replace')!r}"
            return


def kept(line: bytes, other: bytes) -> bool:
    """Return whether a line is the other one still, whatever was put between its braces or behind it as a comma."""
    head, opened, _ = line.partition(b"{")
    _, closed, tail = line.removesuffix(b",").rpartition(b"}")
    if opened or closed:
        start, end = head + opened if opened else b"", closed + tail if closed else b""
        return other.startswith(start) and other.removesuffix(b",").endswith(end)
    return line.removesuffix(b",") == other.removesuffix(b",")


def run(data: bytes, settings: Mapping[str, str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the installed script with nothing in its environment but settings."""
    around = {"POSTRENDER_" + name.upper().replace("-", "_"): text for name, text in settings.items()}
    return subprocess.run(
        [SCRIPT], input=data, env=around, cwd=folder, capture_output=True, timeout=SECONDS, check=False
    )


def codes(errors: str, severities: str) -> list[str]:
    """Return the codes of what was said with one of these severities."""
    return re.findall(rf"^postrender: (?:{severities}): .*\[([a-z-]+)\]$", errors, re.MULTILINE)


def ended_badly(done: subprocess.CompletedProcess[bytes]) -> Iterator[str]:
    """Yield what no run may end with, whatever it was given."""
    errors = done.stderr.decode(errors="replace").strip()
    if "Traceback (most recent call last)" in errors:
        yield f"a traceback: {errors.splitlines()[-1]}"
    if done.returncode not in (0, 1):
        yield f"exit code {done.returncode}: {errors.splitlines()[-1] if errors else 'nothing on stderr'}"
    if done.returncode == 1 and not codes(errors, "error"):
        yield f"exit code 1, and {'no error with a code' if errors else 'nothing'} on stderr"
    if done.returncode == 1 and done.stdout:
        yield "exit code 1, and something on stdout"


def tried(data: bytes, settings: Mapping[str, str], folder: Path) -> Outcome:
    """Run the script on a stream, and on what it made of it."""
    try:
        first = run(data, settings, folder)
        faults = list(ended_badly(first))
        errors = first.stderr.decode(errors="replace")
        refused = codes(errors, "error") if first.returncode == 1 else []
        others = codes(errors, "warning|note")
        if faults or first.returncode:
            return Outcome(faults, errors=refused, others=others)
        groups: list[Part] = []
        faults += compared(documents(data), documents(first.stdout), groups)
        second = run(first.stdout, settings, folder)
    except subprocess.TimeoutExpired:
        return Outcome([f"no end after {SECONDS} s"])
    faults += (f"second run: {fault}" for fault in ended_badly(second))
    if second.returncode == 1:
        faults.append(f"second run: refused: {', '.join(codes(second.stderr.decode(errors='replace'), 'error'))}")
    elif second.stdout != first.stdout:
        faults.append("a second run changes the output of the first")
    return Outcome(faults, first.stdout != data, [gang(group) for group in groups], others=others)


def gang(group: Part) -> Gang:
    """Return what a PodGroup says of its gang."""
    least, timeout = (scalar(group.node, "spec", key) or "" for key in ("minMember", "scheduleTimeoutSeconds"))
    return Gang(
        group.who[-1],
        int(least) if least.isdecimal() else None,
        int(timeout) if timeout.isdecimal() else None,
        scalar(group.node, "metadata", "annotations", "ome.io/topology-key"),
    )


def shown(made: Gang) -> str:
    """Return a gang in words, what is not written left out."""
    words = [made.name, f"minMember {made.min_member}"]
    words += [f"scheduleTimeoutSeconds {made.timeout}"] if made.timeout is not None else []
    words += [f"topology key {made.topology_key}"] if made.topology_key is not None else []
    return ", ".join(words)


def every_file(folder: Path, files: Iterable[Path]) -> bool:
    """Run the script on each file as it is; print gangs, faults and counts; return whether there was no fault."""
    outcomes = {}
    for file in files:
        name = file.relative_to(folder).as_posix()
        outcome = outcomes[name] = tried(file.read_bytes(), {}, folder)
        for line in (*map(shown, outcome.gangs), *(f"FAILED: {fault}" for fault in outcome.faults)):
            print(f"{name}: {line}", flush=True)
    everyone = outcomes.values()
    refused = Counter(", ".join(outcome.errors) for outcome in everyone if outcome.errors)
    reasons = f" ({'; '.join(f'{code}: {count}' for code, count in sorted(refused.items()))})" if refused else ""
    changed = sum(outcome.changed for outcome in everyone)
    failed = sum(bool(outcome.faults) for outcome in everyone)
    gangs = sum(len(outcome.gangs) for outcome in everyone)
    print(
        f"{len(outcomes)} files, {changed} changed, {refused.total()} refused{reasons}, {gangs} gangs, {failed} failed"
    )
    return not failed


def every_row(folder: Path, files: Iterable[Path]) -> bool:
    """Compare each row of the table with what the script makes of it; print and return as `every_file` does."""
    faults = list(without_row(folder, files))
    for row in ROWS:
        faults += (f"{label(row)}: {fault}" for fault in differences(folder, row))
    for fault in faults:
        print(f"table: {fault}", flush=True)
    print(f"table: {len(ROWS)} rows, {sum(len(row.gangs) for row in ROWS)} gangs expected, {len(faults)} differences")
    return not faults


def differences(folder: Path, row: Row) -> Iterator[str]:
    """Yield how a row differs from what the script makes of its manifest."""
    files = [folder / name for name in (row.file, *row.beside)]
    named = [folder / name for name in (*row.context, row.settings.get("ome-values", ""))]
    if missing := [path.relative_to(folder).as_posix() for path in (*files, *named) if not path.exists()]:
        yield f"not in the folder: {', '.join(missing)}"
        return
    settings = {**row.settings, **({"context": ",".join(row.context)} if row.context else {})}
    outcome = tried(b"\n---\n".join(file.read_bytes() for file in files), settings, folder)
    if outcome.faults or tuple(outcome.errors) != row.refused:
        yield from outcome.faults or [f"refused: {', '.join(outcome.errors) or 'not, though it should be'}"]
        return
    wanted, made = Counter(row.gangs), Counter(outcome.gangs)
    yield from (f"missing: {shown(one)}" for one in (wanted - made).elements())
    yield from (f"not expected: {shown(one)}" for one in (made - wanted).elements())
    for code in UNSURE:
        if (code in outcome.others) != (code in row.unsure):
            yield f"{code} is {'not ' if code in row.unsure else ''}said"


def label(row: Row) -> str:
    """Return what tells a row from the others of its file."""
    context = ["all runtimes", *row.context[len(ALL) :]] if row.context[: len(ALL)] == ALL else list(row.context)
    words = [*context, *(f"in the stream {name}" for name in row.beside)]
    words += [f"{name} {text}" for name, text in row.settings.items()]
    return f"{row.file} ({'; '.join(words) or 'alone'})"


def without_row(folder: Path, files: Iterable[Path]) -> Iterator[str]:
    """Yield the files of OME's that hold services and have no row: a corpus that grows must not grow past the table."""
    rows = {row.file for row in ROWS}
    for file in files:
        name = file.relative_to(folder).as_posix()
        if name not in rows and any(part.group_kind in SERVICES for part in documents(file.read_bytes())):
            yield f"{name}: holds a service, and has no row"


def main() -> int:
    """Run all that the folder calls for; return the exit code."""
    parser = argparse.ArgumentParser(prog="corpus", description="Runs the filter over a folder of manifests, twice.")
    parser.add_argument("folder", metavar="DIR", help="a folder of .yaml, .yml and .json files, however deep")
    told = parser.parse_args()
    # The empty word is what a variable that was not set becomes, and would be the current folder.
    if not told.folder or not Path(told.folder).is_dir():
        parser.error(f"no such folder: {told.folder!r}")
    if not Path(SCRIPT).is_file():
        parser.error(f"{SCRIPT} is missing; `pip install -e .` puts it there")
    folder = Path(told.folder).resolve()
    files = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    if not files:
        parser.error(f"no manifest in {told.folder}")
    well = every_file(folder, files)
    if (folder / KNOWN).is_dir():
        well = every_row(folder, files) and well
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
