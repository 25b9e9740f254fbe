"""What other programs need of us: `helm-plugin`, `argocd`, `policy`, `path`."""

from __future__ import annotations

import os
import sys

import click

from ..findings import DONE, REFUSED
from .group import cli
from .shared import SETTINGS


@cli.group(
    "helm-plugin",
    context_settings=SETTINGS,
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
    from ..hosts import helm_plugin as host

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
    from ..hosts import helm_plugin as host

    try:
        click.echo(host.install(helm, os.environ))
    except host.Refused as refused:
        sys.stderr.write(f"postrender: error: {refused}\n")
        return REFUSED
    return DONE


@cli.group(
    context_settings=SETTINGS,
    subcommand_metavar="generate | parameters | plugin | path",
    short_help="The plugin for Argo CD.",
)
def argocd() -> None:
    """The plugin for Argo CD, which runs it in a sidecar.

    \b
    Example:
      postrender argocd plugin > plugin.yaml
    """


@argocd.command("generate", short_help="Write what is to be deployed; Argo CD calls it.")
def argocd_generate() -> int:
    """Render the chart, kustomization or manifests of the working directory, and write what is to be deployed.

    Argo CD calls it. What an Application says comes from ARGOCD_APP_PARAMETERS, what the sidecar is set to from the
    same variables as for every command, such as POSTRENDER_CONFIG.

    \b
    Example:
      ARGOCD_APP_NAME=qwen3 POSTRENDER_OME=1.2 postrender argocd generate
    """
    from ..hosts import argocd as host

    target = sys.stdout.buffer if sys.stdout is not None else None
    return host.generate(os.getcwd(), os.environ, target, sys.stderr)


@argocd.command("parameters", short_help="Print what an Application can say.")
def argocd_parameters() -> None:
    """Print what an Application can say, as Argo CD takes announcements: a JSON list.

    \b
    Example:
      postrender argocd parameters
    """
    from ..hosts import argocd as host

    click.echo(host.announced())


@argocd.command("plugin", short_help="Print plugin.yaml.")
def argocd_plugin() -> None:
    """Print plugin.yaml, the file that makes a plugin of a sidecar.

    \b
    Example:
      postrender argocd plugin > plugin.yaml
    """
    from ..hosts import argocd as host

    click.echo(host.plugin(), nl=False)


@argocd.command("path", short_help="Print the folder of files for Argo CD.")
def argocd_path() -> None:
    """Print the folder with patches for the sidecar, settings of Argo CD, and an Application of each kind.

    \b
    Example:
      ls "$(postrender argocd path)"
    """
    from ..hosts import argocd as host

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
    from ..gangs.world import version as parsed
    from ..hosts import policy as host

    wanted = None
    if kube_version:
        try:
            wanted = parsed(kube_version)
        except ValueError:
            message = f"--kube-version: {kube_version!r} is not a version; write one such as 1.36"
            raise click.UsageError(message) from None
    try:
        click.echo(host.policy(wanted), nl=False)
    except ValueError as error:
        sys.stderr.write(f"postrender: error: {error}\n")
        return REFUSED
    return DONE


@cli.command(short_help="Print the folder of files for a program.")
@click.argument("name", type=click.Choice(["argocd", "helm", "image", "kustomize", "policy", "reconciler"]))
def path(name: str) -> None:
    """Print the folder of what a program needs on disk.

    \b
    Example:
      ls "$(postrender path reconciler)"
    """
    from ..hosts import helm_plugin as host

    click.echo(host.plugins() / name)
