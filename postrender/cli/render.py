"""`render`, the default, and `krm`."""

from __future__ import annotations

import io
import os
import sys

import click

from ..findings import DONE, UNREACHABLE
from .group import cli
from .shared import EPILOG, Optioned, flags, read

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Render a stream to stdout; the default command.")
@click.argument("file", default="-", type=click.Path())
def render(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Render FILE (default: stdin) to stdout. This is the default command; a folder stands for the manifests in it.

    Out come the same bytes with a PodGroup for each gang, the pod-group label on its pods, and a scheduler name where
    one is asked for. What is found goes to stderr; after an error nothing is written.

    \b
    Example:
      postrender --ome 1.3 --context runtimes.yaml rendered.yaml > deploy.yaml
    """
    from ..hosts import filter as host

    target = sys.stdout.buffer if sys.stdout is not None else None
    words = flags(config, given)
    if file == "-":
        source = sys.stdin.buffer if sys.stdin is not None else None
        return host.run(host.STDIN, source, target, sys.stderr, words)
    if os.path.isdir(file):
        joined = read(file)
        return host.run(file, io.BytesIO(joined.data), target, sys.stderr, words, named=joined.named)
    try:
        with open(file, "rb") as source:
            return host.run(file, source, target, sys.stderr, words)
    except OSError as error:
        message = f"postrender: error: {file} cannot be read: {error.strerror or error}\n"
        sys.stderr.write(message)
        return shown(message, UNREACHABLE)


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Run as a KRM function, for kustomize and kpt.")
def krm(config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Run as a KRM function: a ResourceList on stdin, the ResourceList on stdout, findings as its results.

    So does `postrender` without arguments where a ResourceList comes; this command takes nothing else. Options also
    come from the list's functionConfig: kind Gangs of postrender/v1alpha1, under `spec`.
    For kustomize 5.7 and later it is `exec: {path: postrender, args: [krm]}`.

    \b
    Example:
      postrender krm < list.yaml
    """
    from ..hosts import filter as host

    source = sys.stdin.buffer if sys.stdin is not None else None
    target = sys.stdout.buffer if sys.stdout is not None else None
    return host.run(host.STDIN, source, target, sys.stderr, flags(config, given), function=True)


def shown(message: str, code: int) -> int:
    """Return an exit code; under Helm 4, which hides stderr, let it print the message instead."""
    from ..hosts import filter as host

    if not host.in_helm_4(os.environ) or sys.stdout is None:
        return code
    sys.stdout.buffer.write(host.shown_by_helm_4(message))
    return DONE
