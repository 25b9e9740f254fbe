"""What docs/ci.md shows for pipelines: each snippet is YAML, its steps run, and they fail where the page says so.

The steps run as the host would run them, with our own program and stand-ins for pip, helm and gh.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import yaml

ROOT = pathlib.Path(__file__).parent.parent
PAGE = (ROOT / "docs/ci.md").read_text()
SNIPPETS = {
    name: yaml.safe_load(text)
    for name, text in re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
}
STREAM = (ROOT / "examples/pipe/rendered.yaml").read_text()
# With these and the page's own config nothing is left to be warned of.
GOOD = STREAM.replace("    leader: {}\n", "    schedulerName: scheduler-plugins-scheduler\n    leader: {}\n")
STANDINS = {
    "pip": 'test "$1 $2" = "install wheel.whl"',
    "helm": 'case "$1 $2" in "template qwen3") cat rendered.yaml;; "get manifest") cat deployed.yaml;; *) exit 1;; esac',
    "gh": 'test "$1 $2 $3" = "pr comment 7" && cp comment.md posted.md',
}
# How GitHub runs a step with `shell: bash`, and GitLab a script.
GITHUB = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"]
GITLAB = ["bash", "-eo", "pipefail", "-c"]


@pytest.fixture
def job(tmp_path):
    """A checkout in which a pipeline runs."""
    (tmp_path / "bin").mkdir()
    for program, body in STANDINS.items():
        (tmp_path / "bin" / program).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / program).chmod(0o755)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/qwen3.yaml").write_text(GOOD)
    (tmp_path / "rendered.yaml").write_text(GOOD)
    (tmp_path / "postrender.yaml").write_text(yaml.safe_dump(SNIPPETS["postrender.yaml"]))
    return tmp_path


def run(shell: list[str], command: str, folder: pathlib.Path, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    path = f"{folder / 'bin'}{os.pathsep}{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(folder), **more}
    return subprocess.run(
        [*shell, command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def github(name: str, folder: pathlib.Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """Run the steps of a workflow up to the first that fails; return what came of each by its name or command."""
    workflow = SNIPPETS[name]
    assert workflow["defaults"] == {"run": {"shell": "bash"}}
    [job] = workflow["jobs"].values()
    done = {}
    for step in job["steps"]:
        if "run" not in step:
            assert re.fullmatch(r"actions/[\w-]+@v\d+", step["uses"])
            continue
        around = {**workflow.get("env", {}), **step.get("env", {})}
        around = {key: filled(str(value)) for key, value in around.items()}
        assert "${{" not in step["run"], "what others can write goes through the environment, not into the script"
        title = step.get("name", step["run"])
        done[title] = run(GITHUB, step["run"], folder, around)
        if done[title].returncode:
            break
    return done


def filled(text: str) -> str:
    values = {"vars.POSTRENDER": "wheel.whl", "github.token": "token", "github.event.number": "7"}
    return re.sub(r"\$\{\{ ([\w.]+) \}\}", lambda found: values[found[1]], text)


def codes(done: dict[str, subprocess.CompletedProcess[str]]) -> list[int]:
    return [step.returncode for step in done.values()]


CHECKS = ".github/workflows/gangs.yml"


def test_all_snippets_are_there() -> None:
    assert list(SNIPPETS) == [
        "postrender.yaml",
        CHECKS,
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        ".github/workflows/deployed.yml",
    ]
    assert PAGE.count("```yaml\n") == len(SNIPPETS)


def test_github_passes_what_is_right_and_posts_the_diff(job: pathlib.Path) -> None:
    done = github(CHECKS, job)
    assert codes(done) == [0, 0, 0, 0], [step.stderr for step in done.values()]
    # OME 1.3 makes the PodGroups itself and all names are written, so nothing changes.
    assert (job / "posted.md").read_text() == "~~~~~~~~diff\n\n~~~~~~~~\n"


def test_github_posts_what_would_change(job: pathlib.Path) -> None:
    (job / "rendered.yaml").write_text(STREAM)
    assert codes(github(CHECKS, job)) == [0, 0, 0, 0]
    posted = (job / "posted.md").read_text().splitlines()
    assert posted[:3] == ["~~~~~~~~diff", "--- a/qwen/templates/isvc.yaml", "+++ b/qwen/templates/isvc.yaml"]
    assert "+      schedulerName: scheduler-plugins-scheduler" in posted
    assert posted[-1] == "~~~~~~~~"


def test_github_annotates_the_line_of_a_file(job: pathlib.Path) -> None:
    (job / "deploy/qwen3.yaml").write_text(GOOD.replace("size: 1", 'size: "1"'))
    done = github(CHECKS, job)
    assert codes(done) == [0, 1]
    line = GOOD.split("\n").index("      size: 1") + 1
    assert (
        f"::error file=deploy/qwen3.yaml,line={line},col=13,title=postrender invalid-field::"
        in done["Manifests"].stdout
    )


def test_github_fails_with_the_renderer(job: pathlib.Path) -> None:
    """Without pipefail an empty stream would pass."""
    (job / "rendered.yaml").unlink()
    assert codes(github(CHECKS, job)) == [0, 0, 1]
    command = "helm template qwen3 chart | postrender check --format github"
    assert command == SNIPPETS[CHECKS]["jobs"]["gangs"]["steps"][4]["run"]
    assert run(["bash", "-e", "-c"], command, job, {}).returncode == 0


def test_github_fails_where_a_diff_is_refused(job: pathlib.Path) -> None:
    [step] = [
        step for step in SNIPPETS[CHECKS]["jobs"]["gangs"]["steps"] if step.get("name") == "What a deploy would add"
    ]
    (job / "rendered.yaml").write_text(STREAM.replace("size: 1", "size: 0"))
    done = run(GITHUB, step["run"], job, {"NUMBER": "7"})
    assert done.returncode == 1
    assert not (job / "posted.md").exists()


def test_gitlab(job: pathlib.Path) -> None:
    gangs = SNIPPETS[".gitlab-ci.yml"]["gangs"]
    script = "\n".join(gangs["script"])
    around = {**gangs["variables"], "POSTRENDER": "wheel.whl"}
    done = run(GITLAB, script, job, around)
    assert done.returncode == 0, done.stderr
    assert "+++" not in done.stdout
    [page] = gangs["artifacts"]["paths"]
    assert "<figure" in (job / page).read_text()

    # Two files without a line between them are two documents all the same.
    (job / "deploy/qwen3.yaml").write_text(STREAM.removeprefix("---\n"))
    (job / "deploy/another.yaml").write_text("kind: ConfigMap\n")
    done = run(GITLAB, script, job, around)
    assert done.returncode == gangs["allow_failure"]["exit_codes"] == 3, done.stderr
    assert "+      schedulerName: scheduler-plugins-scheduler" in done.stdout

    (job / "deploy/qwen3.yaml").write_text(STREAM.replace("size: 1", "size: 0"))
    assert run(GITLAB, script, job, around).returncode == 1


def test_what_is_deployed(job: pathlib.Path) -> None:
    name = ".github/workflows/deployed.yml"
    (job / "deployed.yaml").write_text(GOOD)
    assert codes(github(name, job)) == [0, 0]
    (job / "deployed.yaml").write_text(STREAM)
    done = github(name, job)
    assert codes(done) == [0, 3]
    assert "title=postrender not-rendered::" in [*done.values()][-1].stdout
    (job / "deployed.yaml").unlink()
    assert codes(github(name, job)) == [0, 1]


def test_the_hook(job: pathlib.Path) -> None:
    """As pre-commit would call it: the entry, the arguments, and the files that match. tests/e2e/test_pre_commit.py has the real one."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language"} <= set(hook)
    [repo] = SNIPPETS[".pre-commit-config.yaml"]["repos"]
    [wanted] = repo["hooks"]
    assert wanted["id"] == hook["id"]
    (job / "deploy/pod-groups.yaml").write_text("")
    files = sorted(str(path.relative_to(job)) for path in job.rglob("*.yaml"))
    matched = [file for file in files if re.search(wanted["files"], file)]
    assert matched == ["deploy/pod-groups.yaml", "deploy/qwen3.yaml"]
    command = " ".join([hook["entry"], *wanted["args"], *matched])
    assert run(GITHUB, command, job, {}).returncode == 0
    (job / "deploy/qwen3.yaml").write_text(STREAM.replace("size: 1", "size: 0"))
    done = run(GITHUB, command, job, {})
    assert done.returncode == 1
    assert done.stdout.startswith("postrender: error: deploy/qwen3.yaml:23:13 ")


def test_the_table_of_exit_codes_is_the_programs(job: pathlib.Path) -> None:
    codes = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", PAGE, re.MULTILINE) for code in cell.split(", ")}
    assert codes == {0, 1, 2, 3, 4, 70}
    assert run(GITHUB, "postrender check --none", job, {}).returncode == 2
    assert run(GITHUB, "postrender check none.yaml", job, {}).returncode == 4
    assert run(GITHUB, "postrender diff rendered.yaml", job, {}).returncode == 3
