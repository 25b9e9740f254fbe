"""Plants mistakes, one at a time; the tests must catch each: `python tests/mutants/run.py [NAME...] [--jobs N]`.

Each `*.patch` beside this file is one mistake: a sentence that says what a user would meet, and a diff. It is applied
to a copy of the repository, which is tested in an environment of its own: nothing there knows where the package is
installed, so that every test and every process that a test starts imports the mutated one. A mistake is caught if a
test fails; one that survives shows that a test is missing. A line `needs: oracle` above the diff marks what only the Go
readers see; without them (`make e2e`) such a patch is passed over, under CI it fails.

`caught.txt` says for each mistake which test caught it last: that test is asked first, and all others if it is not
there any more or sees nothing. `--remember` writes it anew. `--check` tests nothing: it only looks whether each patch
still applies and leaves Python.

Exit codes: 0 all caught, 1 one was not, or the copy without a mistake fails its tests.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
CAUGHT = HERE / "caught.txt"
ROOT = HERE.parents[1]
ORACLE = ROOT / ".programs" / "bin" / "oracle"
_UNITS = (
    *("edit", "lifecycle", "names", "scalars", "vectors", "sources", "views", "helm_4", "filter", "krm", "renderers"),
    *("argocd", "diff", "explain", "page", "decide", "queue", "watch", "keeper", "reconciler_api", "reconciler_says"),
)
# Most mistakes that the nearest tests do not see are seen by these; only if none of them fails the next are collected.
CASES = ("tests/test_cases.py::test_case", "tests/test_cases.py::test_case_of_a_command")
QUICK = (
    *(f"tests/unit/test_{name}.py" for name in _UNITS),
    "tests/properties",
)
REST = ("tests/test_cases.py", "tests/test_layers.py", "tests/unit", "tests/properties")
ORACLES = tuple(f"tests/oracles/test_{name}.py" for name in ("cases", "edits", "scalars", "durations"))
SECONDS = 180
NEVER = ("--ignore=tests/e2e", "--ignore=tests/bench")
# The script that an installation makes.
SCRIPT = "#!{}\nimport sys\nfrom postrender.__main__ import main\nif __name__ == '__main__':\n    sys.exit(main())\n"


class Outcome(NamedTuple):
    """What came of a patch: whether its mistake was caught (None: passed over), and what there is to say of it."""

    caught: bool | None
    said: str
    by: str = ""


def kept(folder: Path) -> None:
    """Copy what git knows or would add into an empty folder: all is tested as it was at one moment."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in sorted({*names} - {""}):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


def warmed(folder: Path) -> None:
    """Compile a folder once, for all its copies: no mistake is in the tests, and each is in one module or two."""
    around = {key: value for key, value in os.environ.items() if not key.startswith(("POSTRENDER_", "PYTHON"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *NEVER, "tests"]
    for words in ([sys.executable, "-m", "compileall", "-q", "postrender"], command):
        subprocess.run(words, cwd=folder, env=around, stdout=subprocess.DEVNULL, check=True)


def equipped(folder: Path) -> None:
    """Make the environment that tests a copy."""
    if ORACLE.exists():
        (folder / ".programs").symlink_to(ROOT / ".programs")
    venv.create(folder / ".venv", with_pip=False, symlinks=True)
    script = python(folder).with_name("postrender")
    script.write_text(SCRIPT.format(python(folder)))
    script.chmod(0o755)
    # Of our own environment the libraries only: the file there that leads to the package is not followed from here.
    there = Path(sysconfig.get_path("purelib", vars={"base": str(folder / ".venv")}))
    (there / "mutant.pth").write_text(f"{folder}\n{sysconfig.get_path('purelib')}\n")


def python(folder: Path) -> Path:
    """Return the interpreter of a copy."""
    return folder / ".venv" / "bin" / "python"


def changed(patch: Path) -> list[str]:
    """Return the modules that a patch changes."""
    return re.findall(r"^\+\+\+ b/(.+\.py)$", patch.read_text(), re.MULTILINE)


def applied(patch: Path, folder: Path, *options: str) -> str:
    """Apply a patch to a copy; return what is wrong with it, empty if nothing is."""
    around = {**os.environ, "GIT_CEILING_DIRECTORIES": str(folder.parent)}  # the copy belongs to no repository
    command = ["git", "apply", *options, patch]
    done = subprocess.run(command, cwd=folder, env=around, capture_output=True, check=False, text=True)
    if done.returncode:
        return f"the patch is stale: {done.stderr.splitlines()[0]}"
    for name in changed(patch):
        Path(cache_from_source(folder / name)).unlink(missing_ok=True)  # the time of a file is known to a second only
        try:
            compile((folder / name).read_bytes(), name, "exec")
        except SyntaxError as error:  # git takes lines that moved, sometimes to a wrong place
            return f"the patch is stale: {error}"
    return ""


def checked(original: Path, patches: list[Path]) -> int:
    """Apply each patch and take it back; return the exit code."""
    wrong = 0
    for patch in patches:
        if complaint := applied(patch, original):
            print(f"{patch.stem:<44} {complaint}")
            wrong += 1
        applied(patch, original, "--reverse")
    print(f"{len(patches) - wrong} patches apply, {wrong} do not")
    return int(bool(wrong))


def tested(folder: Path, tests: tuple[str, ...], seconds: int) -> tuple[int, str]:
    """Run the tests of a copy; return pytest's exit code, and the test that failed first or the last line it wrote."""
    around = {key: value for key, value in os.environ.items() if not key.startswith(("POSTRENDER_", "PYTHON"))}
    around["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [str(python(folder)), "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]
    try:
        done = subprocess.run(command, cwd=folder, env=around, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        return 1, f"no end after {seconds} s"
    written = (done.stdout + done.stderr).decode(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", written, re.MULTILINE)
    last = written.strip().splitlines()[-1:]
    return done.returncode, failed[1] if failed else "".join(last)


def nearest(folder: Path, patch: Path) -> tuple[str, ...]:
    """Return the unit tests of the modules that a patch changes, by their names: to collect these takes no time."""
    names = {part for path in changed(patch) for part in Path(path).with_suffix("").parts}
    if "gangs" in names:
        names.add("vectors")
    found = {path for name in names for path in (folder / "tests/unit").glob(f"test_{name}*.py")}
    return tuple(sorted(path.relative_to(folder).as_posix() for path in found))


def remembered() -> dict[str, str]:
    """Return the test that caught each mistake when they were remembered last, by the name of the patch."""
    lines = CAUGHT.read_text().splitlines() if CAUGHT.exists() else []
    return {name: test for name, _, test in (line.partition(" ") for line in lines)}


def imported(folder: Path) -> str:
    """Return where a process of a copy finds the package, with nothing in its environment."""
    code = "import postrender; print(postrender.__file__)"
    done = subprocess.run([python(folder), "-c", code], env={}, cwd="/", capture_output=True, check=True, text=True)
    return done.stdout.strip()


def tried(original: Path, patch: Path | None, first: str = "") -> Outcome:
    """Test a copy of the original with a patch applied, or without any; there "caught" means that no test fails.

    The test `first` is asked before all others.
    """
    head = patch.read_text().partition("\ndiff --git")[0] if patch else ""
    sentence, _, needs = head.partition("\nneeds: ")
    with_oracle = needs.strip() == "oracle"
    if with_oracle and not ORACLE.exists():
        return Outcome(False if os.environ.get("CI") else None, "the oracle is missing: run 'make e2e' once")
    with tempfile.TemporaryDirectory(prefix="postrender-mutant-") as name:
        folder = Path(name).resolve()
        # Links: git replaces a file that it patches, and a copy of thousands takes longer than most of the tests.
        shutil.copytree(original, folder, dirs_exist_ok=True, copy_function=os.link)
        equipped(folder)
        if patch and (complaint := applied(patch, folder)):
            return Outcome(False, complaint)
        if patch is None and not Path(imported(folder)).is_relative_to(folder):
            return Outcome(False, f"the copy imports {imported(folder)}")
        code, said = tested(folder, (first,), SECONDS) if first else (0, "")
        code = int(code == 1)  # whatever else comes of a test by its name, the others tell
        nearer = (nearest(folder, patch), ORACLES if with_oracle else CASES, QUICK) if patch else ()
        for tests in (*nearer, REST):
            if code == 0 and tests:
                code, said = tested(folder, tests, SECONDS if patch else 5 * SECONDS)
    if patch is None:
        return Outcome(code == 0, said)
    if code not in (0, 1):
        return Outcome(False, f"pytest could not run: {said}")
    return Outcome(code == 1, said if code else " ".join(sentence.split()), said if code and "::" in said else "")


def timed(original: Path, patch: Path | None, first: str = "") -> tuple[Outcome, float]:
    """Return the outcome of a patch, and the seconds it took."""
    start = time.monotonic()
    outcome = tried(original, patch, first)
    return outcome, time.monotonic() - start


def main() -> int:
    """Try the named patches, or all; print a line for each and a last one with the counts."""
    parser = argparse.ArgumentParser(description="Plant mistakes, one at a time; the tests must catch each.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a patch, without .patch; default: all")
    parser.add_argument("--jobs", type=int, default=2, help="how many to try at a time (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="only look whether each patch still applies")
    parser.add_argument("--remember", action="store_true", help="write to caught.txt which test caught each")
    told = parser.parse_args()
    patches = [HERE / f"{name.removesuffix('.patch')}.patch" for name in told.names] or sorted(HERE.glob("*.patch"))
    if missing := [patch.stem for patch in patches if not patch.is_file()]:
        parser.error(f"no such patch: {', '.join(missing)}")
    with tempfile.TemporaryDirectory(prefix="postrender-mutants-") as name:
        kept(Path(name))
        if told.check:
            return checked(Path(name), patches)
        warmed(Path(name))
        return all_tried(Path(name), patches, told.jobs, told.remember)


def all_tried(original: Path, patches: list[Path], jobs: int, remember: bool) -> int:
    """Try the copy as it is, then each patch; return the exit code."""
    words = {True: "caught", False: "SURVIVED", None: "passed over"}
    results = []
    failed = []
    known = remembered()
    with ThreadPoolExecutor(jobs) as pool:
        sound = pool.submit(timed, original, None)
        tries = pool.map(lambda patch: timed(original, patch, known.get(patch.stem, "")), patches)
        outcome, seconds = sound.result()
        print(f"{'as it is':<44} {seconds:6.1f} s  {outcome.said}", flush=True)
        if not outcome.caught:
            pool.shutdown(cancel_futures=True)
            print("the tests must pass before a mistake is planted")
            return 1
        for patch, (outcome, seconds) in zip(patches, tries, strict=True):
            line = f"{patch.stem:<44} {seconds:6.1f} s  {words[outcome.caught]}: {outcome.said}"
            print(line, flush=True)
            results.append(outcome.caught)
            if outcome.caught is False:
                failed.append(line)
            if outcome.by:
                known[patch.stem] = outcome.by
    if remember:
        there = {path.stem for path in HERE.glob("*.patch")}
        CAUGHT.write_text("".join(f"{name} {known[name]}\n" for name in sorted(there & known.keys())))
    for line in failed:
        print(line)
    over = f", {results.count(None)} passed over" if None in results else ""
    print(f"{results.count(True)} passed, {len(failed)} failed{over}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
