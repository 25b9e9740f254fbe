"""A control plane on 127.0.0.1, started and ended in seconds."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from . import kubeconfig, modules, objects, programs, watchdog
from .api import Api, Object, Objects
from .audit import PARTS, AuditLog
from .certificates import Authority
from .errors import ApiError, ClusterError
from .part import Part

T = TypeVar("T")
Names = list[str]
KEPT = programs.BIN.parent / "cluster-logs"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class Cluster:
    """Real etcd, API server, controllers and scheduler, and nodes that are played by kwok.

    `parts` are names of `programs.NAMES`; `lws=True` adds LeaderWorkerSet. `nodes` nodes have `gpus` GPUs each. The scheduler
    has two profiles, default-scheduler without and scheduler-plugins-scheduler with Coscheduling; `coscheduling` are its
    arguments.
    """

    def __init__(
        self,
        nodes: int = 0,
        gpus: int = 8,
        lws: bool = False,
        parts: Collection[str] = programs.NAMES[:-1],
        coscheduling: Object | None = None,
    ) -> None:
        unknown = set(parts) - set(programs.NAMES)
        if unknown or not {"etcd", "apiserver"} <= set(parts):
            raise ClusterError(f"parts are {', '.join(programs.NAMES)}, the first two always; not {sorted(parts)}")
        wanted = {*parts, *(["lws"] if lws else [])}
        self.names = [name for name in programs.NAMES if name in wanted]
        self.size = (nodes, gpus)
        self.coscheduling = {"permitWaitingTimeSeconds": 10, **(coscheduling or {})}  # 10 as in the project's chart
        self.parts: dict[str, Part] = {}
        self.namespaces = itertools.count(1)
        self.nodes = itertools.count()
        self.watchdog: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Cluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception):  # Ctrl-C is no trouble
            self.keep_logs()
        self.stop()

    # Beginning and end

    def start(self) -> None:
        """Start everything, and return when it is well and the nodes are Ready."""
        try:
            self.prepare()
            self.start_server()
            self.furnish()
            self.start_others()
        except BaseException as error:
            if isinstance(error, Exception):
                print(f"the cluster did not start; all logs: {self.keep_logs()}", file=sys.stderr)
            self.stop()
            raise

    def prepare(self) -> None:
        """A folder, somebody who removes it whatever happens to us, and the parts, not yet started."""
        for name in ("kubectl", *(programs.BINARIES[name] for name in self.names)):
            programs.binary(name)
        # The path of a socket has at most 107 bytes.
        short = "/tmp" if len(tempfile.gettempdir()) > 60 else None
        self.folder = Path(tempfile.mkdtemp(prefix="postrender-cluster-", dir=short))
        self.watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", watchdog.__file__, str(self.folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "KUBECONFIG": str(self.folder / "admin.kubeconfig"),
            watchdog.MARK: str(self.folder),
        }
        self.audit = AuditLog(self.folder / "audit.log")
        (self.folder / "logs").mkdir()
        how = programs.Programs(self.folder, self.coscheduling)
        self.parts = {name: Part(how[name], self.environment, self.folder / "logs") for name in self.names}

    def start_server(self) -> None:
        """Etcd and the API server; while they come up, the certificates of the others."""
        self.part("etcd").launch()
        self.authority = Authority(self.folder / "certificates")
        self.authority.server("server")
        self.authority.key("accounts")
        self.authority.public("accounts")
        server = self.part("apiserver")
        server.launch()
        admin = self.authority.client("admin", "admin", "system:masters")
        clients = {
            name: self.authority.client(name, user, PARTS)
            for name, user in programs.USERS.items()
            if name in self.parts
        }
        self.part("etcd").settle()
        server.settle()
        self.server = f"https://127.0.0.1:{server.ports[0]}"
        self.api = Api(server.ports[0], self.authority.certificate, *admin)
        for name, pair in {"admin": admin, **clients}.items():
            self.write_kubeconfig(name, {"client-certificate": str(pair[0]), "client-key": str(pair[1])})

    def furnish(self) -> None:
        """The definitions of scheduler-plugins, and the rights of the parts."""
        plugins = modules.source("k8s", "sigs.k8s.io/scheduler-plugins") / "config" / "crd" / "bases"
        # ElasticQuotas too: after two minutes without them the PodGroup controller gives up and exits.
        names = ("podgroups.scheduling.x-k8s.io", "elasticquotas.scheduling.x-k8s.io")
        self.define_all(plugins, names)
        for name in self.names:
            if name in objects.RIGHTS:
                self.grant(objects.user(programs.USERS[name]), objects.rights(name))
        for name in names:
            self.wait_defined(name)

    def start_others(self) -> None:
        """All that speak to the API server, at once; those that watch LeaderWorkerSets a moment later, when there are such."""
        others = [self.part(name) for name in self.names if name not in ("etcd", "apiserver", "lws")]
        for part in others:
            part.launch()
        nodes = self.create_nodes(*self.size, {})
        if "lws" in self.parts:
            self.install_lws()
        for part in others:
            part.settle()
        self.wait_nodes(nodes, 60)

    def install_lws(self) -> None:
        """LeaderWorkerSet: definitions, controller, webhooks."""
        bases = modules.source("lws", "sigs.k8s.io/lws") / "config" / "crd" / "bases"
        names = ("leaderworkersets.leaderworkerset.x-k8s.io", "disaggregatedsets.disaggregatedset.x-k8s.io")
        self.define_all(bases, names)
        for name in names:
            self.wait_defined(name)
        part = self.part("lws")
        part.start()
        for webhook in objects.lws_webhooks(part.ports[1], self.authority.certificate):
            self.api.create(webhook)

    def define_all(self, folder: Path, names: Collection[str]) -> None:
        """Create definitions from the files that controller-gen makes."""
        for name in names:
            resource, _, group = name.partition(".")
            self.define(folder / f"{group}_{resource}.yaml")

    def define(self, file: Path) -> None:
        """Create a CustomResourceDefinition from its file, byte for byte: one of 1.3 MB is too large for `kubectl apply`."""
        self.api.request("POST", CRDS, file.read_bytes(), "application/yaml")

    def wait_defined(self, name: str) -> None:
        """Wait until a defined kind is served."""
        self.wait(lambda: self.api.list(name, limit="1") is not None, 60, f"{name} to be served")

    def stop(self) -> None:
        """End everything; nothing is left. State is not worth a gentle end, so there is none."""
        for part in reversed(self.parts.values()):
            part.kill()
        if self.watchdog:
            watchdog.sweep(str(self.folder))  # also what a test has started with our environment
            self.watchdog.kill()
            self.watchdog.communicate()
            self.watchdog = None

    def keep_logs(self) -> Path | None:
        """Copy the logs to where they outlive the cluster; of the last five clusters that had trouble."""
        if not self.watchdog:
            return None
        kept = KEPT / self.folder.name
        shutil.copytree(self.folder / "logs", kept, dirs_exist_ok=True)
        if self.audit.path.exists():
            shutil.copy(self.audit.path, kept)
        for old in sorted(KEPT.iterdir(), key=lambda folder: folder.stat().st_mtime)[:-5]:
            shutil.rmtree(old, ignore_errors=True)
        return kept

    def logs(self, lines: int = 15) -> str:
        """The end of every part's log."""
        return "\n".join(f"--- {part.name}\n{part.tail(lines)}" for part in self.parts.values())

    def heal(self) -> None:
        """Start and resume every part that a test has left killed or paused."""
        for part in self.parts.values():
            if part.running():
                part.resume()
        for part in self.parts.values():
            part.start()

    # Using it

    def part(self, name: str) -> Part:
        """A program, to be paused, killed, started and restarted."""
        if name not in self.parts:
            raise ClusterError(f"this cluster has no {name}: it has {', '.join(self.names)}")
        return self.parts[name]

    def kubectl(
        self,
        *words: str | Path,
        input: str | bytes | None = None,  # noqa: A002
        as_: Path | None = None,
        check: bool = True,
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl, as the admin or with another kubeconfig."""
        command = [programs.binary("kubectl"), *(["--kubeconfig", str(as_)] if as_ else []), *map(str, words)]
        text = input.decode() if isinstance(input, bytes) else input
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=self.environment, timeout=60, check=False
        )
        if check and done.returncode:
            raise ClusterError(f"kubectl {' '.join(map(str, words))}: exit code {done.returncode}\n{done.stderr}")
        return done

    def apply(self, text: str | bytes, namespace: str | None = None) -> str:
        """Apply manifests as users do; what kubectl printed."""
        words = ["--namespace", namespace] if namespace else []
        return self.kubectl("apply", "--filename=-", *words, input=text).stdout

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        """Read one object."""
        return self.api.get(kind, name, namespace)

    def list(self, kind: str, namespace: str | None = None, **query: Any) -> Objects:
        """Read the objects of a kind; labelSelector="a=b" and others may be given."""
        return self.api.list(kind, namespace, **query)

    def wait(self, predicate: Callable[[], T], seconds: float, what: str) -> T:
        """Ask until the answer is true, and return it. No answer of the API server is not true yet; a part that died is an end."""
        end = time.monotonic() + seconds
        last: object = None
        while True:
            try:
                last = found = predicate()
                if found:
                    return found
            except (ApiError, OSError) as error:
                last = error
            for part in self.parts.values():
                part.check()
            if time.monotonic() > end:
                raise ClusterError(f"waited {seconds} s in vain for {what}; last seen: {last!r}")
            time.sleep(0.05)

    # Furniture

    def namespace(self, name: str | None = None) -> str:
        """Make a namespace that pods can be created in at once."""
        name = name or f"test-{next(self.namespaces)}"
        self.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        # The controller manager would make this too, some time later, and until then no pod is admitted.
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": name}}
        try:
            self.api.create(account)
        except ApiError as error:
            if error.status != 409:
                raise
        return name

    def discard(self, namespace: str, seconds: float = 30, gone: bool = False) -> None:
        """Delete a namespace and wait until its pods have given back their nodes, or until its name is free again."""
        self.api.delete("namespace", namespace)
        self.api.request("DELETE", self.api.path("pods", namespace), gracePeriodSeconds="0")
        self.wait(lambda: not self.list("pods", namespace), seconds, f"the pods of {namespace} to be gone")
        if gone:
            names = lambda: {one["metadata"]["name"] for one in self.list("namespaces")}  # noqa: E731
            self.wait(lambda: namespace not in names(), seconds, f"namespace {namespace} to be gone")

    def kept(self) -> set[str]:
        """The names of the namespaces that nobody has deleted."""
        return {
            one["metadata"]["name"] for one in self.list("namespaces") if "deletionTimestamp" not in one["metadata"]
        }

    def add_nodes(self, count: int, gpus: int = 8, labels: dict[str, str] | None = None, seconds: float = 60) -> Names:
        """Add nodes, and if there is somebody to care for them wait until pods may be placed there; their names."""
        names = self.create_nodes(count, gpus, labels or {})
        self.wait_nodes(names, seconds)
        return names

    def create_nodes(self, count: int, gpus: int, labels: dict[str, str]) -> Names:
        """Create nodes; their names."""
        names = [f"node-{next(self.nodes)}" for _ in range(count)]
        for name in names:
            self.api.create(objects.node(name, gpus, labels))
        return names

    def wait_nodes(self, names: Names, seconds: float) -> None:
        """Wait until they are Ready, which kwok says, and without taint, which the controller manager takes away."""
        if {"kwok", "controller-manager"} <= set(self.parts):
            self.wait(lambda: set(names) <= set(self.usable_nodes()), seconds, f"the {len(names)} nodes to be Ready")

    def usable_nodes(self) -> Names:
        """The nodes that are Ready and have no taint."""
        return [
            node["metadata"]["name"]
            for node in self.list("nodes")
            if not node["spec"].get("taints") and true_of(node, "Ready")
        ]

    # Roles

    def user(self, name: str, rules: Objects, namespace: str | None = None) -> Path:
        """A kubeconfig of a user who may do what the RBAC rules say, in one namespace or everywhere."""
        certificate, key = self.authority.client(f"user-{name}", name, "cluster:users")
        self.grant(objects.user(name), rules, namespace)
        user = {"client-certificate": str(certificate), "client-key": str(key)}
        return self.write_kubeconfig(f"user-{name}", user, namespace or "default")

    def service_account(self, name: str, namespace: str, rules: Objects, everywhere: bool = False) -> Path:
        """A kubeconfig of a ServiceAccount, which is made; its rules hold in its namespace, or everywhere."""
        metadata = {"name": name, "namespace": namespace}
        self.api.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        self.grant(objects.account(name, namespace), rules, None if everywhere else namespace)
        return self.write_kubeconfig(f"account-{namespace}-{name}", {"token": self.token(name, namespace)}, namespace)

    def token(self, name: str, namespace: str, seconds: int = 3600) -> str:
        """A fresh token of a ServiceAccount, as the kubelet puts one into a pod."""
        place = self.api.path("serviceaccounts", namespace, name) + "/token"
        return str(self.api.request("POST", place, {"spec": {"expirationSeconds": seconds}})["status"]["token"])

    def grant(self, subject: Object, rules: Objects, namespace: str | None = None) -> None:
        """Let a subject do what these rules say and no more, and wait until the API server heeds it."""
        title = ":".join(filter(None, ["cluster", subject.get("namespace"), subject["name"]]))
        self.api.apply(objects.role(title, rules, namespace))
        self.api.apply(objects.binding(title, subject, namespace))
        rule = next((rule for rule in rules if rule.get("resources")), None)
        if rule:
            review = objects.review(subject, rule, namespace)
            self.wait(lambda: self.api.create(review)["status"]["allowed"], 20, f"the rights of {title} to be in force")

    def write_kubeconfig(self, name: str, user: dict[str, str], namespace: str = "default") -> Path:
        """A kubeconfig in our folder."""
        path = self.folder / f"{name}.kubeconfig"
        return kubeconfig.write(path, self.server, self.authority.certificate, user, namespace)


def true_of(thing: Object, condition: str) -> bool:
    """Whether an object has a condition, and it is True."""
    conditions = thing.get("status", {}).get("conditions") or []
    return any(one["type"] == condition and one["status"] == "True" for one in conditions)
