"""The benchmark's streams are what their descriptions say: a budget held on another stream says nothing."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path

import pytest
import yaml

_PLACE = Path(__file__).resolve().parents[1] / "bench" / "streams.py"
_SPEC = importlib.util.spec_from_file_location("streams", _PLACE)
streams = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(streams)


def parsed(parts):
    return list(yaml.load_all("".join(parts), yaml.CSafeLoader))


def kinds(documents):
    return Counter(document["kind"] for document in documents)


@pytest.mark.parametrize("name", sorted(streams.MAKERS))
def test_the_same_numbers_give_the_same_bytes(name):
    first, again, other = ("".join(streams.MAKERS[name](20, seed)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_mix_holds_the_kinds_in_their_shares():
    assert kinds(parsed(streams.mix(30))) == {
        "Deployment": 10,
        "ConfigMap": 6,
        "ClusterRole": 5,
        "Service": 5,
        "InferenceService": 4,
    }
    counts = streams.kinds_of(5_000, 467)
    assert sum(counts.values()) == 5_000
    assert counts["CustomResourceDefinition"] == 75
    assert counts["InferenceService"] == 467
    assert 0.34 < counts["Deployment"] / 5_000 < 0.36
    assert kinds(parsed(streams.mix(500))) == streams.kinds_of(500, 50)


def test_the_mix_has_the_size_that_the_budgets_speak_of():
    assert 40_000 < len("".join(streams.mix(30))) < 47_000
    assert 900_000 < len("".join(streams.mix(500))) < 1_200_000


def test_no_two_objects_share_a_name():
    names = [(document["kind"], document["metadata"]["name"]) for document in parsed(streams.mix(500))]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("documents", [30, 500])
def test_nothing_of_interest_has_no_word_of_it(documents):
    text = "".join(streams.nothing(documents))
    assert "InferenceService" not in text
    assert "PodGroup" not in text
    assert sum(kinds(parsed([text])).values()) == documents


def test_it_holds_what_makes_reading_hard():
    text = "".join(streams.nothing(30))
    for piece in (" \\\n      --config", '"*"]', ": |-\n", ": >\n", "{}\n", "  # ", "'true'"):
        assert piece in text, piece


def test_every_service_is_one_gang():
    documents = parsed(streams.services(40))
    assert kinds(documents) == {"InferenceService": 40}
    for document in documents:
        engine = document["spec"]["engine"]
        assert document["apiVersion"] == "ome.io/v1beta1"
        assert "runtime" not in document["spec"]
        assert engine["minReplicas"] == 1
        assert engine["leader"]["runner"]["name"] == engine["worker"]["runner"]["name"] == "ome-container"
        assert engine["worker"]["size"] >= 1


def test_a_resource_list_holds_the_same_services_as_kyaml_writes_them():
    text = "".join(streams.resource_list(20))
    (document,) = parsed([text])
    assert (document["apiVersion"], document["kind"]) == ("config.kubernetes.io/v1", "ResourceList")
    assert text.count("\n- apiVersion: ") == 20
    assert "#" not in text
    for number, (item, service) in enumerate(zip(document["items"], parsed(streams.services(20)), strict=True)):
        annotations = item["metadata"].pop("annotations")
        assert annotations["config.kubernetes.io/index"] == "0"
        assert annotations["internal.config.kubernetes.io/id"] == str(number + 1)
        assert item == service
        assert list(item) == sorted(item)


def test_growth_keeps_every_share():
    one, ten = (streams.kinds_of(length, length // 1_000 * 93) for length in (1_000, 10_000))
    assert all(abs(ten[kind] - 10 * count) <= 10 for kind, count in one.items())


def test_a_stream_is_stored_once(tmp_path):
    old = tmp_path / "mix-30-20-000000000000.yaml"
    old.write_text("from another state of the generator")
    path = streams.stored("mix", 30, folder=tmp_path)
    assert path.read_text(encoding="utf-8") == "".join(streams.mix(30))
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("as it was")
    assert streams.stored("mix", 30, folder=tmp_path).read_text() == "as it was"
