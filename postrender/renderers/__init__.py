"""Runs helm and kustomize, or reads a folder: a request -> manifests, or the reason why there are none.

A renderer is a child of its own: no shell, words that cannot become flags, a clean environment, bounded output. It sees
neither the caller's home nor a cluster, so that the same files give the same manifests anywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile

from . import child, folder
from .requests import Chart, Failed, Folder, Kustomization, Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .requests import Request

__all__ = ["Chart", "Failed", "Folder", "Kustomization", "Output", "check_release", "is_empty", "run"]

# What a renderer sees of the caller's environment: where programs are, and how the network is reached.
_PASSED = (
    "PATH",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
)
# Helm's own rule for releases (chartutil.ValidateReleaseName).
_RELEASE = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_RELEASE = 53


def run(request: Request, environ: Mapping[str, str], allow_empty: bool = False) -> Output:
    """Return what a request renders to; raises Failed where that is nothing, unless `allow_empty`.

    The programs are `helm` and `kustomize` of PATH, or those that POSTRENDER_HELM and POSTRENDER_KUSTOMIZE name. TERM
    or HUP to this process ends them and raises Failed, INT raises KeyboardInterrupt.
    """
    output = folder.read(request) if isinstance(request, Folder) else _ran(request, environ)
    if not allow_empty and is_empty(output.data):
        raise Failed(
            f"{request.path} renders to nothing; were it deployed, all that it had deployed would be removed;"
            " check the path and its values"
        )
    return output


def is_empty(data: bytes) -> bool:
    """Return whether a stream holds nothing but comments and separators."""
    for line in data.removeprefix(b"\xef\xbb\xbf").splitlines():
        rest = line.removeprefix(b"---").strip()
        if rest and not rest.startswith(b"#") and rest not in (b"...", b"null", b"~", b"{}"):
            return False
    return True


def _ran(request: Chart | Kustomization, environ: Mapping[str, str]) -> Output:
    if not os.path.exists(request.path):
        raise Failed(f"{request.path}: there is no such file or folder")
    name = "helm" if isinstance(request, Chart) else "kustomize"
    variable = f"POSTRENDER_{name.upper()}"
    program = shutil.which(environ.get(variable) or name, path=environ.get("PATH", os.defpath))
    if program is None:
        named = f" ({variable})" if environ.get(variable) else ""
        raise Failed(f"{environ.get(variable) or name}{named}: there is no such program; set {variable} or PATH")
    try:
        home = tempfile.TemporaryDirectory(prefix="postrender-", ignore_cleanup_errors=True)
    except OSError as error:
        raise Failed(f"there is no folder for temporary files: {error.strerror}; make /tmp writable") from None
    with home as place:
        words = _helm(request, place) if isinstance(request, Chart) else _kustomize(request)
        return child.run(name, [os.path.abspath(program), *words], _clean(environ, place), place)


def _clean(environ: Mapping[str, str], place: str) -> dict[str, str]:
    """Return the environment of a renderer, whose home, caches, settings and plugins are in an empty folder."""
    clean = {key: environ[key] for key in _PASSED if key in environ}
    for key in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        clean[key] = place
    return clean


def check_release(name: str) -> None:
    """Raise Failed for a name that Helm takes for no release."""
    if len(name) > _LONGEST_RELEASE or not _RELEASE.fullmatch(name):
        raise Failed(f"{name!r} is no name of a Helm release; write up to {_LONGEST_RELEASE} of a-z, 0-9, - and dots")


def _helm(chart: Chart, place: str) -> Iterator[str]:
    """Yield the words for Helm: each flag and its value in one, so that no value is taken for a flag."""
    check_release(chart.release)
    yield "template"
    if chart.namespace:
        yield f"--namespace={chart.namespace}"
    if chart.kube_version:
        yield f"--kube-version={chart.kube_version}"
    for path in chart.values:
        yield f"--values={_listed(os.path.abspath(path))}"
    if chart.inline:
        inline = os.path.join(place, "inline-values.yaml")
        with open(inline, "wb") as file:
            file.write(_encoded(chart.inline))
        yield f"--values={_listed(inline)}"
    for flag, pairs in (("--set", chart.sets), ("--set-string", chart.set_strings)):
        for key, value in pairs:
            yield f"{flag}={_assigned(flag, key, value)}"
    for version in chart.api_versions:
        yield f"--api-versions={_listed(version)}"
    for flag, said in (
        ("--include-crds", chart.include_crds),
        ("--skip-tests", chart.skip_tests),
        ("--skip-schema-validation", chart.skip_schema_validation),
    ):
        if said:
            yield flag
    yield "--"
    yield chart.release
    yield os.path.abspath(chart.path)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Failed("the values are no text: they hold half of a surrogate pair") from None


def _kustomize(kustomization: Kustomization) -> Iterator[str]:
    yield "build"
    yield "--"
    yield os.path.abspath(kustomization.path)


def _listed(word: str) -> str:
    """Return a word for a flag that takes several, as CSV: quoted, so that it stays one."""
    return '"' + word.replace('"', '""') + '"'


def _assigned(flag: str, key: str, value: str) -> str:
    """Return what sets one value: commas are escaped as Argo CD does, for Helm would part the word at them.

    A brace opens a list to Helm also where none closes it.
    """
    if not key or re.search(r"[=,\n\r]", key):
        raise Failed(f"{flag} {key!r}: is no path of a value; write one such as image.tag")
    if not (value.startswith("{") and value.endswith("}")):
        value = re.sub(r"(?<!\\),|^{", r"\\\g<0>", value)
    return f"{key}={value}"
