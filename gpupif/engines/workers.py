"""Threads of the CPU engine. Kernels release the GIL, so each thread runs one on a range of rows or blocks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

from ..errors import InputError

TASKS_PER_THREAD = 8
SMALLEST_RANGE = 16384


def default_threads() -> int:
    """Cores this process may use; the environment variable GPUPIF_NUM_THREADS overrides it."""
    asked = os.environ.get("GPUPIF_NUM_THREADS")
    if asked is None:
        return len(os.sched_getaffinity(0))
    if not asked.isdecimal() or int(asked) < 1:
        raise InputError(f"GPUPIF_NUM_THREADS: expected a whole number of at least 1, got {asked!r}.")
    return int(asked)


class Workers:
    """A pool of threads for the time of one scoring run (a context manager)."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or default_threads()
        self._pool = ThreadPoolExecutor(self.threads, thread_name_prefix="gpupif") if self.threads > 1 else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Results of function(*task) for each task, in the order of the tasks."""
        tasks = list(tasks)
        if self._pool is None or len(tasks) == 1:
            return [function(*task) for task in tasks]
        return list(self._pool.map(lambda task: function(*task), tasks))

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Cut range(size) into (start, stop) pieces, a few for each thread."""
        pieces = max(1, min(self.threads * TASKS_PER_THREAD, size // SMALLEST_RANGE))
        edges = [size * piece // pieces for piece in range(pieces + 1)]
        return list(pairwise(edges))
