"""A cluster by hand: python -m tests.e2e.cluster [--nodes N] [--gpus N] [--lws] [--parts NAME,NAME]"""

from __future__ import annotations

import argparse
import signal
import sys
import time

from . import Cluster, ClusterError, programs


def main() -> int:
    """Start one, say where it is, and end it at Ctrl-C."""
    parser = argparse.ArgumentParser("python -m tests.e2e.cluster", description="A real control plane on 127.0.0.1.")
    parser.add_argument("--nodes", type=int, default=4, help="how many nodes (4)")
    parser.add_argument("--gpus", type=int, default=8, help="how many GPUs each (8)")
    parser.add_argument("--lws", action="store_true", help="with LeaderWorkerSet")
    parser.add_argument("--parts", default=",".join(programs.NAMES[:-1]), help="which programs (%(default)s)")
    asked = parser.parse_args()
    for one in (signal.SIGINT, signal.SIGTERM):  # a shell may have it ignored in the background
        signal.signal(one, signal.default_int_handler)
    begin = time.monotonic()
    try:
        with Cluster(asked.nodes, asked.gpus, asked.lws, asked.parts.split(",")) as cluster:
            print(f"export KUBECONFIG={cluster.environment['KUBECONFIG']}")
            print(f"kubectl: {programs.binary('kubectl')}")
            print(f"logs: {cluster.folder}/logs, audit log: {cluster.audit.path}")
            print(f"started in {time.monotonic() - begin:.1f} s; Ctrl-C ends it", flush=True)
            while True:
                for part in cluster.parts.values():
                    part.check()
                time.sleep(1)
    except KeyboardInterrupt:
        return 0
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
