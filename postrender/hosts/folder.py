"""A folder that files are written into, all of them or none; what others put there stays.

`LIST` says which files are ours, each with its SHA-256 as `sha256sum --check` reads it. By it a later run knows what to
take away, and what somebody has edited since.

A new folder is made beside the old one and exchanged with it, so that at any moment there is the old or the new one.
Where that cannot be (a mount point, the working folder, folders of others inside), the new files are staged in the
folder first, and a rename says that they are complete: a run that is cut short after it is finished by the next one.
Nothing is synced to the disk: what is promised is about processes that end, as with git, not about power that fails.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import stat

from ..record import Record
from ..views.diff import lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

LIST = ".postrender-files"
_STAGED = ".postrender-new"
_COMPLETE = ".postrender-complete"

_LINE = re.compile(r"([0-9a-f]{64})  ([a-z0-9][a-z0-9.-]*\.yaml)")
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


class File(Record):
    """A file to write: its name, of a-z, 0-9, dots and dashes with the suffix .yaml, and its bytes."""

    name: str
    data: bytes


class Change(Record):
    """What becomes of a file: its bytes before and after, None where there is none."""

    name: str
    before: bytes | None
    after: bytes | None


class Refused(Exception):  # noqa: N818 - caught by name, and said
    """Raised where writing would take away what is not ours; the message says what, and what to do."""


def compare(path: str, files: Sequence[File], force: bool = False) -> tuple[Change, ...]:
    """Return what writing `files` would change in the folder, in the order of names; nothing is written.

    With `force` also what was edited since we wrote it. Raises Refused where a file is in the way that we did not
    write, or without `force` was edited; OSError where the folder cannot be read.
    """
    root = os.path.realpath(path)
    if os.path.lexists(os.path.join(root, _COMPLETE)):
        raise Refused(f"{path}: a run that wrote it was cut short; run it again without --check, which finishes it")
    return tuple(_changes(path, root, files, force))


def write(path: str, files: Sequence[File], force: bool = False) -> tuple[Change, ...]:
    """Make the folder hold these files and of ours no other; return what was changed. Raises as `compare` does."""
    root = os.path.realpath(path)
    parent = os.path.dirname(root)
    os.makedirs(parent, exist_ok=True)
    with _alone(parent):
        _finish(root)
        with contextlib.suppress(OSError):  # what a run has left that was cut short; it harms nobody
            _remove(_beside(root))
            _remove(os.path.join(root, _STAGED))
        changes = tuple(_changes(path, root, files, force))
        if changes and not _exchanged(root, files):
            _write_in_place(root, files, changes)
    return changes


def summary(path: str, changes: Sequence[Change]) -> str:
    """Return in a line what was changed, for a person to see."""
    files = [change for change in changes if change.name != LIST]
    gone = sum(change.after is None for change in files)
    return f"{path}: {len(files) - gone} written, {gone} removed" if files else f"{path}: nothing to change"


def diff(path: str, changes: Sequence[Change]) -> Iterator[str]:
    """Yield the lines of a unified diff of changes; the list of files is shown where nothing else differs."""
    shown = [change for change in changes if change.name != LIST] or changes
    for name, before, after in shown:
        inner = os.path.join(path, name)
        old, new = ("" if data is None else inner for data in (before, after))
        yield from lines(before or b"", after or b"", old, new)


def _changes(path: str, root: str, files: Sequence[File], force: bool) -> Iterator[Change]:
    listed = dict(_listed(path, _read(root, LIST)))
    wanted = {file.name: file.data for file in files}
    for name in sorted({*listed, *wanted}):
        before, after = _read(root, name), wanted.get(name)
        if before == after:
            continue
        if before is not None and name not in listed:
            raise Refused(f"{path}/{name}: is there, and not from here; move it away, or name another folder")
        if before is not None and not force and _digest(before) != listed[name]:
            raise Refused(f"{path}/{name}: was edited since it was written; take the change back, or say --force")
        yield Change(name, before, after)
    made = _list(files)
    if (held := _read(root, LIST)) != made:
        yield Change(LIST, held, made)


def _listed(path: str, text: bytes | None) -> Iterator[tuple[str, str]]:
    """Yield name and digest of each file that we wrote."""
    for number, line in enumerate((text or b"").decode(errors="replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise Refused(f"{path}/{LIST}:{number}: is not as it was written; restore it, or name another folder")
        yield match[2], match[1]


def _list(files: Iterable[File]) -> bytes:
    return "".join(f"{_digest(file.data)}  {file.name}\n" for file in sorted(files)).encode()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _read(root: str, name: str) -> bytes | None:
    """Return the bytes of a file, or None for none; a link is never followed."""
    path = os.path.join(root, name)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            raise Refused(f"{path}: is no plain file; move it away, or name another folder")
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


@contextlib.contextmanager
def _alone(parent: str) -> Iterator[None]:
    """Hold off other runs that write into this folder; the lock goes with the process."""
    held = os.open(parent, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some network file systems have none
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _exchanged(root: str, files: Sequence[File]) -> bool:
    """Make the folder anew beside itself and exchange the two; return whether that could be done."""
    beside = _beside(root)
    try:
        if os.path.commonpath([root, os.getcwd()]) == root:
            return False  # whoever stands in the folder would stand in the old one
        others = _others(root, files)
        if others is None:
            return False
        os.mkdir(beside)
        try:
            _fill(beside, files, _list(files))
            if not os.path.lexists(root):
                os.rename(beside, root)
                return True
            _make_alike(beside, os.stat(root))
            for other in others:
                os.link(os.path.join(root, other), os.path.join(beside, other), follow_symlinks=False)
            _exchange(beside, root)
        except BaseException:
            _remove(beside)
            raise
    except OSError:
        return False
    with contextlib.suppress(OSError):  # the folder is written; what is left goes with the next run
        for late in set(_others(beside, files) or ()) - set(others):
            os.rename(os.path.join(beside, late), os.path.join(root, late))
        _remove(beside)
    return True


def _make_alike(folder: str, other: os.stat_result) -> None:
    """Give a folder the mode of another; raises OSError where that belongs to somebody else, whose it must stay."""
    os.chmod(folder, stat.S_IMODE(other.st_mode))
    mine = os.stat(folder)
    if (mine.st_uid, mine.st_gid) != (other.st_uid, other.st_gid):
        raise PermissionError("another owner")


def _beside(root: str) -> str:
    parent, name = os.path.split(root)
    return os.path.join(parent, f".{name}{_STAGED}")


def _others(root: str, files: Sequence[File]) -> list[str] | None:
    """Return the names in a folder that are not ours, or None where one is a folder, which cannot be linked."""
    if not os.path.lexists(root):
        return []
    ours = {name for name, _ in _listed(root, _read(root, LIST))} | {file.name for file in files} | {LIST}
    found = []
    with os.scandir(root) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                return None
            if entry.name not in ours:
                found.append(entry.name)
    return found


def _exchange(one: str, other: str) -> None:
    """Exchange two folders in one step; raises OSError where the system or the file system cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "renameat2"):
        raise OSError("no renameat2")
    if libc.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


def _write_in_place(root: str, files: Sequence[File], changes: Sequence[Change]) -> None:
    """Stage what changes in the folder itself, say by a rename that it is complete, and put it in place."""
    os.makedirs(root, exist_ok=True)
    staged = os.path.join(root, _STAGED)
    os.mkdir(staged)
    changed = {change.name for change in changes}
    _fill(staged, [file for file in files if file.name in changed], _list(files))
    os.rename(staged, os.path.join(root, _COMPLETE))
    _finish(root)


def _finish(root: str) -> None:
    """Put in place what a run has staged and called complete; what was done of it already does no harm."""
    complete = os.path.join(root, _COMPLETE)
    if not _is_folder(complete):
        return
    listed = _read(complete, LIST)
    if listed is not None:  # else all is in place, for it goes last
        wanted = dict(_listed(complete, listed))
        for name, _ in _listed(root, _read(root, LIST)):
            if name not in wanted:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(root, name))
        for name in (*wanted, LIST):
            with contextlib.suppress(FileNotFoundError):
                os.rename(os.path.join(complete, name), os.path.join(root, name))
    os.rmdir(complete)


def _fill(folder: str, files: Iterable[File], listed: bytes) -> None:
    """Write files into a new folder, the list of them last."""
    for name, data in (*files, File(LIST, listed)):
        with open(os.path.join(folder, name), "xb") as target:
            target.write(data)


def _remove(folder: str) -> None:
    """Remove a folder of files, if there is one: what an earlier run has left, or what was exchanged."""
    if _is_folder(folder):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _is_folder(path: str) -> bool:
    return os.path.isdir(path) and not os.path.islink(path)
