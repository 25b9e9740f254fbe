"""Streams that readers see differently: what kubectl, Helm or kustomize would deploy must never pass us by unseen.

Each of these holds an InferenceService for some reader. It is refused, or rendered so that all see it as before.
"""

import json

import pytest

from postrender import render

HEAD = "apiVersion: ome.io/v1beta1\n"
BODY = "metadata: {name: a}\nspec: {engine: {leader: {}, worker: {size: 1}}}\n"
SERVICE = f"{HEAD}kind: InferenceService\n{BODY}"
MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
JSON = json.dumps(
    {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "a"},
        "spec": {"engine": {"leader": {}, "worker": {"size": 1}}},
    }
)

REFUSED = {
    "JSON objects in a row": ('{"apiVersion": "v1", "kind": "ConfigMap"}\n' + JSON + "\n", "unreadable"),
    "JSON objects in a row, the service first": (JSON + '\n{"apiVersion": "v1", "kind": "ConfigMap"}\n', "unreadable"),
    "a forgotten marker": (MAP + SERVICE, "edit-refused"),
    "a forgotten marker, the service first": (SERVICE + MAP, "edit-refused"),
    "a second kind": (f"{HEAD}kind: ConfigMap\n{BODY}kind: InferenceService\n", "edit-refused"),
    "a second kind that is not ours": (SERVICE + "kind: ConfigMap\n", "edit-refused"),
    "a second apiVersion": (f"apiVersion: v1\nkind: InferenceService\n{HEAD}{BODY}", "edit-refused"),
    "a second apiVersion that is not ours": (SERVICE + "apiVersion: v1\n", "edit-refused"),
    "an own kind before a merge": (f"{HEAD}kind: ConfigMap\n<<: {{kind: InferenceService}}\n{BODY}", "edit-refused"),
    "an apiVersion before a merge": (
        f"apiVersion: v1\nkind: InferenceService\n<<: {{apiVersion: ome.io/v1beta1}}\n{BODY}",
        "edit-refused",
    ),
    "a marker with a comment that touches it": (f"{MAP}---# second\n{SERVICE}", "unreadable"),
    "a marker with a no-break space": (f"{MAP}---\u00a0\n{SERVICE}", "unreadable"),
    "no line break before a marker": (f"{MAP}x: y---\n{SERVICE}", "edit-refused"),
    "a directive inside a document": (f"apiVersion: v1\nkind: ConfigMap\nx:\n%YAML 1.1\n  y: z\n---\n{SERVICE}", "unreadable"),
    "a document after dots without a marker": (f"{MAP}...\n{SERVICE}", "edit-refused"),
    "a byte-order mark in a line": (SERVICE.replace("spec", "\ufeffspec"), "unreadable"),
    "a byte-order mark before an inner line": (
        f"{HEAD}kind: InferenceService\nmetadata: {{name: a}}\nspec:\n  engine:\n    leader: {{}}\n    worker:\n\ufeff      size: 1\n",
        "unreadable",
    ),
    "surrogate escapes, which only JSON readers take": (JSON.replace('"a"', '"a", "annotations": {"x": "\\ud83d\\ude00"}'), "unreadable"),
    "documents parted by CR": (f"{MAP}---\n{SERVICE}".replace("\n", "\r"), "edit-refused"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name):
    text, code = REFUSED[name]
    rendered = render(text.encode())
    assert [finding.code for finding in rendered.findings if finding.severity == "error"] == [code]
    assert rendered.data == b""


def test_a_forgotten_marker_is_named():
    for text in (MAP + SERVICE, SERVICE + MAP):
        finding = render(text.encode()).findings[0]
        assert finding.remedy == "write --- between two objects, or remove one of the two"


@pytest.mark.parametrize("kind", ["Lst", "ConfigMap"])
def test_whatever_has_items_is_a_list_to_kubectl(kind):
    rendered = render(f"apiVersion: v1\nkind: {kind}\nitems:\n- {JSON}\n".encode())
    assert not rendered.refused
    assert rendered.data.startswith(b"apiVersion: scheduling.x-k8s.io/v1alpha1\n")
    assert (
        b'"scheduling.x-k8s.io/pod-group": "a-engine-0"' in rendered.data or b"pod-group: a-engine-0" in rendered.data
    )


# The whole stream in one line-break style: between documents kubectl knows LF and CRLF only.
BREAKS = {
    "LF": (SERVICE, "\n"),
    "CRLF": (SERVICE.replace("\n", "\r\n"), "\r\n"),
    "CR": (SERVICE.replace("\n", "\r"), "\n"),
    "NEL": (SERVICE.replace("\n", "\x85"), "\n"),
    "LS after the first comment": ("# notes\u2028\n" + SERVICE, "\n"),
    "NEL after the first comment": ("# notes\x85\n" + SERVICE, "\n"),
    "CRLF converted twice": (SERVICE.replace("\n", "\r\r\n"), "\r\n"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_new_document_is_parted_as_kubectl_parts(name):
    text, newline = BREAKS[name]
    rendered = render(text.encode())
    assert not rendered.refused
    new, marker, rest = rendered.data.decode().partition(f"\n---{newline}")
    assert new.replace("\r", "").startswith("apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n")
    assert marker
    assert rest.startswith(text[:20])
    assert set(new) & set("\r\x85\u2028") == set(newline) - {"\n"}
