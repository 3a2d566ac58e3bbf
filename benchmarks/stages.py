"""Measure how long a device spends on each stage of a library's work, by events on its stream."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gpupif.gpu.cupy_arrays import CupyLibrary


class Stages:
    """A context manager in which a library's stages are timed; without a device by the clock."""

    def __init__(self, library: CupyLibrary) -> None:
        self._library = library
        self._on_device = hasattr(library.xp, "cuda")
        self._marks: list[tuple[str, Any, Any]] = []

    def __enter__(self) -> Stages:
        self._library.stage = self._stage  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        del self._library.stage

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        begin = self._mark()
        yield
        self._marks.append((name, begin, self._mark()))

    def _mark(self) -> Any:
        if not self._on_device:
            return time.perf_counter()
        event = self._library.xp.cuda.Event()
        event.record(self._library.xp.cuda.get_current_stream())
        return event

    def clear(self) -> None:
        """Forget what was timed so far, such as a run that is not counted."""
        self._marks.clear()

    def seconds(self) -> dict[str, float]:
        """Return the seconds by stage, summed over all that was timed."""
        sums: dict[str, float] = defaultdict(float)
        for name, begin, end in self._marks:
            if not self._on_device:
                sums[name] += end - begin
            else:
                end.synchronize()
                sums[name] += self._library.xp.cuda.get_elapsed_time(begin, end) / 1000
        return dict(sums)
