"""The status of a nightly run, and the exit codes of `gpupif nightly run`."""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """The end of a run.

    PASSED: no gate failed. FAILED: a gate failed, or the treated table breaks its plan. REFUSED: bad input or
    configuration. BROKEN: anything else. KILLED: the run was killed, and never said how it ended. RUNNING: it has not
    ended.
    """

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"
    BROKEN = "broken"
    KILLED = "killed"
    RUNNING = "running"


# The ends of runs that came to results.
ENDED = (Status.PASSED, Status.FAILED)
EXIT_CODES = {Status.PASSED: 0, Status.FAILED: 3, Status.REFUSED: 2, Status.BROKEN: 1}
# The exit code if another run is on: then there is no new run. The exit code of a run whose gates hold, and whose
# release failed.
ANOTHER_RUN, RELEASE_FAILED = 4, 5
