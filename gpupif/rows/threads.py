"""Threads and working memory of the CPU engine. Kernels release the GIL: each thread runs one on a range of rows."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import cache
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..utils.config import resources

# Multiple of a cache line: no two arrays share a line.
ALIGNMENT = 128
TASKS_PER_THREAD = 4
# Fewest rows of a task: fewer are not worth a call.
SMALLEST_TASK = 16384


def default_threads() -> int:
    """Return the number of threads of `gpupif.config`; if not set, the number of cores that this process may use."""
    return resources().threads or len(os.sched_getaffinity(0))


Spare = TypeVar("Spare")


class Spares(Generic[Spare]):
    """A store of objects that threads take and give back. It makes an object if none is left."""

    def __init__(self, make: Callable[[], Spare]) -> None:
        self._make = make
        self._there: list[Spare] = []

    def take(self) -> Spare:
        """Return an object that no other thread has."""
        try:
            return self._there.pop()
        except IndexError:
            return self._make()

    def give_back(self, spare: Spare) -> None:
        """Give an object back, for the next thread."""
        self._there.append(spare)


class _Lease:
    """The span of one array in the arena, given back when the last view of the array is gone."""

    def __init__(self, memory: npt.NDArray[np.uint8], span: tuple[int, int], returned: deque[tuple[int, int]]) -> None:
        self._memory = memory
        self._span = span
        self._returned = returned
        self.__array_interface__ = memory[span[0] : span[1]].__array_interface__

    def __del__(self) -> None:
        self._returned.append(self._span)


class Arena:
    """An arena of memory for arrays, used again after an array is gone; for one thread.

    size: bytes of the arena. If it is full, arrays are allocated outside it.
    """

    def __init__(self, size: int = 0) -> None:
        try:
            self._memory = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            # The system may refuse this much memory at once, although less will be touched.
            size = 0
            self._memory = np.empty(ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._free = [(start, start + size)]
        self._returned: deque[tuple[int, int]] = deque()

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array with arbitrary contents, as low in the arena as it fits."""
        sizes = (shape,) if isinstance(shape, int) else shape
        wanted = math.prod(sizes) * np.dtype(dtype).itemsize
        room = -(-wanted // ALIGNMENT) * ALIGNMENT
        self._merge_returned()
        for place, (start, stop) in enumerate(self._free):
            if wanted and stop - start >= room:
                self._free[place] = (start + room, stop)
                lease = _Lease(self._memory, (start, start + room), self._returned)
                array: npt.NDArray[Any] = np.asarray(lease)[:wanted].view(dtype).reshape(sizes)
                return array
        return np.empty(sizes, dtype)

    def _merge_returned(self) -> None:
        while self._returned:
            self._free.append(self._returned.popleft())
        self._free.sort()
        merged: list[tuple[int, int]] = []
        for start, stop in self._free:
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], stop)
            elif start < stop:
                merged.append((start, stop))
        self._free = merged


@cache
def _helper_threads(number: int) -> ThreadPoolExecutor:
    """Return the helper threads of all runs: to start threads takes longer than to score a small table."""
    return ThreadPoolExecutor(number, thread_name_prefix="gpupif")


# A process that was forked has none of its parent's threads.
os.register_at_fork(after_in_child=_helper_threads.cache_clear)


class Workers:
    """The calling thread and helper threads during a scoring run (a context manager), and their working memory.

    threads: default all that may be used. memory: bytes of the arena that `empty` takes arrays from.
    """

    def __init__(self, threads: int | None = None, memory: int = 0) -> None:
        self.empty = Arena(memory).empty
        self.threads = threads or default_threads()

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        # The arena goes with its last array.
        self.empty = np.empty

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Return the results of function(*task), in the order of the tasks. Raise the error of the first task that
        failed.
        """
        waiting = deque(enumerate(tasks))
        results: list[Any] = [None] * len(waiting)
        errors: dict[int, BaseException] = {}

        def work() -> None:
            while True:
                try:
                    place, task = waiting.popleft()
                except IndexError:
                    return
                try:
                    results[place] = function(*task)
                except BaseException as error:
                    errors[place] = error
                    waiting.clear()

        helpers = min(self.threads, len(waiting)) - 1
        pool = _helper_threads(self.threads - 1) if helpers > 0 else None
        others: list[Future[None]] = []
        try:
            if pool is not None:
                others.extend(pool.submit(copy_context().run, work) for _ in range(helpers))
            work()
        finally:
            waiting.clear()
            # A helper that other runs keep busy has nothing left to do here.
            wait([other for other in others if not other.cancel()])
        if errors:
            raise errors[min(errors)]
        return results

    def run_in_turn(
        self, make: Callable[..., Any], take: Callable[[Any], None], tasks: Iterable[tuple[Any, ...]]
    ) -> None:
        """Call take(make(*task)) for each task: `make` in parallel, `take` one after the other in the order of the
        tasks.

        A thread begins no task before its last result is taken, so at most `threads` results wait.
        """
        waiting, turn = enumerate(tasks), threading.Condition()
        taken, failed = 0, False

        def work() -> None:
            nonlocal taken, failed
            try:
                while not failed:
                    with turn:
                        place, task = next(waiting, (-1, ()))
                    if place < 0:
                        return
                    made = make(*task)
                    with turn:
                        while not failed and taken != place:
                            turn.wait()
                    if failed:
                        return
                    take(made)
                    with turn:
                        taken += 1
                        turn.notify_all()
            except BaseException:
                with turn:
                    failed = True
                    turn.notify_all()
                raise

        self.run(work, [()] * self.threads)

    def ranges(self, size: int) -> list[tuple[int, int]]:
        """Cut range(size) into ranges (start, stop), a few for each thread."""
        tasks = max(1, min(self.threads * TASKS_PER_THREAD, size // SMALLEST_TASK))
        edges = [size * task // tasks for task in range(tasks + 1)]
        return list(pairwise(edges))
