"""Uniques in the population by the slide negative binomial model (Chen & Keller-McNulty 1998)."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .numeric import NoEstimateError, root


def population_classes(histogram: Mapping[int, int], fraction: float) -> float:
    """Classes in the population, K, from those of a sample of this fraction below 1.

    Shlosser's estimator as Haas & Stokes modified it (1998, Estimating the number of classes in a finite population,
    D_Sh3): with u classes, s_i of i rows, and q the fraction, u + s_1 A (B / C)^2, where
    A = sum i q^2 (1 - q^2)^(i-1) s_i / sum (1-q)^i ((1+q)^i - 1) s_i, B = sum (1-q)^i s_i,
    C = sum i q (1-q)^(i-1) s_i.
    """
    missed = math.log1p(-fraction)
    missed_twice = math.log1p(-fraction * fraction)
    once = missed - missed_twice
    # By logarithms, for the difference of two powers of nearly the same size would lose its digits.
    of_classes = list(histogram.items())
    a = math.fsum(i * fraction**2 * math.exp((i - 1) * missed_twice) * s for i, s in of_classes)
    a /= math.fsum(math.exp(i * missed_twice) * -math.expm1(i * once) * s for i, s in of_classes)
    b = math.fsum(math.exp(i * missed) * s for i, s in of_classes)
    c = math.fsum(i * fraction * math.exp((i - 1) * missed) * s for i, s in of_classes)
    return sum(histogram.values()) + histogram.get(1, 0) * a * (b / c) ** 2


def fit_slide(classes: float, ones: int, twos: int, fraction: float) -> tuple[float, float]:
    """Alpha and beta of the model that expects, of K classes, so many of one row and of two rows in the sample.

    A class of the population has 1 + X people, X negative binomial: P(X = x) = C(alpha + x - 1, x) beta^alpha
    (1 - beta)^x. Each person is in the sample with probability f. X is then seen as a negative binomial with the same
    alpha and 1 - w for beta, w = f (1 - beta) / (beta + f (1 - beta)), so that, with s = alpha w and
    P = (1 - w)^alpha, the sample is expected to have
    K P (f + (1 - f) s) classes of one row and K P (f s + (1 - f) s (s + w) / 2) of two. Their ratio gives w for each s;
    what is left is one equation in s, which rises from minus infinity, so that it has one root or none. Raises
    NoEstimateError where it has none.
    """
    if not twos:
        raise NoEstimateError("no class of the sample has two rows")
    rest = 1 - fraction
    ratio = twos / ones

    def w_of(s: float) -> float:
        return 2 * ratio * fraction / (rest * s) + 2 * ratio - 2 * fraction / rest - s

    def positive_root(lead: float) -> float:
        """Of s^2 + lead s - 2 ratio fraction / rest."""
        product = 2 * ratio * fraction / rest
        half = math.hypot(lead / 2, math.sqrt(product))
        return product / (half + lead / 2) if lead > 0 else half - lead / 2

    lead = 2 * fraction / rest - 2 * ratio
    low, high = positive_root(lead + 1), positive_root(lead)

    def excess(s: float) -> float:
        w = w_of(s)
        if w >= 1:
            return -math.inf
        # (1 - w)^alpha is exp(-s) where w is 0: the variance of X is then its mean.
        log_none = s / w * math.log1p(-w) if w > 0 else -s
        return log_none + math.log(fraction + rest * s) - math.log(ones / classes)

    if not excess(high) > 0:
        raise NoEstimateError("no parameters give as many classes of one and of two rows as the sample has")
    s = root(excess, low, high)
    w = w_of(s)
    if not 0 < w < 1:
        raise NoEstimateError("the parameters lie on the border of the model")
    return s / w, fraction * (1 - w) / (w * rest + fraction)


def slide_uniques(histogram: Mapping[int, int], fraction: float, population: int) -> float:
    """Expected classes of one person in the population: K beta^alpha."""
    classes = population_classes(histogram, fraction)
    alpha, beta = fit_slide(classes, histogram[1], histogram.get(2, 0), fraction)
    uniques = classes * math.exp(alpha * math.log(beta))
    if not uniques <= population:
        raise NoEstimateError("the model expects more uniques than people")
    return uniques
