"""What an Argo CD Application can tell the plugin: the parameters, how they are announced, and how they are read.

Argo CD hands them over as JSON in ARGOCD_APP_PARAMETERS; what it makes of them in PARAM_… loses what tells two names
apart, and is not read. A setting of one word can also come from the Application's `plugin.env`, which
`argocd app set --plugin-env` can write.
"""

from __future__ import annotations

import json

from ..options import CODES, DEFAULTS, FILES, LIST, NUMBER, SWITCH, TABLE, Option
from ..record import Record
from ..sources import Misuse, meant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

JSON = "ARGOCD_APP_PARAMETERS"
_ENVIRONMENT = "ARGOCD_ENV_POSTRENDER_"

STRING = "string"
ARRAY = "array"
MAP = "map"

HELM = "helm"
KUSTOMIZE = "kustomize"
DIRECTORY = "directory"
AUTO = "auto"

_WORDS = {"ome": "OME", "crds": "CRDs", "podgroups": "PodGroups", "leaderworkersets": "LeaderWorkerSets"}


class Parameter(Record):
    """One parameter, with what Argo CD shows of it; `of` is the one kind of source that it is for, or empty."""

    name: str
    tooltip: str
    collection: str = STRING
    item: str = STRING
    default: str = ""
    required: bool = False
    of: str = ""

    @property
    def title(self) -> str:
        """The name as words: `Release name`."""
        words = " ".join(_WORDS.get(word, word) for word in self.name.split("-"))
        return words[:1].upper() + words[1:]


_OWN = (
    Parameter(
        "source",
        "What the path holds: helm, kustomize or directory. auto: Helm where there is a Chart.yaml, kustomize where"
        " there is a kustomization, else the manifests as they are.",
        default=AUTO,
    ),
    Parameter("release-name", "The name of the Helm release; the default is the Application's.", of=HELM),
    Parameter(
        "values-files",
        "Values files inside the repository, from the Application's path; one that begins with / from the root.",
        ARRAY,
        of=HELM,
    ),
    Parameter("values", "Helm values as YAML text; they win over the values files.", of=HELM),
    Parameter("set", "Single Helm values, as --set; they win over all others.", MAP, of=HELM),
    Parameter("set-string", "Single Helm values that are strings, as --set-string.", MAP, of=HELM),
    Parameter("kube-version", "The version of Kubernetes that the chart sees; the default is the cluster's.", of=HELM),
    Parameter("include-crds", "Render the CRDs of the chart.", item="boolean", default="true", of=HELM),
    Parameter("skip-tests", "Leave out the chart's tests.", item="boolean", default="false", of=HELM),
    Parameter(
        "skip-schema-validation",
        "Do not hold the values against the chart's schema.",
        item="boolean",
        default="false",
        of=HELM,
    ),
    Parameter("recurse", "Take the manifests of folders below too.", item="boolean", default="false", of=DIRECTORY),
    Parameter(
        "allow-empty",
        "Let nothing be rendered: with pruning, all that was deployed is then removed.",
        item="boolean",
        default="false",
    ),
)

SYNC_WAVE = "-1"
# Argo CD says these itself (ARGOCD_APP_NAMESPACE, KUBE_API_VERSIONS), and shows findings in one form.
_ELSEWHERE = ("namespace", "api-versions", "format")
_ITEMS = {SWITCH: "boolean", NUMBER: "number"}


def _of(option: Option) -> Parameter:
    """Return an option of the table as a parameter."""
    default = "" if option.name not in ("ome-install", "instances") else str(getattr(DEFAULTS, option.field))
    if option.kind == SWITCH:
        default = "false"
    tooltip = option.help.replace(" Repeatable.", "").replace(" Repeatable; t", " T")
    if option.name == "sync-wave":
        default = SYNC_WAVE
        tooltip += " Empty: none."
    return Parameter(
        option.name,
        tooltip,
        ARRAY if option.kind in (LIST, CODES, FILES) else STRING,
        _ITEMS.get(option.kind, STRING),
        default,
        option.name == "ome",
    )


OWN = tuple(parameter.name for parameter in _OWN)
PARAMETERS = (*(_of(option) for option in TABLE if option.name not in _ELSEWHERE), *_OWN)
_KNOWN = {parameter.name: parameter for parameter in PARAMETERS}


def announcements() -> list[dict[str, Any]]:
    """Return what Argo CD asks a plugin for: an announcement each, of a few words where it is an ordinary string."""
    return [dict(_announcement(parameter)) for parameter in PARAMETERS]


def _announcement(parameter: Parameter) -> Iterator[tuple[str, Any]]:
    yield "name", parameter.name
    yield "title", parameter.title
    yield "tooltip", parameter.tooltip
    if parameter.required:
        yield "required", True
    if parameter.item != STRING:
        yield "itemType", parameter.item
    if parameter.collection != STRING:
        yield "collectionType", parameter.collection
    if parameter.default:
        yield "string", parameter.default


class Told(Record):
    """What was said for a parameter: words, one for a string, or pairs for a map; and where it was said."""

    origin: str
    words: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()


class Parameters:
    """What an Application says, by name; what it leaves empty counts as not said, but for `said`."""

    def __init__(self, told: Mapping[str, Told]) -> None:
        """Hold what was said, by the names of parameters."""
        self._told = told

    def said(self, name: str) -> Told | None:
        """Return what was said, also where it is empty."""
        return self._told.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of what was said and is not empty."""
        return tuple(name for name, told in self._told.items() if any(told.words) or told.pairs)

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words of an array."""
        return self._told[name].words if name in self._told else ()

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return the pairs of a map."""
        return self._told[name].pairs if name in self._told else ()

    def text(self, name: str) -> str:
        """Return a string, the default where none is said."""
        return "".join(self.words(name)) or _KNOWN[name].default

    def switch(self, name: str) -> bool:
        """Return a boolean; raises Misuse where the word is none."""
        word = self.text(name)
        if word not in ("true", "false", "1", "0"):
            raise Misuse(f"{self._told[name].origin}: {word!r}: write true or false")
        return word in ("true", "1")


def read(environ: Mapping[str, str]) -> Parameters:
    """Return what an Application says; raises Misuse for what no parameter takes. A parameter beats its variable."""
    told: dict[str, Told] = {}
    for parameter, value in _entries(environ.get(JSON, "")):
        if parameter.name in told:
            raise Misuse(f"parameter {parameter.name}: stands twice; remove one of the two")
        told[parameter.name] = _told(parameter, value)
    for name in sorted(environ):
        if name.startswith(_ENVIRONMENT) and environ[name]:
            parameter = _named(name.removeprefix(_ENVIRONMENT).lower().replace("_", "-"), name)
            if parameter.collection != STRING:
                raise Misuse(f"{name}: is a setting of several words; give it under plugin.parameters")
            told.setdefault(parameter.name, Told(name, (environ[name],)))
    return Parameters(told)


def of_kind(parameters: Parameters, source: str) -> None:
    """Raise Misuse where something is said that this kind of source has no use for."""
    for name in parameters.names():
        of = _KNOWN[name].of
        if of not in ("", source):
            told = parameters.said(name)
            where = told.origin if told else name
            raise Misuse(f"{where}: is for a source of the kind {of}, and this one is {source}; remove it")


def _entries(text: str) -> Iterator[tuple[Parameter, object]]:
    """Yield the parameters of Argo CD's JSON and what is written for them, None for nothing."""
    try:
        entries = json.loads(text or "null")
    except (ValueError, RecursionError) as error:
        raise Misuse(f"{JSON}: is no JSON: {error}") from None
    if not isinstance(entries, list | None):
        raise Misuse(f"{JSON}: is no list of parameters")
    for number, entry in enumerate(entries or ()):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise Misuse(f"{JSON}: entry {number} has no name")
        parameter = _named(name, f"parameter {name}")
        for key, value in entry.items():
            if key not in ("name", parameter.collection) and value is not None:
                raise Misuse(f"parameter {name}: has {key!r}; write its value as {parameter.collection!r}")
        yield parameter, entry.get(parameter.collection)


def _named(name: str, origin: str) -> Parameter:
    if name not in _KNOWN:
        raise Misuse(f"{origin}: there is no such parameter{meant(name, _KNOWN)}")
    return _KNOWN[name]


def _told(parameter: Parameter, value: object) -> Told:
    """Return what is written for a parameter; Argo CD writes strings alone, also for numbers."""
    origin = f"parameter {parameter.name}"
    if value is None:
        return Told(origin)
    if parameter.collection == STRING and isinstance(value, str):
        return Told(origin, (value,))
    if parameter.collection == ARRAY and isinstance(value, list) and all(isinstance(word, str) for word in value):
        return Told(origin, tuple(value))
    if (
        parameter.collection == MAP
        and isinstance(value, dict)
        and all(isinstance(word, str) for word in value.values())
    ):
        return Told(origin, pairs=tuple(value.items()))
    shape = {STRING: "a string", ARRAY: "a list of strings", MAP: "a map of strings"}[parameter.collection]
    raise Misuse(f"{origin}: is not {shape}")
