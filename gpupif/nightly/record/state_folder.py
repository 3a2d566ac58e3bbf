"""The state folder: its lock, which keeps runs apart, and files in it that their owner alone can read."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ...errors import AnotherRunError, OutputError
from ...io.documents import parse_json
from ...io.file_errors import denied
from ...utils.private_folder import open_as_is, private_folder, sync_folder, write_private

# The file that a run locks, and the most bytes of what it says of its holder.
LOCK = "lock"
HOLDER_BYTES = 4096
# Bytes of a file that are read at once.
READ_BYTES = 1 << 20
ELSEWHERE = "Choose another place with run.state."
FREE_SPACE = "Free some space, or choose another place with run.state."
CHECK_RIGHTS = "Check the rights of the folder, or choose another place with run.state."
MENDED_BY = {
    errno.ENOSPC: FREE_SPACE,
    errno.EDQUOT: FREE_SPACE,
    errno.EACCES: CHECK_RIGHTS,
    errno.EPERM: CHECK_RIGHTS,
    errno.EROFS: "Choose a place on another disk with run.state.",
}

# Descriptors of the locks that this process holds.
_held: set[int] = set()


@contextlib.contextmanager
def state_errors(place: Path) -> Iterator[None]:
    """Turn an error of the disk into an OutputError that names the place, and how to mend it."""
    try:
        yield
    except OSError as error:
        mend = MENDED_BY.get(error.errno or 0, "")
        raise OutputError(f"{place}: could not be written: {error.strerror or error}. {mend}".rstrip()) from error


def state_folder(folder: Path) -> Path:
    """Create the state folder or a folder in it, or take the one that is there, see `private_folder`.

    Raises OutputError if that fails, or if anybody else can write to the folder.
    """
    with state_errors(folder):
        return private_folder(folder, ELSEWHERE)


def create_file(file: Path) -> None:
    """Create an empty file that its owner alone can read, unless it is there. Raises OutputError."""
    with state_errors(file):
        os.close(open_as_is(file))


def write_file(file: Path, content: bytes) -> None:
    """Write a file that its owner alone can read, on the disk whole or not at all; see `write_private`.

    Raises OutputError.
    """
    with state_errors(file):
        write_private(file, content, durable=True)
        sync_folder(file.parent)


def file_digest(file: Path) -> tuple[int, str]:
    """Return the size in bytes and the BLAKE2b digest (256 bits, in hexadecimal) of a file. Raises TableReadError."""
    digest, size = hashlib.blake2b(digest_size=32), 0
    try:
        with file.open("rb") as stream:
            os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)
            while chunk := stream.read(READ_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError as error:
        raise denied(file, error) from error
    return size, digest.hexdigest()


@contextlib.contextmanager
def run_lock(state: Path) -> Iterator[None]:
    """Be the only run in a state folder, which is created if it is missing.

    The system gives the lock back when the process ends, in whatever way; neither programs that it starts nor its
    copies (fork) have it. Raises AnotherRunError, which names the process that holds the lock; OutputError if the
    folder cannot be written.
    """
    file = state_folder(state) / LOCK
    number = _locked(file)
    _held.add(number)
    try:
        holder = {"pid": os.getpid(), "host": platform.node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}
        with state_errors(file):
            os.ftruncate(number, 0)
            os.pwrite(number, json.dumps(holder).encode(), 0)
        yield
    finally:
        # In a copy of the process the descriptor is closed already.
        if number in _held:
            _held.discard(number)
            with contextlib.suppress(OSError):
                os.ftruncate(number, 0)
            os.close(number)


def _locked(file: Path) -> int:
    """Lock a file, and return its descriptor. Raises as `run_lock`."""
    with state_errors(file):
        number = open_as_is(file)
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            held = _holder(number)
            os.close(number)
            raise AnotherRunError(f"{file.parent}: another run is on{held}. Wait until it ends.") from None
        except OSError:
            os.close(number)
            raise
    return number


def _holder(number: int) -> str:
    """Return which process holds a lock, as the rest of a sentence; no text if it has not said so yet."""
    try:
        holder = parse_json(os.pread(number, HOLDER_BYTES, 0))
        return f", process {holder['pid']} on {holder['host']}, since {holder['since']}"
    except (ValueError, KeyError, TypeError):
        return ""


def _forget() -> None:
    """Close the locks in a copy of the process, which would hold them after the process ends."""
    for number in _held:
        with contextlib.suppress(OSError):
            os.close(number)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
