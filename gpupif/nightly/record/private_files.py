"""Files and folders that their owner alone may read, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from ...errors import OutputError, TableReadError, reason_of

OWNER_FOLDER, OWNER_FILE = 0o700, 0o600
# What anybody else may do.
OTHERS = 0o077
# Bytes of a file that are read at once.
READ_BYTES = 1 << 20
MENDED_BY = {
    errno.ENOSPC: "Free some space, or choose another place with run.state.",
    errno.EDQUOT: "Free some space, or choose another place with run.state.",
    errno.EACCES: "Check the rights of the folder, or choose another place with run.state.",
    errno.EPERM: "Check the rights of the folder, or choose another place with run.state.",
    errno.EROFS: "Choose a place on another disk with run.state.",
}


@contextlib.contextmanager
def state_errors(place: Path) -> Iterator[None]:
    """Say of what the disk refuses where, and how to mend it: OutputError."""
    try:
        yield
    except OSError as error:
        mend = MENDED_BY.get(error.errno or 0, "")
        raise OutputError(f"{place}: could not be written: {error.strerror or error}. {mend}".rstrip()) from error


def private_folder(folder: Path) -> Path:
    """Make a folder, with those above it, that its owner alone may read; one that is there becomes such.

    Raises OutputError where that cannot be.
    """
    with state_errors(folder):
        for above in reversed(folder.parents):
            if not above.exists():
                above.mkdir(OWNER_FOLDER, exist_ok=True)
        folder.mkdir(OWNER_FOLDER, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) & OTHERS:
            folder.chmod(OWNER_FOLDER)
    return folder


def create_private(file: Path) -> None:
    """Make an empty file that its owner alone may read, where there is none. Raises OutputError where it cannot be."""
    with state_errors(file):
        os.close(os.open(file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, OWNER_FILE))


def write_private(file: Path, content: bytes) -> None:
    """Write a file that its owner alone may read, whole or not at all; what has the name is replaced.

    Raises OutputError where it cannot be written.
    """
    beside = file.with_name(f".{file.name}-{secrets.token_hex(8)}.tmp")
    with state_errors(file):
        try:
            number = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, OWNER_FILE)
            with open(number, "wb") as sink:
                sink.write(content)
                sink.flush()
                os.fsync(number)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
        sync_folder(file.parent)


def sync(file: Path) -> None:
    """Bring a file to the disk."""
    number = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk, as far as its file system can."""
    with contextlib.suppress(OSError):
        sync(folder)


def file_digest(file: Path) -> tuple[int, str]:
    """Size and BLAKE2b digest (256 bits, in hexadecimal) of a file. Raises TableReadError where it cannot be read."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(READ_BYTES):
                digest.update(piece)
                size += len(piece)
    except OSError as error:
        raise TableReadError(f"{file}: could not be read: {reason_of(error)}.") from error
    return size, digest.hexdigest()


def open_to_others(place: Path) -> bool:
    """Whether anybody but its owner may read, write or search a file or folder."""
    return bool(stat.S_IMODE(place.lstat().st_mode) & OTHERS)
