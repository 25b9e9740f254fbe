"""The Go readers of a cluster, asked from Python.

`Oracle` starts `.programs/bin/oracle` once and asks it one question at a time, a line each way: thousands a second.

    with Oracle() as oracle:
        oracle.sigs("a: y")           # {"a": True}: what Helm and kubectl read
        oracle.v3("a: y")             # {"a": "y"}: what kustomize reads
        oracle.duration("1h30m")      # 5400000000000
        oracle.scalar("1e3").plain    # True: the text is one plain scalar

A text that the reader refuses is an `OracleError`. Compare values with `exact`, not with `==`: to Python True, 1 and
1.0 are equal, to a cluster they are not.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from typing_extensions import Self

BINARY = Path(__file__).resolve().parents[2] / ".programs" / "bin" / "oracle"


class OracleError(Exception):
    """The reader refused the text; the message is its own."""


class Scalar(NamedTuple):
    """How both read a text that stands as a value: each a value or the `OracleError` it refused with.

    `plain` is whether all of the text is one plain scalar there, as yaml.v3's nodes tell it.
    """

    plain: bool
    sigs: Any
    v3: Any


class CoProcess:
    """A program that answers a line with a line. Not for several threads: an answer belongs to the question before it."""

    name = "oracle"

    def __init__(self, binary: Path) -> None:
        if not binary.exists():
            raise FileNotFoundError(f"run 'make e2e' once: it builds .programs/bin/{binary.name}")
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the co-process: it leaves when its questions end."""
        self._process.communicate()

    def answer(self, question: dict[str, Any], about: str) -> bytes:
        """The answer to a question, as its line; `about` is how to name the question if there is none."""
        # Encoded as it stands, so that a lone surrogate fails here: escaped, Go would read another character.
        asked = json.dumps(question, ensure_ascii=False).encode()
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            stdin.write(asked + b"\n")
            stdin.flush()
        except BrokenPipeError:
            pass  # it has ended: no answer comes, which is said below
        answer: bytes = stdout.readline()
        if not answer.endswith(b"\n"):
            # Not an OracleError: a test that expects a refusal must not take a crash for one.
            raise RuntimeError(f"the {self.name} ended (exit code {self._process.wait()}) {about}")
        return answer


class Oracle(CoProcess):
    """The co-process of the Go readers."""

    def __init__(self, binary: Path = BINARY) -> None:
        super().__init__(binary)

    def sigs(self, text: str) -> Any:
        """What sigs.k8s.io/yaml, so Helm and kubectl, reads: the first document, as JSON values."""
        return self._ask("sigs", text)

    def sigs_all(self, text: str) -> list[Any]:
        """Every document of a stream, cut as kubectl cuts it; a document without content is None."""
        documents: list[Any] = self._ask("sigs-all", text)
        return documents

    def v3(self, text: str) -> Any:
        """What go.yaml.in/yaml/v3, so kustomize, reads: the first document, in the encoding of `oracle/v3.go`.

        Null, bool, int, str, list and maps with strings for keys are themselves. What JSON cannot tell apart is a map
        of one key: {"!float": "1000"}, {"!time": "2001-12-14T00:00:00Z"}, {"!bytes": base64}, and, for a map with
        other keys or with one that begins with "!", {"!map": [[key, value], ...]}.
        """
        return self._ask("v3", text)

    def v3_all(self, text: str) -> list[Any]:
        """Every document of a stream, cut by yaml.v3's own decoder."""
        documents: list[Any] = self._ask("v3-all", text)
        return documents

    def duration(self, text: str) -> int:
        """The nanoseconds of a Go duration, by time.ParseDuration."""
        return int(self._ask("duration", text)["ns"])

    def scalar(self, text: str) -> Scalar:
        """How both read the text where a value stands (`v: TEXT`)."""
        answer = self._ask("scalar", text)
        return Scalar(answer["plain"], _reading(answer["sigs"]), _reading(answer["v3"]))

    def _ask(self, do: str, text: str) -> Any:
        reading = _reading(json.loads(self._line(do, text)))
        if isinstance(reading, OracleError):
            raise reading
        return reading

    def _line(self, do: str, text: str) -> bytes:
        return self.answer({"do": do, "text": text}, f"when asked {do} of {text[:200]!r}")


def exact(value: Any) -> str:
    """A text that is equal for two values if and only if they are the same to a cluster, key order aside."""
    return json.dumps(value, sort_keys=True)


def _reading(answer: dict[str, Any]) -> Any:
    return OracleError(answer["error"]) if "error" in answer else answer["ok"]
