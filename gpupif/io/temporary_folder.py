"""Folders for temporary files that go with the run that made them, or, where it is killed, with the next one."""

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

# How names of folders begin, on which machine by what follows, and what those of the locks beside them have at the end.
PREFIX, LOCK = ".gpupif-temporary-", ".lock"


@contextlib.contextmanager
def temporary_folder(place: Path | None) -> Iterator[Path]:
    """Give an empty private folder in a place (None: the system's), deleted in the end.

    What killed runs left in the place is deleted before. The path of the folder is one by descriptor (see
    `HeldFolder`), for this process alone. Raises OutputError where there can be no such folder.
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
    """How names of folders of this machine begin: in a folder that several share locks may be seen by one alone."""
    return f"{PREFIX}{zlib.crc32(platform.node().encode()):08x}-"


def _folder_of(lock: Path) -> Path:
    return lock.with_name(lock.name.removesuffix(LOCK))


def _locked_file(place: Path) -> tuple[int, Path]:
    """A new file, locked as long as it is open; it is there before its folder and after it, so that none is without."""
    while True:
        number, name = tempfile.mkstemp(LOCK, _prefix(), place)
        # Where files cannot be locked, nobody finds that they are not, and removes them.
        with contextlib.suppress(OSError):
            fcntl.flock(number, fcntl.LOCK_EX)
        # Another run may have taken it for one that was left, and deleted it, just before.
        if os.fstat(number).st_nlink:
            return number, Path(name)
        os.close(number)


def _remove_left(place: Path) -> None:
    """Remove the folders of runs of this user and machine that are not alive any more."""
    for lock in place.glob(f"{_prefix()}*{LOCK}"):
        with contextlib.suppress(OSError, OutputError):
            number = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(number)
                if is_own(found) and stat.S_ISREG(found.st_mode):
                    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(_folder_of(lock), lock)
            finally:
                os.close(number)


def _remove(folder: Path, lock: Path) -> None:
    """Remove a folder, and then its lock; what cannot be removed now is left for the next run, with the lock."""
    with contextlib.suppress(FileNotFoundError):
        held = HeldFolder(folder, make=False)
        held.remove()
        held.close()
    if not os.path.lexists(folder):
        lock.unlink(missing_ok=True)
