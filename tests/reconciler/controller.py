"""The PodGroup controller of scheduler-plugins v0.34.7 (pkg/controllers/podgroup_controller.go), as a model.

It counts the pods that carry a PodGroup's name as their label in all namespaces, terminating ones included, and never
looks again at a PodGroup that is Failed or Finished. Its write is a merge patch without a resourceVersion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

FINAL = ("Finished", "Failed")


def step(phase: str, phases: Sequence[str], min_member: int) -> tuple[str, dict[str, int] | None]:
    """Return the phase after one look at pods of these phases, and what is counted, None where nothing is."""
    if phase in FINAL:
        return phase, None
    if phase == "":
        return "Pending", None
    if phase == "Pending":
        return ("Scheduling" if len(phases) >= min_member else phase), None
    counted = Counter(phases)
    running, succeeded, failed = counted["Running"], counted["Succeeded"], counted["Failed"]
    counts = {"running": running, "succeeded": succeeded, "failed": failed}
    if len(phases) < min_member:
        return "Pending", counts
    phase = "Running" if succeeded + running >= min_member else "Scheduling"
    if failed and failed + running + succeeded >= min_member:
        phase = "Failed"
    if succeeded >= min_member:
        phase = "Finished"
    return phase, counts


def settled(phase: str, phases: Sequence[str], min_member: int) -> str:
    """Return the phase in which nothing more changes while the pods do not."""
    while True:
        after, _ = step(phase, phases, min_member)
        if after == phase:
            return phase
        phase = after
