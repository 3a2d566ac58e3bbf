"""The plugin of pytest that leaves slow tests out unless somebody asks for them.

`addopts` in pyproject.toml has `-m 'not slow'`. Slow tests run with `--everything`, with another `-m`, and where all
that is asked for is tests by name (`pytest tests/cli/test_info.py::test_that`). Of a test that is marked `sampled(n)`
every n-th case is quick, and all others are slow.

With `--by-turns` each slow test that is for every engine runs on one, so that all engines have a part of them. Quick
tests take turns too, there and where only they run, if their function has enough of them that every engine has one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

# The marks that addopts choose.
QUICK = "not slow"
# The fixtures that are every engine (tests/conftest.py).
ENGINES = ("engine", "counting_engine")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--everything", action="store_true", help="run the slow tests too, as -m '' does")
    parser.addoption(
        "--by-turns",
        action="store_true",
        help="run each test for every engine on one engine, where there are enough of them: the engines take turns",
    )


def pytest_configure(config: pytest.Config) -> None:
    named = all("::" in argument for argument in config.args)
    if config.option.markexpr == QUICK and (config.option.everything or named):
        config.option.markexpr = ""
    if config.option.markexpr == QUICK:
        config.pluginmanager.register(LeftOut())


def pytest_report_header(config: pytest.Config) -> str | None:
    return "slow tests are left out: pytest --everything runs them" if config.option.markexpr == QUICK else None


def _case_of_engines(item: pytest.Item) -> tuple[str, Hashable] | None:
    """Return the name of a test and its parameters other than the engine; None where it is not for every engine."""
    own = getattr(item, "callspec", None)
    if own is None or not {*ENGINES} & {*own.params}:
        return None
    # Runs on different engines have the same values, which need be neither hashable nor comparable.
    others = frozenset((name, id(value)) for name, value in own.params.items() if name not in ENGINES)
    return item.nodeid.partition("[")[0], others


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seen: Counter[str] = Counter()
    for item in items:
        if (sampled := item.get_closest_marker("sampled")) is not None:
            name = item.nodeid.partition("[")[0]
            if seen[name] % sampled.args[0]:
                item.add_marker("slow")
            seen[name] += 1
    only_quick = config.option.markexpr == QUICK
    if not config.option.by_turns and not only_quick:
        return
    tests: dict[tuple[str, bool], dict[Hashable, list[int]]] = {}
    for number, item in enumerate(items):
        if (case := _case_of_engines(item)) is not None:
            name, others = case
            is_slow = item.get_closest_marker("slow") is not None
            tests.setdefault((name, is_slow), {}).setdefault(others, []).append(number)
    left_out: set[int] = set()
    turn = 0
    for (_, is_slow), cases in tests.items():
        if not is_slow and len(cases) < max(map(len, cases.values())):
            continue
        for numbers in cases.values():
            left_out |= {*numbers} - {numbers[turn % len(numbers)]}
            turn += 1
    config.hook.pytest_deselected(items=[items[number] for number in sorted(left_out)])
    items[:] = [item for number, item in enumerate(items) if number not in left_out]


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
