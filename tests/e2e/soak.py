"""The reconciler for minutes with something going wrong all the time: python -m tests.e2e.soak [--minutes 10]

A PodGroup of 500 changes every second and one fails every three, and every few seconds a fault befalls the connection to
a real API server. Memory, threads and open files are read every five seconds. From the second minute on they must stay
where they are, every failed PodGroup must be reset, and there may be no more than two requests a second for the watch.
What happens is counted, not timed: a slow machine takes longer for the same.

Exit codes: 0 all stayed flat, 1 something grew or was left, with the numbers.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from .cluster import Cluster
from .faults import Answer, Cut, End, Error, Fault, FaultProxy, Hang, before, busiest
from .reconciler import Reconciler, account, groups, services
from .test_reconciler import GROUP, define
from .test_reconciler_chaos import create_all

PODGROUPS = 500
STRIKES: tuple[Fault, ...] = (End(), Cut(), Cut(reset=True), Error(410), Error(500), Hang())
ANSWERS: tuple[Fault, ...] = (
    Answer(429, 1),
    Answer(500),
    Answer(503),
    Answer(403),
    Answer(401),
    Cut("before"),
    Cut("after"),
    Cut("middle"),
)
# What may be more at the end than after the first minute.
MEMORY = 5 * 1024  # KiB
THREADS = 2
FILES = 8


class Sample(NamedTuple):
    """What a process holds after so many ticks: KiB, threads, open files."""

    tick: int
    memory: int
    threads: int
    files: int


def main() -> int:
    """Run it, print a line every half a minute, and a last one."""
    parser = argparse.ArgumentParser("python -m tests.e2e.soak")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Cluster(parts=("etcd", "apiserver")) as cluster:
        define(cluster)
        namespace = cluster.namespace()
        services(cluster, namespace, "svc")
        create_all(cluster, groups(namespace, [f"svc-engine-{number}" for number in range(PODGROUPS)]))
        with (
            before(account(cluster, namespace), Path(folder) / "proxy") as (proxy, turned),
            Reconciler(cluster, turned, "--rate", "50") as it,
        ):
            samples = soaked(cluster, namespace, proxy, it, round(told.minutes * 60), random.Random(told.seed))
            return judged(cluster, namespace, proxy, it, samples)


def soaked(
    cluster: Cluster, namespace: str, proxy: FaultProxy, it: Reconciler, ticks: int, chance: random.Random
) -> list[Sample]:
    """Let things happen so often, once a second; what was held meanwhile."""
    samples: list[Sample] = []
    begin = time.monotonic()
    for tick in range(ticks):
        name = f"svc-engine-{chance.randrange(PODGROUPS)}"
        if tick % 3 == 0:
            cluster.api.patch(GROUP, name, {"status": {"phase": "Failed", "failed": 1}}, namespace, "status")
        else:
            cluster.api.patch(GROUP, name, {"metadata": {"labels": {"tick": str(tick)}}}, namespace)
        if tick % 4 == 0:
            proxy.strike(chance.choice(STRIKES))
            proxy.add(chance.choice(ANSWERS), times=chance.randrange(1, 4))
        if tick % 4 == 2:
            proxy.remove()  # what nobody has met is not kept for later: two seconds of four are well
        if tick % 60 == 30:
            with proxy.down():
                time.sleep(3)
        if tick % 5 == 0:
            samples.append(Sample(tick, it.status("VmRSS"), it.status("Threads"), it.descriptors()))
        if tick % 30 == 0:
            print(
                f"{time.monotonic() - begin:5.0f} s  {samples[-1].memory / 1024:.1f} MiB  {samples[-1].threads} threads  {samples[-1].files} files",
                flush=True,
            )
        time.sleep(max(0.0, begin + tick + 1 - time.monotonic()))
    return samples


def judged(cluster: Cluster, namespace: str, proxy: FaultProxy, it: Reconciler, samples: list[Sample]) -> int:
    """Print what came of it; the exit code."""
    proxy.remove()
    cluster.wait(
        lambda: not [one for one in cluster.list(GROUP, namespace) if one.get("status", {}).get("phase") == "Failed"],
        420,
        "every PodGroup to be reset",
    )
    early = [one for one in samples if one.tick <= max(60, samples[-1].tick / 4)]
    late = samples[len(early) :]
    wrong = []
    for what, most in (("memory", MEMORY), ("threads", THREADS), ("files", FILES)):
        first, last = (max(getattr(one, what) for one in part) for part in (early, late))
        print(f"{what}: at most {first} in the first minute, {last} after it")
        if last > first + most:
            wrong.append(what)
    watches = [one for one in proxy.requests if one.watch]
    # Of a machine that stops for a moment a single second tells little.
    if busiest(watches, 3.0) > 6:
        wrong.append("watches")
    errors = it.log(level="error")
    if errors:
        wrong.append("errors")
    resets = it.metric("postrender_podgroup_resets_total", result="done")
    print(f"{len(proxy.requests)} requests, {len(watches)} watches, {resets:.0f} resets, {len(errors)} errors of ours")
    print(f"grew or went wrong: {', '.join(wrong)}" if wrong else "all stayed flat")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
