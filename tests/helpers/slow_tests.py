"""The plugin of pytest that leaves slow tests out unless somebody asks for them.

`addopts` in pyproject.toml has `-m 'not slow'`. Slow tests run with `--everything`, with another `-m`, and where all
that is asked for is tests by name (`pytest tests/cli/test_info.py::test_that`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

# The marks that addopts choose.
QUICK = "not slow"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="run the slow tests too, as -m '' does")


def pytest_configure(config: pytest.Config) -> None:
    named = all("::" in argument for argument in config.args)
    if config.option.markexpr == QUICK and (config.option.everything or named):
        config.option.markexpr = ""
    if config.option.markexpr == QUICK:
        config.pluginmanager.register(LeftOut())


def pytest_report_header(config: pytest.Config) -> str | None:
    return "slow tests are left out: pytest --everything runs them" if config.option.markexpr == QUICK else None


class LeftOut:
    """The number of slow tests that are left out: workers of pytest-xdist count them, the main process prints it."""

    def __init__(self) -> None:
        self.tests = 0

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.tests += sum(item.get_closest_marker("slow") is not None for item in items)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["slow_tests"] = self.tests

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        # Every worker collects all tests; a worker that crashed has no output.
        self.tests = max(self.tests, getattr(node, "workeroutput", {}).get("slow_tests", 0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.tests:
            left_out = "1 slow test was" if self.tests == 1 else f"{self.tests} slow tests were"
            terminalreporter.write_line(f"{left_out} left out: pytest --everything runs all tests")
