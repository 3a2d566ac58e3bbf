"""Threads and memory of the CPU engine. Kernels release the GIL: each thread runs one on a range of rows or blocks."""

from __future__ import annotations

import math
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..utils.config import resources

# Whole lines of memory, so that no two arrays share one.
ALIGNMENT = 128
TASKS_PER_THREAD = 4
# Rows that are worth a call.
SMALLEST_TASK = 16384


def default_threads() -> int:
    """Threads that `gpupif.config` says; else as many as there are cores that this process may use."""
    return resources().threads or len(os.sched_getaffinity(0))


Spare = TypeVar("Spare")


class Spares(Generic[Spare]):
    """Things that threads take, made where none is there, and give back to be used again."""

    def __init__(self, make: Callable[[], Spare]) -> None:
        self._make = make
        self._there: list[Spare] = []

    def take(self) -> Spare:
        """One that no other thread has."""
        try:
            return self._there.pop()
        except IndexError:
            return self._make()

    def give_back(self, spare: Spare) -> None:
        """Leave it to the next."""
        self._there.append(spare)


class _Lease:
    """One array's piece of the arena, given back when the last view of it is gone."""

    def __init__(self, memory: npt.NDArray[np.uint8], span: tuple[int, int], returned: deque[tuple[int, int]]) -> None:
        self._memory = memory
        self._span = span
        self._returned = returned
        self.__array_interface__ = memory[span[0] : span[1]].__array_interface__

    def __del__(self) -> None:
        self._returned.append(self._span)


class Arena:
    """Arrays from one piece of memory of which only what is in use together is ever touched; for one thread.

    size: bytes to take arrays from; where they are used up, arrays come from elsewhere.
    """

    def __init__(self, size: int = 0) -> None:
        try:
            self._memory = np.empty(size + ALIGNMENT, np.uint8)
        except MemoryError:
            # So much in one piece may be refused where what is really touched is not.
            size = 0
            self._memory = np.empty(ALIGNMENT, np.uint8)
        start = -self._memory.ctypes.data % ALIGNMENT
        self._free = [(start, start + size)]
        self._returned: deque[tuple[int, int]] = deque()

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """An array with arbitrary contents, as low in the arena as it fits."""
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


class Workers:
    """The calling thread and helpers for the time of one scoring run (a context manager), and memory to work in.

    threads: default all that may be used. memory: bytes of the arena from which `empty` takes arrays.
    """

    def __init__(self, threads: int | None = None, memory: int = 0) -> None:
        self.empty = Arena(memory).empty
        self.threads = threads or default_threads()
        helpers = self.threads - 1
        self._pool = ThreadPoolExecutor(helpers, thread_name_prefix="gpupif") if helpers else None

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(self, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Results of function(*task) for each task, in the order of the tasks; of several errors the first task's."""
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
        others = [self._pool.submit(copy_context().run, work) for _ in range(helpers)] if self._pool is not None else []
        try:
            work()
        finally:
            waiting.clear()
            wait(others)
        if errors:
            raise errors[min(errors)]
        return results

    def run_in_turn(
        self, make: Callable[..., Any], take: Callable[[Any], None], tasks: Iterable[tuple[Any, ...]]
    ) -> None:
        """Call take(make(*task)) for each task: `make` at the same time, `take` one after the other in their order.

        No thread begins a task before what it made of the last one is taken, so that no more than `threads` wait.
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
        """Cut range(size) into (start, stop) pieces, a few for each thread."""
        pieces = max(1, min(self.threads * TASKS_PER_THREAD, size // SMALLEST_TASK))
        edges = [size * piece // pieces for piece in range(pieces + 1)]
        return list(pairwise(edges))
