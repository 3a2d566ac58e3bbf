"""The time that a benchmark may take: what no longer fits is left out, with a note that says so."""

from __future__ import annotations

import time
from collections.abc import Callable

# What is expected may take so much longer.
MARGIN = 1.2


class Budget:
    """So many seconds from now on, and how long work on so many rows has taken.

    clock: seconds, from any moment on. notes: what was left out, and why.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._taken: dict[str, tuple[int, float]] = {}
        self.notes: list[str] = []

    @property
    def left(self) -> float:
        """Seconds that are left; below 0 where it took longer."""
        return self._end - self._clock()

    def took(self, work: str, rows: int, seconds: float) -> None:
        """Note how long a piece of work took, by which larger ones are judged."""
        self._taken[work] = rows, seconds

    def expected(self, work: str, rows: int, otherwise: float = 0.0) -> float:
        """Seconds that it will take on so many rows, which are in proportion to these; `otherwise` where never done."""
        if work not in self._taken:
            return otherwise
        before, seconds = self._taken[work]
        return seconds * max(1.0, rows / before) * MARGIN

    def fits(self, what: str, seconds: float) -> bool:
        """Whether there is time for something that takes so long; where there is not, a note says so."""
        left = self.left
        if left > 0 and seconds <= left:
            return True
        self.notes.append(f"{what}: left out, it takes about {seconds:.0f} s and {max(0.0, left):.0f} s are left")
        return False
