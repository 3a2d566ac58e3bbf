"""Files and folders of the state: their owner's alone, brought to the disk, and what the disk refuses is said."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from ...errors import OutputError, TableReadError, reason_of
from ...utils.private_folder import open_as_is, private_folder, write_private

# Bytes of a file that are read at once.
READ_BYTES = 1 << 20
ELSEWHERE = "Choose another place with run.state."
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


def state_folder(folder: Path) -> Path:
    """Make the state or a folder in it, or take the one that is there, see `private_folder`.

    Raises OutputError where that cannot be, or where anybody else can write to it.
    """
    with state_errors(folder):
        return private_folder(folder, ELSEWHERE)


def create_file(file: Path) -> None:
    """Make an empty file that its owner alone can read, where there is none. Raises OutputError where it cannot be."""
    with state_errors(file):
        os.close(open_as_is(file))


def write_file(file: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, on the disk as a whole or not at all; see `write_private`.

    Raises OutputError where it cannot be written.
    """
    with state_errors(file):
        write_private(file, content, durable=True)
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
    """Return size and BLAKE2b digest (256 bits, in hexadecimal) of a file.

    Raises TableReadError where it cannot be read.
    """
    digest, size = hashlib.blake2b(digest_size=32), 0
    try:
        with file.open("rb") as stream:
            while piece := stream.read(READ_BYTES):
                digest.update(piece)
                size += len(piece)
    except OSError as error:
        raise TableReadError(f"{file}: could not be read: {reason_of(error)}.") from error
    return size, digest.hexdigest()
