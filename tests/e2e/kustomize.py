"""Kustomizations written from Python, and built by the real kustomize with our function in either of its forms.

    write(folder, {"kustomization.yaml": {"resources": ["qwen.yaml"], "transformers": ["gangs.yaml"]},
                   "qwen.yaml": service("qwen"), "gangs.yaml": form.function(accept=["ome-not-said"])})
    built = form.build(folder)

`Exec` is `kustomize build` with our `postrender` on PATH. `Container` is `kubectl kustomize`, where the `docker` on PATH is a
stand-in (`docker.py`): it writes down what it was asked, and runs our entry point as the image would. All between is kustomize's.
"""

from __future__ import annotations

import copy
import json
import pathlib
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import postrender
from tests.oracles.client import Oracle

ROOT = pathlib.Path(__file__).parents[2]
PLUGINS = ROOT / "plugins/kustomize"
BIN = ROOT / ".programs/bin"
SCRIPTS = pathlib.Path(sys.executable).parent
STAND_IN = pathlib.Path(__file__).parent / "docker.py"

IMAGE = f"postrender:{postrender.__version__}"
FUNCTION = "config.kubernetes.io/function"
LOCAL = "config.kubernetes.io/local-config"
LABEL = "scheduling.x-k8s.io/pod-group"

# What every small service here is warned of, without a runtime or with one.
QUIET = ("ome-not-said", "runtime-unresolved", "surge-without-spare", "no-gang-scheduler")

# What a file holds: text and bytes as they stand, an object as JSON, several as a stream.
Content = str | bytes | Mapping[str, Any] | Sequence[Mapping[str, Any]]


def write(folder: pathlib.Path, files: Mapping[str, Content]) -> pathlib.Path:
    """Write files into a folder; return it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_bytes(content))
    return folder


def _bytes(content: Content) -> bytes:
    if isinstance(content, bytes):
        return content
    if isinstance(content, str):
        return content.encode()
    objects = [content] if isinstance(content, Mapping) else content
    return "---\n".join(json.dumps(one, indent=1) + "\n" for one in objects).encode()


def service(name: str, namespace: str = "", workers: int = 1, **engine: Any) -> dict[str, Any]:
    """Return an InferenceService of one gang."""
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"engine": {"leader": {}, "worker": {"size": workers}, **engine}},
    }


def pod_group(name: str, namespace: str = "", index: int = 0, members: int = 2) -> dict[str, Any]:
    """Return the PodGroup of a service's engine, as OME documents it; 600 s are the most that OME's chart allows."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": f"{name}-engine-{index}",
            **({"namespace": namespace} if namespace else {}),
            "labels": {
                "component": "engine",
                "ome.io/inferenceservice": name,
                "ome.io/instance-index": str(index),
                "ome.io/managed-by": "OMENative",
            },
            "annotations": {"postrender/for": f"InferenceService/{name}"},
        },
        "spec": {"minMember": members, "scheduleTimeoutSeconds": 600},
    }


def ganged(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a service with the label of its one gang, in a service called `name`."""
    changed = copy.deepcopy(value)
    changed["spec"]["engine"].setdefault("labels", {})[LABEL] = f"{name}-engine-0"
    return changed


def config_map(name: str, **data: str) -> dict[str, Any]:
    """Return an object that is none of our business."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Built(NamedTuple):
    """What a build came to."""

    code: int
    stdout: str
    stderr: str

    def objects(self, oracle: Oracle) -> dict[str, Any]:
        """Return the objects by `Kind/name` or `Kind/namespace/name`, as a cluster reads them; the build must be good."""
        assert self.code == 0, self.stderr
        found = [one for one in oracle.sigs_all(self.stdout) if one is not None]
        named = {address(one): one for one in found}
        assert len(named) == len(found)
        return named

    def texts(self) -> list[str]:
        """Return the text of each object."""
        return self.stdout.removesuffix("\n").split("\n---\n") if self.stdout else []


def address(value: Any) -> str:
    """Return `Kind/namespace/name`, without the namespace where there is none."""
    metadata = value["metadata"]
    return "/".join(filter(None, (value["kind"], metadata.get("namespace"), metadata["name"])))


def good(built: Built, reader: Oracle) -> dict[str, Any]:
    """Return the objects of a build that said nothing."""
    assert not built.stderr, built.stderr
    return built.objects(reader)


def gangs(objects: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the PodGroups of a build, and the labels by which services name them."""
    services = [one for name, one in objects.items() if name.startswith("InferenceService/")]
    return {
        "groups": sorted(name for name in objects if name.startswith("PodGroup/")),
        "labels": sorted(one["spec"]["engine"]["labels"][LABEL] for one in services),
    }


class Form:
    """How kustomize is made to run us."""

    name: str
    program: pathlib.Path
    words: tuple[str, ...]
    # What the config of the function says of the form.
    how: Mapping[str, Any]

    def __init__(self, folder: pathlib.Path) -> None:
        assert self.program.exists(), "run 'make e2e': it brings kustomize and kubectl"
        self.folder = folder
        # The one folder on PATH.
        self.bin = folder / f"{self.name}-bin"
        self.bin.mkdir()
        self.install()
        self.environ = {"HOME": str(folder / "home"), "PATH": str(self.bin)}

    def install(self) -> None:
        """Put into `bin` what kustomize is to start."""
        raise NotImplementedError

    def function(self, name: str = "gangs", how: Mapping[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
        """Return a config of our function, its options spelled as in Python; it is silent about QUIET."""
        options = {"accept": list(QUIET), **spec}
        return {
            "apiVersion": "postrender/v1alpha1",
            "kind": "Gangs",
            "metadata": self.metadata(name, how),
            "spec": {key.replace("_", "-"): value for key, value in options.items()},
        }

    def metadata(self, name: str = "gangs", how: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return what makes any object the config of our function."""
        return {"name": name, "annotations": {FUNCTION: json.dumps(self.how if how is None else how), LOCAL: "true"}}

    def build(self, folder: pathlib.Path, *words: str, **environ: str) -> Built:
        """Build a folder."""
        command = [self.program, *self.words, *words, folder]
        done = subprocess.run(
            command, capture_output=True, cwd=self.folder, env={**self.environ, **environ}, timeout=120, check=False
        )
        # Bytes are decoded here: text mode would make LF of CRLF.
        return Built(done.returncode, done.stdout.decode(), done.stderr.decode())


class Exec(Form):
    """`kustomize build`, which starts the `postrender` on PATH."""

    name = "exec"
    program = BIN / "kustomize"
    words = ("build", "--enable-alpha-plugins", "--enable-exec")
    how: Mapping[str, Any] = {"exec": {"path": "postrender"}}

    def install(self) -> None:
        """Put our script there."""
        (self.bin / "postrender").symlink_to(SCRIPTS / "postrender")


class Call(NamedTuple):
    """What kustomize asked of `docker`."""

    argv: list[str]
    cwd: str
    environ: dict[str, str]
    stdin: str


class Container(Form):
    """`kubectl kustomize`, which starts the `docker` on PATH; there is no `postrender` on it."""

    name = "container"
    program = BIN / "kubectl"
    words = ("kustomize", "--enable-alpha-plugins")
    how: Mapping[str, Any] = {"container": {"image": IMAGE}}

    def install(self) -> None:
        """Put the stand-in there."""
        script = self.bin / "docker"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "{STAND_IN}" "{SCRIPTS}" "{self.folder}" "$@"\n')
        script.chmod(0o755)

    def calls(self) -> list[Call]:
        """Return what was asked since the last time, in order, and forget it."""
        files = sorted(self.folder.glob("call-*.json"))
        calls = [Call(**json.loads(file.read_text())) for file in files]
        for file in files:
            file.unlink()
        return calls


FORMS: dict[str, type[Form]] = {"exec": Exec, "container": Container}
