"""`check`, `diff` and `explain`."""

from __future__ import annotations

import click

from .cluster import access, reaching
from .group import cli
from .shared import EPILOG, Optioned, flags, streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Check manifests, or with --live what runs.")
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
@reaching
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
        from ..hosts import cluster as host

        if rendered:
            raise click.UsageError("--live and --rendered are two questions; ask one at a time")
        reached = access(kube_context, kubeconfig, ome_namespace, namespace, all_namespaces)
        return host.check(files, reached, words, streams())
    if all_namespaces or kube_context or kubeconfig:
        raise click.UsageError("--all-namespaces, --kube-context and --kubeconfig go with --live; add it")
    from ..hosts import review

    return review.check(files, rendered, words, streams())


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Show what a render would change, as a diff.")
@click.argument("file", default="-", type=click.Path())
def diff(file: str, config: str | None, **given: str | bool | Sequence[str] | None) -> int:
    """Show what a render would change in FILE (default: stdin), as a unified diff; exit 3 if anything.

    Each part is under the name of the file that it is from, as Helm's `# Source:` lines and the path annotations of
    kustomize and kpt say it. Without these it is a patch for FILE.

    \b
    Example:
      helm template qwen ./chart | postrender diff --spares 1
    """
    from ..hosts import review as host

    return host.diff(file, flags(config, given), streams())


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Explain each gang, its pods, and why it is so.")
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
    from ..hosts import review as host

    return host.explain(file, wanted, form, flags(config, given), streams())
