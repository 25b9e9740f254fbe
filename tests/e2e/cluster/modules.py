"""The sources of the real programs: they hold the manifests that belong to them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import yaml

from .errors import ClusterError

MODULES = Path(__file__).resolve().parents[1] / "programs" / "modules"


def source(of: str, module: str) -> Path:
    """The folder of a Go module, in the version the program was built from; `of` is our folder with its go.mod."""
    try:
        # Says where it is if it is there already, and fetches it if somebody has cleaned Go's cache.
        done = subprocess.run(
            ["go", "mod", "download", "-json", module], cwd=MODULES / of, capture_output=True, text=True
        )
    except FileNotFoundError:
        raise ClusterError("there is no go on PATH: the manifests are in Go modules") from None
    if done.returncode:
        raise ClusterError(f"go cannot find {module}: run 'make e2e'\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"])


def documents(*paths: Path) -> list[dict[str, Any]]:
    """The objects in some YAML files."""
    return [one for path in paths for one in yaml.safe_load_all(path.read_text()) if one]
