"""A folder that is written all or none: what is ours, what is not, and what is there after a kill at any moment."""

import builtins
import hashlib
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from postrender.hosts import folder
from postrender.hosts.folder import LIST, File, Refused

OLD = (File("a.yaml", b"a: 1\n"), File("b.yaml", b"b: 1\n"), File("gone.yaml", b"g: 1\n"))
NEW = (File("a.yaml", b"a: 2\n"), File("b.yaml", b"b: 1\n"), File("come.yaml", b"c: 1\n"))


def listed(files):
    """What `sha256sum` prints of these files."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files)).encode()


def wanted(files, **others):
    return {**dict(files), LIST: listed(files), **others}


def held(path):
    """Every file of a folder; of a folder in it, that it is one."""
    return {one.name: one.read_bytes() if one.is_file() else None for one in path.iterdir()} if path.exists() else {}


def names(changes):
    return [change.name for change in changes]


@pytest.fixture
def target(tmp_path):
    return tmp_path / "deploy"


def test_a_folder_is_made_with_those_above_it(tmp_path):
    changes = folder.write(str(tmp_path / "a/b"), OLD)
    assert names(changes) == ["a.yaml", "b.yaml", "gone.yaml", LIST]
    assert held(tmp_path / "a/b") == wanted(OLD)
    assert [one.name for one in (tmp_path / "a").iterdir()] == ["b"]


def test_the_list_is_one_that_sha256sum_checks(target):
    folder.write(str(target), OLD)
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", LIST], cwd=target, check=True)


def test_a_second_run_changes_nothing(target):
    folder.write(str(target), OLD)
    before = target.stat()
    assert folder.write(str(target), OLD) == ()
    assert target.stat() == before


def test_what_is_no_longer_wanted_goes_and_what_is_not_ours_stays(target):
    folder.write(str(target), OLD)
    (target / "README.md").write_bytes(b"ours\n")
    (target / "link").symlink_to("nowhere")
    inode = (target / "README.md").stat().st_ino
    changes = folder.write(str(target), NEW)
    assert [(change.name, change.before, change.after) for change in changes] == [
        ("a.yaml", b"a: 1\n", b"a: 2\n"),
        ("come.yaml", None, b"c: 1\n"),
        ("gone.yaml", b"g: 1\n", None),
        (LIST, listed(OLD), listed(NEW)),
    ]
    assert os.readlink(target / "link") == "nowhere"
    (target / "link").unlink()
    assert held(target) == wanted(NEW, **{"README.md": b"ours\n"})
    assert (target / "README.md").stat().st_ino == inode
    assert [one.name for one in target.parent.iterdir()] == ["deploy"]


def test_folders_of_others_stay(target):
    folder.write(str(target), OLD)
    (target / "overlays").mkdir()
    (target / "overlays/kustomization.yaml").write_bytes(b"")
    folder.write(str(target), NEW)
    assert held(target) == wanted(NEW, overlays=None)
    assert (target / "overlays/kustomization.yaml").exists()


def test_the_mode_of_the_folder_stays(target):
    folder.write(str(target), OLD)
    target.chmod(0o750)
    folder.write(str(target), NEW)
    assert target.stat().st_mode & 0o7777 == 0o750


def test_the_owner_of_the_folder_stays(target, monkeypatch):
    folder.write(str(target), OLD)
    inode = target.stat().st_ino
    as_made = os.stat

    def of_another(path, **named):
        found = as_made(path, **named)
        return os.stat_result((*found[:4], found.st_uid + 1, *found[5:])) if path == str(target) else found

    monkeypatch.setattr(os, "stat", of_another)
    folder.write(str(target), NEW)
    assert held(target) == wanted(NEW)
    assert as_made(target).st_ino == inode


def test_a_link_to_a_folder_stays_one(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    folder.write(str(tmp_path / "link"), OLD)
    assert os.readlink(tmp_path / "link") == "real"
    assert held(tmp_path / "real") == wanted(OLD)


def test_the_working_folder_stays_the_same_one(target, monkeypatch):
    folder.write(str(target), OLD)
    monkeypatch.chdir(target)
    folder.write(".", NEW)
    assert os.stat(".").st_ino == target.stat().st_ino
    assert held(target) == wanted(NEW)


def without_exchange(one, other):
    raise OSError(22, "no such call")


def test_where_folders_cannot_be_exchanged(target, monkeypatch):
    folder.write(str(target), OLD)
    monkeypatch.setattr(folder, "_exchange", without_exchange)
    folder.write(str(target), NEW)
    assert held(target) == wanted(NEW)
    assert [one.name for one in target.parent.iterdir()] == ["deploy"]


FOREIGN = "is there, and not from here; move it away, or name another folder"
EDITED = "was edited since it was written; take the change back, or say --force"


@pytest.mark.parametrize("change", [folder.write, folder.compare])
def test_a_file_of_another_is_not_overwritten(target, change):
    target.mkdir()
    (target / "a.yaml").write_bytes(b"mine: 1\n")
    with pytest.raises(Refused) as refused:
        change(str(target), OLD, True)
    assert str(refused.value) == f"{target}/a.yaml: {FOREIGN}"
    assert held(target) == {"a.yaml": b"mine: 1\n"}


def test_the_same_file_of_another_is_taken_over(target):
    target.mkdir()
    (target / "a.yaml").write_bytes(b"a: 1\n")
    folder.write(str(target), OLD)
    assert held(target) == wanted(OLD)


@pytest.mark.parametrize("name", ["a.yaml", "gone.yaml"])
def test_a_file_that_was_edited_is_not_overwritten_unless_asked_for(target, name):
    folder.write(str(target), OLD)
    (target / name).write_bytes(b"mine: 1\n")
    before = held(target)
    with pytest.raises(Refused) as refused:
        folder.write(str(target), NEW)
    assert str(refused.value) == f"{target}/{name}: {EDITED}"
    assert held(target) == before
    folder.write(str(target), NEW, True)
    assert held(target) == wanted(NEW)


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("/etc/hostname"), lambda path: path.mkdir()])
def test_a_file_of_ours_that_has_become_something_else(target, make):
    folder.write(str(target), OLD)
    (target / "a.yaml").unlink()
    make(target / "a.yaml")
    with pytest.raises(Refused, match="is no plain file"):
        folder.write(str(target), NEW, True)


@pytest.mark.parametrize(
    "line",
    [
        "../../etc/passwd",
        f"{'0' * 64}  ../a.yaml",
        f"{'0' * 64}  /a.yaml",
        f"{'0' * 64}  .a.yaml",
        f"{'0' * 64}  README",
    ],
)
def test_a_list_that_is_not_ours_removes_nothing(target, line):
    folder.write(str(target), OLD)
    (target.parent / "a.yaml").write_bytes(b"")
    with (target / LIST).open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(Refused, match=r"\.postrender-files:4: is not as it was written; restore it"):
        folder.write(str(target), NEW)
    assert (target.parent / "a.yaml").exists()


def test_comparing_writes_nothing_and_shows_what_was_edited(target):
    assert names(folder.compare(str(target), OLD)) == ["a.yaml", "b.yaml", "gone.yaml", LIST]
    assert not target.exists()
    folder.write(str(target), OLD)
    (target / "a.yaml").write_bytes(b"a: 3\n")
    assert [(one.name, one.before, one.after) for one in folder.compare(str(target), OLD, True)] == [
        ("a.yaml", b"a: 3\n", b"a: 1\n")
    ]


def test_a_diff(target):
    folder.write(str(target), OLD)
    shown = "\n".join(folder.diff("deploy", folder.compare(str(target), NEW)))
    assert shown == (
        "--- a/deploy/a.yaml\n+++ b/deploy/a.yaml\n@@ -1 +1 @@\n-a: 1\n+a: 2\n"
        "--- /dev/null\n+++ b/deploy/come.yaml\n@@ -0,0 +1 @@\n+c: 1\n"
        "--- a/deploy/gone.yaml\n+++ /dev/null\n@@ -1 +0,0 @@\n-g: 1"
    )
    (target / LIST).unlink()
    assert names(folder.compare(str(target), OLD)) == [LIST]
    assert next(folder.diff("deploy", folder.compare(str(target), OLD))) == "--- /dev/null"


# Every call by which a folder is changed.
CALLS = ("mkdir", "rename", "unlink", "rmdir", "link", "chmod", "makedirs")


def killed_at(count, target, files):
    """Write the folder in a child that is gone before its call number `count`; return whether it came so far."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    try:
        left = [count]

        def counted(call):
            def counting(*words, **named):
                left[0] -= 1
                if left[0] < 0:
                    os._exit(9)
                return call(*words, **named)

            return counting

        for name in CALLS:
            setattr(os, name, counted(getattr(os, name)))
        folder._exchange = counted(folder._exchange)
        builtins.open = counted(open)
        folder.write(str(target), files)
        os._exit(0)
    finally:
        os._exit(1)


def after_each_kill(tmp_path, prepare, check):
    """Write the old folder, kill the run that writes the new one at its first call, its second, …; return how many."""
    for count in range(200):
        target = tmp_path / str(count) / "deploy"
        folder.write(str(target), OLD)
        prepare(target)
        done = not killed_at(count, target, NEW)
        check(target, done)
        folder.write(str(target), NEW)
        rest = {name: data for name, data in held(target).items() if name not in ("README.md", "overlays")}
        assert rest == wanted(NEW)
        assert [one.name for one in target.parent.iterdir()] == ["deploy"]
        if done:
            return count
    raise AssertionError("it never ends")


def readme(target):
    (target / "README.md").write_bytes(b"ours\n")


def test_a_kill_leaves_the_old_or_the_new_folder(tmp_path):
    seen = []

    def check(target, done):
        found = held(target)
        assert found in (wanted(OLD, **{"README.md": b"ours\n"}), wanted(NEW, **{"README.md": b"ours\n"}))
        seen.append("come.yaml" in found)
        assert seen[-1] or not done

    # Three files read and the list; the folder, three files and the list in it, a link, the exchange; then all is new.
    assert after_each_kill(tmp_path, readme, check) > 15
    assert seen == sorted(seen)
    assert seen.count(True) > 3


def test_a_kill_in_place_is_finished_by_the_next_run(tmp_path):
    seen = set()

    def prepare(target):
        (target / "overlays").mkdir()

    def check(target, done):
        found = held(target)
        assert found.pop("overlays", "") is None
        if folder._COMPLETE in found:
            seen.add("between")
            with pytest.raises(Refused, match="was cut short; run it again"):
                folder.compare(str(target), NEW)
            return
        found.pop(folder._STAGED, None)
        assert found in (wanted(OLD), wanted(NEW))
        seen.add("new" if "come.yaml" in found else "old")

    assert after_each_kill(tmp_path, prepare, check) > 15
    assert seen == {"old", "between", "new"}


def test_a_kill_of_the_first_run_leaves_no_folder_or_all_of_it(tmp_path):
    for count in range(100):
        target = tmp_path / str(count) / "deploy"
        done = not killed_at(count, target, NEW)
        assert held(target) in ({}, wanted(NEW))
        folder.write(str(target), NEW)
        assert held(target) == wanted(NEW)
        if done:
            return
    raise AssertionError("it never ends")


LOOP = """
import sys
from postrender.hosts import folder
from postrender.hosts.folder import File
path, *versions = sys.argv[1:]
print("ready", flush=True)
while True:
    for version in versions:
        folder.write(path, [File(f"{number}.yaml", version.encode()) for number in range(40)])
"""


def test_a_kill_at_a_random_moment(tmp_path):
    target = tmp_path / "deploy"
    moments = random.Random(7)
    for _ in range(15):
        with subprocess.Popen([sys.executable, "-c", LOOP, target, "one", "two"], stdout=subprocess.PIPE) as writer:
            assert writer.stdout.readline() == b"ready\n"
            time.sleep(moments.uniform(0.005, 0.05))
            writer.send_signal(signal.SIGKILL)
        found = held(target)
        version = found.get("0.yaml")
        expected = wanted([(f"{number}.yaml", version) for number in range(40)]) if version else {}
        assert found == expected


def test_two_runs_at_once_take_turns(tmp_path):
    target = tmp_path / "deploy"
    writers = [
        subprocess.Popen([sys.executable, "-c", LOOP, target, version], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for version in ("one", "two")
    ]
    time.sleep(1)
    for writer in writers:
        writer.kill()
        assert writer.communicate()[1] == b""  # neither failed before
    assert len(set(held(target).values()) - {held(target)[LIST]}) == 1
