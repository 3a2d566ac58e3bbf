"""Folders for temporary files that go with the run that made them, or, where it is killed, with the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .ipc_batches import disk_errors

# How names of folders begin; what those of the locks beside them have at the end.
PREFIX, LOCK = ".gpupif-temporary-", ".lock"


@contextlib.contextmanager
def temporary_folder(place: Path | None) -> Iterator[Path]:
    """An empty folder in a place (None: the system's), deleted in the end; what killed runs left there goes before.

    Raises OutputError where there can be none.
    """
    place = (place or Path(tempfile.gettempdir())).resolve()
    _remove_left(place)
    with disk_errors(place):
        number, lock = _locked_file(place)
    folder = Path(lock.removesuffix(LOCK))
    try:
        with disk_errors(place):
            folder.mkdir(0o700)
        yield folder
    finally:
        _remove(folder, lock)
        os.close(number)


def _locked_file(place: Path) -> tuple[int, str]:
    """A new file, locked as long as it is open; it is there before its folder and after it, so that none is without."""
    while True:
        number, lock = tempfile.mkstemp(LOCK, PREFIX, place)
        fcntl.flock(number, fcntl.LOCK_EX)
        # Another run may have taken it for one that was left, and deleted it, just before.
        if os.fstat(number).st_nlink:
            return number, lock
        os.close(number)


def _remove_left(place: Path) -> None:
    """Remove the folders of runs of this user that are not alive any more."""
    for lock in place.glob(f"{PREFIX}*{LOCK}"):
        with contextlib.suppress(OSError):
            if lock.stat().st_uid != os.getuid():
                continue
            with lock.open("r+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(Path(str(lock).removesuffix(LOCK)), lock)


def _remove(folder: Path, lock: str | Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    Path(lock).unlink(missing_ok=True)
