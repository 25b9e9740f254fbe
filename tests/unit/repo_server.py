"""What Argo CD does around a plugin, without Argo CD: a checkout, an environment, and how it takes the answer.

As its repo-server and plugin server do it in 3.3; tests/e2e has the real plugin server.
"""

from __future__ import annotations

import io
import json
import os
import pathlib
import re
import shutil
import uuid
from typing import Any

import pytest
import yaml

from postrender.hosts import argocd


class Refused(Exception):
    """What Argo CD shows instead of manifests, and the exit code."""

    def __init__(self, code: int, said: str) -> None:
        super().__init__(said)
        self.code = code
        self.first = said.partition("\n")[0]


def parameters(told: dict[str, Any]) -> list[dict[str, Any]]:
    """Return parameters as an Application has them: strings, arrays and maps each under a key of its own."""
    keys = {str: "string", list: "array", dict: "map"}
    return [{"name": name, keys[type(value)]: value} for name, value in told.items()]


def _lossy(told: list[dict[str, Any]]) -> dict[str, str]:
    """Return the variables that Argo CD makes of parameters besides; several parameters may come to one name."""
    made = {}
    for one in told:
        name = "PARAM_" + re.sub(r"[^A-Z0-9_]", "_", one["name"].upper())
        if "string" in one:
            made[name] = one["string"]
        for index, word in enumerate(one.get("array") or []):
            made[f"{name}_{index}"] = word
        for key, word in (one.get("map") or {}).items():
            made[f"{name}_{re.sub('[^A-Z0-9_]', '_', key.upper())}"] = word
    return made


class RepoServer:
    """A repository, and Applications of it."""

    def __init__(self, place: pathlib.Path, patch: pytest.MonkeyPatch) -> None:
        self.repository = place / "repository"
        self.repository.mkdir()
        self.work = place / "_cmp_server"
        self.patch = patch
        self.sidecar = {"PATH": os.defpath, "HOME": "/dev/null/home"}
        self.stderr = ""

    def write(self, **files: str) -> None:
        """Write files of the repository; `__` stands for a slash, and the last `_` for a dot."""
        for name, text in files.items():
            path = self.repository / ".".join(name.replace("__", "/").rsplit("_", 1))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def environ(self, app: str, told: list[dict[str, Any]] | None, **environ: str) -> dict[str, str]:
        """Return the environment of the command."""
        return {
            **self.sidecar,
            "ARGOCD_APP_NAME": "llm",
            "ARGOCD_APP_NAMESPACE": "models",
            "ARGOCD_APP_SOURCE_PATH": app,
            "KUBE_VERSION": "1.34.1",
            "KUBE_API_VERSIONS": "",
            "ARGOCD_APP_PARAMETERS": json.dumps(told),
            **_lossy(told or []),
            **environ,
        }

    def run(self, app: str, environ: dict[str, str]) -> bytes:
        """Return what the plugin writes for an Application; raises Refused. What it says is kept in `stderr`."""
        checkout = self.work / str(uuid.uuid4())
        shutil.copytree(self.repository, checkout, symlinks=True, copy_function=_copied)
        before = sorted(checkout.rglob("*"))
        self.patch.chdir(checkout / app)
        out, errors = io.BytesIO(), io.StringIO()
        code = argocd.generate(os.getcwd(), environ, out, errors)
        self.stderr = errors.getvalue()
        assert sorted(checkout.rglob("*")) == before  # its root may be read-only
        if code:
            assert out.getvalue() == b""
            raise Refused(code, self.stderr)
        return out.getvalue()

    def generate(self, app: str, environ: dict[str, str] | None = None, **told: Any) -> list[Any]:
        """Return the objects that Argo CD deploys for an Application with these parameters."""
        named = parameters({"ome": "1.2", **{name.replace("_", "-"): value for name, value in told.items()}})
        return objects(self.run(app, self.environ(app, named, **(environ or {}))))


def _copied(source: str, target: str) -> None:
    shutil.copyfile(source, target)
    os.chmod(target, 0o644)  # whatever it was: the bit for executables is lost


def objects(stdout: bytes) -> list[Any]:
    """Return the objects of what a plugin writes: no nulls, Lists taken apart, and each a map with a kind."""
    found = []
    for document in yaml.safe_load_all(stdout):
        if document is not None:
            assert isinstance(document, dict)
            assert document["kind"]
            found.extend(document["items"] if document["kind"] == "List" else [document])
    return found
