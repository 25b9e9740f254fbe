"""Options, the promises, and what a run says of itself at its end."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.promises.promises import PROMISES
from tests.properties.tally import SHOWN, Tally

# Data: to look for tests in thousands of folders takes longer than to import all there are.
collect_ignore = ["cases"]

OUTCOMES: dict[str, str] = {}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update", action="store_true", help="rewrite the expectations of tests/cases, and skip")
    parser.addoption("--promises", action="store_true", help="fail unless each promise's tests have run and passed")


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are to be rewritten; an update skips, so it never looks green."""
    return bool(request.config.getoption("--update"))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" or report.outcome != "passed":
        OUTCOMES[report.nodeid] = report.outcome


def broken() -> list[str]:
    """Return what keeps a promise from being shown: a test of it that did not run, or did not pass."""
    lines = []
    for promise, tests in PROMISES.items():
        for test in tests:
            ran = [
                outcome
                for node, outcome in OUTCOMES.items()
                if node == test or node.startswith((test + "[", test + "::"))
            ]
            if not ran:
                lines.append(f"{promise}: {test} was not collected")
            lines.extend(f"{promise}: {test} {outcome}" for outcome in {*ran} - {"passed"})
    return lines


def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker has counted; of several workers each has counted its part."""
    known = {tally.title: tally for tally in SHOWN}
    for title, counts in getattr(node, "workeroutput", {}).get("tallies", ()):
        if counts:
            (known.get(title) or Tally(title)).counts.update(counts)
            known = {tally.title: tally for tally in SHOWN}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if hasattr(session.config, "workeroutput"):  # a worker, which has seen a part of the tests only
        session.config.workeroutput["tallies"] = [(tally.title, dict(tally.counts)) for tally in SHOWN]
        return
    if session.config.getoption("--promises") and exitstatus == 0 and broken():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    # Under CI a missing program is a failure, not a skip.
    if os.environ.get("CI") and exitstatus == 0 and "skipped" in OUTCOMES.values():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for tally in SHOWN:
        terminalreporter.section(tally.heading())
        for line in tally.lines():
            terminalreporter.write_line(line)
    if config.getoption("--promises"):
        terminalreporter.section("promises")
        lines = broken()
        for line in lines or [f"{len(PROMISES)} promises, each with all its tests passed"]:
            terminalreporter.write_line(line)
    skipped = sum(outcome == "skipped" for outcome in OUTCOMES.values())
    terminalreporter.write_line(f"skipped: {skipped}")
