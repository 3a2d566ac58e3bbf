"""The time that a benchmark may take: what no longer fits is left out, with a note that says so."""

from __future__ import annotations

import time
from collections.abc import Callable

# What is expected may take so much longer.
MARGIN = 1.2


class Budget:
    """The seconds left to a benchmark, and how long each kind of work took, on how many rows.

    clock: seconds, from any moment on. notes: what was left out, and why.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._taken: dict[str, tuple[int, float]] = {}
        self.notes: list[str] = []

    @property
    def left(self) -> float:
        """Return the seconds that are left, negative if the time is over."""
        return self._end - self._clock()

    def took(self, work: str, rows: int, seconds: float) -> None:
        """Note how long a piece of work took; larger pieces are estimated from it."""
        self._taken[work] = rows, seconds

    def expected(self, work: str, rows: int, otherwise: float = 0.0) -> float:
        """Estimate the seconds of work on so many rows, in proportion to the last time; `otherwise` if never done."""
        if work not in self._taken:
            return otherwise
        before, seconds = self._taken[work]
        return seconds * max(1.0, rows / before) * MARGIN

    def fits(self, what: str, seconds: float) -> bool:
        """Return whether work of so many seconds fits into the time left; if not, add a note."""
        left = self.left
        if left > 0 and seconds <= left:
            return True
        self.notes.append(f"{what}: left out, it takes about {seconds:.0f} s and {max(0.0, left):.0f} s are left")
        return False
