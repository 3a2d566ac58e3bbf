"""Exact percentiles of more numbers than fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.dictionary import count_numbers
from gpupif.kernels.select import count_patterns

from .repeated import Repeated

ONCE: npt.NDArray[np.int64] = np.empty(0, np.int64)
DIGITS = 1 << 16
# By how much the bits of a number are moved for its digits, the highest first.
SHIFTS = (48, 32, 16, 0)
# Numbers and how often each occurs (empty: once), piece by piece.
Pieces = Callable[[], Iterable[tuple[Any, Any]]]
# By digits before it how often each next digit occurs.
DigitCounts = dict[int, Any]


def count_repeated(values: Repeated) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The values that differ, and how often each occurs."""
    times = np.zeros(len(values.distinct), np.int64)
    count_numbers(values.numbers, times)
    return values.distinct, times


def percentiles(pieces: Pieces, total: int, wanted: Sequence[float]) -> list[float]:
    """Percentiles (linear, as `numpy.percentile` has them) of `total` numbers from 0 on, read four times.

    pieces: gives all numbers, each time it is called.
    """
    return percentiles_of([pieces], total, wanted, lambda count, tasks: [count(*task) for task in tasks])


def percentiles_of(
    several: Sequence[Pieces], total: int, wanted: Sequence[float], run: Callable[..., Sequence[DigitCounts]]
) -> list[float]:
    """Percentiles of the numbers of several together; run: counts those of all, see `Workers.run`."""
    search = PercentileSearch.of(total, wanted)

    def count(pieces: Pieces) -> DigitCounts:
        counts: DigitCounts = {}
        for numbers, times in pieces():
            search.count(numbers, times, counts)
        return counts

    for _ in SHIFTS:
        first, *others = run(count, [(pieces,) for pieces in several])
        for counts in others:
            for prefix, digits in counts.items():
                first[prefix] = first[prefix] + digits if prefix in first else digits
        search = search.narrowed(first)
    return search.found()


@dataclass(frozen=True)
class PercentileSearch:
    """Percentiles of numbers from 0 on, whose bits order as they do: found by 16 of these at a time, the highest first.

    Each look at all numbers, in any pieces, `count`s them; `narrowed` then knows 16 bits more, after four all.
    """

    places: tuple[float, ...]
    ranks: tuple[int, ...]
    prefixes: tuple[int, ...]
    left: tuple[int, ...]
    looks: int = 0

    @classmethod
    def of(cls, total: int, wanted: Sequence[float]) -> PercentileSearch:
        """A search for percentiles of so many numbers."""
        places = tuple(percent / 100 * (total - 1) for percent in wanted)
        ranks = tuple(sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))}))
        return cls(places, ranks, (0,) * len(ranks), ranks)

    def count(self, numbers: Any, times: Any, counts: DigitCounts) -> None:
        """Count the next digits of some numbers, each of which occurs so many times (empty: once)."""
        # Adding zero makes -0.0 the 0.0 that it is.
        patterns = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
        for prefix in set(self.prefixes):
            if prefix not in counts:
                counts[prefix] = np.zeros(DIGITS, np.int64)
            count_patterns(patterns, times, prefix, SHIFTS[self.looks], counts[prefix])

    def narrowed(self, counts: Mapping[int, Any]) -> PercentileSearch:
        """The search after a look at all numbers."""
        prefixes, left = [], []
        for prefix, rank in zip(self.prefixes, self.left, strict=True):
            below = np.cumsum(counts[prefix])
            digit = int(np.searchsorted(below, rank, side="right"))
            left.append(rank - int(below[digit] - counts[prefix][digit]))
            prefixes.append((prefix << 16) | digit)
        return PercentileSearch(self.places, self.ranks, tuple(prefixes), tuple(left), self.looks + 1)

    def found(self) -> list[float]:
        """The percentiles, after four looks."""
        numbers = [float(np.uint64(pattern).view(np.float64)) for pattern in self.prefixes]
        of_rank = dict(zip(self.ranks, numbers, strict=True))
        return [
            _between(of_rank[math.floor(place)], of_rank[math.ceil(place)], place - math.floor(place))
            for place in self.places
        ]


def _between(low: float, high: float, share: float) -> float:
    """By the formula of `numpy.percentile`, for the same bits."""
    step = high - low
    return high - step * (1 - share) if share >= 0.5 else low + step * share
