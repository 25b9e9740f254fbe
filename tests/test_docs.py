"""What README and docs show is what happens: every command block in them runs, every example too.

A `console` block holds commands after `$ ` and below each what it prints, stdout and stderr together; a line `…` stands for any
lines. The blocks of one page run in order, in one folder that has `rendered.yaml` (the example stream) and, of the page before
the block, each `yaml` block whose first line is `# NAME.yaml`.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from postrender.findings import SEVERITIES

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
PATH = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def shell(command: str, folder: pathlib.Path) -> str:
    environment = {"PATH": PATH, "HOME": str(folder)}
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode()


def matches(shown: str, printed: str) -> bool:
    parts = [re.escape(part) for part in re.split(r"^…\n", shown, flags=re.MULTILINE)]
    return re.fullmatch("(?:.*\n)*?".join(parts), printed) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page(page, tmp_path):
    (tmp_path / "rendered.yaml").write_bytes((ROOT / "examples/pipe/rendered.yaml").read_bytes())
    for language, text in BLOCK.findall(page.read_text()):
        named = re.match(r"# (\S+\.yaml)\n", text)
        if language == "yaml" and named:
            (tmp_path / named[1]).parent.mkdir(exist_ok=True)
            (tmp_path / named[1]).write_text(text[named.end() :])
        for command, shown in (
            re.findall(r"^\$ (.*\n)((?:(?!\$ ).*\n)*)", text, re.MULTILINE) if language == "console" else ()
        ):
            printed = shell(command, tmp_path)
            assert matches(shown, printed), f"$ {command}{printed}"


def test_every_page_is_linked_and_every_link_leads_somewhere():
    linked = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
            linked.add((page.parent / target).resolve())
    assert {page for page in PAGES if page.name != "README.md"} <= linked


def test_every_code_has_its_heading():
    headings = re.findall(r"^## `(.+)`$", (ROOT / "docs/findings.md").read_text(), re.MULTILINE)
    assert sorted(headings) == sorted(SEVERITIES)


NAMED = re.compile(r"`(tests/\S+\.py)::(\w+)`")


@pytest.mark.parametrize("page", [page for page in PAGES if NAMED.search(page.read_text())], ids=lambda page: page.name)
def test_a_test_that_a_page_names_exists(page):
    for file, name in NAMED.findall(page.read_text()):
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"


EXAMPLES = sorted(path.parent for path in (ROOT / "examples").rglob("command"))


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda folder: folder.name)
def test_an_example(folder):
    done = subprocess.run(
        ["bash", "-c", (folder / "command").read_text()], cwd=folder, env={"PATH": PATH}, stdout=subprocess.PIPE, check=True,
    )  # fmt: skip
    assert done.stdout == (folder / "expected.yaml").read_bytes()


def test_there_are_examples():
    assert EXAMPLES


def test_the_makefile_says_what_its_targets_are():
    printed = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    for target in ("demo", "test", "lint", "type", "fuzz", "bench", "mutants", "e2e", "help"):
        assert re.search(rf"^  {target} +\S", printed, re.MULTILINE), target
