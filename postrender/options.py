"""What a render can be told, as values; and the one table of options, from which flags, names and schemas are made."""

from __future__ import annotations

from .record import Record

SECOND = 1_000_000_000


class Source(Record):
    """A file that was read: its name as the user gave it, and its bytes."""

    name: str
    data: bytes


class Options(Record):
    """Options of a render, files as their bytes, so that the same options give the same result anywhere.

    Durations are nanoseconds as in Go; None where nothing was said, 0 for none. `origins` names the source of each
    option that was set, as pairs of its name in the table and words for a message.
    """

    ome: str = ""
    ome_install: str = "chart"
    ome_values: Source | None = None
    instance_ready_timeout: int | None = None
    gang_timeout_min: int | None = None
    gang_timeout_max: int | None = None
    scheduler_name: str = ""
    gang_scheduler: tuple[str, ...] = ("ome-scheduler", "scheduler-plugins-scheduler")
    scheduler_has_topology_key: bool = False
    context: tuple[Source, ...] = ()
    namespace: str = ""
    api_versions: tuple[str, ...] = ()
    podgroups: str = ""
    spares: int = 0
    instances: str = "min"
    replicas: str = ""
    leaderworkersets: bool = False
    sync_wave: str = ""
    accept: tuple[str, ...] = ()
    strict: bool = False
    origins: tuple[tuple[str, str], ...] = ()

    def origin(self, name: str) -> str:
        """Return how to name an option in a message: where it was set, else its flag."""
        return dict(self.origins).get(name, f"--{name}")


DEFAULTS = Options()


class Form(Record):
    """How findings are shown: `format` is text, json or github; `verbose` shows the notes too."""

    format: str = "text"
    verbose: bool = False


# Kinds of options: how a word becomes a value, and how a value is written in a file.
TEXT = "text"
VERSION = "version"
DURATION = "duration"
NUMBER = "number"
INTEGER = "integer"
SWITCH = "switch"
CHOICE = "choice"
LIST = "list"
CODES = "codes"
FILE = "file"
FILES = "files"


class Option(Record):
    """One option: `name` is its flag without dashes and its key in a file; `names` are foreign environment names."""

    name: str
    kind: str
    group: str
    metavar: str
    help: str
    choices: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def environment(self) -> str:
        """The name in the environment: `POSTRENDER_SCHEDULER_NAME`."""
        return "POSTRENDER_" + self.field.upper()

    @property
    def field(self) -> str:
        """The name of the field in Options or Form."""
        return self.name.replace("-", "_")


_CLUSTER, _CONTEXT, _GANGS, _SCHEDULER, _FINDINGS = "OME", "Context", "Gangs", "Schedulers", "Findings"

TABLE = (
    Option("ome", VERSION, _CLUSTER, "VERSION", "The version of OME that runs the manifests, such as 1.3."),
    Option(
        "ome-install",
        CHOICE,
        _CLUSTER,
        "HOW",
        "How OME was installed, which decides its default timeouts: chart (30m, 60s to 600s; the default),"
        " kustomize (30m, no clamp) or none.",
        ("chart", "kustomize", "none"),
    ),
    Option("ome-values", FILE, _CLUSTER, "FILE", "The values of OME's chart; ome.controller.lifecycle is read."),
    Option(
        "instance-ready-timeout",
        DURATION,
        _CLUSTER,
        "TIME",
        "The cluster's lifecycle.instanceReadyTimeout, such as 30m; 0 for none.",
    ),
    Option("gang-timeout-min", DURATION, _CLUSTER, "TIME", "The cluster's gangScheduleTimeout.min; 0 for no clamp."),
    Option("gang-timeout-max", DURATION, _CLUSTER, "TIME", "The cluster's gangScheduleTimeout.max; 0 for no clamp."),
    Option(
        "context",
        FILES,
        _CONTEXT,
        "PATH",
        "A file, or a folder of files, with runtimes and settings of the cluster; read, never written. Repeatable.",
    ),
    Option(
        "namespace",
        TEXT,
        _CONTEXT,
        "NAME",
        "The namespace of objects that write none; for look-ups only, never written.",
    ),
    Option(
        "api-versions",
        LIST,
        _CONTEXT,
        "LIST",
        "What the cluster serves, as group/version or group/version/Kind; it can only refuse. Repeatable.",
        names=("KUBE_API_VERSIONS",),
    ),
    Option(
        "podgroups",
        CHOICE,
        _GANGS,
        "WHO",
        "emit: write the PodGroups of OMENative components; omit: leave them to OME. The default goes by --ome.",
        ("emit", "omit"),
    ),
    Option("spares", NUMBER, _GANGS, "N", "PodGroups for N more Instances, which an update by surge moves to."),
    Option(
        "instances",
        CHOICE,
        _GANGS,
        "HOW",
        "PodGroups for min (minReplicas, the default) or max (maxReplicas) Instances.",
        ("min", "max"),
    ),
    Option(
        "replicas",
        CHOICE,
        _GANGS,
        "HOW",
        "Where several Instances share a template, as in a LeaderWorkerSet: policy (each its own gang, by an admission"
        " policy that `postrender policy` prints) or whole (all of them one gang).",
        ("policy", "whole"),
    ),
    Option("leaderworkersets", SWITCH, _GANGS, "", "Gang the LeaderWorkerSets of the stream too, from any chart."),
    Option(
        "sync-wave",
        INTEGER,
        _GANGS,
        "N",
        "The Argo CD sync wave of PodGroups whose service has none, such as -1: they are there before their service.",
    ),
    Option(
        "scheduler-name",
        TEXT,
        _SCHEDULER,
        "NAME",
        "The schedulerName of gangs that have none; a name that is written stays.",
    ),
    Option(
        "gang-scheduler",
        LIST,
        _SCHEDULER,
        "NAME",
        "A scheduler that places gangs. Repeatable; the default is ome-scheduler and scheduler-plugins-scheduler.",
    ),
    Option(
        "scheduler-has-topology-key",
        SWITCH,
        _SCHEDULER,
        "",
        "The OME scheduler's chart sets a topologyKey, so a gang needs none.",
    ),
    Option("strict", SWITCH, _FINDINGS, "", "Treat warnings as errors."),
    Option("accept", CODES, _FINDINGS, "CODE", "Silence this finding. Repeatable."),
    Option(
        "format",
        CHOICE,
        _FINDINGS,
        "FORM",
        "The form of findings: text, json (one object per line) or github (annotations).",
        ("text", "json", "github"),
    ),
    Option("verbose", SWITCH, _FINDINGS, "", "Show notes too."),
)

TRANSFORM, GENERATE, VALIDATE = "transform", "generate", "validate"

# What a functionConfig can say beside the table.
MODE = Option(
    "mode",
    CHOICE,
    "Function",
    "HOW",
    "transform: add what the items need (the default). generate: return the objects of `files`, and what they need."
    " validate: return no items, only findings.",
    (TRANSFORM, GENERATE, VALIDATE),
)
FUNCTION_FILES = Option(
    "files", FILES, "Function", "PATH", "The manifests to generate from, inside the kustomization's folder."
)
FUNCTION = (MODE, FUNCTION_FILES)
