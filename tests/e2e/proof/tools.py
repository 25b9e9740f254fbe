"""The ways by which people deploy, each with postrender behind what renders, or without."""

from __future__ import annotations

import functools
import subprocess
from pathlib import Path
from typing import Protocol

from tests.e2e.cluster import Cluster, ClusterError, programs

from . import manifests
from .stage import GANGS, SCRIPT

CHART = Path(__file__).parent / "chart"
OPTIONS = {"POSTRENDER_OME": "1.2", "POSTRENDER_SCHEDULER_NAME": GANGS}


class Tool(Protocol):
    """What a release can be told to do."""

    def deploy(self, name: str, build: str) -> None:
        """Install it, or upgrade it."""

    def back(self, name: str) -> None:
        """Undo the last upgrade."""

    def remove(self, name: str) -> None:
        """Take it away."""


class Helm:
    """A real Helm: 3 with the program as its post-renderer, 4 with the plugin."""

    def __init__(self, version: str, cluster: Cluster, namespace: str, ours: bool) -> None:
        self.program = programs.binary(f"helm-{version}")
        self.namespace = namespace
        home = cluster.folder / f"helm-{version}-{namespace}"
        self.environment = {"PATH": str(SCRIPT.parent), "HOME": str(home), **OPTIONS}
        self.environment["KUBECONFIG"] = cluster.environment["KUBECONFIG"]
        if version.startswith("4"):
            self.environment["HELM_PLUGINS"] = plugins()
        self.post = ("--post-renderer", "postrender") if ours else ()

    def run(self, *words: str | Path) -> str:
        """Run it; raises ClusterError with what it said if it fails."""
        command = [self.program, *map(str, words), "--namespace", self.namespace]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise ClusterError(done.stderr)
        return done.stdout

    def deploy(self, name: str, build: str, *words: str) -> None:
        """Install it, or upgrade it."""
        self.run("upgrade", "--install", name, CHART, "--set", f"build={build}", *words, *self.post)

    def back(self, name: str) -> None:
        """Undo the last upgrade; Helm has kept what the post-renderer made of the one before."""
        self.run("rollback", name)

    def remove(self, name: str) -> None:
        """Take it away."""
        self.run("uninstall", name)


class Kustomize:
    """`kubectl kustomize | postrender | kubectl apply`."""

    def __init__(self, cluster: Cluster, namespace: str, ours: bool) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.ours = ours
        self.builds: dict[str, list[str]] = {}

    def text(self, name: str, build: str) -> str:
        """Return what is applied of a release."""
        folder = self.cluster.folder / f"kustomize-{self.namespace}-{name}"
        folder.mkdir(exist_ok=True)
        (folder / "gang.yaml").write_text(manifests.multinode(name, build=build))
        (folder / "kustomization.yaml").write_text(f"namespace: {self.namespace}\nresources:\n- gang.yaml\n")
        rendered = self.cluster.kubectl("kustomize", folder).stdout
        if not self.ours:
            return rendered
        done = subprocess.run(
            [SCRIPT], input=rendered, env=OPTIONS, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode:
            raise ClusterError(done.stderr)
        return done.stdout

    def deploy(self, name: str, build: str) -> None:
        """Apply it."""
        self.builds.setdefault(name, []).append(build)
        self.cluster.apply(self.text(name, build))

    def back(self, name: str) -> None:
        """Apply what was before, as a revert in Git does."""
        self.builds[name].pop()
        self.cluster.apply(self.text(name, self.builds[name][-1]))

    def remove(self, name: str) -> None:
        """Delete it."""
        self.cluster.kubectl("delete", "--filename=-", input=self.text(name, self.builds[name][-1]))


@functools.cache
def plugins() -> str:
    """Return where the plugin for Helm 4 is."""
    done = subprocess.run([SCRIPT, "helm-plugin", "path"], capture_output=True, text=True, check=True, env={})
    return done.stdout.strip()
