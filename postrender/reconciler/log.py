"""One JSON object a line, on changes only; no token and no whole object is ever in it."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from datetime import datetime, timezone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

DEBUG, INFO, WARNING, ERROR = "debug", "info", "warning", "error"


class Log:
    """Writes lines to a stream; `verbose` writes those at debug too. Threads may share it."""

    def __init__(self, target: TextIO | None, verbose: bool = False) -> None:
        """Take the stream, None for a closed one."""
        self._target = target
        self._verbose = verbose
        self._lock = threading.Lock()

    def __call__(self, level: str, message: str, **fields: str | int | float | bool | None) -> None:
        """Write a line; fields that are None or empty are left out."""
        if level == DEBUG and not self._verbose:
            return
        held = {key: value for key, value in fields.items() if value is not None and value != ""}
        line = json.dumps({"ts": now(), "level": level, "msg": message, **held})
        with self._lock, suppress(OSError, ValueError):  # whoever read it is gone; the work goes on
            if self._target is not None:
                self._target.write(line + "\n")
                self._target.flush()

    def close(self) -> None:
        """Write no more."""
        with self._lock:
            self._target = None


def now() -> str:
    """Return the time in UTC, to the millisecond."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
