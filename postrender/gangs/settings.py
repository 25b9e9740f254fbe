"""The cluster's timeouts, field by field from the first source that has it: options, chart values, ConfigMap, install.

What is wrong in an option is an error; what is wrong in the cluster's own settings counts as unset, for OME takes it so
(the rules of its LifecycleConfig).
"""

from __future__ import annotations

from ..findings import Finding
from ..manifests.objects import shorten
from ..options import SECOND
from ..record import Record
from . import lifecycle
from .cluster import CLAMP, LEAST, MOST, READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from ..options import Options
    from .cluster import Lifecycle

    Said: TypeAlias = tuple[Finding, Lifecycle | None, int]

_MINUTE = 60 * SECOND
# What OME's two ways to install it write: the chart's values, and the manifests' ConfigMap.
_INSTALLS = {
    "chart": {READY: 30 * _MINUTE, LEAST: _MINUTE, MOST: 10 * _MINUTE},
    "kustomize": {READY: 30 * _MINUTE},
    "none": {},
}
_OPTIONS = {READY: "instance-ready-timeout", LEAST: "gang-timeout-min", MOST: "gang-timeout-max"}


class Setting(Record):
    """One duration in nanoseconds, 0 for none; who said so, for a message, and where."""

    value: int
    origin: str
    file: Lifecycle | None = None
    at: int = 0


class Settings(Record):
    """The cluster's ready timeout, and its clamp: both bounds 0 for none; `refused` where an option is wrong."""

    ready: Setting
    least: Setting
    most: Setting
    refused: bool = False


def settle(options: Options, files: tuple[Lifecycle, ...]) -> tuple[Settings, tuple[Said, ...]]:
    """Return the settings that hold, `files` being the nearest first, and what is to be said of those that do not."""
    findings: list[Said] = []
    for file in files:
        if file.invalid:
            message = f"{file.title}: {file.invalid}; OME takes none of its timeouts"
            findings.append((_invalid(message, "lifecycle"), file, file.at))
    ready = _setting(READY, options, files, findings.append)
    wrong: list[Said] = []
    least = _setting(LEAST, options, files, wrong.append)
    most = _setting(MOST, options, files, wrong.append)
    none = Setting(0, "no clamp")
    off = any(one.value == 0 and one.file is None and one.origin != INSTALL for one in (least, most))
    if off or not (least.value or most.value):
        least = most = none
    elif not 0 < least.value <= most.value:
        why = "max is below min" if least.value and most.value else f"{'max' if least.value else 'min'} is not set"
        by = next((one for one in (least, most) if one.value and not one.file and one.origin != INSTALL), None)
        if by is not None:
            other, side, beyond = (most, "max", "above") if by is least else (least, "min", "below")
            who = _WHO.get(other.origin, other.origin)
            message = f"{lifecycle.text(by.value)} is {beyond} the {side} of {lifecycle.text(other.value)} ({who})"
            if not other.value:
                message = f"there is no {side} beside it"
            told = other.value and not other.file and other.origin != INSTALL
            remedy = _PAIR if told else f"give --gang-timeout-{side} too"
            finding = Finding("invalid-field", message, remedy, field=by.origin)
            findings.append((finding, None, 0))
            return Settings(ready, none, none, True), tuple(findings)
        if not wrong:
            cause = next((one for one in (least, most) if one.file and one.value), least if least.file else most)
            finding = _invalid(f"the clamp is none: {why}; OME then clamps nothing", CLAMP)._replace(remedy=_PAIR)
            wrong.append((finding, cause.file, cause.at))
        least = most = none
    findings.extend(wrong[:1])
    return Settings(ready, least, most), tuple(findings)


INSTALL = "OME's install"
_WHO = {INSTALL: "OME's chart"}  # its manifests write no clamp
_PAIR = "set min and max, max not below min"


def _setting(field: str, options: Options, files: tuple[Lifecycle, ...], say: Callable[[Said], None]) -> Setting:
    """Return one setting from the first source that has it."""
    name = _OPTIONS[field]
    told: int | None = getattr(options, name.replace("-", "_"))
    if told is not None:
        return Setting(told, options.origin(name))
    for file in files:
        found = dict(file.said).get(field)
        if found is not None:
            return Setting(_parsed(field, file, str(found.value), found.at, say), file.title, file, found.at)
        if file.whole or file.invalid:
            return Setting(0, file.title, file, file.at)
    return Setting(_INSTALLS[options.ome_install].get(field, 0), INSTALL)


def _parsed(field: str, file: Lifecycle, text: str, at: int, say: Callable[[Said], None]) -> int:
    """Return a duration of a file, 0 where it is off, or invalid and said to be so."""
    if not text:
        return 0
    try:
        value = lifecycle.parse(text)
        why = "it is not positive"
    except ValueError as error:
        value, why = 0, str(error)
    if value > 0:
        return value
    say((_invalid(f"{shorten(text)!r} counts as unset: {why}", field), file, at))
    return 0


def _invalid(message: str, field: str) -> Finding:
    return Finding("cluster-setting-invalid", message, "write durations such as 30m, in quotes in JSON", field=field)
