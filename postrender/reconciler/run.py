"""`postrender reconcile`: the client, the loop, the server and the signals, put together."""

from __future__ import annotations

import signal
import threading

from .. import __version__
from ..cluster.client import Missing, Refused, Unreachable, connect
from ..findings import DONE, REFUSED, UNREACHABLE, USAGE
from .log import ERROR, INFO, Log
from .loop import Loop, Settings
from .metrics import Metrics
from .serve import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO


def run(
    settings: Settings, context: str, kubeconfig: str, listen: str, once: bool, verbose: bool, errors: TextIO | None
) -> int:
    """Run until told to stop, or `once`; return the exit code. Logs go to `errors`."""
    log = Log(errors, verbose)
    host, _, port = listen.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        log(ERROR, f"--listen: {listen!r} is no HOST:PORT")
        return USAGE
    metrics = Metrics()
    metrics.set("build_info", 1, __version__)
    try:
        loop = Loop(connect(context, kubeconfig), settings, log, metrics)
        if once:
            loop.once()
            return DONE
        server = Server(host.strip("[]") or "0.0.0.0", int(port), loop)  # noqa: S104 - a pod's probes come from outside
    except (Missing, Unreachable) as error:
        log(ERROR, str(error))
        return UNREACHABLE
    except Refused as refused:
        log(ERROR, str(refused))
        return REFUSED
    except OSError as error:
        log(ERROR, f"--listen {listen}: {error.strerror or error}")
        return UNREACHABLE
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: loop.stop())
    server.start()
    log(INFO, "started", version=__version__, port=server.port, dry_run=settings.dry_run or None)
    loop.run()
    log(INFO, "stopped", threads=threading.active_count())
    return DONE
