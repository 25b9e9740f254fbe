"""Files that say where the API server is and who one is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write(path: Path, server: str, authority: Path, user: dict[str, Any], namespace: str = "default") -> Path:
    """Write a kubeconfig for one user: {"token": …}, or {"client-certificate": …, "client-key": …}."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "me", "user": user}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me", "namespace": namespace}}],
        "current-context": "it",
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path
