"""MultiNode: OME runs a component as a LeaderWorkerSet, and makes no PodGroup for it in any version."""

from __future__ import annotations

from .shape import NOTHING, refused, said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..merge import Merged
    from ..world import World
    from .shape import Shape


def shape(merged: Merged, _: World, __: str) -> Shape:
    """Return no gang, and say so where there is one; a runtime that is missing cannot take the blocks away."""
    if not (merged.leader and merged.worker):
        return NOTHING
    message = "MultiNode runs leader and workers as a LeaderWorkerSet, which nothing gangs"
    remedy = "take OMENative, or leave its pods to be placed one by one"
    return refused(said(merged, "multinode-not-ganged", message, remedy, "", merged.told))
