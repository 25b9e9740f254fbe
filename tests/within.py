"""postrender without a process: for tests of what it says, as a start takes many times as long as what it is started for.

All that a process would do is done but its start and its end; tests of those, of signals and of closed streams start one.
"""

from __future__ import annotations

import gc
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from postrender import __main__ as entry

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def run(
    *words: str, data: bytes = b"", cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Return what the process would: with these words, stdin, folder and environment."""
    out, errors = io.BytesIO(), io.BytesIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["postrender", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8"))
        patch.setattr(sys, "stderr", io.TextIOWrapper(errors, encoding="utf-8", errors="backslashreplace"))
        if cwd is not None:
            patch.chdir(cwd)
        if env is not None:
            for name in set(os.environ) - set(env):
                patch.delenv(name)
            for name, value in env.items():
                patch.setenv(name, value)
        try:
            code = entry.run()
        except SystemExit as end:  # of completion
            code = int(end.code or 0)
        finally:
            gc.enable()  # the filter does without
        sys.stdout.flush()
        sys.stderr.flush()
        return subprocess.CompletedProcess(["postrender", *words], code, out.getvalue(), errors.getvalue())
