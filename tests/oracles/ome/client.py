"""OME 1.2.2 asked from Python: what its controller makes of an InferenceService.

`Ome` starts `.programs/bin/ome-oracle` once and asks it one question at a time, a line each way: hundreds a second.

    with Ome() as ome:
        made = ome.make(manifests)    # a stream with one InferenceService, its runtime, and what else it needs
        made.set("engine")            # the LeaderWorkerSet of the engine as OME would write it, or None
        made.errors                   # {} or what failed where; a panic of OME's is an error of its component

What OME cannot be asked of at all, such as a stream without InferenceService, is an `OracleError`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracles.client import CoProcess, OracleError

BINARY = Path(__file__).resolve().parents[3] / ".programs" / "bin" / "ome-oracle"

Object = dict[str, Any]


class Made(NamedTuple):
    """What OME made of an InferenceService, and what it said."""

    runtime: str  # Kind/name of the runtime it took, "" if none
    modes: dict[str, str]  # of each component that there is: RawDeployment, MultiNode
    sets: list[Object]  # LeaderWorkerSets
    deployments: list[Object]
    unknown_fields: list[str]  # what the API server of a cluster with OME 1.2.2 would prune
    errors: dict[
        str, str
    ]  # by component, or by step: webhook, model, runtime, merge, mode, acceleratorClass, reconcile

    def set(self, component: str) -> Object | None:
        """The LeaderWorkerSet of a component."""
        return _of(component, self.sets)

    def deployment(self, component: str) -> Object | None:
        """The Deployment of a component."""
        return _of(component, self.deployments)


class Ome(CoProcess):
    """The co-process of OME's own functions."""

    name = "OME oracle"

    def __init__(self, binary: Path = BINARY) -> None:
        super().__init__(binary)

    def make(self, manifests: str, reconcile: bool = False) -> Made:
        """What OME makes of the one InferenceService in a stream.

        OME's kinds in it are read, other documents are not. With `reconcile` its whole controller runs, which wants a
        model and stops at the first error; a model that is named but not in the stream is invented. Without, its steps
        run one by one: no model is needed, and the components do not hinder each other.
        """
        answer = json.loads(self.answer({"yaml": manifests, "reconcile": reconcile}, f"on {manifests[:200]!r}"))
        errors = answer["errors"]
        if "input" in errors:
            raise OracleError(errors["input"])
        return Made(
            answer.get("runtime", ""),
            answer["modes"],
            answer["leaderWorkerSets"],
            answer["deployments"],
            answer["unknownFields"],
            errors,
        )


def _of(component: str, objects: list[Object]) -> Object | None:
    return next((one for one in objects if one["metadata"]["labels"]["component"] == component), None)
