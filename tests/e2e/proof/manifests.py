"""The services of the scenarios, as a chart would print them."""

from __future__ import annotations

MODEL = "qwen"

RUNTIME = """\
apiVersion: ome.io/v1beta1
kind: ServingRuntime
metadata:
  name: {name}
spec:
  supportedModelFormats:
  - modelFormat:
      name: safetensors
    modelFramework:
      name: transformers
  engineConfig:
    leader:
      runner:
        name: ome-container
        image: sglang
        resources:
          limits:
            nvidia.com/gpu: "{gpus}"
    worker:
      size: {workers}
      runner:
        name: ome-container
        image: sglang
        resources:
          limits:
            nvidia.com/gpu: "{gpus}"
"""

SERVICE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: {name}
spec:
  model:
    name: {model}
  runtime:
    name: {name}
  engine:
    minReplicas: {replicas}
    annotations:
      example.com/build: {build}
"""

NATIVE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: {name}
spec:
  engine:
    minReplicas: 1
    leader:
      runner:
        name: ome-container
        image: {build}
        resources:
          limits:
            nvidia.com/gpu: "{gpus}"
    worker:
      size: {workers}
      runner:
        name: ome-container
        image: {build}
        resources:
          limits:
            nvidia.com/gpu: "{gpus}"
"""


def multinode(name: str, workers: int = 2, replicas: int = 1, gpus: int = 8, build: str = "a") -> str:
    """Return a service whose leader and workers stand in its runtime: OME 1.2.2 makes LeaderWorkerSets of it."""
    runtime = RUNTIME.format(name=name, gpus=gpus, workers=workers)
    return f"{runtime}---\n{SERVICE.format(name=name, model=MODEL, replicas=replicas, build=build)}"


def sized(name: str, build: str, workers: int, replicas: int) -> str:
    """Return one that says itself how many workers it wants. OME 1.2.2 hears of a change in a service, not in a runtime."""
    service = multinode(name, workers=1, replicas=replicas, build=build)
    return f"{service}    leader: {{}}\n    worker:\n      size: {workers}\n"


def native(name: str, workers: int = 2, gpus: int = 8, build: str = "a") -> str:
    """Return a service with leader and workers of its own: what OME 1.3 runs by itself, as OMENative."""
    return NATIVE.format(name=name, workers=workers, gpus=gpus, build=build)


def stream(*documents: str) -> str:
    """Return the documents as one stream."""
    return "---\n".join(documents)


def without(kind: str, text: str) -> str:
    """Return the stream without the documents of a kind."""
    return "---\n".join(one for one in text.split("---\n") if f"\nkind: {kind}\n" not in f"\n{one}")
