"""What can happen to gangs, each as a story that is played with us and without.

A scenario's claim holds of its outcome with us, and not of the one without: what is left out is said in `left_out`.
Four nodes of eight GPUs are the room; a gang of three whole nodes thus leaves one, and two such gangs do not fit.
Pod by pod the fourth node is taken too, so that there some gang is always partial, whatever the order.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from postrender.hosts.policy import policy
from tests.e2e.cluster import ClusterError

from . import manifests
from .outcome import Facts, Outcome
from .stage import GROUP, SCRIPT, Stage, stand_in, why

POLICY = policy((1, 34)).decode()
RESET = "PodGroupReset"
NOT_FOUND = "PodGroup not found"
HELD = 6  # seconds that the gang of the timeout may hold GPUs
WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"
GIVE_UP = 12.0  # seconds after which what has not happened will not


@dataclass(frozen=True)
class Scenario:
    """A story, what must hold of its outcome, and what is left out to see that it then does not."""

    name: str
    play: Callable[[Stage, bool], Outcome]
    claim: Callable[[Outcome], bool]
    left_out: str = "the post-renderer"


def two_gangs(stage: Stage, ours: bool) -> Outcome:
    """Two gangs of a leader and three workers, a whole node each, and room for one."""
    with stage.namespace() as namespace:
        with stage.cluster.part("scheduler").paused():
            # Who makes pods first hears of both, so that both start at one moment.
            with stage.cluster.part("controller-manager").paused():
                stage.deploy(namespace, manifests.stream(*(manifests.multinode(name, 3) for name in PAIR)), ours)
                stage.cluster.wait(
                    lambda: len(stage.cluster.list("statefulsets", namespace)) == 2, 30, "a StatefulSet of each"
                )
            stage.wait_pods(namespace, 8)
        begin = time.monotonic()
        gangs = stage.rest(namespace, 4, 8)
        seconds = round(time.monotonic() - begin, 1)
        return Outcome(gangs, {"seconds to rest": seconds}, stage.nodes(namespace))


def lost_group(stage: Stage, ours: bool) -> Outcome:
    """The PodGroup is missing: forgotten, or deleted by somebody."""
    text = manifests.multinode("blue")
    with stage.namespace() as namespace:
        stage.fill(namespace, 2)
        whole = stage.render(text, "--ome", "1.2") if ours else text
        stage.cluster.apply(manifests.without("PodGroup", whole), namespace)
        gangs = stage.rest(namespace, 3, 3)
        said = sum(NOT_FOUND in why(pod) for pod in stage.pods(namespace))
        stage.cluster.apply(whole, namespace)
        without_room = stage.rest(namespace, 3, 3)
        stage.cluster.api.delete("pods", stage.filled(namespace)[0], namespace)
        stage.awake(namespace, 3)
        facts = {
            f"pods that say {NOT_FOUND!r}": said,
            "bound when the PodGroup is there, with room for two": without_room[0].bound,
            "bound when there is room for three": stage.gangs(namespace, 3)[0].bound,
        }
        return Outcome(gangs, facts)


def timeout(stage: Stage, ours: bool) -> Outcome:
    """A gang of 33 GPUs on 32 holds what it got, until its timeout; then others have it."""
    text = manifests.multinode("blue", 32, gpus=1)
    clamp = ("--instance-ready-timeout", f"{HELD}s", "--gang-timeout-min", "0s")
    with stage.namespace() as namespace:
        with stage.cluster.part("scheduler").paused():
            stage.deploy(namespace, text, ours, *clamp)
            stage.wait_pods(namespace, 33)
        begin = time.monotonic()
        stage.cluster.wait(
            lambda: any("Insufficient nvidia.com/gpu" in why(pod) for pod in stage.pods(namespace)), 30, "a refusal"
        )
        stage.fill(namespace, 4, gpus=1, wait=False)
        with contextlib.suppress(ClusterError):
            stage.cluster.wait(lambda: len(stage.filled(namespace)) == 4, HELD + GIVE_UP, "room for others")
        seconds = round(time.monotonic() - begin, 1)
        facts: Facts = {
            "seconds until others are placed": seconds
            if len(stage.filled(namespace)) == 4
            else f"not in {HELD + GIVE_UP:.0f} s",
            "GPUs that others got": len(stage.filled(namespace)),
        }
        return Outcome(stage.gangs(namespace, 33), facts)


def restart(stage: Stage, ours: bool) -> Outcome:
    """A node is closed and a pod of it lost: the whole gang restarts, with room for all but one."""
    with stage.namespace() as namespace:
        stage.fill(namespace, 1)
        stage.deploy(namespace, manifests.multinode("blue"), ours)
        before = stage.running(namespace, 3)
        lost = stage.pods(namespace)[-1]
        node = lost["spec"]["nodeName"]
        try:
            close(stage, node, True)
            with noticed(stage, namespace, lost["metadata"]["name"]):
                stage.cluster.api.delete("pods", lost["metadata"]["name"], namespace)
            stage.cluster.wait(lambda: renewed(stage, namespace, before), 60, "all three pods to be made anew")
            gangs = stage.rest(namespace, 3, 3)
        finally:
            close(stage, node, False)
        stage.awake(namespace, 3)
        return Outcome(gangs, {"bound when the node is back": stage.gangs(namespace, 3)[0].bound})


def failed(stage: Stage, ours: bool) -> Outcome:
    """A pod fails: the group is Failed for good, though all pods run again, unless somebody resets it."""
    name = "lws-blue-engine-0"
    with stage.namespace() as namespace, reconciler(stage) if ours else contextlib.nullcontext():
        stage.deploy(namespace, manifests.multinode("blue"), True)
        before = stage.running(namespace, 3)
        stage.cluster.wait(lambda: stage.status(namespace, name).get("phase") == "Running", 30, "the phase Running")
        pod = stage.pods(namespace)[-1]["metadata"]["name"]
        with noticed(stage, namespace, pod):
            stage.cluster.api.patch("pods", pod, {"status": {"phase": "Failed"}}, namespace, "status")
        stage.cluster.wait(lambda: renewed(stage, namespace, before), 60, "the pods to be made anew")
        stage.running(namespace, 3)
        begin = time.monotonic()
        with contextlib.suppress(ClusterError):
            stage.cluster.wait(
                lambda: stage.status(namespace, name).get("phase") == "Running", GIVE_UP, "the phase Running"
            )
        status = stage.status(namespace, name)
        facts: Facts = {
            "phase of the PodGroup at last": status.get("phase", "none"),
            "running, as its status counts": status.get("running", 0),
            "resets": len([one for one in stage.cluster.list("events", namespace) if one["reason"] == RESET]),
            "seconds from all pods running": round(time.monotonic() - begin, 1),
        }
        return Outcome(stage.gangs(namespace, 3), facts)


def equal_names(stage: Stage, ours: bool) -> Outcome:
    """Two services of one name in two namespaces, and room for one."""
    with stage.namespace() as one, stage.namespace() as other:
        places = {one: "one", other: "other"}
        for place in places:
            stage.deploy(place, manifests.multinode("blue"), ours)
            stage.rest(place, 3, 3)
        gangs = [gang for place in places for gang in stage.gangs(place, 3)]
        counted = [stage.status(place, "lws-blue-engine-0").get("running", 0) for place in places] if ours else []
        named = zip(places.values(), gangs, strict=True)
        facts = {"pods that run, as the two PodGroups' status counts": " and ".join(map(str, counted)) or "none"}
        return Outcome(tuple(type(gang)(f"{place}/{gang.name}", gang.pods, gang.bound) for place, gang in named), facts)


def replicas(stage: Stage, ours: bool) -> Outcome:
    """Three replicas of one LeaderWorkerSet, each a gang by the admission policy, and room for one."""
    with stage.namespace() as namespace, admission(stage) if ours else contextlib.nullcontext():
        with stage.cluster.part("scheduler").paused():
            stage.deploy(namespace, manifests.multinode("blue", replicas=3), ours, "--replicas", "policy")
            stage.wait_pods(namespace, 9)
        return Outcome(stage.rest(namespace, 3, 9))


def no_policy(stage: Stage, ours: bool) -> Outcome:
    """The same where nobody has installed the policy: nothing is placed, and each pod says why."""
    with stage.namespace() as namespace:
        stage.deploy(namespace, manifests.multinode("blue", replicas=3), ours, "--replicas", "policy")
        gangs = stage.rest(namespace, 3, 9)
        said = sum(NOT_FOUND in why(pod) for pod in stage.pods(namespace))
        return Outcome(gangs, {f"pods that say {NOT_FOUND!r}": said})


def scaling(stage: Stage, ours: bool) -> Outcome:
    """From one replica to two, with a single node left for the second."""
    with stage.namespace() as namespace, admission(stage) if ours else contextlib.nullcontext():
        stage.deploy(namespace, manifests.multinode("blue"), ours, "--replicas", "policy")
        before = stage.running(namespace, 3)
        template = stage.cluster.list("leaderworkersets", namespace)[0]["spec"]["leaderWorkerTemplate"]
        stage.deploy(namespace, manifests.multinode("blue", replicas=2), ours, "--replicas", "policy")
        gangs = stage.rest(namespace, 3, 6)
        again = stage.cluster.list("leaderworkersets", namespace)[0]["spec"]["leaderWorkerTemplate"]
        kept = before & {pod["metadata"]["uid"] for pod in stage.pods(namespace)}
        return Outcome(gangs, {"pods of the first that stayed": len(kept), "template changed": str(template != again)})


def surge(stage: Stage, ours: bool) -> Outcome:
    """An update of three replicas brings up a fourth group for a while: it has a PodGroup of its own."""
    with stage.namespace() as namespace, admission(stage) if ours else contextlib.nullcontext():

        def deploy(build: str) -> None:
            text = manifests.multinode("blue", workers=1, replicas=3, gpus=4, build=build)
            stage.deploy(namespace, text, ours, "--replicas", "policy")

        deploy("a")
        before = stage.running(namespace, 6)
        start = stage.cluster.audit.position()
        deploy("b")
        names = ("lws-blue-engine-3", "lws-blue-engine-3-1")
        seen: dict[str, str] = {}

        def over() -> bool:
            pods = {pod["metadata"]["name"]: pod for pod in stage.pods(namespace)}
            seen.update({name: pods[name]["metadata"]["labels"].get(GROUP, "") for name in names if name in pods})
            return renewed(stage, namespace, before, 6) and not pods.keys() & set(names)

        stage.cluster.wait(over, 120, "the update to be over")
        stage.running(namespace, 6)
        placed = [one["objectRef"]["name"] for one in stage.cluster.audit.requests(start, resource="pods/binding")]
        facts: Facts = {
            "pods of the surge group that were bound": sum(name in placed for name in names),
            "PodGroup of the surge group": " ".join(sorted(set(seen.values()))) or "none",
        }
        return Outcome(stage.gangs(namespace, 2), facts)


def spares(stage: Stage, ours: bool) -> Outcome:
    """OME 1.3's updates move an Instance to the next index and back; `--spares 1` has a PodGroup there."""
    words = ("--ome", "1.3", "--podgroups", "emit", *(("--spares", "1") if ours else ()))
    with stage.namespace() as namespace, stand_in(stage, groups=False):

        def moved(build: str, index: int) -> bool:
            stage.cluster.apply(stage.render(manifests.native("blue", 1, 8, build), *words), namespace)
            with contextlib.suppress(ClusterError):
                # An Instance keeps its index until all of it is gone; an update before that takes the one after next.
                stage.cluster.wait(
                    lambda: (
                        [(one.name, one.bound) for one in stage.gangs(namespace, 2)] == [(f"{NATIVE}{index}", 2)]
                        and indices(stage, namespace) == [index]
                    ),
                    GIVE_UP,
                    f"the Instance to be at {index}",
                )
                return True
            return False

        facts = {
            step: "2 bound" if moved(build, index) else f"not in {GIVE_UP:.0f} s"
            for step, build, index in (("installed at 0", "a", 0), ("updated to 1", "b", 1), ("and back to 0", "c", 0))
        }
        return Outcome(stage.gangs(namespace, 2), facts)


def own_groups(stage: Stage, ours: bool) -> Outcome:
    """OME 1.3 makes the PodGroups itself; we fill the scheduler's name and leave the rest to it."""
    text = manifests.stream(*(manifests.native(name) for name in PAIR))
    rendered = stage.render(text, "--ome", "1.3") if ours else text
    with stage.namespace() as namespace, stand_in(stage, groups=True):
        with stage.cluster.part("scheduler").paused():
            stage.cluster.apply(rendered, namespace)
            stage.wait_pods(namespace, 6)
        gangs = stage.rest(namespace, 3, 6)
        groups = stage.cluster.list("podgroups", namespace)
        owned = sum(bool(one["metadata"].get("ownerReferences")) for one in groups)
        return Outcome(gangs, {"PodGroups of OME": owned, "PodGroups of ours": len(groups) - owned})


PAIR = ("blue", "green")
NATIVE = "blue-engine-"


def whole_or_none(outcome: Outcome) -> bool:
    """One gang whole, every other with nothing."""
    return outcome.partial == 0 and outcome.bound[-1] == outcome.gangs[-1].pods and not any(outcome.bound[:-1])


def none_bound(outcome: Outcome) -> bool:
    """Nothing is placed, and every pod says what is missing."""
    pods = sum(gang.pods for gang in outcome.gangs)
    return not any(outcome.bound) and outcome.facts[f"pods that say {NOT_FOUND!r}"] == pods


MULTINODE = (
    Scenario("two-gangs", two_gangs, whole_or_none),
    Scenario(
        "lost-group",
        lost_group,
        lambda outcome: none_bound(outcome) and [*outcome.facts.values()][1:] == [0, 3],
    ),
    Scenario("timeout", timeout, lambda outcome: outcome.bound == [0] and outcome.facts["GPUs that others got"] == 4),
    Scenario(
        "restart",
        restart,
        lambda outcome: outcome.bound == [0] and outcome.facts["bound when the node is back"] == 3,
    ),
    Scenario(
        "failed",
        failed,
        lambda outcome: [*outcome.facts.values()][:3] == ["Running", 3, 1] and outcome.bound == [3],
        "the reconciler",
    ),
    Scenario("equal-names", equal_names, whole_or_none),
    Scenario("replicas", replicas, whole_or_none),
    Scenario("no-policy", no_policy, none_bound),
    Scenario(
        "scaling",
        scaling,
        lambda outcome: outcome.bound == [0, 3] and [*outcome.facts.values()] == [3, "False"],
    ),
    Scenario(
        "surge",
        surge,
        lambda outcome: outcome.bound == [2, 2, 2] and [*outcome.facts.values()] == [2, "lws-blue-engine-3"],
    ),
)
NATIVES = (
    Scenario("spares", spares, lambda outcome: [*outcome.facts.values()] == ["2 bound"] * 3, "`--spares`"),
    Scenario("own-groups", own_groups, lambda outcome: whole_or_none(outcome) and [*outcome.facts.values()] == [2, 0]),
)
ALL = MULTINODE + NATIVES


def close(stage: Stage, node: str, closed: bool) -> None:
    """Let no more pods onto a node, or let them again."""
    stage.cluster.api.patch("nodes", node, {"spec": {"unschedulable": closed}})


@contextlib.contextmanager
def noticed(stage: Stage, namespace: str, worker: str) -> Iterator[None]:
    """Keep a worker that is lost until its leader is ended too: of one that goes at once, LeaderWorkerSet may hear nothing.

    One that failed goes at once when it is deleted, whatever its time to end, unless there is a finalizer.
    """
    [leader] = [pod for pod in stage.pods(namespace) if pod["metadata"]["labels"][WORKER_INDEX] == "0"]
    name, uid = leader["metadata"]["name"], leader["metadata"]["uid"]
    with stage.cluster.part("kwok").paused():  # which lets pods go, their finalizers too
        stage.cluster.api.patch("pods", worker, {"metadata": {"finalizers": ["example.com/until-noticed"]}}, namespace)
        yield
        stage.cluster.wait(
            lambda: uid not in {pod["metadata"]["uid"] for pod in stage.pods(namespace)}, 60, f"{name} to be ended"
        )
        stage.cluster.api.patch("pods", worker, {"metadata": {"finalizers": None}}, namespace)


def indices(stage: Stage, namespace: str) -> list[int]:
    """Return the indices that OME's stand-in holds for Instances, also of those that are on their way out."""
    replicas = stage.cluster.list("inferencereplicas", namespace)
    return sorted(row["index"] for one in replicas for row in one.get("status", {}).get("instances") or [])


def renewed(stage: Stage, namespace: str, before: set[str], count: int = 3) -> bool:
    """Whether all pods are there, and none of those before."""
    now = {pod["metadata"]["uid"] for pod in stage.pods(namespace)}
    return len(now) == count and not now & before


@contextlib.contextmanager
def reconciler(stage: Stage) -> Iterator[None]:
    """Run `postrender reconcile`."""
    environment = {"KUBECONFIG": stage.cluster.environment["KUBECONFIG"], "HOME": str(stage.cluster.folder)}
    log = stage.cluster.folder / "logs" / "reconciler.log"
    with (
        log.open("ab") as out,
        subprocess.Popen(
            [SCRIPT, "reconcile", "--listen", "127.0.0.1:0"], env=environment, stdout=out, stderr=out
        ) as process,
    ):
        try:
            stage.cluster.wait(lambda: '"started"' in log.read_text(), 30, "the reconciler to start")
            yield
        finally:
            process.terminate()


@contextlib.contextmanager
def admission(stage: Stage) -> Iterator[None]:
    """Have the policy that `postrender policy` prints act."""
    stage.cluster.apply(POLICY)
    labels = {"postrender/gang": "x", "leaderworkerset.sigs.k8s.io/group-index": "7"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "probe", "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "it", "image": "it"}]},
    }

    def acts() -> bool:
        made = stage.cluster.api.create(pod, dryRun="All")
        return bool(made["metadata"]["labels"].get(GROUP) == "x-7")

    stage.cluster.wait(acts, 30, "the policy to act")
    try:
        yield
    finally:
        stage.cluster.kubectl("delete", "--filename=-", input=POLICY)
        stage.cluster.wait(lambda: not acts(), 30, "the policy to be gone")
