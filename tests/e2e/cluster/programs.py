"""How each program of the control plane is started."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import audit, modules
from .errors import ClusterError
from .part import Program

BIN = Path(__file__).resolve().parents[3] / ".programs" / "bin"
BINARIES = {
    "etcd": "etcd",
    "apiserver": "kube-apiserver",
    "controller-manager": "kube-controller-manager",
    "scheduler": "kube-scheduler",
    "podgroup-controller": "podgroup-controller",
    "kwok": "kwok",
    "lws": "lws",
}
NAMES = tuple(BINARIES)
USERS = {  # who they are to the API server
    "controller-manager": "system:kube-controller-manager",
    "scheduler": "system:kube-scheduler",
    "podgroup-controller": "podgroup-controller",
    "kwok": "kwok",
    "lws": "lws",
}


def binary(name: str) -> str:
    """Where a program is."""
    path = BIN / name
    if not path.exists():
        raise ClusterError(f"there is no {name}: run 'make e2e', it brings the real programs")
    return str(path)


@dataclass(frozen=True)
class Programs:
    """The programs of one cluster; `folder` has their certificates and kubeconfigs, and gets what they write."""

    folder: Path
    coscheduling: dict[str, Any]

    def __getitem__(self, name: str) -> Program:
        """One program by the name of its part."""
        programs = {
            "etcd": Program("etcd", 0, self.etcd, self.etcd_healthy),
            "apiserver": Program("apiserver", 1, self.apiserver, self.secure("/readyz")),
            "controller-manager": Program("controller-manager", 1, self.controller_manager, self.secure("/healthz")),
            "scheduler": Program("scheduler", 1, self.scheduler, self.secure("/readyz")),
            "podgroup-controller": Program("podgroup-controller", 1, self.podgroup_controller, plain("/readyz")),
            "kwok": Program("kwok", 0, self.kwok, lambda ports: True),  # the nodes tell, once they are Ready
            "lws": Program("lws", 2, self.lws, self.lws_healthy),
        }
        return programs[name]

    def certificate(self, name: str) -> str:
        """A file of the authority."""
        return str(self.folder / "certificates" / name)

    def kubeconfig(self, name: str) -> str:
        """A part's kubeconfig."""
        return str(self.folder / f"{name}.kubeconfig")

    def file(self, name: str, content: Any) -> str:
        """Write a configuration; JSON is YAML."""
        path = self.folder / name
        path.write_text(json.dumps(content, indent=1))
        return str(path)

    def serving(self, port: int) -> list[str]:
        """The flags of Kubernetes' programs for their own server."""
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={port}",
            f"--tls-cert-file={self.certificate('server.crt')}",
            f"--tls-private-key-file={self.certificate('server.key')}",
        ]

    def etcd(self, ports: list[int]) -> list[str]:
        """On sockets in our folder: no port that a stranger could have, and nobody else's etcd by mistake."""
        nowhere = "http://127.0.0.1:1"  # it wants to advertise something, and nobody asks
        return [
            binary("etcd"),
            "--name=it",
            f"--data-dir={self.folder}/etcd",
            "--unsafe-no-fsync",
            "--log-level=warn",
            f"--listen-client-urls=unix://{self.folder}/etcd.sock",
            f"--listen-peer-urls=unix://{self.folder}/peer.sock",
            f"--advertise-client-urls={nowhere}",
            f"--initial-advertise-peer-urls={nowhere}",
            f"--initial-cluster=it={nowhere}",
        ]

    def etcd_healthy(self, ports: list[int]) -> bool:
        """Whether it answers."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(2)
            connection.connect(f"{self.folder}/etcd.sock")
            connection.sendall(b"GET /health HTTP/1.0\r\n\r\n")
            return connection.recv(4096).startswith(b"HTTP/1.0 200")

    def apiserver(self, ports: list[int]) -> list[str]:
        """With RBAC, admission policies and an audit log."""
        return [
            binary("kube-apiserver"),
            *self.serving(ports[0]),
            f"--etcd-servers=unix://{self.folder}/etcd.sock",
            f"--client-ca-file={self.certificate('ca.crt')}",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self.certificate('accounts.pub')}",
            f"--service-account-signing-key-file={self.certificate('accounts.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--endpoint-reconciler-type=none",
            "--allow-privileged=true",
            "--feature-gates=MutatingAdmissionPolicy=true",
            "--runtime-config=admissionregistration.k8s.io/v1beta1=true",
            f"--audit-policy-file={self.file('audit-policy.yaml', audit.POLICY)}",
            f"--audit-log-path={self.folder}/audit.log",
            "--audit-log-maxsize=4000",
        ]

    def controller_manager(self, ports: list[int]) -> list[str]:
        """All controllers. Nodes have no heartbeat here, so they are believed for a day."""
        return [
            binary("kube-controller-manager"),
            *self.serving(ports[0]),
            f"--kubeconfig={self.kubeconfig('controller-manager')}",
            f"--service-account-private-key-file={self.certificate('accounts.key')}",
            f"--root-ca-file={self.certificate('ca.crt')}",
            "--use-service-account-credentials=true",
            "--leader-elect=false",
            "--node-monitor-grace-period=24h",
            "--kube-api-qps=500",
            "--kube-api-burst=500",
        ]

    def scheduler(self, ports: list[int]) -> list[str]:
        """Two profiles. One queue serves both, so both name its order with equal arguments, the gang profile first."""
        order = {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]}
        with_gangs = {"queueSort": order, "multiPoint": {"enabled": [{"name": "Coscheduling"}]}}
        without = {"queueSort": order}
        arguments = [{"name": "Coscheduling", "args": self.coscheduling}]
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": self.kubeconfig("scheduler"), "qps": 500, "burst": 500},
            "leaderElection": {"leaderElect": False},
            "profiles": [
                {"schedulerName": "scheduler-plugins-scheduler", "plugins": with_gangs, "pluginConfig": arguments},
                {"schedulerName": "default-scheduler", "plugins": without, "pluginConfig": arguments},
            ],
        }
        return [binary("kube-scheduler"), *self.serving(ports[0]), f"--config={self.file('scheduler.yaml', config)}"]

    def podgroup_controller(self, ports: list[int]) -> list[str]:
        """It fills the status of PodGroups; gangs do not need it."""
        return [
            binary("podgroup-controller"),
            f"--kubeconfig={self.kubeconfig('podgroup-controller')}",
            "--metricsAddr=0",
            f"--probeAddr=127.0.0.1:{ports[0]}",
        ]

    def kwok(self, ports: list[int]) -> list[str]:
        """Plays the kubelet of every node: what is bound runs at once. Its own fast stages."""
        stages = modules.source("kwok", "sigs.k8s.io/kwok") / "kustomize" / "stage"
        files = [*(stages / "node" / "fast").glob("node-*.yaml"), *(stages / "pod" / "fast").glob("pod-*.yaml")]
        return [
            binary("kwok"),
            f"--kubeconfig={self.kubeconfig('kwok')}",
            "--manage-all-nodes=true",
            *(f"--config={file}" for file in sorted(files)),
        ]

    def lws(self, ports: list[int]) -> list[str]:
        """The LeaderWorkerSet controller and its webhooks."""
        probe, webhook = ports
        pair = self.folder / "webhook"
        pair.mkdir(exist_ok=True)
        for ours, its in (("server.crt", "tls.crt"), ("server.key", "tls.key")):
            (pair / its).write_text(Path(self.certificate(ours)).read_text())
        config = {
            "apiVersion": "config.lws.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{probe}"},
            "webhook": {"host": "127.0.0.1", "port": webhook, "certDir": str(pair)},
        }
        return [
            binary("lws"),
            f"--kubeconfig={self.kubeconfig('lws')}",
            f"--config={self.file('lws.yaml', config)}",
            "--zap-log-level=info",
        ]

    def lws_healthy(self, ports: list[int]) -> bool:
        """Its probe says so before the webhooks are there; the last of them to come is asked too."""
        probe, webhook = ports
        last = "/validate-disaggregatedset-x-k8s-io-v1-disaggregatedset"
        return plain("/readyz")([probe]) and status(webhook, last, self.trust()) != 404

    def secure(self, path: str) -> Any:
        """A check by HTTPS."""
        return lambda ports: status(ports[0], path, self.trust()) == 200

    def trust(self) -> ssl.SSLContext:
        """Believe our authority and no other."""
        return ssl.create_default_context(cafile=self.certificate("ca.crt"))


def plain(path: str) -> Any:
    """A check by HTTP."""
    return lambda ports: status(ports[0], path) == 200


def status(port: int, path: str, trust: ssl.SSLContext | None = None) -> int:
    """Ask for a page; the status of the answer."""
    connection: http.client.HTTPConnection
    if trust:
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=trust, timeout=2)
    else:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except http.client.HTTPException:
        return 0
    finally:
        connection.close()
