"""Temporary folders: what is in them goes with the run, and where that is killed, with the next one."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import gpupif
from gpupif.errors import OutputError
from gpupif.io.temporary_folder import PREFIX, temporary_folder
from gpupif.kernels.cache import CACHE_FOLDER
from gpupif.utils.private_folder import real_path

KILLED = """
import os, signal, sys
from pathlib import Path
from gpupif.io.temporary_folder import temporary_folder

with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "inner").mkdir()
    (folder / "inner" / "codes").write_text("secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.subprocess
def test_folders_of_a_killed_run_are_removed_by_the_next(tmp_path):
    (tmp_path / "other").write_text("kept")
    with temporary_folder(tmp_path) as alive:
        (alive / "mine").write_text("kept")
        assert subprocess.run([sys.executable, "-c", KILLED, tmp_path], check=False).returncode == -signal.SIGKILL
        # Of each the folder and its lock.
        assert len(list(tmp_path.iterdir())) == 5
        with temporary_folder(tmp_path):
            assert len(list(tmp_path.iterdir())) == 5
            assert (alive / "mine").read_text() == "kept"
    assert [entry.name for entry in tmp_path.iterdir()] == ["other"]


def test_a_failed_run_leaves_no_temporary_folder(tmp_path):
    with contextlib.suppress(ValueError), temporary_folder(tmp_path) as folder:
        (folder / "codes").write_text("secret")
        raise ValueError
    assert list(tmp_path.iterdir()) == []
    with (
        pytest.raises(OutputError, match=r"none: could not be written: No such file"),
        temporary_folder(tmp_path / "none"),
    ):
        pass


def test_a_folder_that_cannot_be_removed_keeps_its_lock(tmp_path, monkeypatch):
    with monkeypatch.context() as patch, temporary_folder(tmp_path) as folder:
        (folder / "inner").mkdir()
        (folder / "inner" / "codes").write_text("secret")
        patch.setattr("shutil.rmtree", lambda *given, **named: None)
    assert len(list(tmp_path.iterdir())) == 2
    with temporary_folder(tmp_path) as other:
        name = real_path(other).name
        assert {entry.name for entry in tmp_path.iterdir()} == {name, f"{name}.lock"}
    assert list(tmp_path.iterdir()) == []


def test_no_other_folder_is_removed_if_files_cannot_be_locked(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    with temporary_folder(tmp_path) as other:
        monkeypatch.setattr("fcntl.flock", fail)
        with temporary_folder(tmp_path) as folder:
            assert folder.is_dir()
        assert other.is_dir()
        assert not folder.exists()


def test_an_own_folder_with_the_name_of_a_leftover_is_not_removed(tmp_path):
    with temporary_folder(tmp_path) as folder:
        name = real_path(folder).name
    (tmp_path / name).mkdir()
    (tmp_path / name / "thesis").write_text("kept")
    (tmp_path / f"{name}.lock").touch()
    with temporary_folder(tmp_path):
        pass
    assert (tmp_path / name / "thesis").read_text() == "kept"
    (tmp_path / name / "thesis").unlink()
    with temporary_folder(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_links_and_folders_of_another_machine_are_not_removed(tmp_path, monkeypatch):
    (tmp_path / "mine").write_text("kept")
    with temporary_folder(tmp_path) as folder:
        prefix = real_path(folder).name.rpartition("-")[0]
    for name in (f"{prefix}-link", f"{PREFIX}00000000-other"):
        (tmp_path / name).mkdir()
    (tmp_path / f"{prefix}-link.lock").symlink_to(tmp_path / "mine")
    (tmp_path / f"{PREFIX}00000000-other.lock").touch()
    before = sorted(tmp_path.iterdir())
    with temporary_folder(tmp_path):
        pass
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("ask", ["summary", "pairs"])
def test_runs_remove_the_temporary_folder_they_use(tmp_path, monkeypatch, ask):
    """Runs write nowhere else, and the folder is gone afterwards."""
    written, real = [], os.open

    def noted(path, flags, *given, **named):
        written.extend([real_path(Path(path))] * bool(flags & (os.O_WRONLY | os.O_RDWR)))
        return real(path, flags, *given, **named)

    table, temp = tmp_path / "people.parquet", tmp_path / "temp"
    gpupif.datasets.census(100, columns=3).to_parquet(table)
    temp.mkdir()
    monkeypatch.setattr(os, "open", noted)
    with gpupif.config(memory_limit="8GiB", temp=temp):
        if ask == "summary":
            gpupif.score_files(table, summary_only=True)
        else:
            gpupif.toxic_pairs(table)
    assert len(written) > 1
    written = [file for file in written if not file.is_relative_to(CACHE_FOLDER)]
    assert all(file.relative_to(temp).parts[0].startswith(PREFIX) for file in written)
    assert list(temp.iterdir()) == []
