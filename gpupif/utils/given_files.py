"""Files that a user names, opened for reading without waiting for another program."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def refuse_named_pipe(path: str | os.PathLike[str]) -> None:
    """Raise OSError for a named pipe: to open one waits until another program writes to it, perhaps for ever.

    A pipe of the shell, /dev/stdin or <(...), is no named pipe: the path leads to no file.
    """
    if stat.S_ISFIFO(os.stat(path).st_mode) and os.path.exists(os.path.realpath(path)):
        raise OSError("it is a named pipe; save what comes through it in a file")


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a file; raises OSError, also for a named pipe."""
    refuse_named_pipe(path)
    return Path(path).read_bytes()
