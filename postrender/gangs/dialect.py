"""How OME's versions differ in reading a service, as values: everything else is the same code for all of them.

Sources: OME's utils/deployment.go, utils/merging.go, utils/reconciliation.go and runtimeselector/fetcher.go, at v1.2.2
and on the 1.3 line.
"""

from __future__ import annotations

from ..record import Record
from . import keys


class Dialect(Record):
    """What a version of OME makes of a service and its runtime.

    `annotated` are the modes that a component's annotation may say, any other value being passed over; `annotations`
    the components where it is read; `told` the modes of `spec.deploymentMode`; `shaped` the mode of leader or worker.
    `folds` says whether the component's scheduler fills leader and worker; `inherits` whether runtimes inherit;
    `by_kind` whether a service's `runtime.kind` decides the look-up, which else takes the namespace's first;
    `replicas_of_runtime` whether a runtime's minReplicas count. `workers` is what an unset `worker.size` comes to, and
    `least` the fewest Instances, for 0 counts as that.
    """

    annotated: tuple[str, ...]
    annotations: tuple[str, ...]
    told: tuple[str, ...]
    shaped: str
    folds: bool
    inherits: bool
    by_kind: bool
    replicas_of_runtime: bool
    workers: int
    least: int


OME_1_3 = Dialect(
    annotated=(keys.OME_NATIVE, keys.RAW_DEPLOYMENT, keys.MULTI_NODE, keys.VIRTUAL_DEPLOYMENT),
    annotations=keys.COMPONENTS,
    told=(keys.OME_NATIVE, keys.RAW_DEPLOYMENT),
    shaped=keys.OME_NATIVE,
    folds=True,
    inherits=True,
    by_kind=True,
    replicas_of_runtime=True,
    workers=1,
    least=1,
)
# Below 1.3 the webhook writes minReplicas 1 into a service that has none, so its runtime's never count.
BEFORE_1_3 = Dialect(
    annotated=(keys.RAW_DEPLOYMENT, keys.MULTI_NODE_RAY, keys.MULTI_NODE, keys.VIRTUAL_DEPLOYMENT),
    annotations=("engine",),
    told=(),
    shaped=keys.MULTI_NODE,
    folds=False,
    inherits=False,
    by_kind=False,
    replicas_of_runtime=False,
    workers=0,
    least=0,
)


def of(version: tuple[int, int] | None) -> Dialect:
    """Return the dialect of a version; of 1.3 where none is said, for its objects are what we document."""
    return BEFORE_1_3 if version is not None and version < (1, 3) else OME_1_3
