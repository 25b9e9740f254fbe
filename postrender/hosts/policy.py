"""The admission policy that tells each pod of a shared template its own PodGroup, for the version of a cluster."""

from __future__ import annotations

from .helm_plugin import plugins

_GROUP = b"apiVersion: admissionregistration.k8s.io/"
# MutatingAdmissionPolicy: v1 and on by default from 1.36; v1beta1 behind a gate in 1.34 and 1.35.
_STABLE = (1, 36)
_BETA = (1, 34)
_GATE = (
    b"# Kubernetes 1.34 and 1.35 serve this only with --feature-gates=MutatingAdmissionPolicy=true and\n"
    b"# --runtime-config=admissionregistration.k8s.io/v1beta1=true on the API server.\n"
)


def policy(version: tuple[int, int] | None) -> bytes:
    """Return the policy and its binding as YAML; raises ValueError for a Kubernetes that knows no such policy.

    Without a version that of 1.36 and later.
    """
    text = (plugins() / "policy" / "policy.yaml").read_bytes()
    if version is None or version >= _STABLE:
        return text
    if version < _BETA:
        raise ValueError(
            f"Kubernetes {version[0]}.{version[1]} has no MutatingAdmissionPolicy to rely on;"
            " run one replica of each service, or say --replicas whole"
        )
    return _GATE + text.replace(_GROUP + b"v1\n", _GROUP + b"v1beta1\n")
