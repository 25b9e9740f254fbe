"""The command line; the only importer of click."""

from __future__ import annotations

import sys

import click

from . import __version__
from .findings import DONE, INTERRUPTED, UNREACHABLE, USAGE

EPILOG = """\b
Exit codes:
  0 done   1 refused or invalid input, and nothing is written   2 wrong usage
  4 a file could not be read or written   70 a bug of postrender
  130 interrupted   141 the reader of the output went away"""


class _Commands(click.Group):
    """A group whose default command is `render`, so that `postrender FILE` works as `postrender render FILE`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["render", *args]
        return super().parse_args(ctx, args)


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=EPILOG,
    options_metavar="",
    subcommand_metavar="[FILE] | COMMAND [ARG]...",
)
def cli() -> None:
    """Add gang scheduling to rendered model-serving manifests, and change nothing else.

    With a pipe on stdin it is a filter: the stream that helm or kustomize has rendered goes in; out come the same bytes
    with a PodGroup before each InferenceService of several pods, and the pod-group label on its pods.

    \b
    Example:
      helm template qwen ./chart | postrender | kubectl apply -f -
      helm install qwen ./chart --post-renderer postrender      (Helm 3)
    """


@cli.command(epilog=EPILOG)
@click.argument("file", default="-")
def render(file: str) -> int:
    """Render FILE (default: stdin) to stdout. This is the default command.

    \b
    Example:
      postrender rendered.yaml > deploy.yaml
    """
    from .hosts import filter as host

    target = sys.stdout.buffer if sys.stdout is not None else None
    if file == "-":
        source = sys.stdin.buffer if sys.stdin is not None else None
        return host.run(host.STDIN, source, target, sys.stderr)
    try:
        with open(file, "rb") as source:
            return host.run(file, source, target, sys.stderr)
    except OSError as error:
        sys.stderr.write(f"postrender: error: {file}: cannot be read: {error.strerror or error}\n")
        return UNREACHABLE


@cli.command()
def version() -> None:
    """Print the version of postrender and of what it is built on."""
    import yaml

    libyaml = yaml._yaml.get_version_string() if yaml.__with_libyaml__ else "missing"
    click.echo(
        f"postrender {__version__} (PyYAML {yaml.__version__}, libyaml {libyaml}, Python {sys.version.split()[0]})"
    )


def run(words: list[str]) -> int:
    """Run the command line with these words; return the exit code."""
    if not words:
        with click.Context(cli, info_name="postrender", **cli.context_settings) as context:
            click.echo(cli.get_help(context))
        return USAGE
    try:
        result = cli.main(words, prog_name="postrender", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return INTERRUPTED
    return result if isinstance(result, int) else DONE
