"""The filter: a stream of manifests in, the stream to deploy out. `helm --post-renderer`, and every plain pipe.

A stream that cannot concern us is written back before anything of ours is imported but the test for that.
"""

from __future__ import annotations

import os

from ..findings import DONE, REFUSED, UNREACHABLE, USAGE
from ..gangs.keys import NEEDLES
from ..manifests.stream import is_quiet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO, TextIO

    from ..sources import Settled

STDIN = "<stdin>"


class _Nowhere:
    """Where messages go if stderr is closed."""

    def write(self, _: str) -> None:
        pass


def run(
    file: str,
    source: BinaryIO | None,
    target: BinaryIO | None,
    errors: TextIO | None,
    flags: Mapping[str, str | Sequence[str]] | None = None,
) -> int:
    """Read `source` to its end, write the result to `target`, say what is to be said on `errors`; return the exit code.

    `flags` are options of the command line by name; others come from the environment. Nothing is written to `target`
    unless all of it can be. A reader that has gone away raises BrokenPipeError.
    """
    say = errors.write if errors is not None else _Nowhere().write
    settled: Settled | None = None
    if flags or any(name.startswith("POSTRENDER_") for name in os.environ) or "KUBE_API_VERSIONS" in os.environ:
        from ..sources import Misuse, Unreadable, settle

        try:
            settled = settle(flags or {}, os.environ)
        except Misuse as error:
            say(f"postrender: error: {error}\n")
            return USAGE
        except Unreadable as error:
            say(f"postrender: error: {error}\n")
            return UNREACHABLE
    if source is None or target is None:
        what = (
            "stdin is closed; give it a pipe, or name a FILE"
            if source is None
            else "stdout is closed; give it a pipe or a file"
        )
        say(f"postrender: error: {what}\n")
        return UNREACHABLE
    try:
        data = source.read()
    except OSError as error:
        say(f"postrender: error: {file}: cannot be read: {error.strerror or error}\n")
        return UNREACHABLE
    if not is_quiet(data, NEEDLES):
        try:
            from ..pipeline import render
        except ImportError as error:
            if error.name not in ("yaml._yaml", "yaml.cyaml"):
                raise
            say("postrender: error: PyYAML was built without libyaml; install PyYAML from its wheel\n")
            return REFUSED
        from ..views.findings import lines

        rendered = render(data) if settled is None else render(data, settled.options)
        for line in lines(rendered.findings, file, settled.form if settled else None):
            say(line + "\n")
        if rendered.refused:
            return REFUSED
        data = rendered.data
    try:
        target.write(data)
        target.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        say(f"postrender: error: the output could not be written: {error.strerror or error}\n")
        return UNREACHABLE
    return DONE
