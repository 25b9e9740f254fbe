"""A real control plane without containers: `with Cluster(nodes=4, gpus=8) as cluster: …`, or `python -m tests.e2e.cluster`."""

from __future__ import annotations

from .cluster import Cluster
from .errors import ApiError, ClusterError
from .part import Part

__all__ = ["ApiError", "Cluster", "ClusterError", "Part"]
