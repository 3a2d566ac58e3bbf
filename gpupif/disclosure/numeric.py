"""Differences of gamma functions that keep their digits, and roots between bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# From here on the asymptotic series below are right to the last bit or two.
LARGE = 20
EPSILON = 2.0**-52


class NoEstimateError(ArithmeticError):
    """An estimator has no answer for this sample; the message says why."""


def log_rising(x: float, m: float) -> float:
    """Ln Gamma(x + m) - ln Gamma(x), for x > 0 and x + m > 0, without the cancellation of that difference.

    Stirling's series (Abramowitz & Stegun 6.1.41) from LARGE on, below it by Gamma(x + 1) = x Gamma(x).
    """
    least = min(x, x + m)
    steps = max(0, math.ceil(LARGE - least))
    below = math.fsum(math.log1p(m / (x + step)) for step in range(steps))
    x += steps
    return (x - 0.5) * math.log1p(m / x) + m * math.log(x + m) - m + _stirling_rest(x + m) - _stirling_rest(x) - below


def _stirling_rest(x: float) -> float:
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / x


def sum_of_reciprocals(x: float, m: Any) -> Any:
    """1/x + 1/(x + 1) + ... of m terms (m: an int or an array), x > 0: digamma(x + m) - digamma(x).

    The first terms one by one, the others from LARGE on by the series of Abramowitz & Stegun 6.3.18.
    """
    steps = max(0, math.ceil(LARGE - x))
    first = np.cumsum(np.concatenate(([0.0], 1 / (x + np.arange(steps)))))
    x, more = x + steps, np.maximum(m - steps, 0)
    rest = np.log1p(more / x) + more / (2 * x * (x + more)) + _digamma_rest(x) - _digamma_rest(x + more)
    return first[np.minimum(m, steps)] + rest


def _digamma_rest(x: Any) -> Any:
    square = x * x
    return (1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - 1 / 132 / square) / square) / square) / square) / square


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that has different signs at `low` and `high` is 0, to the last bits; it may be infinite.

    Chandrupatla's method (1997, Advances in Engineering Software 28:145): inverse quadratic interpolation where that
    is safe, else bisection, so that it cannot leave the bounds.
    """
    a, b, at_a, at_b = high, low, function(high), function(low)
    step = 0.5
    while True:
        x = a + step * (b - a)
        at_x = function(x)
        if (at_x > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = 4 * EPSILON * abs(best) / abs(b - c)
        if least > 0.5 or at_best == 0:
            return best
        along, up = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if up * up < along and (1 - up) ** 2 < 1 - along:
            step = at_a / (at_b - at_a) * at_c / (at_b - at_c)
            step += (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        else:
            step = 0.5
        step = min(1 - least, max(least, step))
