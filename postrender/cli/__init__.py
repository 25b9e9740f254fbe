"""The command line, a module for each group of commands; the only importer of click."""

from __future__ import annotations

import os
import sys

import click

from ..findings import DONE, INTERRUPTED, USAGE
from ..hosts.filter import TERMINAL
from . import about, cluster, gitops, plugins, review
from .about import COMPLETE
from .group import ReaderGone, cli
from .render import krm, render, shown
from .shared import flags

__all__ = ["cli", "flags", "krm", "render", "run"]

# Each has added its commands by being imported.
_MODULES = (about, cluster, gitops, plugins, review)


def run(words: list[str]) -> int:
    """Run the command line with these words; return the exit code."""
    if not words and COMPLETE not in os.environ:
        with click.Context(cli, info_name="postrender", **cli.context_settings) as context:
            click.echo(cli.get_help(context))
        sys.stderr.write(f"postrender: error: {TERMINAL}\n")
        return USAGE
    try:
        result = cli.main(words, prog_name="postrender", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        message = f"postrender: error: {error.format_message()}"
        usage = error.ctx.get_usage() if isinstance(error, click.UsageError) and error.ctx is not None else ""
        if sys.stderr is not None:
            sys.stderr.write(f"{usage}\n{message}\n" if usage else f"{message}\n")
        return shown(message, error.exit_code)
    except click.Abort:
        return INTERRUPTED
    except ReaderGone:
        raise BrokenPipeError from None
    return result if isinstance(result, int) else DONE
