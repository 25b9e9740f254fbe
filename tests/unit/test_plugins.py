"""What is shipped for hosts, held against the package."""

import pathlib
import subprocess
import sys

import postrender

PLUGINS = pathlib.Path(__file__).parents[2] / "plugins"


def test_the_two_helm_plugin_files_are_one():
    """`helm plugin install` takes the folder itself, HELM_PLUGINS the folders below it."""
    outer = PLUGINS / "helm/postrender/plugin.yaml"
    assert outer.read_bytes() == (PLUGINS / "helm/postrender/postrender/plugin.yaml").read_bytes()


def test_the_helm_plugin_has_our_version_and_passes_no_arguments():
    lines = (PLUGINS / "helm/postrender/plugin.yaml").read_text().splitlines()
    assert f"version: {postrender.__version__}" in lines
    assert [line for line in lines if "args" in line] == []
    assert lines[-1] == "  - command: postrender"


def test_each_folder_of_plugins_has_its_path():
    script = pathlib.Path(sys.executable).with_name("postrender")
    for folder in (path for path in PLUGINS.iterdir() if path.is_dir()):
        done = subprocess.run([script, "path", folder.name], capture_output=True, text=True, check=True)
        assert pathlib.Path(done.stdout.rstrip("\n")) == folder
