"""From a chart or a kustomization to bound pods, and back to nothing: two releases, and room for one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from tests.e2e.cluster import ClusterError

from .outcome import Outcome
from .scenarios import Scenario, whole_or_none
from .stage import Stage
from .tools import Helm, Kustomize, Tool

KINDS = ("inferenceservices", "servingruntimes", "podgroups", "leaderworkersets", "statefulsets", "pods")


def way(stage: Stage, namespace: str, tool: Tool, ours: bool) -> Outcome:
    """Install one, upgrade it and roll it back; install the other beside it; uninstall the first, then the other.

    What waits while another is updated is a story of its own: `replaced`.
    """
    begin = time.monotonic()
    tool.deploy("blue", "a")
    facts: dict[str, int | float | str] = {}
    if ours:
        stage.running(namespace, 3)
        facts["seconds from the command to three running pods"] = round(time.monotonic() - begin, 1)
        facts["running after the upgrade"] = renewed(stage, namespace, lambda: tool.deploy("blue", "b"))
        facts["running after the rollback"] = renewed(stage, namespace, lambda: tool.back("blue"))
    tool.deploy("green", "a")
    gangs = stage.rest(namespace, 3, 6)
    if not ours:
        return Outcome(gangs)
    tool.remove("blue")
    stage.wait_pods(namespace, 3)
    stage.wake(namespace)
    stage.running(namespace, 3)
    facts["bound of the other when the first is uninstalled"] = stage.gangs(namespace, 3)[0].bound
    tool.remove("green")
    facts["objects left when both are"] = left(stage, namespace)
    return Outcome(gangs, facts)


def renewed(stage: Stage, namespace: str, change: Callable[[], None]) -> int:
    """Make a change that replaces all pods of the one gang; return how many run once it has."""
    before = of(stage, namespace, "blue")
    change()
    stage.cluster.wait(lambda: not of(stage, namespace, "blue") & before, 60, "the change to reach the pods")
    return len(stage.running(namespace, 3))


def of(stage: Stage, namespace: str, name: str) -> set[str]:
    """Return the uids of a release's pods."""
    pods = stage.pods(namespace)
    return {pod["metadata"]["uid"] for pod in pods if pod["metadata"]["labels"]["ome.io/inferenceservice"] == name}


def bounds(stage: Stage, namespace: str) -> list[int]:
    """Return how many pods of each gang have a node."""
    return [gang.bound for gang in stage.gangs(namespace, 3)]


def left(stage: Stage, namespace: str) -> int:
    """Wait for the garbage collector; return how many objects are there all the same."""

    def objects() -> int:
        found = [one["metadata"]["name"] for kind in KINDS for one in stage.cluster.list(kind, namespace)]
        return len([name for name in found if not name.startswith("filler")])

    try:
        stage.cluster.wait(lambda: objects() == 0, 60, "nothing to be left")
    except ClusterError:
        return objects()
    return 0


def helm_3(stage: Stage, ours: bool) -> Outcome:
    """Helm 3: `--post-renderer postrender`."""
    with stage.namespace() as namespace:
        return way(stage, namespace, Helm("3.19", stage.cluster, namespace, ours), ours)


def helm_4(stage: Stage, ours: bool) -> Outcome:
    """Helm 4: the plugin."""
    with stage.namespace() as namespace:
        return way(stage, namespace, Helm("4.3", stage.cluster, namespace, ours), ours)


def kustomize(stage: Stage, ours: bool) -> Outcome:
    """kustomize, and a pipe to `kubectl apply`."""
    with stage.namespace() as namespace:
        return way(stage, namespace, Kustomize(stage.cluster, namespace, ours), ours)


def replaced(stage: Stage, ours: bool) -> Outcome:
    """A gang that runs is updated in place while another waits. What comes of it is no promise kept: see the page."""
    with stage.namespace() as namespace:
        tool = Kustomize(stage.cluster, namespace, ours)
        tool.deploy("blue", "a")
        stage.running(namespace, 3)
        tool.deploy("green", "a")
        stage.rest(namespace, 3, 6)
        before = of(stage, namespace, "blue")
        tool.deploy("blue", "b")
        stage.cluster.wait(lambda: of(stage, namespace, "blue") - before, 60, "the new leader")
        # Old workers take their time to end. Here they are gone at once, so the new ones are kept away for a while.
        with stage.cluster.part("lws").paused():
            stage.cluster.wait(lambda: not of(stage, namespace, "blue") & before, 30, "the old workers to be gone")
            stage.wake(namespace)
            with contextlib.suppress(ClusterError):
                stage.cluster.wait(lambda: 3 in bounds(stage, namespace), 5, "the other to have the room")
        return Outcome(stage.rest(namespace, 3, 6))


def foreign(stage: Stage, ours: bool) -> Outcome:
    """A PodGroup of the wanted name is there, and somebody else's: Helm installs nothing at all."""
    theirs = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "lws-blue-engine-0"},
        "spec": {"minMember": 2},
    }
    with stage.namespace() as namespace:
        stage.fill(namespace, 2)
        theirs["metadata"]["namespace"] = namespace  # type: ignore[index]
        before = stage.cluster.api.create(theirs)["metadata"]["uid"]
        said = ""
        try:
            Helm("4.3", stage.cluster, namespace, ours).deploy("blue", "a")
        except ClusterError as error:
            said = str(error)
        gangs = () if said else stage.rest(namespace, 3, 3)
        kept = stage.cluster.get("podgroups", "lws-blue-engine-0", namespace)
        facts: dict[str, int | float | str] = {
            "Helm": "refused it" if "invalid ownership metadata" in said else said or "installed it",
            "services in the cluster": len(stage.cluster.list("inferenceservices", namespace)),
            "their PodGroup": "kept"
            if (kept["metadata"]["uid"], kept["spec"]) == (before, {"minMember": 2})
            else "lost",
        }
        return Outcome(gangs, facts)


def complete(outcome: Outcome) -> bool:
    """No gang partial, the other whole once there is room, and in the end nothing."""
    return whole_or_none(outcome) and [*outcome.facts.values()][1:] == [3, 3, 3, 0]


WAYS = (
    Scenario("helm-3", helm_3, complete),
    Scenario("helm-4", helm_4, complete),
    Scenario("kustomize", kustomize, complete),
    Scenario("foreign", foreign, lambda outcome: [*outcome.facts.values()] == ["refused it", 0, "kept"]),
)
# What we do not mend, so that nobody learns of it from us last.
LIMITS = (Scenario("replaced", replaced, lambda outcome: outcome.partial == 0),)
