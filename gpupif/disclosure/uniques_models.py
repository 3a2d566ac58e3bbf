"""Models of population uniques: Pitman's sampling formula, slide negative binomial, and their special functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# No sample distinguishes an alpha nearer to 0 from 0, so the sums for alpha = 0 are taken: Ewens' formula.
NO_ALPHA = 1e-6
# The lowest alpha: no sample distinguishes its classes, nearly equal in size, from classes of equal probability.
LEAST_ALPHA = -1e3
MOST_ALPHA = 1 - 1e-12


def fit_pitman(histogram: Mapping[int, int]) -> tuple[float, float]:
    """Return the theta and alpha for which the classes of a sample are most likely. histogram: classes by size.

    With n rows, u classes and s_j classes of j rows the likelihood is, up to a constant, (theta + alpha) ... (theta +
    (u-1) alpha) / ((theta + 1) ... (theta + n-1)) times the product of ((1 - alpha) ... (j-1 - alpha))^s_j, for alpha <
    1, with each factor above 0. If alpha is below 0, -theta/alpha is the number of classes that can exist.

    For each alpha the derivative by theta has one root. Along these roots, the root of the derivative by alpha is
    searched between bounds. ARX takes Newton's method, which may leave them. Raises NoEstimateError if the likelihood
    has no maximum.
    """
    rows = sum(size * classes for size, classes in histogram.items())
    classes = sum(histogram.values())
    if classes == rows:
        raise NoEstimateError("every row of the sample is unique, so that the likelihood has no maximum")
    sizes = np.array(list(histogram), np.int64)
    numbers = np.array(list(histogram.values()), np.float64)

    def slope(alpha: float) -> float:
        theta, reciprocals = _best_theta(alpha, rows, classes)
        if abs(alpha) < NO_ALPHA:
            from_classes = classes * (classes - 1) / (2 * theta)
        else:
            from_classes = (classes - 1 - theta * reciprocals) / alpha
        return from_classes - float(np.sum(numbers * sum_of_reciprocals(1 - alpha, sizes - 1)))

    if slope(LEAST_ALPHA) <= 0:
        raise NoEstimateError("classes are as equal in size as by chance, so that the likelihood has no maximum")
    if slope(MOST_ALPHA) >= 0:
        raise NoEstimateError("nearly every row of the sample is unique, so that the likelihood has no maximum")
    alpha = root(slope, LEAST_ALPHA, MOST_ALPHA)
    return _best_theta(alpha, rows, classes)[0], alpha


def _best_theta(alpha: float, rows: int, classes: int) -> tuple[float, float]:
    """Return the most likely theta for an alpha, and the sum of 1 / (theta + i alpha) over i from 1 to u - 1."""
    step = abs(alpha)
    # The unknown is `above`, by how much theta exceeds `least`, its lower bound: near it theta itself loses digits.
    least = 0.0 if step < NO_ALPHA else -alpha if alpha > 0 else (classes - 1) * step

    def reciprocals(above: float) -> float:
        if step < NO_ALPHA:
            return (classes - 1) / above
        return float(sum_of_reciprocals(above / step, classes - 1)) / step

    def row_reciprocals(above: float) -> float:
        return float(sum_of_reciprocals(above + (1 + least), rows - 1))

    def slope(above: float) -> float:
        return reciprocals(above) - row_reciprocals(above)

    high = 1.0
    while slope(high) > 0:
        high *= 2
    above = root(slope, 0.5 / row_reciprocals(0.0), high)
    return above + least, reciprocals(above)


def pitman_uniques(theta: float, alpha: float, population: int) -> float:
    """Return the expected number of classes of one person among N people, by Pitman's formula.

    It is N Gamma(theta + alpha + N - 1) Gamma(theta + 1) / (Gamma(theta + alpha) Gamma(theta + N)), at most N. For
    large N it tends to Gamma(theta + 1) / Gamma(theta + alpha) N^alpha, which Hoshino and ARX take instead.
    """
    grown = log_rising(theta + population, alpha - 1) - log_rising(theta + 1, alpha - 1)
    return population * math.exp(min(0.0, grown))


def population_classes(histogram: Mapping[int, int], fraction: float) -> float:
    """Return the expected number of classes K in the population. fraction: the sampling fraction, below 1.

    Shlosser's estimator as Haas & Stokes modified it (1998, Estimating the number of classes in a finite population,
    D_Sh3). With u classes, s_i of them of i rows, and q the fraction, it is u + s_1 A (B / C)^2, with A = sum i q^2 (1
    - q^2)^(i-1) s_i / sum (1-q)^i ((1+q)^i - 1) s_i, B = sum (1-q)^i s_i, C = sum i q (1-q)^(i-1) s_i.
    """
    missed = math.log1p(-fraction)
    missed_twice = math.log1p(-fraction * fraction)
    once = missed - missed_twice
    # Powers are computed by logarithms: the difference of two nearly equal powers would lose its digits.
    classes = list(histogram.items())
    a = math.fsum(i * fraction**2 * math.exp((i - 1) * missed_twice) * s for i, s in classes)
    a /= math.fsum(math.exp(i * missed_twice) * -math.expm1(i * once) * s for i, s in classes)
    b = math.fsum(math.exp(i * missed) * s for i, s in classes)
    c = math.fsum(i * fraction * math.exp((i - 1) * missed) * s for i, s in classes)
    return sum(histogram.values()) + histogram.get(1, 0) * a * (b / c) ** 2


def fit_slide(classes: float, ones: int, twos: int, fraction: float) -> tuple[float, float]:
    """Return the alpha and beta that expect as many classes of one and of two rows as the sample has.

    classes: the number of classes K in the population. ones, twos: classes of one row and of two rows in the sample.
    fraction: the sampling fraction f.

    A class of the population has 1 + X people, X negative binomial: P(X = x) = C(alpha + x - 1, x) beta^alpha (1 -
    beta)^x. Each person is in the sample with probability f. The sampled part of X is then negative binomial with the
    same alpha, and with 1 - w for beta, w = f (1 - beta) / (beta + f (1 - beta)). With s = alpha w and P = (1 -
    w)^alpha, the sample is expected to have K P (f + (1 - f) s) classes of one row and K P (f s + (1 - f) s (s + w) /
    2) of two. Their ratio gives w for each s. One equation in s is left; its left side rises from minus infinity, so it
    has one root or none. Raises NoEstimateError if it has none.
    """
    if not twos:
        raise NoEstimateError("no class of the sample has two rows")
    rest = 1 - fraction
    ratio = twos / ones

    def w_of(s: float) -> float:
        return 2 * ratio * fraction / (rest * s) + 2 * ratio - 2 * fraction / rest - s

    def positive_root(lead: float) -> float:
        """Return the positive root of s^2 + lead s - 2 ratio fraction / rest."""
        product = 2 * ratio * fraction / rest
        half = math.hypot(lead / 2, math.sqrt(product))
        return product / (half + lead / 2) if lead > 0 else half - lead / 2

    lead = 2 * fraction / rest - 2 * ratio
    low, high = positive_root(lead + 1), positive_root(lead)

    def excess(s: float) -> float:
        w = w_of(s)
        if w >= 1:
            return -math.inf
        # For w = 0, (1 - w)^alpha is exp(-s): X is then Poisson, its variance is its mean.
        log_p = s / w * math.log1p(-w) if w > 0 else -s
        return log_p + math.log(fraction + rest * s) - math.log(ones / classes)

    if not excess(high) > 0:
        raise NoEstimateError("no parameters give as many classes of one and of two rows as the sample has")
    s = root(excess, low, high)
    w = w_of(s)
    if not 0 < w < 1:
        raise NoEstimateError("the parameters are on the border of the model")
    return s / w, fraction * (1 - w) / (w * rest + fraction)


def slide_uniques(histogram: Mapping[int, int], fraction: float, population: int) -> float:
    """Return the expected number of classes of one person in the population: K beta^alpha."""
    classes = population_classes(histogram, fraction)
    alpha, beta = fit_slide(classes, histogram[1], histogram.get(2, 0), fraction)
    uniques = classes * math.exp(alpha * math.log(beta))
    if not uniques <= population:
        raise NoEstimateError("the model expects more uniques than people")
    return uniques


# The least x for which the asymptotic series below are right to the last bit or two.
LARGE = 20
EPSILON = 2.0**-52


class NoEstimateError(ArithmeticError):
    """The error of a model that has no answer for a sample. The message is the reason."""


def log_rising(x: float, m: float) -> float:
    """Return ln Gamma(x + m) - ln Gamma(x), for x > 0 and x + m > 0, without cancellation in the difference.

    Stirling's series (Abramowitz & Stegun 6.1.41) for x from LARGE on; below LARGE, Gamma(x + 1) = x Gamma(x).
    """
    least = min(x, x + m)
    steps = max(0, math.ceil(LARGE - least))
    below = math.fsum(math.log1p(m / (x + step)) for step in range(steps))
    x += steps
    return (x - 0.5) * math.log1p(m / x) + m * math.log(x + m) - m + _stirling_rest(x + m) - _stirling_rest(x) - below


def _stirling_rest(x: float) -> float:
    """Return the terms in 1 / x of Stirling's series."""
    square = x * x
    return (1 / 12 - (1 / 360 - (1 / 1260 - 1 / 1680 / square) / square) / square) / x


def sum_of_reciprocals(x: float, m: Any) -> Any:
    """Return 1/x + 1/(x + 1) + ... with m terms (m: an int or an array), x > 0: digamma(x + m) - digamma(x).

    The terms below LARGE are added one by one, the rest by the series of Abramowitz & Stegun 6.3.18.
    """
    steps = max(0, math.ceil(LARGE - x))
    first = np.cumsum(np.concatenate(([0.0], 1 / (x + np.arange(steps)))))
    x, more = x + steps, np.maximum(m - steps, 0)
    rest = np.log1p(more / x) + more / (2 * x * (x + more)) + _digamma_rest(x) - _digamma_rest(x + more)
    return first[np.minimum(m, steps)] + rest


def _digamma_rest(x: Any) -> Any:
    """Return the terms in 1 / x^2 of the series of the digamma function."""
    square = x * x
    return (1 / 12 - (1 / 120 - (1 / 252 - (1 / 240 - 1 / 132 / square) / square) / square) / square) / square


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a root of a function, to the last bits. It has different signs at `low` and `high`, and may be infinite.

    Chandrupatla's method (1997, Advances in Engineering Software 28:145): inverse quadratic interpolation if that is
    safe, else bisection. It cannot leave the bounds.
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
