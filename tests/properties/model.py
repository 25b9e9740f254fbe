"""OME's gang rules and ours, small and plain, on dicts as YAML gives them; it imports nothing of the package.

`expect` says what must come of a stream: its documents, the PodGroups among them, what is set in services, and which
findings are made. Objects are well formed in type: what refuses a wrong type is tested elsewhere. One run is one
`Model`, which collects as it goes. Durations are looked up in a table worked out by hand, so no parser is shared.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
from typing import Any, NamedTuple

Object = dict[str, Any]
Path = tuple[str, ...]

SECOND = 10**9
# Everything a generator may write as a duration, in nanoseconds; what is not here is no duration.
DURATIONS = {
    "30m": 1800 * SECOND, "45m": 2700 * SECOND, "15m": 900 * SECOND, "15m1s": 901 * SECOND, "10m": 600 * SECOND,
    "5m": 300 * SECOND, "3m": 180 * SECOND, "90s": 90 * SECOND, "60s": 60 * SECOND, "30s": 30 * SECOND,
    "600s": 600 * SECOND, "1h30m": 5400 * SECOND, "1.5h": 5400 * SECOND, "59.9s": 59_900_000_000,
    "600.9s": 600_900_000_000, "1.9s": 1_900_000_000, "900ms": 900_000_000, "800ms": 800_000_000,
    "500ms": 500_000_000, "1500ms": 1_500_000_000, "2500ms": 2_500_000_000, "0s": 0, "0": 0, "-5m": -300 * SECOND,
    "-900ms": -900_000_000, "596523h14m7s": 2147483647 * SECOND, "596523h14m8s": 2147483648 * SECOND,
}  # fmt: skip

MODE = "ome.io/deploymentMode"
INHERIT = "ome.io/inherit-from"
LABEL = "scheduling.x-k8s.io/pod-group"
OURS = "postrender/for"
CLUSTER_KIND, NAMESPACE_KIND = "ClusterServingRuntime", "ServingRuntime"
REPEATED: tuple[str, ...] = (
    "helm.sh/hook", "helm.sh/hook-delete-policy", "helm.sh/hook-output-log-policy", "helm.sh/resource-policy",
    "postrenderer.helm.sh/postrender-filename",
)  # fmt: skip
NOTES = {"ome-makes-podgroups", "topology-key-ignored"}
ERRORS = {
    "invalid-field", "duplicate-service", "podgroup-conflict", "label-taken", "too-many-instances",
    "ome-owns-podgroups", "podgroup-crd-missing",
}  # fmt: skip
MAY_BE_ACCEPTED = {"ome-owns-podgroups", "podgroup-crd-missing"}
INSTALLS = {"chart": ("30m", "60s", "600s"), "kustomize": ("30m", None, None), "none": (None, None, None)}
DEFAULTS: Object = {
    "ome": "", "ome_install": "chart", "ome_values": None, "instance_ready_timeout": None, "gang_timeout_min": None,
    "gang_timeout_max": None, "scheduler_name": "", "gang_scheduler": ("ome-scheduler", "scheduler-plugins-scheduler"),
    "scheduler_has_topology_key": False, "namespace": "", "api_versions": (), "podgroups": "", "spares": 0,
    "instances": "min", "accept": (), "strict": False,
}  # fmt: skip


class Expected(NamedTuple):
    """`documents` is the whole stream; `services` what is set in each; `codes` (code, "Kind/namespace/name" or "").

    `refused` says which of the codes is an error, `resolved` how many services had a runtime that was found.
    """

    documents: list[Object]
    pod_groups: list[Object]
    services: dict[tuple[str, str], dict[Path, str]]
    codes: list[tuple[str, str]]
    refused: list[bool]
    errors: bool
    resolved: int


class Gang(NamedTuple):
    """A multi-pod component after the merge; pairs are (leader, worker); `blocks`: the service writes both itself;
    `whole`: all that it is merged from is known, so what is empty stays empty."""

    owner: Object
    base: str
    component: str
    size: int
    replicas: int
    most: int
    ready: str | None
    topology: str
    schedulers: tuple[str, str]
    priorities: tuple[str, str]
    strategy: str
    label: str
    blocks: bool
    whole: bool


def expect(stream: list[Object], context: list[Object], options: Object) -> Expected:
    model = Model(stream, context, {**DEFAULTS, **options})
    seen = set()
    for item in stream:
        if item["kind"] == "InferenceService":
            key = (model.namespace(item), item["metadata"]["name"])
            if key in seen:
                model.say("duplicate-service", item)
            seen.add(key)
            model.service(item)
        elif item["kind"] == "InferenceReplica":
            model.replica(item)
    return model.expected()


def dig(item: Any, *path: str) -> Any:
    for key in path:
        item = item.get(key) if isinstance(item, dict) else None
    return item


def first(layers: list[Object], *path: str) -> Any:
    """The value of the first layer that has one: zero and "" count, null does not."""
    return next((found for layer in layers if (found := dig(layer, *path)) is not None), None)


def word(layers: list[Object], *path: str) -> str:
    """The same for a string that is no pointer: "" does not count."""
    return next((found for layer in layers if (found := dig(layer, *path))), "")


def pod_group_name(base: str, component: str, index: int) -> str:
    name = f"{base}-{component}-{index}"
    if len(name) <= 63:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    return f"{'a' + digest[1:] if digest[0].isdigit() else digest}-{name[-54:]}"


def whole_seconds(nanoseconds: int) -> int:
    return nanoseconds // SECOND if nanoseconds >= 0 else -(-nanoseconds // SECOND)


def implied(annotations: Object) -> Object:
    """What an owner's annotations mean for its PodGroups."""
    found = {key: annotations[key] for key in REPEATED if key in annotations}
    number = re.compile(r"[+-]?\d+")
    if "helm.sh/hook" in annotations or "helm.sh/hook-weight" in annotations:
        weight = annotations.get("helm.sh/hook-weight", "")
        found["helm.sh/hook-weight"] = str(int(weight) - 1) if number.fullmatch(weight) else "-1"
    wave = annotations.get("argocd.argoproj.io/sync-wave", "")
    if number.fullmatch(wave):
        found["argocd.argoproj.io/sync-wave"] = str(int(wave) - 1)
    said = map(str.strip, annotations.get("argocd.argoproj.io/sync-options", "").split(","))
    kept = [option for option in said if option in ("Prune=false", "Delete=false")]
    return {**found, "argocd.argoproj.io/sync-options": ",".join(kept)} if kept else found


class Model:
    def __init__(self, stream: list[Object], context: list[Object], options: Object) -> None:
        self.stream, self.options = stream, options
        self.cluster = next((one["spec"] for one in context if one["kind"] == "Cluster"), None)
        self.ome = options["ome"] or (self.cluster or {}).get("omeVersion", "")
        self.apis = options["api_versions"] or (self.cluster or {}).get("apiVersions", ())
        self.emits = options["podgroups"] == "emit" or (not options["podgroups"] and not self.ome)
        # The stream beats the context for one kind, namespace and name.
        self.runtimes = {
            (one["kind"], self.namespace(one) if one["kind"] == NAMESPACE_KIND else "", one["metadata"]["name"]): one
            for one in context + stream
            if one["kind"] in (CLUSTER_KIND, NAMESPACE_KIND)
        }
        maps = [one for one in stream + context if dig(one, "metadata", "name") == "inferenceservice-config"]
        self.settings = self.cluster_settings(maps[0] if maps else None)
        self.findings: list[tuple[str, str]] = []
        self.refusals: list[bool] = []
        self.wanted: dict[tuple[str, str], tuple[Object, Object]] = {}
        self.sets: dict[int, dict[Path, str]] = {}
        self.resolved = 0

    def namespace(self, item: Object) -> str:
        return str(item["metadata"].get("namespace") or self.options["namespace"])

    def say(self, code: str, about: Object | None = None, *, once: bool = False, error: bool = False) -> None:
        metadata = about["metadata"] if about else {}
        ref = f"{about['kind']}/{metadata.get('namespace') or ''}/{metadata['name']}" if about else ""
        if not (once and (code, ref) in self.findings):
            self.findings.append((code, ref))
            self.refusals.append(error or code in ERRORS)

    # What is merged

    def chain(self, service: Object) -> tuple[list[Object], bool]:
        """The specs of the named runtime and what it inherits from, nearest first; and whether all are to be had."""
        name = dig(service, "spec", "runtime", "name")
        cluster, own = (CLUSTER_KIND, ""), (NAMESPACE_KIND, self.namespace(service))
        places = [own] if dig(service, "spec", "runtime", "kind") == NAMESPACE_KIND else [cluster, own]
        found: list[Object] = []
        names: list[str] = []
        while name:
            there = [(place, held) for place in places if (held := self.runtimes.get((*place, name)))]
            if not there:
                return found, False
            if name in names or len(names) == 5:
                self.say("invalid-field", service, once=True)
                return found, False
            place, runtime = there[0]
            names.append(name)
            found.append(runtime["spec"])
            if len(found) == 1:  # the runtime that is named says where all its parents are looked for
                places = [cluster] if place == cluster else [own, cluster]
            name = dig(runtime, "metadata", "annotations", INHERIT)
        return found, bool(found)

    def told(self, layers: list[Object], service: Object) -> str:
        """The mode that is written somewhere."""
        written = first(layers, "annotations", MODE)
        if written in ("RawDeployment", "OMENative", "MultiNode", "VirtualDeployment"):
            return str(written)
        written = dig(service, "spec", "deploymentMode")
        return str(written) if written in ("OMENative", "RawDeployment") else ""

    def service(self, item: Object) -> None:
        if dig(item, "metadata", "annotations", MODE) == "VirtualDeployment":
            return
        chain, whole = self.chain(item)
        self.resolved += whole
        for component in ("engine", "decoder"):
            own = dig(item, "spec", component)
            if own is None:
                continue
            layers = [own] + [config for spec in chain if (config := spec.get(component + "Config")) is not None]
            leader, worker = (first(layers, runner) is not None for runner in ("leader", "worker"))
            both = dig(own, "leader") is not None and dig(own, "worker") is not None
            told = self.told(layers, item)
            if (leader or worker) and not self.ome:
                self.say("ome-not-said", once=True)
            if told == "MultiNode" and leader and worker:
                self.say("multinode-not-ganged", item)
            if not whole:
                if told not in ("", "OMENative"):
                    continue
                if not (both and dig(own, "worker", "size") is not None):
                    if leader or worker or not self.surely_single(item, component):
                        self.say("gang-unknown", item, error=self.cluster is not None)
                    continue
                self.say("runtime-unresolved", item, once=True, error=self.cluster is not None)
            if (told or "OMENative") != "OMENative" or not (leader or worker):
                continue
            if leader != worker:
                self.say("unpaired-leader-worker", item)
                continue
            if (dig(own, "leader") is None) != (dig(own, "worker") is None):
                self.say("unpaired-leader-worker", item)
            if whole and dig(item, "spec", "runtime", "autoSync") is False:
                self.say("runtime-pinned", item, once=True)
            size, replicas = first(layers, "worker", "size"), first(layers, "minReplicas")
            top = word(chain, "schedulerName")
            sides = [(word(layers, side, "schedulerName") or word(layers, "schedulerName") or top,
                      word(layers, side, "priorityClassName") or word(layers, "priorityClassName"))
                     for side in ("leader", "worker")]  # fmt: skip
            self.gang(Gang(
                item, item["metadata"]["name"], component, 1 if size is None else size,
                1 if replicas is None else replicas, next((most for one in layers if (most := one.get("maxReplicas"))), 0),
                first(layers, "lifecycle", "instanceReadyTimeout"), first(layers, "topologyKey") or "",
                (sides[0][0], sides[1][0]), (sides[0][1], sides[1][1]),
                word(layers, "lifecycle", "updateStrategy", "type"), first(layers, "labels", LABEL) or "", both, whole,
            ))  # fmt: skip

    def surely_single(self, service: Object, component: str) -> bool:
        """No runtime is named, all there are are known, and none that could be chosen has more than one pod."""
        if self.cluster is None or dig(service, "spec", "runtime", "name"):
            return False
        for (kind, namespace, _), runtime in self.runtimes.items():
            config = dig(runtime, "spec", component + "Config") or {}
            reached = kind == CLUSTER_KIND or namespace == self.namespace(service)
            if reached and not runtime["spec"].get("disabled") and (
                config.get("leader") is not None or config.get("worker") is not None or dig(config, "annotations", MODE)
            ):  # fmt: skip
                return False
        return True

    def replica(self, item: Object) -> None:
        spec, name = item["spec"], item["metadata"]["name"]
        if spec.get("parentRef") is not None:
            return
        runners = {runner["name"]: runner for runner in spec.get("runners") or []}
        if not runners:
            self.say("gang-unknown", item, error=self.cluster is not None)
        if not {"leader", "worker"} <= set(runners):
            return
        if not self.ome:
            self.say("ome-not-said", once=True)
        pods = [dig(runners[side], "template", "spec") or {} for side in ("leader", "worker")]
        schedulers, priorities = (
            (pods[0].get(key) or "", pods[1].get(key) or "") for key in ("schedulerName", "priorityClassName")
        )
        ready, strategy = (
            word([spec], "lifecycle", *path) for path in (("instanceReadyTimeout",), ("updateStrategy", "type"))
        )
        self.gang(Gang(
            item, name, spec["component"], runners["worker"]["size"], spec.get("replicas") or 1, 0, ready or None,
            spec.get("topologyKey") or "", schedulers, priorities, strategy, "", False, True,
        ))  # fmt: skip

    # Timeouts

    def cluster_settings(self, config_map: Object | None) -> tuple[int, tuple[int, int] | None, list[str]]:
        """The cluster's ready timeout (0: none), its clamp, and the codes of what is said once a gang needs them."""
        options, said = self.options, []
        texts: tuple[Any, ...] = INSTALLS[options["ome_install"]]
        if config_map is not None:
            try:
                held = json.loads(dig(config_map, "data", "lifecycle") or "{}")
            except ValueError:
                held, said = {}, ["cluster-setting-invalid"]
            texts = held.get("instanceReadyTimeout"), *(dig(held, "gangScheduleTimeout", key) for key in ("min", "max"))
            if any(isinstance(text, int) for text in texts):
                texts, said = (None, None, None), ["cluster-setting-invalid"]
        values = dig(options["ome_values"], "ome", "controller", "lifecycle") or {}
        clamp = values.get("gangScheduleTimeout", {})
        clamp = {"min": None, "max": None} if clamp is None else clamp
        texts = (values.get("instanceReadyTimeout", texts[0]), clamp.get("min", texts[1]), clamp.get("max", texts[2]))
        given = (options["instance_ready_timeout"], options["gang_timeout_min"], options["gang_timeout_max"])
        # None where unset; 0 where it is no duration: invalid, as 0s is.
        ready, low, high = (
            option if option is not None else DURATIONS.get(text, 0) if text else None
            for option, text in zip(given, texts, strict=True)
        )
        if ready is not None and ready <= 0:
            said.append("cluster-setting-invalid")
        valid = low is not None and high is not None and 0 < low <= high
        if not valid and (low, high) != (None, None):
            said.append("cluster-setting-invalid" if given[1:] == (None, None) else "invalid-field")
        return max(ready or 0, 0), (low, high) if valid and low and high else None, said

    def timeout(self, gang: Gang) -> int | None:
        ready, clamp, said = self.settings
        while said:
            self.say(said.pop())
        own = 0 if gang.ready is None else DURATIONS[gang.ready]
        seconds = whole_seconds(own if own > 0 else ready)
        if clamp is None:
            return seconds if seconds > 0 else None
        low, high = map(whole_seconds, clamp)
        return low if seconds <= 0 or seconds < low else min(seconds, high)

    # What is made

    def gang(self, gang: Gang) -> None:
        options, owner = self.options, gang.owner
        bad = not 1 <= gang.size <= 2**31 - 2 or not 0 <= gang.replicas <= 2**31 - 1
        name = r"[a-z]([-a-z0-9]*[a-z0-9])?"
        if bad or len(gang.base) > 63 or not re.fullmatch(name, gang.base):
            self.say("invalid-field", owner)
            return
        replicas = max(1, gang.replicas)
        count = max(replicas, gang.most) if options["instances"] == "max" else replicas
        total = count + options["spares"]
        if total > 1000:
            self.say("too-many-instances", owner)
            return
        if len(f"{gang.base}-{gang.component}-{total - 1}-leader-0") > 63:
            self.say("name-too-long", owner)
        self.schedulers(gang)
        if gang.ready is not None and whole_seconds(DURATIONS.get(gang.ready, 2**63)) > 2**31 - 1:
            self.say("invalid-field", owner)
            return
        seconds = self.timeout(gang)
        if not self.emits:
            self.say("ome-makes-podgroups", owner)
            return
        ours = {pod_group_name(gang.base, gang.component, index) for index in range(1000)} if gang.label else {""}
        if gang.label not in ours:
            self.say("label-taken", owner)
            return
        for index in range(total):
            group = self.pod_group(gang, index, seconds)
            key = (self.namespace(owner), group["metadata"]["name"])
            if key in self.wanted:
                self.say("podgroup-conflict", owner)
            self.wanted[key] = (group, owner)
        if owner["kind"] == "InferenceService" and count == 1:
            self.put(owner, ("spec", gang.component, "labels", LABEL), pod_group_name(gang.base, gang.component, 0))
        elif owner["kind"] == "InferenceService":
            self.say("several-instances", owner)
        if gang.most > replicas and options["instances"] == "min":
            self.say("autoscaled-range", owner)
        if not options["spares"] and gang.strategy in ("", "SurgeThenDrain"):
            self.say("surge-without-spare", owner)
        if seconds is not None and seconds > 900:
            self.say("timeout-over-cap", owner)

    def schedulers(self, gang: Gang) -> None:
        """Fills the names that are empty, and says what is wrong with the pair."""
        options, owner, names = self.options, gang.owner, list(gang.schedulers)
        if options["scheduler_name"] and owner["kind"] == "InferenceService":
            fill = names[0] or names[1] or options["scheduler_name"]
            for at, side in enumerate(("leader", "worker")):
                if not names[at]:
                    names[at] = fill
                    block = (side,) if gang.blocks else ()
                    self.put(owner, ("spec", gang.component, *block, "schedulerName"), fill)
        if gang.priorities[0] != gang.priorities[1]:
            self.say("mixed-priorities", owner)
        if not gang.whole and not any(names):
            return  # whom the runtime names is not known
        leader, worker = (name or "default-scheduler" for name in names)
        check = names[0] or worker
        if check not in options["gang_scheduler"]:
            self.say("no-gang-scheduler", owner)
        if leader != worker:
            self.say("mixed-schedulers", owner)
        if check == "ome-scheduler" and not gang.topology and not options["scheduler_has_topology_key"]:
            self.say("topology-key-missing", owner)
        if check != "ome-scheduler" and gang.topology:
            self.say("topology-key-ignored", owner)

    def put(self, owner: Object, path: Path, value: str) -> None:
        self.sets.setdefault(id(owner), {})[path] = value

    def pod_group(self, gang: Gang, index: int, seconds: int | None) -> Object:
        owner = gang.owner["metadata"]
        place = {"namespace": owner["namespace"]} if owner.get("namespace") else {}
        topology = {"ome.io/topology-key": gang.topology} if gang.topology else {}
        labels = {
            "component": gang.component, "ome.io/inferenceservice": gang.base, "ome.io/instance-index": str(index),
            "ome.io/managed-by": "OMENative",
        }  # fmt: skip
        notes = {**topology, OURS: f"{gang.owner['kind']}/{gang.base}", **implied(owner.get("annotations") or {})}
        timeout = {} if seconds is None else {"scheduleTimeoutSeconds": seconds}
        name = pod_group_name(gang.base, gang.component, index)
        metadata = {"name": name, **place, "labels": labels, "annotations": notes}
        spec = {"minMember": 1 + gang.size, **timeout}
        return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": metadata, "spec": spec}

    # The whole

    def expected(self) -> Expected:
        options = self.options
        standing = self.standing()
        if self.wanted:
            served = {"scheduling.x-k8s.io/v1alpha1", "scheduling.x-k8s.io/v1alpha1/PodGroup"} & set(self.apis)
            if self.apis and not served:
                self.say("podgroup-crd-missing")
            if "scheduling.x-k8s.io/v1alpha1/PodGroup" in served and "ome.io/v1beta1/InferenceReplica" in self.apis:
                self.say("ome-owns-podgroups")
        seen: dict[str, str] = {}
        told = set()
        for (namespace, name), (group, owner) in self.wanted.items():
            gang = (id(owner), group["metadata"]["labels"]["component"])
            # Where an object without a namespace goes is not known.
            if namespace and seen.setdefault(name, namespace) != namespace and gang not in told:
                told.add(gang)
                self.say("same-name-two-namespaces", owner)
        documents = []
        for item in self.stream:
            if id(item) in standing:
                documents.append(standing[id(item)])
                continue
            documents += [group for key, (group, owner) in self.wanted.items() if owner is item and key not in standing]
            documents.append(changed(item, self.sets.get(id(item), {})))
        kept = sorted(
            (*found, refused or (options["strict"] and found[0] not in NOTES))
            for found, refused in zip(self.findings, self.refusals, strict=True)
            if found[0] not in options["accept"] or found[0] in ERRORS - MAY_BE_ACCEPTED
        )
        return Expected(
            documents,
            [group for group, _ in self.wanted.values()],
            {(dig(item, "metadata", "namespace") or "", item["metadata"]["name"]): self.sets[id(item)]
             for item in self.stream if id(item) in self.sets},
            [(code, ref) for code, ref, _ in kept],
            [refused for _, _, refused in kept],
            any(refused for _, _, refused in kept),
            self.resolved,
        )  # fmt: skip

    def standing(self) -> dict[Any, Object]:
        """What becomes of the PodGroups that the stream has under a wanted name, by their key and by themselves."""
        found: dict[Any, Object] = {}
        # What a refused service would need is not known, so nothing is stale.
        refused = any(self.refusals)
        for item in self.stream:
            if item["kind"] != "PodGroup":
                continue
            key = (self.namespace(item), item["metadata"]["name"])
            made_for = dig(item, "metadata", "annotations", OURS)
            if key not in self.wanted:
                if made_for is not None and not refused:
                    self.say("stale-podgroup", item)
                continue
            wanted = self.wanted[key][0]
            ours = made_for == wanted["metadata"]["annotations"][OURS]
            if not ours and bare(item) != bare(wanted):
                self.say("podgroup-conflict", item)
            found[key] = found[id(item)] = wanted if ours else item
        return found


def bare(group: Object) -> Object:
    """A PodGroup without our annotation."""
    group = copy.deepcopy(group)
    notes = group["metadata"].pop("annotations", None) or {}
    notes.pop(OURS, None)
    return {**group, "metadata": {**group["metadata"], **({"annotations": notes} if notes else {})}}


def changed(item: Object, sets: dict[Path, str]) -> Object:
    item = copy.deepcopy(item)
    for (*parents, last), value in sets.items():
        here = item
        for key in parents:
            here[key] = here.get(key) or {}
            here = here[key]
        here[last] = value
    return item
