"""The namespace that a user works in: that of the kubeconfig's context, as kubectl takes it."""

from __future__ import annotations

import os

_DEFAULT = "default"
_POD = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


def namespace(context: str = "", kubeconfig: str = "") -> str:
    """Return the namespace of a context, the current one if none is named; without a kubeconfig that of the pod.

    Where nothing says one it is `default`. What `client.connect` has read can be read here.
    """
    from kubernetes import config

    try:
        contexts, current = config.list_kube_config_contexts(kubeconfig or None)  # type: ignore[no-untyped-call]
    except (config.ConfigException, OSError, ValueError, KeyError, TypeError):
        return _of_pod()
    wanted = next((one for one in contexts if one["name"] == context), current) if context else current
    return str((wanted.get("context") or {}).get("namespace") or _DEFAULT)


def _of_pod() -> str:
    if not os.path.exists(_POD):
        return _DEFAULT
    with open(_POD, encoding="utf-8") as file:
        return file.read().strip() or _DEFAULT
