"""`--help` of every command: what it is for, its options in groups, and examples that run; and completion in a shell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from postrender import cli
from postrender.options import TABLE
from tests import within

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("postrender")
OPTIONED = ("render", "check", "diff", "explain")


def commands(command: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for inner, held in command.commands.items():
            yield from commands(held, f"{name} {inner}".strip())


COMMANDS = dict(commands(cli.cli))
EXAMPLE = re.compile(r"^  Examples?:\n((?:    .+\n)+)", re.MULTILINE)


def shown(name: str) -> str:
    context = click.Context(
        COMMANDS[name], info_name=f"postrender {name}".strip(), terminal_width=80, **cli.cli.context_settings
    )
    return COMMANDS[name].get_help(context)


def examples(name: str) -> list[str]:
    found = EXAMPLE.search(shown(name))
    return [line.strip() for line in found[1].splitlines()] if found else []


@pytest.mark.parametrize("name", COMMANDS)
def test_it_says_what_it_is_for_and_shows_it(name: str) -> None:
    text = shown(name)
    head, *paragraphs = text.partition("\n\nOptions:")[0].partition("\n\nOME:")[0].split("\n\n")
    assert head.startswith(f"Usage: postrender {name}".strip())
    assert paragraphs[0].rstrip().endswith(".")
    assert examples(name)
    # None of its lines is cut off, in a list of commands neither.
    assert "..." not in text.replace("[OPTION]...", "").replace("[ARG]...", "").replace("[FILE]...", "")
    assert not [line for line in text.splitlines() if len(line) > 80 and line.strip() not in examples(name)]


@pytest.mark.parametrize("name", OPTIONED)
def test_options_stand_in_their_groups(name: str) -> None:
    sections = dict(re.findall(r"^([A-Z]\w*):\n((?:  .*\n|\n(?=  ))+)", shown(name) + "\n", re.MULTILINE))
    own = {"check": ["--rendered"], "explain": ["--object", "--format"]}.get(name, [])
    for option in TABLE:
        if f"--{option.name}" not in own:
            assert re.search(rf"--{option.name}\b", sections[option.group]), option.name
    assert list(sections) == [
        *(["Options"] if own else []),
        *dict.fromkeys(option.group for option in TABLE),
        "Other",
        "Elsewhere",
    ]
    assert all(flag in sections["Options"] for flag in own)
    assert "--config" in sections["Other"]


# What the examples call besides us: they hand on what a chart renders to, and take what is deployed.
STANDINS = {
    "helm": 'case "$*" in plugin*) ls "$3"/postrender/plugin.yaml;; *) cat "$(dirname "$0")/../rendered.yaml";; esac',
    "helm4": 'case "$*" in env*) echo "$PWD/plugins";; *) echo v4.3.0;; esac',
    "kubectl": "cat > applied.yaml; grep -q '^apiVersion:' applied.yaml",
}


def asks_a_cluster(command: str) -> bool:
    """Whether an example needs a cluster, which there is none of here; tests/e2e runs these."""
    return command.startswith(("postrender context", "postrender reconcile", "postrender check --live"))


@pytest.mark.parametrize(
    ("name", "line"),
    [(name, line) for name in COMMANDS for line in examples(name)],
)
def test_an_example_runs(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for program, body in STANDINS.items():
        (tmp_path / "bin" / program).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / program).chmod(0o755)
    stream = (ROOT / "examples/pipe/rendered.yaml").read_text().replace("name: qwen3-multi-node", "name: qwen")
    (tmp_path / "rendered.yaml").write_text(stream)
    (tmp_path / "runtimes.yaml").write_text("kind: List\napiVersion: v1\nitems: []\n")
    head = "apiVersion: postrender/v1alpha1\nkind: Cluster\nspec: {omeVersion: '1.3'}\n---\n"
    runtime = "apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata: {name: srt-qwen3-0-6b-multi-node}\nspec: {}\n"
    (tmp_path / "production.yaml").write_text(head + runtime)
    (tmp_path / "chart").mkdir()
    (tmp_path / "chart/Chart.yaml").write_text("apiVersion: v2\nname: qwen\nversion: 0.1.0\n")
    head = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n"
    (tmp_path / "list.yaml").write_text(head + "- {apiVersion: v1, kind: Pod, metadata: {name: a}}\n")
    command = re.sub(r" {3,}\(.+\)$", "", line)
    environment = {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        timeout=60,
        check=False,
    )
    # Some say by 1 or 3 that there is something to say; none is misused, misses a file or has a bug.
    if asks_a_cluster(command):
        assert (done.returncode, b"no cluster to ask" in done.stderr) == (4, True), done.stderr.decode()
        return
    wanted = {"check": (0, 1, 3), "diff": (3,)}.get(name, (3,) if line.endswith("--check") else (0,))
    assert done.returncode in wanted, f"{command}\n{done.stderr.decode()}"
    assert b"Error: " not in done.stderr
    assert done.stdout or ">" in command or "kubectl" in command or name == "check"


# -- completion ------------------------------------------------------------------------------------------------------


def completed(*words: str) -> set[str]:
    """Return what bash would be offered for the last of these words."""
    environment = {
        "PATH": os.environ["PATH"],
        "_POSTRENDER_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("postrender", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = within.run(env=environment)
    assert done.returncode == 0
    return {line.partition(",")[2] for line in done.stdout.decode().splitlines()}


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("di",), {"diff"}),
        (("ex",), {"explain"}),
        (("ch",), {"check"}),
        (("explain", "--for"), {"--format"}),
        (("explain", "--format", ""), {"text", "json", "html"}),
        (("explain", "--ob"), {"--object"}),
        (("diff", "--format", ""), {"text", "json", "github"}),
        (("diff", "--accept", "surge"), {"surge-without-spare"}),
        (("check", "--rend"), {"--rendered"}),
        (("schema", "ex"), {"explanation"}),
        (("--ome-i",), {"--ome-install"}),
    ],
)
def test_completion(words: tuple[str, ...], offered: set[str]) -> None:
    assert completed(*words) == offered
