"""One run at a time in a state folder, by a lock that goes with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from ...errors import AnotherRunError
from ...io.documents import parse_json
from ...utils.private_folder import open_as_is
from .state_files import state_errors, state_folder

LOCK = "lock"
# Of the text in it at most.
HOLDER_BYTES = 4096

# Descriptors of the locks that this process holds.
_held: set[int] = set()


@contextlib.contextmanager
def run_lock(state: Path) -> Iterator[None]:
    """Be the only run in a state folder, which is made where there is none.

    The system gives the lock back when the process ends, in whatever way; neither programs that it starts nor its
    copies (fork) have it. Raises AnotherRunError, which says who has it since when; OutputError where the folder cannot
    be written.
    """
    file = state_folder(state) / LOCK
    number = _locked(file)
    _held.add(number)
    try:
        with state_errors(file):
            _write_holder(number, json.dumps(_own()))
        yield
    finally:
        # In a copy of the process it is closed already.
        if number in _held:
            _held.discard(number)
            with contextlib.suppress(OSError):
                os.ftruncate(number, 0)
            os.close(number)


def _locked(file: Path) -> int:
    """The descriptor of a file that nobody else has locked. Raises as `run_lock`."""
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


def _own() -> dict[str, str | int]:
    """Who holds the lock, since when."""
    return {"pid": os.getpid(), "host": platform.node(), "since": datetime.now(UTC).isoformat(timespec="seconds")}


def _write_holder(number: int, text: str) -> None:
    os.ftruncate(number, 0)
    os.pwrite(number, text.encode(), 0)


def _holder(number: int) -> str:
    """Who holds the lock, in words behind others; no text where it has not said so yet."""
    try:
        found = parse_json(os.pread(number, HOLDER_BYTES, 0))
        return f", process {found['pid']} on {found['host']}, since {found['since']}"
    except (ValueError, KeyError, TypeError):
        return ""


def _forget() -> None:
    """Close the locks in a copy of the process, which would hold them after its end."""
    for number in _held:
        with contextlib.suppress(OSError):
            os.close(number)
    _held.clear()


os.register_at_fork(after_in_child=_forget)
