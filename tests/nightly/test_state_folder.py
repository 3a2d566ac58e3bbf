"""One run at a time, and no lock that outlives its run."""

from __future__ import annotations

import os
import signal
import stat
import subprocess

import pytest

from gpupif.errors import AnotherRunError, GpupifError, OutputError
from gpupif.nightly.record.state_folder import LOCK, run_lock


def test_a_second_run_is_refused_while_one_is_running(tmp_path):
    with run_lock(tmp_path / "state"):
        with pytest.raises(AnotherRunError, match=rf"process {os.getpid()} on .*, since 20..-.*\. Wait until it ends"):
            run_lock(tmp_path / "state").__enter__()
        assert stat.S_IMODE((tmp_path / "state" / LOCK).stat().st_mode) == 0o600
    with run_lock(tmp_path / "state"):
        assert issubclass(AnotherRunError, GpupifError)


def test_a_killed_run_leaves_no_lock(tmp_path):
    came, there = os.pipe()
    other = os.fork()
    if other == 0:
        with run_lock(tmp_path):
            os.write(there, b"x")
            signal.pause()
    assert os.read(came, 1) == b"x"
    with pytest.raises(AnotherRunError, match=f"process {other} on"):
        run_lock(tmp_path).__enter__()
    os.kill(other, signal.SIGKILL)
    os.waitpid(other, 0)
    with run_lock(tmp_path):
        pass
    os.close(came)
    os.close(there)


def test_children_and_programs_of_a_run_do_not_hold_its_lock(tmp_path):
    """Children and programs live on after the run."""
    before, after = os.pipe()
    came, there = os.pipe()
    with run_lock(tmp_path):
        child = os.fork()
        if child == 0:
            os.write(there, b"x")
            os.close(after)
            os.read(before, 1)
            os._exit(0)
        os.read(came, 1)
        program = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        with run_lock(tmp_path):
            pass
    finally:
        for number in (after, before, came, there):
            os.close(number)
        program.kill()
        program.wait()
        os.waitpid(child, 0)


def test_a_child_that_ends_does_not_release_the_lock(tmp_path):
    with run_lock(tmp_path):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(AnotherRunError):
            run_lock(tmp_path).__enter__()


def test_a_state_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"file/state: could not be written: Not a directory"):
        run_lock(tmp_path / "file" / "state").__enter__()
