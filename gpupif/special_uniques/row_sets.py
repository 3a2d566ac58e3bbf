"""Sets of rows by name, kept in memory as far as there is room, beyond that in a file."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import threading
from collections.abc import Hashable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import msu as kernels

from ..errors import OutputError


def _nameless(folder: str | os.PathLike[str] | None) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=folder)


class _Kept(NamedTuple):
    """A set of rows: as bits (64 bits each), or as a list where they are few (32 bits each).

    marks: them, or None: `size` bytes from `start` on of the file.
    """

    few: bool
    marks: npt.NDArray[Any] | None
    start: int
    size: int


class SpillingRowSets:
    """Sets of rows of a table; several threads may use it at once. A context manager.

    room: bytes that they may take in memory (None: any); more go to a nameless file in the folder `temp` (None: the
    system's), which is gone when the process is. nbytes: of all; spilled: of those in the file.
    """

    def __init__(self, room: int | None = None, temp: str | os.PathLike[str] | None = None) -> None:
        self._room = room
        self._temp = temp
        self._sets: dict[Hashable, _Kept] = {}
        self._files = contextlib.ExitStack()
        self._file: IO[bytes] | None = None
        self._lock = threading.Lock()
        self.nbytes = self.spilled = 0

    def __enter__(self) -> SpillingRowSets:
        return self

    def __exit__(self, *_: object) -> None:
        self._sets.clear()
        self._files.close()

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return self.nbytes - self.spilled

    def put(self, name: Hashable, words: npt.NDArray[np.uint64]) -> None:
        """Keep the rows whose bits are set in `words`, which may be kept itself."""
        few = np.empty(2 * len(words), np.uint32)
        number = kernels.list_bits(words, few)
        listed = number <= len(few)
        marks: npt.NDArray[Any] = few[:number].copy() if listed else words
        with self._lock:
            self.nbytes += marks.nbytes
            if self._room is None or self.held <= self._room:
                self._sets[name] = _Kept(listed, marks, 0, marks.nbytes)
                return
            start = self.spilled
            self.spilled += marks.nbytes
            if self._file is None:
                self._file = self._files.enter_context(_nameless(self._temp))
        self._write(marks, start)
        self._sets[name] = _Kept(listed, None, start, marks.nbytes)

    def add_to(self, name: Hashable, words: npt.NDArray[np.uint64]) -> None:
        """Set the bits of the rows of a set."""
        kept = self._sets[name]
        marks = self._read(kept) if kept.marks is None else kept.marks
        if kept.few:
            kernels.set_bits(marks, words)
        else:
            words |= marks

    def _write(self, marks: npt.NDArray[Any], start: int) -> None:
        assert self._file is not None
        left = marks.data.cast("B") if marks.nbytes else memoryview(b"")
        while left:
            try:
                done = os.pwrite(self._file.fileno(), left, start)
            except OSError as error:
                folder = Path(self._temp or tempfile.gettempdir())
                mend = " Free some space, choose another place with temp (--temp), or raise memory_limit."
                full = mend if error.errno == errno.ENOSPC else ""
                raise OutputError(f"{folder}: could not be written: {error.strerror or error}.{full}") from error
            left, start = left[done:], start + done

    def _read(self, kept: _Kept) -> npt.NDArray[Any]:
        assert self._file is not None
        kind = np.uint32 if kept.few else np.uint64
        marks = np.empty(kept.size // np.dtype(kind).itemsize, kind)
        left, start = marks.data.cast("B") if kept.size else memoryview(b""), kept.start
        while left:
            done = os.preadv(self._file.fileno(), [left], start)
            if not done:
                raise OutputError(f"{Path(self._temp or tempfile.gettempdir())}: a temporary file lost what it held.")
            left, start = left[done:], start + done
        return marks
