"""Random streams of manifests with random changes to them: what the edit tests and the Go oracles run on.

`documents(seed, n)` yields the same cases for the same seed. A case is a stream in bytes, the number of the YAML
document in it that is to change, and what must then stand where.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.properties import printer

if TYPE_CHECKING:
    from collections.abc import Iterator

Path = tuple[str, ...]
Sets = tuple[tuple[Path, "str | int | bool"], ...]

LABELS = (
    "app", "team", "n", "y", "yes", "1", "volcano.sh/queue-name", "scheduling.x-k8s.io/pod-group", "a b", "é",
    "k" * 63, "null", "true", "1e3", "#x", "<<.x",
)  # fmt: skip
TRICKY = (
    "y", "n", "Y", "1e3", "0o10", "08", "010", "123e4", "1_000", "12:30", "2001-12-14", "null", "~", "", " x", "x ",
    "a: b", "# c", "a #b", "é", "日本 🙂", "\x07\x1b", "\x00", "a\nb", "a\tb", "\x85", "\u2028", "\u2029", "\ufeff",
    "\x7f", "x" * 300, "yes", "true", ".inf", "=", "<<", "-", "- a", "{a}", "[a", "'", '"', "\\", "a'b\"c\\d", "%a",
    "@a", "`", "*a", "&a", "!a", "|", ">", "0x1F", "1.5", "+1", "---", "...", "\ufffe", "svc-1", "a.b/c_d", "volcano",
    "team-a", "v1.2.3", "/abs", "a/b",
)  # fmt: skip
TEXTS = (
    "first line\nsecond line\n", "one\n\nthree", "  indented\nnot\n", "\nleading\n", "trailing\n\n\n",
    "key: value\n- item\n", "#!/bin/sh\nset -e\necho \"$1\"\n", "{\"a\": 1}\n", "--- \nno: marker\n",
    "# all\n# comments\n", "x\n\ttab\n",
    "a long text with many words that may be folded over several lines of the file as it is written",
    "several words here\nand here as well\n\nand a last one\n",
)  # fmt: skip
WORDS = (
    "labels", "args", "env", "image", "name", "value", "resources", "limits", "cpu", "minReplicas", "config", "a",
    "b",
)  # fmt: skip


class Case(NamedTuple):
    name: str
    data: bytes
    number: int
    item: int
    sets: Sets
    features: frozenset[str]
    model: object


def documents(seed: int | str, n: int, *, alone: bool = False) -> Iterator[Case]:
    """The first n cases of this seed; `alone` gives streams of one document (sigs reads no further)."""
    for number in range(n):
        yield case(f"{seed}-{number}", alone=alone)


def case(name: str, *, alone: bool = False) -> Case:
    rng = random.Random(name)
    model = service(rng)
    item = -1
    if rng.random() < 0.08:
        model, item = listed(model, rng)
    before, after = (0, 0) if alone else rng.choice(((0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 1)))
    others = [printer.document(other(rng), rng, first=number == 0) for number in range(before)]
    wanted = printer.document(model, rng, first=not before)
    others.append(wanted)
    others += [printer.document(other(rng), rng, first=False) for _ in range(after)]
    text = joined([one.text for one in others])
    sets = changes(model if item < 0 else model["items"][item], rng)
    return Case(name, text.encode(), before, item, sets, wanted.features, wanted.model)


def joined(texts: list[str]) -> str:
    """One after the other, each on a new line that every cutter sees."""
    text = texts[0]
    for following in texts[1:]:
        text += ("" if text.endswith("\n") else "\r\n" if "\r\n" in text else "\n") + following
    return text


# The model


def service(rng: random.Random) -> dict[str, Any]:
    labels = label_map(rng)
    shared = rng.random() < 0.3
    metadata: dict[str, Any] = {"name": rng.choice(("llama", "svc-1", "a.b", "y"))}
    add(metadata, "namespace", rng.choice(("default", "team-a", "1")), rng, 0.5)
    add(metadata, "labels", rng.choice((None, None, {})) if rng.random() < 0.2 else labels, rng, 0.7)
    add(metadata, "annotations", {"note": rng.choice(TEXTS), **small(rng)}, rng, 0.4)
    spec: dict[str, Any] = {}
    add(spec, "model", {"name": "llama-70b", "kind": "ClusterBaseModel"}, rng, 0.6)
    add(spec, "engine", engine(rng, labels if shared else None), rng, 0.8)
    add(spec, "text", rng.choice(TEXTS), rng, 0.4)
    add(spec, "list", [value(rng, 1) for _ in range(rng.randint(0, 3))], rng, 0.3)
    add(spec, rng.choice(WORDS), value(rng, 3), rng, 0.4)
    add(spec, "selector", {"matchLabels": labels if shared else label_map(rng)}, rng, 0.3)
    found = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "metadata": metadata, "spec": spec}
    found = shuffled(found, rng) if rng.random() < 0.4 else found
    if rng.random() < 0.25:
        whole = rng.choice((labels, labels, spec.get("engine") or {}))
        base = part(whole, rng) if rng.random() < 0.75 else rng.choice(TEXTS)
        found = {"x-base": base, **found}
    if rng.random() < 0.15 and "labels" in metadata:
        found["metadata"] = {**metadata, "labels": {**labels, "last": rng.choice(TEXTS)}}
        found["metadata"] = dict(sorted(found["metadata"].items(), key=lambda entry: entry[0] == "labels"))
        found = dict(sorted(found.items(), key=lambda entry: entry[0] == "metadata"))
    if rng.random() < 0.05:
        del found[rng.choice(("metadata", "spec"))]
    return found


def engine(rng: random.Random, labels: dict[str, Any] | None) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    add(found, "labels", labels or rng.choice((None, {}, label_map(rng))), rng, 0.5)
    leader: dict[str, Any] = {}
    add(leader, "schedulerName", rng.choice(("default-scheduler", "volcano", "", None)), rng, 0.4)
    runner = {"image": "repo/image:v1", "args": ["--a", "1", "b c"], "script": rng.choice(TEXTS)}
    add(leader, "runner", runner, rng, 0.5)
    add(found, "leader", rng.choice((None, {}, leader, leader, leader, leader)), rng, 0.7)
    add(found, "minReplicas", rng.choice((1, 0, 16)), rng, 0.5)
    add(found, "worker", {"size": 3, "labels": label_map(rng)}, rng, 0.4)
    return found or rng.choice((None, {}))


def label_map(rng: random.Random) -> dict[str, Any]:
    keys = rng.sample(LABELS, rng.randint(1, 4))
    return {key: rng.choice(("llama", "x", "team-a", rng.choice(TRICKY), rng.choice(TEXTS))) for key in keys}


def value(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth and kind < 0.3:
        return {rng.choice(WORDS): value(rng, depth - 1) for _ in range(rng.randint(0, 3))}
    if depth and kind < 0.5:
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 3))]
    if kind > 0.97 and depth:
        return deep(rng)
    return rng.choice((None, True, False, 0, 7, -1, "plain", "two words", rng.choice(TRICKY), rng.choice(TEXTS)))


def deep(rng: random.Random) -> Any:
    found: Any = {"a": rng.choice(TEXTS)}
    for _ in range(rng.randint(3, 12)):
        found = rng.choice(([found], {"a": found}, {"a": 1, "b": found}, [1, found]))
    return found


def part(whole: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Some of the entries, rarely with another value: what `<<` could bring."""
    kept = rng.sample(list(whole.items()), rng.randint(0, len(whole)))
    return {key: "other" if rng.random() < 0.1 else held for key, held in kept}


def small(rng: random.Random) -> dict[str, Any]:
    return {rng.choice(WORDS): rng.choice(TRICKY) for _ in range(rng.randint(0, 2))}


def other(rng: random.Random) -> Any:
    """A document that is none of ours."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"text": rng.choice(TEXTS), **small(rng)}}
    return rng.choice((body, body, None, {"a": value(rng, 3)}, [1, "x"]))


def listed(model: dict[str, Any], rng: random.Random) -> tuple[dict[str, Any], int]:
    """The object among the items of a list, and its number there."""
    items = [model]
    if rng.random() < 0.5:
        items.insert(rng.randint(0, 1), {"apiVersion": "v1", "kind": "ConfigMap", "data": small(rng)})
    root = {"apiVersion": "v1", "kind": "List", "items": items}
    if rng.random() < 0.3:
        root = {"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "items": items}
    return (shuffled(root, rng) if rng.random() < 0.3 else root), items.index(model)


def add(into: dict[str, Any], key: str, held: Any, rng: random.Random, share: float) -> None:
    if rng.random() < share:
        into[key] = held


def shuffled(found: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    return dict(rng.sample(list(found.items()), len(found)))


# The changes


def changes(model: dict[str, Any], rng: random.Random) -> Sets:
    """One to three changes at paths that differ; now and then a value that stands there already."""
    found: dict[Path, str | int | bool] = {}
    for _ in range(rng.choice((1, 1, 2, 2, 3))):
        path = rng.choice((
            ("metadata", "labels", label(model, ("metadata", "labels"), rng)),
            ("metadata", "labels", label(model, ("metadata", "labels"), rng)),
            ("spec", "engine", "labels", label(model, ("spec", "engine", "labels"), rng)),
            ("spec", "engine", "leader", "schedulerName"),
            ("spec", "engine", rng.choice(("minReplicas", "hostNetwork"))),
        ))  # fmt: skip
        held = at(model, path)
        if isinstance(held, (str, int, bool)) and rng.random() < 0.3:
            found[path] = held
        elif path[-1] == "hostNetwork":
            found[path] = rng.random() < 0.5
        elif path[-1] == "minReplicas":
            found[path] = rng.choice((0, 1, 16, -3, 2**53 + 1))
        else:
            found[path] = rng.choice((rng.choice(TRICKY), "volcano"))
    return tuple(found.items())


def label(model: dict[str, Any], path: Path, rng: random.Random) -> str:
    """A label to set, often one that is there."""
    held = at(model, path)
    return rng.choice(tuple(held) if isinstance(held, dict) and held and rng.random() < 0.3 else LABELS)


def at(model: Any, path: Path) -> Any:
    for key in path:
        model = model.get(key) if isinstance(model, dict) else None
    return model
