"""The commands that end what is wrong, as a person pastes them into a shell."""

from __future__ import annotations

import json
import shlex

from ..gangs import keys
from ..gangs.resources import LeaderWorkerSet, Workload
from ..record import Record
from .server import POD_GROUPS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..gangs.shapes.shape import Decided
    from .instances import Instance

_CONTEXT = "context.yaml"
# Placed by Coscheduling's own chart, which every cluster can have; the OME scheduler wants one version of Kubernetes.
_USUAL = "scheduler-plugins-scheduler"
_RESOURCES = {
    keys.INFERENCE_SERVICE: "inferenceservices.ome.io",
    keys.INFERENCE_REPLICA: "inferencereplicas.ome.io",
    keys.LEADER_WORKER_SET: "leaderworkersets.leaderworkerset.x-k8s.io",
}


class Commands(Record):
    """How the cluster is reached, and what of the options a render is to be told again.

    `cluster` are the flags of `kubectl`, `ours` those of `postrender`.
    """

    cluster: tuple[str, ...]
    ours: tuple[str, ...]
    scheduler_name: str
    gang_schedulers: tuple[str, ...]
    ome: str
    ome_namespace: str
    kubernetes: str

    def kubectl(self, *words: str) -> str:
        """Return a call of kubectl."""
        return shlex.join(["kubectl", *self.cluster, *words])

    @property
    def scheduler(self) -> str:
        """The scheduler to name where one must be."""
        known = self.gang_schedulers
        return self.scheduler_name or (_USUAL if _USUAL in known or not known else known[0])

    def render(self, instance: Instance) -> tuple[str, ...]:
        """Return how an object is deployed as a render makes it of what is in the cluster."""
        owner, shared = instance.decided.owner, instance.decided.shared
        words = ["postrender", "--context", _CONTEXT]
        words += ["--ome", self.ome] if self.ome else []
        words += ["--replicas", shared] if shared else []
        words += ["--scheduler-name", self.scheduler_name] if self.scheduler_name else []
        words += ["--leaderworkersets"] if isinstance(owner, LeaderWorkerSet) else []
        get = self.kubectl("get", _RESOURCES[owner.kind], owner.name, "-n", instance.namespace, "-o", "yaml")
        return (
            f"{shlex.join(['postrender', 'context', *self.ours])} > {_CONTEXT}",
            f"{get} | {shlex.join(words)} | {self.kubectl('apply', '-f', '-')}",
        )

    def name_scheduler(self, instance: Instance) -> tuple[str, ...]:
        """Return how a gang's pods come to a scheduler that reads their label."""
        owner = instance.decided.owner
        if owner.kind == keys.INFERENCE_REPLICA:
            return (self.kubectl("edit", _RESOURCES[owner.kind], owner.name, "-n", instance.namespace),)
        patch = json.dumps({"spec": _scheduler(instance.decided, self.scheduler)}, separators=(",", ":"))
        named = self.patch(_RESOURCES[owner.kind], owner.name, instance.namespace, patch)
        # OMENative lets an Instance be until its successor is ready, and that waits for the nodes of this one.
        native = instance.decided.merged is not None and instance.decided.merged.mode == keys.OME_NATIVE
        return (named, self.delete_pods(instance)) if native else (named,)

    def patch(self, resource: str, name: str, namespace: str, patch: str, *words: str) -> str:
        """Return how an object is changed."""
        return self.kubectl("patch", resource, name, "-n", namespace, *words, "--type=merge", "-p", patch)

    def set_fields(
        self, instance: Instance, name: str, fields: Iterable[tuple[tuple[str, ...], str | int | None]]
    ) -> str:
        """Return how fields of a PodGroup come to values, None for taking one away."""
        patch: dict[str, object] = {}
        for path, value in fields:
            inner: dict[str, object] = patch
            for key in path[:-1]:
                inner = inner.setdefault(key, {})  # type: ignore[assignment]
            inner[path[-1]] = value
        return self.patch(POD_GROUPS.title, name, instance.namespace, json.dumps(patch, separators=(",", ":")))

    def size(self, instance: Instance, name: str) -> str:
        """Return how a PodGroup comes to wait for all pods."""
        return self.set_fields(instance, name, [(("spec", "minMember"), instance.size)])

    def reset(self, instance: Instance, name: str) -> str:
        """Return how a PodGroup leaves the phase Failed."""
        patch = '{"status":{"phase":"Pending"}}'
        return self.patch(POD_GROUPS.title, name, instance.namespace, patch, "--subresource=status")

    def touch(self, instance: Instance, name: str) -> str:
        """Return how Coscheduling is made to try a gang again at once, which it does when its PodGroup changes."""
        mark = "postrender/tried=$(date +%s)"
        call = self.kubectl("annotate", POD_GROUPS.title, name, "-n", instance.namespace, "--overwrite")
        return f'{call} "{mark}"'

    def delete_group(self, instance: Instance, name: str) -> str:
        """Return how a PodGroup is deleted."""
        return self.kubectl("delete", POD_GROUPS.title, name, "-n", instance.namespace)

    def delete_pods(self, instance: Instance, label: str = "") -> str:
        """Return how all pods of a label are deleted, those of the Instance if none is named, to be made anew."""
        label = label or next((pod.group for pod in instance.pods if pod.group), instance.name)
        return self.kubectl("delete", "pods", "-n", instance.namespace, "-l", f"{keys.POD_GROUP}={label}")

    def force(self, instance: Instance, names: Iterable[str]) -> str:
        """Return how pods that do not go are made to."""
        return self.kubectl("delete", "pods", *names, "-n", instance.namespace, "--grace-period=0", "--force")

    def install_policy(self) -> str:
        """Return how the admission policy is installed."""
        words = ["postrender", "policy", *(["--kube-version", self.kubernetes] if self.kubernetes else [])]
        return f"{shlex.join(words)} | {self.kubectl('apply', '-f', '-')}"

    def restart_ome(self) -> str:
        """Return how OME is started anew."""
        return self.kubectl("rollout", "restart", "deployment", "ome-controller-manager", "-n", self.ome_namespace)

    def install_definition(self) -> str:
        """Return how the PodGroup CRD is installed."""
        return self.kubectl("apply", "-f", _DEFINITION)

    def describe(self, resource: str, name: str, namespace: str) -> str:
        """Return how to see more of an object."""
        return self.kubectl("describe", resource, name, "-n", namespace)

    def describe_owner(self, instance: Instance) -> str:
        """Return how to see more of what makes an Instance's pods."""
        owner = instance.decided.owner
        return self.describe(_RESOURCES[owner.kind], owner.name, instance.namespace)

    def refusals(self, instance: Instance) -> str:
        """Return how to see why pods could not be made."""
        return self.kubectl("get", "events", "-n", instance.namespace, "--field-selector", "reason=FailedCreate")


_DEFINITION = (
    "https://raw.githubusercontent.com/kubernetes-sigs/scheduler-plugins/v0.34.7/config/crd/bases/"
    "scheduling.x-k8s.io_podgroups.yaml"
)


def _scheduler(decided: Decided, name: str) -> dict[str, object]:
    """Return the spec that names a scheduler for leader and workers, whatever OME runs them and whoever named another.

    What a service says of leader and worker beats its component and all of its runtime.
    """
    one = {"schedulerName": name}
    owner, merged = decided.owner, decided.merged
    if isinstance(owner, Workload) and merged is not None:
        if merged.leader:
            return {merged.own.name: {"leader": one, "worker": one}}
        return {merged.own.name: {**one, "worker": one}}
    templates = [template.key for template in owner.templates] if isinstance(owner, LeaderWorkerSet) else []
    return {"leaderWorkerTemplate": {key: {"spec": one} for key in templates}}
