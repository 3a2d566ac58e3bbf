"""Benedetti and Franconi's individual risk of re-identification and the risk of households, equal on every processor.

Notation: a class has f rows of the sample, F is the sum of their sampling weights, and p = f / F is the share of such
people that was sampled. The number of people of the class in the population is taken to be negative binomial, given f:
people are missed before f are sampled, each sampled with probability p. The risk is the expected value of 1 / F, which
is p times the integral of u^(f-1) / (p + (1-p) u) over u from 0 to 1.

The code uses additions, multiplications and divisions, which every processor rounds alike, and the logarithms and
powers in `logarithms.py`.
"""

from __future__ import annotations

from numba import float64, int64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.logarithms import LN2, exp2, log2
from gpupif.kernels.whole_sums import UPPER_BITS, digits_of_float, float_of_digits, wide_of_digits

# Up to this many rows and this sampling fraction the recurrence is exact to the last bits; beyond, the series is.
FEW_ROWS = 32
SMALL_FRACTION = 0.25
# A term of a series that is a smaller share of the sum than this changes no bit of the sum.
NO_BIT = 2.0**-54
# Below this risk, logarithms and powers are computed as series in the risk, which lose no digits.
SMALL_RISK = 0.25
# The value that stands for infinity in -ln(1 - risk): 1 - e^-64 rounds to 1. `MOST_UPPER` is the same in upper digits,
# see `whole_sums.py`.
CERTAIN = 64.0
MOST_UPPER = int64(1 << (UPPER_BITS + 6))


@subroutine
def individual_risk(rows, people):
    """Return the individual risk of a row.

    rows: f, the rows of its class in the sample. people: F, the estimated people of its class in the population.
    The risk is 1 / f if F is at most f, and 0 if F is 0. For a class of one row it is p / (1-p) ln(1 / p).
    """
    if people <= 0.0:
        return 0.0
    fraction = rows / people if people > rows else 1.0
    if rows <= FEW_ROWS and fraction <= SMALL_FRACTION:
        return _by_recurrence(rows, fraction)
    return _by_series(rows, fraction)


@subroutine
def _by_recurrence(rows, fraction):
    """Return the risk by recurrence from f = 1: risk(f + 1) = p / (1-p) (1 / f - risk(f))."""
    odds = fraction / (1.0 - fraction)
    risk = odds * (-log2(fraction) * LN2)
    for before in range(1, rows):
        risk = odds * (1.0 / before - risk)
    return risk


@subroutine
def _by_series(rows, fraction):
    """Return the risk as the sum over j of p (1-p)^j (f-1)! j! / (f+j)!."""
    missed, term = 1.0 - fraction, fraction / rows
    risk, step = term, 0.0
    while term > NO_BIT * risk:
        step += 1.0
        term *= missed * step / (rows + step)
        risk += term
    return risk


@kernel
def individual_risks(rows, people, out):
    """Set out[i] to the individual risk for a class of rows[i] rows in the sample and people[i] estimated people."""
    for i in range(rows.size):
        out[i] = individual_risk(int64(rows[i]), float64(people[i]))


@subroutine
def safety(risk):
    """Return -ln(1 - risk) for a risk from 0 to 1; `CERTAIN`, not infinity, for a risk of 1."""
    if risk >= SMALL_RISK:
        return min(CERTAIN, -log2(1.0 - risk) * LN2)
    power, total, step = risk, risk, 1.0
    while power > NO_BIT * total:
        step += 1.0
        power *= risk
        total += power / step
    return total


@subroutine
def risk_of_safety(total):
    """Return 1 - e^-total, the probability that at least one row is re-identified.

    total: the sum of `safety` over the rows.
    """
    if total >= CERTAIN:
        return 1.0
    if total >= SMALL_RISK:
        return 1.0 - exp2(-total / LN2)
    term, risk, step = total, total, 1.0
    while abs(term) > NO_BIT * risk:
        step += 1.0
        term *= -total / step
        risk += term
    return risk


@kernel
def add_safety(risks, multiplicities, households, upper, lower):
    """Add `safety` of risks[i], multiplicities[i] times, to the sums of household households[i].

    upper, lower: the sums, in the digits of `digits_of_float`. Upper sums stop at `MOST_UPPER`. The sums are whole
    numbers, so they do not depend on the order of the rows.
    """
    for i in range(risks.size):
        household, count = households[i], multiplicities[i]
        more_upper, more_lower = digits_of_float(safety(risks[i]))
        lower[household] += more_lower * count
        if more_upper > 0 and count > (MOST_UPPER - upper[household]) // more_upper:
            upper[household] = MOST_UPPER
        else:
            upper[household] += more_upper * count


@kernel
def household_risks(upper, lower, out):
    """Set out[i] to the risk of household i, from the sums that `add_safety` made."""
    for i in range(upper.size):
        high, low = wide_of_digits(upper[i], lower[i])
        out[i] = risk_of_safety(float_of_digits(high, low))
