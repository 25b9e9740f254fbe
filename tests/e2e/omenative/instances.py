"""The Instances of one InferenceReplica: which there are to be, and what becomes of each."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from . import definitions, shape
from .shape import Object, Plan
from .things import key, passed_over, terminating

if TYPE_CHECKING:
    from .controller import Pass

GROUPS = "podgroups.scheduling.x-k8s.io"
SERVICES, REPLICAS = definitions.NAMES


class Instances:
    """The Instances of one InferenceReplica. `rows` are what its status remembers of each, by index.

    A row has `index`, `incarnation`, `revision`, while something is under way `operation` (`type`: Create or Delete,
    `waiting`: for what), after a failure `lastFailure`, and `announced`: what has been said once.
    """

    def __init__(self, work: Pass, replica: Object, service: Object | None) -> None:
        self.work = work
        self.replica = replica
        self.service = service
        self.plan = Plan(replica)
        self.namespace = replica["metadata"]["namespace"]
        self.uid = replica["metadata"]["uid"]
        self.status: Object = replica.get("status") or {}
        self.rows: dict[int, Object] = {row["index"]: {**row} for row in self.status.get("instances") or []}
        self.known = {*self.rows}
        self.pods: dict[int, dict[str, Object]] = {}
        for pod in work.pods:
            if (shape.controller(pod) or {}).get("uid") == self.uid:
                index = int(pod["metadata"]["labels"][shape.INDEX])
                self.pods.setdefault(index, {})[pod["metadata"]["name"]] = pod

    def run(self) -> None:
        """Decide which Instances there are to be, see to each, write down what came of it."""
        self.choose()
        try:
            for index, row in sorted(self.rows.items()):
                if row.get("operation", {}).get("type") == "Delete":
                    self.tear_down(index)
                elif row["revision"] != self.plan.revision:
                    continue  # its template is gone; it stays as it is until its successor is ready
                elif self.ensure_group(index, row):
                    self.ensure_pods(index, row)
                else:
                    self.recycle(index, row)
            self.warn_of_scheduler()
        finally:
            self.write()

    def choose(self) -> None:
        """Add Instances at the lowest free index, and mark for deletion those that are too many.

        While there are Instances of an older revision, a quarter more than wanted may be there, at least one; an old
        one goes when a new one is ready in its stead.
        """
        active = [row for row in self.rows.values() if row.get("operation", {}).get("type") != "Delete"]
        old = sorted((row for row in active if row["revision"] != self.plan.revision), key=self.worth, reverse=True)
        new = [row for row in active if row["revision"] == self.plan.revision]
        wanted = self.plan.count
        room = wanted + (math.ceil(wanted / 4) if old else 0) - len(active)
        for _ in range(min(room, wanted - len(new))):
            index = next(index for index in range(len(self.rows) + 1) if index not in self.rows)
            self.rows[index] = {
                "index": index,
                "incarnation": 1,
                "revision": self.plan.revision,
                "operation": {"type": "Create"},
            }
        ready = [row for row in new if self.ready(row)]
        surplus = old[: max(0, len(ready) + len(old) - wanted)]
        surplus += sorted(new, key=self.worth)[wanted:]
        for row in surplus:
            row["operation"] = {"type": "Delete"}

    def worth(self, row: Object) -> tuple[bool, int]:
        """Order rows: the ready ones first, then the lowest index."""
        return (not self.ready(row), row["index"])

    def ready(self, row: Object) -> bool:
        """Whether all pods of an Instance are there and Ready."""
        pods = self.pods.get(row["index"], {}).values()
        return len(pods) == self.plan.total and all(not terminating(pod) and is_ready(pod) for pod in pods)

    def ensure_group(self, index: int, row: Object) -> bool:
        """Make an Instance's PodGroup, or keep it as it should be; False when its pods must wait."""
        operation = row.setdefault("operation", {"type": "Create"})
        operation.pop("waiting", None)
        if self.plan.total < 2 or self.work.groups is None:
            return True
        wanted = self.plan.group(index, shape.timeout(self.plan, self.work.ome.ready_timeout, self.work.ome.clamp))
        there = self.work.groups.get(key(wanted))
        if there is None:
            # If somebody else was faster, the next pass sees it.
            with passed_over(409):
                self.work.api.create(wanted)
                return True
            return False
        holder = shape.controller(there)
        if holder is None or holder["uid"] != self.uid:
            self.fail(row, key(there)[1], holder)
            return False
        if terminating(there):
            operation["waiting"] = "PodGroupTerminating"
            return False
        if (there.get("status") or {}).get("phase") == "Failed":
            self.reset(there)
            return False
        corrected = drifted(there, wanted)
        if corrected:
            with passed_over(409):
                self.work.replace(GROUPS, corrected)
        return True

    def fail(self, row: Object, name: str, holder: Object | None) -> None:
        """Write down a conflict, and say it once."""
        by = f"is controlled by {holder['kind']}/{holder['name']}, not by this owner" if holder else "has no controller"
        message = f"PodGroup {name} {by}"
        failure = {"reason": "PodGroupOwnershipConflict", "message": message}
        if row.get("lastFailure", {}).get("reason") != failure["reason"]:
            where = f"{self.namespace}/{self.replica['metadata']['name']} component={self.plan.component}"
            self.warn("InstanceFailed", f"{where} instance={row['index']} PodGroupOwnershipConflict: {message}")
        row["lastFailure"] = failure

    def reset(self, group: Object) -> None:
        """Delete a Failed PodGroup, unless a member that is Failed would make the next one Failed too."""
        name = group["metadata"]["name"]
        members = [
            pod
            for pod in self.work.pods
            if pod["metadata"]["namespace"] == self.namespace and pod["metadata"]["labels"].get(shape.POD_GROUP) == name
        ]
        if any(failed(pod) and not terminating(pod) for pod in members):
            return
        self.work.delete(GROUPS, group)
        reading = f"{(group['status'].get('failed') or 0)} of {group['spec'].get('minMember')} members failed"
        self.warn(
            "PodGroupReset",
            f"OMENative component={self.plan.component}: deleting PodGroup {name} so the gang can be admitted again "
            f"(PodGroup {name} reported phase Failed: {reading})",
        )

    def ensure_pods(self, index: int, row: Object) -> None:
        """Create the pods that are missing."""
        if self.recycle(index, row):
            return
        there = self.pods.get(index, {})
        for pod in self.plan.pods(index, row["incarnation"]):
            if pod["metadata"]["name"] not in there:
                # A name may still be held by a pod of another owner that is on its way out.
                with passed_over(409):
                    self.work.api.create(pod)
                if "podAffinity" not in pod["spec"].get("affinity", {}) and "-worker-" in pod["metadata"]["name"]:
                    self.announce(
                        row, "GangSplitRisk", f"pod {pod['metadata']['name']} may be placed far from its leader"
                    )
        if self.ready(row):
            row.pop("operation", None)
            row.pop("lastFailure", None)

    def recycle(self, index: int, row: Object) -> bool:
        """Whether a pod has failed: then all of its Instance go, to be made anew."""
        there = self.pods.get(index, {}).values()
        if not any(failed(pod) and not terminating(pod) for pod in there):
            return False
        for pod in there:
            if not terminating(pod):
                self.work.delete("pods", pod)
        row["incarnation"] += 1
        row.pop("announced", None)
        return True

    def tear_down(self, index: int) -> None:
        """Delete an Instance: its pods, then its PodGroup, then what is known of it."""
        there = self.pods.get(index, {}).values()
        for pod in there:
            if not terminating(pod):
                self.work.delete("pods", pod)
        if there:
            return
        group = (self.work.groups or {}).get((self.namespace, self.plan.group_name(index)))
        if group is not None and (shape.controller(group) or {}).get("uid") == self.uid:
            self.work.delete(GROUPS, group)
            return
        del self.rows[index]

    def warn_of_scheduler(self) -> None:
        """Say once that the gangs may be placed by a scheduler that knows no gangs."""
        if self.plan.total < 2 or self.work.groups is None or self.plan.scheduler not in ("", "default-scheduler"):
            return
        for index, row in sorted(self.rows.items()):
            if (
                index in self.known
                and key(self.plan.group(index, None)) in self.work.groups
                and "lastFailure" not in row
            ):
                self.announce(
                    row,
                    "MaybeNoGangScheduler",
                    f"OMENative component={self.plan.component}: scheduler {self.plan.scheduler!r} may not place gangs; "
                    "set the runtime's schedulerName, e.g. scheduler-plugins-scheduler",
                )
                return

    def announce(self, row: Object, reason: str, message: str) -> None:
        """Say something once in an Instance's life."""
        if reason not in row.setdefault("announced", []):
            row["announced"].append(reason)
            self.warn(reason, message)

    def warn(self, reason: str, message: str) -> None:
        """Post an Event about the service, or about the InferenceReplica where there is none."""
        self.work.event(self.service or self.replica, reason, message)

    def write(self) -> None:
        """Write the status, and into the service's what belongs there."""
        alone = self.plan.total > 1 and self.work.groups is None
        condition = {
            "type": "GangSchedulingUnavailable",
            "status": "True" if alone else "False",
            "reason": "PodGroupCRDNotInstalled" if alone else "GangSchedulingAvailable",
        }
        if alone:
            condition["message"] = "podgroups.scheduling.x-k8s.io/v1alpha1 is missing: Instances may schedule partially"
        rows = [self.rows[index] for index in sorted(self.rows)]
        status = {"replicas": len(rows), "instances": rows, "conditions": [condition]}
        if any(self.status.get(name) != value for name, value in status.items()):
            name = self.replica["metadata"]["name"]
            self.work.api.patch(REPLICAS, name, {"status": status}, self.namespace, "status")
        if self.service is None:
            return
        seen = self.service.get("status", {}).get("components", {}).get(self.plan.component, {})
        if seen.get("lifecycle", {}).get("conditions") != [condition]:
            mirrored = {"components": {self.plan.component: {"lifecycle": {"conditions": [condition]}}}}
            self.work.api.patch(SERVICES, self.plan.base, {"status": mirrored}, self.namespace, "status")


def drifted(there: Object, wanted: Object) -> Object | None:
    """Return a PodGroup put right, or None: what OME writes is its own, anything else in it stays."""
    spec = {name: value for name, value in there["spec"].items() if name not in ("minMember", "scheduleTimeoutSeconds")}
    annotations = {name: value for name, value in annotated(there).items() if name != shape.TOPOLOGY}
    new = {
        **there,
        "metadata": {
            **there["metadata"],
            "labels": wanted["metadata"]["labels"],
            "ownerReferences": wanted["metadata"]["ownerReferences"],
            "annotations": {**annotations, **annotated(wanted)},
        },
        "spec": {**spec, **wanted["spec"]},
    }
    same = new["spec"] == there["spec"] and annotated(new) == annotated(there)
    same = same and all(new["metadata"][one] == there["metadata"].get(one) for one in ("labels", "ownerReferences"))
    return None if same else new


def annotated(thing: Object) -> dict[str, str]:
    """The annotations of an object."""
    return thing["metadata"].get("annotations") or {}


def failed(pod: Object) -> bool:
    """Whether a pod has failed."""
    return bool(pod.get("status", {}).get("phase") == "Failed")


def is_ready(pod: Object) -> bool:
    """Whether a pod says that it is Ready."""
    conditions = pod.get("status", {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)
