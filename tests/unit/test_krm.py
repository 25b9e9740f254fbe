"""The KRM function as its callers see it: what comes back when something goes wrong, what it may read, and how much it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from postrender.findings import SEVERITIES, Finding, Place, Ref
from postrender.hosts import krm
from postrender.hosts.joined import join
from postrender.options import Form, Source
from postrender.views import schema
from postrender.views.results import MOST, Origin, results
from tests import within
from tests.unit.test_filter import BROKEN, SERVICE

SCRIPT = Path(sys.executable).with_name("postrender")
HEAD = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n"
LOUD = ("surge-without-spare", "runtime-unresolved", "ome-not-said")  # what is said of SERVICE


def listed(*documents: bytes, config: str = "{}") -> bytes:
    items = b"".join(b"- " + document.replace(b"\n", b"\n  ")[:-2] for document in documents)
    return HEAD + b"functionConfig: " + config.encode() + b"\nitems:\n" + items


def gangs(**spec: Any) -> str:
    return json.dumps({"apiVersion": "postrender/v1alpha1", "kind": "Gangs", "metadata": {"name": "g"}, "spec": spec})


def run(data: bytes, *words: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return within.run(*words, data=data, **more)


def said(output: bytes) -> list[dict[str, Any]]:
    return list(yaml.safe_load(output).get("results", []))


# -- what comes back


@pytest.mark.parametrize("words", [(), ("krm",)])
def test_the_command_is_what_a_list_on_stdin_is(words: tuple[str, ...]) -> None:
    done = subprocess.run([SCRIPT, *words], input=listed(SERVICE), capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert [one["kind"] for one in yaml.safe_load(done.stdout)["items"]] == ["InferenceService", "PodGroup"]
    assert [one["tags"]["code"] for one in said(done.stdout)] == list(LOUD)
    assert {one["severity"] for one in said(done.stdout)} == {"warning"}


def test_on_an_error_the_items_come_back_to_the_byte() -> None:
    data = listed(SERVICE, BROKEN)
    done = run(data)
    assert done.returncode == 1
    assert done.stdout.startswith(data)
    result, *warnings = said(done.stdout)
    assert (result["severity"], {one["severity"] for one in warnings}) == ("error", {"warning"})
    assert result["resourceRef"] == {"apiVersion": "ome.io/v1beta1", "kind": "InferenceService", "name": "qwen"}
    assert done.stderr.decode().splitlines()[0].endswith(f"spec.engine.worker.size: {result['message']}")


@pytest.mark.parametrize("data", [
    listed(SERVICE) + b"# \xff\n",
    listed(SERVICE).replace(b"\n", b"\r"),
    HEAD + b"items: &x [*x]\n",
    HEAD + b"items: [\n",
    HEAD + b"kind: ResourceList\nitems: []\n",
    HEAD + b"items: []\nfunctionConfig: &f {spec: *f}\n",
    HEAD + b"items: " + b"[" * 5_000 + b"]" * 5_000 + b"\n",
    ("\ufeff" + listed(SERVICE).decode()).encode("utf-16"),
], ids=["latin-1", "lone-cr", "cycle", "open", "key-twice", "config-cycle", "deep", "utf-16"])  # fmt: skip
def test_what_cannot_be_read_does_not_come_back(data: bytes) -> None:
    done = run(data, "krm")
    assert b"Traceback" not in done.stderr
    assert b"a bug of postrender" not in done.stderr
    if done.returncode == 0:  # CR alone breaks lines to every YAML reader
        assert yaml.safe_load(done.stdout)["kind"] == "ResourceList"
    else:
        assert (done.returncode, done.stdout) == (1, b"")
        assert done.stderr.startswith(b"postrender: error: <stdin>:")


@pytest.mark.parametrize("item", ["{kind: List, items: []}", "[]", "null", "text", "{kind: a, kind: b}"])
@pytest.mark.parametrize("mode", ["transform", "generate", "validate"])
def test_an_item_of_any_shape_is_an_item(item: str, mode: str, tmp_path: Path) -> None:
    (tmp_path / "some.yaml").write_bytes(RUNTIME)
    files = {"files": ["some.yaml"]} if mode == "generate" else {}
    data = HEAD + f"items: [{item}]\nfunctionConfig: {gangs(mode=mode, **files)}\n".encode()
    done = run(data, cwd=tmp_path)
    assert b"a bug of postrender" not in done.stderr
    assert done.stdout == data or done.returncode == 1 or mode == "validate"
    assert mode != "generate" or b"is handed no items" in done.stderr


def test_what_is_wrong_in_the_environment_is_no_fault_of_the_list(tmp_path: Path) -> None:
    done = run(listed(SERVICE), env={"POSTRENDER_SPARES": "many"})
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"postrender: error: POSTRENDER_SPARES: 'many' is not a number from 0 to 1,000\n"
    done = run(listed(SERVICE), env={"POSTRENDER_CONTEXT": str(tmp_path / "none.yaml")})
    assert (done.returncode, done.stdout) == (4, b"")


def test_a_closed_stdout_is_one_line() -> None:
    done = subprocess.run(["/bin/sh", "-c", '"$0" krm >&-', SCRIPT], input=listed(SERVICE), capture_output=True)
    assert (done.returncode, done.stderr) == (4, b"postrender: error: stdout is closed; give it a pipe or a file\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    many = listed(*(SERVICE.replace(b"qwen", b"qwen-%d" % number) for number in range(2_000)))
    with subprocess.Popen([SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(many)
        process.stdin.close()
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert process.returncode == 141


@pytest.mark.parametrize(("data", "answer"), [
    (HEAD, True),
    (b"\xef\xbb\xbf---\n" + HEAD, True),
    (b'{"items": [], "kind": "ResourceList", "apiVersion": "config.kubernetes.io/v1beta1"}', True),
    (b"apiVersion: v1\nkind: ConfigMap\n---\n" + HEAD, False),
    (b"apiVersion: v1\nkind: ResourceList\n", False),
    (b"# ResourceList\n", False),
    (b"- ResourceList\n", False),
    (b"a: [ResourceList\n", False),
])  # fmt: skip
def test_what_is_a_call(data: bytes, answer: bool) -> None:
    assert krm.is_call(data) is answer


def test_a_stream_that_speaks_of_a_list_is_a_stream() -> None:
    data = b"apiVersion: v1\nkind: ConfigMap\ndata:\n  a: ResourceList\n---\n" + HEAD + b"functionConfig: {x: y}\n"
    assert run(data).stdout == data


# -- what it may read

RUNTIME = b"""apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: rt}
spec: {engineConfig: {leader: {}, worker: {size: 4}}}
"""
NAMED = b"apiVersion: ome.io/v1beta1\nkind: InferenceService\nmetadata: {name: a}\nspec: {runtime: {name: rt}, engine: {}}\n"


def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "outside.yaml").write_bytes(RUNTIME)
    (inner / "inside.yaml").write_bytes(RUNTIME)
    (inner / "link.yaml").symlink_to(inner / "inside.yaml")
    (inner / "linked").mkdir()
    (inner / "linked/out.yaml").symlink_to(tmp_path / "outside.yaml")
    (inner / "out.yaml").symlink_to(tmp_path / "outside.yaml")
    return inner


@pytest.mark.parametrize(
    "path", ["inside.yaml", "./inside.yaml", "link.yaml", "{here}/inside.yaml", "linked/../inside.yaml"]
)
def test_a_path_of_the_function_config_may_lie_inside(tmp_path: Path, path: str) -> None:
    here = folder(tmp_path)
    done = run(listed(NAMED, config=gangs(context=path.format(here=here))), cwd=here)
    assert done.returncode == 0
    assert b"minMember: 5" in done.stdout


@pytest.mark.parametrize(
    "path", ["out.yaml", "linked", "../outside.yaml", "..", "{here}/../outside.yaml", "/etc/hostname"]
)
@pytest.mark.parametrize("spec", ["context", "ome-values", "files"])
def test_a_path_of_the_function_config_must_not_leave(tmp_path: Path, path: str, spec: str) -> None:
    here = folder(tmp_path)
    more = {"mode": "generate"} if spec == "files" else {}
    done = run(listed(config=gangs(**{spec: path.format(here=here)}, **more)) + b"  []\n", cwd=here)
    assert done.returncode == 1
    (result,) = said(done.stdout)
    assert result["field"] == {"path": f"spec.{spec}"}
    if path not in ("..", "linked") or spec != "ome-values":  # a folder is no file, wherever it lies
        assert "leads out of the working directory" in result["message"]


@pytest.mark.parametrize("form", ["flag", "environment"])
def test_paths_of_flags_and_environment_are_the_callers(tmp_path: Path, form: str) -> None:
    here = folder(tmp_path)
    path = str(tmp_path / "outside.yaml")
    words = ("krm", "--context", path) if form == "flag" else ()
    done = run(listed(NAMED), *words, cwd=here, env={**os.environ, "POSTRENDER_CONTEXT": "" if words else path})
    assert b"minMember: 5" in done.stdout


# -- what is said


def finding(number: int, severity: str = "warning", **more: Any) -> Finding:
    code = {"warning": "name-too-long", "error": "invalid-field", "note": "topology-key-ignored"}[severity]
    return Finding(code, f"message {number}", "do", **more)


def test_there_is_an_end_to_results() -> None:
    findings = [finding(number) for number in range(MOST + 5)]
    made = results([*findings, finding(0, "error")], Form(), {})
    assert len(made) == MOST + 1
    assert dict(made[0])["severity"] == "error"  # what counts most is never cut off
    assert dict(made[-1]) == {"message": "6 more findings are on stderr alone", "severity": "info"}


def test_notes_are_results_only_where_they_are_shown() -> None:
    assert results([finding(1, "note")], Form(), {}) == ()
    assert dict(results([finding(1, "note")], Form(verbose=True), {})[0])["severity"] == "info"


def test_every_code_is_a_severity_that_the_specification_knows() -> None:
    made = results([Finding(code, "a", "b") for code in SEVERITIES], Form(verbose=True), {})
    assert {dict(one)["severity"] for one in made} == {"error", "warning", "info"}
    assert {dict(dict(one)["tags"])["code"] for one in made} == set(SEVERITIES)


def test_of_two_objects_of_one_name_the_one_at_the_place_is_meant() -> None:
    ref = Ref("InferenceService", "", "a")
    known = {ref: [(Place(4, 3), Origin("ome.io/v1beta1", "one")), (Place(9, 3), Origin("ome.io/v1beta1", "two", 3))]}
    for line, path, index in ((4, "one", 0), (8, "one", 0), (9, "two", 3), (20, "two", 3)):
        (made,) = results([finding(1, ref=ref, place=Place(line, 3), field="x")], Form(), known)
        assert dict(dict(made)["file"]) == {"path": path, "index": index}
        assert dict(dict(made)["field"]) == {"path": "x"}


def test_a_name_that_would_move_the_cursor_is_escaped() -> None:
    done = run(listed(SERVICE.replace(b"name: qwen", b'name: "a\\u001b[2Jb"')))
    assert b"\x1b" not in done.stdout + done.stderr
    assert said(done.stdout)[0]["resourceRef"]["name"] == "a\x1b[2Jb"


def test_a_place_in_joined_files_is_one_in_a_file() -> None:
    joined = join([Source("a.yaml", b"\xef\xbb\xbfa: 1\nb: 2"), Source("b.yaml", b"# c\na: 1\n")])
    assert joined.data == b"a: 1\nb: 2\n---\n# c\na: 1\n"
    for line, name, inner in ((1, "a.yaml", 1), (2, "a.yaml", 2), (4, "b.yaml", 1), (5, "b.yaml", 2)):
        assert joined.named(finding(1, place=Place(line, 7))).place == Place(inner, 7, file=name)
    context = finding(1, place=Place(1, 1, file="context.yaml"))
    assert joined.named(context) == context


# -- the schema of the functionConfig


def test_the_schema_holds_what_is_read() -> None:
    """Each option of the table is a property, and each property is taken."""
    spec = schema.function_config()["properties"]["spec"]
    assert not spec["additionalProperties"]
    assert list(spec["properties"]) == [*schema.config()["properties"], "mode", "files"]
    assert spec["properties"]["mode"]["enum"] == ["transform", "generate", "validate"]
    for name in spec["properties"]:
        assert b"there is no such option" not in run_quietly(gangs(**{name: ""}))
    assert b"there is no such option" in run_quietly(gangs(nonsense=""))


def run_quietly(config: str) -> bytes:
    lines: list[str] = []
    target = open(os.devnull, "wb")  # noqa: SIM115
    with target:
        krm.run("<stdin>", HEAD + b"items: []\nfunctionConfig: " + config.encode(), target, lines.append, {})
    return "".join(lines).encode()


def test_the_schema_of_a_definition_is_structural() -> None:
    """Kubernetes' structural schemas know no unions of types, and every property has one."""
    spec = schema.function_config_openapi()["properties"]["spec"]["properties"]
    assert list(spec) == list(schema.function_config()["properties"]["spec"]["properties"])
    for name, one in spec.items():
        assert not {"oneOf", "anyOf", "additionalProperties"} & set(one), name
        assert isinstance(one.get("type", ""), str), name
        assert "type" in one or one["x-kubernetes-preserve-unknown-fields"], name
