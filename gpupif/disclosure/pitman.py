"""Uniques in the population by Pitman's sampling formula (Hoshino 2001)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .numeric import NoEstimateError, log_rising, root, sum_of_reciprocals

# An alpha nearer to 0 is told from it by no sample: the sums below are those of alpha = 0, Ewens' formula.
NO_ALPHA = 1e-6
# Of classes as equal in size as this alpha makes them, a sample cannot tell whether all have the same probability.
LEAST_ALPHA = -1e3
MOST_ALPHA = 1 - 1e-12


def fit_pitman(histogram: Mapping[int, int]) -> tuple[float, float]:
    """Theta and alpha for which the classes of a sample are most likely.

    With n rows, u classes and s_j classes of j rows the likelihood is, up to a constant,
    (theta + alpha) ... (theta + (u-1) alpha) / ((theta + 1) ... (theta + n-1))
    times the product of ((1 - alpha) ... (j-1 - alpha))^s_j, alpha < 1, each factor above 0. Below 0, -theta/alpha is
    the number of classes that there can be. For each alpha the derivative by theta has one root; along these roots that
    of the derivative by alpha is found between bounds, which Newton's method (as ARX has it) may leave. Raises
    NoEstimateError where the likelihood has no maximum.
    """
    rows = sum(size * times for size, times in histogram.items())
    classes = sum(histogram.values())
    if classes == rows:
        raise NoEstimateError("every row of the sample is unique, so that the likelihood has no maximum")
    sizes = np.array(list(histogram), np.int64)
    times = np.array(list(histogram.values()), np.float64)

    def slope(alpha: float) -> float:
        theta, reciprocals = _best_theta(alpha, rows, classes)
        if abs(alpha) < NO_ALPHA:
            of_classes = classes * (classes - 1) / (2 * theta)
        else:
            of_classes = (classes - 1 - theta * reciprocals) / alpha
        return of_classes - float(np.sum(times * sum_of_reciprocals(1 - alpha, sizes - 1)))

    if slope(LEAST_ALPHA) <= 0:
        raise NoEstimateError("classes are as equal in size as by chance, so that the likelihood has no maximum")
    if slope(MOST_ALPHA) >= 0:
        raise NoEstimateError("nearly every row of the sample is unique, so that the likelihood has no maximum")
    alpha = root(slope, LEAST_ALPHA, MOST_ALPHA)
    return _best_theta(alpha, rows, classes)[0], alpha


def _best_theta(alpha: float, rows: int, classes: int) -> tuple[float, float]:
    """The most likely theta for an alpha, and the sum of 1 / (theta + i alpha) over i from 1 to u - 1 there."""
    step = abs(alpha)
    # theta is `above` more than the least that it may be.
    least = 0.0 if step < NO_ALPHA else -alpha if alpha > 0 else (classes - 1) * step

    def reciprocals(above: float) -> float:
        if step < NO_ALPHA:
            return (classes - 1) / above
        return float(sum_of_reciprocals(above / step, classes - 1)) / step

    def of_rows(above: float) -> float:
        return float(sum_of_reciprocals(above + (1 + least), rows - 1))

    def slope(above: float) -> float:
        return reciprocals(above) - of_rows(above)

    high = 1.0
    while slope(high) > 0:
        high *= 2
    above = root(slope, 0.5 / of_rows(0.0), high)
    return above + least, reciprocals(above)


def pitman_uniques(theta: float, alpha: float, population: int) -> float:
    """Expected classes of one person among N people by Pitman's formula.

    Exactly N Gamma(theta + alpha + N - 1) Gamma(theta + 1) / (Gamma(theta + alpha) Gamma(theta + N)), at most N; for
    large N it nears Gamma(theta + 1) / Gamma(theta + alpha) N^alpha, which Hoshino and ARX take in its place.
    """
    grown = log_rising(theta + population, alpha - 1) - log_rising(theta + 1, alpha - 1)
    return population * math.exp(min(0.0, grown))
