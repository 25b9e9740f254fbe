"""Argo CD's config management plugin: a folder of a repository, in the working directory -> the manifests to deploy.

Argo CD shows what a plugin writes to stderr, and only when it fails; its first line is what people read. It takes an
empty answer for a wish to remove everything, so there is none unless it is asked for.
"""

from __future__ import annotations

import json
import os

from .. import __version__, renderers
from ..findings import DONE, REFUSED, UNREACHABLE, USAGE
from ..pipeline import render
from ..renderers import Chart, Failed, Folder, Kustomization
from ..sources import Given, Misuse, Unreadable, settle
from ..views.findings import lines, printable
from . import argocd_parameters as parameters
from .argocd_parameters import AUTO, DIRECTORY, HELM, KUSTOMIZE, Parameters
from .helm_plugin import plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import BinaryIO, TextIO

    from ..renderers.requests import Request
    from ..sources import Settled

_CHART = "Chart.yaml"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
# In a folder of manifests Argo CD leaves out a file that holds the first, and a YAML file that has no kind.
_SKIP_MARK = b"+argocd:skip-file-rendering"
_NEEDS = b"kind"
_PATHS = ("context", "ome-values")
_NAME = "postrender"
# A new version must have a new name, or Argo CD goes on with the manifests that the old one has made.
_VERSION = f"v{__version__}"


class _App:
    """A folder of a repository, and what may be read for it: what is in the repository once links are followed."""

    def __init__(self, folder: str, environ: Mapping[str, str]) -> None:
        self.folder = os.path.realpath(folder)
        self.root = _root(self.folder, environ.get("ARGOCD_APP_SOURCE_PATH", ""))

    def path(self, word: str, origin: str) -> str:
        """Return a path as seen from the folder; one that begins with / starts at the root of the repository."""
        if "://" in word:
            raise Misuse(f"{origin}: {word!r} is an address; only files of the repository are read")
        if "\0" in word:
            raise Misuse(f"{origin}: {word!r} is no path")
        base = self.root if word.startswith("/") else self.folder
        real = os.path.realpath(os.path.join(base, word.lstrip("/")))
        if os.path.commonpath([self.root, real]) != self.root:
            raise Misuse(f"{origin}: {word!r} leads out of the repository")
        if not os.path.exists(real):
            raise Unreadable(f"{origin}: {word!r}: there is no such file in the repository")
        if os.path.isdir(real):
            self.check_links(real)
        return os.path.relpath(real, self.folder)

    def shown(self, text: str) -> str:
        """Return a text without where the repository was put, which is another place each time."""
        return text.replace(self.folder + os.sep, "").replace(self.folder, ".").replace(self.root + os.sep, "/")

    def check_links(self, folder: str) -> None:
        """Raise Unreadable for a link below a folder that leads out of the repository: renderers follow links."""
        for inner, folders, files in os.walk(folder):
            for name in (*folders, *files):
                path = os.path.join(inner, name)
                if os.path.islink(path) and os.path.commonpath([self.root, os.path.realpath(path)]) != self.root:
                    shown = os.path.relpath(path, self.folder)
                    raise Unreadable(f"{shown}: is a link that leads out of the repository; replace it by a file")


def _root(folder: str, source_path: str) -> str:
    """Return the root of what Argo CD has sent: the folder less the end that it shares with the Application's path.

    Argo CD may send a part of a repository only, down to where the paths that an annotation names meet.
    """
    parts = [part for part in source_path.split("/") if part not in ("", ".")]
    if ".." in parts:
        return folder
    for count in range(len(parts), 0, -1):
        tail = os.sep + os.path.join(*parts[-count:])
        if folder.endswith(tail):
            return folder.removesuffix(tail) or os.sep
    return folder


def generate(folder: str, environ: Mapping[str, str], target: BinaryIO | None, errors: TextIO) -> int:
    """Write the manifests of a folder to `target`, all or nothing; return the exit code.

    On failure the first line on `errors` says what is wrong; then comes what the renderer said.
    """

    def fail(message: object, code: int) -> int:
        errors.write(printable(f"postrender: error: {message}") + "\n")
        return code

    try:
        told = parameters.read(environ)
        app = _App(folder, environ)
        settled = _settled(told, app, environ)
        kind = _kind(told, app)
        request = _request(kind, told, app, environ)
        app.check_links(app.folder)
        rendered = renderers.run(request, environ, told.switch("allow-empty"))
    except Misuse as misuse:
        return fail(misuse, UNREACHABLE if isinstance(misuse, Unreadable) else USAGE)
    except Failed as failed:
        fail(app.shown(str(failed)), REFUSED)
        _forward(app.shown(failed.said), errors)
        return REFUSED
    result = render(rendered.data, settled.options)
    # Which OME it is must be said: what Argo CD has once deployed is not looked at again.
    findings = [one._replace(raised=one.raised or one.code == "ome-not-said") for one in result.findings]
    for line in lines(findings, f"<{kind}>", settled.form):
        errors.write(line + "\n")
    _forward(app.shown(rendered.said), errors)
    if any(one.raised for one in findings) or result.refused:
        return REFUSED
    if target is None:
        return fail("stdout is closed; give it a pipe or a file", UNREACHABLE)
    try:
        target.write(result.data)
        target.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        return fail(f"the output could not be written: {error.strerror or error}", UNREACHABLE)
    return DONE


def _forward(said: str, errors: TextIO) -> None:
    for line in said.splitlines():
        errors.write(printable(line) + "\n")


def _settled(told: Parameters, app: _App, environ: Mapping[str, str]) -> Settled:
    """Return the options: what the Application says, then what the sidecar is set to."""
    given = dict(_given(told, app))
    namespace = environ.get("ARGOCD_APP_NAMESPACE")
    if namespace:
        given["namespace"] = Given(namespace, "ARGOCD_APP_NAMESPACE")
    settled = settle({}, environ, host=given)
    options = settled.options
    if not (options.ome or options.context or "ome-not-said" in options.accept):
        raise Misuse("parameter ome: is required; say which version of OME runs the manifests, such as 1.3")
    said = told.said("sync-wave")
    if said is not None and not any(said.words):
        options = options._replace(sync_wave="")
    elif "sync-wave" not in dict(options.origins):
        options = options._replace(sync_wave=parameters.SYNC_WAVE)
    return settled._replace(options=options)


def _given(told: Parameters, app: _App) -> Iterator[tuple[str, Given]]:
    for name in told.names():
        said = told.said(name)
        if said is None or name in parameters.OWN:
            continue
        words = said.words
        if name in _PATHS:
            # A list is parted as its option will be, so that each of its words is looked at.
            paths = words if name == "ome-values" else ",".join(words).split(",")
            words = tuple(app.path(path.strip(), said.origin) for path in paths if path.strip())
        yield name, Given(words, said.origin)


def _kind(told: Parameters, app: _App) -> str:
    """Return the kind of source: as it is said, else by what the folder holds."""
    said = told.text("source")
    if said in (HELM, KUSTOMIZE, DIRECTORY):
        return said
    if said != AUTO:
        raise Misuse(f"parameter source: {said!r} is not one of {AUTO}, {HELM}, {KUSTOMIZE}, {DIRECTORY}")
    chart = os.path.exists(os.path.join(app.folder, _CHART))
    kustomization = next((name for name in _KUSTOMIZATIONS if os.path.exists(os.path.join(app.folder, name))), "")
    if chart and kustomization:
        raise Misuse(f"parameter source: there are {_CHART} and {kustomization}; say {HELM} or {KUSTOMIZE}")
    return HELM if chart else KUSTOMIZE if kustomization else DIRECTORY


def _request(kind: str, told: Parameters, app: _App, environ: Mapping[str, str]) -> Request:
    """Return what is to be rendered, as Argo CD itself would call the renderer."""
    parameters.of_kind(told, kind)
    if kind == KUSTOMIZE:
        return Kustomization(app.folder)
    if kind == DIRECTORY:
        return Folder(app.folder, app.root, told.switch("recurse"), _SKIP_MARK, _NEEDS)
    return Chart(
        app.folder,
        told.text("release-name") or _release(environ.get("ARGOCD_APP_NAME", "")),
        environ.get("ARGOCD_APP_NAMESPACE", ""),
        tuple(
            os.path.join(app.folder, app.path(word, "parameter values-files")) for word in told.words("values-files")
        ),
        told.text("values"),
        told.pairs("set"),
        told.pairs("set-string"),
        told.text("kube-version") or environ.get("KUBE_VERSION", ""),
        tuple(version for version in environ.get("KUBE_API_VERSIONS", "").split(",") if version),
        told.switch("include-crds"),
        told.switch("skip-tests"),
        told.switch("skip-schema-validation"),
    )


def _release(name: str) -> str:
    """Return the name of an Application without its namespace: elsewhere than in Argo CD's own it is NAMESPACE_NAME."""
    return name.rpartition("_")[2]


def announced() -> str:
    """Return the parameters as Argo CD takes them from a command: a JSON list."""
    return json.dumps(parameters.announcements(), indent=2)


def folder() -> Path:
    """Return the folder of what an Argo CD needs: the plugin's file, patches and examples."""
    return plugins() / "argocd"


def plugin() -> str:
    """Return plugin.yaml, the file that makes a plugin of a sidecar."""
    head = f"""\
# Made by `postrender argocd plugin`. There is no `discover`: only an Application that names the plugin gets it.
apiVersion: argoproj.io/v1alpha1
kind: ConfigManagementPlugin
metadata:
  name: {_NAME}
spec:
  version: {_VERSION}  # an Application says {_NAME}-{_VERSION}
  generate:
    command: [postrender, argocd, generate]
  parameters:
    static:
"""
    return head + "".join(f"      - {json.dumps(one)}\n" for one in parameters.announcements())
