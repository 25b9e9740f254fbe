"""One cluster for all tests that ask for it, and a namespace of its own for each; kustomize in both ways it runs us."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.oracles.client import Oracle

from .cluster import Cluster
from .kustomize import FORMS, Container, Form


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Four nodes of eight GPUs, two schedulers, LeaderWorkerSet; see docs/testing.md."""
    with Cluster(nodes=4, gpus=8, lws=True) as cluster:
        yield cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A fresh namespace; afterwards every part runs again, the nodes are free, and no name is taken that was not before."""
    before = cluster.kept()
    name = cluster.namespace()
    yield name
    cluster.heal()
    cluster.discard(name)
    left = {other for other in cluster.kept() - before if not other.startswith("test-")}
    assert not left, "another test may want a namespace of that name"


@pytest.fixture(scope="session")
def reader() -> Iterator[Oracle]:
    """The Go readers, to compare what is printed as a cluster would."""
    with Oracle() as running:
        yield running


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Form:
    """Each way in which kustomize runs us."""
    return FORMS[request.param](tmp_path_factory.mktemp(request.param))


@pytest.fixture
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    """The way by an image alone."""
    return Container(tmp_path_factory.mktemp("container"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, pytest.TestReport]:
    """Show, and keep, what the programs said when a test failed."""
    report: pytest.TestReport = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("the cluster", f"all logs: {cluster.keep_logs()}\n{cluster.logs()}"))
    return report
