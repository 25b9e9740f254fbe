from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.oracles.client import Oracle


@pytest.fixture(scope="session")
def oracle() -> Iterator[Oracle]:
    with Oracle() as running:
        yield running
