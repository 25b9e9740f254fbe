"""The rules of gangs: what `render` makes of services, runtimes, settings and options is what the model says.

Draws are plain streams (how YAML may be written is other properties' business), most of them free of errors. The whole
output is compared document by document, and so are the findings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import yaml
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

from postrender import render
from postrender.options import Options, Source
from tests.properties.model import INHERIT, LABEL, MODE, OURS, Expected, Object, bare, expect
from tests.properties.reading import DUMPER, LOADER
from tests.properties.tally import FUZZ, SEED, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

DRAWS = FUZZ or 100
TALLY = Tally(f"rules of gangs, seed {SEED}")
# Shares of the draws, so that the test stays about what it is about.
LEAST_GANGS, LEAST_CLEAN = 0.3, 0.7

NAMES = ("svc", "llama-70b", "m" * 45, "m" * 58)
NAMESPACES = ("llm", "llm", "team-b", None)
RUNTIMES = ("rt", "rt-b", "base")
READY = ("5m", "5m", "45m", "15m", "15m1s", "90s", "0s", "-5m", "900ms", "1.9s", "59.9s", "600.9s", "1.5h", "30s")
SCHEDULERS = ("ome-scheduler", "scheduler-plugins-scheduler", "default-scheduler", "volcano", "")
MODES = ("RawDeployment", "OMENative", "OMENative", "MultiNode", "VirtualDeployment", "Serverless", "")
LIFECYCLES = (
    "{}", '{"instanceReadyTimeout": "10m"}', '{"instanceReadyTimeout": "45m", "gangScheduleTimeout": null}',
    '{"instanceReadyTimeout": "30m", "gangScheduleTimeout": {"min": "60s", "max": "600s"}}',
    '{"instanceReadyTimeout": "", "gangScheduleTimeout": {"min": "60s", "max": "60s"}}',
    '{"gangScheduleTimeout": {"min": "1500ms", "max": "2500ms"}}',
    '{"gangScheduleTimeout": {"min": "500ms", "max": "800ms"}}',
    '{"instanceReadyTimeout": "soon", "gangScheduleTimeout": {"min": "10m", "max": "60s"}}',
    '{"instanceReadyTimeout": "-5m", "gangScheduleTimeout": {"min": "60s"}}',
    '{"instanceReadyTimeout": 30, "gangScheduleTimeout": {"min": "60s", "max": "600s"}}',
    '{"instanceReadyTimeout": "5m", "gangScheduleTimeout": {"min": 60, "max": 600}}', "instanceReadyTimeout: 5m",
)  # fmt: skip
VALUES: tuple[Object, ...] = (
    {"instanceReadyTimeout": "10m"}, {"instanceReadyTimeout": None, "gangScheduleTimeout": None},
    {"gangScheduleTimeout": {"min": "60s", "max": "15m1s"}}, {"gangScheduleTimeout": {"max": "15m"}},
    {"gangScheduleTimeout": {"min": None, "max": None}}, {"instanceReadyTimeout": "30"}, {},
)  # fmt: skip
GROUP, GROUPS = "scheduling.x-k8s.io/v1alpha1/PodGroup", "scheduling.x-k8s.io/v1alpha1"
APIS = (
    ("v1", GROUPS),
    ("v1", GROUP),
    ("v1", "ome.io/v1beta1/InferenceService"),
    (GROUP, "ome.io/v1beta1/InferenceReplica"),
)
ANNOTATIONS: dict[str, tuple[str, ...]] = {
    "helm.sh/hook": ("post-install,post-upgrade",),
    "helm.sh/hook-weight": ("5", "-3", "0", "high"),
    "helm.sh/hook-delete-policy": ("before-hook-creation",),
    "helm.sh/resource-policy": ("keep",),
    "argocd.argoproj.io/sync-wave": ("0", "-2", "7", "late"),
    "argocd.argoproj.io/sync-options": (
        "Prune=false",
        "Delete=false, ServerSideApply=true, Prune=false",
        "Replace=true",
    ),
    "postrenderer.helm.sh/postrender-filename": ("chart/templates/isvc.yaml",),
    "note": ("kept",),
}

Drawn = TypeVar("Drawn")
Draw = Any  # hypothesis' draw


def sometimes(draw: Draw, percent: int) -> bool:
    return bool(draw(st.sampled_from(range(100))) >= 100 - percent)


def pick(draw: Draw, values: tuple[Drawn, ...]) -> Drawn:
    return draw(st.sampled_from(values))  # type: ignore[no-any-return]


def maybe(draw: Draw, percent: int, into: Object, key: str, value: Callable[[], Any]) -> None:
    if sometimes(draw, percent):
        into[key] = value()


def runner(draw: Draw) -> Object:
    found: Object = {}
    maybe(draw, 25, found, "schedulerName", lambda: pick(draw, SCHEDULERS))
    maybe(draw, 8, found, "priorityClassName", lambda: pick(draw, ("high", "low", "")))
    maybe(draw, 20, found, "runner", lambda: {"name": "ome-container", "image": "repo/image:v1"})
    return found


def component(draw: Draw, shapes: tuple[str, ...], taken: str) -> Object:
    """A component of a service, or its config in a runtime; `taken` is a pod-group label that it may have."""
    found: Object = {}
    shape = pick(draw, shapes)
    if "l" in shape:
        found["leader"] = runner(draw)
    if "w" in shape:
        found["worker"] = runner(draw)
        maybe(draw, 70, found["worker"], "size", lambda: pick(draw, (1, 2, 3, 7, None)))
        maybe(draw, 1, found["worker"], "size", lambda: pick(draw, (0, -1, 2147483647)))
    if "n" in shape:
        found[pick(draw, ("leader", "worker"))] = None
    maybe(draw, 40, found, "minReplicas", lambda: pick(draw, (0, 1, 1, 2, 3, 11)))
    maybe(draw, 1, found, "minReplicas", lambda: pick(draw, (-1, 1000, 1001, 2147483648)))
    maybe(draw, 25, found, "maxReplicas", lambda: pick(draw, (0, 1, 3, 12)))
    maybe(draw, 25, found, "schedulerName", lambda: pick(draw, SCHEDULERS))
    maybe(draw, 8, found, "priorityClassName", lambda: pick(draw, ("high", "low", "")))
    maybe(draw, 20, found, "topologyKey", lambda: pick(draw, ("topology.example.com/block", "rack", "")))
    maybe(draw, 40, found, "lifecycle", lambda: lifecycle(draw))
    maybe(draw, 20, found, "labels", lambda: pick(draw, ({}, {"app": "x"}, {"team": "a", "app": "y"}, None)))
    if taken:
        found["labels"] = {**(found.get("labels") or {}), LABEL: taken}
    maybe(draw, 12, found, "annotations", lambda: {MODE: pick(draw, MODES), "note": "kept"})
    if found and sometimes(draw, 6):
        found[pick(draw, tuple(found))] = None
    return found


def lifecycle(draw: Draw) -> Object:
    found: Object = {}
    maybe(draw, 60, found, "instanceReadyTimeout", lambda: pick(draw, READY))
    maybe(draw, 1, found, "instanceReadyTimeout", lambda: pick(draw, ("30", "soon", "1d", "596523h14m8s")))
    maybe(draw, 50, found, "updateStrategy", lambda: pick(draw, (
        {}, {"type": "RecreatePod"}, {"type": "SurgeThenDrain"}, {"type": "InPlaceIfPossible"})))  # fmt: skip
    maybe(draw, 20, found, "minReadySeconds", lambda: 5)
    return found


def metadata(draw: Draw, name: str, namespace: str | None) -> Object:
    return {"name": name, **({} if namespace is None else {"namespace": namespace})}


def noted(draw: Draw) -> Object:
    keys = draw(st.sets(st.sampled_from(sorted(ANNOTATIONS)), max_size=3))
    return {key: pick(draw, ANNOTATIONS[key]) for key in sorted(keys)}


def service(draw: Draw, name: str, namespace: str | None, runtimes: list[Object]) -> Object:
    found: Object = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService"}
    found["metadata"] = metadata(draw, name, namespace)
    maybe(draw, 25, found["metadata"], "annotations", lambda: noted(draw))
    maybe(draw, 5, found["metadata"], "labels", lambda: {"app": "x", LABEL: "other"})
    if sometimes(draw, 3):
        found["metadata"].setdefault("annotations", {})[MODE] = pick(draw, ("VirtualDeployment", "MultiNode"))
    spec: Object = {"model": {"name": "llama-70b"}}
    found["spec"] = spec
    near = [one for one in runtimes if one["metadata"].get("namespace") in (None, namespace)]
    if sometimes(draw, 95):
        known = bool(near) and sometimes(draw, 90)
        chosen = pick(draw, tuple(near)) if known else {"metadata": {"name": pick(draw, (*RUNTIMES, "missing"))}}
        spec["runtime"] = {"name": chosen["metadata"]["name"]}
        maybe(draw, 60 if known else 0, spec["runtime"], "kind", lambda: chosen["kind"])
        maybe(draw, 10, spec["runtime"], "kind", lambda: pick(draw, ("ClusterServingRuntime", "ServingRuntime")))
        maybe(draw, 6, spec["runtime"], "autoSync", lambda: pick(draw, (False, True)))
    maybe(draw, 10, spec, "deploymentMode", lambda: pick(draw, ("OMENative", "RawDeployment", "MultiNode")))
    for one in ("engine", "decoder"):
        if sometimes(draw, 97 if one == "engine" else 35):
            wrong = sometimes(draw, 1)
            own = f"{name}-{one}-{pick(draw, (0, 0, 1, 4))}" if len(name) < 50 and sometimes(draw, 10) else ""
            taken = pick(draw, ("other", f"{name}-router-0", f"x{name}-{one}-0")) if wrong else own
            spec[one] = component(draw, ("lw", "lw", "lw", "lw", "", "", "l", "w", "n"), taken)
    maybe(draw, 2, spec, "decoder", lambda: None)
    maybe(
        draw,
        20,
        spec,
        "router",
        lambda: {"minReplicas": 2, "labels": {"app": "router"}, "leader": {}, "worker": {"size": 2}},
    )
    return found


def runtime(draw: Draw, name: str, namespace: str | None, inherits: tuple[str, ...]) -> Object:
    kind = pick(draw, ("ClusterServingRuntime", "ClusterServingRuntime", "ServingRuntime"))
    found: Object = {"apiVersion": "ome.io/v1beta1", "kind": kind}
    found["metadata"] = metadata(draw, name, namespace if kind == "ServingRuntime" else None)
    if inherits and sometimes(draw, 45):
        found["metadata"]["annotations"] = {INHERIT: pick(draw, inherits)}
    spec: Object = {}
    # These say nothing of any component.
    if sometimes(draw, 5):
        found["metadata"].setdefault("annotations", {})[MODE] = "RawDeployment"
        spec |= {"annotations": {MODE: "RawDeployment"}, "labels": {LABEL: "other"}, "topologyKey": "other"}
    maybe(draw, 30, spec, "schedulerName", lambda: pick(draw, SCHEDULERS))
    for one, percent in (("engineConfig", 80), ("decoderConfig", 40)):
        if sometimes(draw, percent):
            taken = pick(draw, ("other", "svc-engine-0", "svc-decoder-1")) if sometimes(draw, 2) else ""
            spec[one] = component(draw, ("lw", "lw", "lw", "", "l", "w"), taken)
    return {**found, "spec": spec}


def runtimes_of(draw: Draw, namespace: str) -> list[Object]:
    """Up to three, which inherit from each other, seldom in a circle or from one that is missing; two may share a name."""
    found: dict[tuple[str, str, str], Object] = {}
    names = RUNTIMES[: pick(draw, (1, 2, 2, 3, 3, 3, 0))]
    for at, name in enumerate(names):
        again = at > 0 and sometimes(draw, 20)
        parents = () if again else pick(draw, (("missing",), names)) if sometimes(draw, 6) else names[at + 1 :]
        one = runtime(draw, names[0] if again else name, pick(draw, NAMESPACES), parents)
        found.setdefault((one["kind"], one["metadata"].get("namespace", namespace), one["metadata"]["name"]), one)
    return list(found.values())


def replica(draw: Draw, name: str, namespace: str | None) -> Object:
    found: Object = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceReplica"}
    found["metadata"] = metadata(draw, name, namespace)
    maybe(draw, 25, found["metadata"], "annotations", lambda: noted(draw))
    spec: Object = {"component": pick(draw, ("engine", "decoder"))}
    maybe(draw, 10, spec, "parentRef", lambda: {"name": "svc"})
    maybe(draw, 50, spec, "replicas", lambda: pick(draw, (0, 1, 2, 3)))
    maybe(draw, 20, spec, "topologyKey", lambda: pick(draw, ("rack", "")))
    maybe(draw, 40, spec, "lifecycle", lambda: lifecycle(draw))
    shape = pick(draw, ("lw", "lw", "lw", "default", "none"))
    if shape == "none":
        return {**found, "spec": {**spec, "runtimeRef": {"name": "rt"}}}
    names = ("leader", "worker") if shape == "lw" else ("default",)
    spec["runners"] = [{"name": one, "size": 1, "template": {"spec": runner(draw)}} for one in names]
    spec["runners"][-1]["size"] = pick(draw, (1, 2, 4)) if shape == "lw" else 1
    return {**found, "spec": spec}


def config_map(draw: Draw) -> Object:
    held = {"lifecycle": pick(draw, LIFECYCLES)} if sometimes(draw, 90) else {"deploy": "{}"}
    named = {"name": "inferenceservice-config", "namespace": "ome"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": held}


def pod_group(draw: Draw, name: str, namespace: str | None) -> Object:
    """One that somebody, or an earlier run, has left: seldom under a wanted name, and then out of date."""
    wanted = sometimes(draw, 40)
    found = metadata(draw, f"{name}-engine-0" if wanted else f"{name}-engine-1900", namespace)
    if sometimes(draw, 80):
        found["annotations"] = {OURS: f"InferenceService/{name}"}
    return {"apiVersion": GROUPS, "kind": "PodGroup", "metadata": found, "spec": {"minMember": 99}}


def cluster(draw: Draw) -> Object:
    spec: Object = {}
    maybe(draw, 40, spec, "omeVersion", lambda: "1.3.0")
    maybe(draw, 40, spec, "apiVersions", lambda: ["v1", GROUP])
    return {"apiVersion": "postrender/v1alpha1", "kind": "Cluster", "spec": {**spec, "kubernetesVersion": "v1.35.0"}}


def options_of(draw: Draw, namespace: str) -> Object:
    found: Object = {"namespace": namespace}
    maybe(draw, 25, found, "ome", lambda: pick(draw, ("1.3", "1.3.2", "v1.4.0")))
    maybe(draw, 25, found, "ome_install", lambda: pick(draw, ("chart", "kustomize", "none")))
    maybe(draw, 15, found, "ome_values", lambda: {"ome": {"controller": {"lifecycle": pick(draw, VALUES)}}})
    maybe(draw, 10, found, "instance_ready_timeout", lambda: pick(draw, (300 * 10**9, 2700 * 10**9, 1_900_000_000)))
    if sometimes(draw, 10):
        found["gang_timeout_min"], found["gang_timeout_max"] = pick(
            draw, ((10**10, 10**12), (10**11, 10**11), (10**10, None), (None, 10**12), (10**12, None))
        )
    maybe(
        draw, 40, found, "scheduler_name", lambda: pick(draw, ("ome-scheduler", "scheduler-plugins-scheduler", "mine"))
    )
    maybe(draw, 15, found, "gang_scheduler", lambda: pick(draw, (("volcano", "mine"), ("default-scheduler",))))
    maybe(draw, 15, found, "scheduler_has_topology_key", lambda: True)
    maybe(draw, 8, found, "api_versions", lambda: pick(draw, APIS))
    maybe(draw, 15, found, "podgroups", lambda: pick(draw, ("emit", "omit")))
    maybe(draw, 15, found, "spares", lambda: pick(draw, (1, 2)))
    maybe(draw, 15, found, "instances", lambda: "max")
    accepted = st.sets(st.sampled_from(sorted(ACCEPTED)), min_size=1, max_size=3)
    maybe(draw, 10, found, "accept", lambda: tuple(sorted(draw(accepted))))
    maybe(draw, 2, found, "strict", lambda: True)
    return found


ACCEPTED = (
    "ome-not-said", "several-instances", "no-gang-scheduler", "surge-without-spare", "timeout-over-cap",
    "ome-makes-podgroups", "podgroup-crd-missing", "ome-owns-podgroups", "autoscaled-range", "gang-unknown",
)  # fmt: skip


@st.composite
def worlds(draw: Draw) -> tuple[list[Object], list[Object], Object]:
    """A stream, its context, and options."""
    namespace = pick(draw, ("", "", "llm"))
    stream: list[Object] = []
    context: list[Object] = []
    for one in runtimes_of(draw, namespace):
        # In the stream, in the context, or in both, and then not the same.
        place = pick(draw, ("stream", "stream", "context", "context", "both"))
        if place != "context":
            stream.append(one)
        if place != "stream":
            context.append(one if place == "context" else {**one, "spec": {"schedulerName": "hidden"}})
    runtimes = [one for one in (*stream, *context) if one["spec"] != {"schedulerName": "hidden"}]
    seen: set[tuple[str, str]] = set()
    name = NAMES[0]
    for _ in range(pick(draw, (1, 1, 2, 3))):
        name, home = pick(draw, NAMES), pick(draw, NAMESPACES)
        if (name, home or namespace) not in seen or sometimes(draw, 4):
            seen.add((name, home or namespace))
            stream.append(service(draw, name, home, runtimes))
    if sometimes(draw, 2):
        stream.append(service(draw, pick(draw, ("1svc", "m" * 64, "a.b")), "llm", runtimes))
    if sometimes(draw, 15):
        stream.append(replica(draw, pick(draw, ("pool", "pool", "pool", name)), pick(draw, NAMESPACES)))
    if sometimes(draw, 25):
        for into in pick(draw, ((stream,), (context,), (context,), (stream, context))):
            into.append(config_map(draw))
    if sometimes(draw, 8):
        stream.append(pod_group(draw, name, pick(draw, NAMESPACES)))
    if sometimes(draw, 30):
        foreign = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "svc"}, "spec": {"clusterIP": "None"}}
        stream.append(foreign)
    if sometimes(draw, 6):
        context.append(cluster(draw))
        if sometimes(draw, 30):
            off = {"disabled": True, "engineConfig": {"leader": {}, "worker": {"size": 4}}}
            named = {"apiVersion": "ome.io/v1beta1", "kind": "ClusterServingRuntime", "metadata": {"name": "off"}}
            context.append({**named, "spec": off})
    options = options_of(draw, namespace)
    groups = expect(stream, context, options).pod_groups
    if groups and sometimes(draw, 10):
        # One that is as it shall be, with our annotation or without.
        group = pick(draw, tuple(groups))
        if all(group["metadata"]["name"] != one["metadata"]["name"] for one in stream):
            stream.append(group if sometimes(draw, 50) else bare(group))
    return draw(st.permutations(stream)), context, options


def written(documents: list[Object], *, listed: bool) -> bytes:
    """Without aliases: an object that stands in two places is written twice."""
    whole: list[Any] = [{"apiVersion": "v1", "kind": "List", "items": documents}] if listed else documents
    return yaml.dump_all(whole, Dumper=Plain, sort_keys=False).encode()


class Plain(DUMPER):
    def ignore_aliases(self, data: object) -> bool:
        return True


def read(data: bytes, *, listed: bool) -> list[Object]:
    documents: list[Object] = list(yaml.load_all(data, LOADER))
    return documents[0]["items"] if listed else documents


@seed(int(SEED) if SEED.isdigit() else SEED)
@settings(
    max_examples=DRAWS,
    deadline=None,
    database=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
@given(worlds(), st.sampled_from((False, False, False, True)), st.sampled_from((False, True)))
def compare(world: tuple[list[Object], list[Object], Object], listed: bool, context_listed: bool) -> None:
    stream, context, options = world
    # Where OME's version is said a MultiNode component is a LeaderWorkerSet, which OME's own code is asked about instead
    # (tests/oracles/test_ome_rules.py); the model knows OMENative.
    version_said = options.get("ome") or "omeVersion" in str(context)
    assume(not (version_said and "MultiNode" in str((stream, context))))
    wanted = expect(stream, context, options)
    data = written(stream, listed=listed)
    given_options = dict(options)
    if options.get("ome_values") is not None:
        given_options["ome_values"] = Source("values.yaml", written([options["ome_values"]], listed=False))
    if context:
        given_options["context"] = (Source("context.yaml", written(context, listed=context_listed)),)
    rendered = render(data, Options(**given_options))
    count(wanted)
    said = sorted((finding.code, name_of(finding.ref)) for finding in rendered.findings)
    refused = {finding.code for finding in rendered.findings if finding.severity == "error"}
    if wanted.errors:
        # Where several things are wrong, one may hide another.
        assert rendered.data == b""
        assert refused
        known = {code for (code, _), error in zip(wanted.codes, wanted.refused, strict=True) if error}
        assert options.get("strict") or refused <= known
        return
    assert not refused
    assert read(rendered.data, listed=listed) == wanted.documents
    assert said == wanted.codes
    if not wanted.services and not wanted.pod_groups:
        assert rendered.data == data
    again = render(rendered.data, Options(**given_options))
    assert again.data == rendered.data


def test_render_follows_the_model() -> None:
    compare()
    assert TALLY.under("with gangs") >= LEAST_GANGS * TALLY.under("draws")
    assert TALLY.under("without an error") >= LEAST_CLEAN * TALLY.under("draws")


def name_of(ref: Any) -> str:
    return "" if ref is None else f"{ref.kind}/{ref.namespace}/{ref.name}"


def count(wanted: Expected) -> None:
    codes = {code for code, _ in wanted.codes}
    TALLY.add("draws")
    TALLY.add("with errors" if wanted.errors else "without an error")
    TALLY.add("PodGroups", len(wanted.pod_groups))
    TALLY.add("runtimes resolved", wanted.resolved)
    if wanted.pod_groups or "ome-makes-podgroups" in codes:
        TALLY.add("with gangs")
    if not wanted.errors and wanted.services:
        TALLY.add("with services changed")
    for code in codes:
        TALLY.add(f"said: {code}")
