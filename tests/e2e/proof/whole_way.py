"""From a chart or a kustomization to bound pods, and back to nothing: two releases, and room for one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container

from tests.e2e.cluster import ApiError, ClusterError

from .outcome import Outcome
from .scenarios import Scenario, admission, whole_or_none
from .stage import FILLER, Stage
from .tools import POLICY, Build, Function, Helm, Kubectl, Pipe, Revision, Tool

BUILD, SIZE = "example.com/build", "leaderworkerset.sigs.k8s.io/size"


def way(stage: Stage, namespace: str, tool: Tool) -> Outcome:
    """Install one, give it a worker more and take it back, a replica more and take it back; install the other beside it.

    Then uninstall the first, then the other. What waits while another is updated is a story of its own: `replaced`.
    """
    before = objects(stage)
    begin = time.monotonic()
    tool.deploy("blue", Revision())
    stage.running(namespace, 3)
    facts: dict[str, int | float | str] = {
        "seconds from the command to three running pods": round(time.monotonic() - begin, 1)
    }
    larger = Revision(build="b", workers=3)
    tool.deploy("blue", larger)
    facts["running after an upgrade to four pods"] = running(stage, namespace, larger)
    tool.back("blue")
    facts["running after the rollback"] = running(stage, namespace, Revision())
    first = of(stage, namespace, "blue")
    tool.deploy("blue", Revision(replicas=2))
    facts["bound of each after an upgrade to two replicas"] = " and ".join(
        str(gang.bound) for gang in stage.rest(namespace, 3, 6)
    )
    tool.back("blue")
    facts["running after the rollback of that"] = len(stage.running(namespace, 3))
    facts["pods of these that ran before it"] = len(first & of(stage, namespace, "blue"))
    tool.deploy("green", Revision())
    gangs = stage.rest(namespace, 3, 6)
    tool.remove("blue")
    stage.wait_pods(namespace, 3)
    stage.awake(namespace, 3)
    facts["bound of the other when the first is uninstalled"] = stage.gangs(namespace, 3)[0].bound
    tool.remove("green")
    facts["objects left when both are"] = left(stage, before)
    return Outcome(gangs, facts)


def running(stage: Stage, namespace: str, revision: Revision) -> int:
    """Wait until all pods are those of a revision; return how many run then."""
    wanted = (revision.build, str(1 + revision.workers))

    def reached() -> bool:
        pods = [pod["metadata"]["annotations"] for pod in stage.pods(namespace)]
        return {(pod[BUILD], pod[SIZE]) for pod in pods} == {wanted}

    stage.cluster.wait(reached, 60, "the change to reach the pods")
    return len(stage.running(namespace, 1 + revision.workers))


def of(stage: Stage, namespace: str, name: str) -> set[str]:
    """Return the uids of a release's pods; a prefix of its name is none of our business."""
    pods = [pod["metadata"] for pod in stage.pods(namespace)]
    return {pod["uid"] for pod in pods if pod["labels"]["ome.io/inferenceservice"].endswith(name)}


def bounds(stage: Stage, namespace: str) -> list[int]:
    """Return how many pods of each gang have a node."""
    return [gang.bound for gang in stage.gangs(namespace, 3)]


def objects(stage: Stage) -> dict[str, str]:
    """Return where each object of the cluster is, of whatever kind, by its uid."""
    api = stage.cluster.api
    api.discover()
    found: dict[str, str] = {}
    for path in {path for path, _ in api.kinds.values()}:
        try:
            items = api.request("GET", path)["items"]
        except ApiError as error:
            if error.status not in {404, 405}:  # kinds that can only be asked, or only created
                raise
            continue
        for one in items:
            found.setdefault(one["metadata"].get("uid", path), f"{path} {one['metadata'].get('name')}")
    return found


def left(stage: Stage, before: Container[str]) -> int:
    """Wait for the garbage collector; return how many objects are there that were not before, and are no mere word."""

    def new() -> list[str]:
        names = [name for uid, name in objects(stage).items() if uid not in before]
        return [name for name in names if "/events " not in name and f" {FILLER}" not in name]

    try:
        stage.cluster.wait(lambda: not new(), 60, "nothing to be left")
    except ClusterError:
        return len(new())
    return 0


def played(make: Callable[[Stage, str, bool], Tool]) -> Callable[[Stage, bool], Outcome]:
    """Return the story as it goes with a tool. Where we are in it, the policy that tells replicas apart is installed."""

    def play(stage: Stage, ours: bool) -> Outcome:
        with stage.namespace() as namespace, admission(stage) if ours else contextlib.nullcontext():
            return way(stage, namespace, make(stage, namespace, ours))

    return play


def helm(version: str) -> Callable[[Stage, bool], Outcome]:
    """Helm: 3 with `--post-renderer postrender`, 4 with the plugin."""
    return played(lambda stage, namespace, ours: Helm(version, stage.cluster, namespace, ours, POLICY))


def kubectl(kind: type[Kubectl]) -> Callable[[Stage, bool], Outcome]:
    """What ends in `kubectl apply --prune`."""
    return played(lambda stage, namespace, ours: kind(stage.cluster, namespace, ours, POLICY))


def replaced(stage: Stage, ours: bool) -> Outcome:
    """A gang that runs is updated in place while another waits. What comes of it is no promise kept: see the page."""
    with stage.namespace() as namespace:
        tool = Pipe(stage.cluster, namespace, ours)
        tool.deploy("blue", Revision())
        stage.running(namespace, 3)
        tool.deploy("green", Revision())
        stage.rest(namespace, 3, 6)
        before = of(stage, namespace, "blue")
        tool.deploy("blue", Revision(build="b"))
        stage.cluster.wait(lambda: of(stage, namespace, "blue") - before, 60, "the new leader")
        # Old workers take their time to end. Here they are gone at once, so the new ones are kept away for a while.
        with stage.cluster.part("lws").paused():
            stage.cluster.wait(lambda: not of(stage, namespace, "blue") & before, 30, "the old workers to be gone")
            for _ in range(4):  # as `Stage.awake`
                stage.wake(namespace)
                with contextlib.suppress(ClusterError):
                    stage.cluster.wait(lambda: 3 in bounds(stage, namespace), 5, "the other to have the room")
                    break
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
            Helm("4.3", stage.cluster, namespace, ours).deploy("blue", Revision())
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
    """No gang partial, nothing stopped for a replica that finds no room, the other whole once there is some, nothing left."""
    return whole_or_none(outcome) and [*outcome.facts.values()][1:] == [4, 3, "3 and 0", 3, 3, 3, 0]


WAYS = (
    Scenario("helm-3", helm("3.19"), complete),
    Scenario("helm-4", helm("4.3"), complete),
    Scenario("kustomize", kubectl(Pipe), complete),
    Scenario("function", kubectl(Function), complete),
    Scenario("build", kubectl(Build), complete),
    Scenario("foreign", foreign, lambda outcome: [*outcome.facts.values()] == ["refused it", 0, "kept"]),
)
# What we do not mend, so that nobody learns of it from us last.
LIMITS = (Scenario("replaced", replaced, lambda outcome: outcome.partial == 0),)
