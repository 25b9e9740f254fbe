"""Where an option's value comes from: flag > environment > functionConfig > config file > context > default.

Each value has its origin, for messages. A functionConfig stands with the objects that it is for, so it beats the file.
What a context's `Cluster` document says is looked up when the context is read (gangs/world.py), for it may stand in any
of its files. All else becomes Options here, files read.
"""

from __future__ import annotations

import os

from .findings import ACCEPTABLE, ERROR, SEVERITIES
from .gangs import lifecycle
from .gangs.world import version
from .manifests import objects, stream, tree
from .options import (
    CHOICE,
    CODES,
    DURATION,
    FILE,
    FILES,
    INTEGER,
    LIST,
    NUMBER,
    SWITCH,
    TABLE,
    TEXT,
    VERSION,
    Form,
    Option,
    Options,
    Source,
)
from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    # What was given for an option: a word, or several for a list.
    Words: TypeAlias = str | Sequence[str]

PREFIX = "POSTRENDER_"
CONFIG = "config"
_CONFIG_NAME = PREFIX + "CONFIG"
# Read elsewhere.
_OTHERS = (_CONFIG_NAME, PREFIX + "DEBUG", PREFIX + "HELM", PREFIX + "KUSTOMIZE")
# What Kubernetes puts into every pod for a Service named postrender or postrender-*.
_LINKS = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
_MOST_SPARES = 1_000
_SUFFIXES = (".yaml", ".yml", ".json")


class Misuse(Exception):  # noqa: N818 - the user's, not ours
    """Raised where an option is unknown or its value is none of its kind; the message names where it was set."""

    def __init__(self, reason: str, given: Given | None = None) -> None:
        """Say what is wrong with what was given, or with something else."""
        super().__init__(f"{given.origin}: {reason}" if given else reason)
        self.reason = reason
        self.given = given


class Unreadable(Misuse):
    """Raised where a file that an option names cannot be read."""


class Settled(Record):
    """All options, settled."""

    options: Options
    form: Form


class Given(Record):
    """What one source gives for an option: the words, where they were written, and the folder that paths start from.

    A functionConfig's come with their path in it and the code point where they stand; its paths must stay inside the
    working directory.
    """

    words: Words
    origin: str
    folder: str = ""
    field: str = ""
    at: int = 0


def settle(
    flags: Mapping[str, Words],
    environ: Mapping[str, str],
    function: Mapping[str, Given] | None = None,
    host: Mapping[str, Given] | None = None,
) -> Settled:
    """Return the options that flags, environment, functionConfig and config file come to.

    `flags` are those of the command line by the names of the table, and `config`; `function` is what a functionConfig
    gives, by the same names; `host` is what a host was told in its own way, and wins over all. Raises Misuse or
    Unreadable.
    """
    _check_names(environ)
    flag = _one(flags.get(CONFIG))
    config = flag or environ.get(_CONFIG_NAME, "")
    layers: list[Mapping[str, Given]] = [host or {}, dict(_from_flags(flags)), dict(_from_environment(environ))]
    layers.append(function or {})
    if config:
        layers.append(_from_file(Given(config, f"--{CONFIG}" if flag else _CONFIG_NAME), config))
    values: dict[str, Any] = {}
    origins = []
    for option in TABLE:
        given = next((layer[option.name] for layer in layers if option.name in layer), None)
        if given is not None:
            values[option.field] = value(option, given)
            origins.append((option.name, given.origin))
    form = {field: values.pop(field) for field in Form._fields if field in values}
    return Settled(Options(**values, origins=tuple(origins)), Form(**form))


def _check_names(environ: Mapping[str, str]) -> None:
    known = {option.environment for option in TABLE}
    for name in sorted(environ):
        ours = name.startswith(PREFIX) and environ[name] and not any(link in name for link in _LINKS)
        if ours and name not in known and name not in _OTHERS:
            raise Misuse(f"{name}: there is no such option{meant(name, known)}")


def _from_flags(flags: Mapping[str, Words]) -> Iterator[tuple[str, Given]]:
    for name, words in flags.items():
        if name != CONFIG and words:
            yield name, Given(words, f"--{name}")


def _from_environment(environ: Mapping[str, str]) -> Iterator[tuple[str, Given]]:
    """Yield what is set; hosts pass variables that nobody set as empty ones."""
    for option in TABLE:
        for name in (option.environment, *option.names):
            if environ.get(name):
                yield option.name, Given(environ[name], name)
                break


def _from_file(given: Given, path: str) -> dict[str, Given]:
    """Return what a config file says: a map of options by name, values as they are written."""
    try:
        data = _bytes(path, path)
    except OSError as error:
        raise Unreadable(str(error), given) from None
    try:
        listed = _listed(tree.read(data))
    except tree.Unfit as unfit:
        field = f"{unfit.field}: " if unfit.field else ""
        remedy = f"; {unfit.remedy}" if unfit.remedy not in ("", tree.TEMPLATE) else ""
        raise Misuse(f"{path}:{_line(data, unfit.index)}: {field}{unfit.message}{remedy}") from None
    folder = os.path.dirname(path)
    return {name: Given(words, f"{path}:{_line(data, at)}: {name}", folder) for name, words, at in listed}


def _listed(root: tree.Node | None) -> list[tuple[str, Words, int]]:
    """Return the options that the document of a config file sets."""
    if root is None or root.null():
        return []
    if root.kind != tree.MAP:
        raise tree.Unfit("", root.start, "the file is no map of options", "write lines of `name: value`")
    return list(written(objects.View(root), TABLE))


def written(view: objects.View, table: Sequence[Option]) -> Iterator[tuple[str, Words, int]]:
    """Yield the options of a table that a map sets: name, words, and where these stand.

    Raises tree.Unfit, with the name as the field, for a key that is none of them.
    """
    options = {option.name: option for option in table}
    for name, at in view.own_keys():
        if name not in options:
            field = objects.field((*view.path, name))
            raise tree.Unfit("invalid-field", at, f"there is no such option{meant(name, options)}", "", field)
        found = _written(view, options[name])
        if found is not None:
            yield (name, *found)


def _written(view: objects.View, option: Option) -> tuple[Words, int] | None:
    """Return what stands at an option, a list for a list, and where; None where nothing does."""
    if option.kind in (LIST, CODES, FILES) and (found := view.words(option.name)) is not None:
        return ([str(one.value) for one in found], found[0].at) if found else None
    one = view.written(option.name)
    return (str(one.value), one.at) if one is not None and one.value else None


def _line(data: bytes, index: int) -> str:
    place = stream.Places(data, [stream.Span(0, len(data), len(data))]).place(0, index)
    return f"{place.line}:{place.column}"


def value(option: Option, given: Given) -> Any:
    """Return the value of an option from its words; raises Misuse where they are none of its kind."""
    try:
        if option.kind in (LIST, CODES):
            return _codes(_split(given.words)) if option.kind == CODES else _split(given.words)
        if option.kind == FILES:
            return tuple(source for path in _split(given.words) for source in _sources(given, path))
        word = _one(given.words)
        if option.kind == FILE:
            return _source(given, os.path.join(given.folder, word))
        return _PARSERS[option.kind](option, word)
    except ValueError as error:
        raise Misuse(str(error), given) from None
    except OSError as error:
        raise Unreadable(str(error), given) from None


def _one(words: Words | None) -> str:
    """Return the word of an option that takes one; of several the last counts, as flags go."""
    return words if isinstance(words, str) else words[-1] if words else ""


def _split(words: Words) -> tuple[str, ...]:
    listed = [words] if isinstance(words, str) else words
    return tuple(one.strip() for word in listed for one in word.split(",") if one.strip())


def _codes(codes: tuple[str, ...]) -> tuple[str, ...]:
    for code in codes:
        if code not in SEVERITIES:
            raise ValueError(f"there is no finding {code!r}{meant(code, SEVERITIES)}")
        if SEVERITIES[code] == ERROR and code not in ACCEPTABLE:
            raise ValueError(f"{code!r} cannot be accepted: there would be no sound output")
    return codes


def _version(_: Option, word: str) -> str:
    version(word)
    return word


def _duration(_: Option, word: str) -> int:
    try:
        value = lifecycle.parse(word)
    except ValueError as error:
        raise ValueError(f"{word!r} is not a duration: {error}; write one such as 90s, 30m or 1h30m") from None
    if value < 0:
        raise ValueError(f"{word!r} is negative; write 0 for none")
    return value


def _number(_: Option, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 4 and int(word) <= _MOST_SPARES):
        raise ValueError(f"{word!r} is not a number from 0 to {_MOST_SPARES:,}")
    return int(word)


def _integer(_: Option, word: str) -> str:
    digits = word.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 9):
        raise ValueError(f"{word!r} is not an integer; write one such as -1")
    return str(int(word))


def _switch(_: Option, word: str) -> bool:
    if word not in ("true", "false", "1", "0"):
        raise ValueError(f"{word!r}: write true or false")
    return word in ("true", "1")


def _choice(option: Option, word: str) -> str:
    if word not in option.choices:
        raise ValueError(f"{word!r} is not one of {', '.join(option.choices)}")
    return word


def _text(_: Option, word: str) -> str:
    if not word.isprintable() or word != word.strip():
        raise ValueError(f"{word!r} is not a name")
    return word


_PARSERS = {
    VERSION: _version,
    DURATION: _duration,
    NUMBER: _number,
    INTEGER: _integer,
    SWITCH: _switch,
    CHOICE: _choice,
    TEXT: _text,
}


def files(path: str) -> Iterator[Source]:
    """Yield the files that a path names: itself, or the manifests in the folder, in the order of their names.

    Raises Unreadable where one cannot be read, or the folder holds none.
    """
    try:
        yield from _sources(Given(path, ""), path)
    except OSError as error:
        raise Unreadable(str(error)) from None


def _sources(given: Given, path: str) -> Iterator[Source]:
    """Yield the files that a path of an option names."""
    path = os.path.join(given.folder, path)
    if not os.path.isdir(_allowed(given, path)):  # before a folder is walked that may be the whole machine
        yield _source(given, path)
        return
    empty = True
    for folder, folders, files in os.walk(path):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                empty = False
                yield _source(given, os.path.join(folder, name))
    if empty:
        raise OSError(f"{path} holds no file that ends in {', '.join(_SUFFIXES)}")


def _source(given: Given, path: str) -> Source:
    return Source(path, _bytes(_allowed(given, path), path))


def _allowed(given: Given, path: str) -> str:
    """Return the path to open; raises ValueError where it lies outside of what may be read, links followed."""
    if not given.field:
        return path
    # Resolved once, and opened by that name: a link that is changed meanwhile leads nowhere else.
    real, here = os.path.realpath(path), os.path.realpath(os.curdir)
    if os.path.commonpath((real, here)) != here:
        raise ValueError(f"{path} leads out of the working directory; copy it there, or name it by the environment")
    return real


def _bytes(path: str, name: str) -> bytes:
    """Return what a file holds; raises OSError with a message of ours, which calls it `name`."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise OSError(f"{name} cannot be read: {error.strerror or error}") from None


def meant(name: str, known: Mapping[str, Any] | set[str]) -> str:
    """Return what to add to a message about an unknown name: the known one that is nearest, or nothing."""
    import difflib

    # What all of them begin with would make every name look near.
    near = difflib.get_close_matches(name.removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known], 1)
    prefix = PREFIX if name.startswith(PREFIX) else ""
    return f"; did you mean {prefix}{near[0]}?" if near else ""
