"""Definitions of OME's kinds that accept any spec; OME's own are not for us to copy, and are of no use here."""

from __future__ import annotations

from typing import Any

import yaml

NAMES = ("inferenceservices.ome.io", "inferencereplicas.ome.io")

TEXT = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: inferenceservices.ome.io
spec:
  group: ome.io
  scope: Namespaced
  names:
    kind: InferenceService
    listKind: InferenceServiceList
    plural: inferenceservices
    singular: inferenceservice
    shortNames: [isvc]
  versions:
    - name: v1beta1
      served: true
      storage: true
      subresources:
        status: {}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: inferencereplicas.ome.io
spec:
  group: ome.io
  scope: Namespaced
  names:
    kind: InferenceReplica
    listKind: InferenceReplicaList
    plural: inferencereplicas
    singular: inferencereplica
    shortNames: [irep]
  versions:
    - name: v1beta1
      served: true
      storage: true
      subresources:
        status: {}
        scale:
          specReplicasPath: .spec.replicas
          statusReplicasPath: .status.replicas
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def documents() -> list[dict[str, Any]]:
    """Return the definitions as objects."""
    return list(yaml.safe_load_all(TEXT))
