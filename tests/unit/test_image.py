"""The Dockerfile by its text: what holds for the image whoever builds it. Its contents are tried in tests/e2e/test_image.py."""

from __future__ import annotations

import json
import pathlib
import re
import shlex
from typing import NamedTuple

import pytest

import postrender

ROOT = pathlib.Path(__file__).parents[2]
FILE = ROOT / "plugins/image/Dockerfile"
IGNORE = ROOT / "plugins/image/Dockerfile.dockerignore"


class Line(NamedTuple):
    """An instruction, its continuation lines joined, and the number of its stage, from 0."""

    word: str
    rest: str
    stage: int


def instructions() -> list[Line]:
    text = re.sub(r"^#.*\n", "", FILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found, stage = [], -1
    for line in filter(None, (one.strip() for one in text.splitlines())):
        word, rest = line.split(maxsplit=1)
        stage += word == "FROM"
        found.append(Line(word, rest, stage))
    return found


LINES = instructions()
LAST = LINES[-1].stage


def values(word: str, *, last: bool = False) -> list[str]:
    return [line.rest for line in LINES if line.word == word and (line.stage == LAST or not last)]


def test_only_known_instructions() -> None:
    """No ADD, which takes URLs and unpacks; no SHELL, HEALTHCHECK, VOLUME or CMD, which kustomize would not expect."""
    assert {line.word for line in LINES} == {"ARG", "FROM", "ENV", "RUN", "WORKDIR", "COPY", "USER", "ENTRYPOINT"}


def test_every_base_has_a_version() -> None:
    defaults = dict(one.split("=") for one in values("ARG"))
    assert all(defaults.values())
    for base in values("FROM"):
        image = re.sub(r"\$\{(\w+)\}", lambda found: defaults[found[1]], base.split()[0])
        assert re.fullmatch(r"[a-z]+:\d+\.\d+(-slim)?", image), image
    assert "latest" not in FILE.read_text()


def test_no_root_in_the_end() -> None:
    [user] = values("USER")
    assert user == "65534:65534"
    assert [line.word for line in LINES if line.stage == LAST][-2:] == ["USER", "ENTRYPOINT"]


def test_the_entry_point_is_the_function_and_takes_arguments() -> None:
    [entry] = values("ENTRYPOINT")
    assert json.loads(entry) == ["postrender"]


def test_the_last_stage_runs_nothing() -> None:
    """So it has no caches, no package lists, and no compiler."""
    assert values("RUN", last=True) == []
    assert not re.search(r"\b(apt|apt-get|apk|curl|wget)\b", FILE.read_text())


def test_python_is_compiled_and_will_not_compile_again() -> None:
    runs = values("RUN")
    assert "compileall" in runs[-1]
    assert "--invalidation-mode unchecked-hash" in runs[-1]
    [install] = [one for one in runs if " install " in one and one.startswith("pip")]
    assert "--no-cache-dir" in shlex.split(install)
    assert "--no-compile" in shlex.split(install)


def environment() -> dict[str, str]:
    [written] = values("ENV", last=True)
    return dict(one.split("=", 1) for one in shlex.split(written))


def test_nothing_is_written_but_below_tmp() -> None:
    environ = environment()
    assert environ["PYTHONDONTWRITEBYTECODE"] == "1"
    homes = [name for name in environ if name.endswith("HOME")]
    assert {"HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "XDG_CACHE_HOME"} <= set(homes)
    assert all(environ[name].startswith("/tmp") for name in homes)


def test_the_output_stays_buffered() -> None:
    """Unbuffered, a write may stop half-way without an error, and a manifest be cut."""
    assert "PYTHONUNBUFFERED" not in environment()


def test_nothing_of_ours_is_set() -> None:
    """What a function is told comes from its config, and from who runs it."""
    assert not [name for name in environment() if name.startswith("POSTRENDER_")]


def test_a_copy_is_of_the_context_or_of_a_stage_and_the_context_holds_it() -> None:
    stages = {base.split()[-1] for base in values("FROM") if " AS " in base}
    wanted = set()
    for line in values("COPY"):
        *words, _ = line.split()
        if words[0].startswith("--from="):
            assert words[0].removeprefix("--from=") in stages
        else:
            wanted.update(words)
    assert all((ROOT / name).exists() for name in wanted)
    allowed = {one[1:] for one in IGNORE.read_text().splitlines() if one.startswith("!")}
    assert allowed == wanted
    assert IGNORE.read_text().splitlines()[1] == "*"


def test_the_programs_are_those_that_are_tested() -> None:
    arguments = dict(one.split("=") for one in values("ARG"))
    modules = ROOT / "tests/e2e/programs/modules/kustomize/go.mod"
    assert f"sigs.k8s.io/kustomize/kustomize/v5 {arguments['KUSTOMIZE_VERSION']}\n" in modules.read_text()
    tested = (ROOT / "tests/e2e/programs/pins.json").read_text()
    minor = arguments["HELM_VERSION"].removeprefix("v").rpartition(".")[0]
    assert f'"helm-{minor}"' in tested


@pytest.mark.parametrize(
    "path", ["plugins/image/Dockerfile", "plugins/kustomize/transformer-container.yaml", "docs/kustomize.md"]
)
def test_the_image_is_named_by_our_version(path: str) -> None:
    named = re.findall(r"\bpostrender:([\w.]+)", (ROOT / path).read_text())
    assert set(named) == {postrender.__version__}
