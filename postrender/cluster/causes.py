"""Why a gang is not whole: one cause, the nearest, and the commands that end it.

What schedulers do with label, PodGroup and minMember was read and seen with Coscheduling v0.34.7 (docs/schedulers.md).
"""

from __future__ import annotations

from ..gangs import keys
from ..manifests.objects import field
from ..record import Record
from .instances import ABSENT, HALF_BOUND
from .state import says_little

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .commands import Commands
    from .instances import Instance
    from .state import Pod, PodGroup, State

IGNORED = "scheduler-ignores-label"
UNLABELLED = "label-missing"
NO_DEFINITION = "podgroup-crd-missing"
LATE_DEFINITION = "ome-started-before-crd"
NO_GROUP = "podgroup-missing"
FOREIGN = "podgroup-foreign"
FAILED = "podgroup-failed"
TOO_FEW = "min-member-below-pods"
TOO_MANY = "min-member-above-pods"
OLD_PODS = "quorum-of-old-pods"
NO_PODS = "pods-missing"
NO_POLICY = "policy-missing"
GATED = "scheduling-gated"
UNSEEN = "no-scheduler"
NO_ROOM = "no-room"
NAMES = (
    IGNORED,
    UNLABELLED,
    NO_DEFINITION,
    LATE_DEFINITION,
    NO_GROUP,
    FOREIGN,
    FAILED,
    TOO_FEW,
    TOO_MANY,
    OLD_PODS,
    NO_PODS,
    NO_POLICY,
    GATED,
    UNSEEN,
    NO_ROOM,
)

# A controller makes the pods of a gang one after the other, and a scheduler has looked at each before this is over.
_SOON = 10.0


class Cause(Record):
    """What keeps a gang from being whole; `lasting` says that it does not end by itself."""

    name: str
    words: str
    commands: tuple[str, ...]
    lasting: bool = True


class Judge:
    """Names causes, for one cluster."""

    def __init__(self, state: State, commands: Commands) -> None:
        """Take what runs, and how commands are written."""
        self.state = state
        self.commands = commands

    def cause(self, instance: Instance) -> Cause | None:
        """Return why an Instance is not whole; None where it is."""
        state = instance.state
        if state == ABSENT:
            rules: tuple[Callable[[Instance], Cause | None], ...] = (self.foreign, self.failed, self.absent)
        elif state == HALF_BOUND:
            rules = (
                self.ignored,
                self.unlabelled,
                self.no_group,
                self.failed,
                self.too_few,
                self.old_pods,
                self.too_many,
                self.gated,
                self.unseen,
                self.no_room,
            )
        elif instance.waiting:
            rules = (self.no_policy, self.foreign, self.no_group, self.gated, self.too_many, self.unseen, self.no_room)
        else:
            return None
        if state != ABSENT and instance.bound >= instance.size:
            return None
        return next((cause for rule in rules if (cause := rule(instance)) is not None), None)

    # One rule each: the cause, or None where it is not this one

    def ignored(self, instance: Instance) -> Cause | None:
        """Some pods go to a scheduler that reads no pod-group label."""
        named = self.strangers(instance)
        if not named:
            return None
        listed = " and ".join(repr(name) for name in named)
        words = f"{listed} reads no pod-group label, as far as is known, and places pods one by one"
        return Cause(IGNORED, words, self.commands.name_scheduler(instance))

    def strangers(self, instance: Instance) -> list[str]:
        """Return the schedulers of an Instance's pods that place no gangs, as far as is known."""
        return sorted({pod.scheduler for pod in instance.pods} - {*self.commands.gang_schedulers})

    def unlabelled(self, instance: Instance) -> Cause | None:
        """Some pods carry no label, so the scheduler knows of no gang."""
        bare = [pod for pod in instance.pods if not pod.group]
        if not bare:
            return None
        who = "its pods carry" if len(bare) == len(instance.pods) else f"{_pods(bare)} carries"
        words = f"{who} no label {keys.POD_GROUP}, so the scheduler places them one by one"
        return Cause(UNLABELLED, words, self.commands.render(instance))

    def no_policy(self, instance: Instance) -> Cause | None:
        """The admission policy has not told the pods their PodGroup."""
        if not any(pod.group == keys.POLICY_MISSING for pod in instance.pods):
            return None
        again = self.commands.delete_pods(instance, keys.POLICY_MISSING)
        if self.state.policy:
            words = "its pods were made before the admission policy acted, and carry the label that it replaces"
            return Cause(NO_POLICY, words, (again,))
        words = "the admission policy is missing that tells each pod its PodGroup"
        if self.state.policy is None:
            words += ", or was when these were made"
        # Pods that are made within seconds of it would still be passed over.
        return Cause(NO_POLICY, words, (self.commands.install_policy(), "sleep 10", again))

    def no_group(self, instance: Instance) -> Cause | None:
        """The label names a PodGroup that is not there."""
        if instance.group is not None or not any(pod.group for pod in instance.pods) or self.strangers(instance):
            return None
        return self.missing_group(instance)

    def missing_group(self, instance: Instance) -> Cause:
        """Return why the PodGroup of an Instance is not there."""
        commands, by_ome = self.commands, instance.decided.made_by == keys.OME
        if not self.state.served:
            words = "the cluster does not serve podgroups.scheduling.x-k8s.io"
            after = (commands.restart_ome(),) if by_ome else commands.render(instance)
            return Cause(NO_DEFINITION, words, (commands.install_definition(), *after))
        name = next((pod.group for pod in instance.pods if pod.group), instance.name)
        if not by_ome:
            return Cause(NO_GROUP, f"there is no PodGroup {name!r}", commands.render(instance))
        if self.late(instance):
            words = "OME started before the PodGroup CRD was there, looks for it only then, and so makes none"
            return Cause(LATE_DEFINITION, words, (commands.restart_ome(),))
        words = f"there is no PodGroup {name!r}, which OME makes: OME is down or kept from it"
        return Cause(NO_GROUP, words, (commands.restart_ome(),))

    def late(self, instance: Instance) -> bool:
        """Return whether OME looked for the CRD before it was there: it says so, or is older."""
        state, merged = self.state, instance.decided.merged
        component = merged.own.name if merged is not None else ""
        if (instance.namespace, instance.decided.owner.name, component) in state.unavailable:
            return True
        return state.defined is not None and state.started is not None and state.started < state.defined

    def foreign(self, instance: Instance) -> Cause | None:
        """Somebody else holds the PodGroup, and OME makes no pods under it."""
        group = instance.group
        if group is None or instance.decided.made_by != keys.OME or group.of_ome:
            return None
        words = (
            f"PodGroup {group.name!r} {held_by(group)}, so it is not OME's, and OME makes no pods under it"
            " (PodGroupOwnershipConflict)"
        )
        return Cause(FOREIGN, words, (self.commands.delete_group(instance, group.name),))

    def failed(self, instance: Instance) -> Cause | None:
        """OME withholds pods while its PodGroup is Failed, and resets it once no member is."""
        group = instance.group
        if group is None or group.phase != "Failed" or instance.decided.made_by != keys.OME:
            return None
        words = f"PodGroup {group.name!r} is Failed, and OME makes no pods under it until it has made it anew"
        dead = self.dead(instance, group)
        if dead:
            words += f", which it does once no failed pod is left: {_pods(dead)}"
        return Cause(FAILED, words, self.mend(instance, group))

    def dead(self, instance: Instance, group: PodGroup) -> list[Pod]:
        """Return the failed pods that a PodGroup counts, whoever they belong to."""
        return [
            pod
            for pod in self.state.pods
            if pod.phase == "Failed" and pod.group == group.name and pod.namespace == instance.namespace
        ]

    def mend(self, instance: Instance, group: PodGroup) -> tuple[str, ...]:
        """Return how a PodGroup comes out of the phase Failed, into which its failed pods would bring it back."""
        commands, dead = self.commands, self.dead(instance, group)
        words = ("delete", "pods", *(pod.name for pod in dead), "-n", instance.namespace)
        first = (commands.kubectl(*words),) if dead else ()
        if instance.decided.made_by != keys.OME:
            return (*first, commands.reset(instance, group.name))
        # Without them OME does the rest, and what it has made anew is not to be deleted.
        return first or (commands.delete_group(instance, group.name),)

    def too_few(self, instance: Instance) -> Cause | None:
        """The PodGroup waits for fewer pods than there are."""
        group = instance.group
        if group is None or (group.min_member is not None and group.min_member >= instance.size):
            return None
        said = "has no minMember" if group.min_member is None else f"has minMember {group.min_member:,}"
        words = f"PodGroup {group.name!r} {said}, and the gang has {instance.size:,} pods"
        return Cause(TOO_FEW, words, (self.commands.size(instance, group.name), self.commands.delete_pods(instance)))

    def old_pods(self, instance: Instance) -> Cause | None:
        """Pods that go, or belong elsewhere, make up the quorum."""
        if instance.group is None or not instance.others:
            return None
        going = [pod for pod in instance.others if pod.deleted]
        if going:
            words = f"terminating pods still count for the quorum: {_pods(going)}"
            force = self.commands.force(instance, [pod.name for pod in going])
            return Cause(OLD_PODS, words, (force, self.commands.delete_pods(instance)))
        words = (
            f"{len(instance.others):,} older pods carry the same label and make up the quorum, so the new ones are"
            " placed one by one (deleting all interrupts what the old ones serve)"
        )
        return Cause(OLD_PODS, words, (self.commands.delete_pods(instance),))

    def too_many(self, instance: Instance) -> Cause | None:
        """The PodGroup waits for more pods than there will be, or some are not there."""
        group, there = instance.group, len(instance.pods)
        counted = instance.size + len(instance.others)
        if group is not None and group.min_member is not None and group.min_member > counted:
            words = (
                f"PodGroup {group.name!r} has minMember {group.min_member:,}, and the gang has {instance.size:,} pods"
            )
            return Cause(TOO_MANY, words, (self.commands.size(instance, group.name),))
        if there >= instance.size or not self.settled(instance):
            return None
        words = f"only {there:,} of its {instance.size:,} pods are there: a quota, or what makes them waits"
        return Cause(NO_PODS, words, (self.commands.refusals(instance), self.commands.describe_owner(instance)))

    def settled(self, instance: Instance) -> bool:
        """Return whether its pods are old enough for their number to say anything."""
        return all(self.state.now - pod.created >= _SOON for pod in instance.pods)

    def gated(self, instance: Instance) -> Cause | None:
        """Somebody has asked the schedulers to leave the pods alone."""
        gates = sorted({gate for pod in instance.waiting for gate in pod.gated})
        if not gates:
            return None
        pod = next(pod for pod in instance.waiting if pod.gated)
        words = f"its pods have scheduling gates: {', '.join(gates)}; who set them has to take them away"
        # `describe` shows no gates, and a scheduler writes no Event of them.
        show = self.commands.kubectl("get", "pod", pod.name, "-n", pod.namespace, "-o", "yaml")
        return Cause(GATED, words, (show,), lasting=False)

    def unseen(self, instance: Instance) -> Cause | None:
        """No scheduler has said a word about any of the pods."""
        if any(pod.judged or pod.gated for pod in instance.waiting) or not self.settled(instance):
            return None
        named = " and ".join(sorted({repr(pod.scheduler) for pod in instance.waiting}))
        words = f"no scheduler has looked at its pods: {named} does not run, or may not list PodGroups"
        return Cause(UNSEEN, words, (self.commands.kubectl("get", "deployments", "-A", "-o", "wide"),))

    def no_room(self, instance: Instance) -> Cause:
        """Nothing else is wrong: it does not fit."""
        lacking = instance.size - instance.bound
        words = f"there is no room for {'a pod' if lacking == 1 else f'{lacking:,} pods'}"
        pod, group = telling(instance.waiting), instance.group
        if pod is None:
            words += ", or its scheduler has not come to it yet"
        elif instance.bound:
            words += " beside those that have a node; a member that is replaced is placed alone"
        show = self.commands.describe("pod", pod.name, pod.namespace) if pod else self.commands.describe_owner(instance)
        if group is None or instance.bound:
            return Cause(NO_ROOM, words, (show,), lasting=False)
        words += "; when there is, the last command has it tried at once"
        return Cause(NO_ROOM, words, (show, self.commands.touch(instance, group.name)), lasting=False)

    def absent(self, instance: Instance) -> Cause:
        """Nothing of it is there."""
        words = "none of its pods is there yet"
        return Cause(NO_PODS, words, (self.commands.describe_owner(instance),), lasting=False)


def telling(pods: Sequence[Pod]) -> Pod | None:
    """Return the pod whose message says most: of a gang most only say that another one did not fit."""
    said = [pod for pod in pods if pod.message]
    return min(said, key=_rank, default=None)


def _rank(pod: Pod) -> tuple[bool, float, str]:
    return says_little(pod.message), pod.since, pod.name


def _pods(pods: Sequence[Pod]) -> str:
    first = pods[0].name
    return first if len(pods) == 1 else f"{first} and {len(pods) - 1:,} more"


def held_by(group: PodGroup) -> str:
    """Return in words who controls a PodGroup."""
    return f"is controlled by {group.controller}" if group.controller else "has no controller"


class Difference(Record):
    """A field of a PodGroup: what it says and what was planned, None for nothing."""

    path: tuple[str, ...]
    held: str | int | None
    wanted: str | int | None

    @property
    def words(self) -> str:
        """What is said of it."""
        held = "not set" if self.held is None else self.held
        return f"{field(self.path)} is {held}, not {'unset' if self.wanted is None else self.wanted}"


def differences(instance: Instance, group: PodGroup) -> tuple[Difference, ...]:
    """Return how a PodGroup differs from what is planned for it, minMember measured by the pods that are there."""
    if instance.joins:
        return ()
    gang = instance.decided.gangs[0]
    found = (
        Difference(("spec", "minMember"), group.min_member, instance.size if instance.pods else gang.min_member),
        Difference(("spec", "scheduleTimeoutSeconds"), group.schedule_timeout_seconds, gang.schedule_timeout_seconds),
        Difference(
            ("metadata", "annotations", keys.TOPOLOGY_KEY), group.topology_key or None, gang.topology_key or None
        ),
    )
    return tuple(one for one in found if one.held != one.wanted)
