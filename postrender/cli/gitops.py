"""`build` and `patches`, which write folders."""

from __future__ import annotations

import os
import sys

import click

from ..findings import DONE, REFUSED, UNREACHABLE, WOULD_CHANGE
from .group import cli
from .shared import EPILOG, Optioned, Stopped, put, read, say, settled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeVar

    from ..hosts.folder import File

    _Command = TypeVar("_Command", bound=Callable[..., Any])


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


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Write a chart or kustomization as a folder for Git.")
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
    """Write SOURCE with its gangs as a folder for Git: one file per object.

    SOURCE is a chart (its folder or a .tgz), a kustomization, or a folder of manifests. `helm` or `kustomize` must be
    on the path, or named by POSTRENDER_HELM or POSTRENDER_KUSTOMIZE.

    \b
    Example:
      postrender build ./chart --release-name qwen --output deploy/qwen --ome 1.3
      postrender build ./chart --release-name qwen --output deploy/qwen --ome 1.3 --check
    """
    import gc

    from ..hosts import folder, gitops
    from ..renderers import Failed

    gc.disable()  # as in the filter: nothing here makes cycles, and a stream's nodes are many
    told = settled(config, given)
    if os.path.realpath(source) == os.path.realpath(output):
        raise click.UsageError(f"{output} is the source itself; name another folder to write")
    helm = gitops.Helm(release, values, sets, set_strings, kube_version, include_crds)
    try:
        built = gitops.build(source, helm, told.options, os.environ)
    except gitops.Misuse as error:
        raise click.UsageError(str(error)) from None
    except (Failed, folder.Refused) as error:
        raise Stopped(str(error), REFUSED) from None
    if built.said:
        sys.stderr.write(built.said)
    say(built.findings, f"<{source}>", told)
    return REFUSED if built.refused else deliver(built.files, output, check, force)


@cli.command(cls=Optioned, epilog=EPILOG, short_help="Print the change as patches, for Flux or kustomize.")
@click.argument("file", default="-", type=click.Path())
@click.option("--form", type=click.Choice(["flux", "kustomize"]), required=True, help="Whose patches to make.")
@_writes(required=False)
@click.option("--release-name", "release", default="", metavar="NAME", help="Of Flux: the HelmRelease to patch.")
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
    from ..hosts import flux
    from ..renderers import Failed, check_release

    told = settled(config, given)
    if output is None and (check or force):
        raise click.UsageError("--check and --force go with --output FOLDER")
    if form == flux.FLUX:
        if not release:
            raise click.UsageError("--form flux needs the name of the HelmRelease; say --release-name NAME")
        try:
            check_release(release)
        except Failed as error:
            raise click.UsageError(f"--release-name: {error}") from None
    joined = read(file)
    made = flux.patches(joined.data, told.options, form, release)
    say([joined.named(finding) for finding in made.findings], "", told)
    if made.refused:
        return REFUSED
    if output is not None:
        return deliver(made.files, output, check, force)
    put(flux.document(made.files))
    return DONE


def deliver(files: Sequence[File], output: str, check: bool, force: bool) -> int:
    """Write files into a folder, or print what that would change; return the exit code."""
    from ..hosts import folder

    try:
        if not check:
            changes = folder.write(output, files, force)
            click.echo(folder.summary(output, changes))
            return DONE
        changes = folder.compare(output, files, force=True)
    except folder.Refused as error:
        raise Stopped(str(error), REFUSED) from None
    except OSError as error:
        message = f"{output} cannot be {'read' if check else 'written'}: {error.strerror or error}"
        raise Stopped(message, UNREACHABLE) from None
    put(b"".join(line.encode(errors="surrogateescape") + b"\n" for line in folder.diff(output, changes)))
    return WOULD_CHANGE if changes else DONE
