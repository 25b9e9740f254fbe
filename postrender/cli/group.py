"""The command itself, whose default is to render."""

from __future__ import annotations

import os
import shlex

import click

from ..sources import meant
from .shared import EPILOG, SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


class ReaderGone(Exception):  # noqa: N818 - it is told apart from a failure by that
    """A broken pipe on its way past click, which would make exit code 1 of it."""


class Commands(click.Group):
    """A group whose default command is `render`, so that `postrender FILE` works as `postrender render FILE`."""

    def invoke(self, ctx: click.Context) -> object:
        """Run it, and let a reader that has gone away be told apart."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise ReaderGone from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command before words that begin with none."""
        if args[:1] == ["--version"]:
            args = ["version", *args[1:]]
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            self._check_first(ctx, args)
            args = ["render", *args]
        return super().parse_args(ctx, args)

    def _check_first(self, ctx: click.Context, args: list[str]) -> None:
        """Refuse words of which the first that is no option is a command behind options, or one that there is not."""
        word = args[0]
        if word.startswith("-"):
            if not any(word in self.commands for word in args):
                return
            default = self.commands["render"]
            with click.Context(default, parent=ctx, info_name="render") as inner:
                try:
                    word = str(default.make_parser(inner).parse_args([*args])[0].get("file"))
                except click.UsageError:
                    return  # which the command itself says
            if word in self.commands and not os.path.exists(word):
                options = shlex.join(args[: args.index(word)])
                raise click.UsageError(f"options go behind the command: postrender {word} {options} …", ctx)
        elif not (os.path.exists(word) or "." in word or os.sep in word):
            near = meant(word, {*self.commands, "--help", "--version"})
            raise click.UsageError(f"there is no command or file {word!r}{near}", ctx)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the default command beside the commands."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            default = self.commands["render"]
            found += default.shell_complete(click.Context(default, parent=ctx, info_name="render"), incomplete)
        return found


@click.group(
    cls=Commands,
    context_settings=SETTINGS,
    epilog=EPILOG,
    options_metavar="",
    subcommand_metavar="[OPTION]... [FILE] | COMMAND [ARG]...",
)
def cli() -> None:
    """Add gang scheduling to rendered model-serving manifests, and change nothing else.

    With a pipe on stdin it is a filter: the stream that helm or kustomize has rendered goes in; out come the same bytes
    with a PodGroup before each InferenceService of several pods, and the pod-group label on its pods.

    \b
    Example:
      helm template qwen ./chart | postrender --ome 1.3 | kubectl apply -f -
      helm install qwen ./chart --post-renderer postrender      (Helm 3)

    The options are those of `postrender render --help`.
    """
