"""Exact percentiles of more numbers than fit into memory: the numbers are read four times, one chunk at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_multiplicities
from gpupif.kernels.number_sums import count_patterns

from .repeated import Repeated

# The empty array in place of multiplicities: each number occurs once.
ONCE: npt.NDArray[np.int64] = np.empty(0, np.int64)
# A float64 is read as four digits of 16 bits.
DIGITS = 1 << 16
# The bits by which a number is shifted for each of its digits, the highest digit first.
SHIFTS = (48, 32, 16, 0)
# For more prefixes than these a chunk is sorted, so that each prefix is looked for among its own numbers alone.
FEW_PREFIXES = 8
# As many numbers are sorted sooner than their digits are counted.
FEW_NUMBERS = 4096
# The digits in the order of the numbers that have them. The bits of negative numbers have the reverse order. FIRST has
# the first digits from -inf to inf; other first digits are NaN.
FORWARD = np.arange(DIGITS)
BACKWARD = FORWARD[::-1]
FIRST = np.concatenate([np.arange(0xFFF0, 0x7FFF, -1), np.arange(0x7FF1)])
# A function that yields numbers, chunk by chunk, and how often each occurs (`ONCE`: once).
NumberChunks = Callable[[], Iterable[tuple[Any, Any]]]
# The number of times that each next digit occurs, by the digits before it (the prefix).
DigitCounts = dict[int, Any]


def count_repeated(values: Repeated) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Return the distinct values of a column, and how often each occurs."""
    multiplicities = np.zeros(len(values.distinct), np.int64)
    add_multiplicities(values.numbers, np.empty(0, np.int64), multiplicities)
    return values.distinct, multiplicities


def percentiles(chunks: NumberChunks, wanted: Sequence[float]) -> list[float]:
    """Return percentiles of numbers without NaN, as `numpy.percentile` computes them (linear); NaN for no numbers.

    chunks: yields all numbers each time it is called; it is called up to five times. wanted: percentiles, 0 to 100.
    """
    few = _few_numbers(chunks())
    if few is not None:
        numbers, below = few
        total = int(below[-1]) if len(below) else 0
        places = [_place(percent, total) for percent in wanted] if total else []
        ranks = [[math.floor(place), math.ceil(place)] for place in places]
        ends = numbers[np.searchsorted(below, np.array(ranks, np.int64), "right")].tolist() if total else []
        of_places = [_between(low, high, place % 1) for (low, high), place in zip(ends, places, strict=True)]
        return of_places or [math.nan] * len(wanted)
    return percentiles_of([chunks], wanted, lambda count, tasks: [count(*task) for task in tasks])


def _few_numbers(chunks: Iterable[tuple[Any, Any]]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]] | None:
    """Return numbers in order, and how many are not above each; None if there are more than `FEW_NUMBERS`."""
    parts, left = [(np.empty(0), ONCE)], FEW_NUMBERS
    for numbers, multiplicities in chunks:
        left -= len(numbers)
        if left < 0:
            return None
        # Adding zero turns -0.0 into 0.0.
        parts.append((np.asarray(numbers, np.float64) + 0.0, multiplicities))
    numbers = np.concatenate([numbers for numbers, _ in parts])
    many = [own if len(own) else np.ones(len(numbers), np.int64) for numbers, own in parts]
    order = np.argsort(numbers)[: len(numbers) - int(np.isnan(numbers).sum())]
    return numbers[order], np.cumsum(np.concatenate(many)[order])


def percentiles_of(
    sources: Sequence[NumberChunks], wanted: Sequence[float], run: Callable[..., Sequence[DigitCounts]]
) -> list[float]:
    """Return percentiles of the numbers of all sources together, see `percentiles`.

    sources: functions that yield numbers. run: calls a function for each source and returns all results, see
    `Workers.run`.
    """
    search = PercentileSearch.for_percents(wanted)

    def count(chunks: NumberChunks) -> DigitCounts:
        counts: DigitCounts = {}
        for numbers, multiplicities in chunks():
            search.count(numbers, multiplicities, counts)
        return counts

    for _ in SHIFTS:
        first, *others = run(count, [(chunks,) for chunks in sources])
        for counts in others:
            for prefix, digits in counts.items():
                first[prefix] = first[prefix] + digits if prefix in first else digits
        search = search.narrowed(first)
    return search.percentiles()


def percentiles_of_sorted(numbers: Any, wanted: Sequence[float]) -> list[float]:
    """Return percentiles of sorted numbers without NaN, on the host or a device; NaN for no numbers."""
    if not len(numbers):
        return [math.nan] * len(wanted)
    places = [_place(percent, len(numbers)) for percent in wanted]
    ends = [[float(numbers[end(place)]) for end in (math.floor, math.ceil)] for place in places]
    return [_between(low, high, place % 1) for (low, high), place in zip(ends, places, strict=True)]


@dataclass(frozen=True)
class PercentileSearch:
    """A search for percentiles, which finds 16 bits of each result at a time, the highest bits first.

    Each look goes over all numbers in any chunks: `count` counts their next digits, and `narrowed` then knows 16 bits
    more. Four looks find all bits. The first look counts the numbers without NaN, from which the ranks follow.

    wanted: the percentiles, 0 to 100.
    places: the place of each percentile among the numbers in order, from 0; between two ranks it has a fraction.
    ranks: the ranks of the numbers that are needed, ascending.
    prefixes: the digits of each of these numbers that are known so far.
    left: the rank of each of these numbers among the numbers with its prefix.
    looks: the number of looks so far.
    """

    wanted: tuple[float, ...]
    places: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    prefixes: tuple[int, ...] = (0,)
    left: tuple[int, ...] = ()
    looks: int = 0

    @classmethod
    def for_percents(cls, wanted: Sequence[float]) -> PercentileSearch:
        """Return a new search. wanted: percentiles, 0 to 100."""
        return cls(tuple(wanted))

    def count(self, numbers: Any, multiplicities: Any, counts: DigitCounts) -> None:
        """Add the next digits of some numbers to `counts`. multiplicities: of the numbers; empty: 1."""
        # Adding zero turns -0.0 into 0.0, and any NaN into a NaN whose first digit is not a digit of infinity.
        bits = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
        prefixes, shift, within = set(self.prefixes), SHIFTS[self.looks], slice(None)
        in_order = len(prefixes) > FEW_PREFIXES
        if in_order and len(multiplicities):
            order = np.argsort(bits)
            bits, multiplicities = bits[order], multiplicities[order]
        elif in_order:
            bits = np.sort(bits)
        for prefix in prefixes:
            if prefix not in counts:
                counts[prefix] = np.zeros(DIGITS, np.int64)
            if in_order:
                ends = np.array([prefix << (shift + 16), ((prefix + 1) << (shift + 16)) - 1], np.uint64)
                within = slice(np.searchsorted(bits, ends[0]), np.searchsorted(bits, ends[1], "right"))
            count_patterns(bits[within], multiplicities[within], prefix, shift, counts[prefix])

    def narrowed(self, counts: Mapping[int, Any]) -> PercentileSearch:
        """Return the search after a look. counts: the counts of all numbers."""
        first = not self.looks
        search = self._ranked(int(counts[0][FIRST].sum()) if counts else 0) if first else self
        prefixes, left = [], []
        for prefix, rank in zip(search.prefixes, search.left, strict=True):
            negative = not first and prefix >> (16 * self.looks - 1)
            digits = FIRST if first else BACKWARD if negative else FORWARD
            multiplicities = counts[prefix][digits]
            below = np.cumsum(multiplicities)
            place = int(np.searchsorted(below, rank, side="right"))
            left.append(rank - int(below[place] - multiplicities[place]))
            prefixes.append((prefix << 16) | int(digits[place]))
        return replace(search, prefixes=tuple(prefixes), left=tuple(left), looks=self.looks + 1)

    def _ranked(self, total: int) -> PercentileSearch:
        """Return the search for the ranks that follow from `total` numbers."""
        places = tuple(_place(percent, total) for percent in self.wanted) if total else ()
        ranks = tuple(sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))}))
        return replace(self, places=places, ranks=ranks, prefixes=(0,) * len(ranks), left=ranks)

    def percentiles(self) -> list[float]:
        """Return the percentiles, after four looks; NaN if there are no numbers."""
        if not self.places:
            return [math.nan] * len(self.wanted)
        numbers = [float(np.uint64(bits).view(np.float64)) for bits in self.prefixes]
        by_rank = dict(zip(self.ranks, numbers, strict=True))
        return [
            _between(by_rank[math.floor(place)], by_rank[math.ceil(place)], place - math.floor(place))
            for place in self.places
        ]


def _place(percent: float, total: int) -> float:
    """Return the place of a percentile among `total` sorted numbers, from 0."""
    return percent / 100 * (total - 1)


def _between(low: float, high: float, share: float) -> float:
    """Return the value at a share of the way from `low` to `high`; infinite between a number and infinity.

    The formula is that of `numpy.percentile`, so that bits are equal.
    """
    if math.isinf(low) or math.isinf(high):
        return low if low == high else low + high
    step = high - low
    return high - step * (1 - share) if share >= 0.5 else low + step * share
