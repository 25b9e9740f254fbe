"""Streams of rendered manifests, the same bytes for the same numbers: what the benchmarks read.

The mix is that of a platform's charts rendered by Helm: Deployments 35 %, ConfigMaps with block scalars 20 %,
ClusterRoles 18 %, Services 15 %, CustomResourceDefinitions 1.5 %, and InferenceServices for the rest. Each document
begins with Helm's `---` and `# Source:` lines. Definitions are some 55 kB each and too rare for a short stream, so a
short one comes to 1.4 kB a document and a long one to 2.2 kB.

Every generator yields text, a document at a time, so that a stream of any length needs the memory of one document.
`stored` puts a stream into a file once and returns its path.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

SEED = 20
SHARES = {"Deployment": 35.0, "ConfigMap": 20.0, "ClusterRole": 18.0, "Service": 15.0}
DEFINITIONS = 0.015
# Services of interest in the three streams that the budgets name; other lengths get the share of the longest.
SERVICES = {30: 4, 500: 50, 5_000: 467}

STREAMS = Path(__file__).resolve().parents[2] / ".programs" / "streams"

_TEAMS = ("search", "ranking", "assist", "vision", "speech", "billing", "ingest", "catalog", "gateway", "profile")
_ROLES = ("api", "worker", "cache", "proxy", "indexer", "exporter", "scheduler", "frontend", "router", "sync")
_MODELS = ("llama-3-1-405b-instruct-fp8", "deepseek-v3", "qwen3-235b-a22b", "mixtral-8x22b", "kimi-k2-instruct")
_GROUPS = ("", "apps", "batch", "networking.k8s.io", "policy", "autoscaling", "coordination.k8s.io")
_KINDS = ("pods", "services", "deployments", "jobs", "ingresses", "leases", "configmaps", "events", "secrets")
_VERBS = ("get", "list", "watch", "create", "update", "patch", "delete")
_NOTES = (
    "keep in step with the dashboard of the same name",
    "TODO: raise when the new nodes are in; see the capacity sheet",
    "don't lower this below 2: the budget needs one spare",
    'was "latest" until the outage in March',
    "ordered by name: diffs stay small",
    "given in seconds, not milliseconds",
)
_WORDS = (
    "the requested number of copies that should run at any time",
    "a label query over the objects that belong to this set",
    "an opaque value that clients must pass back unmodified",
    "defaults to the value of the cluster's settings when it is not given",
    "must be unique within a namespace; it's required when creating",
    "more info: https://example.com/docs/concepts#fields",
    "list of conditions, each with a type, a status and a reason",
    'either "Always", "IfNotPresent" or "Never"',
)


def mix(documents: int, seed: int = SEED) -> Iterator[str]:
    """Yields a stream of that many documents, InferenceServices among them."""
    services = SERVICES.get(documents, round(documents * SERVICES[5_000] / 5_000))
    return _stream(documents, services, seed)


def nothing(documents: int, seed: int = SEED) -> Iterator[str]:
    """Yields the same mix without InferenceServices; neither that word nor `PodGroup` occurs in it."""
    return _stream(documents, 0, seed)


def scaled(documents: int, seed: int = SEED) -> Iterator[str]:
    """Yields a mix in which all shares are the same at every length that 1,000 divides: for rows about growth."""
    return _stream(documents, documents // 1_000 * 93, seed)


def services(count: int, seed: int = SEED) -> Iterator[str]:
    """Yields a stream of that many InferenceServices and nothing else."""
    rng = random.Random(seed)
    return (_inference_service(rng, number) for number in range(count))


def resource_list(count: int, seed: int = SEED) -> Iterator[str]:
    """Yields one KRM ResourceList whose items are those of `services(count)`, written the way kyaml writes them."""
    import yaml

    # kyaml: keys in order, sequences at their key's column, texts of several lines as literal blocks, no folding.
    class Kyaml(yaml.CSafeDumper):
        pass

    def text(dumper: yaml.CSafeDumper, value: str) -> yaml.ScalarNode:
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)

    Kyaml.add_representer(str, text)
    yield "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n"
    for number, document in enumerate(services(count, seed)):
        item = yaml.load(document, yaml.CSafeLoader)
        item["metadata"].setdefault("annotations", {}).update(
            {
                "config.k8s.io/id": str(number + 1),
                "config.kubernetes.io/index": "0",
                "internal.config.kubernetes.io/annotations-migration-resource-id": str(number),
                "internal.config.kubernetes.io/id": str(number + 1),
                "internal.config.kubernetes.io/index": "0",
            }
        )
        yield yaml.dump([item], Dumper=Kyaml, default_flow_style=False, allow_unicode=True, width=1 << 30)


MAKERS: dict[str, Callable[[int, int], Iterator[str]]] = {
    "mix": mix,
    "nothing": nothing,
    "scaled": scaled,
    "services": services,
    "resource-list": resource_list,
}


def path_of(name: str, count: int, seed: int = SEED, folder: Path = STREAMS) -> Path:
    """Returns where that stream is stored: the name holds its numbers and a hash of this file."""
    source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()[:12]
    return folder / f"{name}-{count}-{seed}-{source}.yaml"


def stored(name: str, count: int, seed: int = SEED, folder: Path = STREAMS) -> Path:
    """Returns the file that holds the stream, written now if it is not there yet."""
    path = path_of(name, count, seed, folder)
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Another source hash means that this file was changed since: nobody will ask for the old stream again.
        for old in folder.glob(f"{name}-{count}-{seed}-*.yaml"):
            old.unlink()
        half = path.with_suffix(".part")
        with half.open("w", encoding="utf-8", newline="") as file:
            file.writelines(MAKERS[name](count, seed))
        half.replace(path)
    return path


def kinds_of(documents: int, of_interest: int) -> dict[str, int]:
    """Returns how many documents of each kind a stream of that length holds; the numbers add up to `documents`."""
    definitions = int(documents * DEFINITIONS)
    rest = documents - of_interest - definitions
    exact = {kind: rest * share / sum(SHARES.values()) for kind, share in SHARES.items()}
    counts = {kind: int(number) for kind, number in exact.items()}
    # The largest remainders take what rounding down left over.
    for kind in sorted(exact, key=lambda kind: counts[kind] - exact[kind])[: rest - sum(counts.values())]:
        counts[kind] += 1
    return {**counts, "CustomResourceDefinition": definitions, "InferenceService": of_interest}


def _stream(documents: int, of_interest: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    kinds = [kind for kind, count in kinds_of(documents, of_interest).items() for _ in range(count)]
    rng.shuffle(kinds)
    # The platform's own definition speaks of the kind at length without being one: once a stream, where both occur.
    own_definition = of_interest > 0
    for number, kind in enumerate(kinds):
        if kind == "CustomResourceDefinition":
            yield _definition(rng, number, own=own_definition)
            own_definition = False
        else:
            yield _WRITERS[kind](rng, number)


def _head(chart: str, template: str, api_version: str, kind: str) -> str:
    return f"---\n# Source: {chart}/templates/{template}.yaml\napiVersion: {api_version}\nkind: {kind}\n"


def _names(rng: random.Random, number: int) -> tuple[str, str, str]:
    team = rng.choice(_TEAMS)
    return team, rng.choice(_ROLES), f"{team}-{number}"


def _labels(rng: random.Random, chart: str, role: str, indent: str) -> str:
    version = f"{rng.randrange(9)}.{rng.randrange(30)}.{rng.randrange(10)}"
    lines = [
        f"helm.sh/chart: {chart}-{version}",
        f"app.kubernetes.io/name: {role}",
        f"app.kubernetes.io/instance: {chart}",
        f'app.kubernetes.io/version: "{version}"',
        "app.kubernetes.io/managed-by: Helm",
    ]
    return "".join(f"{indent}{line}\n" for line in lines)


def _note(rng: random.Random, indent: str, chance: float = 0.4) -> str:
    return f"{indent}# {rng.choice(_NOTES)}\n" if rng.random() < chance else ""


def _resources(rng: random.Random, indent: str, gpus: int = 0) -> str:
    gpu = f'{indent}    nvidia.com/gpu: "{gpus}"\n' if gpus else ""
    cpu, memory = rng.randrange(1, 64), rng.randrange(1, 512)
    return (
        f"{indent}resources:\n"
        f'{indent}  limits:\n{indent}    cpu: "{cpu}"\n{indent}    memory: {memory}Gi\n{gpu}'
        f"{indent}  requests:\n{indent}    cpu: {cpu * 500}m\n{indent}    memory: {memory}Gi\n{gpu}"
    )


def _deployment(rng: random.Random, number: int) -> str:
    chart, role, name = _names(rng, number)
    port = rng.choice((8080, 8443, 9090, 3000))
    arguments = ", ".join(f'"--{word}={rng.randrange(100)}"' for word in rng.sample(_ROLES, 3))
    extra = "".join(
        f"            - name: {rng.choice(_ROLES).upper()}_{key}\n"
        f'              value: "{rng.choice(("on", "1e3", "0777", "a # b", "http://localhost:8080/v1"))}"\n'
        for key in range(rng.randrange(1, 4))
    )
    return (
        _head(chart, f"{role}/deployment", "apps/v1", "Deployment")
        + f"metadata:\n  name: {name}\n  namespace: {chart}\n  labels:\n{_labels(rng, chart, role, '    ')}"
        + f"spec:\n{_note(rng, '  ')}  replicas: {rng.randrange(1, 9)}\n  revisionHistoryLimit: 3\n"
        + f"  selector:\n    matchLabels:\n      app.kubernetes.io/name: {role}\n"
        + f"      app.kubernetes.io/instance: {chart}\n"
        + f"  template:\n    metadata:\n      annotations:\n        checksum/config: {rng.randbytes(32).hex()}\n"
        + f"      labels:\n        app.kubernetes.io/name: {role}\n        app.kubernetes.io/instance: {chart}\n"
        + f"    spec:\n      serviceAccountName: {name}\n      securityContext: {{}}\n      containers:\n"
        + f"        - name: {role}\n{_note(rng, '          ')}"
        + f'          image: "registry.example.com/{chart}/{role}:{rng.randrange(9)}.{rng.randrange(40)}.0"\n'
        + f"          imagePullPolicy: IfNotPresent\n          args: [{arguments}]\n"
        + "          env:\n            - name: POD_NAME\n              valueFrom:\n                fieldRef:\n"
        + f"                  fieldPath: metadata.name\n{extra}"
        + f"          ports:\n            - name: http\n              containerPort: {port}\n"
        + "              protocol: TCP\n"
        + "          livenessProbe:\n            httpGet:\n              path: /healthz\n              port: http\n"
        + f"            periodSeconds: {rng.randrange(5, 30)}\n{_resources(rng, '          ')}"
        + "          volumeMounts:\n            - name: config\n              mountPath: /etc/config\n"
        + f"      volumes:\n        - name: config\n          configMap:\n            name: {name}\n"
        + "      nodeSelector:\n        kubernetes.io/os: linux  # the images hold nothing else\n"
    )


def _config_map(rng: random.Random, number: int) -> str:
    chart, role, name = _names(rng, number)
    settings = "".join(
        f"    {word}:\n      enabled: {rng.choice(('true', 'false'))}\n      # {rng.choice(_NOTES)}\n"
        f"      limit: {rng.randrange(1000)}\n      path: '/var/lib/{word}'\n"
        for word in rng.sample(_ROLES, rng.randrange(1, 4))
    )
    # A backslash before a line break is also how a double-quoted text goes on, so a reader must look twice.
    follow = " \\\n      " if rng.random() < 0.25 else " "
    return (
        _head(chart, f"{role}/configmap", "v1", "ConfigMap")
        + f"metadata:\n  name: {name}\n  namespace: {chart}\n  labels:\n{_labels(rng, chart, role, '    ')}"
        + f'data:\n  LOG_LEVEL: "{rng.choice(("info", "debug", "warn"))}"\n'
        + f"  MAX_RETRIES: '{rng.randrange(10)}'\n  config.yaml: |\n{settings}"
        + "  start.sh: |-\n    #!/bin/sh\n    set -eu\n\n    # wait for the database; it may take a while\n"
        + f"    until nc -z {chart}-db 5432; do\n      echo 'waiting for {chart}-db'; sleep {rng.randrange(1, 9)}\n"
        + '    done\n    if [ "${DEBUG:-0}" = "1" ]; then\n      set -x\n    fi\n'
        + f"    exec /app/{role}{follow}--config=/etc/config/config.yaml{follow}"
        + f'--listen=0.0.0.0:{rng.randrange(1024, 9999)}{follow}"$@"\n  message: >\n    This is {role} of {chart}.\n'
        + f"    Ask in #{chart}-oncall before you change it: it's shared.\n"
        + f'  rules.json: |\n    {{"version": {rng.randrange(9)}, "rules": [\n'
        + "".join(
            f'      {{"match": "^/{word}/.*$", "to": "http://{chart}-{word}:80", "weight": {rng.randrange(100)}}},\n'
            for word in rng.sample(_ROLES, 3)
        )
        + '      {"match": ".*", "to": null}\n    ]}\n'
    )


def _cluster_role(rng: random.Random, number: int) -> str:
    chart, role, name = _names(rng, number)
    rules = []
    for index in range(rng.randrange(3, 8)):
        group, kinds = rng.choice(_GROUPS), rng.sample(_KINDS, rng.randrange(1, 4))
        if index % 2:
            resources = ", ".join(f'"{kind}"' for kind in kinds)
            verbs = ", ".join(f'"{verb}"' for verb in rng.sample(_VERBS, rng.randrange(1, 5)))
            rules.append(f'  - apiGroups: ["{group}"]\n    resources: [{resources}]\n    verbs: [{verbs}, "*"]\n')
        else:
            rules.append(
                f'{_note(rng, "  ", 0.2)}  - apiGroups:\n      - "{group}"\n    resources:\n'
                + "".join(f"      - {kind}\n      - {kind}/status\n" for kind in kinds)
                + "    verbs:\n"
                + "".join(f"      - {verb}\n" for verb in rng.sample(_VERBS, rng.randrange(1, 5)))
            )
    return (
        _head(chart, f"{role}/rbac", "rbac.authorization.k8s.io/v1", "ClusterRole")
        + f"metadata:\n  name: {name}\n  labels:\n{_labels(rng, chart, role, '    ')}"
        + f'    rbac.example.com/aggregate-to-view: "true"\nrules:\n{"".join(rules)}'
    )


def _service(rng: random.Random, number: int) -> str:
    chart, role, name = _names(rng, number)
    return (
        _head(chart, f"{role}/service", "v1", "Service")
        + f"metadata:\n  name: {name}\n  namespace: {chart}\n  labels:\n{_labels(rng, chart, role, '    ')}"
        + f"  annotations: {{prometheus.io/scrape: 'true', prometheus.io/port: \"{rng.randrange(1024, 9999)}\"}}\n"
        + f"spec:\n  type: ClusterIP\n{_note(rng, '  ')}  ports:\n"
        + f"    - port: {rng.randrange(80, 9000)}\n      targetPort: http\n      protocol: TCP\n      name: http\n"
        + f"    - {{port: {rng.randrange(9000, 9999)}, targetPort: metrics, name: metrics}}\n"
        + f"  selector:\n    app.kubernetes.io/name: {role}\n    app.kubernetes.io/instance: {chart}\n"
    )


def _runner(rng: random.Random, indent: str, role: str, model: str, gpus: int) -> str:
    environment = "".join(
        f'{indent}  - name: {name}\n{indent}    value: "{value}"\n'
        for name, value in rng.sample(
            (
                ("NCCL_DEBUG", "INFO"),
                ("NCCL_IB_HCA", "mlx5_0,mlx5_1"),
                ("GLOO_SOCKET_IFNAME", "eth0"),
                ("SGLANG_TORCH_PROFILER_DIR", "/tmp/profile"),
                ("OMP_NUM_THREADS", "8"),
                ("HF_HUB_OFFLINE", "1"),
            ),
            2,
        )
    )
    return (
        f"{indent}name: ome-container\n{_note(rng, indent, 0.2)}"
        f"{indent}image: registry.example.com/serving/sglang:v0.{rng.randrange(4, 9)}.{rng.randrange(9)}-cu126\n"
        f"{indent}command: [python3, -m, sglang.launch_server]\n"
        f"{indent}args:\n{indent}  - --model-path=$(MODEL_PATH)\n{indent}  - --served-model-name\n"
        f"{indent}  - {model}\n{indent}  - --node-rank={0 if role == 'leader' else '$(LWS_WORKER_INDEX)'}\n"
        f'{indent}  - --tp-size\n{indent}  - "{gpus}"\n'
        f"{indent}env:\n{environment}{_resources(rng, indent, gpus)}"
    )


def _inference_service(rng: random.Random, number: int) -> str:
    chart, _, _ = _names(rng, number)
    model, gpus = rng.choice(_MODELS), rng.choice((4, 8))
    labels = f'    labels:\n      team: {chart}\n      tier: "{rng.randrange(4)}"\n' if rng.random() < 0.4 else ""
    selector = "      nodeSelector:\n        node.kubernetes.io/instance-type: BM.GPU.H100.8\n"
    return (
        _head(chart, f"models/{model}", "ome.io/v1beta1", "InferenceService")
        + f"metadata:\n  name: {chart}-{number}\n  namespace: {chart}\n"
        + f"  labels:\n    app.kubernetes.io/instance: {chart}\n{_note(rng, '  ')}"
        + f"spec:\n  model:\n    name: {model}\n  engine:\n    minReplicas: 1\n    maxReplicas: 1\n{labels}"
        + f"    leader:\n{selector if rng.random() < 0.3 else ''}      runner:\n"
        + _runner(rng, "        ", "leader", model, gpus)
        + f"    worker:\n      size: {rng.choice((1, 1, 1, 3, 7))}  # the leader is counted apart\n      runner:\n"
        + _runner(rng, "        ", "worker", model, gpus)
    )


def _definition(rng: random.Random, number: int, *, own: bool) -> str:
    if own:
        kind, singular, group = "InferenceService", "inferenceservice", "ome.io"
    else:
        singular = f"{rng.choice(_TEAMS)}{rng.choice(_ROLES)}{number}"
        kind, group = singular.capitalize(), "platform.example.com"
    properties = "".join(_property(rng, "                ", 0) for _ in range(13))
    return (
        _head("platform-crds", f"{group}_{singular}s", "apiextensions.k8s.io/v1", "CustomResourceDefinition")
        + "metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.16.5\n"
        + f"  name: {singular}s.{group}\nspec:\n  group: {group}\n  names:\n"
        + f"    kind: {kind}\n    listKind: {kind}List\n    plural: {singular}s\n    singular: {singular}\n"
        + "  scope: Namespaced\n  versions:\n    - name: v1beta1\n"
        + "      additionalPrinterColumns:\n        - jsonPath: .status.conditions[?(@.type=='Ready')].status\n"
        + "          name: Ready\n          type: string\n      schema:\n        openAPIV3Schema:\n"
        + f"          description: {kind} is the Schema for the {singular}s API\n          type: object\n"
        + "          properties:\n            spec:\n              type: object\n"
        + f"              properties:\n{properties}"
        + "      served: true\n      storage: true\n      subresources:\n        status: {}\n"
    )


def _property(rng: random.Random, indent: str, depth: int) -> str:
    name = f"{rng.choice(_ROLES)}{rng.choice(_TEAMS).capitalize()}{rng.randrange(1000)}"
    described = f"{indent}{name}:\n{indent}  description: |-\n" + "".join(
        f"{indent}    {rng.choice(_WORDS)}\n" for _ in range(rng.randrange(1, 4))
    )
    if depth == 3 or rng.random() < 0.3:
        return described + rng.choice(
            (
                f"{indent}  type: string\n{indent}  pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'\n",
                f"{indent}  type: integer\n{indent}  format: int32\n{indent}  minimum: 0\n",
                f"{indent}  anyOf:\n{indent}    - type: integer\n{indent}    - type: string\n"
                f"{indent}  x-kubernetes-int-or-string: true\n",
                f'{indent}  type: string\n{indent}  enum: ["", Always, Never]\n',
            )
        )
    inner = "".join(_property(rng, indent + "    ", depth + 1) for _ in range(rng.randrange(2, 4)))
    return f"{described}{indent}  type: object\n{indent}  properties:\n{inner}"


_WRITERS: dict[str, Callable[[random.Random, int], str]] = {
    "Deployment": _deployment,
    "ConfigMap": _config_map,
    "ClusterRole": _cluster_role,
    "Service": _service,
    "InferenceService": _inference_service,
}


if __name__ == "__main__":
    # A process of its own for each stream: see `run.py`, whose memory must stay small.
    sys.stdout.write(f"{stored(sys.argv[1], int(sys.argv[2]))}\n")
