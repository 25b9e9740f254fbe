"""The plugin for Argo CD as Argo CD runs it; tests/e2e has its real plugin server, and real renderers."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest
import yaml

import postrender
from postrender.hosts import argocd
from postrender.options import TABLE
from postrender.sources import Misuse
from tests.unit.repo_server import Refused, RepoServer, objects, parameters

PLUGINS = pathlib.Path(__file__).parents[2] / "plugins/argocd"
SCRIPT = pathlib.Path(sys.executable).with_name("postrender")
SERVICE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: llm}
spec: {engine: {leader: {}, worker: {size: 1}}}
"""
RUNTIME = """\
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: rt}
spec: {engineConfig: {leader: {}, worker: {size: 4}}}
"""
GROUP = "lws-llm-engine-0"
CRD = "scheduling.x-k8s.io/v1alpha1/PodGroup"


@pytest.fixture
def server(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> RepoServer:
    made = RepoServer(tmp_path, monkeypatch)
    made.write(apps__llm__isvc_yaml=SERVICE)
    return made


def refusal(server: RepoServer, environ: dict[str, str] | None = None, app: str = "apps/llm", **told: Any) -> str:
    """Return the exit code and the first line that says why there is nothing to deploy."""
    with pytest.raises(Refused) as refused:
        server.generate(app, environ, **told)
    assert refused.value.first.startswith("postrender: error: ")
    return f"{refused.value.code} {refused.value.first.removeprefix('postrender: error: ')}"


def group(found: list[Any]) -> Any:
    return next(one for one in found if one["kind"] == "PodGroup")


# -- parameters ------------------------------------------------------------------------------------------------------

WRONG = [
    ("", "parameter ome: is required; say which version of OME runs the manifests, such as 1.3"),
    ("null", "parameter ome: is required; say which version of OME runs the manifests, such as 1.3"),
    ("[]", "parameter ome: is required; say which version of OME runs the manifests, such as 1.3"),
    ("[{]", "ARGOCD_APP_PARAMETERS: is no JSON: "),
    ("[" * 100_000, "ARGOCD_APP_PARAMETERS: is no JSON: "),
    ("{}", "ARGOCD_APP_PARAMETERS: is no list of parameters"),
    ("false", "ARGOCD_APP_PARAMETERS: is no list of parameters"),
    ("[1]", "ARGOCD_APP_PARAMETERS: entry 0 has no name"),
    ('[{"string": "a"}]', "ARGOCD_APP_PARAMETERS: entry 0 has no name"),
    ('[{"name": 1}]', "ARGOCD_APP_PARAMETERS: entry 0 has no name"),
    ('[{"name": "omee", "string": "1.3"}]', "parameter omee: there is no such parameter; did you mean ome?"),
    ('[{"name": "value-files", "array": []}]', "parameter value-files: there is no such parameter; did you mean values-files?"),
    ('[{"name": "zzz\\n[x]"}]', "parameter zzz\\u000a[x]: there is no such parameter"),
    ('[{"name": "namespace", "string": "x"}]', "parameter namespace: there is no such parameter"),
    ('[{"name": "config", "string": "x"}]', "parameter config: there is no such parameter"),
    ('[{"name": "ome", "array": ["1.3"]}]', "parameter ome: has 'array'; write its value as 'string'"),
    ('[{"name": "accept", "string": "x"}]', "parameter accept: has 'string'; write its value as 'array'"),
    ('[{"name": "set", "array": ["a=b"]}]', "parameter set: has 'array'; write its value as 'map'"),
    ('[{"name": "ome", "string": 1.3}]', "parameter ome: is not a string"),
    ('[{"name": "accept", "array": [1]}]', "parameter accept: is not a list of strings"),
    ('[{"name": "set", "map": {"a": 1}}]', "parameter set: is not a map of strings"),
    ('[{"name": "set", "map": {"a": {"b": "c"}}}]', "parameter set: is not a map of strings"),
    ('[{"name": "ome", "string": "1.3"}, {"name": "ome", "string": "1.2"}]', "parameter ome: stands twice; remove one of the two"),
    ('[{"name": "ome", "string": "new"}]', "parameter ome: "),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[text[:40] for text, _ in WRONG])
def test_parameters_that_are_none(server: RepoServer, text: str, message: str) -> None:
    line = refusal(server, {"ARGOCD_APP_PARAMETERS": text})
    assert line.startswith(f"2 {message}")


WORDS = [
    ({"strict": "yes"}, "parameter strict: 'yes': write true or false"),
    ({"recurse": "yes"}, "parameter recurse: 'yes': write true or false"),
    ({"spares": "-1"}, "parameter spares: '-1' is not a number from 0 to 1,000"),
    ({"sync-wave": "soon"}, "parameter sync-wave: 'soon' is not an integer; write one such as -1"),
    ({"podgroups": "x"}, "parameter podgroups: 'x' is not one of emit, omit"),
    ({"accept": ["surge"]}, "parameter accept: there is no finding 'surge'"),
    ({"source": "jsonnet"}, "parameter source: 'jsonnet' is not one of auto, helm, kustomize, directory"),
    ({"values-files": ["a"]}, "parameter values-files: is for a source of the kind helm, and this one is directory; remove it"),
    ({"source": "helm", "recurse": "true"}, "parameter recurse: is for a source of the kind directory, and this one is helm; remove it"),
]  # fmt: skip


@pytest.mark.parametrize(("told", "message"), WORDS)
def test_words_that_no_parameter_takes(server: RepoServer, told: dict[str, Any], message: str) -> None:
    assert refusal(server, **told) == f"2 {message}"


def test_nulls_and_empty_strings_are_not_said(server: RepoServer) -> None:
    told = [{"name": "ome", "string": "1.2", "array": None}, {"name": "release-name", "string": ""}]
    told += [{"name": "set", "map": {}}, {"name": "values-files", "array": None}, {"name": "strict", "string": ""}]
    assert len(objects(server.run("apps/llm", server.environ("apps/llm", told)))) == 2


ENVIRONMENT = [
    ({"ARGOCD_ENV_POSTRENDER_OMEE": "1.3"}, "ARGOCD_ENV_POSTRENDER_OMEE: there is no such parameter; did you mean ome?"),
    ({"ARGOCD_ENV_POSTRENDER_STRICT": "yes"}, "ARGOCD_ENV_POSTRENDER_STRICT: 'yes': write true or false"),
    ({"ARGOCD_ENV_POSTRENDER_ACCEPT": "x"}, "ARGOCD_ENV_POSTRENDER_ACCEPT: is a setting of several words; give it under plugin.parameters"),
    ({"ARGOCD_ENV_POSTRENDER_VALUES": "a: 1"}, "ARGOCD_ENV_POSTRENDER_VALUES: is for a source of the kind helm, and this one is directory; remove it"),
    ({"ARGOCD_ENV_POSTRENDER_CONFIG": "x"}, "ARGOCD_ENV_POSTRENDER_CONFIG: there is no such parameter"),
    ({"POSTRENDER_OMEE": "1.3"}, "POSTRENDER_OMEE: there is no such option; did you mean POSTRENDER_OME?"),
]  # fmt: skip


@pytest.mark.parametrize(("environ", "message"), ENVIRONMENT)
def test_variables_that_are_none(server: RepoServer, environ: dict[str, str], message: str) -> None:
    assert refusal(server, environ) == f"2 {message}"


def test_a_parameter_beats_its_variable_beats_the_sidecar(server: RepoServer) -> None:
    def scheduler(environ: dict[str, str], **told: Any) -> str:
        [service] = [one for one in server.generate("apps/llm", environ, **told) if one["kind"] == "InferenceService"]
        return str(service["spec"]["engine"]["leader"].get("schedulerName", ""))

    sidecar = {"POSTRENDER_SCHEDULER_NAME": "sidecar"}
    variable = {"ARGOCD_ENV_POSTRENDER_SCHEDULER_NAME": "variable", **sidecar}
    assert scheduler({}) == ""
    assert scheduler(sidecar) == "sidecar"
    assert scheduler(variable) == "variable"
    assert scheduler(variable, scheduler_name="parameter") == "parameter"
    assert scheduler({**variable, "ARGOCD_ENV_POSTRENDER_SCHEDULER_NAME": ""}) == "sidecar"


def test_what_argo_cd_makes_of_parameters_besides_is_not_read(server: RepoServer) -> None:
    assert server.generate("apps/llm", {"PARAM_STRICT": "true", "PARAM_NONSENSE": "x"})


@pytest.mark.parametrize(
    "told",
    [{"context": ["../cluster.yaml"]}, {"accept": ["ome-not-said"]}],
)
def test_ome_may_be_known_otherwise(server: RepoServer, told: dict[str, Any]) -> None:
    cluster = "apiVersion: postrender/v1alpha1\nkind: Cluster\nspec: {omeVersion: 1.2.0}\n"
    server.write(apps__cluster_yaml=f"{RUNTIME}---\n{cluster}")
    server.write(apps__llm__isvc_yaml=SERVICE.replace("spec: {", "spec: {runtime: {name: rt}, "))
    found = objects(server.run("apps/llm", server.environ("apps/llm", parameters(told))))
    assert group(found)["metadata"]["name"] == (GROUP if "context" in told else "llm-engine-0")


def test_a_context_that_does_not_say_which_ome_is_not_enough(server: RepoServer) -> None:
    server.write(runtimes_yaml=RUNTIME)
    with pytest.raises(Refused) as refused:
        server.run("apps/llm", server.environ("apps/llm", parameters({"context": ["/runtimes.yaml"]})))
    assert refused.value.code == 1
    assert refused.value.first.startswith("postrender: error: which OME runs these is not said; ")


# -- files -----------------------------------------------------------------------------------------------------------

PATHS = [
    ("..", "2 parameter context: '..' leads out of the repository", 3),
    ("../../../x", "2 parameter context: '../../../x' leads out of the repository", 1),
    ("/../x", "2 parameter context: '/../x' leads out of the repository", 1),
    ("x.yaml", "4 parameter context: 'x.yaml': there is no such file in the repository", 1),
    ("file:///etc/passwd", "2 parameter context: 'file:///etc/passwd' is an address; only files of the repository are read", 1),
    ("out.yaml", "2 parameter context: 'out.yaml' leads out of the repository", 1),
    ("isvc.yaml,out.yaml", "2 parameter context: 'out.yaml' leads out of the repository", 1),
    ("a\0b", r"2 parameter context: 'a\x00b' is no path", 1),
    ("../linked", "4 ../linked/out.yaml: is a link that leads out of the repository; replace it by a file", 1),
]  # fmt: skip


@pytest.mark.parametrize(("path", "message", "deep"), PATHS)
def test_paths_that_lead_out(server: RepoServer, tmp_path: pathlib.Path, path: str, message: str, deep: int) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text(RUNTIME)
    (server.repository / "apps/linked").mkdir()
    for name in ("apps/llm/out.yaml", "apps/linked/out.yaml"):
        (server.repository / name).symlink_to(secret)
    assert refusal(server, context=["/".join([path] * deep)]) == message.replace("'..'", f"{'/'.join(['..'] * deep)!r}")


def test_a_link_that_leads_out_is_refused_wherever_it_stands(server: RepoServer, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").mkdir()
    (server.repository / "apps/llm/deep").mkdir()
    (server.repository / "apps/llm/deep/charts").symlink_to(tmp_path / "secret")
    assert refusal(server) == "4 deep/charts: is a link that leads out of the repository; replace it by a file"


def test_a_context_is_read_from_the_repository_and_named_as_it_is_seen(server: RepoServer) -> None:
    server.write(runtimes__rt_yaml=RUNTIME, apps__llm__isvc_yaml=SERVICE.replace("spec: {", "spec: {runtime: {name: rt}, ").replace(", worker: {size: 1}", ""))  # fmt: skip
    for path in ("/runtimes", "../../runtimes/rt.yaml"):
        assert group(server.generate("apps/llm", context=[path]))["spec"]["minMember"] == 5
    server.write(runtimes__rt_yaml=RUNTIME.replace("4", "many"))
    assert refusal(server, context=["/runtimes"]).startswith("1 ../../runtimes/rt.yaml:4:50: ")


ROOTS = [
    ("/w/1/apps/llm", "apps/llm", "/w/1"),
    ("/w/1/apps/llm", "./apps//llm/", "/w/1"),
    ("/w/1", ".", "/w/1"),
    ("/w/1", "", "/w/1"),
    # Argo CD sent only what lies below apps, or the Application alone.
    ("/w/1/llm", "apps/llm", "/w/1"),
    ("/w/1", "apps/llm", "/w/1"),
    # No other folder is taken for the root than what the path leads from.
    ("/w/1/apps/llm", "../../apps/llm", "/w/1/apps/llm"),
    ("/w/1/apps/llm", "other/app", "/w/1/apps/llm"),
    ("/w/1/xapps/llm", "apps/llm", "/w/1/xapps"),
]


@pytest.mark.parametrize(("folder", "source", "root"), ROOTS)
def test_the_root_of_the_repository(folder: str, source: str, root: str) -> None:
    assert argocd._root(folder, source) == root


# -- sources ---------------------------------------------------------------------------------------------------------


def program(server: RepoServer, name: str, prints: str) -> None:
    """Put a renderer into the sidecar that says its words and prints a manifest."""
    folder = server.work.parent / "bin"
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\necho \"# $*\"\ncat <<'END'\n{prints}\nEND\n")
    script.chmod(0o755)
    server.sidecar["PATH"] = f"{folder}:{server.sidecar['PATH']}"


@pytest.mark.parametrize(
    ("files", "told", "kind"),
    [
        (("Chart_yaml",), {}, "helm"),
        (("kustomization_yaml",), {}, "kustomize"),
        (("kustomization_yml",), {}, "kustomize"),
        ((), {}, "directory"),
        (("Chart_yaml", "kustomization_yaml"), {"source": "helm"}, "helm"),
        (("Chart_yaml", "kustomization_yaml"), {"source": "kustomize"}, "kustomize"),
        (("values_yaml",), {"source": "auto"}, "directory"),
    ],
)
def test_the_kind_of_a_source(server: RepoServer, files: tuple[str, ...], told: dict[str, str], kind: str) -> None:
    server.write(**{f"apps__llm__{name}": "kind: None\n" for name in files})
    program(server, "helm", SERVICE)
    program(server, "kustomize", SERVICE)
    server.generate("apps/llm", **told)
    assert f"<{kind}>" in server.stderr


def test_a_kustomization_by_its_oldest_name(server: RepoServer) -> None:
    (server.repository / "apps/llm/Kustomization").write_text("")
    program(server, "kustomize", SERVICE)
    server.generate("apps/llm")
    assert "<kustomize>" in server.stderr


def test_a_source_of_two_kinds_is_refused(server: RepoServer) -> None:
    server.write(apps__llm__Chart_yaml="", apps__llm__kustomization_yaml="")
    assert refusal(server) == "2 parameter source: there are Chart.yaml and kustomization.yaml; say helm or kustomize"


def test_helm_is_called_as_argo_cd_calls_it(server: RepoServer) -> None:
    server.write(apps__llm__Chart_yaml="name: x\n", values_yaml="", apps__llm__my_yaml="")
    program(server, "helm", SERVICE)
    environ = server.environ("apps/llm", parameters({
        "ome": "1.2", "values-files": ["my.yaml", "/values.yaml"], "set": {"a": "1,2"}, "set-string": {"b": "--c"},
        "skip-tests": "true", "skip-schema-validation": "true", "include-crds": "false", "kube-version": "1.30",
    }), ARGOCD_APP_NAME="team_qwen", KUBE_API_VERSIONS=f"v1,{CRD}")  # fmt: skip
    [words] = [line for line in server.run("apps/llm", environ).decode().splitlines() if line.startswith("# ")]
    [checkout] = server.work.iterdir()
    assert words == (
        f'# template --namespace=models --kube-version=1.30 --values="{checkout}/apps/llm/my.yaml"'
        f' --values="{checkout}/values.yaml" --set=a=1\\,2 --set-string=b=--c --api-versions="v1" --api-versions="{CRD}"'
        f" --skip-tests --skip-schema-validation -- qwen {checkout}/apps/llm"
    )


def test_what_the_renderer_says_comes_after_what_is_wrong(server: RepoServer) -> None:
    server.write(apps__llm__Chart_yaml="name: x\n")
    program(server, "helm", SERVICE)
    script = server.work.parent / "bin/helm"
    script.write_text(
        script.read_text() + "echo WARNING: old >&2\nprintf 'Error: it \\033[31mbroke\\nin two\\n' >&2\nexit 1\n"
    )
    assert refusal(server) == "1 helm: it \\u001b[31mbroke in two (exit code 1)"
    assert server.stderr.splitlines()[1:] == ["WARNING: old", "Error: it \\u001b[31mbroke", "in two"]


def test_warnings_do_not_hold_up_and_strict_makes_them(server: RepoServer) -> None:
    assert server.generate("apps/llm")
    assert server.stderr.startswith("postrender: warning: <directory>:6:")
    assert refusal(server, strict="true").startswith("1 <directory>:6:")
    assert server.generate(
        "apps/llm", strict="true", accept=["no-gang-scheduler", "surge-without-spare", "runtime-unresolved"]
    )
    assert server.stderr == ""


def test_a_finding_names_the_file(server: RepoServer) -> None:
    server.write(apps__llm__other_yaml=SERVICE.replace("llm", "other").replace("size: 1", 'size: "1"'))
    line = refusal(server)
    assert line.startswith("1 <directory>:12:44 ")
    assert "(other.yaml): InferenceService/other: spec.engine.worker.size: " in line


def test_what_is_no_manifest_is_left_out(server: RepoServer) -> None:
    plain = server.generate("apps/llm")
    server.write(
        apps__llm__values_yaml="workers: 1\n", apps__llm__marked_yaml="# +argocd:skip-file-rendering\nkind: [\n"
    )
    assert server.generate("apps/llm") == plain


def test_an_output_that_cannot_be_written(server: RepoServer) -> None:
    environ = server.environ("apps/llm", parameters({"ome": "1.2"}))
    for stdout, reason in (("/dev/full", "the output could not be written: No space left on device"), (None, "stdout is closed; give it a pipe or a file")):  # fmt: skip
        command = f"{SCRIPT} argocd generate >{stdout or '&-'}"
        done = subprocess.run(["sh", "-c", command], cwd=server.repository / "apps/llm", env=environ, capture_output=True, check=False)  # fmt: skip
        assert done.returncode == 4
        assert done.stderr.decode().splitlines()[-1] == f"postrender: error: {reason}"


def test_nothing_is_refused(server: RepoServer) -> None:
    server.write(apps__none__README_txt="none")
    assert refusal(server, app="apps/none") == ("1 . renders to nothing; were it deployed, all that it had deployed would be removed; check the path and its values")  # fmt: skip
    assert server.generate("apps/none", allow_empty="true") == []


@pytest.mark.parametrize(
    ("apis", "code"), [("", 0), (f"v1,{CRD}", 0), ("v1,apps/v1", 1), (",".join(f"a{n}/v1" for n in range(30_000)), 1)]
)
def test_the_list_of_apis_refuses_and_changes_nothing(server: RepoServer, apis: str, code: int) -> None:
    plain = server.generate("apps/llm")
    if code:
        assert refusal(server, {"KUBE_API_VERSIONS": apis}).endswith("[podgroup-crd-missing]")
    else:
        assert server.generate("apps/llm", {"KUBE_API_VERSIONS": apis}) == plain


@pytest.mark.parametrize(
    ("told", "environ", "wave"),
    [
        ({}, {}, "-1"),
        ({"sync-wave": "-9"}, {}, "-9"),
        ({"sync-wave": ""}, {}, None),
        ({"sync-wave": ""}, {"POSTRENDER_SYNC_WAVE": "4"}, None),
        ({}, {"POSTRENDER_SYNC_WAVE": "4"}, "4"),
        ({}, {"ARGOCD_ENV_POSTRENDER_SYNC_WAVE": "0"}, "0"),
    ],
)
def test_the_wave_of_a_podgroup(server: RepoServer, told: dict[str, str], environ: dict[str, str], wave: str) -> None:
    found = server.generate("apps/llm", environ, **told)
    assert group(found)["metadata"]["annotations"].get("argocd.argoproj.io/sync-wave") == wave
    # Nothing is written into the service's own metadata: OME copies that to the pods.
    assert found[-1]["metadata"] == {"name": "llm"}


def test_two_runs_are_one(server: RepoServer) -> None:
    environ = server.environ("apps/llm", parameters({"ome": "1.2"}))
    first = server.run("apps/llm", environ), server.stderr
    assert (server.run("apps/llm", environ), server.stderr) == first


def test_two_failures_are_one(server: RepoServer) -> None:
    """Argo CD writes them into the Application's status, and each new one is an event."""
    server.write(apps__llm__Chart_yaml="")
    program(server, "helm", "")
    script = server.work.parent / "bin/helm"
    script.write_text(
        '#!/bin/sh\nfor last; do :; done\necho "Error: $last/a of $last in ${last%/*}/b and $HOME/c" >&2\nexit 1\n'
    )
    assert refusal(server) == "1 helm: a of . in /apps/b and c (exit code 1)"
    assert server.stderr.splitlines()[1] == "Error: a of . in /apps/b and c"


def test_podgroups_are_in_sync_order_before_their_services(server: RepoServer) -> None:
    """Argo CD applies by phase, wave, kind and name; without a wave `llm` would come before `lws-llm-engine-0`."""
    found = server.generate("apps/llm")

    def order(one: Any) -> tuple[int, str]:
        wave = one["metadata"].get("annotations", {}).get("argocd.argoproj.io/sync-wave", "0")
        return int(wave), one["metadata"]["name"]

    assert [one["kind"] for one in sorted(found, key=order)] == ["PodGroup", "InferenceService"]


def test_the_installed_script(server: RepoServer) -> None:
    environ = server.environ("apps/llm", parameters({"ome": "1.2"}))
    done = subprocess.run([SCRIPT, "argocd", "generate"], cwd=server.repository / "apps/llm", env=environ, capture_output=True, check=True)  # fmt: skip
    assert done.stdout == server.run("apps/llm", environ)
    assert done.stderr.decode() == server.stderr


# -- what is announced and shipped -----------------------------------------------------------------------------------


def test_the_announcements_are_what_argo_cd_takes() -> None:
    announced = json.loads(argocd.announced())
    names = [one["name"] for one in announced]
    assert len(names) == len(set(names))
    assert {option.name for option in TABLE} - set(names) == {"namespace", "api-versions", "format"}
    assert [one["name"] for one in announced if one.get("required")] == ["ome"]
    for one in announced:
        assert one.keys() <= {"name", "title", "tooltip", "required", "itemType", "collectionType", "string"}
        assert one["title"]
        assert one["tooltip"].endswith(".")
        assert "Repeatable" not in one["tooltip"]
        assert one.get("itemType", "string") in ("string", "boolean", "number")
        assert one.get("collectionType", "string") in ("string", "array", "map")


def test_what_is_announced_as_the_default_is_what_happens(server: RepoServer) -> None:
    """The interface shows the defaults, and may hand them back."""
    of_another = {
        "recurse",
        "release-name",
        "values",
        "kube-version",
        "include-crds",
        "skip-tests",
        "skip-schema-validation",
    }
    shown = {one["name"]: one["string"] for one in json.loads(argocd.announced()) if "string" in one and one["name"] not in of_another}  # fmt: skip
    assert len(shown) > 5
    environ = server.environ("apps/llm", parameters({"ome": "1.2"}))
    plain = server.run("apps/llm", environ)
    environ = server.environ("apps/llm", parameters({"ome": "1.2", **shown}))
    assert server.run("apps/llm", environ) == plain


def test_the_plugin_file_is_up_to_date() -> None:
    assert (PLUGINS / "plugin.yaml").read_text() == argocd.plugin(), (
        "postrender argocd plugin > plugins/argocd/plugin.yaml"
    )


def load(name: str) -> Any:
    return yaml.safe_load((PLUGINS / name).read_text())


def test_the_plugin_is_usable_by_its_name_alone() -> None:
    plugin = load("plugin.yaml")
    assert plugin["kind"] == "ConfigManagementPlugin"
    assert "discover" not in plugin["spec"]
    assert plugin["spec"]["version"] == f"v{postrender.__version__}"
    assert plugin["spec"]["generate"] == {"command": ["postrender", "argocd", "generate"]}
    assert plugin["spec"]["parameters"]["static"] == json.loads(argocd.announced())
    name = f"{plugin['metadata']['name']}-{plugin['spec']['version']}"
    for path in sorted((PLUGINS / "applications").glob("*.yaml")):
        source = load(f"applications/{path.name}")["spec"]["source"]
        assert source.get("plugin", {"name": name})["name"] == name, path.name


@pytest.mark.parametrize("name", ["helm", "kustomize"])
def test_an_application_gives_parameters_that_are_taken(server: RepoServer, name: str) -> None:
    told = load(f"applications/{name}.yaml")["spec"]["source"]["plugin"]["parameters"]
    kind = {"helm": "Chart_yaml", "kustomize": "kustomization_yaml"}[name]
    server.write(**{f"apps__llm__{kind}": "name: x\n", "apps__llm__values__prod_yaml": "", "clusters__prod_yaml": ""})
    server.write(clusters__prod__runtimes_yaml=RUNTIME)
    service = SERVICE.replace("spec: {", "spec: {runtime: {name: rt}, ")
    program(server, name, service if name == "kustomize" else f"{RUNTIME}---\n{service}")
    found = objects(server.run("apps/llm", server.environ("apps/llm", told)))
    assert {"PodGroup", "InferenceService"} <= {one["kind"] for one in found}
    assert server.stderr == ""


def test_the_patch_and_the_values_of_the_chart_say_the_same() -> None:
    patch, values = load("sidecar.yaml")["spec"]["template"]["spec"], load("argo-helm-values.yaml")
    [ours], [theirs] = patch["containers"], values["repoServer"]["extraContainers"]
    mounts = [{one["mountPath"] for one in container.pop("volumeMounts")} for container in (ours, theirs)]
    assert ours == theirs
    assert mounts[0] == mounts[1]
    assert values["configs"]["cm"] == load("argocd-cm.yaml")["data"]
    [(name, plugin)] = values["configs"]["cmp"]["plugins"].items()
    whole = load("plugin.yaml")
    assert (name, plugin["version"], plugin["generate"]) == ("postrender", whole["spec"]["version"], whole["spec"]["generate"])  # fmt: skip
    assert plugin["parameters"] == {"dynamic": {"command": ["postrender", "argocd", "parameters"]}}


# -- health ----------------------------------------------------------------------------------------------------------


def condition(kind: str, status: str, message: str | None = None) -> dict[str, str]:
    return {"type": kind, "status": status, **({"message": message} if message else {})}


def lifecycle(**components: str) -> dict[str, Any]:
    return {name: {"lifecycle": {"conditions": [condition("GangSchedulingUnavailable", status, "no CRD")]}} for name, status in components.items()}  # fmt: skip


READY = condition("Ready", "True")
SERVICE_HEALTH = "resource.customizations.health.ome.io_InferenceService"
SERVICES = [
    (None, "Progressing", "OME has not looked at it yet"),
    ({}, "Progressing", "waits for Ready"),
    ({"conditions": []}, "Progressing", "waits for Ready"),
    ({"modelStatus": {"transitionStatus": "BlockedByFailedLoad", "lastFailureInfo": {"message": "no weights"}}}, "Degraded", "no weights"),
    ({"modelStatus": {"transitionStatus": "BlockedByFailedLoad"}, "conditions": [READY]}, "Degraded", "BlockedByFailedLoad"),
    ({"modelStatus": {"transitionStatus": "InvalidSpec", "lastFailureInfo": {}}}, "Degraded", "InvalidSpec"),
    ({"modelStatus": {"transitionStatus": "InProgress"}, "conditions": [READY]}, "Healthy", "ready"),
    ({"conditions": [READY, condition("EngineReady", "True"), condition("IngressReady", "True")]}, "Healthy", "ready"),
    ({"conditions": [READY], "observedGeneration": 99}, "Healthy", "ready"),
    # Ready does not wait for the decoder.
    ({"conditions": [READY, condition("EngineReady", "True"), condition("DecoderReady", "False")]}, "Progressing", "waits for DecoderReady"),
    ({"conditions": [condition("RouterReady", "Unknown"), condition("EngineReady", "False"), READY]}, "Progressing", "waits for EngineReady, RouterReady"),
    ({"conditions": [READY, condition("IngressReady", "False")]}, "Healthy", "ready"),
    ({"conditions": [condition("Ready", "False", "the route is missing")]}, "Progressing", "the route is missing"),
    ({"conditions": [condition("Ready", "Unknown")]}, "Progressing", "waits for Ready"),
    ({"conditions": [READY], "components": lifecycle(engine="False")}, "Healthy", "ready"),
    ({"conditions": [READY], "components": lifecycle(decoder="True", engine="True")}, "Healthy", "ready; engine: no CRD; decoder: no CRD"),
    ({"conditions": [condition("EngineReady", "False")], "components": lifecycle(engine="True")}, "Progressing", "waits for EngineReady; engine: no CRD"),
    ({"conditions": [READY], "components": {"engine": {}, "decoder": {"lifecycle": {}}}}, "Healthy", "ready"),
]  # fmt: skip
GROUP_HEALTH = "resource.customizations.health.scheduling.x-k8s.io_PodGroup"
GROUPS = [
    (None, "Healthy", ""),
    ({}, "Healthy", ""),
    ({"phase": ""}, "Healthy", ""),
    ({"phase": "Pending"}, "Healthy", "Pending"),
    ({"phase": "Running"}, "Healthy", "Running"),
    ({"phase": "Finished"}, "Healthy", "Finished"),
    ({"phase": "Scheduling"}, "Progressing", "waits for room for all of its pods"),
    ({"phase": "Unknown"}, "Progressing", "waits for room for all of its pods"),
    ({"phase": "Failed"}, "Degraded", "a pod has failed; the PodGroup controller never takes that back"),
]
HEALTH = [("argocd-cm.yaml", SERVICE_HEALTH, *row) for row in SERVICES]
HEALTH += [("argocd-cm-podgroup-health.yaml", GROUP_HEALTH, *row) for row in GROUPS]


@pytest.mark.parametrize(("file", "key", "status", "health", "message"), HEALTH)
def test_health(file: str, key: str, status: Any, health: str, message: str) -> None:
    from lupa.lua51 import LuaRuntime

    lua = LuaRuntime(register_builtins=False)
    # Argo CD opens no library but base, table and a part of os; a string has no methods.
    lua.execute("getmetatable('').__index = nil")
    for library in ("string", "math", "io", "debug", "package", "require", "coroutine", "os"):
        lua.globals()[library] = None
    lua.globals().obj = lua.table_from({} if status is None else {"status": status}, recursive=True)
    answer = lua.execute(load(file)["data"][key])
    assert dict(answer) == {"status": health, "message": message}


def test_the_settings_are_the_ones_that_argo_cd_knows() -> None:
    assert set(load("argocd-cm.yaml")["data"]) == {
        SERVICE_HEALTH,
        "resource.customizations.ignoreResourceUpdates.scheduling.x-k8s.io_PodGroup",
    }
    assert set(load("argocd-cm-podgroup-health.yaml")["data"]) == {GROUP_HEALTH}
    updates = load("argocd-cm.yaml")["data"][
        "resource.customizations.ignoreResourceUpdates.scheduling.x-k8s.io_PodGroup"
    ]
    assert yaml.safe_load(updates) == {"jsonPointers": ["/status"]}


def test_misuse_is_said_in_one_line() -> None:
    with pytest.raises(Misuse):
        argocd.parameters.read({"ARGOCD_APP_PARAMETERS": "1"})
