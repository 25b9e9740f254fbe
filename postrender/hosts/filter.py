"""The filter: a stream of manifests in, the stream to deploy out. `helm --post-renderer`, and every plain pipe.

A stream that cannot concern us is written back before anything of ours is imported but the test for that.

Helm 4 runs us as a plugin, which differs in two things. It shows nothing of what a plugin says on stderr, so there an
error also is a document separator that Helm refuses and, in doing so, prints. And an empty output is a failure to it.
"""

from __future__ import annotations

import os

from ..findings import DONE, REFUSED, UNREACHABLE, USAGE
from ..gangs.keys import NEEDLES
from ..manifests.stream import is_quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO, TextIO

    from ..findings import Finding
    from ..sources import Settled

STDIN = "<stdin>"
TERMINAL = "stdin is a terminal; give it a pipe, or name a FILE"

PLUGIN = "postrender"
_NOTHING = b"# nothing to deploy\n"
_RESOURCE_LIST = b"ResourceList"
_LONGEST = 900  # of what Helm is made to print


def in_helm_4(environ: Mapping[str, str]) -> bool:
    """Return whether Helm 4 runs us: as our plugin, whose name no other caller puts into the environment."""
    return environ.get("HELM_PLUGIN_NAME") == PLUGIN and "HELM_PLUGIN_DIR" in environ


def shown_by_helm_4(message: str) -> bytes:
    """Return a stream that Helm 4 refuses with the first line of a message."""
    line = message.strip().partition("\n")[0]
    return f"#\n---{line[:_LONGEST]}\n".encode(errors="backslashreplace")


class _Errors:
    """Where messages go: stderr, if it is open; the first one is kept."""

    def __init__(self, target: TextIO | None) -> None:
        self._target = target
        self.first = ""

    def write(self, text: str) -> None:
        self.first = self.first or text
        if self._target is not None:
            self._target.write(text)


def run(
    file: str,
    source: BinaryIO | None,
    target: BinaryIO | None,
    errors: TextIO | None,
    flags: Mapping[str, str | Sequence[str]] | None = None,
    function: bool = False,
    named: Callable[[Finding], Finding] | None = None,
) -> int:
    """Read `source` to its end, write the result to `target`, say what is to be said on `errors`; return the exit code.

    `flags` are options of the command line by name; others come from the environment. `function` says that the stream
    must be the call of a KRM function, which otherwise it decides itself; `named` places a finding in one of several
    files. Nothing is written to `target` unless all of it can be. A reader that has gone away raises BrokenPipeError.
    """
    said = _Errors(errors)
    code = _run(file, source, target, said.write, flags or {}, function, named)
    if code == DONE or target is None or not in_helm_4(os.environ):
        return code
    target.write(shown_by_helm_4(said.first))
    target.flush()
    return DONE


def _run(
    file: str,
    source: BinaryIO | None,
    target: BinaryIO | None,
    say: Callable[[str], None],
    flags: Mapping[str, str | Sequence[str]],
    function: bool,
    named: Callable[[Finding], Finding] | None,
) -> int:
    settled: Settled | None = None
    if flags or any(name.startswith("POSTRENDER_") for name in os.environ) or "KUBE_API_VERSIONS" in os.environ:
        from ..sources import Misuse, Unreadable, settle

        try:
            settled = settle(flags, os.environ)
        except Misuse as error:
            say(f"postrender: error: {error}\n")
            return UNREACHABLE if isinstance(error, Unreadable) else USAGE
    if source is None or target is None:
        what = (
            "stdin is closed; give it a pipe, or name a FILE"
            if source is None
            else "stdout is closed; give it a pipe or a file"
        )
        say(f"postrender: error: {what}\n")
        return UNREACHABLE
    if file == STDIN and source.isatty():
        say(f"postrender: error: {TERMINAL}\n")
        return USAGE
    try:
        data = source.read()
    except OSError as error:
        say(f"postrender: error: {file} cannot be read: {error.strerror or error}\n")
        return UNREACHABLE
    asked = settled is not None and settled.options.leaderworkersets
    call = function or _RESOURCE_LIST in data
    if asked or call or not is_quiet(data, NEEDLES):
        try:
            from ..pipeline import render
        except ImportError as error:
            if error.name not in ("yaml._yaml", "yaml.cyaml"):
                raise
            say("postrender: error: PyYAML was built without libyaml; install PyYAML from its wheel\n")
            return REFUSED
        if call:
            from . import krm

            if function or krm.is_call(data):
                return krm.run(file, data, target, say, flags)
        from ..views.findings import lines

        rendered = render(data) if settled is None else render(data, settled.options)
        findings = map(named, rendered.findings) if named else rendered.findings
        for line in lines(findings, file, settled.form if settled else None):
            say(line + "\n")
        if rendered.refused:
            return REFUSED
        data = rendered.data
    if not data.strip() and in_helm_4(os.environ):
        data = _NOTHING
    return written(data, target, say)


def written(data: bytes, target: BinaryIO, say: Callable[[str], None], code: int = DONE) -> int:
    """Write the output; return `code`, or another where it cannot be. A reader that has gone raises BrokenPipeError."""
    try:
        target.write(data)
        target.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        say(f"postrender: error: the output could not be written: {error.strerror or error}\n")
        return UNREACHABLE
    return code
