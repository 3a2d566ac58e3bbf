"""The tests marked gpu run for the benchmark, which says what came of them and goes on."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# Each compiles all kernels for itself, and holds a context of the device.
PROCESSES = 4
# As pytest -v says it, of one process or of several.
OUTCOMES = "(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)"
OUTCOME = re.compile(rf"\] {OUTCOMES} (.+)$|^(\S+::.+?) {OUTCOMES}\b")


def run_tests(seconds: float) -> dict[str, Any]:
    """Return the outcomes of the tests: of those that ended, where they are stopped after so many seconds."""
    command = [sys.executable, "-m", "pytest", "-v", "--tb=no", "-m", "gpu", "-n", str(PROCESSES), "tests"]
    try:
        done = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        return outcomes((error.stdout or b"").decode(errors="replace")) | {"stopped_after_seconds": seconds}
    return outcomes(done.stdout.decode(errors="replace")) | {"status": done.returncode}


def outcomes(said: str) -> dict[str, Any]:
    """Return how many tests passed, failed, ... and the names of those that did not pass, from what pytest -v said.

    A run in which no test passed is a failure itself: it was stopped too early, or ran no test.
    """
    by_test: dict[str, str] = {}
    for line in said.partition("short test summary info")[0].splitlines():
        found = OUTCOME.search(line)
        if found:
            outcome, name = (found[1], found[2].strip()) if found[1] else (found[4], found[3])
            # A test may fail and then end in an error too: the first one counts.
            by_test.setdefault(name, outcome)
    counts = Counter(by_test.values())
    failures = sorted(name for name, outcome in by_test.items() if outcome in ("FAILED", "ERROR"))
    if not counts["PASSED"]:
        last = [line for line in said.splitlines() if line.strip()][-1:]
        failures.append(": ".join(["no test passed", *last]))
    return {"counts": {outcome.lower(): count for outcome, count in counts.items()}, "failures": failures}
