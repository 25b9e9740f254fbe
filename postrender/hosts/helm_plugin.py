"""Helm 4's plugin: the folder that is shipped, and putting it where a Helm 4 looks.

Helm 3 runs any program as a post-renderer; Helm 4 only plugins, by name. A plugin of Helm 4's kind in a folder that a
Helm 3 reads too takes all of that Helm's own plugins away, for it decodes each plugin.yaml strictly.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from .filter import PLUGIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_FILE = "plugin.yaml"
_HELM = re.compile(r"helm([-_.]?v?[0-9][-_.0-9]*)?(\.exe)?")
_PATIENCE = 30  # seconds for Helm to say its version


class Refused(Exception):  # noqa: N818 - caught by name, and said
    """Raised where the plugin cannot or must not be installed; the message says why and what to do."""


def plugins() -> Path:
    """Return the folder of what hosts need on disk: in an installed package in it, in a checkout beside it."""
    here = Path(__file__).resolve()
    shipped = here.parents[1] / "plugins"
    return shipped if shipped.is_dir() else here.parents[2] / "plugins"


def folder() -> Path:
    """Return the folder to give to `helm plugin install`, or to Helm 4 as HELM_PLUGINS."""
    return plugins() / "helm" / PLUGIN


def install(helm: str, environ: Mapping[str, str]) -> str:
    """Put the plugin into the plugins folder of a Helm 4; return what was done. Raises Refused."""
    program = shutil.which(helm, path=environ.get("PATH"))
    if program is None:
        raise Refused(f"{helm}: there is no such program; name a Helm 4 with --helm")
    version = _asked(program, "version", "--template", "{{.Version}}", environ=environ)
    if not re.match(r"v?([4-9]|[1-9]\d)\.", version):
        raise Refused(
            f"{program} is Helm {version}, which needs no plugin: use --post-renderer {PLUGIN};"
            " a plugin for Helm 4 would take all its plugins away"
        )
    target = _plugins(program, environ)
    # Where HELM_PLUGINS is set here it is for this Helm; a Helm 3 that has it too is told of below.
    alone = {key: value for key, value in environ.items() if key != "HELM_PLUGINS"}
    for other, its_version in _helm_3(environ):
        if _plugins(other, alone).resolve() == target.resolve():
            raise Refused(
                f"{other} is Helm {its_version} and reads {target} too: a plugin for Helm 4 there would take all its"
                " plugins away; set HELM_PLUGINS, for Helm 4 alone, to a folder of its own, and install again"
            )
    if shutil.which(PLUGIN, path=environ.get("PATH")) is None:
        raise Refused(f"{PLUGIN} is not on PATH, where the plugin looks for it; add its folder to PATH")
    return _put(target / PLUGIN)


def _put(place: Path) -> str:
    """Write the plugin's file, unless somebody else's plugin stands there."""
    wanted = (folder() / _FILE).read_bytes()
    held = place / _FILE
    if held.exists():
        found = held.read_bytes()
        if found == wanted:
            return f"{place} is there already"
        if place.is_symlink():
            raise Refused(f"{place} is a link to {place.resolve()}, another version; remove it first")
        if f"name: {PLUGIN}\n".encode() not in found:
            raise Refused(f"{place} holds another plugin; remove it first")
    elif place.exists() or place.is_symlink():
        raise Refused(f"{place} is there and is no plugin; remove it first")
    try:
        place.mkdir(parents=True, exist_ok=True)
        new = place / f".{_FILE}.new"
        new.write_bytes(wanted)
        new.replace(held)
    except OSError as error:
        raise Refused(f"{place} cannot be written: {error.strerror or error}") from None
    return f"{place} installed; use it as --post-renderer {PLUGIN}"


def _helm_3(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield every Helm 3 on PATH, under whatever name a machine with two of them gives it, and its version."""
    for path in environ.get("PATH", "").split(os.pathsep):
        try:
            names = sorted(os.listdir(path or "."))
        except OSError:
            continue
        for name in names:
            program = os.path.join(path, name)
            if _HELM.fullmatch(name) and os.access(program, os.X_OK):
                version = _asked(program, "version", "--template", "{{.Version}}", environ=environ, strict=False)
                if version.startswith(("v3.", "3.")):
                    yield program, version


def _plugins(program: str, environ: Mapping[str, str]) -> Path:
    """Return the folder where a Helm looks for plugins; the first, where it looks in several."""
    return Path(_asked(program, "env", "HELM_PLUGINS", environ=environ).split(os.pathsep)[0])


def _asked(program: str, *words: str, environ: Mapping[str, str], strict: bool = True) -> str:
    """Return what a Helm answers."""
    try:
        done = subprocess.run(  # noqa: S603 - words, no shell
            [program, *words], capture_output=True, text=True, env=environ, timeout=_PATIENCE, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        if strict:
            raise Refused(f"{program} cannot be run: {error}") from None
        return ""
    if strict and done.returncode:
        raise Refused(f"{program} {words[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()
