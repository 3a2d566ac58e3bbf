"""The worst and the mean of the scores of each cell against several attackers, on the host or a device.

A score that is unknown (NaN) against some attackers is left out. If it is unknown against all attackers, the worst and
the mean are NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from ..measures import Measure, as_risk, from_risk


def worst_of(measure: Measure, several: Sequence[Any]) -> Any:
    """Return the riskiest score of each cell. several: an array of scores against each attacker."""
    return from_risk(measure, reduce(np.fmax, (as_risk(measure, scores) for scores in several)))


def worst_place(measure: Measure, scores: npt.NDArray[Any]) -> int:
    """Return the place of the riskiest score of one cell: the first of equal scores, and 0 if all are unknown."""
    known = np.flatnonzero(scores == scores)
    return int(known[np.argmax(as_risk(measure, scores[known]))]) if len(known) else 0


def mean_of(several: Sequence[Any]) -> Any:
    """Return the mean score of each cell, summed in float64. several: an array of scores against each attacker."""
    mean = _Mean(*(np.zeros_like(several[0], dtype) for dtype in (np.float64, np.int64)))
    for scores in several:
        mean.add(scores, slice(None))
    return mean.over(len(several))


class WorstAndMean:
    """The worst and the mean scores of cells, for one measure, over attackers that are added one by one."""

    def __init__(self, measure: Measure, cells: int) -> None:
        self._measure = measure
        self._risks = np.full(cells, np.nan)
        # An array of zeros takes no memory until something is written to it.
        self._mean = _Mean(np.zeros(cells), np.zeros(cells, np.int64))

    def add(self, scores: npt.NDArray[np.float64], cells: slice) -> None:
        """Add the scores of some of the cells against one more attacker."""
        risks = self._risks[cells]
        np.fmax(risks, as_risk(self._measure, scores), out=risks)
        self._mean.add(scores, cells)

    def worst(self) -> npt.NDArray[np.float64]:
        """Return the worst score of each cell over the added attackers."""
        worst: npt.NDArray[np.float64] = from_risk(self._measure, self._risks)
        return worst

    def mean(self, attackers: int) -> npt.NDArray[np.float64]:
        """Return the mean score of each cell. attackers: the number of added attackers."""
        mean: npt.NDArray[np.float64] = self._mean.over(attackers)
        return mean


class _Mean:
    """The sum of the known scores of each cell, and the number of unknown scores. The caller gives arrays of zeros."""

    def __init__(self, sums: Any, unknown: Any) -> None:
        self._sums, self._unknown = sums, unknown

    def add(self, scores: Any, cells: slice) -> None:
        unknown = scores != scores
        if unknown.any():
            self._unknown[cells] += unknown
            scores = np.where(unknown, 0, scores)
        self._sums[cells] += scores

    def over(self, attackers: int) -> Any:
        with np.errstate(invalid="ignore"):
            return self._sums / (attackers - self._unknown)
