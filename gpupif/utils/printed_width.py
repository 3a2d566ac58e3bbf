"""The width of printed results: on a terminal, in a file or a pipe, and as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

# Characters of a line of text, as `str` returns it, and of a standard output that is no terminal.
TEXT_WIDTH, PIPE_WIDTH = 120, 140


def standard_output() -> Console:
    """Return a console of rich on standard output. It is as wide as the terminal, else wide enough for most tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH)
