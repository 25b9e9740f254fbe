"""Which gangs the manifests of the corpus have: worked out on paper from the manifests and OME's rules.

Facts only, no text of a manifest. A row was never copied from what the program said: where the two differ, the rules
decide who is right. Unless a row says otherwise nothing is said of OME's version, and the cluster has the settings of
OME's chart: a ready timeout of 30 minutes, the gang's timeout held between 60 and 600 seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Gang(NamedTuple):
    """A PodGroup, as far as the table goes; a field is None where it is not written."""

    name: str
    min_member: int | None
    timeout: int | None
    topology_key: str | None = None


class Row(NamedTuple):
    """A manifest, what it is read with, and its gangs.

    `context` are files to look up in, `beside` files whose documents follow in the same stream, `settings` further
    options by their names. `unsure` are those of the codes in UNSURE that must be said; no other one may be. `refused`
    are the errors that must be said instead.
    """

    file: str
    gangs: tuple[Gang, ...] = ()
    unsure: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    settings: Mapping[str, str] = MappingProxyType({})
    refused: tuple[str, ...] = ()


# What is said where a runtime is missing: no gang is known there, or one that the runtime may still change.
UNKNOWN, UNRESOLVED = "gang-unknown", "runtime-unresolved"
UNSURE = (UNKNOWN, UNRESOLVED)

OLD, NEW = "ome/v0.1/", "ome/v1.3/"
OLD_MULTI, OLD_SINGLE = OLD + "isvc-multinode-pd/", OLD + "isvc-single/"
MULTI, OTHER, SAMPLES, CHARTS = NEW + "docs-multi-node/", NEW + "docs-other/", NEW + "samples/", NEW + "charts/"

# Runtimes. Each name is there once, so all of them may be looked up in together.
MULTI_RUNTIME = MULTI + "srt-qwen3-0-6b-multi-node.yaml"
PROFILE, CHILD = OTHER + "inherit-1-profile.yaml", OTHER + "inherit-2-child-runtime.yaml"
RDMA = OLD + "runtimes-multinode/deepseek-rdma-rt.yaml"
ALL = (
    OLD + "runtimes-multinode",
    OLD + "runtimes-pd",
    OLD + "runtimes-single",
    MULTI_RUNTIME,
    MULTI + "srt-llama-3-3-70b-instruct-multinode.yaml",
    PROFILE,
    CHILD,
    SAMPLES + "omenative-http-servingruntime.yaml",
    SAMPLES + "runtime-managed-qwen-servingruntime.yaml",
)

# The services with leader and worker of their own.
ONE, TWO = MULTI + "qwen3-multi-node-isvc.yaml", MULTI + "qwen3-multi-node-isvc-lifecycle.yaml"

# Cluster settings: the ConfigMaps of the two ways to install, and values of the chart.
KUSTOMIZE = CHARTS + "inferenceservice-config-kustomize.yaml"
ASSEMBLED = CHARTS + "inferenceservice-config-gang-assembled.yaml"
OLD_KUSTOMIZE = OLD + "charts/inferenceservice-config-kustomize.yaml"
GANG_VALUES = CHARTS + "ome-resources-values-gang-docs.yaml"
READY_VALUES = CHARTS + "ome-resources-values-deadlines-docs.yaml"
NO_VALUES = CHARTS + "ome-resources-values-excerpt.yaml"


def qwen(timeout: int | None, *indices: int) -> tuple[Gang, ...]:
    """Return the gangs of ONE and TWO: the name is the service's, the size is 1 in the service and in the runtime."""
    return tuple(Gang(f"qwen3-multi-node-engine-{index}", 2, timeout) for index in indices)


# Every service with every runtime at hand.
WITH_RUNTIMES = (
    # leader, and worker of size 1, in the service; one replica; 30m is held down to 600 s
    Row(ONE, qwen(600, 0), context=ALL),
    # minReplicas 2, so two Instances; its own 45m is held down to 600 s
    Row(TWO, qwen(600, 0, 1), context=ALL),
    # leader and worker without a size, and its runtime is one that the guide makes by hand: the size is the runtime's
    Row(MULTI + "deepseek-r1-omenative.yaml", unsure=(UNKNOWN,), context=ALL),
    # names no runtime, has no shape of its own
    Row(MULTI + "llama-3-70b-isvc-mode-conflict.yaml", unsure=(UNKNOWN,), context=ALL),
    # OMENative, and neither config of the runtime has a leader or a worker: single pods
    Row(NEW + "docs-prefill-decode/llama-pd.yaml", context=ALL),
    # no kind: no such ClusterServingRuntime, so the namespace's; neither it nor its parent has a leader or a worker
    Row(OTHER + "inherit-3-isvc.yaml", context=ALL),
    # names no runtime
    Row(OTHER + "isvc-auto-select.yaml", unsure=(UNKNOWN,), context=ALL),
    # OMENative by the engine's annotation; the runtime is nowhere (one whose name goes on with -pd is)
    Row(OTHER + "isvc-component-annotation-router.yaml", unsure=(UNKNOWN,), context=ALL),
    # names no runtime
    Row(OTHER + "isvc-minimal.yaml", unsure=(UNKNOWN,), context=ALL),
    # the namespace's runtime, asked for by kind; single pod
    Row(OTHER + "isvc-pinned-revision.yaml", context=ALL),
    # fronts InferenceReplicas made elsewhere: it has no component, so nothing is unknown either
    Row(OTHER + "isvc-replica-refs.yaml", context=ALL),
    # the runtime is nowhere
    Row(OTHER + "isvc-runtime-only.yaml", unsure=(UNKNOWN,), context=ALL),
    # OMENative by spec.deploymentMode; the runtime is nowhere
    Row(OTHER + "isvc-spec-deployment-mode.yaml", unsure=(UNKNOWN,), context=ALL),
    # OMENative on a single-pod runtime: its instanceReadyTimeout belongs to no gang
    Row(OTHER + "qwen3-0-6b-deadlines.yaml", context=ALL),
    # the same; topologySpread is no topologyKey
    Row(OTHER + "qwen3-0-6b-spread-isvc.yaml", context=ALL),
    # the runtime is nowhere
    Row(OTHER + "qwen3-tpu-isvc.yaml", unsure=(UNKNOWN,), context=ALL),
    # OMENative, two Instances of one pod: the namespace's runtime has a runner only
    Row(SAMPLES + "omenative-http-inferenceservice.yaml", context=ALL),
    # the same with one Instance
    Row(SAMPLES + "runtime-managed-qwen-inferenceservice.yaml", context=ALL),
    # a standalone InferenceReplica whose one runner is "default": a single pod
    Row(SAMPLES + "standalone-http-inferencereplica.yaml", context=ALL),
    # one without runners: what its runtime makes of it is not read
    Row(SAMPLES + "standalone-http-runtime-ref-replica.yaml", unsure=(UNKNOWN,), context=ALL),
    # leader, and worker.size 1, from the runtime alone
    Row(OLD_MULTI + "deepseek-r1.yaml", (Gang("deepseek-r1-engine-0", 2, 600),), context=ALL),
    # engineConfig and decoderConfig have worker.size 1 each
    Row(
        OLD_MULTI + "deepseek-v3-pd.yaml",
        (Gang("deepseek-v3-engine-0", 2, 600), Gang("deepseek-v3-decoder-0", 2, 600)),
        context=ALL,
    ),
    # the runtime of the same model for one node
    Row(OLD_MULTI + "deepseek-v3.yaml", context=ALL),
    # a worker alone, and no runtime named: whether there is a leader is the runtime's affair
    Row(OLD_MULTI + "doc-isvc-leader-worker.yaml", unsure=(UNKNOWN,), context=ALL),
    # names no runtime
    Row(OLD_MULTI + "doc-isvc-pd-router.yaml", unsure=(UNKNOWN,), context=ALL),
    # worker.size 3 in engineConfig, 11 in decoderConfig
    Row(
        OLD_MULTI + "kimi-k2-pd.yaml",
        (Gang("kimi-k2-instruct-engine-0", 4, 600), Gang("kimi-k2-instruct-decoder-0", 12, 600)),
        context=ALL,
    ),
    # a single-pod engineConfig, and no decoderConfig for the decoder that is declared
    Row(OLD_MULTI + "llama3-3-70b-instruct.yaml", context=ALL),
    # the runtime of these two is nowhere
    Row(OLD_MULTI + "oep3-isvc-decoder-accelerator.yaml", unsure=(UNKNOWN,), context=ALL),
    Row(OLD_MULTI + "readme-isvc-decoder-accelerator.yaml", unsure=(UNKNOWN,), context=ALL),
    # a mode in the service's metadata is no component's mode, so this one is as unknown as the next
    Row(OLD_SINGLE + "gpt-oss-20b.yaml", unsure=(UNKNOWN,), context=ALL),
    # these name no runtime; a look at all the runtimes does not tell which one OME would take
    Row(OLD_SINGLE + "Qwen3-32B.yaml", unsure=(UNKNOWN,), context=ALL),
    Row(OLD_SINGLE + "bge-m3.yaml", unsure=(UNKNOWN,), context=ALL),
    Row(OLD_SINGLE + "deepseek-v4-flash.yaml", unsure=(UNKNOWN,), context=ALL),
    Row(OLD_SINGLE + "doc-isvc-keda-auth.yaml", unsure=(UNKNOWN,), context=ALL),
    Row(OLD_SINGLE + "phi-4.yaml", unsure=(UNKNOWN,), context=ALL),
    # these name a runtime with a runner only
    Row(OLD_SINGLE + "Qwen-Image.yaml", context=ALL),
    Row(OLD_SINGLE + "gemma-3-4b-it.yaml", context=ALL),
    Row(OLD_SINGLE + "llama-3-2-1b-instruct.yaml", context=ALL),
    Row(OLD_SINGLE + "llama-4-maverick-17b-128e-instruct-fp8.yaml", context=ALL),
    Row(OLD_SINGLE + "llama3-1-405b-instruct-fp8.yaml", context=ALL),
    Row(OLD_SINGLE + "mixtral-8x7b-instruct-v0-1.yaml", context=ALL),
    Row(OLD_SINGLE + "qwen3-0-6b.yaml", context=ALL),
    Row(OLD_SINGLE + "qwen3-8b.yaml", context=ALL),
)

# What becomes of the same services where a runtime is not at hand, or lies elsewhere.
RUNTIMES = (
    # leader, worker and size in the service: the gang is known, the rest may differ
    Row(ONE, qwen(600, 0), unsure=(UNRESOLVED,)),
    Row(TWO, qwen(600, 0, 1), unsure=(UNRESOLVED,)),
    # its own runtime alone, in the context and in the stream
    Row(ONE, qwen(600, 0), context=(MULTI_RUNTIME,)),
    Row(ONE, qwen(600, 0), beside=(MULTI_RUNTIME,)),
    # another service's runtime is none
    Row(ONE, qwen(600, 0), unsure=(UNRESOLVED,), context=(RDMA,)),
    # all its shape is the runtime's
    Row(OLD_MULTI + "deepseek-r1.yaml", unsure=(UNKNOWN,)),
    Row(OLD_MULTI + "deepseek-r1.yaml", unsure=(UNKNOWN,), context=(MULTI_RUNTIME, OLD + "runtimes-single")),
    Row(OLD_MULTI + "deepseek-r1.yaml", (Gang("deepseek-r1-engine-0", 2, 600),), context=(RDMA,)),
    Row(OLD_MULTI + "deepseek-r1.yaml", (Gang("deepseek-r1-engine-0", 2, 600),), beside=(RDMA,)),
    Row(OLD_MULTI + "kimi-k2-pd.yaml", unsure=(UNKNOWN,)),
    # without its parent nothing is known of a runtime that inherits; nor is a parent the runtime itself
    Row(OTHER + "inherit-3-isvc.yaml", unsure=(UNKNOWN,), context=(CHILD,)),
    Row(OTHER + "inherit-3-isvc.yaml", unsure=(UNKNOWN,), context=(PROFILE,)),
    Row(OTHER + "inherit-3-isvc.yaml", context=(PROFILE, CHILD)),
    # the child in the stream, its parent in the context
    Row(OTHER + "inherit-3-isvc.yaml", context=(PROFILE,), beside=(CHILD,)),
    Row(OTHER + "isvc-pinned-revision.yaml", unsure=(UNKNOWN,), context=(CHILD,)),
    Row(OTHER + "isvc-pinned-revision.yaml", unsure=(UNKNOWN,)),
    # OMENative is no other mode: single pods only if the runtime says so
    Row(NEW + "docs-prefill-decode/llama-pd.yaml", unsure=(UNKNOWN,)),
    Row(SAMPLES + "omenative-http-inferenceservice.yaml", unsure=(UNKNOWN,)),
    Row(SAMPLES + "standalone-http-inferencereplica.yaml"),
    Row(OTHER + "isvc-replica-refs.yaml"),
)

# Cluster settings and options. A field comes from an option, else the values, else the ConfigMap, else the install.
SETTINGS = (
    # the ConfigMap of a kustomize install has a ready timeout of 30m and no bounds
    Row(ONE, qwen(1800, 0), context=(*ALL, KUSTOMIZE)),
    # and the service's own 45m goes through it unbound
    Row(TWO, qwen(2700, 0, 1), context=(*ALL, KUSTOMIZE)),
    # the chart's ConfigMap: 30m, 60s to 600s
    Row(ONE, qwen(600, 0), context=(*ALL, ASSEMBLED)),
    Row(TWO, qwen(600, 0, 1), context=(*ALL, ASSEMBLED)),
    # the older ConfigMap has no lifecycle at all: no timeout but the service's own
    Row(ONE, qwen(None, 0), context=(*ALL, OLD_KUSTOMIZE)),
    Row(TWO, qwen(2700, 0, 1), context=(*ALL, OLD_KUSTOMIZE)),
    # in the stream a ConfigMap comes before one in the context
    Row(ONE, qwen(1800, 0), context=(*ALL, ASSEMBLED), beside=(KUSTOMIZE,)),
    Row(ONE, qwen(600, 0), context=(*ALL, KUSTOMIZE), beside=(ASSEMBLED,)),
    # no ConfigMap: what the two ways to install begin with
    Row(ONE, qwen(1800, 0), context=ALL, settings={"ome-install": "kustomize"}),
    Row(ONE, qwen(None, 0), context=ALL, settings={"ome-install": "none"}),
    Row(TWO, qwen(2700, 0, 1), context=ALL, settings={"ome-install": "none"}),
    # a ConfigMap that is there leaves nothing to the way of installing
    Row(ONE, qwen(1800, 0), context=(*ALL, KUSTOMIZE), settings={"ome-install": "chart"}),
    # values with 30m and 60s to 600s; the ConfigMap behind them has no bounds to add or to take away
    Row(ONE, qwen(600, 0), context=ALL, settings={"ome-values": GANG_VALUES, "ome-install": "none"}),
    Row(ONE, qwen(600, 0), context=(*ALL, KUSTOMIZE), settings={"ome-values": GANG_VALUES}),
    # values with 30m only: the bounds are whatever comes behind them
    Row(ONE, qwen(1800, 0), context=ALL, settings={"ome-values": READY_VALUES, "ome-install": "none"}),
    Row(ONE, qwen(1800, 0), context=(*ALL, OLD_KUSTOMIZE), settings={"ome-values": READY_VALUES}),
    Row(ONE, qwen(600, 0), context=ALL, settings={"ome-values": READY_VALUES}),
    # values with neither, though with other keys of lifecycle
    Row(ONE, qwen(None, 0), context=ALL, settings={"ome-values": NO_VALUES, "ome-install": "none"}),
    Row(ONE, qwen(600, 0), context=ALL, settings={"ome-values": NO_VALUES}),
    # an option takes one field, the chart gives the others: 30m down to 120 s, 90 s as it is, 1 s up to 60 s
    Row(ONE, qwen(120, 0), context=ALL, settings={"gang-timeout-max": "2m"}),
    Row(ONE, qwen(90, 0), context=ALL, settings={"instance-ready-timeout": "1m30s"}),
    Row(ONE, qwen(60, 0), context=ALL, settings={"instance-ready-timeout": "1s"}),
    # the service's own 45m comes before the cluster's 90 s
    Row(TWO, qwen(600, 0, 1), context=ALL, settings={"instance-ready-timeout": "90s"}),
    # OME 1.3 makes the PodGroups itself, unless it is told that it does not
    Row(ONE, context=ALL, settings={"ome": "1.3"}),
    Row(OLD_MULTI + "deepseek-v3-pd.yaml", context=ALL, settings={"ome": "1.3.0"}),
    Row(ONE, qwen(600, 0), context=ALL, settings={"ome": "1.3", "podgroups": "emit"}),
    Row(ONE, context=ALL, settings={"podgroups": "omit"}),
    # the next two indices for a surge
    Row(ONE, qwen(600, 0, 1, 2), context=ALL, settings={"spares": "2"}),
    Row(TWO, qwen(600, 0, 1, 2), context=ALL, settings={"spares": "1"}),
    # maxReplicas is no more than minReplicas in each
    Row(TWO, qwen(600, 0, 1), context=ALL, settings={"instances": "max"}),
    Row(
        OLD_MULTI + "deepseek-r1.yaml",
        (Gang("deepseek-r1-engine-0", 2, 600),),
        context=ALL,
        settings={"instances": "max"},
    ),
)

# LeaderWorkerSets, each group by itself: a group for each replica and for each that maxSurge brings up, with the set's size.
POLICY: Mapping[str, str] = MappingProxyType({"leaderworkersets": "true", "replicas": "policy"})
WHOLE: Mapping[str, str] = MappingProxyType({"leaderworkersets": "true", "replicas": "whole"})
AS_IT_IS: Mapping[str, str] = MappingProxyType({"leaderworkersets": "true"})


def groups(name: str, count: int, size: int) -> tuple[Gang, ...]:
    return tuple(Gang(f"{name}-{index}", size, 600) for index in range(count))


SETS = (
    Row("lws/config-sample-v1.yaml", groups("leaderworkerset-sample", 3, 4), settings=POLICY),
    Row("lws/config-sample-tpu.yaml", groups("leaderworkerset-sample", 3, 4), settings=POLICY),
    Row("lws/sample-lws.yaml", groups("leaderworkerset-sample", 3, 4), settings=POLICY),
    Row("lws/sample-lws-restart-policy.yaml", groups("leaderworkerset-sample", 3, 4), settings=POLICY),
    Row("lws/sample-lws-multi-template.yaml", groups("leaderworkerset-multi-template", 3, 4), settings=POLICY),
    # four replicas, and maxSurge 2
    Row("lws/sample-lws-rollout-strategy.yaml", groups("leaderworkerset-rollout", 6, 4), settings=POLICY),
    Row("lws/sample-lws-volume-claim-templates.yaml", groups("lws", 2, 2), settings=POLICY),
    Row("lws/sglang-lws.yaml", groups("sglang", 2, 2), settings=POLICY),
    Row("lws/vllm-gpu-lws.yaml", groups("vllm", 2, 2), settings=POLICY),
    # two replicas, and maxSurge 1
    Row("lws/vllm-tpu-lws.yaml", groups("vllm", 3, 4), settings=POLICY),
    # one group needs no policy; an unset number of replicas is one
    Row("lws/llamacpp-lws.yaml", groups("llamacpp-llama3-8b-instruct-bartowski-q5km", 1, 5), settings=AS_IT_IS),
    Row("lws/tensorrt-llm-lws.yaml", groups("tensorrt", 1, 2), settings=AS_IT_IS),
    Row("lws/sglang-docs-deepseek-prefill-lws.yaml", groups("deepseekr10528-prefill-main", 1, 2), settings=AS_IT_IS),
    # several groups under one template must be told apart, or be one
    Row("lws/sample-lws.yaml", settings=AS_IT_IS, refused=("replicas-share-template",)),
    Row("lws/sample-lws.yaml", (Gang("leaderworkerset-sample", 12, 600),), settings=WHOLE),
    # workers wait for a leader that is placed
    Row("lws/sample-lws-exclusive-placement.yaml", settings=POLICY, refused=("deadlock-shape",)),
    # Volcano's; sets of sets; no set at all
    Row("lws/sample-lws-volcano-gang.yaml", settings=POLICY),
    Row("lws/disaggregatedset.yaml", settings=POLICY),
    Row("lws/disaggregatedset-3role.yaml", settings=POLICY),
    Row("lws/config-sample-hpa.yaml", settings=POLICY),
    Row("lws/controller-configuration.yaml", settings=POLICY),
    # a rendered chart of others without a set
    Row("rendered/llm-d-modelservice/output-pd.yaml", settings=POLICY),
    Row("rendered/llm-d-modelservice/output-pd-mnnvl.yaml", settings=POLICY),
)

ROWS = (*WITH_RUNTIMES, *RUNTIMES, *SETTINGS, *SETS)
