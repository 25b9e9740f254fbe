"""Golden cases: one folder a case, `tests/cases/<area>/<case>/`, deeper where an area has rows and forms.

    input.yaml      bytes on stdin; any extension the case needs: input.json
    flags           optional, one word of the command line a line; missing = `postrender` with no argument
    env             optional, NAME=value lines
    context.yaml    optional, and config.yaml, values.yaml: for flags and env to name; `{case}` there, and in what is
                    expected, is the folder of the case
    objects.yaml    only under krm/, where the folder of the case is the working directory: for `files` to name
    changes         only under edit/: the changes to splice, a JSON object a line, instead of the filter
    expected.yaml   bytes on stdout, with the extension of the input; missing = nothing
    expected.diff   unified diff from input to expected, for who reads the case; missing = none
    refused         only under edit/: `code line:column message` of the refusal; then there is no expected.yaml
    stderr          optional, compared after `{version}` is filled in; missing = nothing
    exit            optional, missing = 0
    go-rejects      optional, `sigs: why` or `v3: why` lines: which Go reader cannot read the input (tests/oracles)
    why             one sentence, shown when the case fails

A case of another command than the filter has no bytes to compare, but what is printed, in one form or several:

    command         instead of flags: the command and its words, one a line; the input is on stdin all the same
    second.yaml     optional, and third.yaml: more files for the command to name
    expected.txt    stdout in the form for people; missing = nothing
    expected.jsonl  optional: stdout with `--format json`, and expected.github with `--format github`; stderr is then empty

Three checks come free with every expected output: doing it again changes nothing, every byte outside the edits is
still there, and the meaning is that of the input plus the changes. `pytest --update` rewrites expectations and skips.
"""

from __future__ import annotations

import difflib
import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml

from postrender import __version__, cli, pipeline, sources
from postrender.findings import SEVERITIES, Refusal
from postrender.hosts import filter as host
from postrender.hosts import function_config, krm
from postrender.manifests import edit, objects, stream, tree
from postrender.manifests.change import Add, Replace, Set, Spot
from tests.properties import reading

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from postrender.manifests.change import Change
    from postrender.options import Options

ROOT = Path(__file__).parent / "cases"
EDIT = "edit"
KRM = "krm"
ORDERS = (reading.OWN_WINS, reading.IN_ORDER)
FILES = {"flags", "env", "changes", "refused", "stderr", "exit", "go-rejects", "why", "expected.diff"}
FILES |= {"context.yaml", "config.yaml", "values.yaml", "objects.yaml"}
# A file of what a command prints -> the words that make it print so.
FORMS = {"expected.txt": [], "expected.jsonl": ["--format", "json"], "expected.github": ["--format", "github"]}
FILES_OF_A_COMMAND = {"command", "second.yaml", "third.yaml", *FORMS}
# A dozen cases go through the installed script too: a process costs more than a hundred cases.
SCRIPT = Path(sys.executable).parent / "postrender"
SCRIPT_CASES = 12


class Outcome(NamedTuple):
    """What came of a run; `refused` is a refusal of splice, `error` what the filter said."""

    output: bytes
    error: str = ""
    exit: int = 0
    refused: str = ""


@dataclass(frozen=True, eq=False)
class Case:
    """A folder, read."""

    name: str
    folder: Path
    files: dict[str, bytes]

    @property
    def input(self) -> str:
        return next(name for name in self.files if name.startswith("input."))

    @property
    def data(self) -> bytes:
        return self.files[self.input]

    @property
    def expected_name(self) -> str:
        return "expected" + self.input.removeprefix("input")

    @property
    def output(self) -> bytes:
        return self.files.get(self.expected_name, b"")

    @property
    def edits(self) -> bool:
        return self.name.startswith(f"{EDIT}/")

    @property
    def command(self) -> list[str]:
        return self.lines("command")

    @property
    def forms(self) -> list[str]:
        return [form for form in FORMS if form in self.files or not FORMS[form]]

    @property
    def why(self) -> str:
        return f"{self.name}: {self.text('why').strip()}"

    def text(self, name: str) -> str:
        return self.files.get(name, b"").decode()

    def lines(self, name: str) -> list[str]:
        return [line for line in self.text(name).replace("{case}", str(self.folder)).split("\n") if line]

    @property
    def env(self) -> dict[str, str]:
        return {name: value for name, _, value in (line.partition("=") for line in self.lines("env"))}

    @cached_property
    def options(self) -> Options:
        command = cli.krm if self.lines("flags")[:1] == [KRM] else cli.render
        words = self.lines("flags")[command is cli.krm :]
        given = {}
        if krm.is_call(self.data) and (config := krm.read(self.data).config) is not None:
            given = function_config.read(config)
        here = Path.cwd()
        os.chdir(self.folder)
        try:
            with command.make_context("", words) as context:
                config_file = context.params.pop("config")
                return sources.settle(cli.flags(config_file, context.params), self.env, given).options
        finally:
            os.chdir(here)

    @cached_property
    def changes(self) -> list[Change]:
        """What is asked for: under edit/ as the case says, else as the plan says; nothing where that is refused."""
        if self.wanted.exit:
            return []
        if not self.edits:
            return list(pipeline.decide(pipeline.read(self.data, self.options), self.options).changes)
        return [change(dict(json.loads(line, object_pairs_hook=tuple))) for line in self.lines("changes")]

    @property
    def edited(self) -> bool:
        """Whether what comes out is what came in, with edits."""
        made = self.name.startswith(f"{KRM}/generate/") and "exit" not in self.files
        return self.expected_name in self.files and not made and not self.name.startswith(f"{KRM}/validate/")

    @property
    def wanted(self) -> Outcome:
        error = self.text("stderr").replace("{version}", __version__).replace("{case}", str(self.folder))
        return Outcome(self.output, error, int(self.text("exit") or 0), self.text("refused").rstrip("\n"))


@pytest.fixture(autouse=True)
def _only_the_case_itself(request: pytest.FixtureRequest, update: bool) -> None:
    """An update rewrites what the other tests have read already."""
    if update and request.function not in (test_case, test_case_of_a_command):
        pytest.skip("expectations are being rewritten")


@pytest.fixture(autouse=True)
def _in_its_folder(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function is run in the folder of its kustomization."""
    if "case" in request.fixturenames:
        monkeypatch.chdir(request.getfixturevalue("case").folder)


def folders() -> list[Path]:
    """Every folder that holds a file, and no other folder: a case."""
    return sorted({path.parent for path in ROOT.rglob("*") if path.is_file()})


def read(folder: Path) -> Case:
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    return Case(folder.relative_to(ROOT).as_posix(), folder, files)


CASES = [read(folder) for folder in folders()]
WHOLE = [case for case in CASES if any(name.startswith("input.") for name in case.files)]
FILTERED = [case for case in WHOLE if not case.edits and not case.command]
COMMANDS = [case for case in WHOLE if case.command]
# What stands in the list of a call is no stream of manifests to any command but the function.
STREAMS = [case for case in FILTERED if not (case.name.startswith(f"{KRM}/") or krm.is_call(case.data))]
WITH_OUTPUT = [case for case in WHOLE if case.expected_name in case.files]
EDITED = [case for case in WHOLE if case.edited]
ROWS = {row: [*cases] for row, cases in groupby(EDITED, lambda case: "/".join(case.name.split("/")[:2]))}


def params(cases: list[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cases])


def test_there_are_cases() -> None:
    areas = {case.name.partition("/")[0] for case in WHOLE}
    assert areas >= {EDIT, KRM, "passthrough", "plan", "refuse", "check"}


# What is quickly seen of all cases is one test, for thousands of tests take longer than what they do.


def test_every_folder_is_a_case() -> None:
    for case in CASES:
        is_a_case(case)


def is_a_case(case: Case) -> None:
    inputs = [name for name in case.files if name.startswith("input.")]
    assert len(inputs) == 1, f"{case.name}: one input, not {inputs}"
    known = FILES_OF_A_COMMAND if case.command else {case.expected_name}
    assert set(case.files) <= FILES | known | {case.input}, f"{case.name}: unknown files"
    assert not [path for path in case.folder.iterdir() if path.is_dir()], f"{case.name}: a folder in a case"
    assert len(case.lines("why")) == 1, f"{case.name}: one sentence must say why"
    assert case.edits == ("changes" in case.files), f"{case.name}: changes belong to {EDIT}/, all of them"
    assert not case.files.keys() & ({"stderr", "exit", "flags", "env"} if case.edits else {"refused"}), case.name
    assert not case.command or not case.files.keys() & {"flags", "changes", "expected.diff"}, case.name
    assert "refused" not in case.files or case.expected_name not in case.files, case.name
    assert case.name.startswith(f"{KRM}/") or "objects.yaml" not in case.files, case.name


# What only a cluster can be found to be in, by `check --live` (tests/unit/test_live.py, tests/e2e/test_live.py).
LIVE = {"gang-half-bound", "gang-waiting", "podgroup-foreign", "podgroup-differs", "podgroup-failed"}


def test_every_code_is_checked_in_every_form() -> None:
    for code in SEVERITIES.keys() - LIVE:
        case = next((case for case in COMMANDS if case.name == f"check/code/{code}"), None)
        assert case is not None, code
        for form, wanted in zip(FORMS, (f"[{code}]", f'"code": "{code}"', f"title=postrender {code}::"), strict=True):
            assert wanted in case.text(form), f"{case.name}: {form}"


# -- running ---------------------------------------------------------------------------------------------------------


@params([*FILTERED, *(case for case in WHOLE if case.edits)])
def test_case(case: Case, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run(case, monkeypatch)
    if update:
        rewrite(case, outcome)
        pytest.skip("expectations rewritten")
    assert outcome == case.wanted, case.why


@pytest.mark.parametrize(
    ("case", "form"),
    [pytest.param(case, form, id=f"{case.name}-{form.rpartition('.')[2]}") for case in COMMANDS for form in case.forms],
)
def test_case_of_a_command(case: Case, form: str, update: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in case.env.items():
        monkeypatch.setenv(name, value)
    outcome = filtered(case.data, [*case.command, *FORMS[form]], monkeypatch)
    if update:
        rewrite_printed(case, form, outcome)
        pytest.skip("expectations rewritten")
    printed = case.text(form).replace("{case}", str(case.folder)).encode()
    error = "" if FORMS[form] else case.wanted.error
    assert outcome == Outcome(printed, error, case.wanted.exit), case.why


@params(FILTERED[:: max(1, len(FILTERED) // SCRIPT_CASES)][:SCRIPT_CASES])
def test_case_by_the_installed_script(case: Case) -> None:
    done = subprocess.run(
        [SCRIPT, *case.lines("flags")],
        input=case.data,
        capture_output=True,
        env=case.env,
        cwd=case.folder,
        timeout=60,
    )
    assert Outcome(done.stdout, done.stderr.decode(), done.returncode) == case.wanted, case.why


def test_the_diffs_are_up_to_date() -> None:
    old = [case.name for case in WITH_OUTPUT if case.files.get("expected.diff", b"") != diff(case, case.output)]
    assert not old, "run pytest --update"


def run(case: Case, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    if case.edits:
        return spliced(case.data, case.changes)
    for name, value in case.env.items():
        monkeypatch.setenv(name, value)
    return filtered(case.data, case.lines("flags"), monkeypatch)


def spliced(data: bytes, wanted: Sequence[Change]) -> Outcome:
    try:
        return Outcome(edit.splice(data, stream.cut(data), wanted))
    except Refusal as refusal:
        finding = refusal.finding
        at = f"{finding.place.line}:{finding.place.column}" if finding.place else "nowhere"
        return Outcome(b"", refused=f"{finding.code} {at} {finding.message}")


def filtered(data: bytes, flags: list[str], monkeypatch: pytest.MonkeyPatch) -> Outcome:
    source, target, errors = io.BytesIO(data), io.BytesIO(), io.StringIO()
    if not flags:
        code = host.run(host.STDIN, source, target, errors)
        return Outcome(target.getvalue(), errors.getvalue(), code)
    out = io.TextIOWrapper(target, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(source, encoding="utf-8"))
        patch.setattr(sys, "stdout", out)
        patch.setattr(sys, "stderr", errors)
        code = cli.run(flags)
        out.flush()
    return Outcome(target.getvalue(), errors.getvalue(), code)


def change(said: dict[str, Any]) -> Change:
    spot = Spot(said.pop("span", 0), said.pop("item", -1))
    if "set" in said:
        made: Change = Set(spot, tuple(said.pop("set")), said.pop("value"))
    else:
        made = Add(spot, said.pop("add")) if "add" in said else Replace(spot, said.pop("replace"))
    assert not said, f"unknown words in a change: {said}"
    return made


# -- what is true of every case --------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", ROWS)
def test_what_is_true_of_every_case(row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for case in ROWS[row]:
        with monkeypatch.context() as patch:
            patch.chdir(case.folder)
            doing_it_again_changes_nothing(case, patch)
        if case.output != case.data:
            what_was_not_edited_is_still_there(case)
            the_meaning_is_that_of_the_input_and_the_changes(case)


def doing_it_again_changes_nothing(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    if case.edits:
        again = [one for one in case.changes if not isinstance(one, Add)]  # what is added twice stands there twice
        if len(again) == len(case.changes):
            assert spliced(case.output, again).output == case.output, case.why
    else:
        for name, value in case.env.items():
            monkeypatch.setenv(name, value)
        assert filtered(case.output, case.lines("flags"), monkeypatch).output == case.output, case.why


def what_was_not_edited_is_still_there(case: Case) -> None:
    """Every line of the input is in the output, in order; of one that is not, all but one value."""
    text, rest = case.data.decode(), case.output.decode()
    replaced = [one.spot for one in case.changes if isinstance(one, Replace)]
    may_go = [*values(case.data), *(whole(case.data, spot.span) for spot in replaced)]
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        goes = [(start, start), *((low, high) for low, high in may_go if low < end and high > start)]
        left = [text[start : max(start, low)] + text[min(end, high) : end] for low, high in goes]
        # Of all the places where it may be, the first leaves most for the lines behind.
        ends = [after_line(line, rest), *(after_all(piece, rest) for piece in left)]
        found = max((end for end in ends if end is not None), key=len, default=None)
        assert found is not None, f"{case.why}\n{line!r} is lost before {rest!r}"
        rest, start = found, end


def whole(data: bytes, number: int) -> tuple[int, int]:
    span = stream.cut(data)[number]
    return len(data[: span.start].decode()), len(data[: span.stop].decode())


def values(data: bytes) -> Iterator[tuple[int, int]]:
    """Where each scalar and each alias of a stream stands, in code points, as far as it can be read."""
    for number, span in enumerate(stream.cut(data)):
        base, _ = whole(data, number)
        base += span.start == 0 and data.startswith(stream.BOM)
        try:
            for event in yaml.parse(stream.document(data, span).decode(), Loader=reading.LOADER):
                if isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent)) and event.start_mark and event.end_mark:
                    yield base + event.start_mark.index, base + event.end_mark.index
        except yaml.YAMLError:
            continue


def after_line(line: str, rest: str) -> str | None:
    """What follows a whole line in a text; the last line of an input may have got a line break."""
    for number, held in enumerate(lines := rest.splitlines(keepends=True)):
        if held == line or (held.rstrip("\r\n") == line and not line.endswith(("\r", "\n"))):
            return "".join(lines[number + 1 :])
    return None


def after_all(piece: str, rest: str) -> str | None:
    """What follows in a text once all characters of a piece were found in it, in order."""
    at = 0
    for char in piece:
        at = rest.find(char, at) + 1
        if not at:
            return None
    return rest[at:]


def the_meaning_is_that_of_the_input_and_the_changes(case: Case) -> None:
    # They differ in what is merged only.
    merges = any(sign in text for sign in (b"<<", b"merge") for text in (case.data, case.output))
    for order in ORDERS if merges else ORDERS[:1]:
        meant = [reading_of(case.data, number, order) for number in range(len(stream.cut(case.data)))]
        wanted = merged(case, meant, reading.model_meaning, set_meaning, (reading.STR, "items"))
        seen = [reading_of(case.output, number, order) for number in range(len(stream.cut(case.output)))]
        assert without_results(flat(seen)) == without_results(flat(wanted)), case.why


def without_results(documents: list[Any]) -> list[Any]:
    """What a function is told of the items is no part of them; a case shows it in what is expected."""
    for root in documents:
        if isinstance(root, dict) and root.get((reading.STR, "kind")) == (reading.STR, objects.RESOURCE_LIST):
            root.pop((reading.STR, "results"), None)
    return documents


def reading_of(data: bytes, number: int, order: str) -> list[Any]:
    """What the documents of a span mean; where it is no YAML, its text."""
    text = stream.document(data, stream.cut(data)[number]).decode()
    try:
        return [reading.meaning(root, order) for root in reading.documents(text)]
    except yaml.YAMLError:
        return [text]


def set_meaning(target: Any, path: tuple[str, ...], value: Any) -> None:
    reading.with_value(target, path, reading.written(value))


def merged(case: Case, spans: list[list[Any]], valued: Any, put: Any, items: Any) -> list[list[Any]]:
    """The readings of each span, with the changes of a case laid over them; documents added are spans before it."""
    cuts = stream.cut(case.data)
    before: dict[int, list[Any]] = {}
    inserted: list[tuple[list[Any], int, Any]] = []
    for one in case.changes:
        spot = place(one)
        root = spans[spot.span][0]
        value = None if isinstance(one, Set) else valued(as_dict(one.value))
        if isinstance(one, Set):
            put(root if spot.item < 0 else root[items][spot.item], one.path, one.value)
        elif isinstance(one, Replace) and spot.item < 0:
            spans[spot.span][0] = value
        elif isinstance(one, Replace):
            root[items][spot.item] = value
        elif spot.item < 0:
            before.setdefault(spot.span, []).append(value)
        else:
            head = tree.head(stream.document(case.data, cuts[spot.span]))
            last = head is not None and head.kind == objects.RESOURCE_LIST
            inserted.append((root[items], len(root[items]) if last else spot.item, value))
    for where, number, value in sorted(inserted, key=lambda one: -one[1]):
        same = [one[2] for one in inserted if one[0] is where and one[1] == number]
        if value is same[0]:  # all that go to one place, in their order
            where[number:number] = same
    return [[*before.get(number, ()), *span] for number, span in enumerate(spans)]


def place(one: Change) -> Spot:
    return one.before if isinstance(one, Add) else one.spot


def as_dict(value: Any) -> Any:
    return {key: as_dict(held) for key, held in value} if isinstance(value, tuple) else value


def flat(spans: list[list[Any]]) -> list[Any]:
    return [document for span in spans for document in span]


# -- expectations ----------------------------------------------------------------------------------------------------


def rewrite(case: Case, outcome: Outcome) -> None:
    error = outcome.error.replace(__version__, "{version}").replace(str(case.folder), "{case}")
    held = outcome.output or (not outcome.refused and not outcome.exit)
    put(case, "stderr", error.encode())
    put(case, "exit", f"{outcome.exit}\n".encode() if outcome.exit else b"")
    put(case, "refused", f"{outcome.refused}\n".encode() if outcome.refused else b"")
    put(case, "expected.diff", diff(case, outcome.output) if held else b"")
    if held:
        (case.folder / case.expected_name).write_bytes(outcome.output)
    else:
        (case.folder / case.expected_name).unlink(missing_ok=True)


def rewrite_printed(case: Case, form: str, outcome: Outcome) -> None:
    put(case, form, outcome.output.replace(str(case.folder).encode(), b"{case}"))
    if not FORMS[form]:
        put(case, "stderr", outcome.error.replace(str(case.folder), "{case}").encode())
        put(case, "exit", f"{outcome.exit}\n".encode() if outcome.exit else b"")


def put(case: Case, name: str, data: bytes) -> None:
    if data:
        (case.folder / name).write_bytes(data)
    else:
        (case.folder / name).unlink(missing_ok=True)


def diff(case: Case, output: bytes) -> bytes:
    names = case.input.encode(), case.expected_name.encode()
    lines = difflib.diff_bytes(difflib.unified_diff, split(case.data), split(output), *names)
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def split(data: bytes) -> list[bytes]:
    """Lines by LF alone, as diff cuts them."""
    return io.BytesIO(data).readlines()
