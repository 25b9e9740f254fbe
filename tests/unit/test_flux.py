"""The change of a render as JSON patches: which operations, for which target, in which files."""

import json

import jsonpatch
import pytest
import yaml

from postrender.hosts import flux
from postrender.options import DEFAULTS

OPTIONS = DEFAULTS._replace(accept=("ome-not-said", "no-gang-scheduler", "surge-without-spare", "runtime-unresolved"))
GANG = "{leader: {}, worker: {size: 1}%s}"


def service(engine="", name="qwen", namespace="", kind="InferenceService", version="ome.io/v1beta1"):
    where = f", namespace: {namespace}" if namespace else ""
    held = f", {engine}" if engine else ""
    return f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}{where}}}\nspec: {{engine: {GANG % held}}}\n"


def made(*documents, form="kustomize", options=OPTIONS):
    found = flux.patches("---\n".join(documents).encode(), options, form, "release")
    assert not found.refused, found.findings
    assert found.findings == ()
    return {file.name: file.data.decode() for file in found.files}


def patches(*documents, options=OPTIONS):
    """Return the patches, each as its target and its operations."""
    held = yaml.safe_load(made(*documents, options=options)["kustomization.yaml"])["patches"]
    return [(one["target"], yaml.safe_load(one["patch"])) for one in held]


LABEL = "scheduling.x-k8s.io/pod-group"
POINTER = "/spec/engine/labels/scheduling.x-k8s.io~1pod-group"
ROWS = {
    "no labels": ("", [{"op": "add", "path": "/spec/engine/labels", "value": {LABEL: "qwen-engine-0"}}]),
    "labels that are null": (
        "labels: ",
        [{"op": "add", "path": "/spec/engine/labels", "value": {LABEL: "qwen-engine-0"}}],
    ),
    "no label in them": ("labels: {}", [{"op": "add", "path": POINTER, "value": "qwen-engine-0"}]),
    "others in them": ("labels: {a~b/c: d}", [{"op": "add", "path": POINTER, "value": "qwen-engine-0"}]),
    "that of another index": (
        f"labels: {{{LABEL}: qwen-engine-1}}",
        [{"op": "replace", "path": POINTER, "value": "qwen-engine-0"}],
    ),
}


@pytest.mark.parametrize("row", ROWS)
def test_operations(row):
    engine, operations = ROWS[row]
    target = {"group": "ome[.]io", "kind": "InferenceService", "name": "qwen"}
    assert patches(service(engine)) == [(target, operations)]


def test_what_holds_needs_no_patch():
    assert patches(service(f"labels: {{{LABEL}: qwen-engine-0}}")) == []
    assert patches("kind: ConfigMap\n") == []
    assert made("kind: ConfigMap\n")["podgroups.yaml"] == ""


def test_a_label_and_schedulers_are_one_patch():
    ((_, operations),) = patches(
        service(), options=OPTIONS._replace(scheduler_name="ome-scheduler", scheduler_has_topology_key=True)
    )
    assert operations == [
        {"op": "add", "path": "/spec/engine/labels", "value": {LABEL: "qwen-engine-0"}},
        {"op": "add", "path": "/spec/engine/leader/schedulerName", "value": "ome-scheduler"},
        {"op": "add", "path": "/spec/engine/worker/schedulerName", "value": "ome-scheduler"},
    ]


def test_what_an_anchor_or_a_merge_brings_is_there():
    head = "apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: qwen, labels: &all {a: b}}\n"
    engine = "spec:\n  engine:\n    <<: &common {leader: {}}\n    worker: {size: 1}\n    labels: *all\n"
    ((_, operations),) = patches(head + engine)
    assert operations == [{"op": "add", "path": POINTER, "value": "qwen-engine-0"}]


@pytest.mark.parametrize(
    ("documents", "targets"),
    [
        ([service(namespace="llm")], [("qwen", "llm")]),
        ([service(namespace="a"), service(namespace="b")], [("qwen", "a"), ("qwen", "b")]),
        # An object without a namespace is in `default` to kustomize's selector; said only where it tells two apart.
        ([service(namespace="a"), service()], [("qwen", "a"), ("qwen", "default")]),
        ([service(), service(name="qwen-2")], [("qwen", None), ("qwen-2", None)]),
    ],
)
def test_targets_are_exact(documents, targets):
    options = OPTIONS._replace(accept=(*OPTIONS.accept, "same-name-two-namespaces"))
    found = [target for target, _ in patches(*documents, options=options)]
    assert [(target["name"], target.get("namespace")) for target in found] == targets


def listed(*documents):
    return "apiVersion: v1\nkind: List\nitems:\n" + "".join(
        "- " + one.replace("\n", "\n  ").rstrip() + "\n" for one in documents
    )


def test_items_of_a_list():
    found = patches(listed(service(name="one"), "kind: ConfigMap\n", service(name="two")))
    assert [target["name"] for target, _ in found] == ["one", "two"]
    assert made(listed(service(name="one")))["podgroups.yaml"].startswith("apiVersion: scheduling.x-k8s.io/v1alpha1\n")


def pod_group(extra="", member=5):
    return (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n"
        "metadata: {name: qwen-engine-0, annotations: {postrender/for: InferenceService/qwen}, labels: {a: b}}\n"
        f"spec: {{minMember: {member}}}\n{extra}"
    )


def test_a_podgroup_of_ours_that_is_another_is_patched():
    (group, _) = found = patches(pod_group("status: {phase: Failed}\n"), service())
    target, operations = group
    assert target == {"group": "scheduling[.]x-k8s[.]io", "kind": "PodGroup", "name": "qwen-engine-0"}
    before = yaml.safe_load(pod_group("status: {phase: Failed}\n"))
    assert jsonpatch.apply_patch(before, operations) == {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": "qwen-engine-0",
            "labels": {
                "component": "engine",
                "ome.io/inferenceservice": "qwen",
                "ome.io/instance-index": "0",
                "ome.io/managed-by": "OMENative",
            },
            "annotations": {"postrender/for": "InferenceService/qwen"},
        },
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 600},
    }
    assert len(found) == 2


def test_a_podgroup_with_a_merge_key_is_refused():
    document = "<<: {status: {phase: Failed}}\n" + pod_group()
    found = flux.patches("---\n".join([document, service()]).encode(), OPTIONS, "kustomize", "")
    assert (found.refused, found.files) == (True, ())
    assert [(one.code, one.place.line) for one in found.findings] == [("edit-refused", 1)]


def test_what_render_refuses_is_refused():
    found = flux.patches(service().replace("size: 1", "size: x").encode(), OPTIONS, "flux", "")
    assert (found.refused, found.files) == (True, ())
    assert [one.code for one in found.findings] == ["invalid-field"]


def test_a_leaderworkerset():
    document = (
        "apiVersion: leaderworkerset.x-k8s.io/v1\nkind: LeaderWorkerSet\nmetadata: {name: set}\n"
        "spec: {replicas: 1, leaderWorkerTemplate: {size: 2, workerTemplate: {spec: {schedulerName: ome-scheduler}}}}\n"
    )
    options = OPTIONS._replace(leaderworkersets=True, scheduler_has_topology_key=True)
    ((target, operations),) = patches(document, options=options)
    assert target == {"group": "leaderworkerset[.]x-k8s[.]io", "kind": "LeaderWorkerSet", "name": "set"}
    path = "/spec/leaderWorkerTemplate/workerTemplate/metadata"
    assert operations == [{"op": "add", "path": path, "value": {"labels": {LABEL: "set-0"}}}]


def test_the_files_of_flux():
    assert made(service(namespace="llm"), form="flux") == {
        "helmrelease.yaml": """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: release
spec:
  postRenderers:
  - kustomize:
      patches:
      - target:
          group: "ome[.]io"
          kind: InferenceService
          name: qwen
          namespace: llm
        patch: |
          - op: add
            path: "/spec/engine/labels"
            value:
              scheduling.x-k8s.io/pod-group: qwen-engine-0
""",
        "kustomization.yaml": """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
- podgroups.yaml
""",
        "podgroups.yaml": """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: qwen-engine-0
  namespace: llm
  labels:
    component: engine
    ome.io/inferenceservice: qwen
    ome.io/instance-index: "0"
    ome.io/managed-by: OMENative
  annotations:
    postrender/for: InferenceService/qwen
spec:
  minMember: 2
  scheduleTimeoutSeconds: 600
""",
    }


def test_a_release_name_is_data():
    held = made(service(), form="flux")["helmrelease.yaml"]
    name = 'a: b\n"#'
    found = flux.patches(service().encode(), OPTIONS, "flux", name)
    assert yaml.safe_load(found.files[0].data)["metadata"] == {"name": name}
    assert found.files[0].data.decode() == held.replace("name: release\n", f"name: {json.dumps(name)}\n")


def test_two_runs_are_one():
    documents = [service(name=f"s{number}", engine="topologyKey: rack") for number in range(5)]
    options = OPTIONS._replace(scheduler_name="ome-scheduler")
    assert len({json.dumps(made(*documents, options=options)) for _ in range(3)}) == 1
