"""Through Argo CD's real plugin server: what an Application gets, held against `render` of what Argo CD itself would
have rendered; and what it is told where there is nothing to get.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from postrender import render
from postrender.options import Options
from tests.e2e.cmp import BIN, ROOT, Refused, Server
from tests.oracles.client import Oracle, exact

REPOSITORY = pathlib.Path(__file__).parent / "argocd"
CRD = "scheduling.x-k8s.io/v1alpha1/PodGroup"
APIS = f"v1,v1/Pod,scheduling.x-k8s.io/v1alpha1,{CRD},example.com/v1,example.com/v1/Widget"
WAVE = Options(ome="1.2", sync_wave="-1")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


@pytest.fixture
def repository(tmp_path: pathlib.Path) -> pathlib.Path:
    return shutil.copytree(REPOSITORY, tmp_path / "repository")


def parameters(**told: Any) -> str:
    """Return parameters as Argo CD writes them: strings, arrays and maps each under a key of its own."""
    keys = {str: "string", list: "array", dict: "map"}
    return json.dumps(
        [
            {"name": name.replace("_", "-"), keys[type(value)]: value}
            for name, value in told.items()
            if value is not None
        ]
    )


def environ(app: str, env: dict[str, str] | None = None, **told: Any) -> dict[str, str]:
    """Return what Argo CD adds to the environment for an Application."""
    return {
        "ARGOCD_APP_NAME": "llm",
        "ARGOCD_APP_NAMESPACE": "models",
        "ARGOCD_APP_PROJECT_NAME": "default",
        "ARGOCD_APP_SOURCE_PATH": app,
        "KUBE_VERSION": "1.34.1",
        "KUBE_API_VERSIONS": APIS,
        "ARGOCD_APP_PARAMETERS": parameters(**{"ome": "1.2", **told}),
        **(env or {}),
    }


def objects(server: Server, repository: pathlib.Path, app: str, **how: Any) -> list[Any]:
    return taken_apart([json.loads(text) for text in server.generate(repository, app, environ(app, **how))])


def taken_apart(documents: list[Any]) -> list[Any]:
    """Return the objects of documents: a List is its items to Argo CD."""
    return [one for held in documents for one in (held["items"] if held["kind"] == "List" else [held])]


def seen(found: list[Any]) -> dict[str, str]:
    """Return what the chart says that it has seen."""
    [config] = [one for one in found if one["metadata"]["name"] == "seen"]
    data: dict[str, str] = config["data"]
    return data


def native(*words: str, cwd: pathlib.Path, home: pathlib.Path) -> bytes:
    """Return what a renderer prints that is called as Argo CD calls it for a source of its own kinds."""
    done = subprocess.run(
        [BIN / words[0], *words[1:]],
        cwd=cwd,
        env={"PATH": os.defpath, "HOME": str(home)},
        capture_output=True,
        check=True,
    )
    return done.stdout


def wanted(oracle: Oracle, stream: bytes, options: Options = WAVE) -> list[Any]:
    """Return the objects of a stream as it is to be deployed."""
    rendered = render(stream, options)
    assert not rendered.refused
    return taken_apart([one for one in oracle.sigs_all(rendered.data.decode()) if one is not None])


def refusal(server: Server, repository: pathlib.Path, app: str, **how: Any) -> str:
    """Return the first line of what Argo CD shows, without how it names the command."""
    with pytest.raises(Refused) as refused:
        objects(server, repository, app, **how)
    command, failed, line = str(refused.value).splitlines()[0].partition("failed exit status ")
    assert (command, failed) == ("error generating manifests: `postrender argocd generate` ", "failed exit status ")
    return line


# -- what comes out --------------------------------------------------------------------------------------------------


def test_the_plugin_is_found_by_its_name_and_announces_its_parameters(server: Server, repository: pathlib.Path) -> None:
    assert server.socket.name == "postrender-v0.1.0.sock"
    assert server.socket.name.removesuffix(".sock") in (ROOT / "plugins/argocd/applications/helm.yaml").read_text()
    announced = {one.name: one for one in server.announced(repository, "apps/chart")}
    assert [name for name, one in announced.items() if one.required] == ["ome"]
    assert {name: one.collection for name, one in announced.items() if name in ("values", "values-files", "set")} == {
        "values": "",
        "values-files": "array",
        "set": "map",
    }


def test_a_chart(server: Server, oracle: Oracle, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = objects(
        server,
        repository,
        "apps/chart",
        release_name="qwen",
        values_files=["values/near.yaml", "/values/far.yaml"],
        values="workers: 3\n",
        set={"a.b": "1", "comma": "x,y"},
        set_string={"number": "1"},
        gang_scheduler=["volcano", "default-scheduler"],
    )
    inline = tmp_path / "inline.yaml"
    inline.write_text("workers: 3\n")
    words = ["template", ".", "--name-template", "qwen", "--namespace", "models", "--kube-version", "1.34.1"]
    words += ["--set", "a.b=1", "--set", r"comma=x\,y", "--set-string", "number=1"]
    words += ["--values", "values/near.yaml", "--values", "../../values/far.yaml", "--values", str(inline)]
    words += [word for api in APIS.split(",") for word in ("--api-versions", api)] + ["--include-crds"]
    stream = native("helm-4.2", *words, cwd=repository / "apps/chart", home=tmp_path)
    assert exact(found) == exact(wanted(oracle, stream))
    # And that is what was asked for.
    by_name = {one["metadata"]["name"]: one for one in found}
    assert by_name["lws-qwen-engine-0"]["spec"]["minMember"] == 4
    assert by_name["lws-qwen-engine-0"]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-1"
    assert {"widgets.example.com", "test"} < by_name.keys()
    data = seen(found)
    assert json.loads(data["values"]) == {
        "workers": 3, "note": "far", "far": True, "a": {"b": 1}, "comma": "x,y", "number": "1",
    }  # fmt: skip
    assert (data["kubernetes"], data["widgets"], data["nodes"]) == ("v1.34.1", "true", "0")


def test_a_chart_without_tests_and_crds(server: Server, repository: pathlib.Path) -> None:
    found = objects(server, repository, "apps/chart", skip_tests="true", include_crds="false", sync_wave="")
    assert sorted(one["kind"] for one in found) == ["ConfigMap", "InferenceService", "PodGroup"]
    assert "argocd" not in json.dumps(found)


def test_a_kustomization(server: Server, oracle: Oracle, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    found = objects(server, repository, "apps/kustomization")
    stream = native("kustomize", "build", ".", cwd=repository / "apps/kustomization", home=tmp_path)
    assert exact(found) == exact(wanted(oracle, stream))
    assert [(one["kind"], one["metadata"]["namespace"]) for one in found] == [
        ("PodGroup", "models"),
        ("InferenceService", "models"),
    ]


def test_manifests_as_they_are(server: Server, oracle: Oracle, repository: pathlib.Path) -> None:
    found = objects(server, repository, "apps/manifests")
    folder = repository / "apps/manifests"
    stream = b"\n---\n".join((folder / name).read_bytes() for name in ("a.yaml", "b.json", "c.yml"))
    assert exact(found) == exact(wanted(oracle, stream))
    groups = {one["metadata"]["name"]: one for one in found if one["kind"] == "PodGroup"}
    # A wave before its service, and what keeps that one keeps it too.
    assert groups["lws-waved-engine-0"]["metadata"]["annotations"] == {
        "postrender/for": "InferenceService/waved",
        "argocd.argoproj.io/sync-wave": "4",
        "argocd.argoproj.io/sync-options": "Prune=false",
    }
    assert groups["lws-json-engine-0"]["spec"]["minMember"] == 2
    assert "listed" in {one["metadata"]["name"] for one in found}


@pytest.mark.parametrize("app", ["apps/chart", "apps/kustomization", "apps/manifests"])
def test_two_runs_are_the_same_bytes(server: Server, repository: pathlib.Path, app: str) -> None:
    first, second = (server.generate(repository, app, environ(app)) for _ in range(2))
    assert first == second
    assert os.listdir(server.temporary) == []


def test_what_the_command_line_can_set(server: Server, repository: pathlib.Path) -> None:
    """`argocd app set --plugin-env` writes variables; a parameter wins over one."""
    env = {"ARGOCD_ENV_POSTRENDER_OME": "1.3", "ARGOCD_ENV_POSTRENDER_SCHEDULER_NAME": "volcano"}
    found = objects(server, repository, "apps/kustomization", env=env)
    assert [one["kind"] for one in found] == ["PodGroup", "InferenceService"]  # 1.3 would leave it to OME
    assert found[1]["spec"]["engine"]["leader"] == {"schedulerName": "volcano"}


def test_an_application_of_another_namespace(server: Server, repository: pathlib.Path) -> None:
    found = objects(server, repository, "apps/chart", env={"ARGOCD_APP_NAME": "team-a_llm"})
    assert json.loads(seen(found)["release"])["Name"] == "llm"


def test_an_application_without_parameters(server: Server, repository: pathlib.Path) -> None:
    env = {"ARGOCD_APP_PARAMETERS": "null", "ARGOCD_ENV_POSTRENDER_OME": "1.2"}
    assert len(objects(server, repository, "apps/kustomization", env=env)) == 2


def test_the_sidecar_can_be_set_for_all(repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    config = tmp_path / "cluster.yaml"
    config.write_text("ome: 1.2\nscheduler-name: volcano\nsync-wave: -7\n")
    with Server(POSTRENDER_CONFIG=str(config)) as server:
        found = objects(server, repository, "apps/kustomization", ome=None)
    assert found[0]["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "-7"
    assert found[1]["spec"]["engine"]["leader"] == {"schedulerName": "volcano"}


def test_a_part_of_the_repository(server: Server, repository: pathlib.Path) -> None:
    """Where Argo CD sends what an annotation names, the path is that of the Application in the whole repository."""
    env = {"ARGOCD_APP_SOURCE_PATH": "apps/chart"}
    part = repository / "apps"
    assert server.generate(part, "chart", environ("chart", env, values_files=["/chart/values/near.yaml"]))
    line = refusal_of(server, part, "chart", environ("chart", env, values_files=["/values/far.yaml"]))
    assert (
        line
        == "4: postrender: error: parameter values-files: '/values/far.yaml': there is no such file in the repository"
    )


def refusal_of(server: Server, repository: pathlib.Path, app: str, environment: dict[str, str]) -> str:
    with pytest.raises(Refused) as refused:
        server.generate(repository, app, environment)
    return str(refused.value).splitlines()[0].partition("failed exit status ")[2]


# -- what is refused -------------------------------------------------------------------------------------------------


def test_a_chart_that_fails_halfway(server: Server, repository: pathlib.Path) -> None:
    line = refusal(server, repository, "apps/chart", set={"broken": "true"})
    assert line.startswith("1: postrender: error: helm: execution error at (llm/templates/zz-halfway.yaml:2:3): ")
    assert line.endswith("the chart gives up halfway (exit code 1)")


def test_a_kustomization_that_fails(server: Server, repository: pathlib.Path) -> None:
    (repository / "apps/kustomization/isvc.yaml").unlink()
    line = refusal(server, repository, "apps/kustomization")
    assert line.startswith("1: postrender: error: kustomize: accumulating resources: ")


def test_an_empty_chart(server: Server, repository: pathlib.Path) -> None:
    empty = {"empty": "true"}
    line = refusal(server, repository, "apps/chart", set=empty, include_crds="false")
    assert "renders to nothing; were it deployed, all that it had deployed would be removed" in line
    assert objects(server, repository, "apps/chart", set=empty, include_crds="false", allow_empty="true") == []


ESCAPES = [
    ("values_files", ["../../../etc/passwd"], "'../../../etc/passwd' leads out of the repository"),
    ("values_files", ["https://example.com/values.yaml"], "'https://example.com/values.yaml' is an address; only files of the repository are read"),
    ("values_files", ["-"], "'-': there is no such file in the repository"),
    ("values_files", ["--set=workers=9"], "'--set=workers=9': there is no such file in the repository"),
    ("values_files", ["/etc/passwd"], "'/etc/passwd': there is no such file in the repository"),
    ("context", ["../../../.."], "'../../../..' leads out of the repository"),
    ("context", ["values/near.yaml,/../../etc/passwd"], "'/../../etc/passwd' leads out of the repository"),
    ("ome_values", "../../../../etc/passwd", "'../../../../etc/passwd' leads out of the repository"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value", "message"), ESCAPES)
def test_a_file_outside_of_the_repository(
    server: Server, repository: pathlib.Path, name: str, value: Any, message: str
) -> None:
    line = refusal(server, repository, "apps/chart", **{name: value})
    assert line.partition(" ")[2] == f"postrender: error: parameter {name.replace('_', '-')}: {message}"


def test_a_link_that_leads_out_is_not_even_unpacked(server: Server, repository: pathlib.Path) -> None:
    link = repository / "apps/chart/values/link.yaml"
    link.symlink_to(f"{'../' * 12}etc/passwd")
    with pytest.raises(Refused, match="illegal filepath in symlink"):
        objects(server, repository, "apps/chart", values_files=["values/link.yaml"])
    # One that begins at the root is made to begin at the link.
    link.unlink()
    link.symlink_to("/etc/passwd")
    line = refusal(server, repository, "apps/chart", values_files=["values/link.yaml"])
    assert line.endswith("'values/link.yaml': there is no such file in the repository")


def test_a_link_within_the_repository(server: Server, repository: pathlib.Path) -> None:
    (repository / "apps/chart/values/link.yaml").symlink_to("../../../values/far.yaml")
    found = objects(server, repository, "apps/chart", values_files=["values/link.yaml"])
    assert json.loads(seen(found)["values"])["far"] is True


def test_a_long_list_of_apis(server: Server, repository: pathlib.Path) -> None:
    # 100 kB pass; of a variable Linux takes 128 KiB, so more never reaches a plugin.
    many = [f"group-{number}.example.com/v1" for number in range(3_800)]
    assert 100_000 > len(",".join(many)) > 95_000
    found = objects(server, repository, "apps/chart", env={"KUBE_API_VERSIONS": ",".join([APIS, *many])})
    assert "PodGroup" in {one["kind"] for one in found}
    with pytest.raises(Refused, match=r"fork/exec .*/postrender: argument list too long"):
        objects(server, repository, "apps/chart", env={"KUBE_API_VERSIONS": ",".join([APIS, *many * 3])})


def test_a_cluster_without_podgroups(server: Server, repository: pathlib.Path) -> None:
    line = refusal(server, repository, "apps/chart", env={"KUBE_API_VERSIONS": "v1,v1/Pod"})
    assert line.startswith("1: postrender: error: ")
    assert line.endswith("[podgroup-crd-missing]")


def test_warnings_refuse_under_strict(server: Server, repository: pathlib.Path) -> None:
    line = refusal(server, repository, "apps/kustomization", strict="true")
    assert line.startswith("1: postrender: error: <kustomize>:")
    # kustomize has something to say here too; it comes after what is wrong.
    with pytest.raises(Refused) as refused:
        objects(server, repository, "apps/kustomization", strict="true")
    assert str(refused.value).splitlines()[-1].startswith("# Warning: 'commonLabels' is deprecated.")


def test_injection_stays_data(server: Server, repository: pathlib.Path, tmp_path: pathlib.Path) -> None:
    mark = tmp_path / "mark"
    hostile = ["--post-renderer=sh", f"; touch {mark}", f"$(touch {mark})", f"`touch {mark}`", "a\n--set=b=c", "{{ fail `x` }}!", "-", "\\"]  # fmt: skip
    for word in hostile:
        found = objects(
            server, repository, "apps/chart", set_string={"note": word}, values=f"other: {json.dumps(word)}\n"
        )
        # A backslash at the end is Helm's own way to escape, of nothing.
        assert json.loads(seen(found)["values"]) == {"workers": 1, "note": word.rstrip("\\"), "other": word}
    for word in (*hostile, "a b", "A", "x" * 54):
        assert "is no name of a Helm release" in refusal(server, repository, "apps/chart", release_name=word)
    for word in ("a=1,b", "a\nb", ""):
        assert "is no path of a value" in refusal(server, repository, "apps/chart", set={word: "1"})
    line = refusal(server, repository, "apps/chart", kube_version="--help")
    assert line.startswith("1: postrender: error: helm: ")
    assert not mark.exists()


SLOW = """\
#!/bin/sh
trap 'echo got TERM >> {log}' TERM
echo $$ >> {log}
echo 'apiVersion: v1'
sleep 60 & echo $! >> {log}
while :; do wait; done
"""


@pytest.fixture
def slow_helm(server: Server, tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    """Put a Helm in place that says half of a manifest and does not end; return where it writes who it is."""
    log = tmp_path / "log"
    script = tmp_path / "slow"
    script.write_text(SLOW.format(log=log))
    script.chmod(0o755)
    helm = server.bin / "helm"
    before = helm.readlink()
    helm.unlink()
    helm.symlink_to(script)
    yield log
    helm.unlink()
    helm.symlink_to(before)


def alive(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def children(pid: int) -> list[int]:
    """Return the children of a process; Linux lists them by the thread that started each."""
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/children")
    return [int(one) for task in tasks for one in task.read_text().split()]


def until(what: Any, seconds: float = 15) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_deadline_leaves_no_helm(server: Server, repository: pathlib.Path, slow_helm: pathlib.Path) -> None:
    """At the deadline Argo CD kills us, and the group it then ends is not Helm's: Helm goes with us all the same."""
    with pytest.raises(Refused):
        server.generate(repository, "apps/chart", environ("apps/chart"), seconds=3)
    helm = int(slow_helm.read_text().split()[0])
    until(lambda: not alive(helm))


def test_a_term_during_helm(server: Server, repository: pathlib.Path, slow_helm: pathlib.Path) -> None:
    said: list[str] = []
    before = os.listdir(server.temporary)  # a run that was killed may have left its folder

    def ask() -> None:
        try:
            server.generate(repository, "apps/chart", environ("apps/chart"))
        except Refused as refused:
            said.append(str(refused))

    thread = threading.Thread(target=ask)
    thread.start()
    until(lambda: slow_helm.exists() and len(slow_helm.read_text().split()) == 2)
    helm, sleeper = map(int, slow_helm.read_text().split())
    [ours] = children(server.process.pid)
    os.kill(ours, 15)
    thread.join(20)
    assert said[0].endswith("failed exit status 1: postrender: error: helm was stopped: SIGTERM came while it ran")
    assert "got TERM" in slow_helm.read_text()
    until(lambda: not alive(helm) and not alive(sleeper))
    assert os.listdir(server.temporary) == before
