"""The memory that the C library keeps after it is freed. Libraries other than glibc lack these functions."""

from __future__ import annotations

import contextlib
import ctypes
import os

# The parameter of glibc's `mallopt` for the most arenas (M_ARENA_MAX in malloc.h).
MOST_ARENAS = -8


def limit_arenas() -> None:
    """Have threads share arenas of memory, one for each core that this process may use.

    By default glibc makes up to eight for each core, and each keeps freed memory that others cannot use: 30 MiB of a
    run under a limit of 420 MiB. It has no effect after glibc made eight arenas.
    """
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(MOST_ARENAS, len(os.sched_getaffinity(0)))
