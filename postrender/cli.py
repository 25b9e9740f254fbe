"""The command line; the only importer of click."""

from __future__ import annotations

import os
import sys

import click

from . import __version__
from .findings import DONE, INTERRUPTED, REFUSED, SEVERITIES, UNREACHABLE, USAGE, WOULD_CHANGE
from .options import CODES, FILE, FILES, LIST, SWITCH, TABLE, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any, TypeVar

    from click.shell_completion import CompletionItem

    from .findings import Finding
    from .hosts.folder import File
    from .hosts.review import Streams
    from .sources import Settled

    _Command = TypeVar("_Command", bound=Callable[..., Any])

EPILOG = """\b
Exit codes:
  0 done   1 refused or invalid input, and nothing is written   2 wrong usage
  3 something would change (diff, check --rendered, and build and patches with --check)
  4 a file could not be read or written   70 a bug of postrender
  130 interrupted   141 the reader of the output went away"""

# What the shell's completion sets to ask us; a bare `postrender` is a filter, so it asks before anything else is done.
_COMPLETE = "_POSTRENDER_COMPLETE"

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _ReaderGone(Exception):  # noqa: N818 - it is told apart from a failure by that
    """A broken pipe on its way past click, which would make exit code 1 of it."""


class _Commands(click.Group):
    """A group whose default command is `render`, so that `postrender FILE` works as `postrender render FILE`."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _ReaderGone from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("--help", "-h"):
            args = ["render", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer the options of the default command beside the commands."""
        found = super().shell_complete(ctx, incomplete)
        if incomplete.startswith("-"):
            found += render.shell_complete(click.Context(render, parent=ctx, info_name="render"), incomplete)
        return found


class _Optioned(click.Command):
    """A command that takes the options of the table, shown under their groups below its own."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        own = {flag for param in self.params for flag in param.opts}
        self.params.extend(_option(option) for option in TABLE if f"--{option.name}" not in own)
        self.params.append(
            click.Option(
                ["--config"], metavar="FILE", help="A YAML map of these options by name; paths start from its folder."
            )
        )

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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


def _option(option: Option) -> click.Option:
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


def _writes(required: bool) -> Callable[[_Command], _Command]:
    """Return what adds the options of a command that writes a folder."""

    def add(command: _Command) -> _Command:
        for option in (
            click.option("--force", is_flag=True, help="Overwrite also files of ours that were edited since."),
            click.option("--check", is_flag=True, help="Write nothing; print what would change, exit 3 if any."),
            click.option(
                "-o",
                "--output",
                required=required,
                metavar="FOLDER",
                help="The folder to write; what is not ours stays.",
            ),
        ):
            command = option(command)
        return command

    return add


@click.group(
    cls=_Commands,
    context_settings=_SETTINGS,
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


@cli.command(cls=_Optioned, epilog=EPILOG, short_help="Render a stream to stdout; the default command.")
@click.argument("file", default="-", type=click.Path())
def render(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Render FILE (default: stdin) to stdout. This is the default command.

    Out come the same bytes with a PodGroup for each gang, the pod-group label on its pods, and a scheduler name where
    one is asked for. What is found goes to stderr; after an error nothing is written.

    \b
    Example:
      postrender --ome 1.3 --context runtimes.yaml rendered.yaml > deploy.yaml
    """
    from .hosts import filter as host

    target = sys.stdout.buffer if sys.stdout is not None else None
    words = flags(config, given)
    if file == "-":
        source = sys.stdin.buffer if sys.stdin is not None else None
        return host.run(host.STDIN, source, target, sys.stderr, words)
    try:
        with open(file, "rb") as source:
            return host.run(file, source, target, sys.stderr, words)
    except OSError as error:
        message = f"postrender: error: {file}: cannot be read: {error.strerror or error}\n"
        sys.stderr.write(message)
        return _shown(message, UNREACHABLE)


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


@cli.command(cls=_Optioned, epilog=EPILOG)
def krm(config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Be a KRM function: a ResourceList on stdin, the ResourceList on stdout, findings as its results.

    So does `postrender` without arguments where a ResourceList comes; this command takes nothing else. Options also
    come from the list's functionConfig: kind Gangs of postrender/v1alpha1, under `spec`.

    \b
    Example (exec of a transformer, kustomize 5.7 and later):
      exec: {path: postrender, args: [krm]}
    """
    from .hosts import filter as host

    source = sys.stdin.buffer if sys.stdin is not None else None
    target = sys.stdout.buffer if sys.stdout is not None else None
    return host.run(host.STDIN, source, target, sys.stderr, flags(config, given), function=True)


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "--rendered", is_flag=True, help="These are rendered already: exit 3 if a render would still change them."
)
def check(
    files: tuple[str, ...], rendered: bool, config: str | None, **given: str | bool | Sequence[str] | None
) -> int:
    """Check manifests, and print what is found to stdout.

    It says what a render would say, and what does not fit together across objects: a label that names no PodGroup, a
    PodGroup that waits for other than the pods that will exist. FILEs are read together, as kubectl apply takes them; a
    folder stands for the manifests in it. Without a FILE it reads stdin.

    \b
    Example:
      helm template qwen ./chart | postrender check --ome 1.3 --strict
      helm get manifest qwen | postrender check --rendered
    """
    from .hosts import review as host

    return host.check(files, rendered, flags(config, given), _streams())


@cli.command(cls=_Optioned, epilog=EPILOG, short_help="Show what a render would change, as a diff.")
@click.argument("file", default="-", type=click.Path())
def diff(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Show what a render would change in FILE (default: stdin), as a unified diff; exit 3 if anything.

    Each part is under the name of the file that it is from, as Helm's `# Source:` lines and the path annotations of
    kustomize and kpt say it. Without these it is a patch for FILE.

    \b
    Example:
      helm template qwen ./chart | postrender diff --spares 1
    """
    from .hosts import review as host

    return host.diff(file, flags(config, given), _streams())


@cli.command(cls=_Optioned, epilog=EPILOG, short_help="Explain each gang, its pods, and why it is so.")
@click.argument("file", default="-", type=click.Path())
@click.option(
    "--object", "wanted", metavar="KIND/NAME", default="", help="Explain this one only, or KIND/NAMESPACE/NAME."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "html"]),
    default="text",
    help="text, json, or html: one page to keep or to send, which shows gangs as boxes.",
)
def explain(file: str, wanted: str, form: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Explain what a render decides of FILE (default: stdin): each gang, its Instances and pods, and why.

    For each value it names what decided it, who wrote that and where, and what it hid or what it was clamped by.

    \b
    Example:
      postrender explain --object InferenceService/qwen rendered.yaml
      postrender explain --format html rendered.yaml > gangs.html
    """
    from .hosts import review as host

    return host.explain(file, wanted, form, flags(config, given), _streams())


def _streams() -> Streams:
    from .hosts.review import Streams

    terminal = sys.stdout is not None and sys.stdout.isatty()
    colored = terminal if "FORCE_COLOR" not in os.environ else bool(os.environ["FORCE_COLOR"])
    return Streams(
        sys.stdin.buffer if sys.stdin is not None else None,
        sys.stdout.buffer if sys.stdout is not None else None,
        sys.stderr,
        colored and not os.environ.get("NO_COLOR"),
    )


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("source", type=click.Path())
@_writes(required=True)
@click.option("--release-name", "release", default="", metavar="NAME", help="Of a chart: the name of its release.")
@click.option("-f", "--values", multiple=True, type=click.Path(), metavar="FILE", help="Of a chart: a file of values.")
@click.option("--set", "sets", multiple=True, metavar="NAME=VALUE", help="Of a chart: a value, as Helm takes it.")
@click.option("--set-string", "set_strings", multiple=True, metavar="NAME=VALUE", help="Of a chart: a string.")
@click.option("--kube-version", default="", metavar="VERSION", help="Of a chart: the version of Kubernetes it is for.")
@click.option("--include-crds", is_flag=True, help="Of a chart: write its definitions too.")
def build(
    source: str,
    output: str,
    check: bool,
    force: bool,
    release: str,
    values: tuple[str, ...],
    sets: tuple[str, ...],
    set_strings: tuple[str, ...],
    kube_version: str,
    include_crds: bool,
    config: str | None,
    **given: str | bool | Sequence[str] | None,
) -> int:
    """Write SOURCE with its gangs as a folder for Git: one file an object.

    SOURCE is a chart (its folder or a .tgz), a kustomization, or a folder of manifests. `helm` or `kustomize` must be
    on the path, or named by POSTRENDER_HELM or POSTRENDER_KUSTOMIZE.

    \b
    Example:
      postrender build ./chart --release-name qwen --output deploy/qwen --ome 1.3
      postrender build ./chart --release-name qwen --output deploy/qwen --ome 1.3 --check
    """
    import gc

    from .hosts import folder, gitops
    from .renderers import Failed

    gc.disable()  # as in the filter: nothing here makes cycles, and a stream's nodes are many
    settled = _settled(config, given)
    if os.path.realpath(source) == os.path.realpath(output):
        raise click.UsageError(f"{output} is the source itself; name another folder to write")
    helm = gitops.Helm(release, values, sets, set_strings, kube_version, include_crds)
    try:
        built = gitops.build(source, helm, settled.options, os.environ)
    except gitops.Misuse as error:
        raise click.UsageError(str(error)) from None
    except (Failed, folder.Refused) as error:
        raise _Stopped(str(error), REFUSED) from None
    if built.said:
        sys.stderr.write(built.said)
    _say(built.findings, f"<{source}>", settled)
    return REFUSED if built.refused else _put(built.files, output, check, force)


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("file", default="-", type=click.Path())
@click.option("--form", type=click.Choice(["flux", "kustomize"]), required=True, help="Whose patches to make.")
@_writes(required=False)
@click.option(
    "--release-name", "release", default="release-name", metavar="NAME", help="Of Flux: the HelmRelease to patch."
)
def patches(
    file: str,
    form: str,
    output: str | None,
    check: bool,
    force: bool,
    release: str,
    config: str | None,
    **given: str | bool | Sequence[str] | None,
) -> int:
    """Print the change as JSON patches, for Flux or kustomize.

    The change is that of rendering FILE (default: stdin); its PodGroups stand beside the patches. For where no program
    can run between rendering and applying: a HelmRelease of Flux (--form flux), or a kustomization (--form kustomize,
    a component). With --output as files of a folder, else as one stream to look at.

    \b
    Example:
      helm template qwen ./chart | postrender patches --form flux --release-name qwen --output gangs --ome 1.3
    """
    from .hosts import flux

    settled = _settled(config, given)
    if output is None and (check or force):
        raise click.UsageError("--check and --force go with --output FOLDER")
    made = flux.patches(_read(file), settled.options, form, release)
    _say(made.findings, "<stdin>" if file == "-" else file, settled)
    if made.refused:
        return REFUSED
    if output is not None:
        return _put(made.files, output, check, force)
    _print(flux.document(made.files))
    return DONE


class _Stopped(click.ClickException):
    """Ends a command with a message of ours and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # click's own is of the class, for exceptions of one code

    def show(self, file: IO[str] | None = None) -> None:
        """Write the message as all of ours are written."""
        (file or sys.stderr).write(f"postrender: error: {self.message}\n")


def _settled(config: str | None, given: Mapping[str, str | bool | Sequence[str] | None]) -> Settled:
    """Return the options that flags, environment and config file come to."""
    from .sources import Misuse, Unreadable, settle

    try:
        return settle(flags(config, given), os.environ)
    except Misuse as error:
        raise _Stopped(str(error), UNREACHABLE if isinstance(error, Unreadable) else USAGE) from None


def _read(file: str) -> bytes:
    """Return the bytes of a file, or of stdin for `-`."""
    if file == "-" and sys.stdin is None:
        raise _Stopped("stdin is closed; give it a pipe, or name a FILE", UNREACHABLE)
    try:
        if file == "-":
            return sys.stdin.buffer.read()
        with open(file, "rb") as source:
            return source.read()
    except OSError as error:
        raise _Stopped(f"{file}: cannot be read: {error.strerror or error}", UNREACHABLE) from None


def _print(data: bytes) -> None:
    """Write bytes to stdout, or end with a message where they cannot be written."""
    if sys.stdout is None:
        raise _Stopped("stdout is closed; give it a pipe or a file", UNREACHABLE)
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _Stopped(f"the output could not be written: {error.strerror or error}", UNREACHABLE) from None


def _say(findings: Sequence[Finding], file: str, settled: Settled) -> None:
    """Write findings to stderr; `file` is what the stream was read from."""
    from .views.findings import lines

    for line in lines(findings, file, settled.form):
        sys.stderr.write(line + "\n")


def _put(files: Sequence[File], output: str, check: bool, force: bool) -> int:
    """Write files into a folder, or print what that would change; return the exit code."""
    from .hosts import folder

    try:
        if not check:
            changes = folder.write(output, files, force)
            click.echo(folder.summary(output, changes))
            return DONE
        changes = folder.compare(output, files, force=True)
    except folder.Refused as error:
        raise _Stopped(str(error), REFUSED) from None
    except OSError as error:
        message = f"{output}: cannot be {'read' if check else 'written'}: {error.strerror or error}"
        raise _Stopped(message, UNREACHABLE) from None
    _print(b"".join(line.encode(errors="surrogateescape") + b"\n" for line in folder.diff(output, changes)))
    return WOULD_CHANGE if changes else DONE


@cli.command(short_help="Print a JSON schema.")
@click.argument("of", type=click.Choice(["config", "functionconfig", "finding", "explanation"]), default="config")
def schema(of: str) -> None:
    """Print the JSON schema of a config file, a KRM functionConfig, a finding in `--format json`, or an explanation.

    \b
    Example:
      postrender schema config > postrender.schema.json
    """
    import json

    from .views import schema as schemas

    makers = {
        "config": schemas.config,
        "functionconfig": schemas.function_config,
        "finding": schemas.finding,
        "explanation": schemas.explanation,
    }
    click.echo(json.dumps(makers[of](), indent=2))


@cli.group(
    "helm-plugin",
    context_settings=_SETTINGS,
    subcommand_metavar="path | install",
    short_help="The plugin for Helm 4.",
)
def helm_plugin() -> None:
    """The plugin for Helm 4, which runs a post-renderer only as one. Helm 3 needs none.

    \b
    Example:
      HELM_PLUGINS="$(postrender helm-plugin path)" helm install qwen ./chart --post-renderer postrender
    """


@helm_plugin.command("path", short_help="Print the plugin's folder.")
def helm_plugin_path() -> None:
    """Print the plugin's folder, for `helm plugin install` or as HELM_PLUGINS.

    \b
    Example:
      helm plugin install "$(postrender helm-plugin path)"
    """
    from .hosts import helm_plugin as host

    click.echo(host.folder())


@helm_plugin.command("install")
@click.option("--helm", default="helm", metavar="PROGRAM", help="The Helm 4 to install it for.", show_default=True)
def helm_plugin_install(helm: str) -> int:
    """Put the plugin into the plugins folder of a Helm 4.

    Refused where a Helm 3 on PATH reads the same folder, for it would lose all its plugins.

    \b
    Example:
      postrender helm-plugin install --helm helm4
    """
    from .hosts import helm_plugin as host

    try:
        click.echo(host.install(helm, os.environ))
    except host.Refused as refused:
        sys.stderr.write(f"postrender: error: {refused}\n")
        return REFUSED
    return DONE


@cli.group(context_settings=_SETTINGS, subcommand_metavar="generate | parameters | plugin | path")
def argocd() -> None:
    """The plugin for Argo CD, which runs it in a sidecar.

    \b
    Example:
      postrender argocd plugin > plugin.yaml
    """


@argocd.command("generate")
def argocd_generate() -> int:
    """Render the chart, kustomization or manifests of the working directory, and write what is to be deployed.

    Argo CD calls it. What an Application says comes from ARGOCD_APP_PARAMETERS, what the sidecar is set to from the
    same variables as for every command, such as POSTRENDER_CONFIG.

    \b
    Example:
      ARGOCD_APP_NAME=qwen3 POSTRENDER_OME=1.2 postrender argocd generate
    """
    from .hosts import argocd as host

    target = sys.stdout.buffer if sys.stdout is not None else None
    return host.generate(os.getcwd(), os.environ, target, sys.stderr)


@argocd.command("parameters")
def argocd_parameters() -> None:
    """Print what an Application can say, as Argo CD takes announcements: a JSON list.

    \b
    Example:
      postrender argocd parameters
    """
    from .hosts import argocd as host

    click.echo(host.announced())


@argocd.command("plugin")
def argocd_plugin() -> None:
    """Print plugin.yaml, the file that makes a plugin of a sidecar.

    \b
    Example:
      postrender argocd plugin > plugin.yaml
    """
    from .hosts import argocd as host

    click.echo(host.plugin(), nl=False)


@argocd.command("path")
def argocd_path() -> None:
    """Print the folder with patches for the sidecar, settings of Argo CD, and an Application of each kind.

    \b
    Example:
      ls "$(postrender argocd path)"
    """
    from .hosts import argocd as host

    click.echo(host.folder())


@cli.command(short_help="Print the admission policy of --replicas policy.")
@click.option("--kube-version", metavar="VERSION", help="The version of Kubernetes, such as 1.36.")
def policy(kube_version: str | None) -> int:
    """Print the admission policy that `--replicas policy` needs, once for a cluster.

    It gives each pod that shares a template with other groups the label of its own PodGroup.

    \b
    Example:
      postrender policy --kube-version 1.36 | kubectl apply -f -
    """
    from .gangs.world import version as parsed
    from .hosts import policy as host

    try:
        click.echo(host.policy(parsed(kube_version) if kube_version else None), nl=False)
    except ValueError as error:
        sys.stderr.write(f"postrender: error: {error}\n")
        return REFUSED
    return DONE


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
    click.echo(made(cli, {}, "postrender", _COMPLETE).source())


@cli.command(short_help="Print the version.")
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


def _shown(message: str, code: int) -> int:
    """Return an exit code; under Helm 4, which hides stderr, let it print the message instead."""
    from .hosts import filter as host

    if not host.in_helm_4(os.environ) or sys.stdout is None:
        return code
    sys.stdout.buffer.write(host.shown_by_helm_4(message))
    return DONE


def run(words: list[str]) -> int:
    """Run the command line with these words; return the exit code."""
    if not words and _COMPLETE not in os.environ:
        with click.Context(cli, info_name="postrender", **cli.context_settings) as context:
            click.echo(cli.get_help(context))
        return USAGE
    try:
        result = cli.main(words, prog_name="postrender", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return _shown(f"postrender: error: {error.format_message()}", error.exit_code)
    except click.Abort:
        return INTERRUPTED
    except _ReaderGone:
        raise BrokenPipeError from None
    return result if isinstance(result, int) else DONE
