"""Exact percentiles of more numbers than fit into memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels.select import count_patterns

if TYPE_CHECKING:
    import numpy.typing as npt

ONCE: npt.NDArray[np.int64] = np.empty(0, np.int64)
DIGITS = 1 << 16
# Numbers and how often each occurs (empty: once), piece by piece.
Pieces = Callable[[], Iterable[tuple[Any, Any]]]


def percentiles(pieces: Pieces, total: int, wanted: Sequence[float]) -> list[float]:
    """Percentiles (linear, as `numpy.percentile` has them) of `total` numbers from 0 on, read four times.

    pieces: gives all numbers, each time it is called.
    """
    places = [percent / 100 * (total - 1) for percent in wanted]
    ranks = sorted({rank for place in places for rank in (math.floor(place), math.ceil(place))})
    found = dict(zip(ranks, _order_statistics(pieces, ranks), strict=True))
    return [_between(found[math.floor(place)], found[math.ceil(place)], place - math.floor(place)) for place in places]


def _between(low: float, high: float, share: float) -> float:
    """By the formula of `numpy.percentile`, for the same bits."""
    step = high - low
    return high - step * (1 - share) if share >= 0.5 else low + step * share


def _order_statistics(pieces: Pieces, ranks: Sequence[int]) -> list[float]:
    """The numbers of these ranks, from 0; their bits are found from the highest down, for they order as they do."""
    prefixes = [0] * len(ranks)
    left = list(ranks)
    for shift in (48, 32, 16, 0):
        counts = {prefix: np.zeros(DIGITS, np.int64) for prefix in prefixes}
        for numbers, times in pieces():
            # Adding zero makes -0.0 the 0.0 that it is.
            patterns = (np.asarray(numbers, np.float64) + 0.0).view(np.uint64)
            for prefix, found in counts.items():
                count_patterns(patterns, times, prefix, shift, found)
        for place, prefix in enumerate(prefixes):
            below = np.cumsum(counts[prefix])
            digit = int(np.searchsorted(below, left[place], side="right"))
            left[place] -= int(below[digit] - counts[prefix][digit])
            prefixes[place] = (prefix << 16) | digit
    return [float(np.uint64(pattern).view(np.float64)) for pattern in prefixes]
