"""The commands that write a folder, `build` and `patches`, with a folder of manifests as the source: no program is needed."""

import pathlib
import subprocess
import sys

import pytest

from tests import within

SCRIPT = pathlib.Path(sys.executable).with_name("postrender")
ACCEPT = "--accept=ome-not-said,no-gang-scheduler,surge-without-spare,runtime-unresolved"
SERVICE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: qwen
spec:
  engine:
    leader: {}
    worker: {size: 1}
"""


def build(*words, **how):
    return within.run("build", ACCEPT, *words, **how)


def patches(*words, **how):
    return within.run("patches", ACCEPT, *words, **how)


def test_checking_shows_what_would_change_and_writes_nothing(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/service.yaml").write_text(SERVICE)
    done = build("in", "--output=out", "--check", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out").exists()) == (3, False)
    assert done.stdout.count(b"--- /dev/null\n+++ b/out/") == 3
    assert build("in", "--output=out", cwd=tmp_path).stdout == b"out: 3 written, 0 removed\n"
    (tmp_path / "in/service.yaml").write_text(SERVICE.replace("size: 1", "size: 3"))
    before = {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in (tmp_path / "out").iterdir()}
    done = build("in", "--output=out", "--check", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (3, b"")
    changed = [line for line in done.stdout.decode().splitlines() if line[:1] in "+-"]
    assert changed == [
        "--- a/out/inferenceservice-qwen.yaml",
        "+++ b/out/inferenceservice-qwen.yaml",
        "-    worker: {size: 1}",
        "+    worker: {size: 3}",
        "--- a/out/podgroup-qwen-engine-0.yaml",
        "+++ b/out/podgroup-qwen-engine-0.yaml",
        "-  minMember: 2",
        "+  minMember: 4",
    ]
    assert {one: (one.read_bytes(), one.stat().st_mtime_ns) for one in (tmp_path / "out").iterdir()} == before
    # What is printed is a patch that Git takes.
    subprocess.run(["git", "apply", "--check", "-"], cwd=tmp_path, input=done.stdout, check=True)


def test_a_file_that_was_edited(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/service.yaml").write_text(SERVICE)
    assert build("in", "--output=out", cwd=tmp_path).returncode == 0
    group = tmp_path / "out/podgroup-qwen-engine-0.yaml"
    group.write_text(group.read_text().replace("minMember: 2", "minMember: 1"))
    done = build("in", "--output=out", "--check", cwd=tmp_path)
    assert (done.returncode, b"-  minMember: 1\n+  minMember: 2\n" in done.stdout) == (3, True)
    done = build("in", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr == (
        b"postrender: error: out/podgroup-qwen-engine-0.yaml: was edited since it was written;"
        b" take the change back, or say --force\n"
    )
    assert build("in", "--output=out", "--force", cwd=tmp_path).stdout == b"out: 1 written, 0 removed\n"
    assert "minMember: 2" in group.read_text()


@pytest.mark.parametrize("more", [[], ["--check"]])
def test_a_folder_that_cannot_be_written(tmp_path, more):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/service.yaml").write_text(SERVICE)
    (tmp_path / "file").write_text("")
    done = build("in", "--output=file/out", *more, cwd=tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith(f"postrender: error: file/out cannot be {'read' if more else 'written'}: ".encode())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["in"], "Missing option '-o' / '--output'"),
        (["in", "--output=in"], "in is the source itself; name another folder to write"),
        (
            ["missing", "--output=out"],
            "missing: no such file or folder",
        ),
        (
            ["in", "--output=out", "--set=a=1"],
            "--set is for a chart, and in is none; leave it out, or name a folder with a Chart.yaml",
        ),
    ],
)
def test_a_wrong_command_line(tmp_path, words, said):
    (tmp_path / "in").mkdir()
    done = build(*words, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()
    assert not (tmp_path / "out").exists()


def test_without_a_folder_all_is_printed(tmp_path):
    stream = SERVICE.encode()
    assert patches("--form=flux", "--release-name=qwen", "--output=gangs", cwd=tmp_path, data=stream).returncode == 0
    done = patches("--form=flux", "--release-name=qwen", cwd=tmp_path, data=stream)
    assert (done.returncode, done.stderr) == (0, b"")
    names = ("helmrelease.yaml", "kustomization.yaml", "podgroups.yaml")
    parts = [f"# {name}\n{(tmp_path / 'gangs' / name).read_text()}" for name in names]
    assert done.stdout.decode() == "---\n".join(parts)


def test_checking_patches(tmp_path):
    (tmp_path / "stream.yaml").write_text(SERVICE)
    words = ["--form=kustomize", "--output=gangs", "stream.yaml"]
    assert patches(*words, cwd=tmp_path).stdout == b"gangs: 2 written, 0 removed\n"
    done = patches(*words, "--check", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (tmp_path / "stream.yaml").write_text(SERVICE.replace("qwen", "other"))
    done = patches(*words, "--check", cwd=tmp_path)
    assert done.returncode == 3
    assert b"-  name: qwen-engine-0\n+  name: other-engine-0\n" in done.stdout


# What stands before a service whose engine has no size on the last of these lines, and is a file of its own.
@pytest.mark.parametrize(
    "head", ["", "---\n", "--- \n# of it\n", "# of it\n---\n", "%YAML 1.1\n---\n", "\ufeff# of it\n"]
)
def test_what_is_found_in_a_folder_stands_in_its_files(tmp_path, head):
    for name in ("a", "b", "c"):
        text = SERVICE.replace("name: qwen", f"name: {name}")
        if name == "c":
            text = text.replace("worker: {size: 1}", "worker:\n      size: no")
        (tmp_path / f"{name}.yaml").write_text((head + text).rstrip("\n"))
    line = (head + text).split("\n").index("      size: no") + 1
    done = build(".", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    said = f"postrender: error: ./c.yaml:{line}:13: InferenceService/c: spec.engine.worker.size: "
    assert said in done.stderr.decode()


NAMED = "apiVersion: v1\nkind: B\nmetadata: {name: b}\n"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ("# b\nkind: B\n", "./b.yaml:2:1: metadata.name: a B without a name, "),
        (f"# b\n{NAMED}---\n# c\n{NAMED}", "./b.yaml:7: B/b: stands twice, first at ./b.yaml:2; remove one of the two"),
    ],
)
def test_what_keeps_a_folder_from_being_files_stands_in_it(tmp_path, other, said):
    """Its lines are those of the folder, though the PodGroup of the first file comes before."""
    (tmp_path / "a.yaml").write_text(SERVICE)
    (tmp_path / "b.yaml").write_text(other)
    done = build(".", "--output=out", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith(f"postrender: error: {said}")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--form flux needs the name of the HelmRelease; say --release-name NAME"),
        (["--release-name="], "--form flux needs the name of the HelmRelease; say --release-name NAME"),
        (["--release-name=Q_q"], "--release-name: 'Q_q' is no name of a Helm release; "),
    ],
)
def test_patches_for_flux_go_into_a_release_with_a_name(tmp_path, words, said):
    done = patches("--form=flux", *words, cwd=tmp_path, data=SERVICE.encode())
    assert (done.returncode, done.stdout) == (2, b"")
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--check"], 2, "--check and --force go with --output FOLDER"),
        (["missing.yaml"], 4, "postrender: error: missing.yaml cannot be read: No such file or directory"),
        (["--ome=x"], 2, "postrender: error: --ome: "),
        (["--context=missing"], 4, "postrender: error: --context: missing cannot be read: "),
    ],
)
def test_a_wrong_command_line_of_patches(tmp_path, words, code, said):
    done = patches("--form=flux", "--release-name=qwen", *words, cwd=tmp_path, data=b"")
    assert (done.returncode, done.stdout) == (code, b"")
    assert said in done.stderr.decode()


@pytest.mark.parametrize(
    ("to", "said"),
    [
        ("/dev/full", "the output could not be written: No space left on device"),
        ("&-", "stdout is closed; give it a pipe or a file"),
    ],
)
def test_an_output_that_cannot_be_written(tmp_path, to, said):
    (tmp_path / "stream.yaml").write_text(SERVICE)
    command = f'"{SCRIPT}" patches {ACCEPT} --form=flux --release-name=qwen stream.yaml >{to}'
    done = subprocess.run(["/bin/sh", "-c", command], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (4, f"postrender: error: {said}\n")
