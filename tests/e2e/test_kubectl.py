"""What comes out, read by the real kubectl: its own cut of the stream and its own YAML reader."""

from __future__ import annotations

import json
import pathlib
import subprocess

import pytest

from postrender import render
from tests.unit.test_disputes import BREAKS

ROOT = pathlib.Path(__file__).parents[2]
KUBECTL = ROOT / ".programs/bin/kubectl"
INPUT = ROOT / "examples/pipe/rendered.yaml"


def local(data: bytes) -> list[dict]:
    """Return the objects of a stream as kubectl reads them, without a server."""
    words = [KUBECTL, "label", "--local", "--filename=-", "--output=json", "--overwrite", "read-by=kubectl"]
    done = subprocess.run(words, input=data, capture_output=True, check=True)
    decoder = json.JSONDecoder()
    text = done.stdout.decode().strip()
    objects = []
    while text:
        found, end = decoder.raw_decode(text)
        objects.append(found)
        text = text[end:].strip()
    for one in objects:
        del one["metadata"]["labels"]["read-by"]
    return objects


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    assert KUBECTL.exists(), "run 'make e2e': it brings kubectl"


FORMS = {
    "as it is": INPUT.read_bytes(),
    "CRLF": INPUT.read_bytes().replace(b"\n", b"\r\n"),
    "BOM": b"\xef\xbb\xbf" + INPUT.read_bytes(),
    "no last line break": INPUT.read_bytes().rstrip(b"\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_kubectl_reads_the_input_plus_the_gang(form: str) -> None:
    before, after = local(FORMS[form]), local(render(FORMS[form]).data)
    namespace, service = before
    service["spec"]["engine"]["labels"] = {"scheduling.x-k8s.io/pod-group": "qwen3-multi-node-engine-0"}
    assert after == [
        namespace,
        {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {
                "name": "qwen3-multi-node-engine-0",
                "namespace": "qwen3-multi-node",
                "labels": {
                    "component": "engine",
                    "ome.io/inferenceservice": "qwen3-multi-node",
                    "ome.io/instance-index": "0",
                    "ome.io/managed-by": "OMENative",
                },
                "annotations": {"postrender/for": "InferenceService/qwen3-multi-node"},
            },
            "spec": {"minMember": 2, "scheduleTimeoutSeconds": 600},
        },
        service,
    ]


@pytest.mark.parametrize("name", BREAKS)
def test_kubectl_sees_the_service_whatever_breaks_its_lines(name: str) -> None:
    data = BREAKS[name][0].encode()
    assert [one["kind"] for one in local(data)] == ["InferenceService"]
    assert [one["kind"] for one in local(render(data).data)] == ["PodGroup", "InferenceService"]


def test_kustomize_reads_it_too(tmp_path: pathlib.Path) -> None:
    """kustomize cuts at `\\n---.*\\n` and re-orders nothing; the label must be a string to it, the numbers numbers."""
    (tmp_path / "all.yaml").write_bytes(render(INPUT.read_bytes()).data)
    (tmp_path / "kustomization.yaml").write_text("resources: [all.yaml]\n")
    done = subprocess.run([KUBECTL, "kustomize", tmp_path], capture_output=True, check=True, timeout=60)
    kinds = [one["kind"] for one in local(done.stdout)]
    assert sorted(kinds) == ["InferenceService", "Namespace", "PodGroup"]
    assert b'ome.io/instance-index: "0"' in done.stdout
    assert b"minMember: 2\n" in done.stdout


@pytest.mark.parametrize("kind", ["List", "ResourceList"])
def test_a_list(kind: str) -> None:
    items = b"".join(
        b"- " + text.replace(b"\n", b"\n  ").rstrip() + b"\n" for text in INPUT.read_bytes().split(b"---\n")[1:]
    )
    data = b"apiVersion: v1\nkind: List\nitems:\n" + items
    if kind == "ResourceList":
        data = data.replace(
            b"apiVersion: v1\nkind: List", b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList", 1
        )
    out = render(data).data.replace(b"config.kubernetes.io/v1\nkind: ResourceList", b"v1\nkind: List", 1)
    kinds = [one["kind"] for one in local(out)]
    expected = (
        ["Namespace", "PodGroup", "InferenceService"]
        if kind == "List"
        else ["Namespace", "InferenceService", "PodGroup"]
    )
    assert kinds == expected
