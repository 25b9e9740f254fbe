"""A certificate authority for one cluster, made by openssl."""

from __future__ import annotations

import secrets
import subprocess
from pathlib import Path

from .errors import ClusterError

DAYS = "2"


class Authority:
    """Signs certificates; all of them lie in one folder, as NAME.crt and NAME.key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.certificate = folder / "ca.crt"
        self.key("ca")
        openssl(
            folder,
            *("req", "-new", "-x509", "-key", "ca.key", "-out", "ca.crt", "-days", DAYS, "-subj", "/CN=cluster"),
        )

    def key(self, name: str) -> Path:
        """Make a private key."""
        openssl(self.folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        return self.folder / f"{name}.key"

    def public(self, name: str) -> Path:
        """Write the public half of a private key beside it."""
        openssl(self.folder, "pkey", "-in", f"{name}.key", "-pubout", "-out", f"{name}.pub")
        return self.folder / f"{name}.pub"

    def server(self, name: str) -> tuple[Path, Path]:
        """Certify a server on 127.0.0.1: its certificate and key."""
        return self.sign(name, f"/CN={name}", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")

    def client(self, name: str, user: str, group: str) -> tuple[Path, Path]:
        """Certify a user, member of one group: its certificate and key."""
        return self.sign(name, f"/O={escaped(group)}/CN={escaped(user)}", "extendedKeyUsage=clientAuth\n")

    def sign(self, name: str, subject: str, extensions: str) -> tuple[Path, Path]:
        """Make a key and a certificate of it."""
        key = self.key(name)
        (self.folder / f"{name}.ext").write_text(extensions)
        openssl(self.folder, "req", "-new", "-key", key.name, "-subj", subject, "-out", f"{name}.csr")
        openssl(
            self.folder,
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key"),
            *("-set_serial", f"0x1{secrets.token_hex(8)}", "-days", DAYS),
            *("-extfile", f"{name}.ext", "-out", f"{name}.crt"),
        )
        return self.folder / f"{name}.crt", key


def escaped(value: str) -> str:
    """A name as it may stand in a subject."""
    return value.replace("\\", "\\\\").replace("/", "\\/")


def openssl(folder: Path, *words: str) -> None:
    """Run openssl; what it says is shown only when it fails."""
    try:
        done = subprocess.run(["openssl", *words], cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise ClusterError("there is no openssl on PATH: install it") from None
    if done.returncode:
        raise ClusterError(f"openssl {' '.join(words)} failed:\n{done.stderr}")
