"""Nightly runs killed before each change on the disk: the last good state stays, and the next run goes on from it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from tests.helpers.checkout import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.subprocess]


def test_a_run_killed_before_any_change_on_the_disk_leaves_the_last_good_state(tmp_path):
    helper = ROOT / "tests" / "helpers" / "killed_nights.py"
    command = [sys.executable, str(helper), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    *killed, last = seen["codes"]
    assert set(killed) == {-signal.SIGKILL}
    assert last == 0
    assert len(killed) >= 20
    assert seen["problems"] == []
    assert seen["different"] == []
    assert seen["left"] == seen["temporary"] == []
    # Those that were killed before they were on record are no runs.
    assert set(seen["statuses"]) == {"killed", "passed"}
    assert 10 <= seen["statuses"]["killed"] <= len(killed)


ENDED = "gpupif: interrupted; "


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "runs"), [("lock", 8), ("random", 12)])
def test_a_terminated_run_ends_at_any_moment_and_leaves_a_good_state(tmp_path, kind, runs):
    """A run on record says so; before, the last good state stays as it was."""
    helper = ROOT / "tests" / "helpers" / "ended_nights.py"
    command = [sys.executable, str(helper), str(tmp_path), kind, str(runs), "2026"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["problems"] == []
    # With `random`, a run may have ended before its signal, and a signal before the first line of the command line ends
    # the process at once.
    too_early_or_late = (-signal.SIGTERM, 0) if kind == "random" else ()
    told = [run for run in found["seen"] if run["sent"] and run["code"] not in too_early_or_late]
    assert [run for run in told if run["code"] != 128 + signal.SIGTERM] == []
    assert len(told) >= runs // 2
    for run in told:
        on_record = f"{ENDED}run {run['run']} is on record: passed."
        if run["status"] == "passed" and run["said"].startswith(on_record):
            continue
        # The latter before the command has begun; then the run on record is the one before.
        assert run["said"] in (f"{ENDED}the last good state is as it was.", f"{ENDED}nothing was written.")
        assert run["status"] in ("killed", "passed")
