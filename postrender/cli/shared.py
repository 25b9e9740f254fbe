"""What commands share: the options of the table as flags, how input is read, output written, an end told."""

from __future__ import annotations

import os
import sys

import click

from ..findings import SEVERITIES, UNREACHABLE, USAGE
from ..options import CODES, FILE, FILES, LIST, SWITCH, TABLE, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..findings import Finding
    from ..hosts.joined import Joined
    from ..hosts.review import Streams
    from ..sources import Settled

EPILOG = """\b
Exit codes:
  0 done   1 refused or invalid input, and nothing is written   2 wrong usage
  3 something would change (diff, check --rendered, build or patches --check)
  4 a file could not be read or written, or no cluster answers
  70 a bug of postrender
  130 interrupted   141 the reader of the output went away"""

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Optioned(click.Command):
    """A command that takes the options of the table, shown under their groups below its own."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Add the options of the table that the command does not have itself, and `--config`."""
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        own = {flag for param in self.params for flag in param.opts}
        self.params.extend(flag(option) for option in TABLE if f"--{option.name}" not in own)
        self.params.append(
            click.Option(
                ["--config"], metavar="FILE", help="A YAML map of these options by name; paths start from its folder."
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in their groups."""
        groups = {option.field: option.group for option in TABLE}
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *groups.values(), "Other")}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                title = "Other" if {"--config", "--help"} & {*param.opts} else "Options"
                sections[groups.get(str(param.name), title)].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
        with formatter.section("Elsewhere"):
            formatter.write_text(
                "Every option of these groups, from OME to Findings, is also a key in the --config FILE, and a variable"
                " of the environment: POSTRENDER_STRICT,"
                " POSTRENDER_OME_VALUES. A flag beats the environment, and that beats the file."
            )


def flag(option: Option) -> click.Option:
    """Return a flag; its words are kept as they are, for one parser to read them whatever their source."""
    flag = f"--{option.name}"
    if option.kind == SWITCH:
        names = [f"{flag}/--no-{option.name}"]
        if option.name == "verbose":
            names = ["-v", "--verbose/--no-verbose"]
        return click.Option([*names, option.field], default=None, help=option.help)
    many = option.kind in (LIST, CODES, FILES)
    words = [*SEVERITIES] if option.kind == CODES else option.choices

    def complete(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return click.Option(
        [flag, option.field],
        multiple=many,
        metavar="|".join(option.choices) or option.metavar,
        help=option.help,
        type=click.Path() if option.kind in (FILE, FILES) else str,
        shell_complete=complete if words else None,
    )


def flags(config: str | None, given: Mapping[str, str | bool | Sequence[str] | None]) -> dict[str, str | Sequence[str]]:
    """Return the flags that were given, by the names of the table, as words."""
    words: dict[str, str | Sequence[str]] = {"config": config} if config else {}
    for option in TABLE:
        value = given.get(option.field)
        if isinstance(value, bool):
            words[option.name] = "true" if value else "false"
        elif value:
            words[option.name] = value
    return words


class Stopped(click.ClickException):
    """Ends a command with a message of ours and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        """Keep both."""
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click's own is of the class, for exceptions of one code


def settled(config: str | None, given: Mapping[str, str | bool | Sequence[str] | None]) -> Settled:
    """Return the options that flags, environment and config file come to."""
    from ..sources import Misuse, Unreadable, settle

    try:
        return settle(flags(config, given), os.environ)
    except Misuse as error:
        raise Stopped(str(error), UNREACHABLE if isinstance(error, Unreadable) else USAGE) from None


def read(file: str) -> Joined:
    """Return a file, the files of a folder as one stream, or stdin for `-`."""
    from ..hosts import review
    from ..hosts.joined import together

    try:
        return together(review.read([file], streams()))
    except review.Stopped as stopped:
        raise Stopped(str(stopped), stopped.code) from None


def put(data: bytes) -> None:
    """Write bytes to stdout, or end with a message where they cannot be written."""
    if sys.stdout is None:
        raise Stopped("stdout is closed; give it a pipe or a file", UNREACHABLE)
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Stopped(f"the output could not be written: {error.strerror or error}", UNREACHABLE) from None


def say(findings: Sequence[Finding], file: str, settled: Settled) -> None:
    """Write findings to stderr; `file` is what the stream was read from."""
    from ..views.findings import lines

    for line in lines(findings, file, settled.form):
        sys.stderr.write(line + "\n")


def streams() -> Streams:
    """Return the streams of the process; colored where a terminal shows them, or the environment asks for it."""
    from ..hosts.review import Streams

    terminal = sys.stdout is not None and sys.stdout.isatty()
    colored = terminal if "FORCE_COLOR" not in os.environ else bool(os.environ["FORCE_COLOR"])
    return Streams(
        sys.stdin.buffer if sys.stdin is not None else None,
        sys.stdout.buffer if sys.stdout is not None else None,
        sys.stderr,
        colored and not os.environ.get("NO_COLOR"),
    )
