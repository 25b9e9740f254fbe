"""`context` and `reconcile`, and the options by which a cluster is reached."""

from __future__ import annotations

import sys

import click

from .group import cli
from .shared import streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..hosts.cluster import Access

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


def reaching(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options that say which cluster."""
    for option in reversed(_REACHING):
        command = option(command)
    return command


def access(kube_context: str, kubeconfig: str, ome_namespace: str, namespace: str | None, everywhere: bool) -> Access:
    """Return which cluster, and of it what, is meant; raises click.UsageError where that is said in two ways."""
    from ..hosts.cluster import Access

    if namespace and everywhere:
        raise click.UsageError("--namespace and --all-namespaces exclude each other; leave one out")
    return Access(kube_context, kubeconfig, namespace or "", everywhere, ome_namespace)


@cli.command(short_help="Save what a cluster knows, for --context.")
@reaching
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
    from ..hosts import cluster as host

    return host.context(access(kube_context, kubeconfig, ome_namespace, namespace, all_namespaces), streams())


@cli.command(short_help="Run in the cluster, and reset failed PodGroups.")
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
    from ..reconciler import run as host
    from ..reconciler.loop import Settings

    settings = Settings(rate, burst, gang_scheduler, dry_run)
    return host.run(settings, kube_context, kubeconfig, listen, once, verbose, sys.stderr)
