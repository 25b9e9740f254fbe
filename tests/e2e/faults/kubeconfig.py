"""A kubeconfig: where it leads, and one like it that leads elsewhere."""

from __future__ import annotations

import base64
import urllib.parse
from pathlib import Path
from typing import Any

import yaml

# Entries that name a file, relative to the kubeconfig's own folder.
FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class Kubeconfig:
    """The current context of a kubeconfig; what it holds in base64 is written to files in `folder`."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._config = yaml.safe_load(path.read_text())
        self._folder = folder
        context = self._named("context", self._config["current-context"])
        self._cluster = self._named("cluster", context["cluster"])
        self._user = self._named("user", context["user"])
        for entry in (self._cluster, self._user):
            for key in FILES:
                if data := entry.pop(f"{key}-data", None):
                    entry[key] = str(self._kept(key, base64.b64decode(data)))
                elif key in entry:
                    entry[key] = str((path.parent / entry[key]).absolute())
        place = urllib.parse.urlsplit(self._cluster["server"])
        self.host = place.hostname or "127.0.0.1"
        self.port = place.port or 443
        self.ca = Path(self._cluster["certificate-authority"])
        self.client: tuple[Path, Path] | None = None
        if "client-key" in self._user:
            self.client = Path(self._user["client-certificate"]), Path(self._user["client-key"])

    def turned(self, url: str, ca: Path) -> Path:
        """Write the same with another server, and the certificate that vouches for it."""
        self._cluster.pop("tls-server-name", None)
        self._cluster.update({"server": url, "certificate-authority": str(ca)})
        written = self._folder / "kubeconfig"
        written.write_text(yaml.safe_dump(self._config))
        return written

    def _named(self, kind: str, name: str) -> dict[str, Any]:
        [found] = [one[kind] for one in self._config[f"{kind}s"] if one["name"] == name]
        assert isinstance(found, dict)
        return found

    def _kept(self, key: str, data: bytes) -> Path:
        path = self._folder / f"{key}.pem"
        path.touch(0o600)
        path.write_bytes(data)
        return path
