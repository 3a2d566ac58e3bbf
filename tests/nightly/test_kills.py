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
