"""What can be looked up: runtimes, the cluster's settings, its versions and API list.

Built from the stream, the context and the options; the stream beats the context for one kind, namespace and name.
"""

from __future__ import annotations

from ..findings import Finding
from ..manifests.objects import shorten
from ..record import Record
from . import dialect, keys, settings
from .cluster import STREAM, Cluster, Lifecycle
from .resources import Runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from ..options import Options
    from .resources import LeaderWorkerSet, Object, Workload

    Said: TypeAlias = tuple[Finding, Lifecycle | Cluster | Runtime | None, int]

# A runtime and four it inherits from, by OME's documentation of runtime inheritance.
_MOST_IN_CHAIN = 5
_CRD = ("scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/v1alpha1/PodGroup")
_REPLICAS = "ome.io/v1beta1/InferenceReplica"


class Resolved(Record):
    """The runtimes of a service, the nearest first; `missing` says what is not known, empty if all is.

    `single` are components of one pod for certain, whatever is missing. `finding` is what keeps the runtimes from being
    used, with the runtime and the code point of its cause.
    """

    runtimes: tuple[Runtime, ...]
    missing: str = ""
    single: tuple[str, ...] = ()
    finding: tuple[Finding, Runtime, int] | None = None


class World:
    """What is known beyond the services themselves; `findings` collects what is wrong with that."""

    def __init__(self, held: Iterable[Object], options: Options) -> None:
        """Index what the stream and the context hold, the stream last."""
        self.options = options
        self.findings: list[Said] = []
        self._settings: settings.Settings | None = None
        self._values: Lifecycle | None = None
        self.runtimes: dict[tuple[str, str, str], Runtime] = {}
        self.config: Lifecycle | None = None
        self.cluster: Cluster | None = None
        earlier: list[tuple[tuple[str, str, str], Runtime]] = []
        # What a later one of the same name has replaced, by the id of that.
        self._rivals: dict[int, Runtime | Lifecycle | Cluster] = {}
        for one in held:
            if isinstance(one, Runtime):
                namespace = self.namespace(one)
                keyed = [(one.kind, namespace, name) for name in one.names]
                self._replace(self.runtimes.get(keyed[0]), one)
                self.runtimes[keyed[0]] = one
                earlier.extend((key, one) for key in keyed[1:])
            elif isinstance(one, Lifecycle):
                if one.whole:
                    self._replace(self.config, one)
                    self.config = one
                else:
                    self._values = one
            elif isinstance(one, Cluster):
                self._replace(self.cluster, one)
                self.cluster = one
        for key, runtime in earlier:
            self.runtimes.setdefault(key, runtime)
        self.ome = self._ome()
        self.dialect = dialect.of(self.ome)
        self.api_versions = frozenset(options.api_versions or (self.cluster.api_versions if self.cluster else ()))

    def _replace(self, former: Runtime | Lifecycle | Cluster | None, later: Runtime | Lifecycle | Cluster) -> None:
        """Remember that two say different things; where only one is the stream's, it is no question which counts."""
        if former is None or (former.file == STREAM) != (later.file == STREAM):
            return
        if _said(former) != _said(later):
            self._rivals[id(later)] = former

    def _used(self, one: Runtime | Lifecycle | Cluster, title: str) -> None:
        """Say, once, that what is used stands there in two ways."""
        former = self._rivals.pop(id(one), None)
        if former is not None:
            where = "the stream" if one.file == STREAM else "the context"
            message = f"{title} stands twice in {where}, and not alike; the later one counts"
            self.findings.append((Finding("ambiguous-context", message, "leave one of the two out"), one, one.at))

    def namespace(self, one: Workload | LeaderWorkerSet | Runtime) -> str:
        """Return the namespace of an object for look-ups."""
        if isinstance(one, Runtime) and one.kind == keys.CLUSTER_SERVING_RUNTIME:
            return ""
        return one.namespace or self.options.namespace

    @property
    def whole(self) -> bool:
        """Whether the context claims to hold all that the cluster knows."""
        return self.cluster is not None

    @property
    def serves_pod_groups(self) -> bool:
        """Whether the PodGroup CRD is there, as far as is known."""
        return not self.api_versions or not self.api_versions.isdisjoint(_CRD)

    @property
    def ome_makes_pod_groups(self) -> bool:
        """Whether an OME is there that makes PodGroups itself: from 1.3 on, where their CRD is served."""
        return _REPLICAS in self.api_versions and not self.api_versions.isdisjoint(_CRD)

    def _ome(self) -> tuple[int, int] | None:
        if self.cluster is not None:
            self._used(self.cluster, "the Cluster document")
        if self.options.ome:
            return version(self.options.ome)
        said = self.cluster.ome if self.cluster else None
        if said is None:
            return None
        try:
            return version(str(said.value))
        except ValueError as error:
            finding = Finding("invalid-field", str(error), "correct it", field="spec.omeVersion")
            self.findings.append((finding, self.cluster, said.at))
            return None

    # Settings

    @property
    def settings(self) -> settings.Settings:
        """The cluster's timeouts, settled when first asked for."""
        if self._settings is None:
            files = tuple(file for file in (self._values, self.config) if file is not None)
            if self.config is not None:
                self._used(self.config, self.config.title)
            self._settings, findings = settings.settle(self.options, files)
            self.findings.extend(findings)
        return self._settings

    # Runtimes

    def resolve(self, workload: Workload) -> Resolved:
        """Return the runtimes that a service gets its components from."""
        ref = workload.runtime
        if workload.kind == keys.INFERENCE_REPLICA:
            return Resolved((), f"the runtime {ref.name!r}" if ref.name else "")
        if not ref.name:
            return Resolved((), "the runtime that OME will choose", self._single(workload))
        found = self._find(ref.kind, self.namespace(workload), ref.name)
        if found is None:
            return Resolved((), f"the runtime {ref.name!r}")
        resolved = self._chain(found)
        for runtime in resolved.runtimes:
            self._used(runtime, runtime.title)
        return resolved

    def _find(self, kind: str, namespace: str, name: str) -> Runtime | None:
        """Look a name up: cluster-wide first, unless the namespace's is asked for; before 1.3 there first."""
        if not self.dialect.by_kind:
            own = self.runtimes.get((keys.SERVING_RUNTIME, namespace, name))
            return own or self.runtimes.get((keys.CLUSTER_SERVING_RUNTIME, "", name))
        if kind in ("", keys.CLUSTER_SERVING_RUNTIME):
            found = self.runtimes.get((keys.CLUSTER_SERVING_RUNTIME, "", name))
            return found or self.runtimes.get((keys.SERVING_RUNTIME, namespace, name))
        return self.runtimes.get((kind, namespace, name))

    def _chain(self, runtime: Runtime) -> Resolved:
        """Follow `ome.io/inherit-from`: a cluster-wide runtime has only such parents, another its namespace's too.

        A name can stand in a chain only once, whatever its kind.
        """
        chain = [runtime]
        while self.dialect.inherits and (parent := chain[-1].parent) is not None:
            child, name = chain[-1], str(parent.value)
            own = None
            if runtime.kind == keys.SERVING_RUNTIME:
                own = self.runtimes.get((keys.SERVING_RUNTIME, self.namespace(runtime), name))
            found = own or self.runtimes.get((keys.CLUSTER_SERVING_RUNTIME, "", name))
            if found is None:
                return Resolved(tuple(chain), f"the runtime {name!r}, which {child.title} inherits from,")
            if found.names[0] in [one.names[0] for one in chain]:
                return _endless(chain, f"{child.title} inherits from {name!r}, which stands in its chain already")
            if len(chain) == _MOST_IN_CHAIN:
                return _endless(chain, f"{child.title} is the last of {_MOST_IN_CHAIN}, the most that OME follows")
            chain.append(found)
        return Resolved(tuple(chain))

    def _single(self, workload: Workload) -> tuple[str, ...]:
        """Return the components that no runtime OME could choose gives leader, worker or a mode, if all are known."""
        if not self.whole:
            return ()
        namespace = self.namespace(workload)
        several = {
            component.name
            for (kind, where, _), runtime in self.runtimes.items()
            if not runtime.disabled and (kind == keys.CLUSTER_SERVING_RUNTIME or where == namespace)
            for component in runtime.components
            if component.leader or component.worker or component.mode
        }
        bare = (component for component in workload.components if not (component.leader or component.worker))
        return tuple(component.name for component in bare if component.name not in several)


def _said(one: Runtime | Lifecycle | Cluster) -> tuple[object, ...]:
    """Return what counts of an object, without the places where it is written."""
    if isinstance(one, Cluster):
        return (one.ome.value if one.ome else "", *one.api_versions)
    if isinstance(one, Lifecycle):
        return (one.invalid, *((field, found.value) for field, found in one.said))
    return (one.disabled, *(_values(held) for held in (one.parent, one.scheduler, *one.components)))


def _values(held: object) -> object:
    """Return the values in a record, down to the last; a place is what stands at `at`."""
    if not isinstance(held, tuple):
        return held
    fields = getattr(held, "_fields", (None,) * len(held))
    return tuple(_values(value) for field, value in zip(fields, held, strict=True) if field != "at")


def _endless(chain: list[Runtime], message: str) -> Resolved:
    """Return a chain that OME refuses."""
    child = chain[-1]
    field = f"metadata.annotations[{keys.INHERIT_FROM}]"
    finding = Finding("invalid-field", message, "end the chain of runtimes", field=field)
    return Resolved(tuple(chain), finding=(finding, child, child.parent.at if child.parent else child.at))


def version(text: str) -> tuple[int, int]:
    """Return major and minor of a version such as `1.3`, `v1.2.2` or `1.3.0-rc1`; raises ValueError for anything else.

    >>> version("v1.2.2")
    (1, 2)
    """
    major, _, rest = text.removeprefix("v").partition(".")
    minor = rest.split(".")[0].partition("-")[0]
    if not (major.isdigit() and minor.isdigit() and text.isascii()):
        raise ValueError(f"{shorten(text)!r} is not a version; write one such as 1.3")
    return int(major), int(minor)
