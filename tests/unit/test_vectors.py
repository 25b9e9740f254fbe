"""OME's own vectors, row for row, through the whole program: what its code, its tests and its documents say comes out.

A row names the section of the reference that it is from: 2 names, 3 when there is a PodGroup (3.1 multi-pod, 3.2 size of
the worker, 3.3 number of Instances), 4 timeout (4.1 where it is from, 4.2 cluster settings, 4.3 arithmetic), 5 scheduler
names, 6 topology key, 14 what OME's unit tests pin (14.1 build, 14.4 fill of scheduler names, 14.5 settings), 15 whole
cases. Expectations are written from there, never from a run. The end of a test run says how many rows of each section ran.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
import yaml

from postrender import pipeline
from postrender.gangs import names
from postrender.options import Options, Source
from tests.properties.reading import DUMPER, LOADER
from tests.properties.tally import Tally


class Rows(Tally):
    """How many rows of each section ran to their end."""

    def heading(self) -> str:
        return self.title

    def lines(self) -> list[str]:
        sections = sorted(self.counts, key=lambda section: [int(part) for part in section.split(".")])
        return [
            f"{self.title}: " + (", ".join(f"§{section} {self.counts[section]} rows" for section in sections) or "none")
        ]


ROWS = Rows("vectors")

# A row that holds for engine and decoder alike says COMPONENT, and is run for both.
EITHER = "COMPONENT"
COMPONENTS = ("engine", "decoder")
BOTH = "COMPONENT: {leader: {}, worker: {}}"
CHART = Options()
KUSTOMIZE = Options(ome_install="kustomize")
NO_SETTINGS = Options(ome_install="none")


def document(kind: str, metadata: dict[str, Any], spec: dict[str, Any]) -> str:
    value = {"apiVersion": "ome.io/v1beta1", "kind": kind, "metadata": metadata, "spec": spec}
    return yaml.dump(value, Dumper=DUMPER, sort_keys=False)


def service(spec: str, name: str = "llama", namespace: str = "prod") -> str:
    """Return an InferenceService of the runtime `rt`; without an engine OME takes none, so it always has one."""
    said = yaml.load(spec, LOADER)
    spec_of = {"runtime": {"name": "rt"}, "engine": {}, **said}
    return document("InferenceService", {"name": name, "namespace": namespace}, spec_of)


def runtime(spec: str = "{}") -> str:
    return document("ClusterServingRuntime", {"name": "rt"}, yaml.load(spec, LOADER)) + "---\n"


def replica(spec: str, name: str = "pool", namespace: str = "prod") -> str:
    """Return a standalone InferenceReplica."""
    return document("InferenceReplica", {"name": name, "namespace": namespace}, yaml.load(spec, LOADER))


def config(lifecycle: str | None) -> str:
    """Return OME's ConfigMap with this text under `lifecycle`; None: without the key."""
    value = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config", "namespace": "ome"},
        "data": {"deploy": "{}"} if lifecycle is None else {"lifecycle": lifecycle},
    }
    return yaml.safe_dump(value, sort_keys=False) + "---\n"


def gang(
    base: str,
    component: str,
    index: int,
    members: int,
    seconds: int | None,
    key: str = "",
    namespace: str = "prod",
    kind: str = "InferenceService",
    name: str = "",
) -> dict[str, Any]:
    """Return the whole PodGroup of an Instance; nothing more may stand in it."""
    annotations = {"postrender/for": f"{kind}/{base}"}
    if key:
        annotations["ome.io/topology-key"] = key
    spec = {"minMember": members}
    if seconds is not None:
        spec["scheduleTimeoutSeconds"] = seconds
    labels = {
        "component": component,
        "ome.io/inferenceservice": base,
        "ome.io/instance-index": str(index),
        "ome.io/managed-by": "OMENative",
    }
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name or f"{base}-{component}-{index}",
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
    }


def llama(members: int, seconds: int | None = 600, key: str = "", index: int = 0) -> dict[str, Any]:
    return gang("llama", EITHER, index, members, seconds, key)


def pool(members: int, seconds: int | None = 600, key: str = "", index: int = 0) -> dict[str, Any]:
    return gang("pool", "engine", index, members, seconds, key, kind="InferenceReplica")


def render(text: str, options: Options) -> pipeline.Rendered:
    return pipeline.render(text.encode(), options)


def pod_groups(data: bytes) -> list[dict[str, Any]]:
    found = [item for item in yaml.load_all(data, LOADER) if item["kind"] == "PodGroup"]
    return sorted(found, key=lambda item: str(item["metadata"]["name"]))


def codes(rendered: pipeline.Rendered) -> list[str]:
    return [finding.code for finding in rendered.findings]


def mark(row: Any) -> str:
    return f"{row.section} {row.what}"


# Section 2: base, component, index, name. A base that no API server takes as a name (longer than 63) is asked of the rule alone.
LONG = "example-tenant-production-very-long-inference-service-name-v2"
NAMES = [
    ("llama", "engine", 3, "llama-engine-3"),
    ("llama-70b", "decoder", 1, "llama-70b-decoder-1"),
    ("llama-70b-instruct", "engine", 12, "llama-70b-instruct-engine-12"),
    ("x" * 54, "engine", 0, "x" * 54 + "-engine-0"),
    ("x" * 55, "engine", 0, "a2976adb-" + "x" * 45 + "-engine-0"),
    ("x" * 70, "engine", 12, "af2b1358-" + "x" * 44 + "-engine-12"),
    ("x" * 70, "engine", 13, "c935453f-" + "x" * 44 + "-engine-13"),
    (LONG, "engine", 0, "d1443aa7-roduction-very-long-inference-service-name-v2-engine-0"),
    (LONG, "decoder", 10, "e411c9fe-duction-very-long-inference-service-name-v2-decoder-10"),
    ("model-00-" + "y" * 50, "engine", 0, "a48c0f43-" + "y" * 45 + "-engine-0"),
    ("q" * 20 + "-" + "z" * 44, "engine", 0, "a6402499--" + "z" * 44 + "-engine-0"),
]


@pytest.mark.parametrize(("base", "component", "index", "name"), NAMES)
def test_names(base: str, component: str, index: int, name: str) -> None:
    assert names.pod_group(base, component, index) == name
    if len(base) <= 63:
        spec = f"{component}: {{minReplicas: {index + 1}, leader: {{}}, worker: {{size: 1}}}}"
        found = pod_groups(render(runtime() + service(spec, base), CHART).data)
        assert gang(base, component, index, 2, 600, name=name) in found
        assert len(found) == index + 1
    ROWS.add("2")


class Row(NamedTuple):
    """A stream, and the PodGroups that come of it; none: the stream comes out as it came in.

    `refused` is the error that keeps everything back; `unpaired`: a leader or a worker stands alone, which is said.
    """

    section: str
    what: str
    stream: str
    groups: tuple[dict[str, Any], ...] = ()
    options: Options = CHART
    refused: str = ""
    unpaired: bool = False


KEY = "network.example.com/fabric-domain"
TPU = "cloud.google.com/gke-tpu-partition-2x2x2-id"
RUNNERS = "runners: [{name: leader, size: 1, template: {}}, {name: worker, size: %s, template: {}}]"

MULTI_POD = [
    Row("3.1", "leader and worker of the service", runtime() + service(BOTH), (llama(2),)),
    Row("3.1", "leader and worker of the runtime", runtime("COMPONENTConfig: {leader: {}, worker: {}}") + service("COMPONENT: {}"), (llama(2),)),
    Row("3.1", "leader of the service, worker of the runtime", runtime("COMPONENTConfig: {worker: {size: 2}}") + service("COMPONENT: {leader: {}}"), (llama(3),), unpaired=True),
    Row("3.1", "worker of the service, leader of the runtime", runtime("COMPONENTConfig: {leader: {}}") + service("COMPONENT: {worker: {size: 2}}"), (llama(3),), unpaired=True),
    Row("3.1", "neither", runtime() + service("COMPONENT: {minReplicas: 2}")),
    Row("3.1", "a router has neither", runtime("routerConfig: {leader: {}, worker: {size: 1}}") + service("router: {}")),
    Row("3.1", "minMember is 1 + workers", runtime() + service("COMPONENT: {leader: {}, worker: {size: 15}}"), (llama(16),)),
    Row("3.1", "InferenceReplica, default", replica("{component: engine, runners: [{name: default, size: 1, template: {}}]}")),
    Row("3.1", "InferenceReplica, leader and worker", replica("component: engine\n" + RUNNERS % 3), (pool(4),)),
    Row("3.1", "InferenceReplica, the leader is one whatever it says", replica("{component: engine, runners: [{name: leader, size: 5, template: {}}, {name: worker, size: 2, template: {}}]}"), (pool(3),)),
]  # fmt: skip

SIZES = [
    Row("3.2", "the service's beats the runtime's", runtime("COMPONENTConfig: {leader: {}, worker: {size: 3}}") + service("COMPONENT: {worker: {size: 5}, leader: {}}"), (llama(6),)),
    Row("3.2", "the runtime's where the service has none", runtime("COMPONENTConfig: {leader: {}, worker: {size: 3}}") + service(BOTH), (llama(4),)),
    Row("3.2", "1 where nobody has one", runtime("COMPONENTConfig: {leader: {}, worker: {}}") + service(BOTH), (llama(2),)),
    Row("3.2", "absent, absent", runtime("COMPONENTConfig: {runner: {name: ome-container}}") + service("COMPONENT: {}")),
    Row("3.2", "present, present, unset", runtime() + service(BOTH), (llama(2),)),
    Row("3.2", "present, present, 1", runtime() + service("COMPONENT: {leader: {}, worker: {size: 1}}"), (llama(2),)),
    Row("3.2", "present, present, 7", runtime() + service("COMPONENT: {leader: {}, worker: {size: 7}}"), (llama(8),)),
    # OME's webhook rejects these: nothing of it is left to be deployed.
    Row("3.2", "0", runtime() + service("COMPONENT: {leader: {}, worker: {size: 0}}"), refused="invalid-field"),
    Row("3.2", "0 hides the runtime's", runtime("COMPONENTConfig: {leader: {}, worker: {size: 3}}") + service("COMPONENT: {worker: {size: 0}, leader: {}}"), refused="invalid-field"),
    Row("3.2", "0 of the runtime", runtime("COMPONENTConfig: {leader: {}, worker: {size: 0}}") + service("COMPONENT: {}"), refused="invalid-field"),
    Row("3.2", "negative", runtime() + service("COMPONENT: {leader: {}, worker: {size: -1}}"), refused="invalid-field"),
    Row("3.2", "no integer", runtime() + service("COMPONENT: {leader: {}, worker: {size: '2'}}"), refused="invalid-field"),
    Row("3.2", "the largest sum", runtime() + service("COMPONENT: {leader: {}, worker: {size: 2147483646}}"), (llama(2147483647),)),
    Row("3.2", "a sum that overflows", runtime() + service("COMPONENT: {leader: {}, worker: {size: 2147483647}}"), refused="invalid-field"),
    Row("3.2", "leader alone", runtime() + service("COMPONENT: {leader: {}}"), unpaired=True),
    Row("3.2", "leader alone, of the runtime", runtime("COMPONENTConfig: {leader: {}}") + service("COMPONENT: {}"), unpaired=True),
    Row("3.2", "worker alone", runtime() + service("COMPONENT: {worker: {size: 2}}"), unpaired=True),
    Row("3.2", "worker alone, of the runtime", runtime("COMPONENTConfig: {worker: {size: 2}}") + service("COMPONENT: {}"), unpaired=True),
    Row("3.2", "pairing looks at the service's own blocks", runtime("COMPONENTConfig: {leader: {}, worker: {size: 2}}") + service("COMPONENT: {leader: {}}"), (llama(3),), unpaired=True),
    Row("3.2", "empty blocks take the runtime's", runtime("COMPONENTConfig: {leader: {runner: {name: a}}, worker: {size: 4, runner: {name: a}}}") + service(BOTH), (llama(5),)),
]  # fmt: skip

# Left out of 3.3: where indices go after an update, a migration or a scale-down. That is a live cluster's.
# Left out of 3.3: replicas.defaultMinReplicas of the ConfigMap's `deploy` entry, whose shape is not known; OME installs 1 or none.
INSTANCES = [
    Row("3.3", "0 to R-1", runtime() + service("COMPONENT: {minReplicas: 3, leader: {}, worker: {size: 2}}"), tuple(llama(3, index=index) for index in range(3))),
    Row("3.3", "unset is 1", runtime() + service(BOTH), (llama(2),)),
    Row("3.3", "the runtime's", runtime("COMPONENTConfig: {minReplicas: 2}") + service(BOTH), (llama(2), llama(2, index=1))),
    Row("3.3", "the service's beats the runtime's", runtime("COMPONENTConfig: {minReplicas: 3}") + service("COMPONENT: {minReplicas: 2, leader: {}, worker: {}}"), (llama(2), llama(2, index=1))),
    Row("3.3", "0 is 1", runtime() + service("COMPONENT: {minReplicas: 0, leader: {}, worker: {}}"), (llama(2),)),
    Row("3.3", "0 of the runtime is 1", runtime("COMPONENTConfig: {minReplicas: 0}") + service(BOTH), (llama(2),)),
    Row("3.3", "0 hides the runtime's", runtime("COMPONENTConfig: {minReplicas: 3}") + service("COMPONENT: {minReplicas: 0, leader: {}, worker: {}}"), (llama(2),)),
    Row("3.3", "maxReplicas changes nothing", runtime() + service("COMPONENT: {minReplicas: 2, maxReplicas: 5, leader: {}, worker: {}}"), (llama(2), llama(2, index=1))),
    Row("3.3", "maxReplicas alone changes nothing", runtime("COMPONENTConfig: {maxReplicas: 4}") + service(BOTH), (llama(2),)),
    Row("3.3", "InferenceReplica, unset is 1", replica("component: engine\n" + RUNNERS % 1), (pool(2),)),
    Row("3.3", "InferenceReplica, 0 is 1", replica("component: engine\nreplicas: 0\n" + RUNNERS % 1), (pool(2),)),
    Row("3.3", "InferenceReplica, 3", replica("component: engine\nreplicas: 3\n" + RUNNERS % 1), tuple(pool(2, index=index) for index in range(3))),
]  # fmt: skip


def ready(duration: str) -> str:
    return service(f"COMPONENT: {{leader: {{}}, worker: {{}}, lifecycle: {{instanceReadyTimeout: '{duration}'}}}}")


FIVE = config('{"instanceReadyTimeout": "5m", "gangScheduleTimeout": {"min": "60s", "max": "600s"}}')
RUNTIME_4M = runtime("COMPONENTConfig: {lifecycle: {instanceReadyTimeout: 4m}}")
TIMEOUTS = [
    Row("4.1", "the service's beats the runtime's and the cluster's", FIVE + RUNTIME_4M + ready("3m"), (llama(2, 180),)),
    Row("4.1", "the runtime's beats the cluster's", FIVE + RUNTIME_4M + service(BOTH), (llama(2, 240),)),
    Row("4.1", "the cluster's", FIVE + runtime() + service(BOTH), (llama(2, 300),)),
    Row("4.1", "none", config("{}") + runtime() + service(BOTH), (llama(2, None),)),
    Row("4.1", "none, clamped", config('{"gangScheduleTimeout": {"min": "60s", "max": "600s"}}') + runtime() + service(BOTH), (llama(2, 60),)),
    Row("4.1", "30m", runtime() + ready("30m"), (llama(2, 1800),), NO_SETTINGS),
    Row("4.1", "1h30m", runtime() + ready("1h30m"), (llama(2, 5400),), NO_SETTINGS),
    Row("4.1", "90s", runtime() + ready("90s"), (llama(2, 90),), NO_SETTINGS),
    Row("4.1", "ms", runtime() + ready("3000ms"), (llama(2, 3),), NO_SETTINGS),
    Row("4.1", "us", runtime() + ready("2000000us"), (llama(2, 2),), NO_SETTINGS),
    Row("4.1", "ns", runtime() + ready("1500000000ns"), (llama(2, 1),), NO_SETTINGS),
    Row("4.1", "no d", runtime() + ready("1d"), refused="invalid-field"),
    Row("4.1", "no bare number", runtime() + ready("30"), refused="invalid-field"),
    Row("4.1", "0s hides the runtime's", FIVE + RUNTIME_4M + ready("0s"), (llama(2, 300),)),
    Row("4.1", "negative hides the runtime's", FIVE + RUNTIME_4M + ready("-3m"), (llama(2, 300),)),
    Row("4.1", "0s of the runtime", FIVE + runtime("COMPONENTConfig: {lifecycle: {instanceReadyTimeout: 0s}}") + service(BOTH), (llama(2, 300),)),
    Row("4.1", "spec.lifecycle is no place", FIVE + runtime() + service(BOTH + "\nlifecycle: {instanceReadyTimeout: 3m}"), (llama(2, 300),)),
    Row("4.1", "another field of lifecycle leaves the runtime's", FIVE + RUNTIME_4M + service("COMPONENT: {leader: {}, worker: {}, lifecycle: {minReadySeconds: 5}}"), (llama(2, 240),)),
    Row("4.1", "InferenceReplica, its own", FIVE + replica("component: engine\nlifecycle: {instanceReadyTimeout: 3m}\n" + RUNNERS % 1), (pool(2, 180),)),
    Row("4.1", "InferenceReplica, the cluster's", FIVE + replica("component: engine\n" + RUNNERS % 1), (pool(2, 300),)),
    Row("4.1", "InferenceReplica, 0s", FIVE + replica("component: engine\nlifecycle: {instanceReadyTimeout: 0s}\n" + RUNNERS % 1), (pool(2, 300),)),
    # Settings are read again each time: what an earlier run made follows them.
    Row("4.2", "a change updates PodGroups that are there", FIVE + runtime() + yaml.safe_dump(gang("llama", "engine", 0, 2, 600)) + "---\n" + service("engine: {leader: {}, worker: {}}"), (gang("llama", "engine", 0, 2, 300),)),
]  # fmt: skip

# Left out of 6: the live override, which rests on the pods of a cluster; a generator uses the desired key.
TOPOLOGY = [
    Row("6", "the service's", runtime() + service(f"COMPONENT: {{topologyKey: {KEY}, leader: {{}}, worker: {{}}}}"), (llama(2, key=KEY),)),
    Row("6", "the runtime's", runtime(f"COMPONENTConfig: {{topologyKey: {KEY}}}") + service(BOTH), (llama(2, key=KEY),)),
    Row("6", "the service's beats the runtime's", runtime(f"COMPONENTConfig: {{topologyKey: {TPU}}}") + service(f"COMPONENT: {{topologyKey: {KEY}, leader: {{}}, worker: {{}}}}"), (llama(2, key=KEY),)),
    Row("6", "none", runtime() + service(BOTH), (llama(2),)),
    Row("6", "empty", runtime() + service("COMPONENT: {topologyKey: '', leader: {}, worker: {}}"), (llama(2),)),
    Row("6", "empty hides the runtime's", runtime(f"COMPONENTConfig: {{topologyKey: {TPU}}}") + service("COMPONENT: {topologyKey: '', leader: {}, worker: {}}"), (llama(2),)),
    Row("6", "a single pod has no PodGroup to carry it", runtime() + service(f"COMPONENT: {{topologyKey: {KEY}}}")),
    Row("6", "a router has none", runtime(f"routerConfig: {{topologyKey: {KEY}}}") + service("engine: {leader: {}, worker: {}}\nrouter: {}"), (gang("llama", "engine", 0, 2, 600),)),
    Row("6", "InferenceReplica, its own", replica(f"component: engine\ntopologyKey: {KEY}\n" + RUNNERS % 1), (pool(2, key=KEY),)),
    Row("6", "the desired key replaces the one that is there", runtime() + yaml.safe_dump(gang("llama", "engine", 0, 2, 600, TPU)) + "---\n" + service(f"engine: {{topologyKey: {KEY}, leader: {{}}, worker: {{}}}}"), (gang("llama", "engine", 0, 2, 600, KEY),)),
]  # fmt: skip

# Left out of 14.1: a nil owner, an error of Go callers alone. The ownerReference of two rows is the controller's to
# write: the PodGroup is compared whole, so none stands in it. A topology key that nobody wants leaves no annotation but ours.
BUILD = [
    Row("14.1", "default 1", replica("{component: engine, runners: [{name: default, size: 1, template: {}}]}"), options=NO_SETTINGS),
    Row("14.1", "leader 1, worker 0", replica("component: engine\n" + RUNNERS % 0), options=NO_SETTINGS, refused="invalid-field"),
    Row("14.1", "leader 1, worker 1", replica("component: engine\n" + RUNNERS % 1), (pool(2, None),), NO_SETTINGS),
    Row("14.1", "leader 1, worker 3", replica("component: engine\n" + RUNNERS % 3), (pool(4, None),), NO_SETTINGS),
    Row("14.1", "no runners", replica("{component: engine, runners: []}"), options=NO_SETTINGS),
    Row("14.1", "no group of one", runtime() + service("deploymentMode: OMENative\nCOMPONENT: {minReplicas: 2}"), options=NO_SETTINGS),
    Row("14.1", "the base is the service", runtime() + service("engine: {leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 15m}}", "gang", "test-ns"),
        (gang("gang", "engine", 0, 2, 900, namespace="test-ns", name="gang-engine-0"),), NO_SETTINGS),
    Row("14.1", "every field", runtime() + service(f"engine: {{leader: {{}}, worker: {{size: 3}}, topologyKey: {KEY}, lifecycle: {{instanceReadyTimeout: 15m}}}}", "llama-engine", "prod-models"),
        (gang("llama-engine", "engine", 0, 4, 900, KEY, "prod-models", name="llama-engine-engine-0"),), NO_SETTINGS),
    Row("14.1", "topology key", runtime() + service(f"engine: {{leader: {{}}, worker: {{size: 1}}, topologyKey: {TPU}, lifecycle: {{instanceReadyTimeout: 5m}}}}"),
        (gang("llama", "engine", 0, 2, 300, TPU),), NO_SETTINGS),
    Row("14.1", "no topology key", runtime() + service("engine: {leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 5m}}"),
        (gang("llama", "engine", 0, 2, 300),), NO_SETTINGS),
    Row("14.1", "index 2", runtime() + service("engine: {minReplicas: 3, leader: {}, worker: {size: 7}, lifecycle: {instanceReadyTimeout: 5m}}"),
        tuple(gang("llama", "engine", index, 8, 300, name=f"llama-engine-{index}") for index in range(3)), NO_SETTINGS),
]  # fmt: skip


def qwen3(index: int, members: int, seconds: int) -> dict[str, Any]:
    return gang("qwen3-multi-node", "engine", index, members, seconds, namespace="qwen3-multi-node", name=f"qwen3-multi-node-engine-{index}")  # fmt: skip


def qwen3_service(engine: str) -> str:
    return service(f"engine: {engine}", "qwen3-multi-node", "qwen3-multi-node")


PAIR = runtime("engineConfig: {leader: {}, worker: {size: 1}}")
MODE = "engine: {leader: {}, worker: {size: 1}, annotations: {ome.io/deploymentMode: %s}}"
WHOLE = [
    Row("15", "qwen3", PAIR + qwen3_service("{minReplicas: 1, leader: {}, worker: {size: 1}}"), (qwen3(0, 2, 600),)),
    Row("15", "45m, two Instances", PAIR + qwen3_service("{minReplicas: 2, leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 45m}}"), (qwen3(0, 2, 600), qwen3(1, 2, 600))),
    Row("15", "5m", PAIR + qwen3_service("{minReplicas: 1, leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 5m}}"), (qwen3(0, 2, 300),)),
    Row("15", "0s over the runtime's 5m", runtime("engineConfig: {leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 5m}}")
        + qwen3_service("{minReplicas: 1, leader: {}, worker: {size: 1}, lifecycle: {instanceReadyTimeout: 0s}}"), (qwen3(0, 2, 600),)),
    Row("15", "the runtime's shape", runtime("engineConfig: {leader: {}, worker: {size: 3}}") + service("engine: {}"), (gang("llama", "engine", 0, 4, 600),)),
    Row("15", "no size anywhere", runtime() + service("engine: {leader: {}, worker: {}}"), (gang("llama", "engine", 0, 2, 600),)),
    Row("15", "5 over the runtime's 1", PAIR + service("engine: {leader: {}, worker: {size: 5}}"), (gang("llama", "engine", 0, 6, 600),)),
    Row("15", "engine and decoder", runtime() + service("engine: {leader: {}, worker: {size: 1}}\ndecoder: {minReplicas: 2, leader: {}, worker: {size: 2}}"),
        (gang("llama", "decoder", 0, 3, 600), gang("llama", "decoder", 1, 3, 600), gang("llama", "engine", 0, 2, 600))),
    Row("15", "annotation RawDeployment", runtime() + service(MODE % "RawDeployment")),
    Row("15", "annotation MultiNode", runtime() + service(MODE % "MultiNode")),
    Row("15", "spec.deploymentMode RawDeployment", runtime() + service("deploymentMode: RawDeployment\nengine: {leader: {}, worker: {size: 1}}")),
    Row("15", "spec.deploymentMode OMENative, one pod", runtime("engineConfig: {runner: {name: ome-container}}") + service("deploymentMode: OMENative\nengine: {}")),
    Row("15", "the runtime's annotation beats spec.deploymentMode", runtime("engineConfig: {leader: {}, worker: {size: 1}, annotations: {ome.io/deploymentMode: OMENative}}")
        + service("deploymentMode: RawDeployment\nengine: {}"), (gang("llama", "engine", 0, 2, 600),)),
    Row("15", "minReplicas 0", runtime() + service("engine: {minReplicas: 0, leader: {}, worker: {size: 1}}"), (gang("llama", "engine", 0, 2, 600),)),
    Row("15", "kustomize", runtime() + service("engine: {leader: {}, worker: {size: 1}}"), (gang("llama", "engine", 0, 2, 1800),), KUSTOMIZE),
    Row("15", "a cluster without lifecycle", config(None) + runtime() + service("engine: {leader: {}, worker: {size: 1}}"), (gang("llama", "engine", 0, 2, None),)),
    Row("15", "InferenceReplica", replica("component: engine\n" + RUNNERS % 2), (gang("pool", "engine", 0, 3, 600, kind="InferenceReplica", name="pool-engine-0"),)),
]  # fmt: skip


@pytest.mark.parametrize("row", MULTI_POD + SIZES + INSTANCES + TIMEOUTS + TOPOLOGY + BUILD + WHOLE, ids=mark)
def test_streams(row: Row) -> None:
    for component in COMPONENTS if EITHER in row.stream else ("",):
        # Beside a decoder stands an engine of one pod.
        stream = row.stream.replace("  engine: {}\n", "") if component == "engine" else row.stream
        stream = stream.replace(EITHER, component)
        rendered = render(stream, row.options)
        assert rendered.refused == bool(row.refused), rendered.findings
        if row.refused:
            assert row.refused in codes(rendered)
            assert rendered.data == b""
        elif row.groups:
            wanted = json.loads(json.dumps(row.groups).replace(EITHER, component))
            assert pod_groups(rendered.data) == sorted(wanted, key=lambda item: str(item["metadata"]["name"]))
        else:
            assert rendered.data == stream.encode()
        assert ("unpaired-leader-worker" in codes(rendered)) == row.unpaired
    ROWS.add(row.section)


class Settings(NamedTuple):
    """Cluster settings, and the field for a component without a timeout, with one of 10s, and with one of 2h.

    `lifecycle` is the ConfigMap's text, None for no such key; `values` is what the values of OME's chart say there, None
    where they cannot say it. `logged` is whether OME logs that it does not take a setting.
    """

    section: str
    what: str
    lifecycle: str | None
    values: str | None
    fields: tuple[int | None, int | None, int | None]
    logged: bool = False


CLAMP = '"gangScheduleTimeout": {"min": "60s", "max": "600s"}'
CLAMPED = (60, 60, 600)
PASSED_ON = (1800, 10, 7200)
UNSET = (None, 10, 7200)


def same(section: str, what: str, text: str, fields: tuple[int | None, int | None, int | None], logged: bool = False) -> Settings:  # fmt: skip
    """Return a row whose ConfigMap and values say the same: JSON is YAML."""
    return Settings(section, what, text, text, fields, logged)


SETTINGS = [
    Settings("4.2", "no lifecycle", None, "{}", UNSET),
    same("4.2", "ready absent", f"{{{CLAMP}}}", CLAMPED),
    same("4.2", "ready empty", f'{{"instanceReadyTimeout": "", {CLAMP}}}', CLAMPED),
    same("4.2", "ready null", f'{{"instanceReadyTimeout": null, {CLAMP}}}', CLAMPED),
    same("4.2", "ready without a unit", f'{{"instanceReadyTimeout": "30", {CLAMP}}}', CLAMPED, logged=True),
    same("4.2", "ready text", f'{{"instanceReadyTimeout": "soon", {CLAMP}}}', CLAMPED, logged=True),
    same("4.2", "ready 0s", f'{{"instanceReadyTimeout": "0s", {CLAMP}}}', CLAMPED, logged=True),
    same("4.2", "ready negative", f'{{"instanceReadyTimeout": "-30m", {CLAMP}}}', CLAMPED, logged=True),
    same("4.2", "clamp absent", '{"instanceReadyTimeout": "30m"}', PASSED_ON),
    same("4.2", "clamp null", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": null}', PASSED_ON),
    same("4.2", "min missing", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"max": "600s"}}', PASSED_ON, logged=True),
    same("4.2", "max missing", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60s"}}', PASSED_ON, logged=True),
    same("4.2", "min unparsable", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60", "max": "600s"}}', PASSED_ON, logged=True),
    same("4.2", "max unparsable", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60s", "max": "1d"}}', PASSED_ON, logged=True),
    same("4.2", "min 0s", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "0s", "max": "600s"}}', PASSED_ON, logged=True),
    same("4.2", "min negative", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "-1s", "max": "600s"}}', PASSED_ON, logged=True),
    same("4.2", "max 0s", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60s", "max": "0s"}}', PASSED_ON, logged=True),
    same("4.2", "max < min", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "600s", "max": "60s"}}', PASSED_ON, logged=True),
    # What the chart makes of a number in its values is not known, so these are the ConfigMap's alone.
    Settings("4.2", "ready a number", f'{{"instanceReadyTimeout": 1800, {CLAMP}}}', None, UNSET, logged=True),
    Settings("4.2", "a bound a number", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": 60, "max": "600s"}}', None, UNSET, logged=True),
    Settings("4.2", "no JSON", f'{{"instanceReadyTimeout": "30m", {CLAMP}', None, UNSET, logged=True),
    same("4.2", "min = max", '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "2m", "max": "120s"}}', (120, 120, 120)),
    same("4.2", "the chart's defaults", f'{{"instanceReadyTimeout": "30m", {CLAMP}}}', (600, 60, 600)),
    same("4.2", "kustomize's", '{"instanceReadyTimeout": "30m"}', PASSED_ON),
    same("14.5", "60s, 10m", '{"gangScheduleTimeout": {"min": "60s", "max": "10m"}}', CLAMPED),
    same("14.5", "absent block", "{}", UNSET),
    same("14.5", "missing min", '{"gangScheduleTimeout": {"max": "10m"}}', UNSET, logged=True),
    same("14.5", "missing max", '{"gangScheduleTimeout": {"min": "60s"}}', UNSET, logged=True),
    same("14.5", "min soon", '{"gangScheduleTimeout": {"min": "soon", "max": "10m"}}', UNSET, logged=True),
    same("14.5", "max later", '{"gangScheduleTimeout": {"min": "60s", "max": "later"}}', UNSET, logged=True),
    same("14.5", "min 0s", '{"gangScheduleTimeout": {"min": "0s", "max": "10m"}}', UNSET, logged=True),
    same("14.5", "max -1m", '{"gangScheduleTimeout": {"min": "60s", "max": "-1m"}}', UNSET, logged=True),
    same("14.5", "min 10m, max 60s", '{"gangScheduleTimeout": {"min": "10m", "max": "60s"}}', UNSET, logged=True),
    same("14.5", "ready 30m", '{"instanceReadyTimeout": "30m"}', PASSED_ON),
    same("14.5", "ready absent", "{}", UNSET),
    same("14.5", "ready not-a-duration", '{"instanceReadyTimeout": "not-a-duration"}', UNSET, logged=True),
    same("14.5", "ready 0s", '{"instanceReadyTimeout": "0s"}', UNSET, logged=True),
    same("14.5", "ready -5m", '{"instanceReadyTimeout": "-5m"}', UNSET, logged=True),
]  # fmt: skip

THREE = runtime() + "---\n".join(
    service(f"engine: {{leader: {{}}, worker: {{}}{more}}}", name)
    for name, more in [
        ("a", ""),
        ("b", ", lifecycle: {instanceReadyTimeout: 10s}"),
        ("c", ", lifecycle: {instanceReadyTimeout: 2h}"),
    ]
)


def chart_values(lifecycle: str) -> Source:
    return Source("values.yaml", b"ome:\n  controller:\n    lifecycle: %s\n" % lifecycle.encode())


def has_settings(rendered: pipeline.Rendered, fields: tuple[int | None, ...], logged: bool) -> None:
    assert not rendered.refused, rendered.findings
    wanted = [gang(name, "engine", 0, 2, seconds) for name, seconds in zip("abc", fields, strict=True)]
    assert pod_groups(rendered.data) == wanted
    assert ("cluster-setting-invalid" in codes(rendered)) == logged, rendered.findings


@pytest.mark.parametrize("row", SETTINGS, ids=mark)
def test_settings(row: Settings) -> None:
    has_settings(render(config(row.lifecycle) + THREE, CHART), row.fields, row.logged)
    has_settings(render(THREE, Options(context=(Source("ome.yaml", config(row.lifecycle).encode()),))), row.fields, row.logged)  # fmt: skip
    if row.values is not None:
        has_settings(render(THREE, Options(ome_values=chart_values(row.values), ome_install="none")), row.fields, row.logged)  # fmt: skip
    ROWS.add(row.section)


class Installed(NamedTuple):
    """An install of OME whose values say a little only."""

    section: str
    what: str
    options: Options
    fields: tuple[int | None, int | None, int | None]
    logged: bool = False


INSTALLED = [
    Installed("4.2", "chart", CHART, (600, 60, 600)),
    Installed("4.2", "kustomize install", KUSTOMIZE, PASSED_ON),
    Installed("4.2", "null turns ready off", Options(ome_values=chart_values("{instanceReadyTimeout: null}")), CLAMPED),
    Installed("4.2", "null turns the clamp off", Options(ome_values=chart_values("{gangScheduleTimeout: null}")), PASSED_ON),
    Installed("4.2", "null turns a bound off", Options(ome_values=chart_values("{gangScheduleTimeout: {min: null}}")), PASSED_ON, logged=True),
    Installed("4.2", "values over the chart's", Options(ome_values=chart_values("{instanceReadyTimeout: 5m}")), (300, 60, 600)),
    Installed("4.2", "a bound over the chart's", Options(ome_values=chart_values("{gangScheduleTimeout: {max: 20m}}")), (1200, 60, 1200)),
]  # fmt: skip


@pytest.mark.parametrize("row", INSTALLED, ids=mark)
def test_installed(row: Installed) -> None:
    has_settings(render(THREE, row.options), row.fields, row.logged)
    ROWS.add(row.section)


class Arithmetic(NamedTuple):
    """Ready timeout (empty for none), clamp (None for none), field; REFUSED where the field cannot hold it."""

    ready: str
    clamp: tuple[str, str] | None
    seconds: int | str | None


REFUSED = "refused"
USUAL = ("60s", "10m")
ODD = ("1500ms", "2500ms")
TINY = ("500ms", "800ms")
ARITHMETIC = [
    Arithmetic("", USUAL, 60),
    Arithmetic("30s", USUAL, 60),
    Arithmetic("3m", USUAL, 180),
    Arithmetic("10m", USUAL, 600),
    Arithmetic("30m", USUAL, 600),
    Arithmetic("30m", None, 1800),
    Arithmetic("", None, None),
    Arithmetic("15m", None, 900),
    Arithmetic("5m", None, 300),
    Arithmetic("900ms", None, None),
    Arithmetic("1.9s", None, 1),
    Arithmetic("59.9s", ("60s", "600s"), 60),
    Arithmetic("600.9s", ("60s", "600s"), 600),
    Arithmetic("1.5h", None, 5400),
    Arithmetic("", ODD, 1),
    Arithmetic("900ms", ODD, 1),
    Arithmetic("1s", ODD, 1),
    Arithmetic("2400ms", ODD, 2),
    Arithmetic("30m", ODD, 2),
    Arithmetic("", TINY, 0),
    Arithmetic("600ms", TINY, 0),
    Arithmetic("30m", TINY, 0),
    Arithmetic("596523h14m7s", None, 2147483647),
    # What OME makes of these depends on the machine it runs on, so they are not taken.
    Arithmetic("596523h14m8s", None, REFUSED),
    Arithmetic("600000h", None, REFUSED),
    Arithmetic("596523h14m8s", ("60s", "600s"), REFUSED),
    Arithmetic("600000h", ("60s", "600s"), REFUSED),
]


@pytest.mark.parametrize("row", ARITHMETIC, ids=lambda row: f"4.3 {row.ready or 'none'} {row.clamp}")
def test_arithmetic(row: Arithmetic) -> None:
    clamp = {"gangScheduleTimeout": dict(zip(("min", "max"), row.clamp, strict=True))} if row.clamp else {}
    plain = service("engine: {leader: {}, worker: {}}")
    written = service(f"engine: {{leader: {{}}, worker: {{}}, lifecycle: {{instanceReadyTimeout: {row.ready}}}}}")
    rendered = render(config(json.dumps(clamp)) + runtime() + (written if row.ready else plain), CHART)
    assert "cluster-setting-invalid" not in codes(rendered)
    if row.seconds == REFUSED:
        assert rendered.refused
        assert "invalid-field" in codes(rendered)
    else:
        assert isinstance(row.seconds, (int, type(None)))
        wanted = [gang("llama", "engine", 0, 2, row.seconds)]
        assert pod_groups(rendered.data) == wanted
        if row.ready:
            cluster = config(json.dumps({"instanceReadyTimeout": row.ready, **clamp}))
            assert pod_groups(render(cluster + runtime() + plain, CHART).data) == wanted
    ROWS.add("4.3")


class Schedulers(NamedTuple):
    """A component, its runtime, and the schedulers of leader and worker; empty: none."""

    section: str
    what: str
    service: str
    runtime: str
    leader: str
    worker: str


OWN = "COMPONENT: {schedulerName: sc, leader: {schedulerName: sl}, worker: {schedulerName: sw}}"
OWN_COMPONENT = "COMPONENT: {schedulerName: sc, leader: {}, worker: {}}"
ALL_RUNTIME = (
    "schedulerName: rt\nCOMPONENTConfig: {schedulerName: rc, leader: {schedulerName: rl}, worker: {schedulerName: rw}}"
)
RUNTIME_COMPONENT = "schedulerName: rt\nCOMPONENTConfig: {schedulerName: rc, leader: {}, worker: {}}"
SCHEDULERS = [
    Schedulers("5", "leader and worker of the service", OWN, ALL_RUNTIME, "sl", "sw"),
    Schedulers("5", "leader and worker of the runtime", OWN_COMPONENT, ALL_RUNTIME, "rl", "rw"),
    Schedulers("5", "the service's component", OWN_COMPONENT, RUNTIME_COMPONENT, "sc", "sc"),
    Schedulers("5", "the runtime's component", BOTH, RUNTIME_COMPONENT, "rc", "rc"),
    Schedulers("5", "the runtime", BOTH, "schedulerName: rt\nCOMPONENTConfig: {leader: {}, worker: {}}", "rt", "rt"),
    Schedulers("5", "none", BOTH, "{}", "", ""),
    Schedulers("5", "the runtime's shape and component", "COMPONENT: {}", RUNTIME_COMPONENT, "rc", "rc"),
    Schedulers("5", "the runtime's shape, no name", "COMPONENT: {}", "COMPONENTConfig: {leader: {}, worker: {}}", "", ""),
    Schedulers("5", "empty in leader and worker", "COMPONENT: {leader: {schedulerName: ''}, worker: {schedulerName: ''}}", ALL_RUNTIME, "rl", "rw"),
    Schedulers("5", "empty in the component", "COMPONENT: {schedulerName: '', leader: {}, worker: {}}", RUNTIME_COMPONENT, "rc", "rc"),
    Schedulers("5", "empty in the runtime's component", BOTH, "schedulerName: rt\nCOMPONENTConfig: {schedulerName: ''}", "rt", "rt"),
    Schedulers("5", "the runtime's leader beats the service's component", OWN_COMPONENT, "COMPONENTConfig: {leader: {schedulerName: rl}}", "rl", "sc"),
    Schedulers("5", "the runtime's worker beats the service's component", OWN_COMPONENT, "COMPONENTConfig: {worker: {schedulerName: rw}}", "sc", "rw"),
    Schedulers("5", "the service's component beats the runtime's", OWN_COMPONENT, "COMPONENTConfig: {schedulerName: rc}", "sc", "sc"),
    Schedulers("5", "the service's component beats the runtime", OWN_COMPONENT, "schedulerName: rt", "sc", "sc"),
    Schedulers("5", "two schedulers of the service", "COMPONENT: {leader: {schedulerName: sl}, worker: {schedulerName: sw}}", "{}", "sl", "sw"),
    Schedulers("5", "the leader's alone", "COMPONENT: {leader: {schedulerName: sl}, worker: {}}", "{}", "sl", ""),
    Schedulers("5", "the worker's alone", "COMPONENT: {leader: {}, worker: {schedulerName: sw}}", "{}", "", "sw"),
    Schedulers("5", "leader of the service, worker of the runtime", "COMPONENT: {leader: {schedulerName: sl}, worker: {}}", ALL_RUNTIME, "sl", "rw"),
    Schedulers("5", "the component under one that has its own", "COMPONENT: {schedulerName: sc, leader: {schedulerName: sl}, worker: {}}", "{}", "sl", "sc"),
    # Left out of 14.4: the fill called without the fold before it, which no manifest can bring about.
    Schedulers("14.4", "the fold runs before the fill", "COMPONENT: {schedulerName: component-scheduler, leader: {schedulerName: leader-scheduler}, worker: {}}", "schedulerName: custom-scheduler", "leader-scheduler", "component-scheduler"),
    Schedulers("14.4", "the fill leaves a leader's", "COMPONENT: {leader: {schedulerName: leader-scheduler}, worker: {}}", "schedulerName: custom-scheduler", "leader-scheduler", "custom-scheduler"),
    Schedulers("14.4", "nothing to fill with", "COMPONENT: {leader: {schedulerName: leader-scheduler}, worker: {}}", "schedulerName: ''", "leader-scheduler", ""),
]  # fmt: skip
DEFAULT = "default-scheduler"
FILL = "filled-scheduler"


def with_leader(component: str, spec: str, scheduler: str) -> str:
    """Return the service with this scheduler written into its leader, which changes nothing of the worker."""
    said = yaml.load(spec, LOADER)
    said[component] = {"worker": {}, **said[component], "leader": {"schedulerName": scheduler}}
    return yaml.safe_dump(said)


@pytest.mark.parametrize("row", SCHEDULERS, ids=mark)
def test_schedulers(row: Schedulers) -> None:
    for component in COMPONENTS:
        spec = row.service.replace(EITHER, component)
        under = runtime(row.runtime.replace(EITHER, component))
        stream = under + service(spec)

        def findings(gang_scheduler: str, name: str = "", stream: str = stream) -> dict[str, str]:
            rendered = render(stream, Options(gang_scheduler=(gang_scheduler,), scheduler_name=name))
            assert not rendered.refused
            return {finding.code: finding.message for finding in rendered.findings}

        # The leader's is what the warning goes by, and the worker's where the leader has none.
        checked = row.leader or row.worker or DEFAULT
        assert "no-gang-scheduler" not in findings(checked)
        warned = findings("another-scheduler")
        assert "no-gang-scheduler" in warned
        if row.leader or row.worker:
            assert repr(checked) in warned["no-gang-scheduler"] or f'"{checked}"' in warned["no-gang-scheduler"]
        assert ("mixed-schedulers" in warned) == ((row.leader or DEFAULT) != (row.worker or DEFAULT))

        # The worker's is the one with which a leader of the same name is not mixed.
        assert "mixed-schedulers" not in findings("x", stream=under + service(with_leader(component, spec, row.worker or DEFAULT)))  # fmt: skip
        assert "mixed-schedulers" in findings("x", stream=under + service(with_leader(component, spec, "another-scheduler")))  # fmt: skip

        # OME rejects neither, and PodGroups carry no scheduler.
        plain = render(stream, CHART)
        assert pod_groups(plain.data) == [gang("llama", component, 0, 2, 600)]
        assert plain.data.count(b"schedulerName") == stream.count("schedulerName")

        # Filled is only what is empty, and never in the runtime.
        filled = render(stream, Options(scheduler_name=FILL)).data.decode()
        assert filled.startswith(under)
        assert (FILL in filled) == (not row.leader and not row.worker)
        if row.leader and row.worker:
            assert filled.encode() == plain.data
        else:
            after = findings(row.leader or row.worker or FILL, FILL)
            assert not {"no-gang-scheduler", "mixed-schedulers"} & after.keys()
    ROWS.add(row.section)


class Fill(NamedTuple):
    """What the runtime says at its top, and the scheduler that engine and decoder then have; empty: none."""

    section: str
    what: str
    runtime: str
    scheduler: str


FILLS = [
    # A router is one pod: its scheduler shows nowhere, and it is left as it is.
    Fill("14.4", "engine, decoder and router, all empty", "schedulerName: custom-scheduler", "custom-scheduler"),
    Fill("14.4", "top level empty", "{}", ""),
]


@pytest.mark.parametrize("row", FILLS, ids=mark)
def test_fills(row: Fill) -> None:
    stream = runtime(row.runtime) + service(
        "engine: {leader: {}, worker: {}}\ndecoder: {leader: {}, worker: {}}\nrouter: {}"
    )
    wanted = [gang("llama", component, 0, 2, 600) for component in ("decoder", "engine")]

    def warned(gang_scheduler: str) -> int:
        rendered = render(stream, Options(gang_scheduler=(gang_scheduler,)))
        assert pod_groups(rendered.data) == wanted
        assert "mixed-schedulers" not in codes(rendered)
        return codes(rendered).count("no-gang-scheduler")

    assert warned(row.scheduler or DEFAULT) == 0
    assert warned("another-scheduler") == len(COMPONENTS)
    filled = list(yaml.load_all(render(stream, Options(scheduler_name=FILL)).data, LOADER))[-1]
    for component in COMPONENTS:
        for part in ("leader", "worker"):
            assert filled["spec"][component][part] == ({} if row.scheduler else {"schedulerName": FILL})
    assert filled["spec"]["router"] == {}
    ROWS.add(row.section)
