"""Whether the tests launched every kernel with every signature that the compile check compiles, and with no other.

A plugin of pytest, for a run of all tests of the CUDA engine: workers tell what they launched, the controller checks.
"""

from __future__ import annotations

from typing import Any

import pytest

from .function import is_ours
from .library import functions


def signature(kernel: Any, types: Any) -> str:
    """A kernel and the types of its arguments, as text."""
    return f"{kernel.py_func.__module__}.{kernel.py_func.__name__}({', '.join(map(str, types))})"


def compiled() -> set[str]:
    """What the compile check compiles."""
    from tests.cuda.compile_check import SIGNATURES

    return {
        signature(getattr(module, called.split()[0]), types)
        for module, signatures in SIGNATURES.items()
        for called, types in signatures.items()
    }


class EveryKernel:
    """Fails the run where what was launched and what is compiled differ."""

    def __init__(self) -> None:
        self._launched: dict[str, str] = {}
        self._complaints: list[str] = []

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """A worker has ended."""
        self._launched.update(getattr(node, "workeroutput", {}).get("launched", {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """All tests have."""
        own = {signature(*key): function.first for key, function in functions.items() if is_ours(key[0])}
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["launched"] = own
            return
        launched = self._launched | own
        for one in sorted(launched.keys() - compiled()):
            self._complaints.append(f"launched, but not in compile_check: {one}, first by {launched[one]}")
        for one in sorted(compiled() - launched.keys()):
            self._complaints.append(f"in compile_check, but never launched: {one}")
        if self._complaints and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what differs."""
        if self._complaints:
            terminalreporter.section("kernels: what is launched and what is compiled differ", red=True)
            terminalreporter.write("\n".join([*self._complaints, ""]))
