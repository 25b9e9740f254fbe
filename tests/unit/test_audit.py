"""The rules across objects: which labels, PodGroups and pods fit together, kind by kind.

How many pods an object makes is Kubernetes' own: `replicas` of its controllers, `parallelism` and `completions` of a Job,
`replicas` × `size` of a LeaderWorkerSet.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
import yaml

from postrender import review
from postrender.options import Options

Object = dict[str, Any]
LABEL = "scheduling.x-k8s.io/pod-group"
GANG = "postrender/gang"
EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"
SCHEDULER = "scheduler-plugins-scheduler"
# Nothing is to be said of the version, and no gang but those that the stream writes itself is looked for.
OPTIONS = Options(ome="1.3", podgroups="emit")


def template(labels: Object | None = None, scheduler: str = SCHEDULER, priority: str = "") -> Object:
    spec: Object = {"schedulerName": scheduler, "priorityClassName": priority, "containers": []}
    labels = {LABEL: "team"} if labels is None else labels
    return {"metadata": {"labels": labels}, "spec": {key: value for key, value in spec.items() if value != ""}}


def made(api: str, kind: str, spec: Object, namespace: str = "llm", name: str = "x", **metadata: Any) -> Object:
    place = {"namespace": namespace} if namespace else {}
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name, **place, **metadata}, "spec": spec}


def deployment(replicas: int | None = None, namespace: str = "llm", name: str = "x", **said: Any) -> Object:
    count = {} if replicas is None else {"replicas": replicas}
    return made("apps/v1", "Deployment", {**count, "template": template(**said)}, namespace, name)


def leader_worker_set(spec: Object, leader: Object | None = None, worker: Object | None = None, **said: Any) -> Object:
    inner = {key: spec.pop(key) for key in ("size",) if key in spec}
    inner |= {"leaderTemplate": leader} if leader else {}
    inner |= {"workerTemplate": template() if worker is None else worker}
    return made("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", {**spec, "leaderWorkerTemplate": inner}, **said)


def service(labels: Object, name: str = "x", **engine: Any) -> Object:
    spec = {"runtime": {"name": "rt"}, "engine": {**engine, "labels": labels}}
    return made("ome.io/v1beta1", "InferenceService", spec, name=name)


def pod_group(min_member: int | None, namespace: str = "llm", name: str = "team") -> Object:
    spec = {"scheduleTimeoutSeconds": 60} if min_member is None else {"minMember": min_member}
    return made("scheduling.x-k8s.io/v1alpha1", "PodGroup", spec, namespace, name)


RUNTIME: Object = {
    "apiVersion": "ome.io/v1beta1",
    "kind": "ClusterServingRuntime",
    "metadata": {"name": "rt"},
    "spec": {},
}


class Said(NamedTuple):
    """A finding, as far as it is asked about."""

    code: str
    of: str
    field: str
    message: str


def said(*objects: Object, options: Options = OPTIONS, rendered: bool = True) -> list[Said]:
    data = yaml.safe_dump_all(objects, sort_keys=False).encode()
    return told(review.check(data, options, rendered))


def told(checked: review.Checked) -> list[Said]:
    return sorted(
        Said(one.code, "/".join(one.ref) if one.ref else "", one.field, one.message) for one in checked.findings
    )


def codes(*objects: Object, **how: Any) -> list[str]:
    return [one.code for one in said(*objects, **how)]


# -- how many pods there will be -------------------------------------------------------------------------------------

TEMPLATE = {"template": template()}
PARALLEL = {"podManagementPolicy": "Parallel", **TEMPLATE}
# An object, and how many pods of it carry the label; None where that depends.
OBJECTS: dict[str, tuple[Object, int | None]] = {
    "Deployment": (deployment(3), 3),
    "Deployment, replicas not said": (deployment(), 1),
    "ReplicaSet": (made("apps/v1", "ReplicaSet", {"replicas": 2, **TEMPLATE}), 2),
    "ReplicationController": (made("v1", "ReplicationController", {"replicas": 2, **TEMPLATE}), 2),
    "StatefulSet": (made("apps/v1", "StatefulSet", {"replicas": 4, **PARALLEL}), 4),
    "DaemonSet": (made("apps/v1", "DaemonSet", TEMPLATE), None),
    "Pod": ({**template(), "apiVersion": "v1", "kind": "Pod"}, 1),
    "Job": (made("batch/v1", "Job", {"parallelism": 4, **TEMPLATE}), 4),
    "Job, parallelism not said": (made("batch/v1", "Job", TEMPLATE), 1),
    "Job of fewer completions": (made("batch/v1", "Job", {"parallelism": 4, "completions": 3, **TEMPLATE}), 3),
    "Job of more completions": (made("batch/v1", "Job", {"parallelism": 2, "completions": 9, **TEMPLATE}), 2),
    "CronJob": (made("batch/v1", "CronJob", {"jobTemplate": {"spec": {"parallelism": 2, **TEMPLATE}}}), None),
    "LeaderWorkerSet": (leader_worker_set({"size": 3}), 3),
    "LeaderWorkerSet of two groups": (leader_worker_set({"replicas": 2, "size": 3}), 6),
    "LeaderWorkerSet of many groups": (leader_worker_set({"replicas": 1_500, "size": 4}), 6_000),
    "LeaderWorkerSet, size not said": (leader_worker_set({"replicas": 2}), 2),
    "LeaderWorkerSet with a leader": (leader_worker_set({"replicas": 2, "size": 3}, template()), 6),
    "LeaderWorkerSet, leaders only": (leader_worker_set({"replicas": 2, "size": 3}, template(), template({})), 2),
    "LeaderWorkerSet, workers only": (leader_worker_set({"replicas": 2, "size": 3}, template({})), 4),
    "InferenceService of single pods": (service({LABEL: "team"}, minReplicas=3), 3),
    "InferenceService of one pod": (service({LABEL: "team"}), 1),
}
OBJECTS["Pod"][0]["metadata"] |= {"name": "x", "namespace": "llm"}
FIELDS = {
    "Pod": f"metadata.labels[{LABEL}]",
    "CronJob": f"spec.jobTemplate.spec.template.metadata.labels[{LABEL}]",
    "LeaderWorkerSet": f"spec.leaderWorkerTemplate.workerTemplate.metadata.labels[{LABEL}]",
    "InferenceService": f"spec.engine.labels[{LABEL}]",
}
HELD = [pytest.param(one, pods, id=name) for name, (one, pods) in OBJECTS.items()]
KNOWN = [pytest.param(one, pods, id=name) for name, (one, pods) in OBJECTS.items() if pods is not None]


def label_field(one: Object) -> str:
    template_of = "leader" if "leaderTemplate" in one["spec"].get("leaderWorkerTemplate", {}) else "worker"
    inner = one["spec"].get("leaderWorkerTemplate", {}).get("leaderTemplate", {})
    if template_of == "leader" and LABEL in inner["metadata"]["labels"]:
        return FIELDS["LeaderWorkerSet"].replace("workerTemplate", "leaderTemplate")
    return FIELDS.get(one["kind"], f"spec.template.metadata.labels[{LABEL}]")


def name_of(one: Object) -> str:
    return f"{one['kind']}/llm/{one['metadata']['name']}"


@pytest.mark.parametrize(("one", "pods"), HELD)
def test_a_podgroup_of_as_many_as_there_are(one: Object, pods: int | None) -> None:
    assert said(RUNTIME, pod_group(pods or 5), one) == []


@pytest.mark.parametrize(("one", "pods"), KNOWN)
def test_a_podgroup_of_more(one: Object, pods: int) -> None:
    carry = "1 pod carries" if pods == 1 else f"{pods:,} pods carry"
    message = f"is {pods + 1:,}, but {carry} its label: they would wait for ever"
    wanted = [Said("min-member-above-pods", "PodGroup/llm/team", "spec.minMember", message)]
    assert said(RUNTIME, pod_group(pods + 1), one) == wanted


@pytest.mark.parametrize(("one", "pods"), [one for one in KNOWN if one.values[1] > 1])
def test_a_podgroup_of_fewer(one: Object, pods: int) -> None:
    message = f"is {pods - 1:,}, but {pods:,} pods carry its label: what is above that is placed pod by pod"
    wanted = [Said("min-member-below-pods", "PodGroup/llm/team", "spec.minMember", message)]
    assert said(RUNTIME, pod_group(pods - 1), one) == wanted


@pytest.mark.parametrize(("one", "pods"), HELD)
def test_a_podgroup_without_min_member(one: Object, pods: int | None) -> None:
    message = "says no minMember: the scheduler then places its pods one by one"
    wanted = [Said("min-member-missing", "PodGroup/llm/team", "spec.minMember", message)]
    assert said(RUNTIME, pod_group(None), one) == wanted


@pytest.mark.parametrize(("one", "pods"), HELD)
def test_no_podgroup(one: Object, pods: int | None) -> None:
    message = "no PodGroup 'team' is here in 'llm': its pods would wait for one for ever"
    wanted = [Said("podgroup-missing", name_of(one), label_field(one), message)]
    assert said(RUNTIME, one) == wanted
    assert said(RUNTIME, one, pod_group(9, name="team-0")) == wanted


@pytest.mark.parametrize(("one", "pods"), HELD)
def test_a_podgroup_of_another_namespace(one: Object, pods: int | None) -> None:
    [found] = said(RUNTIME, one, pod_group(pods or 5, "team-b"))
    assert (found.code, found.of) == ("podgroup-missing", name_of(one))
    assert found.message.endswith("; there is one in 'team-b'")


@pytest.mark.parametrize(("one", "pods"), HELD)
def test_a_podgroup_of_another_api(one: Object, pods: int | None) -> None:
    others = [{**pod_group(pods or 5), "apiVersion": f"scheduling.{group}"} for group in (
        "volcano.sh/v1beta1", "k8s.io/v1alpha2", "run.ai/v2alpha2", "sigs.k8s.io/v1alpha1",
    )]  # fmt: skip
    assert codes(RUNTIME, one, *others) == ["podgroup-missing"]


@pytest.mark.parametrize("order", [1, -1])
def test_objects_of_one_podgroup_are_added_up(order: int) -> None:
    held = [deployment(2), deployment(3, name="z"), pod_group(5)]
    assert said(*held[::order]) == []
    assert codes(*held[:2], pod_group(6)) == ["min-member-above-pods"]
    assert codes(*held[:2], pod_group(4)) == ["min-member-below-pods"]
    assert said(*held[:2], pod_group(4), OBJECTS["DaemonSet"][0]) == []


def test_what_carries_no_label_does_not_count() -> None:
    assert said(deployment(2), deployment(3, name="z", labels={"app": "z"}), pod_group(2)) == []
    assert said(deployment(2), deployment(3, name="z", labels={LABEL: "b"}), pod_group(2), pod_group(3, name="b")) == []


def test_a_podgroup_that_nobody_names_is_nobodys_business() -> None:
    assert said(pod_group(3)) == []


# -- namespaces ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_pods", "of_group", "option", "missing"),
    [
        ("", "", "", False),
        ("llm", "llm", "", False),
        ("llm", "team-b", "", True),
        # What writes no namespace may come to any, unless it is said.
        ("", "llm", "", False),
        ("llm", "", "", False),
        ("", "llm", "llm", False),
        ("llm", "", "llm", False),
        ("", "", "llm", False),
        ("", "llm", "team-b", True),
        ("llm", "", "team-b", True),
        ("llm", "llm", "team-b", False),
    ],
)
def test_in_which_namespace_a_podgroup_is_looked_for(of_pods: str, of_group: str, option: str, missing: bool) -> None:
    found = codes(deployment(2, of_pods), pod_group(2, of_group), options=OPTIONS._replace(namespace=option))
    assert found == ["podgroup-missing"] * missing


def test_each_namespace_has_its_own() -> None:
    held = [deployment(2), deployment(3, "team-b"), pod_group(2), pod_group(3, "team-b")]
    message = "'team' is a PodGroup in 'llm' too; the PodGroup controller counts the pods of both for each"
    twice = Said("same-name-two-namespaces", "PodGroup/team-b/team", "", message)
    assert said(*held) == [twice]
    assert codes(*held[:2], pod_group(3), pod_group(3, "team-b")) == [
        "min-member-above-pods",
        "same-name-two-namespaces",
    ]
    assert codes(*held[:3]) == ["podgroup-missing"]


def test_one_name_in_three_namespaces_is_said_of_two() -> None:
    found = said(pod_group(2), pod_group(2, "team-b"), pod_group(2, "team-c"), pod_group(2, "team-c", "other"))
    assert [(one.code, one.of) for one in found] == [
        ("same-name-two-namespaces", "PodGroup/team-b/team"), ("same-name-two-namespaces", "PodGroup/team-c/team"),
    ]  # fmt: skip


def test_a_name_without_a_namespace_is_in_no_second_one() -> None:
    assert said(pod_group(2), pod_group(2, "")) == []
    assert codes(pod_group(2), pod_group(2, ""), options=OPTIONS._replace(namespace="team-b")) == [
        "same-name-two-namespaces"
    ]


def test_the_podgroup_of_the_same_namespace_is_the_nearest() -> None:
    """Also where neither writes one: what comes to any is only the second choice."""
    held = [deployment(2), deployment(3, ""), pod_group(2), pod_group(3, "")]
    assert said(*held) == []
    assert said(*held[::-1]) == []


def test_a_podgroup_without_a_namespace_is_one_podgroup() -> None:
    assert said(deployment(2), deployment(3, ""), pod_group(5, "")) == []


# -- pods that come one after the other ------------------------------------------------------------------------------

ORDERED = made("apps/v1", "StatefulSet", {"replicas": 3, **TEMPLATE})


@pytest.mark.parametrize("written", [{}, {"podManagementPolicy": "OrderedReady"}])
def test_a_stateful_set_in_order_waits_for_itself(written: Object) -> None:
    one = {**ORDERED, "spec": {**ORDERED["spec"], **written}}
    message = "each pod comes only once the one before it is ready, and PodGroup 'team' waits for 3 pods"
    wanted = [Said("deadlock-shape", "StatefulSet/llm/x", "spec.podManagementPolicy", message)]
    assert said(one, pod_group(3)) == wanted


@pytest.mark.parametrize(
    ("spec", "metadata", "field", "why"),
    [
        ({"startupPolicy": "LeaderReady"}, {}, "spec.startupPolicy", "workers come only once the leader is ready"),
        (
            {"startupPolicy": "LeaderCreated"},
            {"annotations": {EXCLUSIVE: "rack"}},
            f"metadata.annotations[{EXCLUSIVE}]",
            "workers come only once the leader is placed",
        ),
    ],
)
@pytest.mark.parametrize("leader", [None, template()])
def test_workers_that_wait_for_a_leader(spec: Object, metadata: Object, field: str, why: str, leader: Any) -> None:
    one = leader_worker_set({**spec, "size": 3}, leader, **metadata)
    message = f"{why}, and PodGroup 'team' waits for 3 pods"
    assert said(one, pod_group(3)) == [Said("deadlock-shape", "LeaderWorkerSet/llm/x", field, message)]


@pytest.mark.parametrize("spec", [{}, {"startupPolicy": "LeaderCreated"}])
def test_workers_that_come_with_the_leader(spec: Object) -> None:
    assert said(leader_worker_set({**spec, "size": 3}), pod_group(3)) == []


WAITING = (
    ORDERED,
    leader_worker_set({"startupPolicy": "LeaderReady", "size": 3}),
    leader_worker_set({"size": 3}, annotations={EXCLUSIVE: "rack"}),
)


@pytest.mark.parametrize("one", WAITING)
def test_waiting_is_no_deadlock(one: Object) -> None:
    """Not where a PodGroup waits for one pod or is not there, nor where somebody knows better."""
    assert codes(one, pod_group(1)) == ["min-member-below-pods"]
    assert codes(one, pod_group(None)) == ["min-member-missing"]
    assert codes(one) == ["podgroup-missing"]
    assert said(one, pod_group(3), options=OPTIONS._replace(accept=("deadlock-shape",))) == []


# -- labels ----------------------------------------------------------------------------------------------------------

OLD = "pod-group.scheduling.sigs.k8s.io"


@pytest.mark.parametrize("key", [OLD, f"{OLD}/name", f"{OLD}/min-available"])
def test_an_old_label(key: str) -> None:
    one = deployment(2, labels={"app": "x", key: "team"})
    message = "Coscheduling no longer reads this label, so its pods are placed one by one"
    assert said(one) == [Said("legacy-label", "Deployment/llm/x", f"spec.template.metadata.labels[{key}]", message)]
    assert said(deployment(2, labels={key: "team"}, scheduler="koord-scheduler")) == []
    assert codes(deployment(2, labels={key: "team"}, scheduler="")) == ["legacy-label"]


def test_an_old_label_beside_the_new_one() -> None:
    one = deployment(2, labels={OLD: "team", LABEL: "team"})
    assert codes(one, pod_group(2)) == ["legacy-label"]
    assert codes(one, pod_group(3)) == ["legacy-label", "min-member-above-pods"]
    assert codes(one) == ["legacy-label", "podgroup-missing"]


@pytest.mark.parametrize("of", ["leader", "worker"])
def test_an_old_label_of_a_set(of: str) -> None:
    templates = {"leader": template({}), "worker": template({}), of: template({OLD: "team"})}
    [found] = said(leader_worker_set({"size": 2}, **templates))
    assert (found.code, found.field) == (
        "legacy-label", f"spec.leaderWorkerTemplate.{of}Template.metadata.labels[{OLD}]",
    )  # fmt: skip


@pytest.mark.parametrize(
    "key", ["volcano.sh/queue-name", "kueue.x-k8s.io/pod-group-name", "pod-group-name", "x/pod-group"]
)
def test_another_systems_label(key: str) -> None:
    assert said(deployment(2, labels={key: "team"}), pod_group(9)) == []


# -- schedulers and priorities ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scheduler", "gang_scheduler", "message"),
    [
        (SCHEDULER, (), None),
        ("ome-scheduler", (), None),
        ("", (), "no scheduler is named, and the default one does not read this label"),
        ("default-scheduler", (), "'default-scheduler' is no scheduler that places gangs, as far as is known"),
        ("volcano", (), "'volcano' is no scheduler that places gangs, as far as is known"),
        ("", ("default-scheduler",), None),
        ("default-scheduler", ("default-scheduler",), None),
        (SCHEDULER, ("default-scheduler",), f"'{SCHEDULER}' is no scheduler that places gangs, as far as is known"),
    ],
)
def test_a_scheduler_that_reads_the_label(scheduler: str, gang_scheduler: tuple[str, ...], message: str | None) -> None:
    options = OPTIONS._replace(gang_scheduler=gang_scheduler) if gang_scheduler else OPTIONS
    found = said(deployment(2, scheduler=scheduler), pod_group(2), options=options)
    assert [one.code for one in found] == ([] if message is None else ["no-gang-scheduler"])
    assert all(one.message.startswith(message or "") and one.of == "Deployment/llm/x" for one in found)


def test_a_scheduler_is_said_once_for_an_object() -> None:
    one = leader_worker_set({"size": 2}, template(scheduler="volcano"), template(scheduler="volcano"))
    assert codes(one, pod_group(2)) == ["no-gang-scheduler"]


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        ({}, {}, []),
        ({"scheduler": "ome-scheduler"}, {}, ["mixed-schedulers"]),
        ({"priority": "high"}, {}, ["mixed-priorities"]),
        ({"priority": "high"}, {"priority": "low"}, ["mixed-priorities"]),
        ({"priority": "high"}, {"priority": "high"}, []),
        ({"scheduler": "ome-scheduler", "priority": "high"}, {}, ["mixed-priorities", "mixed-schedulers"]),
        ({"scheduler": ""}, {"scheduler": "default-scheduler"}, []),
        ({"scheduler": ""}, {}, ["mixed-schedulers"]),
    ],
)
def test_pods_of_one_podgroup_are_alike(one: Object, other: Object, wanted: list[str]) -> None:
    options = OPTIONS._replace(gang_scheduler=(SCHEDULER, "ome-scheduler", "default-scheduler"))
    two = (deployment(1, **one), deployment(1, name="z", **other))
    found = said(*two, pod_group(2), options=options)
    assert [(said.code, said.of) for said in found] == [(code, "Deployment/llm/z") for code in wanted]
    one_set = leader_worker_set({"size": 2}, template(**one), template(**other))
    assert codes(one_set, pod_group(2), options=options) == wanted
    apart = (deployment(1, **one), deployment(1, name="z", labels={LABEL: "b"}, **other))
    assert said(*apart, pod_group(1), pod_group(1, name="b"), options=options) == []


def test_what_differs_is_named() -> None:
    options = OPTIONS._replace(gang_scheduler=(SCHEDULER, "default-scheduler"))
    found = said(deployment(1, priority="high"), deployment(1, name="z", scheduler=""), pod_group(2), options=options)
    assert [one.message for one in found] == [
        "the pods of PodGroup 'team' have different priority classes: high, none",
        f"the pods of PodGroup 'team' have different schedulers: default-scheduler, {SCHEDULER}",
    ]


# -- one template, several PodGroups ---------------------------------------------------------------------------------

POLICY = {GANG: "team", LABEL: "postrender-policy-missing"}


def test_each_group_of_a_set_has_its_own_by_the_policy() -> None:
    one = leader_worker_set({"replicas": 2, "size": 3}, template(POLICY), template(POLICY))
    assert said(one, pod_group(3, name="team-0"), pod_group(3, name="team-1")) == []
    # A surge's, or an earlier size's: nobody waits for it.
    assert said(one, *(pod_group(3, name=f"team-{number}") for number in range(3))) == []
    field = f"spec.leaderWorkerTemplate.leaderTemplate.metadata.labels[{GANG}]"
    message = "no PodGroup 'team-1' is here in 'llm': its pods would wait for one for ever"
    assert said(one, pod_group(3, name="team-0")) == [Said("podgroup-missing", "LeaderWorkerSet/llm/x", field, message)]
    found = said(one, pod_group(4, name="team-0"), pod_group(2, name="team-1"))
    assert [(one.code, one.of) for one in found] == [
        ("min-member-above-pods", "PodGroup/llm/team-0"), ("min-member-below-pods", "PodGroup/llm/team-1"),
    ]  # fmt: skip


# -- what OME makes of a service -------------------------------------------------------------------------------------


def test_a_label_that_ome_makes_a_podgroup_for() -> None:
    ganged = {"leader": {}, "worker": {"size": 1}, "schedulerName": SCHEDULER}
    one = service({LABEL: "x-engine-0"}, **ganged)
    assert codes(RUNTIME, one, options=Options(ome="1.3")) == ["ome-makes-podgroups"]
    other = service({LABEL: "x-engine-1"}, **ganged)
    assert codes(RUNTIME, other, options=Options(ome="1.3")) == ["ome-makes-podgroups", "podgroup-missing"]


def test_single_pods_that_scale_with_their_podgroup() -> None:
    one = service({LABEL: "team"}, minReplicas=2)
    assert codes(RUNTIME, one, pod_group(3)) == ["min-member-above-pods"]
    assert codes(RUNTIME, one, deployment(1), pod_group(3)) == []


# -- what is not said twice, or not at all ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "code"),
    [
        (leader_worker_set({"size": 3, "startupPolicy": "LeaderReady"}, name="team"), "deadlock-shape"),
        (
            leader_worker_set({"size": 3}, worker=template({LABEL: "team-0"}, "volcano"), name="team"),
            "no-gang-scheduler",
        ),
        (
            leader_worker_set(
                {"size": 3},
                template({LABEL: "team-0"}, priority="high"),
                template({LABEL: "team-0"}),
                name="team",
            ),
            "mixed-priorities",
        ),
        (
            leader_worker_set(
                {"size": 3},
                template({LABEL: "team-0"}, "ome-scheduler"),
                template({LABEL: "team-0"}),
                name="team",
            ),
            "mixed-schedulers",
        ),
    ],
)
def test_a_render_says_it_already(one: Object, code: str) -> None:
    options = OPTIONS._replace(leaderworkersets=True, scheduler_has_topology_key=True)
    found = codes(one, pod_group(3, name="team-0"), options=options)
    assert found.count(code) == 1


def test_a_half_written_pair_is_said_in_one_way() -> None:
    """The render calls it mixed; that the one without a name goes to no gang scheduler is the same thing."""
    one = leader_worker_set({"size": 2}, template({LABEL: "x-0"}, ""), template({LABEL: "x-0"}))
    options = OPTIONS._replace(leaderworkersets=True)
    assert codes(one, pod_group(2, name="x-0"), options=options).count("no-gang-scheduler") == 0
    assert "no-gang-scheduler" in codes(one, pod_group(2, name="x-0"))


def test_kinds_of_other_groups_are_not_read() -> None:
    other = {**deployment(2), "apiVersion": "example.com/v1"}
    assert said(other) == []
    assert said({**leader_worker_set({"size": 2}), "apiVersion": "apps/v1"}) == []


@pytest.mark.parametrize("rendered", [True, False])
def test_what_is_no_object_of_its_kind_is_refused(rendered: bool) -> None:
    wrong = deployment(2)
    wrong["spec"]["template"]["metadata"]["labels"][LABEL] = 7
    [found] = said(wrong, pod_group(2), rendered=rendered)
    assert (found.code, found.of) == ("invalid-field", "Deployment/llm/x")


# -- where objects stand ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("api", ["v1", "apps/v1"])
def test_objects_of_a_list(api: str) -> None:
    held = [deployment(2), pod_group(3)]
    if api == "v1":
        assert codes({"apiVersion": api, "kind": "List", "items": held}) == ["min-member-above-pods"]
    else:
        assert codes({"apiVersion": api, "kind": "DeploymentList", "items": held[:1]}, pod_group(3)) == [
            "min-member-above-pods"
        ]


def test_json() -> None:
    data = json.dumps({"apiVersion": "v1", "kind": "List", "items": [deployment(2)]}, indent=1).encode()
    found = review.check(data, OPTIONS, rendered=True)
    assert [one.code for one in told(found)] == ["podgroup-missing"]
    [finding] = found.findings
    assert finding.place is not None
    line = next(number for number, text in enumerate(data.split(b"\n"), 1) if LABEL.encode() in text)
    assert finding.place.line == line
