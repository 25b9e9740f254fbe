"""Many gangs at once, through Helm and us, with room for half of them; what each part needed for it."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.cluster import ClusterError

from .outcome import Gang
from .stage import SCRIPT, Stage, multinode
from .tools import CHART, OPTIONS, Helm, Revision, variables

SIZE, PER_NODE = 8, 2  # pods of a gang, pods that a node has room for
QUIET = 10.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What a program needed: CPU time, and the most memory it had at once."""

    name: str
    cpu_seconds: float
    mebibytes: int


@dataclass(frozen=True)
class Scale:
    """The gangs at rest, numbers by what they are, and the cost of each part."""

    gangs: tuple[Gang, ...]
    facts: dict[str, Any]
    parts: tuple[Cost, ...]


def run(gangs: int, nodes: int, ours: bool = True, seconds: float = 1500) -> Scale:
    """Deploy `gangs` gangs of eight half-node pods on `nodes` nodes, and wait until no pod was bound for ten seconds."""
    with multinode(nodes, coscheduling={"podGroupBackoffSeconds": 5}) as stage:
        namespace = stage.cluster.namespace()  # it goes with the cluster, which is quicker than to delete so much
        helm = Helm("4.3", stage.cluster, namespace, ours)
        revision, words = Revision(workers=SIZE - 1), ("--set", f"gangs={gangs},gpus=4")
        rendered = helm.run("template", "gang", CHART, *revision.words(), *words)
        filter_ = cost("postrender, alone on the chart's output", [str(SCRIPT)], rendered.encode())
        begin = time.monotonic()
        helm.deploy("gang", revision, *words)
        installed = time.monotonic() - begin
        found, last_bind = rest(stage, namespace, gangs * SIZE, begin, seconds)
        facts = {
            "gangs of 8 pods": gangs,
            "nodes, each with room for 2 of the pods": nodes,
            "pods": gangs * SIZE,
            "bytes that Helm handed to postrender": len(rendered.encode()),
            "seconds of `helm upgrade --install`, postrender included": round(installed, 1),
            "seconds until the last pod was bound": round(last_bind, 1),
            "gangs whole": sum(gang.bound == gang.pods for gang in found),
            "gangs with nothing": sum(gang.bound == 0 for gang in found),
            "gangs partial": sum(gang.partial for gang in found),
        }
        return Scale(found, facts, (filter_, *parts(stage)))


def rest(stage: Stage, namespace: str, count: int, begin: float, seconds: float) -> tuple[tuple[Gang, ...], float]:
    """Return the gangs once all pods are there and none was bound for ten seconds, and when the last one was."""
    last, since = -1, time.monotonic()
    while True:
        pods = stage.pods(namespace)
        bound = sum("nodeName" in pod["spec"] for pod in pods)
        if bound != last or len(pods) < count:
            last, since = bound, time.monotonic()
        if time.monotonic() > since + QUIET:
            return stage.gangs(namespace, SIZE), since - begin
        if time.monotonic() > begin + seconds:
            raise ClusterError(f"{len(pods)} of {count} pods, {bound} bound, and no rest after {seconds} s")
        time.sleep(1)


def cost(name: str, command: list[str], data: bytes) -> Cost:
    """Run a filter, and return what it needed."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=variables(OPTIONS)
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write(data)  # it writes nothing before it has read everything
        process.stdin.close()
        process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise ClusterError(f"{name}: exit code {process.returncode}")
    return Cost(name, round(usage.ru_utime + usage.ru_stime, 2), usage.ru_maxrss // 1024)


def parts(stage: Stage) -> list[Cost]:
    """Return what each part of the cluster has needed so far."""
    return [part(name, one.process.pid) for name, one in stage.cluster.parts.items() if one.process]


def part(name: str, process: int) -> Cost:
    """Return what a process has needed so far."""
    # The name, in brackets, may have spaces; fields 14 and 15 are the ticks in user and in system mode.
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return Cost(name, round((int(fields[11]) + int(fields[12])) / TICKS, 1), peak // 1024)
