from __future__ import annotations

from typing import TYPE_CHECKING

from tests.properties.tally import SHOWN

if TYPE_CHECKING:
    import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for tally in SHOWN:
        terminalreporter.section("properties")
        for line in tally.lines():
            terminalreporter.write_line(line)
