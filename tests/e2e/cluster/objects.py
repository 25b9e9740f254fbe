"""Objects that a cluster is furnished with."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from . import modules

Object = dict[str, Any]
RBAC = "rbac.authorization.k8s.io"
PLUGINS = ("k8s", "sigs.k8s.io/scheduler-plugins", "manifests/install/all-in-one.yaml")
RIGHTS = {  # part: our module, its module, its file, the ClusterRole in it
    "scheduler": (*PLUGINS, "system:kube-scheduler:plugins"),
    "podgroup-controller": (*PLUGINS, "scheduler-plugins-controller"),
    "kwok": ("kwok", "sigs.k8s.io/kwok", "kustomize/rbac/role.yaml", "kwok-controller"),
    "lws": ("lws", "sigs.k8s.io/lws", "config/rbac/role.yaml", "manager-role"),
}


def node(name: str, gpus: int, labels: dict[str, str]) -> Object:
    """A node with GPUs that kwok plays."""
    room = {"cpu": "64", "memory": "1Ti", "pods": "250", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"capacity": room, "allocatable": room},
    }


def user(name: str) -> Object:
    """A user as the subject of a binding."""
    return {"apiGroup": RBAC, "kind": "User", "name": name}


def account(name: str, namespace: str) -> Object:
    """A ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def role(name: str, rules: list[Object], namespace: str | None) -> Object:
    """A Role, or without a namespace a ClusterRole."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role" if namespace else "ClusterRole",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "rules": rules,
    }


def binding(name: str, subject: Object, namespace: str | None) -> Object:
    """The binding of the role of that name."""
    kind = "Role" if namespace else "ClusterRole"
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
        "subjects": [subject],
    }


def review(subject: Object, rule: Object, namespace: str | None) -> Object:
    """The question whether a subject may do the first thing that a rule allows."""
    group, resource = rule["apiGroups"][0], rule["resources"][0]
    asked = {"verb": rule["verbs"][0], "group": group}
    asked["resource"], _, asked["subresource"] = resource.partition("/")
    if rule.get("resourceNames"):
        asked["name"] = rule["resourceNames"][0]
    if namespace:
        asked["namespace"] = namespace
    name = subject["name"]
    if subject["kind"] == "ServiceAccount":
        name = f"system:serviceaccount:{subject['namespace']}:{name}"
    return {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {},
        "spec": {"user": name, "resourceAttributes": asked},
    }


def rights(part: str) -> list[Object]:
    """The rules that the project of a program asks for it."""
    of, module, path, name = RIGHTS[part]
    for found in modules.documents(modules.source(of, module) / path):
        if found["kind"] == "ClusterRole" and found["metadata"]["name"] == name:
            return list(found["rules"])
    raise LookupError(f"{path} has no ClusterRole {name}")


def lws_webhooks(port: int, authority: Path) -> list[Object]:
    """The webhooks of LeaderWorkerSet, called at 127.0.0.1 and not through a Service."""
    found = modules.documents(modules.source("lws", "sigs.k8s.io/lws") / "config" / "webhook" / "manifests.yaml")
    bundle = base64.b64encode(authority.read_bytes()).decode()
    for configuration in found:
        configuration["metadata"]["name"] = f"lws-{configuration['metadata']['name']}"
        for webhook in configuration["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
            if webhook["rules"][0]["resources"] == ["pods"]:  # as its mutating-patch.yaml and validating-patch.yaml
                own = {"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}
                webhook["objectSelector"] = {"matchExpressions": [own]}
    return found
