"""Labels, annotations, kinds and fields, each spelled once."""

from __future__ import annotations

OME_GROUP = "ome.io"
SCHEDULING = "scheduling.x-k8s.io/v1alpha1"

INFERENCE_SERVICE = "InferenceService"
INFERENCE_REPLICA = "InferenceReplica"
POD_GROUP_KIND = "PodGroup"

SERVING_RUNTIME = "ServingRuntime"
CLUSTER_SERVING_RUNTIME = "ClusterServingRuntime"

LEADER_WORKER_SET = "LeaderWorkerSet"
DISAGGREGATED_SET = "DisaggregatedSet"
AUTOSCALER = "HorizontalPodAutoscaler"
SET_NAME = "leaderworkerset.sigs.k8s.io/name"

# OME's settings: a ConfigMap of this name, and the entry of it that is read.
CONFIG_MAP = "ConfigMap"
OME_CONFIG = "inferenceservice-config"
LIFECYCLE = "lifecycle"

# What we write about a cluster ourselves.
OUR_VERSION = "postrender/v1alpha1"
CLUSTER = "Cluster"
# The functionConfig of a KRM function.
GANGS = "Gangs"

# What a span must contain for it to matter; see stream.is_quiet.
NEEDLES = (INFERENCE_SERVICE.encode(), INFERENCE_REPLICA.encode(), POD_GROUP_KIND.encode())
# What a span must contain to be looked up; `ServingRuntime` is part of the cluster-wide kind's name too.
LOOKED_UP = (SERVING_RUNTIME.encode(), OME_CONFIG.encode())

# On pods: which PodGroup a pod belongs to (Coscheduling and the OME scheduler read it).
POD_GROUP = "scheduling.x-k8s.io/pod-group"
# On the pods of a template that several groups share: the name of their PodGroups less the index, which the admission
# policy adds; and what the label above holds until it has. No PodGroup is called so, so without the policy pods wait.
GANG = "postrender/gang"
POLICY_MISSING = "postrender-policy-missing"

# What a LeaderWorkerSet or an annotation of its component says to place each group in a domain of its own.
EXCLUSIVE_TOPOLOGY = "leaderworkerset.sigs.k8s.io/exclusive-topology"

# The four labels of a PodGroup, as OME writes them.
COMPONENT = "component"
SERVICE = "ome.io/inferenceservice"
INSTANCE_INDEX = "ome.io/instance-index"
MANAGED_BY = "ome.io/managed-by"

TOPOLOGY_KEY = "ome.io/topology-key"
DEPLOYMENT_MODE = "ome.io/deploymentMode"
# Helm 4 tells a post-renderer by it which template an object is from; Helm 3 has a comment for that.
FILENAME = "postrenderer.helm.sh/postrender-filename"
# What else says which file an object is from: kustomize and kpt.
FILES = (FILENAME, "internal.config.kubernetes.io/path", "config.kubernetes.io/path")
INHERIT_FROM = "ome.io/inherit-from"
# kustomize writes down what an object was called before.
PREVIOUS_NAMES = "internal.config.kubernetes.io/previousNames"
# What is marked so, but with "false", is for tools alone: kustomize drops it at the end, kpt never applies it.
LOCAL_CONFIG = "config.kubernetes.io/local-config"
# Annotations by which kustomize and kpt know an object again: an item keeps them, and no new one has any.
BOOKKEEPING = (
    "internal.config.kubernetes.io/",
    "config.kubernetes.io/",
    "config.k8s.io/",
    "alpha.config.kubernetes.io/",
    "kustomize.config.k8s.io/",
    "internal.kpt.dev/",
)

# By this annotation we know a PodGroup as our own.
MADE_FOR = "postrender/for"

OME_NATIVE = "OMENative"
RAW_DEPLOYMENT = "RawDeployment"
MULTI_NODE = "MultiNode"
VIRTUAL_DEPLOYMENT = "VirtualDeployment"
MULTI_NODE_RAY = "MultiNodeRayVLLM"
# Who manages the pods of a PodGroup: OME names itself, and we ourselves where OME makes none.
OURS = "postrender"
OME = "OME"

# The components that can have several pods; a router never has.
COMPONENTS = ("engine", "decoder")


_OF_OME = (INFERENCE_SERVICE, INFERENCE_REPLICA, SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME)
# The update strategy that brings an Instance up under a new index first; OME's default.
SURGE = "SurgeThenDrain"
DEFAULT_SCHEDULER = "default-scheduler"
OME_SCHEDULER = "ome-scheduler"


def wanted(api_version: str, kind: str) -> bool:
    """Return whether an object of this apiVersion and kind is one that we read."""
    if kind in _OF_OME:
        return api_version.partition("/")[0] == OME_GROUP
    return kind == POD_GROUP_KIND and api_version == SCHEDULING


# What a span must contain besides where the LeaderWorkerSets of the stream are asked for.
SETS = (LEADER_WORKER_SET.encode(), DISAGGREGATED_SET.encode())


def is_set(api_version: str, kind: str) -> bool:
    """Return whether an object of this apiVersion and kind is a LeaderWorkerSet, or makes some."""
    if kind not in (LEADER_WORKER_SET, DISAGGREGATED_SET):
        return False
    return api_version.partition("/")[0] in ("leaderworkerset.x-k8s.io", "disaggregatedset.x-k8s.io")


def wanted_with_sets(api_version: str, kind: str) -> bool:
    """Return the same, LeaderWorkerSets and what scales them included."""
    if kind in (LEADER_WORKER_SET, DISAGGREGATED_SET):
        return is_set(api_version, kind)
    return wanted_with_settings(api_version, kind) or (kind == AUTOSCALER and api_version.startswith("autoscaling/"))


def wanted_with_settings(api_version: str, kind: str) -> bool:
    """Return the same, ConfigMaps included."""
    return wanted(api_version, kind) or (kind == CONFIG_MAP and api_version == "v1")


def wanted_of_context(api_version: str, kind: str) -> bool:
    """Return whether a context's object is looked up: what is planned there is not ours to plan."""
    if kind in (SERVING_RUNTIME, CLUSTER_SERVING_RUNTIME):
        return api_version.partition("/")[0] == OME_GROUP
    return (kind == CONFIG_MAP and api_version == "v1") or (kind == CLUSTER and api_version == OUR_VERSION)
