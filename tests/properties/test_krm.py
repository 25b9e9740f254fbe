"""Random ResourceLists through the function: no item is lost or moved, what is not ours keeps its bytes, twice is once."""

from __future__ import annotations

import io
import random
from typing import NamedTuple

from postrender.findings import DONE, REFUSED
from postrender.hosts import krm
from tests.properties import reading
from tests.properties.tally import FUZZ, SEED, Tally

LISTS = FUZZ or 250
INTERNAL = "internal.config.kubernetes.io"
NAMES = ("llm", "prod-llm", "llm-b", "qwen", "a")
OTHERS = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: '1e3' # kept\n  text: |\n    one\n\n     two\n",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: keep\ndata:\n  text: |+\n    end\n\n\n",
    "{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: =, b: <<}}\n",
    "# a comment\nkind: Deployment\napiVersion: apps/v1\nmetadata:\n  name: x\n",
    "apiVersion: ome.io/v1beta1\nkind: ClusterServingRuntime\nmetadata:\n  name: rt\nspec:\n  engineConfig:\n    leader: {}\n"
    "    worker: {size: 2}\n",
)
CONFIGS = (
    "",
    "functionConfig: {}\n",
    "functionConfig:\n  apiVersion: postrender/v1alpha1\n  kind: Gangs\n  metadata: {name: a}\n  spec: {ome: 1.2}\n",
    "functionConfig:\n  apiVersion: postrender/v1alpha1\n  kind: Gangs\n  metadata: {name: a}\n  spec:\n    strict: true\n",
    "functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data: {spares: '1', accept: ome-not-said}\n",
    "functionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n  data: {spare: '1'}\n",
    "results:\n- message: of another\n  severity: info\nfunctionConfig:\n  apiVersion: v1\n  kind: ConfigMap\n",
)


class Given(NamedTuple):
    data: bytes
    ours: list[bool]  # for each item whether it may be changed


def test_no_item_is_lost_and_twice_is_once() -> None:
    tally = Tally(f"ResourceLists, seed {SEED}")
    for number in range(LISTS):
        given = resource_list(random.Random(f"krm-{SEED}-{number}"))
        code, output = called(given.data)
        assert code in (DONE, REFUSED)
        before, after = items(given.data), items(output)
        assert [name(item) for item, ours in zip(before, given.ours, strict=True) if not ours or not group(item)] == [
            name(item) for item, ours in zip(after, given.ours, strict=False) if not ours or not group(item)
        ], number
        assert all(group(item) for item in after[len(before) :]), number
        if code == REFUSED:
            assert after == before, number
            assert lines(given.data) == lines(output)[: len(lines(given.data))], number
        kept = [text for text, ours in zip(texts(given.data), given.ours, strict=True) if not ours]
        rest = output
        for text in kept:
            _, found, rest = rest.partition(text)
            assert found, (number, text)
        assert called(output) == (code, output), number
        tally.add("refused" if code else "changed" if output != given.data else "as it came")
    assert tally.under("changed") >= LISTS // 4
    assert tally.under("refused") >= LISTS // 20


def called(data: bytes) -> tuple[int, bytes]:
    target = io.BytesIO()
    code = krm.run("<stdin>", data, target, lambda _: None, {})
    return code, target.getvalue()


def lines(data: bytes) -> list[bytes]:
    """The lines of a list but for those of results, which stand anywhere at the root."""
    kept, within = [], False
    for line in data.splitlines(keepends=True):
        within = line.startswith(b"results:") or (within and line.startswith((b" ", b"-")))
        if not within:
            kept.append(line)
    return kept


def items(data: bytes) -> list[dict[object, object]]:
    (root,) = reading.documents(data.decode())
    found: list[dict[object, object]] = reading.meaning(root, reading.OWN_WINS)[reading.STR, "items"]
    return found


def at(item: object, *path: str) -> object:
    for key in path:
        item = item.get((reading.STR, key)) if isinstance(item, dict) else None
    return item


def name(item: object) -> tuple[object, ...]:
    return (at(item, "kind"), at(item, "metadata", "namespace"), at(item, "metadata", "name"))


def group(item: object) -> bool:
    return at(item, "kind") == (reading.STR, "PodGroup")


def texts(data: bytes) -> list[bytes]:
    """The bytes of each item from its dash on: all of them stand in a block list at column 0."""
    body = data.partition(b"items:\n")[2]
    for key in (b"\nfunctionConfig:", b"\nresults:"):
        body = body.partition(key)[0]
    return [b"- " + piece for piece in (b"\n" + body).split(b"\n- ")[1:]]


def resource_list(rng: random.Random) -> Given:
    pieces, ours = [], []
    for _ in range(rng.randint(1, 7)):
        make = rng.choice((other, other, service, service, pod_group))
        pieces.append(item_of(make(rng)))
        ours.append(make is not other)
    head = f"apiVersion: config.kubernetes.io/{rng.choice(('v1', 'v1beta1'))}\nkind: ResourceList\nitems:\n"
    return Given((head + "".join(pieces) + rng.choice(CONFIGS)).encode(), ours)


def item_of(document: str) -> str:
    lines = document.splitlines(keepends=True)
    return "- " + lines[0] + "".join(line if line == "\n" else "  " + line for line in lines[1:])


def other(rng: random.Random) -> str:
    return rng.choice(OTHERS).removeprefix("# a comment\n")


def annotations(rng: random.Random, earlier: str) -> str:
    said = []
    if rng.random() < 0.4:
        said.append(f"{INTERNAL}/previousNames: {earlier}")
    if rng.random() < 0.3:
        said.append("config.kubernetes.io/local-config: 'true'")
    if rng.random() < 0.4:
        said.append("kustomize.config.k8s.io/id: |\n      kind: X\n      name: y")
    if rng.random() < 0.4:
        said.append(f"{INTERNAL}/path: a.yaml")
    return "  annotations:\n" + "".join(f"    {one}\n" for one in said) if said else ""


def namespace(rng: random.Random) -> str:
    return rng.choice(("", "", "", "  namespace: ml\n"))


def service(rng: random.Random) -> str:
    label = f"    labels: {{scheduling.x-k8s.io/pod-group: {rng.choice(NAMES)}-engine-0}}\n"
    size = rng.choice(("1", "1", "2", "2", "one"))
    return (
        f"apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata:\n  name: {rng.choice(NAMES)}\n{namespace(rng)}"
        f"{annotations(rng, rng.choice(NAMES))}spec:\n  engine:\n    leader: {{}}\n    worker:\n      size: {size}\n"
        f"{label if rng.random() < 0.3 else ''}"
    )


def pod_group(rng: random.Random) -> str:
    held = annotations(rng, f"{rng.choice(NAMES)}-engine-0") or "  annotations:\n"
    maker = rng.choice((*NAMES, ""))
    held += f"    postrender/for: InferenceService/{maker}\n" if maker else "    owner: somebody\n"
    labels = f"  labels: {{component: engine, ome.io/instance-index: '{rng.choice('01')}'}}\n"
    return (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\nmetadata:\n"
        f"  name: {rng.choice(NAMES)}-engine-0{rng.choice(('', '', '-b'))}\n{namespace(rng)}{labels}{held}"
        "spec: {minMember: 2}\n"
    )
