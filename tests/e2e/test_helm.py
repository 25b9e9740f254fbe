"""Behind the real Helm, 3 and 4: what `helm template` prints with us as its post-renderer, held against what it prints
without us.

Without us is no post-renderer under Helm 3, and one that is `cat` under Helm 4, which rewrites every manifest as soon as
there is one. Both are read by Go's rules, as Helm reads them.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from postrender import render
from tests.oracles.client import Oracle, exact

ROOT = pathlib.Path(__file__).parents[2]
BIN = ROOT / ".programs/bin"
CHARTS = pathlib.Path(__file__).parent / "charts"
SCRIPTS = pathlib.Path(sys.executable).parent
SCRIPT = SCRIPTS / "postrender"

VERSIONS = ("3.17", "3.19", "4.1", "4.2", "4.3")
FOURS = tuple(version for version in VERSIONS if version.startswith("4"))
LABEL = "scheduling.x-k8s.io/pod-group"


def run(*words: str | pathlib.Path, environ: dict[str, str], **how: Any) -> subprocess.CompletedProcess[str]:
    # Bytes are decoded here: text mode would make LF of CRLF.
    done = subprocess.run(words, capture_output=True, env=environ, timeout=120, check=False, **how)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def ours(*words: str, environ: dict[str, str], stdin: str = "") -> subprocess.CompletedProcess[str]:
    return run(SCRIPT, *words, environ=environ, input=stdin.encode())


@functools.cache
def plugin_path() -> str:
    return ours("helm-plugin", "path", environ={}).stdout.rstrip("\n")


class Helm:
    """One Helm with folders of its own; nothing of the machine's is on its PATH but what stands beside our script."""

    def __init__(self, version: str, folder: pathlib.Path) -> None:
        self.version = version
        self.four = version.startswith("4")
        self.program = BIN / f"helm-{version}"
        self.environ = {"PATH": str(SCRIPTS), "HOME": str(folder / "home")}
        for name in ("DATA", "CACHE", "CONFIG"):
            self.environ[f"HELM_{name}_HOME"] = str(folder / name.lower())
        self.plugins = folder / "data/plugins"

    def run(
        self, *words: str | pathlib.Path, cwd: pathlib.Path | None = None, **environ: str
    ) -> subprocess.CompletedProcess[str]:
        return run(self.program, *words, environ={**self.environ, **environ}, cwd=cwd)

    def template(
        self,
        chart: str | pathlib.Path,
        *words: str | pathlib.Path,
        renderer: str = "postrender",
        cwd: pathlib.Path | None = None,
        **environ: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run `helm template`; a chart by name is one of ours, and an empty renderer is none."""
        post = ["--post-renderer", renderer] if renderer else []
        return self.run("template", "release", CHARTS / chart, *post, *words, cwd=cwd, **environ)

    def without(self, chart: str | pathlib.Path, *words: str | pathlib.Path) -> str:
        """Return what it prints without us."""
        done = self.template(chart, *words, renderer="cat" if self.four else "")
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def rendered(self, chart: str | pathlib.Path, *words: str | pathlib.Path, **how: Any) -> str:
        """Return what it prints with us; there is nothing on stderr, for Helm hides what a post-renderer says there."""
        done = self.template(chart, *words, **how)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def write_plugin(folder: pathlib.Path, name: str, command: str, *words: str) -> None:
    lines = ["apiVersion: v1", "type: postrenderer/v1", f"name: {name}", "version: 0.0.1", "runtime: subprocess"]
    lines += ["runtimeConfig:", "  platformCommand:", f"  - command: {command}", f"    args: {json.dumps(words)}", ""]
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("\n".join(lines))


@pytest.fixture(scope="module", autouse=True)
def programs() -> None:
    for version in VERSIONS:
        assert (BIN / f"helm-{version}").exists(), "run 'make e2e': it brings the Helms"


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running


@pytest.fixture(scope="module")
def helms(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Helm]:
    """Return every Helm; those of 4 find our plugin as it is shipped, and one that is `cat`."""
    made = {}
    cat = shutil.which("cat")
    assert cat is not None
    for version in VERSIONS:
        folder = tmp_path_factory.mktemp(f"helm-{version}-")
        made[version] = Helm(version, folder)
        if made[version].four:
            write_plugin(folder / "plugins/cat", "cat", cat)
            made[version].environ["HELM_PLUGINS"] = f"{plugin_path()}{os.pathsep}{folder / 'plugins'}"
    return made


@pytest.fixture(params=VERSIONS)
def helm(request: pytest.FixtureRequest, helms: dict[str, Helm]) -> Helm:
    return helms[request.param]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_the_helm_it_is_called(helms: dict[str, Helm], version: str) -> None:
    assert helms[version].run("version", "--template", "{{.Version}}").stdout.startswith(f"v{version}.")


class Document(NamedTuple):
    """A document as Helm prints it: the template it says it is from, its text, and its value by Go's rules."""

    source: str
    text: str
    value: Any


def documents(stdout: str, oracle: Oracle) -> list[Document]:
    """Return the documents of what Helm prints, whose cut must be kubectl's."""
    nothing, *parts = re.split(r"^---\n# Source: (.*)\n", stdout, flags=re.MULTILINE)
    assert nothing.strip() == ""
    found = [Document(source, text, oracle.sigs(text)) for source, text in zip(parts[::2], parts[1::2], strict=True)]
    values = [one for one in oracle.sigs_all(stdout) if one is not None]
    assert exact(values) == exact([one.value for one in found if one.value is not None])
    return found


def name(value: Any) -> str:
    return "nothing" if value is None else f"{value['kind']}/{value.get('metadata', {}).get('name', '')}"


class Gang(NamedTuple):
    """A gang that a chart has; `hook` is whether its service is one, which Helm 3 does not hand to a post-renderer."""

    service: str
    size: int = 2
    component: str = "engine"
    namespace: str = ""
    annotations: tuple[tuple[str, str], ...] = ()
    hook: bool = False

    def pod_group(self) -> dict[str, Any]:
        """Return the PodGroup, as the design has it."""
        return {
            "apiVersion": "scheduling.x-k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {
                "name": f"{self.service}-{self.component}-0",
                **({"namespace": self.namespace} if self.namespace else {}),
                "labels": {
                    "component": self.component,
                    "ome.io/inferenceservice": self.service,
                    "ome.io/instance-index": "0",
                    "ome.io/managed-by": "OMENative",
                },
                "annotations": {
                    "postrender/for": f"InferenceService/{self.service}",
                    **dict(self.annotations),
                },
            },
            "spec": {"minMember": self.size, "scheduleTimeoutSeconds": 600},
        }


def ganged(value: Any, gangs: dict[str, list[Gang]]) -> list[Any]:
    """Return what is to become of an object: the PodGroups that its gangs need, and itself with their labels."""
    if value is not None and value["kind"] == "List":
        return [{**value, "items": [one for item in value["items"] for one in ganged(item, gangs)]}]
    mine = gangs.get(value["metadata"]["name"], []) if name(value).startswith("InferenceService/") else []
    changed = copy.deepcopy(value)
    for gang in mine:
        component = changed["spec"][gang.component]
        component.setdefault("labels", {})[LABEL] = f"{gang.service}-{gang.component}-0"
    return [*(gang.pod_group() for gang in mine), changed]


def by_service(gangs: tuple[Gang, ...], helm: Helm) -> dict[str, list[Gang]]:
    held: dict[str, list[Gang]] = {}
    for gang in gangs:
        if helm.four or not gang.hook:
            held.setdefault(gang.service, []).append(gang)
    return held


def check(helm: Helm, oracle: Oracle, gangs: tuple[Gang, ...], without: str, with_us: str) -> list[Document]:
    """Hold what Helm prints with us against what it prints without us; return the documents."""
    before, after = documents(without, oracle), documents(with_us, oracle)
    held = by_service(gangs, helm)
    wanted = [(one.source, exact(value)) for one in before for value in ganged(one.value, held)]
    found = [(one.source, exact(one.value)) for one in after]
    if helm.four:  # which sorts what we give it
        assert sorted(found) == sorted(wanted)
    else:
        assert found == wanted
    # What need not change is the same text too, but for line breaks at its end, where Helms differ.
    texts = [(one.source, one.text.rstrip("\n")) for one in after]
    for one in before:
        if ganged(one.value, held) == [one.value]:
            assert (one.source, one.text.rstrip("\n")) in texts
    # Helm 4 names by annotations where an object is from; what has none becomes generated-by-….
    for word in ("postrenderer.helm.sh", "generated-by", "config.kubernetes.io"):
        assert word not in with_us
    return after


class Row(NamedTuple):
    """A chart and what Helm is told, the gangs in it, and in which order Helm 4 prints it all."""

    chart: str
    gangs: tuple[Gang, ...]
    order: str
    words: tuple[str, ...] = ()


QWEN = (Gang("qwen"),)
PLAIN = (Gang("qwen", namespace="prod"), Gang("pair", 4), Gang("pair", 8, "decoder"))
PLAIN_ORDER = """
    config.yaml ConfigMap/settings
    web.yaml Service/web
    web.yaml Deployment/web
    isvc.yaml InferenceService/qwen
    isvc.yaml InferenceService/small
    isvc.yaml InferenceService/pair
    isvc.yaml PodGroup/qwen-engine-0
    isvc.yaml PodGroup/pair-engine-0
    isvc.yaml PodGroup/pair-decoder-0
    widget.yaml Widget/values
"""
IN_PROD = ("--namespace", "prod")
PROBE = Gang(
    "probe",
    annotations=(
        ("helm.sh/hook", "post-install,post-upgrade"),
        ("helm.sh/hook-weight", "4"),
        ("helm.sh/hook-delete-policy", "before-hook-creation"),
    ),
    hook=True,
)
ROWS = {
    "plain": Row("plain", PLAIN, PLAIN_ORDER, IN_PROD),
    "CRLF": Row("CRLF", PLAIN, PLAIN_ORDER, IN_PROD),
    "hooks": Row(
        "hooks",
        (*QWEN, PROBE),
        """
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        job.yaml Job/prepare
        probe.yaml InferenceService/probe
        probe.yaml PodGroup/probe-engine-0
        """,
    ),
    "no hooks": Row(
        "hooks",
        QWEN,
        """
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        """,
        ("--no-hooks",),
    ),
    "kept resource": Row(
        "kept",
        (Gang("qwen", annotations=(("helm.sh/resource-policy", "keep"),)),),
        """
        claim.yaml PersistentVolumeClaim/models
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        """,
    ),
    "subchart": Row(
        "subchart",
        (Gang("subchart"), Gang("decode")),
        """
        charts/decode/templates/config.yaml ConfigMap/decode
        charts/decode/templates/isvc.yaml InferenceService/decode
        isvc.yaml InferenceService/subchart
        charts/decode/templates/isvc.yaml PodGroup/decode-engine-0
        isvc.yaml PodGroup/subchart-engine-0
        """,
    ),
    "anchors": Row(
        "anchors",
        (*QWEN, Gang("qwen", component="decoder")),
        """
        config.yaml ConfigMap/shared
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        isvc.yaml PodGroup/qwen-decoder-0
        """,
    ),
    "flow metadata": Row(
        "flow",
        (*QWEN, Gang("json")),
        """
        config.yaml ConfigMap/flow
        isvc.yaml InferenceService/qwen
        json.yaml InferenceService/json
        isvc.yaml PodGroup/qwen-engine-0
        json.yaml PodGroup/json-engine-0
        """,
    ),
    "comments": Row(
        "comments",
        QWEN,
        """
        config.yaml ConfigMap/settings
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        """,
    ),
    "List": Row(
        "list",
        (Gang("alone"), Gang("inside")),
        """
        alone.yaml ConfigMap/first
        alone.yaml ConfigMap/last
        beside.yaml ConfigMap/beside
        alone.yaml InferenceService/alone
        beside.yaml InferenceService/inside
        alone.yaml PodGroup/alone-engine-0
        beside.yaml PodGroup/inside-engine-0
        """,
    ),
    "--show-only": Row(
        "plain",
        PLAIN,
        """
        isvc.yaml InferenceService/qwen
        isvc.yaml InferenceService/small
        isvc.yaml InferenceService/pair
        isvc.yaml PodGroup/qwen-engine-0
        isvc.yaml PodGroup/pair-engine-0
        isvc.yaml PodGroup/pair-decoder-0
        """,
        (*IN_PROD, "--show-only", "templates/isvc.yaml"),
    ),
    "--show-only of a subchart": Row(
        "subchart",
        (Gang("decode"),),
        """
        charts/decode/templates/isvc.yaml InferenceService/decode
        charts/decode/templates/isvc.yaml PodGroup/decode-engine-0
        """,
        ("--show-only", "charts/decode/templates/isvc.yaml"),
    ),
    "--include-crds": Row(
        "crds",
        QWEN,
        """
        crds/isvc.yaml CustomResourceDefinition/inferenceservices.ome.io
        isvc.yaml InferenceService/qwen
        isvc.yaml PodGroup/qwen-engine-0
        """,
        ("--include-crds",),
    ),
}
# Helm 4.1 leaves a List as it is that stands in one file with something else.
OLD_LIST = """
    alone.yaml ConfigMap/first
    alone.yaml ConfigMap/last
    beside.yaml ConfigMap/beside
    alone.yaml InferenceService/alone
    beside.yaml List/
    alone.yaml PodGroup/alone-engine-0
"""


@pytest.fixture(scope="module")
def crlf(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the plain chart, its lines ended as on Windows."""
    folder = tmp_path_factory.mktemp("crlf") / "plain"
    shutil.copytree(CHARTS / "plain", folder)
    for path in folder.rglob("templates/*"):
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return folder


@pytest.mark.parametrize("row", ROWS)
def test_a_chart_with_us_is_the_chart_without_us_and_its_gangs(
    helm: Helm, oracle: Oracle, row: str, crlf: pathlib.Path
) -> None:
    chart, gangs, order, words = ROWS[row]
    path = crlf if chart == "CRLF" else CHARTS / chart
    with_us = helm.rendered(path, *words)
    after = check(helm, oracle, gangs, helm.without(path, *words), with_us)
    if helm.four:
        base = f"{path.name}/"
        printed = [f"{one.source.removeprefix(base).removeprefix('templates/')} {name(one.value)}" for one in after]
        order = OLD_LIST if row == "List" and helm.version == "4.1" else order
        assert printed == [line.strip() for line in order.strip().split("\n")]
    # A pipe behind it finds nothing more to do. Helm 3 prints hooks that it had not handed out, a pipe sees them.
    if helm.four or row != "hooks":
        assert render(with_us.encode()).data.decode() == with_us


def test_the_pipe_instead_and_twice(helm: Helm, oracle: Oracle) -> None:
    """`helm template | postrender | postrender` deploys what `--post-renderer postrender` does."""
    rendered = helm.template("plain", *IN_PROD, renderer="").stdout
    once = ours(environ={}, stdin=rendered)
    twice = ours(environ={}, stdin=once.stdout)
    assert (once.returncode, twice.returncode, twice.stdout) == (0, 0, once.stdout)
    post_rendered = helm.rendered("plain", *IN_PROD)
    if helm.four:
        values = [sorted(exact(one.value) for one in documents(text, oracle)) for text in (once.stdout, post_rendered)]
        assert values[0] == values[1]
    else:
        assert once.stdout == post_rendered


def made_chart(folder: pathlib.Path, **templates: str) -> pathlib.Path:
    """Write a chart `made` with these templates."""
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: made\nversion: 0.1.0\n")
    for stem, text in templates.items():
        (folder / "templates" / f"{stem}.yaml").write_text(text)
    return folder


@pytest.mark.parametrize("chart", ["plain", "hooks", "kept", "anchors", "flow", "list"])
def test_a_chart_of_what_came_out_changes_nothing_more(helm: Helm, tmp_path: pathlib.Path, chart: str) -> None:
    path = made_chart(tmp_path, all=helm.rendered(chart, "--no-hooks"))
    assert helm.rendered(path) == helm.without(path)


GROUP = """\
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata:
  name: qwen-engine-0
  labels:
    component: engine
    ome.io/inferenceservice: qwen
    ome.io/instance-index: "0"
    ome.io/managed-by: OMENative
spec:
  minMember: 2
  scheduleTimeoutSeconds: 600
"""
OURS = GROUP.replace("spec:", "  annotations:\n    postrender/for: InferenceService/qwen\nspec:")


@pytest.mark.parametrize("group", [GROUP, OURS], ids=["by hand", "ours"])
def test_a_right_pod_group_in_a_template_of_its_own_is_left(
    helm: Helm, oracle: Oracle, tmp_path: pathlib.Path, group: str
) -> None:
    path = made_chart(tmp_path, group=group, isvc=(CHARTS / "hooks/templates/isvc.yaml").read_text())
    before = documents(helm.without(path), oracle)
    labelled = [ganged(one.value, {"qwen": [*QWEN]})[-1] for one in before]
    after = documents(helm.rendered(path), oracle)
    assert [(one.source, exact(one.value)) for one in after] == [
        (one.source, exact(value)) for one, value in zip(before, labelled, strict=True)
    ]


def test_the_namespace_is_the_services_own(helm: Helm) -> None:
    """Helm gives a post-renderer no namespace, only what the user has exported, which may be another."""
    words = ("plain", *IN_PROD)
    assert helm.rendered(*words, HELM_NAMESPACE="other", HELM_DEBUG="false") == helm.rendered(*words)


@pytest.mark.parametrize("version", ["3.19", "4.3"])
def test_5000_documents(helms: dict[str, Helm], oracle: Oracle, tmp_path: pathlib.Path, version: str) -> None:
    service = (CHARTS / "hooks/templates/isvc.yaml").read_text().replace("name: qwen", "name: s{{ . }}")
    settings = (CHARTS / "comments/templates/config.yaml").read_text().replace("settings", "c{{ . }}")
    text = f"{{{{- range until 1000 }}}}\n---\n{service}{{{{- end }}}}\n{{{{- range until 4000 }}}}\n---\n{settings}{{{{- end }}}}\n"
    path = made_chart(tmp_path, many=text)
    helm = helms[version]
    gangs = tuple(Gang(f"s{number}") for number in range(1000))
    after = check(helm, oracle, gangs, helm.without(path), helm.rendered(path))
    kinds = [one.value["kind"] for one in after]
    # Helm 3 takes our order, each PodGroup before its service; 4 sorts by kind.
    services = (
        ["InferenceService"] * 1000 + ["PodGroup"] * 1000 if helm.four else ["PodGroup", "InferenceService"] * 1000
    )
    assert kinds == ["ConfigMap"] * 4000 + services


# Nothing to render, and where the output does not go to us.


def hooks_only(folder: pathlib.Path) -> pathlib.Path:
    return made_chart(folder, job=(CHARTS / "hooks/templates/job.yaml").read_text())


def test_nothing_to_deploy(helm: Helm) -> None:
    words = ("plain", "--set", "enabled=false")
    assert helm.rendered(*words) == helm.template(*words, renderer="").stdout == "\n"
    if helm.four:  # an empty output is an error to it, so we write a comment
        cat = helm.template(*words, renderer="cat")
        assert (cat.returncode, cat.stderr.count('post-renderer "cat" produced empty output')) == (1, 1)
        written = ours(environ={"HELM_PLUGIN_NAME": "postrender", "HELM_PLUGIN_DIR": plugin_path()})
        assert (written.returncode, written.stdout) == (0, "# nothing to deploy\n")


def test_hooks_and_nothing_else(helm: Helm, tmp_path: pathlib.Path) -> None:
    path = hooks_only(tmp_path)
    assert helm.rendered(path) == helm.without(path)


def files(folder: pathlib.Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_output_dir(helm: Helm, oracle: Oracle, tmp_path: pathlib.Path) -> None:
    """Helm 3 writes what it has rendered, and asks a post-renderer about nothing; 4 writes what came back."""
    bare, own = tmp_path / "bare", tmp_path / "own"
    printed = helm.without("plain", *IN_PROD, "--output-dir", bare)
    said = helm.rendered("plain", *IN_PROD, "--output-dir", own)
    if not helm.four:
        assert said.replace(str(own), str(bare)) == printed
        assert files(own) == files(bare)
        return
    assert sorted(files(own)) == sorted(files(bare))
    check(helm, oracle, PLAIN, "".join(files(bare).values()), "".join(files(own).values()))
    kinds = [name(one.value) for one in documents(files(own)["plain/templates/isvc.yaml"], oracle)]
    assert kinds == [f"InferenceService/{one}" for one in ("qwen", "small", "pair")] + [
        f"PodGroup/{one}-0" for one in ("qwen-engine", "pair-engine", "pair-decoder")
    ]


def test_output_dir_with_nothing_in_it(helm: Helm, tmp_path: pathlib.Path) -> None:
    words = ("plain", "--set", "enabled=false", "--output-dir", tmp_path / "out")
    assert helm.rendered(*words) == helm.template(*words, renderer="").stdout
    assert not (tmp_path / "out").exists()


# Errors: what is wrong, with which exit code of ours, and in which words.


class Failure(NamedTuple):
    """Our exit code and what we say, and what is told to Helm and to us; `AT` is a place in the stream, `…` any words."""

    code: int
    message: str
    words: tuple[str, ...] = ()
    environ: dict[str, str] = {}  # noqa: RUF012 - never changed


FAILURES = {
    "a field of the wrong type": Failure(
        1,
        "AT (plain/templates/isvc.yaml): InferenceService/default/qwen: spec.engine.worker.size: is one, a string;"
        " write an integer without quotes [invalid-field]",
        ("--set", "size=one"),
    ),
    "a warning, strictly": Failure(
        1,
        "which OME runs these is not said; the PodGroups are those that OME documents for 1.3; say it with"
        " --ome VERSION [ome-not-said]",
        environ={
            "POSTRENDER_STRICT": "true",
            "POSTRENDER_ACCEPT": "surge-without-spare,runtime-unresolved,gang-unknown",
        },
    ),
    "an unknown flag": Failure(2, "No such option…--nonsense…", ("--post-renderer-args=--nonsense",)),
    "a value of a flag": Failure(
        2, "--spares: 'many' is not a number from 0 to 1,000", ("--post-renderer-args=--spares=many",)
    ),
    "one file more": Failure(
        2, "Got unexpected extra argument (b)", ("--post-renderer-args=a.yaml", "--post-renderer-args=b")
    ),
    "a file that is missing": Failure(
        4, "missing.yaml cannot be read: No such file or directory", ("--post-renderer-args=missing.yaml",)
    ),
    "an unknown variable": Failure(
        2, "POSTRENDER_SPARE: there is no such option; did you mean POSTRENDER_SPARES?", (), {"POSTRENDER_SPARE": "1"}
    ),
    "a value of a variable": Failure(
        2, "POSTRENDER_SPARES: 'many' is not a number from 0 to 1,000", (), {"POSTRENDER_SPARES": "many"}
    ),
    "a missing context": Failure(
        4,
        "--context: missing.yaml cannot be read: No such file or directory",
        ("--post-renderer-args=--context", "--post-renderer-args=missing.yaml"),
    ),
    "a missing context of the environment": Failure(
        4,
        "POSTRENDER_CONTEXT: missing.yaml cannot be read: No such file or directory",
        (),
        {"POSTRENDER_CONTEXT": "missing.yaml"},
    ),
    "a missing config": Failure(
        4,
        "POSTRENDER_CONFIG: missing.yaml cannot be read: No such file or directory",
        (),
        {"POSTRENDER_CONFIG": "missing.yaml"},
    ),
}


def check_failure(helm: Helm, done: subprocess.CompletedProcess[str], code: int, message: str) -> None:
    """Hold what a Helm says against the message that it should show: 3 shows all that we say, 4 the first line."""
    assert (done.returncode, done.stdout) == (1, "")
    pattern = re.escape(message).replace("AT", r"<stdin>:\d+:\d+").replace("…", ".*")
    hint = "\n\nUse --debug flag to render out invalid YAML\n"
    if helm.four:
        head = "Error: error while parsing post rendered output: error parsing YAML: invalid document separator: ---"
        assert re.fullmatch(re.escape(f"{head}postrender: error: ") + pattern + re.escape(hint), done.stderr)
    else:
        head = f"Error: error while running post render on files: error while running command {SCRIPT}. error output:\n"
        assert done.stderr.startswith(head)
        assert done.stderr.endswith(f"\n: exit status {code}{hint}")
        lines = done.stderr.removeprefix(head).split("\n")
        assert any(re.fullmatch(f"postrender: error: {pattern}", line) for line in lines)


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_shown(helm: Helm, tmp_path: pathlib.Path, failure: str) -> None:
    code, message, words, environ = FAILURES[failure]
    check_failure(helm, helm.template("plain", *words, cwd=tmp_path, **environ), code, message)


def test_a_stream_that_cannot_be_read_is_shown(helm: Helm, tmp_path: pathlib.Path) -> None:
    """What Helm's own reader takes, and libyaml does not: a thousand levels."""
    service = (CHARTS / "hooks/templates/isvc.yaml").read_text()
    path = made_chart(tmp_path, deep=f"{service}    extra: {'[' * 1100}{']' * 1100}\n")
    message = "AT (made/templates/deep.yaml): not valid YAML: exceeded maximum nesting depth; fix the template that made it [unreadable]"
    check_failure(helm, helm.template(path), 1, message)


@pytest.mark.parametrize("form", ["json", "github"])
def test_a_failure_in_another_form_is_shown(helm: Helm, form: str) -> None:
    done = helm.template("plain", "--set", "size=one", POSTRENDER_FORMAT=form)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = [
        line.partition("separator: ---")[2] if helm.four else line
        for line in done.stderr.split("\n")
        if "invalid-field" in line
    ]
    if form == "json":
        assert json.loads(line)["message"] == "is one, a string"
    else:
        assert line.startswith("::error title=postrender invalid-field::plain/templates/isvc.yaml, line ")


def test_a_long_failure_is_cut_under_helm_4(helm: Helm) -> None:
    done = helm.template("plain", POSTRENDER_CONFIG="x" * 3000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("x" * (900 - len("postrender: error: POSTRENDER_CONFIG: ") if helm.four else 3000)) == 1


def test_a_failure_about_a_name_that_is_no_text_is_shown(helm: Helm) -> None:
    done = helm.template("plain", POSTRENDER_CONFIG="missing-\udcff.yaml")
    assert done.returncode == 1
    assert re.search(
        r"postrender: error: POSTRENDER_CONFIG: missing-.* cannot be read: No such file or directory", done.stderr
    )


# Options: from Helm's flag, the plugin's file, the environment, a config file.


def groups(stdout: str) -> list[str]:
    return re.findall(r"^kind: PodGroup\nmetadata:\n  name: (.*)$", stdout, re.MULTILINE)


def counted(number: int) -> list[str]:
    """Return the PodGroups of one gang and its spares."""
    return [f"qwen-engine-{index}" for index in range(number)]


def args(*words: str) -> tuple[str, ...]:
    return tuple(f"--post-renderer-args={word}" for word in words)


ARGUMENTS = {
    "none": ((), 1),
    "an empty one": (args(""), 1),
    "an empty one, apart": (("--post-renderer-args", ""), 1),
    "empty ones": (args("", ""), 1),
    "with =": (args("--spares=1"), 2),
    "two words": (args("--spares", "1"), 2),
    "apart": (("--post-renderer-args", "--spares", "--post-renderer-args", "1"), 2),
    "empty ones between": (args("", "--spares", "", "1", ""), 2),
    "a command": (args("render", "--spares=1"), 2),
    "stdin by name": (args("--spares=1", "-"), 2),
    "a comma": (args("--accept=ome-not-said,runtime-unresolved"), 1),
    "nothing is left to us": (args("--ome=1.3"), 0),
}


@pytest.mark.parametrize("words", ARGUMENTS)
def test_arguments(helm: Helm, words: str) -> None:
    given, number = ARGUMENTS[words]
    assert groups(helm.rendered("kept", *given)) == counted(number)


def test_arguments_before_the_post_renderer(helm: Helm) -> None:
    done = helm.template("kept", *args("--spares=1"), "--post-renderer=postrender", renderer="")
    assert (done.returncode, groups(done.stdout)) == (0, counted(2))


@pytest.mark.parametrize("version", FOURS)
@pytest.mark.parametrize(
    ("written", "more", "number"),
    [
        (("${UNSET}",), (), 1),
        (("${UNSET}", ""), args(""), 1),
        (("${UNSET}",), args("--spares=1"), 2),
        (("${UNSET}", "--spares=1", "$UNSET"), (), 2),
        (("render", "${UNSET}"), args("--spares=1"), 2),
        (("--spares=${SPARES}",), (), 3),
    ],
)
def test_arguments_of_a_plugin(
    helms: dict[str, Helm],
    tmp_path: pathlib.Path,
    version: str,
    written: tuple[str, ...],
    more: tuple[str, ...],
    number: int,
) -> None:
    """A plugin.yaml somebody wrote themselves; what is not set becomes an empty word."""
    write_plugin(tmp_path / "postrender", "postrender", "postrender", *written)
    environ = {"HELM_PLUGINS": str(tmp_path), "SPARES": "2"}
    assert groups(helms[version].rendered("kept", *more, **environ)) == counted(number)


SETTINGS = {
    "environment": ({"POSTRENDER_SPARES": "1"}, (), 2),
    "an empty variable": ({"POSTRENDER_SPARES": "", "POSTRENDER_CONFIG": ""}, (), 1),
    "config": ({"POSTRENDER_CONFIG": "config.yaml"}, (), 3),
    "config by flag": ({}, args("--config=config.yaml"), 3),
    "environment before config": ({"POSTRENDER_CONFIG": "config.yaml", "POSTRENDER_SPARES": "1"}, (), 2),
    "flag before environment": ({"POSTRENDER_SPARES": "1"}, args("--spares=3"), 4),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_options_from_the_environment_and_a_config_file(helm: Helm, tmp_path: pathlib.Path, setting: str) -> None:
    """Helm runs us where it was run, so a path may be relative."""
    (tmp_path / "config.yaml").write_text("spares: 2\n")
    environ, words, number = SETTINGS[setting]
    assert groups(helm.rendered("kept", *words, cwd=tmp_path, **environ)) == counted(number)


RUNTIME = """
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: two-nodes}
spec: {engineConfig: {leader: {}, worker: {size: 1}}}
"""


def test_a_context_beside_the_config_file(helm: Helm, oracle: Oracle, tmp_path: pathlib.Path) -> None:
    (tmp_path / "cluster").mkdir()
    (tmp_path / "cluster/config.yaml").write_text("context: [runtimes]\nscheduler-name: ome-scheduler\n")
    (tmp_path / "cluster/runtimes").mkdir()
    (tmp_path / "cluster/runtimes/two.yaml").write_text(RUNTIME)
    with_us = helm.rendered("plain", *IN_PROD, cwd=tmp_path, POSTRENDER_CONFIG="cluster/config.yaml")
    assert sorted(groups(with_us)) == ["pair-decoder-0", "pair-engine-0", "qwen-engine-0", "small-engine-0"]
    values = {name(one.value): one.value for one in documents(with_us, oracle)}
    assert values["InferenceService/qwen"]["spec"]["engine"] == {
        "leader": {"schedulerName": "ome-scheduler"},
        "worker": {"size": 1, "schedulerName": "ome-scheduler"},
        "labels": {LABEL: "qwen-engine-0"},
    }
    assert not [value for value in values.values() if value["kind"] == "ClusterServingRuntime"]


# Putting the plugin where a Helm 4 looks.


class Machine(NamedTuple):
    """A Helm 4 by the name of helm, on a PATH with our script, and nothing installed."""

    helm: Helm
    bin: pathlib.Path

    def put(self, called: str, version: str, **environ: str) -> None:
        """Put another Helm on PATH, with variables of its own."""
        lines = [f"export {key}='{value}'" for key, value in environ.items()]
        script = "\n".join(["#!/bin/sh", *lines, f'exec "{BIN}/helm-{version}" "$@"', ""])
        (self.bin / called).write_text(script)
        (self.bin / called).chmod(0o755)

    def install(self, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return ours("helm-plugin", "install", *words, environ={**self.helm.environ, **environ})

    @property
    def place(self) -> pathlib.Path:
        return self.helm.plugins / "postrender"


@pytest.fixture(params=FOURS)
def machine(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> Machine:
    made = Machine(Helm(request.param, tmp_path), tmp_path / "bin")
    made.bin.mkdir()
    (made.bin / "helm").symlink_to(made.helm.program)
    made.helm.environ["PATH"] += os.pathsep + str(made.bin)
    return made


def said(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of an error."""
    assert (done.returncode, done.stdout) == (1, "")
    line = re.fullmatch(r"postrender: error: (.*)\n", done.stderr)
    assert line is not None, done.stderr
    return line[1]


def test_the_plugin_installed_by_helm(machine: Machine) -> None:
    done = machine.helm.run("plugin", "install", plugin_path())
    assert (done.returncode, machine.place.is_symlink()) == (0, True)
    assert groups(machine.helm.rendered("kept")) == counted(1)
    again = machine.helm.run("plugin", "install", plugin_path())
    assert again.returncode == 1
    assert again.stderr.endswith("Error: plugin already exists\n")
    ours_then = machine.install()
    assert (ours_then.returncode, ours_then.stdout) == (0, f"{machine.place} is there already\n")


@pytest.mark.parametrize("more", ["", "{rest}/other:", "{parent}"])
def test_the_plugin_found_by_helm_plugins(machine: Machine, more: str, tmp_path: pathlib.Path) -> None:
    """The folder itself, among others, and the folder above it."""
    path = plugin_path()
    found = str(pathlib.Path(path).parent) if more == "{parent}" else more.replace("{rest}", str(tmp_path)) + path
    assert groups(machine.helm.rendered("kept", HELM_PLUGINS=found)) == counted(1)


def test_no_plugin_no_post_renderer(machine: Machine) -> None:
    done = machine.helm.template("kept")
    assert done.returncode == 1
    assert "plugin: {Name:postrender Type:postrenderer/v1} not found" in done.stderr


def test_install(machine: Machine) -> None:
    done = machine.install()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{machine.place} installed; use it as --post-renderer postrender\n"
    assert groups(machine.helm.rendered("kept")) == counted(1)
    listed = machine.helm.run("plugin", "list").stdout.splitlines()
    assert listed[1].split()[::2][:2] == ["postrender", "postrenderer/v1"]
    before = files(machine.helm.plugins)
    again = machine.install()
    assert (again.returncode, again.stdout, again.stderr) == (0, f"{machine.place} is there already\n", "")
    assert (
        files(machine.helm.plugins)
        == before
        == {"postrender/plugin.yaml": pathlib.Path(plugin_path(), "plugin.yaml").read_text()}
    )


def test_install_for_a_helm_by_path_where_helm_plugins_says(machine: Machine, tmp_path: pathlib.Path) -> None:
    (machine.bin / "helm").unlink()
    folder = tmp_path / "of its own"
    done = machine.install("--helm", str(machine.helm.program), HELM_PLUGINS=str(folder))
    assert (done.returncode, [*files(folder)]) == (0, ["postrender/plugin.yaml"])
    assert groups(machine.helm.rendered("kept", HELM_PLUGINS=str(folder))) == counted(1)


def test_install_over_an_older_plugin_of_ours(machine: Machine) -> None:
    write_plugin(machine.place, "postrender", "somewhere-else")
    assert machine.install().returncode == 0
    assert groups(machine.helm.rendered("kept")) == counted(1)


@pytest.mark.parametrize("version", ["3.17", "3.19"])
def test_install_refuses_a_helm_3(machine: Machine, version: str) -> None:
    machine.put("helm3", version)
    line = said(machine.install("--helm", "helm3"))
    assert line.startswith(f"{machine.bin}/helm3 is Helm v{version}.")
    assert "which needs no plugin: use --post-renderer postrender;" in line
    assert not machine.helm.plugins.exists()


@pytest.mark.parametrize("called", ["helm3", "helm-3.19", "helm_v3"])
def test_install_refuses_a_folder_that_a_helm_3_reads_too(machine: Machine, called: str) -> None:
    machine.put(called, "3.19")
    line = said(machine.install())
    assert line.startswith(f"{machine.bin}/{called} is Helm v3.19.0 and reads {machine.helm.plugins} too: ")
    assert not machine.helm.plugins.exists()


def test_what_install_spares_a_helm_3(machine: Machine, tmp_path: pathlib.Path) -> None:
    """All its own plugins are gone beside one for Helm 4; what is built in works, with a line on stderr."""
    write_plugin(machine.place, "postrender", "postrender")
    (machine.helm.plugins / "hello").mkdir()
    (machine.helm.plugins / "hello/plugin.yaml").write_text('name: hello\nversion: 0.1.0\ncommand: "/bin/echo hello"\n')
    three = Helm("3.19", tmp_path)
    lost = three.run("hello")
    assert (lost.returncode, lost.stdout) == (1, "")
    assert 'json: unknown field "apiVersion"' in lost.stderr
    done = three.template("kept")
    assert (done.returncode, groups(done.stdout)) == (0, counted(1))
    assert done.stderr.startswith("failed to load plugins: ")
    shutil.rmtree(machine.place)
    assert three.run("hello").stdout == "hello\n"


def test_install_beside_a_helm_3_with_another_folder(machine: Machine, tmp_path: pathlib.Path) -> None:
    machine.put("helm3", "3.19", HELM_PLUGINS=str(tmp_path / "three"))
    assert machine.install().returncode == 0
    assert groups(machine.helm.rendered("kept")) == counted(1)


def test_what_the_refusal_says_to_do_helps(machine: Machine, tmp_path: pathlib.Path) -> None:
    machine.put("helm3", "3.19")
    assert "set HELM_PLUGINS, for Helm 4 alone, to a folder of its own, and install again" in said(machine.install())
    assert machine.install(HELM_PLUGINS=str(tmp_path / "four")).returncode == 0
    assert groups(machine.helm.rendered("kept", HELM_PLUGINS=str(tmp_path / "four"))) == counted(1)


def test_install_leaves_somebody_elses_plugin(machine: Machine) -> None:
    write_plugin(machine.place, "other", "other")
    before = files(machine.place)
    assert said(machine.install()) == f"{machine.place} holds another plugin; remove it first"
    assert files(machine.place) == before


def test_install_leaves_what_is_no_plugin(machine: Machine) -> None:
    machine.place.mkdir(parents=True)
    assert said(machine.install()) == f"{machine.place} is there and is no plugin; remove it first"
    assert files(machine.place) == {}


def test_install_without_a_helm(machine: Machine) -> None:
    (machine.bin / "helm").unlink()
    assert said(machine.install()) == "helm: there is no such program; name a Helm 4 with --helm"


def test_install_where_helm_would_not_find_us(machine: Machine) -> None:
    line = said(machine.install(PATH=str(machine.bin)))
    assert line == "postrender is not on PATH, where the plugin looks for it; add its folder to PATH"
    assert not machine.helm.plugins.exists()
