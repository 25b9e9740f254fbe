"""`postrender reconcile`: the client, the loop, the server and the signals, put together."""

from __future__ import annotations

import signal
from queue import SimpleQueue

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
    """Run until told to stop, or `once`; return the exit code. Logs go to `errors`.

    A second signal ends it at once.
    """
    log = Log(errors, verbose)
    host, colon, port = listen.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        log(ERROR, f"--listen: {listen!r} is no HOST:PORT")
        return USAGE
    metrics = Metrics()
    metrics.set("build_info", 1, __version__)
    try:
        loop = Loop(connect(context, kubeconfig), settings, log, metrics)
        if once:
            loop.once()
            return DONE
        server = Server(host.strip("[]"), int(port), loop)
    except (Missing, Unreachable) as error:
        log(ERROR, str(error))
        return UNREACHABLE
    except Refused as refused:
        log(ERROR, str(refused))
        return REFUSED
    except OSError as error:
        log(ERROR, f"--listen {listen}: {error.strerror or error}")
        return UNREACHABLE
    # A handler may come while any lock is held, by this very thread too; to put into this queue is safe even then.
    told: SimpleQueue[int] = SimpleQueue()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, lambda number, _: told.put(number))
    server.start()
    loop.start()
    log(INFO, "started", version=__version__, port=server.port, dry_run=settings.dry_run or None)
    number = told.get()
    for one in (signal.SIGTERM, signal.SIGINT):
        signal.signal(one, signal.SIG_DFL)
    left = loop.stop()
    log(INFO, "stopped", signal=signal.Signals(number).name, unfinished=left)
    log.close()
    return DONE
