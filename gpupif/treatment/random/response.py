"""What is known of randomised responses (Warner, 1965): what a recorded value tells of the true one, and what many do.

A value is kept with probability t, `keep`; else it is replaced by one drawn from a distribution whatever the true one
was, by default uniform over all k values: P(y given x) = t[x = y] + (1 - t)/k. With two values and t = 1/2 that is the
fair coin of the usual story.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

Shares = Sequence[float] | npt.NDArray[np.float64]


def epsilon_of_keep(keep: float | Fraction, least: float | Fraction) -> float:
    """Epsilon (nats) of local differential privacy: ln(1 + t / ((1 - t) least)); infinite where t = 1.

    least: the smallest probability among those that replacements are drawn with, 1/k where they are uniform.
    """
    lost = (1 - keep) * least
    return math.log1p(keep / lost) if lost else math.inf


def keep_of_epsilon(epsilon: float, least: Fraction) -> Fraction:
    """The probability t to keep a value that has this epsilon, see `epsilon_of_keep`; the same on every machine."""
    if math.isinf(epsilon):
        return Fraction(1)
    # Kept to more digits than thresholds have, also where e^epsilon is near 1 or large.
    with localcontext(prec=80 + int(epsilon)):
        gain = Fraction(Decimal(epsilon).exp()) - 1
    return gain * least / (gain * least + 1)


def posteriors(priors: Shares, keep: float, replaced: Shares | None = None) -> npt.NDArray[np.float64]:
    """P(x is true given that y is recorded), in row y and column x.

    priors: P(x is true). replaced: what replacements are drawn with, None: uniform. A row of NaN where y never occurs.
    """
    prior = np.asarray(priors, np.float64)
    drawn = np.full(len(prior), 1 / len(prior)) if replaced is None else np.asarray(replaced, np.float64)
    joint = (keep * np.eye(len(prior)) + (1 - keep) * drawn[:, None]) * prior
    with np.errstate(invalid="ignore"):
        return joint / joint.sum(axis=1, keepdims=True)  # type: ignore[no-any-return]


def privacy_loss(prior: float, keep: float, values: int = 2) -> float:
    """log2 of how much likelier the recorded value is the true one than it was before (bits), replaced uniformly:
    log2((t + (1 - t)/k) / (tp + (1 - t)/k)), 0 at t = 0 and -log2 p at t = 1.
    """
    coin = (1 - keep) / values
    return math.log2((keep + coin) / (keep * prior + coin))


def estimated_share(recorded: float, keep: float, values: int = 2) -> float:
    """The share of a value, estimated from that recorded: (S/N - (1 - t)/k) / t; unbiased, so it may be below 0."""
    return (recorded - (1 - keep) / values) / keep


def variance_of_estimate(prior: float, keep: float, rows: int, values: int = 2) -> float:
    """Of `estimated_share` over so many rows drawn with P(value) = p: q(1 - q)/(N t^2), q = tp + (1 - t)/k.

    With two values it is p(1 - p)/N + (1 - t^2)/(4 N t^2); so intervals widen with 1/t.
    """
    expected = keep * prior + (1 - keep) / values
    return expected * (1 - expected) / (rows * keep * keep)
