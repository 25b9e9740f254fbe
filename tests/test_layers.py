"""The layers: who may import whom, also inside functions; and what a run loads."""

import ast
import pathlib
import subprocess
import sys

import pytest

PACKAGE = pathlib.Path(__file__).parent.parent / "postrender"

# From the top down; a module may import what stands in a lower line, or in its own package.
LAYERS = [
    ["__main__"],
    ["cli"],
    ["hosts", "reconciler"],
    ["sources", "renderers", "views"],
    ["cluster"],
    ["review"],
    ["pipeline"],
    ["gangs"],
    ["manifests"],
    ["options"],
    ["findings"],
    ["record"],
]
# Inside manifests, from the top down.
MANIFESTS = [
    "inflate",
    "edit",
    "editor",
    "readback",
    "overlay",
    "objects",
    "lookup",
    "tree",
    "stream",
    "write",
    "lines",
    "scalars",
    "change",
]
# The one importer of a library.
ONLY = {"yaml": ["manifests.tree"], "click": ["cli"], "kubernetes": ["cluster"], "jsonpatch": ["hosts.flux"]}
# Asks the library for its version, when that is what was asked for.
EXCEPT = {("cli.about", "yaml")}
# A lower module may be asked for here although it stands above; the reason stands at the import.
UPWARD = {("manifests.stream", "manifests.tree")}


def modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(name, path):
    """Yield what a module imports: our own modules relative to the package, others by their top-level name."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (
                    alias.name.removeprefix("postrender.")
                    if alias.name.startswith("postrender.")
                    else "+" + alias.name.split(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.level:
            base = [part for part in package if part][: len([part for part in package if part]) - node.level + 1]
            target = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                inner = ".".join([*target, alias.name])
                yield inner if inner in NAMES else ".".join(target)
        elif isinstance(node, ast.ImportFrom):
            top = node.module.split(".")[0]
            for alias in node.names:
                inner = f"{node.module}.{alias.name}".removeprefix("postrender.")
                yield (
                    (inner if inner in NAMES else node.module.removeprefix("postrender").lstrip("."))
                    if top == "postrender"
                    else "+" + top
                )


NAMES = {name for name, _ in modules()}


def layer(name):
    for number, names in enumerate(LAYERS):
        if name.split(".")[0] in names:
            return number
    raise AssertionError(f"postrender/{name} stands in no layer")


@pytest.mark.parametrize(
    ("name", "path"), [(name, path) for name, path in modules() if name], ids=lambda value: str(value)
)
def test_a_module_imports_only_what_stands_below_it(name, path):
    for target in imports(name, path):
        if target.startswith("+"):
            library = target[1:]
            if library in ONLY and (name, library) not in EXCEPT:
                assert any(name == one or name.startswith(one + ".") for one in ONLY[library]), (
                    f"{name} imports {library}"
                )
            continue
        if not target:
            continue  # the package itself: its version
        same = name.split(".")[0] == target.split(".")[0]
        assert same or layer(name) < layer(target), f"{name} imports {target}"
        if same and name.startswith("manifests.") and target.startswith("manifests.") and (name, target) not in UPWARD:
            mine, other = name.split(".")[1], target.split(".")[1]
            assert MANIFESTS.index(mine) < MANIFESTS.index(other), f"{name} imports {target}"


def test_gangs_know_no_text():
    for name, path in modules():
        if name.startswith("gangs"):
            assert not {
                "manifests.edit",
                "manifests.editor",
                "manifests.write",
                "manifests.stream",
                "manifests.lines",
            } & set(imports(name, path)), name


def loaded(stdin: bytes, *words: str) -> set[str]:
    """Return the modules that a run of the filter has loaded beyond what the interpreter loads by itself."""
    code = (
        f"import sys; before = set(sys.modules); sys.argv[1:] = {list(words)!r}\n"
        "from postrender.__main__ import run; run()\n"
        "sys.stderr.write('\\n' + ' '.join(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=stdin, capture_output=True, check=True)
    return set(done.stderr.decode().splitlines()[-1].split())


SERVICE = b"""apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: a}
spec: {engine: {leader: {}, worker: {size: 1}}}
"""


def test_a_stream_that_cannot_concern_us_loads_next_to_nothing():
    names = loaded(b'kind: ConfigMap\ndata:\n  a: "x\\\n    y"\n')
    assert not {"yaml", "click", "re", "typing", "dataclasses", "json", "postrender.pipeline"} & names


def test_a_render_loads_no_command_line():
    names = loaded(SERVICE)
    assert "postrender.manifests.edit" in names
    assert (
        not {"click", "jsonpatch", "kubernetes", "typing", "dataclasses", "json", "hashlib", "postrender.cli"} & names
    )


def test_a_resource_list_loads_no_command_line():
    stdin = b"apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n- " + SERVICE.replace(b"\n", b"\n  ")
    names = loaded(stdin)
    assert {"postrender.manifests.edit", "postrender.hosts.krm"} <= names
    assert not {"click", "jsonpatch", "kubernetes", "typing", "dataclasses", "json", "hashlib", "difflib"} & names


def test_a_build_loads_no_patches(tmp_path):
    (tmp_path / "in").mkdir()
    (tmp_path / "in/service.yaml").write_bytes(SERVICE)
    names = loaded(b"", "build", str(tmp_path / "in"), "--output", str(tmp_path / "out"))
    assert (tmp_path / "out/kustomization.yaml").exists()
    assert "postrender.hosts.folder" in names
    assert (
        not {"jsonpatch", "kubernetes", "json", "difflib", "postrender.hosts.flux", "postrender.hosts.argocd"} & names
    )


def test_a_render_loads_nothing_of_the_function():
    names = loaded(SERVICE)
    assert not {"postrender.hosts.krm", "postrender.sources", "postrender.manifests.inflate"} & names
