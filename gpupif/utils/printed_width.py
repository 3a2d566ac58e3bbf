"""The width of printed results: on a terminal, in a file or a pipe, and as text."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Characters of a line of text, as `str` returns it, and of a standard output that is no terminal.
TEXT_WIDTH, PIPE_WIDTH = 120, 140


def standard_output() -> Console:
    """Return a console of rich on standard output: as wide as COLUMNS says, if set, or as the terminal is.

    In a pipe or a file without COLUMNS it is wide enough for most tables.
    """
    from rich.console import Console

    asked = os.environ.get("COLUMNS", "")
    is_set = asked.isdecimal() and int(asked) > 0
    return Console(width=shutil.get_terminal_size().columns if is_set or sys.stdout.isatty() else PIPE_WIDTH)
