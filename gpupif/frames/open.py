"""A table of any kind, or a path of one, as a frame."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..io.common import Pick
from .base import Frame, open_file, open_frame

if TYPE_CHECKING:
    from ..gpu.base import FrameLibrary


def open_table(table: Any, pick: Pick, library: FrameLibrary | None = None, sep: str | None = None) -> Frame:
    """The table as a frame; of a file only the columns that are needed are read, by the device's library if any.

    sep: the separator of a CSV file (None: found by itself). Raises InputError where it has no rows.
    """
    if isinstance(table, str | os.PathLike):
        frame = open_file(Path(table), pick, sep, library)
    else:
        frame = table if isinstance(table, Frame) else open_frame(table)
    if frame.names and frame.rows == 0:
        listed = ", ".join(map(str, frame.names))
        raise InputError(f"table: expected at least one row, got none (columns: {listed}).")
    return frame
