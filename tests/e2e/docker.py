"""A stand-in for `docker run`: docker.py SCRIPTS FOLDER run OPTIONS... IMAGE

What was asked goes to a new `call-N.json` in FOLDER. Then our entry point in SCRIPTS runs with what a container of the
image would have: its ENV and what kustomize hands over by -e, its WORKDIR, and the mounts, as copies below a root of its own.
Users, networks and what else is in an image are not played.
"""

import itertools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

WORKDIR = "work"


def values(words: list[str], option: str) -> list[str]:
    """Return what follows each `option`."""
    return [value for word, value in itertools.pairwise(words) if word == option]


def main(scripts: str, folder: str, *argv: str) -> int:
    """Write down the call, and play it; return the exit code."""
    stdin = sys.stdin.buffer.read()
    calls = pathlib.Path(folder)
    number = len(list(calls.glob("call-*.json")))
    call = {"argv": list(argv), "cwd": os.getcwd(), "environ": dict(os.environ)}
    # What is no UTF-8 is written down as something else; it is handed on as it is.
    call["stdin"] = stdin.decode(errors="backslashreplace")
    (calls / f"call-{number:03}.json").write_text(json.dumps(call))

    environ = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    environ.update(pair.split("=", 1) for pair in values(list(argv), "-e") if "=" in pair)
    with tempfile.TemporaryDirectory(dir=folder) as root:
        work = pathlib.Path(root, WORKDIR)
        work.mkdir()
        for mount in values(list(argv), "--mount"):
            said = dict(part.split("=", 1) for part in mount.split(",") if "=" in part)
            shutil.copytree(said["source"], pathlib.Path(root, said["target"].lstrip("/")), dirs_exist_ok=True)
        done = subprocess.run([f"{scripts}/postrender"], input=stdin, cwd=work, env=environ, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
