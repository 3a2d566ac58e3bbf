"""Exact percentiles of more numbers than fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
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
# Digits in the order of the numbers that have them: the bits of negative ones order the other way round. Of the first
# digits those from -inf to inf; what is beyond is NaN.
FORWARD = np.arange(DIGITS)
BACKWARD = FORWARD[::-1]
FIRST = np.concatenate([np.arange(0xFFF0, 0x7FFF, -1), np.arange(0x7FF1)])
# Numbers and how often each occurs (empty: once), piece by piece.
Pieces = Callable[[], Iterable[tuple[Any, Any]]]
# By digits before it how often each next digit occurs.
DigitCounts = dict[int, Any]


def count_repeated(values: Repeated) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """The values that differ, and how often each occurs."""
    times = np.zeros(len(values.distinct), np.int64)
    count_numbers(values.numbers, times)
    return values.distinct, times


def percentiles(pieces: Pieces, wanted: Sequence[float]) -> list[float]:
    """Percentiles (linear, as `numpy.percentile` has them) of numbers, but NaN, read four times; of none NaN.

    pieces: gives all numbers, each time it is called.
    """
    return percentiles_of([pieces], wanted, lambda count, tasks: [count(*task) for task in tasks])


def percentiles_of(
    several: Sequence[Pieces], wanted: Sequence[float], run: Callable[..., Sequence[DigitCounts]]
) -> list[float]:
    """Percentiles of the numbers of several together; run: counts those of all, see `Workers.run`."""
    search = PercentileSearch.of(wanted)

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


def percentiles_of_sorted(numbers: Any, wanted: Sequence[float]) -> list[float]:
    """The same of numbers in order without NaN, of host or device."""
    if not len(numbers):
        return [math.nan] * len(wanted)
    places = [_place(percent, len(numbers)) for percent in wanted]
    ends = [[float(numbers[end(place)]) for end in (math.floor, math.ceil)] for place in places]
    return [_between(low, high, place % 1) for (low, high), place in zip(ends, places, strict=True)]


@dataclass(frozen=True)
class PercentileSearch:
    """Percentiles of numbers, found by 16 of their bits at a time, the highest first.

    Each look at all numbers, in any pieces, `count`s them; `narrowed` then knows 16 bits more, after four all. The
    first look tells how many numbers there are, and so which ranks are looked for; NaN is none.
    """

    wanted: tuple[float, ...]
    places: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    prefixes: tuple[int, ...] = (0,)
    left: tuple[int, ...] = ()
    looks: int = 0

    @classmethod
    def of(cls, wanted: Sequence[float]) -> PercentileSearch:
        """A search for percentiles."""
        return cls(tuple(wanted))

    def count(self, numbers: Any, times: Any, counts: DigitCounts) -> None:
        """Count the next digits of some numbers, each of which occurs so many times (empty: once)."""
        # Adding zero makes -0.0 the 0.0 that it is, and any NaN one whose first digit is not that of infinity.
        bits = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
        for prefix in set(self.prefixes):
            if prefix not in counts:
                counts[prefix] = np.zeros(DIGITS, np.int64)
            count_patterns(bits, times, prefix, SHIFTS[self.looks], counts[prefix])

    def narrowed(self, counts: Mapping[int, Any]) -> PercentileSearch:
        """The search after a look at all numbers."""
        first = not self.looks
        search = self._ranked(int(counts[0][FIRST].sum()) if counts else 0) if first else self
        prefixes, left = [], []
        for prefix, rank in zip(search.prefixes, search.left, strict=True):
            negative = not first and prefix >> (16 * self.looks - 1)
            digits = FIRST if first else BACKWARD if negative else FORWARD
            times = counts[prefix][digits]
            below = np.cumsum(times)
            place = int(np.searchsorted(below, rank, side="right"))
            left.append(rank - int(below[place] - times[place]))
            prefixes.append((prefix << 16) | int(digits[place]))
        return replace(search, prefixes=tuple(prefixes), left=tuple(left), looks=self.looks + 1)

    def _ranked(self, total: int) -> PercentileSearch:
        """The search among so many numbers."""
        places = tuple(_place(percent, total) for percent in self.wanted) if total else ()
        ranks = tuple(sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))}))
        return replace(self, places=places, ranks=ranks, prefixes=(0,) * len(ranks), left=ranks)

    def found(self) -> list[float]:
        """The percentiles, after four looks."""
        if not self.places:
            return [math.nan] * len(self.wanted)
        numbers = [float(np.uint64(bits).view(np.float64)) for bits in self.prefixes]
        of_rank = dict(zip(self.ranks, numbers, strict=True))
        return [
            _between(of_rank[math.floor(place)], of_rank[math.ceil(place)], place - math.floor(place))
            for place in self.places
        ]


def _place(percent: float, total: int) -> float:
    """Of a percentile among so many numbers in order, from 0."""
    return percent / 100 * (total - 1)


def _between(low: float, high: float, share: float) -> float:
    """By the formula of `numpy.percentile`, for the same bits; between a number and infinity it is infinite."""
    if math.isinf(low) or math.isinf(high):
        return low if low == high else low + high
    step = high - low
    return high - step * (1 - share) if share >= 0.5 else low + step * share
