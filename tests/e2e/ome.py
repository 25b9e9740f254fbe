"""OME 1.2.2 as a part of a cluster: its InferenceService controller and webhooks, from `tests/oracles/ome/manager`.

    with Cluster(lws=True) as cluster:
        ome = start(cluster)                             # a Part, to be paused, killed and restarted as the others
        cluster.add_nodes(4, labels=ready("qwen"))       # OME's pods go only where their model is said to be
        cluster.api.create(model("qwen"))

The definitions, rights, configuration and webhooks are OME's own files, from the folder of its Go module.
"""

from __future__ import annotations

import base64
import ssl
from pathlib import Path

from tests.e2e.cluster import ApiError, Cluster, ClusterError, Part, modules, objects, programs
from tests.e2e.cluster.api import Object
from tests.e2e.cluster.audit import PARTS
from tests.e2e.cluster.part import Program

OURS = Path(__file__).resolve().parents[1] / "oracles" / "ome"
NAME = "ome"  # of the part, of the user it is to the API server, and of its namespace
WEBHOOKS = ("/mutate-ome-io-v1beta1-inferenceservice", "/validate-ome-io-v1beta1-inferenceservice")


def start(cluster: Cluster) -> Part:
    """Install OME and run it; it ends with the cluster."""
    cluster.part("lws")  # without LeaderWorkerSets in the cluster OME would not look for any
    programs.binary("ome-manager")
    theirs = modules.source(str(OURS), "sigs.k8s.io/ome")
    definitions = sorted((theirs / "config/crd/full").glob("ome.io_*.yaml"))
    for file in definitions:
        cluster.define(file)
    cluster.namespace(NAME)
    for thing in modules.documents(theirs / "config/configmap/inferenceservice.yaml"):
        cluster.api.create(thing)
    [rights] = modules.documents(theirs / "config/rbac/role.yaml")
    cluster.grant(objects.user(NAME), rights["rules"])
    for file in definitions:
        group, _, resource = file.stem.partition("_")
        cluster.wait_defined(f"{resource}.{group}")
    part = Part(program(cluster), cluster.environment, cluster.folder / "logs")
    cluster.parts[NAME] = part
    part.start()
    for configuration in webhooks(theirs, part.ports[1], cluster.authority.certificate):
        cluster.api.create(configuration)
    # The API server hears of them some time later, and until then takes services as they are.
    cluster.wait(lambda: called(cluster), 30, "the API server to call OME's webhooks")
    return part


def called(cluster: Cluster) -> bool:
    """Whether both webhooks have a say: one fills in what is missing, the other refuses a name that begins with a digit."""
    service: Object = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "spec": {}}
    made = cluster.api.create({**service, "metadata": {"name": "x", "namespace": NAME}}, dryRun="All")
    try:
        cluster.api.create({**service, "metadata": {"name": "7", "namespace": NAME}}, dryRun="All")
    except ApiError as error:
        return "annotations" in made["metadata"] and "invalid InferenceService name" in error.message
    return False


def program(cluster: Cluster) -> Program:
    """How it is started."""
    certificate, key = cluster.authority.client(NAME, NAME, PARTS)
    user = {"client-certificate": str(certificate), "client-key": str(key)}
    kubeconfig = cluster.write_kubeconfig(NAME, user)
    pair = cluster.folder / "ome-webhook"
    pair.mkdir()
    for ours, its in zip(cluster.authority.server("ome-webhook"), ("tls.crt", "tls.key"), strict=True):
        (pair / its).write_text(ours.read_text())
    trust = ssl.create_default_context(cafile=str(cluster.authority.certificate))

    def command(ports: list[int]) -> list[str]:
        return [
            programs.binary("ome-manager"),
            f"--kubeconfig={kubeconfig}",
            f"--health-probe-port={ports[0]}",
            f"--webhook-port={ports[1]}",
            f"--webhook-cert-dir={pair}",
        ]

    def healthy(ports: list[int]) -> bool:
        # Without a question in it a webhook answers 200 or 400; before it is there, 404.
        return programs.plain("/readyz")(ports[:1]) and all(
            programs.status(ports[1], path, trust) != 404 for path in WEBHOOKS
        )

    return Program(NAME, 2, command, healthy)


def webhooks(theirs: Path, port: int, authority: Path) -> list[Object]:
    """The webhooks of InferenceServices, called at 127.0.0.1 and not through a Service."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    found = []
    for configuration in modules.documents(theirs / "config/webhook/manifests.yaml"):
        kept = [one for one in configuration["webhooks"] if one["clientConfig"]["service"]["path"] in WEBHOOKS]
        for webhook in kept:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
        if kept:
            found.append({**configuration, "webhooks": kept})
    if len(found) != len(WEBHOOKS):
        raise ClusterError(f"OME's manifests have {len(found)} of its {len(WEBHOOKS)} webhooks")
    return found


def model(name: str) -> Object:
    """A model for the whole cluster: OME refuses a service whose model is not there."""
    spec = {"modelFormat": {"name": "safetensors"}, "storage": {"storageUri": f"hf://{name}"}}
    return {"apiVersion": "ome.io/v1beta1", "kind": "ClusterBaseModel", "metadata": {"name": name}, "spec": spec}


def ready(name: str) -> dict[str, str]:
    """The labels of a node that has the model: OME's pods select it, and here is no agent to set it."""
    return {f"models.ome.io/clusterbasemodel.{name}": "Ready"}
