"""Rules for sums: cells in which a few contributions are so large that a reader or a rival can estimate them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..utils.validation import brief, is_number, whole_number, within

Floats = npt.NDArray[np.float64]


class Dominance(NamedTuple):
    """The dominance rule (n, k): a cell is unsafe if its n largest contributions are more than k % of its sum."""

    n: int
    k: float

    def __str__(self) -> str:
        return f"({self.n}, {self.k:g})"

    @classmethod
    def from_any(cls, given: object) -> Dominance:
        """Return the rule of a pair (n, k). Raises InputError unless n is 1 or more and k above 0 and below 100."""
        if not isinstance(given, list | tuple) or len(given) != 2 or not (is_number(given[1]) and 0 < given[1] < 100):
            raise InputError(f"dominance: expected a pair (n, k), such as (2, 85), k in percent; got {brief(given)}.")
        return cls(whole_number("dominance", given[0], "largest contributions", most=100), float(given[1]))

    def margin(self, sums: Floats, largest: Floats) -> Floats:
        """Return how far the bounds of each cell have to be from its sum: above 0 for an unsafe cell, else 0 or less.

        sums: (cells,). largest: (cells, n or more), ascending. The margin is 100 / k times the n largest, less the sum.
        """
        excess: Floats = largest[:, largest.shape[1] - self.n :].sum(axis=1) * (100 / self.k) - sums
        return excess


class PPercent(NamedTuple):
    """The p % rule: a cell is unsafe if the second largest can estimate the largest to within p percent.

    It takes its own contribution from the sum. What is left exceeds the largest by the contributions of all others.
    """

    p: float

    def __str__(self) -> str:
        return f"{self.p:g} %"

    @classmethod
    def from_any(cls, given: object) -> PPercent:
        """Return the rule. Raises InputError unless p is above 0 and at most 100."""
        if not within(given, 0, 100) or given == 0:
            raise InputError(f"p_percent: expected a number above 0 and at most 100, got {brief(given)}.")
        return cls(float(given))  # type: ignore[arg-type]

    def margin(self, sums: Floats, largest: Floats) -> Floats:
        """Return p % of the largest contribution, less all others but the second: see `Dominance.margin`."""
        first, second = largest[:, -1], largest[:, -2]
        excess: Floats = self.p / 100 * first - (sums - first - second)
        return excess
