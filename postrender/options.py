"""What a render can be told, as values."""

from __future__ import annotations

from .record import Record

SECOND = 1_000_000_000


class Options(Record):
    """Options of a render. Durations are nanoseconds, as in Go; the defaults are those of OME's own chart.

    `ready_timeout` is the cluster's `lifecycle.instanceReadyTimeout`, 0 for none; `timeout_min` and `timeout_max` are
    its `gangScheduleTimeout`, both 0 for no clamp.
    """

    ready_timeout: int = 30 * 60 * SECOND
    timeout_min: int = 60 * SECOND
    timeout_max: int = 600 * SECOND


DEFAULTS = Options()
