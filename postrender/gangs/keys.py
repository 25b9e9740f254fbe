"""Labels, annotations, kinds and fields, each spelled once."""

from __future__ import annotations

OME_GROUP = "ome.io"
SCHEDULING = "scheduling.x-k8s.io/v1alpha1"

INFERENCE_SERVICE = "InferenceService"
POD_GROUP_KIND = "PodGroup"

# What a span must contain for it to matter; see stream.is_quiet.
NEEDLES = (INFERENCE_SERVICE.encode(), POD_GROUP_KIND.encode())

# On pods: which PodGroup a pod belongs to (Coscheduling and the OME scheduler read it).
POD_GROUP = "scheduling.x-k8s.io/pod-group"

# The four labels of a PodGroup, as OME writes them.
COMPONENT = "component"
SERVICE = "ome.io/inferenceservice"
INSTANCE_INDEX = "ome.io/instance-index"
MANAGED_BY = "ome.io/managed-by"

TOPOLOGY_KEY = "ome.io/topology-key"
DEPLOYMENT_MODE = "ome.io/deploymentMode"

# By this annotation we know a PodGroup as our own.
MADE_FOR = "postrender/for"

OME_NATIVE = "OMENative"
RAW_DEPLOYMENT = "RawDeployment"
# What a component's annotation may say; any other value is passed over (ome-gang §9).
COMPONENT_MODES = (OME_NATIVE, RAW_DEPLOYMENT, "MultiNode", "VirtualDeployment")
# What an InferenceService's spec.deploymentMode may say.
SERVICE_MODES = (OME_NATIVE, RAW_DEPLOYMENT)

# The components that can have several pods; a router never has.
COMPONENTS = ("engine", "decoder")


def wanted(api_version: str, kind: str) -> bool:
    """Return whether an object of this apiVersion and kind is one that we read."""
    if kind == INFERENCE_SERVICE:
        return api_version.partition("/")[0] == OME_GROUP
    return kind == POD_GROUP_KIND and api_version == SCHEDULING
