"""Counters, gauges and a histogram, and the text that Prometheus reads (exposition format 0.0.4)."""

from __future__ import annotations

import threading

from ..record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import TypeAlias

    Labels: TypeAlias = tuple[str, ...]

PREFIX = "postrender_"
_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0)


class Family(Record):
    """A metric: its name without the prefix, its type, what it counts, and the names of its labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


FAMILIES = (
    Family("build_info", "gauge", "Always 1; the version is a label.", ("version",)),
    Family("podgroups", "gauge", "PodGroups that are ours, by phase.", ("phase",)),
    Family("podgroup_resets_total", "counter", "Resets of failed PodGroups, by how they ended.", ("result",)),
    Family("podgroup_resets_held", "gauge", "Failed PodGroups that are held back, by why.", ("reason",)),
    Family("podgroup_ownership_conflicts", "gauge", "PodGroups that somebody else holds."),
    Family("gang_crd_available", "gauge", "Whether podgroups.scheduling.x-k8s.io is served."),
    Family("watch_restarts_total", "counter", "Watches begun again, by why.", ("reason",)),
    Family("relists_total", "counter", "Lists of all PodGroups, by why.", ("reason",)),
    Family("last_successful_sync_timestamp_seconds", "gauge", "When the last list was whole, in Unix time."),
    Family("api_requests_total", "counter", "Requests, without the watch.", ("verb", "resource", "code")),
    Family("api_request_duration_seconds", "histogram", "How long requests took."),
    Family("queue_depth", "gauge", "PodGroups that are to be looked at, now or later."),
    Family("events_posted_total", "counter", "Events, by how they ended.", ("reason", "result")),
    Family("errors_total", "counter", "Errors of the program itself, which it goes on after."),
)


class Metrics:
    """Holds the values. Threads may share it."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._lock = threading.Lock()
        self._values: dict[str, dict[Labels, float]] = {family.name: {} for family in FAMILIES}
        self._buckets = [0] * (len(_SECONDS) + 1)
        self._seconds = 0.0

    def add(self, name: str, *labels: str) -> None:
        """Count one more."""
        with self._lock:
            held = self._values[name]
            held[labels] = held.get(labels, 0) + 1

    def set(self, name: str, value: float, *labels: str) -> None:
        """Say what a gauge is now."""
        with self._lock:
            self._values[name][labels] = value

    def replace(self, name: str, values: Mapping[str, float]) -> None:
        """Say what a gauge of one label is now; other values of the label are gone."""
        with self._lock:
            self._values[name] = {(label,): value for label, value in values.items()}

    def took(self, seconds: float) -> None:
        """Count a request that took so long."""
        with self._lock:
            self._seconds += seconds
            self._buckets[next((at for at, most in enumerate(_SECONDS) if seconds <= most), len(_SECONDS))] += 1

    def text(self) -> str:
        """Return all of it as text."""
        with self._lock:
            return "".join(f"{line}\n" for family in FAMILIES for line in self._lines(family))

    def _lines(self, family: Family) -> Iterator[str]:
        name = PREFIX + family.name
        yield f"# HELP {name} {family.help}"
        yield f"# TYPE {name} {family.kind}"
        if family.kind == "histogram":
            total = 0
            for most, count in zip((*map(str, _SECONDS), "+Inf"), self._buckets, strict=True):
                total += count
                yield f'{name}_bucket{{le="{most}"}} {total}'
            yield f"{name}_sum {self._seconds:.6f}"
            yield f"{name}_count {total}"
            return
        values = self._values[family.name] or ({(): 0.0} if not family.labels else {})
        for labels, value in sorted(values.items()):
            held = ",".join(f'{key}="{_escaped(word)}"' for key, word in zip(family.labels, labels, strict=True))
            yield f"{name}{{{held}}} {_number(value)}" if held else f"{name} {_number(value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:.3f}"
