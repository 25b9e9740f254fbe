"""A folder of manifests -> one stream: the bytes of each file, and between them what keeps them apart."""

from __future__ import annotations

import os
import re

from .requests import LARGEST, Failed, Folder, Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SUFFIXES = (".yaml", ".yml", ".json")
_BOM = b"\xef\xbb\xbf"
_MARKED = re.compile(rb"---[ \t]*\r?\n")
_BLOCK = re.compile(rb".*[|>][-+0-9]{0,2}[ \t]*(#.*)?")


def read(folder: Folder) -> Output:
    """Return the stream; raises Failed where a file cannot be taken as it is."""
    parts: list[bytes] = []
    starts = []
    line = 1
    size = 0
    root = os.path.realpath(folder.root or folder.path)
    before = ""
    for path in _files(folder.path, folder.recurse):
        data = _bytes(path, root)
        size += len(data)
        if size > LARGEST:
            raise Failed(f"{folder.path} holds more than {LARGEST >> 20} MiB of manifests")
        if folder.skip_mark and folder.skip_mark in data:
            continue
        if folder.needs not in data and not path.endswith(".json"):
            continue
        name = os.path.relpath(path, folder.path)
        if not name.isprintable():
            raise Failed(f"{path!r}: is no name for a file of manifests; use letters, digits, dots and dashes")
        if before and not parts[-1].endswith(b"\n"):
            _check_end(before, parts[-1])
            parts.append(b"\n")
            line += 1
        head, cut, data = _headed(data.removeprefix(_BOM), name, bool(before))
        starts.append((line, line + head.count(b"\n") - cut, path))
        line += head.count(b"\n") + data.count(b"\n")
        parts += (head, data)
        before = path
    return Output(b"".join(parts), starts=tuple(starts))


def _headed(data: bytes, name: str, follows: bool) -> tuple[bytes, int, bytes]:
    """Return what goes before a file and says which it is, how many of its lines that stands for, and the rest."""
    if data.startswith(b"%"):
        # Directives: they may only follow an end of a document, and nothing may stand between them and their `---`.
        return b"...\n" if follows else b"", 0, data
    mark = _MARKED.match(data)
    head = b"---\n# Source: " + os.fsencode(name) + b"\n"
    return (head, 1, data[mark.end() :]) if mark else (head, 0, data)


def _check_end(path: str, data: bytes) -> None:
    """Refuse a file that ends within a block scalar and without a line break: the break that must follow would be text.

    Going up from the last line by smaller and smaller indentation leads to the line that opened the scalar.
    """
    indent = None
    for line in reversed(data.splitlines()):
        if not line.strip():
            continue
        own = len(line) - len(line.lstrip(b" "))
        if indent is None or own < indent:
            if indent is not None and _BLOCK.fullmatch(line):
                raise Failed(f"{path}: ends within a block scalar and without a line break; add one")
            indent = own
        if not indent:
            return


def _files(path: str, recurse: bool) -> Iterator[str]:
    """Yield the paths of the files, in the order of their names."""
    try:
        names = sorted(os.listdir(path))
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
    for name in names:
        inner = os.path.join(path, name)
        if os.path.isdir(inner):
            if recurse and not os.path.islink(inner):
                yield from _files(inner, recurse)
        elif name.endswith(".jsonnet"):
            raise Failed(f"{inner}: Jsonnet is not rendered here; leaving it out would remove what it deploys")
        elif name.endswith(_SUFFIXES):
            yield inner


def _bytes(path: str, root: str) -> bytes:
    real = os.path.realpath(path)
    if os.path.commonpath([root, real]) != root:
        raise Failed(f"{path}: is a link that leads out of {root}")
    try:
        if not os.path.isfile(real) and os.path.exists(real):
            raise Failed(f"{path}: is no file")  # a pipe or a device may never end
        with open(real, "rb") as file:
            return file.read(LARGEST + 1)
    except OSError as error:
        raise Failed(f"{path} cannot be read: {error.strerror}") from None
