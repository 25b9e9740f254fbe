"""What is said about a manifest: findings, the places they name, and the exit codes.

A finding is a value. Nothing here prints; `views` turns findings into text.
"""

from __future__ import annotations

from .record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ERROR = "error"
WARNING = "warning"
NOTE = "note"

# code -> severity. Each code is a heading in docs/findings.md and a golden case.
SEVERITIES = {
    "unreadable": ERROR,
    "edit-refused": ERROR,
    "invalid-field": ERROR,
    "duplicate-service": ERROR,
    "podgroup-conflict": ERROR,
    "label-taken": ERROR,
    "too-many-instances": ERROR,
    "replicas-share-template": ERROR,
    "deadlock-shape": ERROR,
    "leader-without-worker": ERROR,
    "ome-owns-podgroups": ERROR,
    "podgroup-crd-missing": ERROR,
    "not-rendered": ERROR,
    "gang-half-bound": ERROR,
    "podgroup-foreign": ERROR,
    "ome-not-said": WARNING,
    "several-instances": WARNING,
    "multinode-not-ganged": WARNING,
    "not-handled": WARNING,
    "unpaired-leader-worker": WARNING,
    "gang-unknown": WARNING,
    "runtime-unresolved": WARNING,
    "runtime-pinned": WARNING,
    "ambiguous-context": WARNING,
    "no-gang-scheduler": WARNING,
    "mixed-schedulers": WARNING,
    "mixed-priorities": WARNING,
    "topology-key-missing": WARNING,
    "autoscaled-range": WARNING,
    "surge-without-spare": WARNING,
    "name-too-long": WARNING,
    "same-name-two-namespaces": WARNING,
    "timeout-over-cap": WARNING,
    "stale-podgroup": WARNING,
    "podgroup-missing": WARNING,
    "gang-waiting": WARNING,
    "podgroup-differs": WARNING,
    "podgroup-failed": WARNING,
    "min-member-missing": WARNING,
    "min-member-above-pods": WARNING,
    "min-member-below-pods": WARNING,
    "legacy-label": WARNING,
    "cluster-setting-invalid": WARNING,
    "ome-makes-podgroups": NOTE,
    "topology-key-ignored": NOTE,
    "policy-needed": NOTE,
    "other-gang-system": NOTE,
}

# Errors about what will happen in the cluster: the output is sound, so a user who knows better may accept them.
ACCEPTABLE = ("ome-owns-podgroups", "podgroup-crd-missing", "deadlock-shape")
# Notes that are said without being asked for.
ALWAYS = ("ome-makes-podgroups",)

# Exit codes. 2 is click's own for a wrong command line; a shell adds 128 to the number of a signal.
DONE = 0
REFUSED = 1
USAGE = 2
WOULD_CHANGE = 3
UNREACHABLE = 4
INTERRUPTED = 130


class Place(Record):
    """A position in an input: 1-based line and column (code points).

    `source` is Helm's template path or empty; `file` is empty for the stream itself, else the file of the context.
    """

    line: int
    column: int
    source: str = ""
    file: str = ""


class Ref(Record):
    """Which object is meant; `namespace` is empty where the manifest writes none."""

    kind: str
    namespace: str
    name: str


class Finding(Record):
    """One thing said: its code decides the severity, `field` is a dotted path or empty, `remedy` is what to do.

    `raised` makes an error of a warning: `--strict`, or a context that claims to be whole. `other` is a second place,
    in the stream, which `message` tells as `on line N`.
    """

    code: str
    message: str
    remedy: str
    ref: Ref | None = None
    field: str = ""
    place: Place | None = None
    raised: bool = False
    other: Place | None = None

    @property
    def severity(self) -> str:
        """`error`, `warning` or `note`, as the table says."""
        return ERROR if self.raised else SEVERITIES[self.code]

    def moved(self, move: Callable[[Place], Place]) -> Finding:
        """Return the finding about a stream as one about the files that it is made of."""
        if self.place is None or self.place.file:
            return self
        place, message = move(self.place), self.message
        if self.other is not None:
            other = move(self.other)
            where = f"on line {other.line}" if other.file == place.file else f"at {other.file}:{other.line}"
            message = message.replace(f"on line {self.other.line}", where)
        return self._replace(place=place, message=message)


class Refusal(Exception):  # noqa: N818 - it is what is raised when we refuse, and is caught by name
    """Raised where an input cannot be read or edited safely; becomes the one finding it carries."""

    def __init__(self, finding: Finding, spot: tuple[int, int] = (-1, -1)) -> None:
        """Carry the finding, and the number of the span and of the item that it is about."""
        super().__init__(finding.message)
        self.finding = finding
        self.spot = spot
