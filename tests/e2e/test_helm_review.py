"""A release that Helm deployed: `check --rendered` tells whether the post-renderer was there.

What `helm get manifest` prints is what `helm template` does, so no cluster is asked.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
from typing import Any

import pytest

from .test_helm import VERSIONS, Helm, ours, plugin_path, write_plugin

LABEL = "spec.engine.labels[scheduling.x-k8s.io/pod-group]"
# The charts' runtimes are in the cluster; what is said of that is not what is asked here.
QUIET = {"POSTRENDER_ACCEPT": "runtime-unresolved,gang-unknown", "POSTRENDER_FORMAT": "json"}
# What a cluster's options are -> what is missing of the chart `kept` where they were forgotten.
OPTIONS: dict[str, tuple[dict[str, str], list[str]]] = {
    "nothing said": ({}, ["PodGroup/qwen-engine-0", f"InferenceService/qwen {LABEL}"]),
    "below 1.3": ({"POSTRENDER_OME": "1.2"}, ["PodGroup/lws-qwen-engine-0", f"InferenceService/qwen {LABEL}"]),
    "by the policy": (
        {"POSTRENDER_OME": "1.2", "POSTRENDER_REPLICAS": "policy"},
        [
            "PodGroup/lws-qwen-engine-0",
            "PodGroup/lws-qwen-engine-1",
            "InferenceService/qwen spec.engine.labels[postrender/gang]",
            f"InferenceService/qwen {LABEL}",
        ],
    ),
    "OME 1.3": ({"POSTRENDER_OME": "1.3"}, []),
    "OME 1.3 and a scheduler": (
        {"POSTRENDER_OME": "1.3", "POSTRENDER_SCHEDULER_NAME": "scheduler-plugins-scheduler"},
        [
            "InferenceService/qwen spec.engine.leader.schedulerName",
            "InferenceService/qwen spec.engine.worker.schedulerName",
        ],
    ),
}


@pytest.fixture(params=VERSIONS)
def helm(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Helm:
    """Return a Helm that knows our plugin, and one that is `cat`."""
    made = Helm(request.param, tmp_path)
    assert made.program.exists(), "run 'make e2e': it brings the Helms"
    if made.four:
        cat = shutil.which("cat")
        assert cat is not None
        write_plugin(tmp_path / "plugins/cat", "cat", cat)
        made.environ["HELM_PLUGINS"] = f"{plugin_path()}{os.pathsep}{tmp_path / 'plugins'}"
    return made


def checked(manifest: str, **environ: str) -> tuple[int, list[dict[str, Any]]]:
    """Return the exit code of `check --rendered`, and its findings."""
    done = ours("check", "--rendered", environ={**QUIET, **environ}, stdin=manifest)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def missing(findings: list[dict[str, Any]]) -> list[str]:
    found = [one for one in findings if one["code"] == "not-rendered"]
    return [f"{one['object']['kind']}/{one['object']['name']} {one['field'] or ''}".rstrip() for one in found]


@pytest.mark.parametrize("said", OPTIONS)
def test_a_release_with_the_post_renderer_and_one_without(helm: Helm, said: str) -> None:
    environ, wanted = OPTIONS[said]
    code, findings = checked(helm.rendered("kept", **environ), **environ)
    assert (code, missing(findings)) == (0, [])
    code, findings = checked(helm.template("kept", renderer="").stdout, **environ)
    assert (code, missing(findings)) == (3 if wanted else 0, wanted)
    assert {one["source"] for one in findings if one["code"] == "not-rendered"} <= {"kept/templates/isvc.yaml"}


def test_a_post_renderer_that_is_another(helm: Helm) -> None:
    """Helm 4 rewrites what any post-renderer prints; ours is missed all the same."""
    code, findings = checked(helm.without("kept"))
    assert (code, missing(findings)) == (3, OPTIONS["nothing said"][1])


@pytest.mark.parametrize("chart", ["plain", "list", "anchors"])
def test_every_chart(helm: Helm, chart: str) -> None:
    words = ("--namespace", "prod")
    assert checked(helm.rendered(chart, *words))[0] == 0
    assert checked(helm.template(chart, *words, renderer="").stdout)[0] == 3


def test_a_release_that_has_grown_since(helm: Helm) -> None:
    """PodGroups of the release before stay where `helm upgrade` was run without us, and are too small."""
    before = helm.rendered("plain", "--set", "size=1")
    after = helm.template("plain", "--set", "size=4", renderer="").stdout
    groups = [part for part in before.split("---\n") if "kind: PodGroup\n" in part]
    code, findings = checked("---\n".join(["", *groups, after]))
    assert code == 3
    assert [
        one["message"] for one in findings if one["code"] == "not-rendered" and one["object"]["kind"] == "PodGroup"
    ] == ["it is not what InferenceService/qwen needs"]


def test_the_line_for_people(helm: Helm) -> None:
    environ = {**QUIET, "POSTRENDER_FORMAT": "text", "POSTRENDER_STRICT": "true", "POSTRENDER_OME": "1.3"}
    rendered = helm.rendered("kept", POSTRENDER_OME="1.3")
    done = ours("check", "--rendered", environ=environ, stdin=rendered)
    assert (done.returncode, done.stderr) == (0, "postrender: 2 objects, 1 gang: nothing found\n")
    assert done.stdout.startswith("postrender: note: <stdin>:")
    assert "(kept/templates/isvc.yaml): InferenceService/qwen: " in done.stdout
    environ["POSTRENDER_SCHEDULER_NAME"] = "scheduler-plugins-scheduler"
    done = ours("check", "--rendered", environ=environ, stdin=rendered)
    assert (done.returncode, done.stderr) == (3, "postrender: 2 objects, 1 gang: 2 errors\n")
