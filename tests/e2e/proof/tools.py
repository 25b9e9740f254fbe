"""The ways by which people deploy, each with postrender in it, or without."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.e2e.cluster import Cluster, ClusterError, programs

from . import manifests
from .stage import GANGS, SCRIPT

CHART = Path(__file__).parent / "chart"
PLUGINS = Path(__file__).parents[3] / "plugins" / "kustomize"
OPTIONS = {"ome": "1.2", "scheduler-name": GANGS}
POLICY = {**OPTIONS, "replicas": "policy"}
Texts = Mapping[str, str]


class Revision(NamedTuple):
    """What differs between one state of a release and the next."""

    build: str = "a"
    workers: int = 2
    replicas: int = 1

    def words(self) -> list[str]:
        """Return it as values of the chart."""
        return [word for name, value in self._asdict().items() for word in ("--set", f"{name}={value}")]


class Tool(Protocol):
    """What a release can be told to do."""

    def deploy(self, name: str, revision: Revision) -> None:
        """Install it, or upgrade it."""

    def back(self, name: str) -> None:
        """Undo the last upgrade."""

    def remove(self, name: str) -> None:
        """Take it away."""


class Helm:
    """A real Helm: 3 with the program as its post-renderer, 4 with the plugin."""

    def __init__(self, version: str, cluster: Cluster, namespace: str, ours: bool, options: Texts = OPTIONS) -> None:
        self.program = programs.binary(f"helm-{version}")
        self.namespace = namespace
        home = cluster.folder / f"helm-{version}-{namespace}"
        self.environment = {"PATH": str(SCRIPT.parent), "HOME": str(home), **variables(options)}
        self.environment["KUBECONFIG"] = cluster.environment["KUBECONFIG"]
        if version.startswith("4"):
            self.environment["HELM_PLUGINS"] = plugins()
        self.post = ("--post-renderer", "postrender") if ours else ()

    def run(self, *words: str | Path) -> str:
        """Run it; raises ClusterError with what it said if it fails."""
        return run(self.program, *words, "--namespace", self.namespace, environment=self.environment, seconds=300)

    def deploy(self, name: str, revision: Revision, *words: str) -> None:
        """Install it, or upgrade it."""
        self.run("upgrade", "--install", name, CHART, *revision.words(), *words, *self.post)

    def back(self, name: str) -> None:
        """Undo the last upgrade; Helm has kept what the post-renderer made of the one before."""
        self.run("rollback", name)

    def remove(self, name: str) -> None:
        """Take it away."""
        self.run("uninstall", name)


class Kubectl:
    """`kubectl apply --prune`, which deletes what is no longer in the manifests, and `kubectl delete`."""

    def __init__(self, cluster: Cluster, namespace: str, ours: bool, options: Texts = OPTIONS) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.ours = ours
        self.options = options
        self.environment = {"PATH": os.pathsep.join((str(SCRIPT.parent), os.defpath)), "HOME": str(cluster.folder)}
        self.revisions: dict[str, list[Revision]] = {}

    def folder(self, name: str) -> Path:
        """Return the folder of a release."""
        folder = self.cluster.folder / f"{type(self).__name__}-{self.namespace}-{name}"
        folder.mkdir(exist_ok=True)
        return folder

    def render(self, name: str, revision: Revision) -> str:
        """Return what is to be in the cluster of a release."""
        raise NotImplementedError

    def kubectl(self, *words: str | Path, text: str = "") -> None:
        """Run kubectl in the namespace."""
        environment = {**self.cluster.environment, "KUBECTL_APPLYSET": "true"}
        run(programs.binary("kubectl"), *words, "--namespace", self.namespace, environment=environment, text=text)

    def apply(self, name: str, *what: str | Path, text: str = "") -> None:
        """Apply it as the whole of a release."""
        self.kubectl("apply", *what, "--prune", f"--applyset={name}", text=text)

    def deploy(self, name: str, revision: Revision) -> None:
        """Apply it."""
        self.revisions.setdefault(name, []).append(revision)
        self.apply(name, "--filename=-", text=self.render(name, revision))

    def back(self, name: str) -> None:
        """Apply what was before, as a revert in Git does."""
        self.revisions[name].pop()
        self.apply(name, "--filename=-", text=self.render(name, self.revisions[name][-1]))

    def remove(self, name: str) -> None:
        """Delete what was applied last, and kubectl's own note of it."""
        self.kubectl("delete", "--filename=-", text=self.render(name, self.revisions[name][-1]))
        self.kubectl("delete", "secret", name)


class Pipe(Kubectl):
    """`kubectl kustomize | postrender | kubectl apply`."""

    def render(self, name: str, revision: Revision) -> str:
        """Return what the pipe prints."""
        folder = self.folder(name)
        (folder / "gang.yaml").write_text(manifests.sized(name, *revision))
        (folder / "kustomization.yaml").write_text(f"namespace: {self.namespace}\nresources: [gang.yaml]\n")
        rendered = run(programs.binary("kubectl"), "kustomize", folder, environment=self.environment)
        return run(SCRIPT, environment=variables(self.options), text=rendered) if self.ours else rendered


class Function(Kubectl):
    """`kustomize build | kubectl apply`, with postrender as a function of an overlay that gives the names a prefix."""

    def render(self, name: str, revision: Revision) -> str:
        """Return what kustomize prints."""
        folder = self.folder(name)
        base, overlay = folder / "base", folder / "overlay"
        for one in (base, overlay):
            one.mkdir(exist_ok=True)
        (base / "gang.yaml").write_text(manifests.sized(name, *revision))
        (base / "kustomization.yaml").write_text("resources: [gang.yaml]\n")
        names = "namereference-ome.yaml"
        shutil.copyfile(PLUGINS / names, overlay / names)
        (overlay / "gangs.yaml").write_text(json.dumps({**FUNCTION, "spec": self.options}))
        (overlay / "kustomization.yaml").write_text(
            f"namespace: {self.namespace}\nnamePrefix: {PREFIX}\nresources: [../base]\nconfigurations: [{names}]\n"
            + ("transformers: [gangs.yaml]\n" if self.ours else "")
        )
        words = ("build", "--enable-alpha-plugins", "--enable-exec", overlay)
        return run(programs.binary("kustomize"), *words, environment=self.environment)


class Build(Kubectl):
    """`postrender build` into a folder of Git, and `kubectl apply --kustomize` of the folder."""

    def git(self, name: str, *words: str) -> None:
        """Run git in the folder of a release."""
        who = ("-c", "user.name=ci", "-c", "user.email=ci@example.com")
        run("git", "-C", self.folder(name), *who, *words, environment=self.environment)

    def deploy(self, name: str, revision: Revision) -> None:
        """Build the folder, commit it and apply it."""
        self.git(name, "init", "--quiet")
        self.build(name, revision)
        self.git(name, "add", "--all")
        self.git(name, "commit", "--quiet", "--message", f"{name}: {revision}")
        self.apply(name, "--kustomize", self.folder(name) / "deploy")

    def build(self, name: str, revision: Revision) -> None:
        """Write the folder; without us Helm alone does."""
        folder, helm = self.folder(name) / "deploy", programs.binary("helm-4.3")
        if self.ours:
            words = ("build", CHART, "--release-name", name, *revision.words(), "--output", folder)
            run(SCRIPT, *words, environment={**self.environment, **variables(self.options), "POSTRENDER_HELM": helm})
            return
        folder.mkdir(exist_ok=True)
        text = run(helm, "template", name, CHART, *revision.words(), environment=self.environment)
        (folder / "gang.yaml").write_text(text)
        (folder / "kustomization.yaml").write_text("resources: [gang.yaml]\n")

    def back(self, name: str) -> None:
        """Revert the last commit, and apply what is there then."""
        self.git(name, "revert", "--no-edit", "HEAD")
        self.apply(name, "--kustomize", self.folder(name) / "deploy")

    def remove(self, name: str) -> None:
        """Delete what the folder holds, and kubectl's own note of it."""
        self.kubectl("delete", "--kustomize", self.folder(name) / "deploy")
        self.kubectl("delete", "secret", name)


PREFIX = "prod-"
FUNCTION = {
    "apiVersion": "postrender/v1alpha1",
    "kind": "Gangs",
    "metadata": {
        "name": "gangs",
        "annotations": {
            "config.kubernetes.io/local-config": "true",
            "config.kubernetes.io/function": json.dumps({"exec": {"path": "postrender"}}),
        },
    },
}


def variables(options: Texts) -> dict[str, str]:
    """Return options as variables of the environment."""
    return {f"POSTRENDER_{name.upper().replace('-', '_')}": value for name, value in options.items()}


def run(program: str | Path, *words: str | Path, environment: Texts, text: str = "", seconds: int = 60) -> str:
    """Run a program; raises ClusterError with what it said if it fails."""
    done = subprocess.run(
        [program, *map(str, words)],
        input=text,
        env=environment,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        raise ClusterError(done.stderr)
    return done.stdout


@functools.cache
def plugins() -> str:
    """Return where the plugin for Helm 4 is."""
    return run(SCRIPT, "helm-plugin", "path", environment={}).strip()
