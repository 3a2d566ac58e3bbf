"""Folders for temporary files. A run deletes its folder at its end; if it is killed, the next run deletes it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import stat
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from ..errors import OutputError
from ..utils.private_folder import HeldFolder, is_own
from .file_errors import disk_errors

# The prefix of the names of temporary folders, and the ending of the names of their locks.
PREFIX, LOCK = ".gpupif-temporary-", ".lock"


@contextlib.contextmanager
def temporary_folder(place: Path | None) -> Iterator[Path]:
    """Yield an empty private folder, and delete it at the end. First delete the folders that killed runs left.

    place: the folder in which it is made. Default: the system's folder for temporary files. The path is a path by
    descriptor, which only this process can use, see `HeldFolder`. Raises OutputError if the folder cannot be made.
    """
    place = (place or Path(tempfile.gettempdir())).resolve()
    _remove_left(place)
    with disk_errors(place):
        number, lock = _locked_file(place)
    folder = _folder_of(lock)
    try:
        with disk_errors(place):
            held = HeldFolder(folder)
    except BaseException:
        lock.unlink(missing_ok=True)
        os.close(number)
        raise
    try:
        yield held.path
    finally:
        held.remove()
        held.close()
        # A folder that cannot be removed keeps its lock, for the next run.
        if not os.path.lexists(folder):
            lock.unlink(missing_ok=True)
        os.close(number)


def _prefix() -> str:
    """Return the prefix of the names of temporary folders of this machine.

    Other machines may share the folder, and their locks may not be visible here: their folders must stay.
    """
    return f"{PREFIX}{zlib.crc32(platform.node().encode()):08x}-"


def _folder_of(lock: Path) -> Path:
    return lock.with_name(lock.name.removesuffix(LOCK))


def _locked_file(place: Path) -> tuple[int, Path]:
    """Make a lock, which holds as long as its file is open; return its descriptor and its path.

    The lock exists before its folder and after it, so that no folder is without a lock.
    """
    while True:
        number, name = tempfile.mkstemp(LOCK, _prefix(), place)
        # If files cannot be locked here, no other run can lock this file either, and none deletes the folder.
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        # Before it was locked, another run may have taken it for a lock of a killed run and deleted it.
        if os.fstat(number).st_nlink:
            return number, Path(name)
        os.close(number)


def _remove_left(place: Path) -> None:
    """Delete the folders that ended runs of this user on this machine left."""
    for lock in place.glob(f"{_prefix()}*{LOCK}"):
        with contextlib.suppress(OSError, OutputError):
            number = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                status = os.fstat(number)
                if is_own(status) and stat.S_ISREG(status.st_mode):
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(_folder_of(lock), lock)
            finally:
                os.close(number)


def _remove(folder: Path, lock: Path) -> None:
    """Delete a folder, and then its lock. If the folder cannot be deleted, both stay for the next run."""
    with contextlib.suppress(FileNotFoundError):
        held = HeldFolder(folder, make=False)
        held.remove()
        held.close()
    if not os.path.lexists(folder):
        lock.unlink(missing_ok=True)
