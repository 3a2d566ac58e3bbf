"""The formulas of randomised response, for treatments and for the calculator `gpupif.randomized_response`."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np


def keep_of_epsilon(epsilon: float, least: Fraction) -> Fraction:
    """Return the probability t to keep a value that gives local differential privacy; equal on every machine.

    epsilon: in nats. least: the probability of the rarest replacement. epsilon = ln(1 + t / ((1 - t) least)).
    """
    if math.isinf(epsilon):
        return Fraction(1)
    # More digits than probabilities out of 2^64 have, also if e^epsilon is near 1 or large.
    with localcontext(prec=80 + int(epsilon)):
        gain = Fraction(Decimal(epsilon).exp()) - 1
    return gain * least / (gain * least + 1)


def epsilon_of_keep(keep: Fraction, rarest: Fraction) -> float:
    """Return epsilon of local differential privacy, in nats; infinity if a value is never drawn.

    keep: the probability t to keep a value. rarest: the probability that the rarest value is drawn in place of another,
    (1 - t) times its share of the replacements.
    """
    return math.log1p(keep / rarest) if rarest else math.inf


def estimate_shares(recorded: Any, rows: int, keep: float, drawn: Any) -> tuple[Any, Any]:
    """Return unbiased estimates of the original shares, and their standard errors: floats or arrays, as `recorded`.

    recorded: the recorded shares. rows: the number of recorded rows. keep: the probability t to keep a value, above 0.
    drawn: for each value the probability that it is drawn in place of another. The rows count as a random sample of a
    population: the standard error includes the error of the sample.
    """
    return (recorded - drawn) / keep, np.sqrt(recorded * (1 - recorded) / rows) / keep
