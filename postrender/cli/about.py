"""`schema`, `completion` and `version`."""

from __future__ import annotations

import sys

import click

from .. import __version__
from .group import cli

# What the shell's completion sets to ask us; a bare `postrender` is a filter, so it asks before anything else is done.
COMPLETE = "_POSTRENDER_COMPLETE"


@cli.command(short_help="Print a JSON schema.")
@click.argument(
    "of", type=click.Choice(["config", "functionconfig", "finding", "explanation", "live"]), default="config"
)
def schema(of: str) -> None:
    """Print the JSON schema of a config file, a KRM functionConfig, a finding, an explanation, or a live check.

    \b
    Example:
      postrender schema config > postrender.schema.json
    """
    import json

    from ..views import schema as schemas

    makers = {
        "config": schemas.config,
        "functionconfig": schemas.function_config,
        "finding": schemas.finding,
        "explanation": schemas.explanation,
        "live": schemas.live,
    }
    click.echo(json.dumps(makers[of](), indent=2))


_SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/postrender.fish"}


@cli.command(short_help="Print the completion for a shell.")
@click.argument("shell", type=click.Choice(list(_SHELLS)))
def completion(shell: str) -> None:
    """Print the completion of the command line for a shell.

    \b
    Example:
      postrender completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise click.UsageError(f"click knows no completion for {shell}")
    click.echo(made(cli, {}, "postrender", COMPLETE).source())


@cli.command(short_help="Print the version, as --version does.")
def version() -> None:
    """Print the version of postrender and of what it is built on: a report of a bug begins with it.

    \b
    Example:
      postrender version
    """
    import yaml

    libyaml = yaml._yaml.get_version_string() if yaml.__with_libyaml__ else "missing"
    click.echo(
        f"postrender {__version__} (PyYAML {yaml.__version__}, libyaml {libyaml}, Python {sys.version.split()[0]})"
    )
