"""The command line; the only importer of click."""

from __future__ import annotations

import os
import sys

import click

from . import __version__
from .findings import DONE, INTERRUPTED, REFUSED, SEVERITIES, UNREACHABLE, USAGE
from .options import CODES, FILE, FILES, LIST, SWITCH, TABLE, Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from click.shell_completion import CompletionItem

    from .hosts.cluster import Access
    from .hosts.review import Streams

EPILOG = """\b
Exit codes:
  0 done   1 refused or invalid input, and nothing is written   2 wrong usage
  3 a render would change something (diff, check --rendered)
  4 a file could not be read or written, or no cluster answers   70 a bug of postrender
  130 interrupted   141 the reader of the output went away"""

# What the shell's completion sets to ask us; a bare `postrender` is a filter, so it asks before anything else is done.
_COMPLETE = "_POSTRENDER_COMPLETE"

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class _Commands(click.Group):
    """A group whose default command is `render`, so that `postrender FILE` works as `postrender render FILE`."""

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
    """A command that takes the options of the table, shown under their groups."""

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
        sections: dict[str, list[tuple[str, str]]] = {option.group: [] for option in TABLE}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx) if isinstance(param, click.Option) else None
            if record is not None:
                sections.setdefault(groups.get(str(param.name), "Other"), []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)
        with formatter.section("Elsewhere"):
            formatter.write_text(
                "Every option is also a key in the --config FILE, and a variable of the environment: POSTRENDER_STRICT,"
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


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("file", default="-", type=click.Path())
def render(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Render FILE (default: stdin) to stdout. This is the default command.

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


_REACHING = (
    click.option("--kube-context", metavar="NAME", default="", help="The context of the kubeconfig; the current one."),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        default="",
        type=click.Path(),
        help="The kubeconfig; KUBECONFIG, else ~/.kube/config, else the token of the pod we run in.",
    ),
    click.option(
        "--ome-namespace", metavar="NAME", default="ome", help="The namespace that OME runs in.", show_default=True
    ),
)


def _reaching(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say which cluster."""
    for option in reversed(_REACHING):
        command = option(command)
    return command


def _access(kube_context: str, kubeconfig: str, ome_namespace: str, namespace: str | None, everywhere: bool) -> Access:
    from .hosts.cluster import Access

    if namespace and everywhere:
        raise click.UsageError("--namespace and --all-namespaces exclude each other; leave one out")
    return Access(kube_context, kubeconfig, namespace or "", everywhere, ome_namespace)


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path())
@click.option(
    "--rendered", is_flag=True, help="These are rendered already: exit 3 if a render would still change them."
)
@click.option("--live", is_flag=True, help="Compare with what runs in a cluster, which is only read.")
@click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    help="The namespace of objects that write none; with --live the one whose services are checked.",
)
@click.option("-A", "--all-namespaces", is_flag=True, help="With --live: the services of all namespaces.")
@_reaching
def check(
    files: tuple[str, ...],
    rendered: bool,
    live: bool,
    namespace: str | None,
    all_namespaces: bool,
    kube_context: str,
    kubeconfig: str,
    ome_namespace: str,
    config: str | None,
    **given: str | bool | Sequence[str] | None,
) -> int:
    """Check manifests, and print what is found to stdout.

    It says what a render would say, and what does not fit together across objects: a label that names no PodGroup, a
    PodGroup that waits for other than the pods that will exist. FILEs are read together, as kubectl apply takes them; a
    folder stands for the manifests in it. Without a FILE it reads stdin.

    With --live it compares FILEs, or without one the services of a namespace, with the gangs that run, and says of each
    that is not whole why, and which command ends that.

    \b
    Example:
      helm template qwen ./chart | postrender check --ome 1.3 --strict
      helm get manifest qwen | postrender check --rendered
      postrender check --live -n llm
    """
    given["namespace"] = namespace
    words = flags(config, given)
    if live:
        from .hosts import cluster as host

        if rendered:
            raise click.UsageError("--live and --rendered are two questions; ask one at a time")
        access = _access(kube_context, kubeconfig, ome_namespace, namespace, all_namespaces)
        return host.check(files, access, words, _streams())
    if all_namespaces or kube_context or kubeconfig:
        raise click.UsageError("--all-namespaces, --kube-context and --kubeconfig go with --live; add it")
    from .hosts import review

    return review.check(files, rendered, words, _streams())


@cli.command(cls=_Optioned, epilog=EPILOG)
@click.argument("file", default="-", type=click.Path())
def diff(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Show what a render would change in FILE (default: stdin), as a unified diff; exit 3 if anything.

    Each part is under the name of the file that it is from, as Helm's `# Source:` lines and the path annotations of
    kustomize and kpt say it. Without these it is a patch for FILE.

    \b
    Example:
      helm template qwen ./chart | postrender diff --ome 1.3
    """
    from .hosts import review as host

    return host.diff(file, flags(config, given), _streams())


@cli.command(cls=_Optioned, epilog=EPILOG)
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


@cli.command()
@click.argument("of", type=click.Choice(["config", "finding", "explanation", "live"]), default="config")
def schema(of: str) -> None:
    """Print the JSON schema of a config file, of a finding in `--format json`, of an explanation, or of `check --live`.

    \b
    Example:
      postrender schema config > postrender.schema.json
    """
    import json

    from .views import schema as schemas

    made = {
        "config": schemas.config,
        "finding": schemas.finding,
        "explanation": schemas.explanation,
        "live": schemas.live,
    }
    click.echo(json.dumps(made[of](), indent=2))


@cli.command()
@_reaching
@click.option("-n", "--namespace", metavar="NAME", help="Runtimes of this namespace only, beside the cluster's.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Runtimes of all namespaces: the default.")
def context(kube_context: str, kubeconfig: str, ome_namespace: str, namespace: str | None, all_namespaces: bool) -> int:
    """Save what a cluster knows, for --context: runtimes, OME's timeouts and version, what is served.

    It only reads, keeps of each object the fields that matter, and reads no Secret. A context made so claims to be
    whole: a runtime that is not in it is an error.

    \b
    Example:
      postrender context --kube-context production > production.yaml
      helm template qwen ./chart | postrender --context production.yaml
    """
    from .hosts import cluster as host

    return host.context(_access(kube_context, kubeconfig, ome_namespace, namespace, all_namespaces), _streams())


@cli.group("helm-plugin", context_settings=_SETTINGS, subcommand_metavar="path | install")
def helm_plugin() -> None:
    """The plugin for Helm 4, which runs a post-renderer only as one. Helm 3 needs none.

    \b
    Example:
      HELM_PLUGINS="$(postrender helm-plugin path)" helm install qwen ./chart --post-renderer postrender
    """


@helm_plugin.command("path")
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


@cli.command()
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


@cli.command()
@click.option(
    "--kube-context", default="", metavar="NAME", help="The context of the kubeconfig; the default is its own."
)
@click.option(
    "--kubeconfig", default="", metavar="FILE", help="The kubeconfig; the default is kubectl's, or the pod's token."
)
@click.option("--listen", default=":8080", show_default=True, metavar="HOST:PORT", help="For probes and metrics.")
@click.option("--rate", type=click.FloatRange(0.1, 1000), default=10.0, show_default=True, help="Requests a second.")
@click.option("--burst", type=click.IntRange(1, 1000), default=20, show_default=True, help="Requests at once.")
@click.option(
    "--gang-scheduler", multiple=True, metavar="NAME", help="A scheduler that places gangs, such as default-scheduler."
)
@click.option("--once", is_flag=True, help="Look at each PodGroup once, do what can be done, and end.")
@click.option("--dry-run", is_flag=True, help="Write nothing; log what would be written.")
@click.option("-v", "--verbose", is_flag=True, help="Log what changes nothing, too.")
def reconcile(
    kube_context: str,
    kubeconfig: str,
    listen: str,
    rate: float,
    burst: int,
    gang_scheduler: tuple[str, ...],
    once: bool,
    dry_run: bool,
    verbose: bool,
) -> int:
    """Run in the cluster, and reset PodGroups that failed once none of their failed pods is left.

    It writes nothing but the phase of PodGroups that are marked as ours, and Events on what they were made for: of each
    reset, of PodGroups that somebody else holds, and of gangs whose scheduler may not place gangs. Logs are JSON lines
    on stderr; /healthz, /readyz and /metrics are served.

    \b
    Example:
      postrender reconcile --once --dry-run
    """
    from .reconciler import run as host
    from .reconciler.loop import Settings

    settings = Settings(rate, burst, gang_scheduler, dry_run)
    return host.run(settings, kube_context, kubeconfig, listen, once, verbose, sys.stderr)


_SHELLS = {"bash": "~/.bashrc", "zsh": "~/.zshrc", "fish": "~/.config/fish/completions/postrender.fish"}


@cli.command()
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


@cli.command()
def version() -> None:
    """Print the version of postrender and of what it is built on."""
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
    return result if isinstance(result, int) else DONE
