"""One module for each way to run a component with several pods, and the table of which mode is run by which."""

from __future__ import annotations

from .. import keys
from . import multinode, omenative
from .shape import NOTHING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Merged
    from ..world import World
    from .shape import Shape

_BY_MODE = {keys.OME_NATIVE: omenative.shape, keys.MULTI_NODE: multinode.shape}


def shape(merged: Merged, world: World, missing: str) -> Shape:
    """Return what a component comes to; `missing` says what of it is not known, empty if all is."""
    if merged.workload.kind == keys.INFERENCE_REPLICA and world.dialect.shaped != keys.OME_NATIVE:
        return NOTHING  # OME below 1.3 has none
    # What is not known may be leader and worker.
    mode = merged.mode if merged.told is not None or not missing else world.dialect.shaped
    by_mode = _BY_MODE.get(mode)
    return by_mode(merged, world, missing) if by_mode is not None else NOTHING
