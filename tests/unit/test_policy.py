"""The admission policy: what is printed for which Kubernetes, and that it is one for every LeaderWorkerSet pod."""

from __future__ import annotations

import pathlib

import click
import pytest
import yaml
from click.testing import CliRunner

from postrender import cli
from postrender.gangs import keys
from postrender.hosts.policy import policy

FILE = pathlib.Path(__file__).parents[2] / "plugins/policy/policy.yaml"


@pytest.mark.parametrize("version", [None, (1, 36), (1, 37), (2, 0)])
def test_it_is_the_file_from_1_36_on(version: tuple[int, int] | None) -> None:
    assert policy(version) == FILE.read_bytes()


@pytest.mark.parametrize("version", [(1, 34), (1, 35)])
def test_before_it_is_beta_and_the_gate_is_named(version: tuple[int, int]) -> None:
    text = policy(version).decode()
    assert text.startswith(
        "# Kubernetes 1.34 and 1.35 serve this only with --feature-gates=MutatingAdmissionPolicy=true"
    )
    assert {one["apiVersion"] for one in yaml.safe_load_all(text)} == {"admissionregistration.k8s.io/v1beta1"}
    assert text.replace("/v1beta1\n", "/v1\n").endswith(FILE.read_text())


@pytest.mark.parametrize("version", ["latest", "1"])
def test_what_is_no_version(version: str) -> None:
    with pytest.raises(click.UsageError) as misuse:
        CliRunner().invoke(
            cli.cli, ["policy", "--kube-version", version], standalone_mode=False, catch_exceptions=False
        )
    assert misuse.value.message == f"--kube-version: {version!r} is not a version; write one such as 1.36"


@pytest.mark.parametrize("version", ["1.33", "v1.20.3"])
def test_none_is_printed_for_what_has_none(version: str) -> None:
    done = CliRunner().invoke(cli.cli, ["policy", "--kube-version", version], standalone_mode=False)
    assert (done.return_value, done.stdout) == (1, "")
    assert done.stderr.startswith("postrender: error: ")


def test_it_names_what_we_write() -> None:
    made, binding = yaml.safe_load_all(FILE.read_text())
    [selected] = made["spec"]["matchConstraints"]["objectSelector"]["matchExpressions"]
    assert selected == {"key": keys.GANG, "operator": "Exists"}
    expression = made["spec"]["mutations"][0]["applyConfiguration"]["expression"]
    assert f"'{keys.POD_GROUP}': object.metadata.labels['{keys.GANG}'] + '-' + variables.index" in expression
    assert binding["spec"] == {"policyName": made["metadata"]["name"]}
