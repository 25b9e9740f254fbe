"""What is shipped for kustomize and made from the table of options: the schema of the config, and the function's definition.

`pytest --update` writes both anew.
"""

from __future__ import annotations

import json
import pathlib

import pytest
import yaml

import postrender
from postrender.options import FUNCTION, TABLE
from postrender.views import schema

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "plugins/kustomize"
IMAGE = f"postrender:{postrender.__version__}"

HEAD = "# Made from the table of options. For catalogues of KRM functions; neither kustomize nor kpt reads it.\n"


def definition() -> str:
    """Return a KRMFunctionDefinition, as kyaml defines it."""
    description = "Adds gang-scheduling PodGroups, labels and scheduler names to rendered model-serving manifests."
    version = {
        "name": "v1alpha1",
        "schema": {"openAPIV3Schema": schema.function_config_openapi()},
        "idempotent": True,
        "usage": "List it last under `transformers:` of the outermost kustomization; with mode generate under"
        " `generators:`, with mode validate under `validators:`.",
        "license": "Apache-2.0",
        "runtime": {"container": {"image": IMAGE}},
    }
    made = {
        "apiVersion": "config.kubernetes.io/v1alpha1",
        "kind": "KRMFunctionDefinition",
        "metadata": {"name": "gangs.postrender", "annotations": {"config.kubernetes.io/local-config": "true"}},
        "spec": {
            "group": "postrender",
            "names": {"kind": "Gangs"},
            "description": description,
            "publisher": "postrender",
            "tags": ["transformer", "generator", "validator"],
            "versions": [version],
        },
    }
    return HEAD + yaml.safe_dump(made, sort_keys=False, width=120, allow_unicode=True)


def config_schema() -> str:
    return json.dumps(schema.function_config(), indent=2, ensure_ascii=False) + "\n"


MADE = {"krm-function-definition.yaml": definition, "gangs.schema.json": config_schema}


@pytest.mark.parametrize("name", MADE)
def test_it_is_made_from_the_table(name: str, update: bool) -> None:
    text = MADE[name]()
    if update:
        (FOLDER / name).write_text(text)
        pytest.skip("rewritten")
    assert (FOLDER / name).read_text() == text, "write it anew: pytest --update tests/unit/test_kustomize_files.py"


def test_every_option_is_in_both() -> None:
    names = {option.name for option in (*TABLE, *FUNCTION)}
    written = yaml.safe_load((FOLDER / "krm-function-definition.yaml").read_text())
    [version] = written["spec"]["versions"]
    for made in (version["schema"]["openAPIV3Schema"], json.loads((FOLDER / "gangs.schema.json").read_text())):
        assert set(made["properties"]["spec"]["properties"]) == names


CONFIGS = [
    path
    for path in sorted([*FOLDER.glob("*.yaml"), *ROOT.glob("examples/kustomize-*/**/*.yaml")])
    if "\nkind: Gangs\n" in path.read_text()
]


def test_the_shipped_configs_are_found() -> None:
    assert len(CONFIGS) == 5


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_shipped_config_says_only_what_is_in_the_table(path: pathlib.Path) -> None:
    config = yaml.safe_load(path.read_text())
    known = schema.function_config()["properties"]
    assert set(config) == set(known)
    assert config["apiVersion"] in known["apiVersion"]["enum"]
    assert set(config["spec"]) <= set(known["spec"]["properties"])
