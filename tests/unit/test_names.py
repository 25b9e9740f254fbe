"""PodGroup names: OME's vectors, and what its rule makes of the longer ones (SHA-256 worked out beside)."""

import pytest

from postrender.gangs import names

LONG = "example-tenant-production-very-long-inference-service-name-v2"
NAMES = [
    ("llama", "engine", 3, "llama-engine-3"),
    ("llama-70b", "decoder", 1, "llama-70b-decoder-1"),
    ("llama-70b-instruct", "engine", 12, "llama-70b-instruct-engine-12"),
    ("x" * 54, "engine", 0, "x" * 54 + "-engine-0"),
    ("x" * 55, "engine", 0, "a2976adb-" + "x" * 45 + "-engine-0"),
    ("x" * 70, "engine", 12, "af2b1358-" + "x" * 44 + "-engine-12"),
    ("x" * 70, "engine", 13, "c935453f-" + "x" * 44 + "-engine-13"),
    (LONG, "engine", 0, "d1443aa7-roduction-very-long-inference-service-name-v2-engine-0"),
    (LONG, "decoder", 10, "e411c9fe-duction-very-long-inference-service-name-v2-decoder-10"),
    ("model-00-" + "y" * 50, "engine", 0, "a48c0f43-" + "y" * 45 + "-engine-0"),
    ("q" * 20 + "-" + "z" * 44, "engine", 0, "a6402499--" + "z" * 44 + "-engine-0"),
]


@pytest.mark.parametrize(("service", "component", "index", "name"), NAMES)
def test_names(service, component, index, name):
    assert names.pod_group(service, component, index) == name
    assert len(name) <= 63
    assert names.is_pod_group(name, service, component)


@pytest.mark.parametrize("name", ["", "llama", "llama-engine", "llama-engine-", "llama-engine-x", "llama-decoder-0",
                                  "llama-engine-٣", "llama-engine-00", "other-engine-0"])  # fmt: skip
def test_names_that_we_never_give(name):
    assert not names.is_pod_group(name, "llama", "engine")
