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
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

from tests.oracles.client import OracleError

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


class Ome:
    """The co-process. Not for several threads: an answer belongs to the question before it."""

    def __init__(self, binary: Path = BINARY) -> None:
        if not binary.exists():
            raise FileNotFoundError("run 'make e2e' once: it builds .programs/bin/ome-oracle")
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Ome:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the co-process: it leaves when its questions end."""
        self._process.communicate()

    def make(self, manifests: str, reconcile: bool = False) -> Made:
        """What OME makes of the one InferenceService in a stream.

        OME's kinds in it are read, other documents are not. With `reconcile` its whole controller runs, which wants a
        model and stops at the first error; a model that is named but not in the stream is invented. Without, its steps
        run one by one: no model is needed, and the components do not hinder each other.
        """
        question = json.dumps({"yaml": manifests, "reconcile": reconcile}, ensure_ascii=False).encode()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(question + b"\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: no answer comes, which is said below
        line: bytes = stdout.readline()
        if not line.endswith(b"\n"):
            raise RuntimeError(f"the OME oracle ended (exit code {self._process.wait()}) on {manifests[:200]!r}")
        answer = json.loads(line)
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
