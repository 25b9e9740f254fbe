"""Ends what belongs to a cluster when its owner is gone, however it went: python watchdog.py FOLDER

The owner holds the other end of our standard input. It ends when the owner does, also by `kill -9`; then every process of the
cluster is killed and the folder removed. Processes are known by a variable of their environment, which children inherit: nobody
needs to report them, so none is forgotten between its start and the report.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time

MARK = "POSTRENDER_CLUSTER"


def processes(folder: str) -> list[int]:
    """The processes that belong to the cluster in `folder`."""
    wanted = f"{MARK}={folder}".encode()
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if wanted in environment.read().split(b"\0"):
                    found.append(int(name))
        except OSError:  # it ended while we looked, or it is not ours to look at
            continue
    return found


def sweep(folder: str, seconds: float = 20) -> None:
    """Kill them all, then remove the folder; again if somebody was just about to write there."""
    end = time.monotonic() + seconds
    while (left := processes(folder)) or os.path.exists(folder):
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if time.monotonic() > end:
            raise TimeoutError(f"cannot end {left} or remove {folder}")
        if not left:
            shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.01)


if __name__ == "__main__":
    while os.read(0, 1024):
        pass
    sweep(sys.argv[1])
    time.sleep(0.5)  # whoever was being started when the owner died has got its environment by now
    sweep(sys.argv[1])
