"""The renderers with the real Helms and the real kustomize: what a chart sees is what was said, whatever that was."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import yaml

from postrender import renderers
from postrender.renderers import Chart, Failed, Kustomization
from tests.e2e.cmp import BIN
from tests.e2e.test_helm import VERSIONS

REPOSITORY = pathlib.Path(__file__).parent / "argocd"
CHART = REPOSITORY / "apps/chart"


@pytest.fixture(params=VERSIONS)
def environ(request: pytest.FixtureRequest) -> dict[str, str]:
    """Return the environment of a user: of it Helm must see no more than the PATH."""
    return {
        "PATH": os.defpath,
        "POSTRENDER_HELM": str(BIN / f"helm-{request.param}"),
        "HOME": "/dev/null/home",
        "KUBECONFIG": "/dev/null/config",
        "HELM_PLUGINS": "/dev/null/plugins",
        "HELM_DEBUG": "true",
        "HELM_NAMESPACE": "elsewhere",
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "1",
    }


def rendered(environ: dict[str, str], chart: pathlib.Path = CHART, **told: Any) -> dict[str, Any]:
    """Return the objects of the chart by their names; Helm has nothing to say."""
    done = renderers.run(Chart(str(chart), **{"release": "llm", **told}), environ)
    assert done.said == ""
    return {one["metadata"]["name"]: one for one in yaml.safe_load_all(done.data) if one}


def seen(environ: dict[str, str], **told: Any) -> dict[str, str]:
    data: dict[str, str] = rendered(environ, **told)["seen"]["data"]
    return data


def test_what_is_said_is_what_the_chart_sees(environ: dict[str, str]) -> None:
    values = (str(CHART / "values/near.yaml"), str(REPOSITORY / "values/far.yaml"))
    data = seen(
        environ,
        release="qwen.3",
        namespace="models",
        values=values,
        inline="workers: 5\n",
        sets=(("list", "{a,b}"), ("a.b", "true"), ("comma", "x,y")),
        set_strings=(("text", "true"),),
        kube_version="1.33.2",
        api_versions=("v1", "example.com/v1/Widget"),
    )
    release = json.loads(data["release"])
    assert (release["Name"], release["Namespace"]) == ("qwen.3", "models")
    assert json.loads(data["values"]) == {
        "workers": 5, "note": "far", "far": True, "list": ["a", "b"], "a": {"b": True}, "comma": "x,y", "text": "true",
    }  # fmt: skip
    assert (data["kubernetes"], data["widgets"], data["nodes"]) == ("v1.33.2", "true", "0")


def test_what_is_not_said(environ: dict[str, str]) -> None:
    found = rendered(environ)
    data = found["seen"]["data"]
    assert json.loads(data["release"])["Namespace"] == "default"
    assert json.loads(data["values"]) == {"workers": 1, "note": "default"}
    assert data["widgets"] == "false"
    assert found.keys() == {"widgets.example.com", "test", "llm", "seen"}
    assert rendered(environ, include_crds=False, skip_tests=True).keys() == {"llm", "seen"}


HOSTILE = ["--post-renderer=sh", "-f/etc/passwd", "; id", "$(id)", "`id`", "a\n--set=b=c", "a\r\nb", "-", "--", "a,b=c", "{", "{a", "[0]", "'\"", "é\u2028"]  # fmt: skip


@pytest.mark.parametrize("word", HOSTILE)
def test_words_stay_data(environ: dict[str, str], word: str) -> None:
    data = seen(environ, namespace=word, set_strings=(("note", word),), inline=f"inline: {json.dumps(word)}\n")
    assert json.loads(data["values"]) == {"workers": 1, "note": word, "inline": word}
    assert json.loads(data["release"])["Namespace"] == word


@pytest.mark.parametrize("name", ["a,b.yaml", '"q".yaml', "-f.yaml", "--set=a=b", "a b;c.yaml", "http:.yaml"])
def test_names_of_values_files_stay_names(environ: dict[str, str], tmp_path: pathlib.Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("note: from the file\n")
    assert json.loads(seen(environ, values=(str(path),))["values"])["note"] == "from the file"


def test_a_long_list_of_apis(environ: dict[str, str]) -> None:
    """300 kB: more than one word of a command line may hold, and less than all of them."""
    many = tuple(f"group-{number}.example.com/v1" for number in range(11_600))
    assert len(",".join(many)) > 290_000
    assert seen(environ, api_versions=(*many, "example.com/v1/Widget"))["widgets"] == "true"


def test_a_packed_chart(environ: dict[str, str], tmp_path: pathlib.Path) -> None:
    shutil.copytree(CHART, tmp_path / "llm")
    packed = tmp_path / "-llm.tgz"
    subprocess.run(["tar", "czf", f"./{packed.name}", "llm"], cwd=tmp_path, check=True)
    assert rendered(environ, packed) == rendered(environ)


FAILURES = [
    ({"sets": (("broken", "true"),)}, "the chart gives up halfway (exit code 1)"),
    ({"kube_version": "--help"}, "(exit code 1)"),
    ({"values": ("/nowhere.yaml",)}, "open /nowhere.yaml: no such file or directory (exit code 1)"),
    ({"inline": "a: [\n"}, "(exit code 1)"),
]


@pytest.mark.parametrize(("told", "end"), FAILURES)
def test_a_failure_is_said_in_one_line(environ: dict[str, str], told: dict[str, Any], end: str) -> None:
    with pytest.raises(Failed) as failed:
        rendered(environ, **told)
    message = str(failed.value)
    assert message.startswith("helm: ")
    assert not message.startswith("helm: Error")
    assert message.endswith(end)
    assert "\n" not in message


def test_a_chart_that_lacks_its_dependencies(environ: dict[str, str], tmp_path: pathlib.Path) -> None:
    chart = shutil.copytree(CHART, tmp_path / "chart")
    with (chart / "Chart.yaml").open("a") as file:
        file.write("dependencies: [{name: other, version: 1.0.0, repository: 'https://example.com'}]\n")
    with pytest.raises(Failed, match="missing in charts/ directory: other"):
        rendered(environ, chart)


def test_nothing_is_written_into_the_chart(environ: dict[str, str], tmp_path: pathlib.Path) -> None:
    chart = shutil.copytree(CHART, tmp_path / "chart")
    before = sorted(tmp_path.rglob("*"))
    rendered(environ, chart)
    assert sorted(tmp_path.rglob("*")) == before


def test_two_runs_are_the_same_bytes(environ: dict[str, str]) -> None:
    first, second = (renderers.run(Chart(str(CHART), "llm"), environ) for _ in range(2))
    assert first == second


KUSTOMIZE = {"PATH": os.defpath, "POSTRENDER_KUSTOMIZE": str(BIN / "kustomize"), "HOME": "/dev/null/home"}


def test_a_kustomization() -> None:
    done = renderers.run(Kustomization(str(REPOSITORY / "apps/kustomization")), KUSTOMIZE)
    [service] = yaml.safe_load_all(done.data)
    assert service["metadata"]["namespace"] == "models"
    assert done.said.startswith("# Warning: 'commonLabels' is deprecated.")


def test_a_kustomization_runs_no_programs(tmp_path: pathlib.Path) -> None:
    function = "apiVersion: v1\nkind: F\nmetadata:\n  name: f\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: ./run}\n"  # fmt: skip
    (tmp_path / "function.yaml").write_text(function)
    (tmp_path / "run").write_text(f"#!/bin/sh\ntouch {tmp_path}/mark\ncat\n")
    (tmp_path / "run").chmod(0o755)
    (tmp_path / "kustomization.yaml").write_text("generators: [function.yaml]\n")
    with pytest.raises(Failed, match=r"plugins are disabled|plugins disabled"):
        renderers.run(Kustomization(str(tmp_path)), KUSTOMIZE)
    assert not (tmp_path / "mark").exists()


def test_a_kustomization_reads_no_file_above_it(tmp_path: pathlib.Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "above.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
    (inner / "kustomization.yaml").write_text("resources: [../above.yaml]\n")
    with pytest.raises(Failed, match=r"security; file .* is not in or below"):
        renderers.run(Kustomization(str(inner)), KUSTOMIZE)


def test_a_folder_without_a_kustomization(tmp_path: pathlib.Path) -> None:
    with pytest.raises(Failed, match=r"kustomize: unable to find one of 'kustomization\.yaml'"):
        renderers.run(Kustomization(str(tmp_path)), KUSTOMIZE)
