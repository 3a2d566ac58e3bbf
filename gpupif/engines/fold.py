"""Scores of cells against several attackers folded into one: the worst of them, or their mean, on host or device.

A score that is unknown (NaN) against some attackers counts in neither; against all of them, both are NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..measures import Measure, as_risk


def fold_worst(measure: Measure, worst: Any, scores: Any) -> None:
    """Put the scores that are riskier (see `as_risk`) than those in `worst`, or known where these are not, there."""
    riskier = as_risk(measure, scores) > as_risk(measure, worst)
    riskier |= worst != worst
    np.copyto(worst, scores, where=riskier)


def worst_place(measure: Measure, scores: npt.NDArray[Any]) -> int:
    """Which of several scores of a cell `fold_worst` leaves: of equal ones the first, of unknown ones alone too."""
    known = np.flatnonzero(scores == scores)
    return int(known[np.argmax(as_risk(measure, scores[known]))]) if len(known) else 0


class Mean:
    """The mean of scores that come one after the other; total: zeros, of float64, where their sums go."""

    def __init__(self, total: Any) -> None:
        self._total, self._known = total, total.astype(np.int64)

    def add(self, scores: Any, part: slice = slice(None)) -> None:
        """Scores of all cells, or of a part of them, against one more attacker."""
        known = scores == scores
        self._known[part] += known
        self._total[part] += np.where(known, scores, 0)

    def of(self) -> Any:
        """The mean of what was added, in place of the sums."""
        with np.errstate(invalid="ignore"):
            self._total /= self._known
        return self._total


class Fold:
    """The worst and the mean scores of so many cells, of one measure, over attackers that come one after the other."""

    def __init__(self, measure: Measure, cells: int) -> None:
        self._measure = measure
        self.worst = np.full(cells, np.nan)
        self._mean = Mean(np.zeros(cells))

    def add(self, scores: npt.NDArray[np.float64], start: int, stop: int) -> None:
        """Scores of the cells start to stop - 1 against one more attacker."""
        fold_worst(self._measure, self.worst[start:stop], scores)
        self._mean.add(scores, slice(start, stop))

    def mean(self) -> Any:
        """Of each cell its mean score, when all are added."""
        return self._mean.of()
