"""Benedetti & Franconi's individual risk of re-identification, and that of households: the same on every processor.

Notation: of f rows of a sample that agree, and the sum F of their sampling weights, p = f / F is the share of the
people like them that was sampled. The people there are given f are taken to be negative binomial: F - f are missed
before f are sampled, each with probability p. The risk is the expected value of 1 / F, p times the integral of
u^(f-1) / (p + (1-p) u) from 0 to 1. All is made of additions, multiplications and divisions, which every processor
rounds alike, and of the logarithms and powers in `logarithms.py`.
"""

from __future__ import annotations

from numba import float64, int64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.logarithms import LN2, exp2, log2
from gpupif.kernels.whole_sums import UPPER_BITS, digits_of_float, float_of_digits, wide_of_digits

# Up to so many rows and this sampling fraction the recurrence is right to the last bits, beyond either the series is.
FEW_ROWS = 32
SMALL_FRACTION = 0.25
# Terms of a series that are less than this share of its sum change no bit of it.
NO_BIT = 2.0**-54
# Below this share logarithms and powers are summed as series of it, which lose no digits.
SMALL_RISK = 0.25
# In place of the logarithm of 0, and of sums above it: 1 - e^-64 is 1. It is so many upper digits, see `whole_sums.py`.
CERTAIN = 64.0
MOST_UPPER = int64(1 << (UPPER_BITS + 6))


@subroutine
def individual_risk(rows, people):
    """The risk of a row whose class has so many rows in the sample and estimated people there.

    1 / f where F is at most f, and 0 where nobody is estimated. p / (1-p) ln(1 / p) of a single row.
    """
    if people <= 0.0:
        return 0.0
    fraction = rows / people if people > rows else 1.0
    if rows <= FEW_ROWS and fraction <= SMALL_FRACTION:
        return _by_recurrence(rows, fraction)
    return _by_series(rows, fraction)


@subroutine
def _by_recurrence(rows, fraction):
    """From f = 1 on: the risk of f + 1 rows is p / (1-p) (1 / f - that of f rows)."""
    odds = fraction / (1.0 - fraction)
    risk = odds * (-log2(fraction) * LN2)
    for before in range(1, rows):
        risk = odds * (1.0 / before - risk)
    return risk


@subroutine
def _by_series(rows, fraction):
    """Sum over j of p (1-p)^j (f-1)! j! / (f+j)!."""
    missed, term = 1.0 - fraction, fraction / rows
    risk, step = term, 0.0
    while term > NO_BIT * risk:
        step += 1.0
        term *= missed * step / (rows + step)
        risk += term
    return risk


@kernel
def individual_risks(rows, people, out):
    """out[i] = the individual risk of a row whose class has rows[i] rows in the sample and stands for people[i]."""
    for i in range(rows.size):
        out[i] = individual_risk(int64(rows[i]), float64(people[i]))


@subroutine
def safety(risk):
    """-ln(1 - risk), for a risk from 0 to 1; of 1 `CERTAIN`, in place of infinity."""
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
    """1 - e^-total: the probability that at least one of several is found, of the sum of `safety` over them."""
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
def add_safety(risks, times, households, upper, lower):
    """Add `safety` of risks[i], times[i] times, to household households[i], in the digits of `digits_of_float`.

    The upper ones up to `MOST_UPPER`: sums of whole numbers, so that they are the same in any order.
    """
    for i in range(risks.size):
        household, count = households[i], times[i]
        more_upper, more_lower = digits_of_float(safety(risks[i]))
        lower[household] += more_lower * count
        if more_upper > 0 and count > (MOST_UPPER - upper[household]) // more_upper:
            upper[household] = MOST_UPPER
        else:
            upper[household] += more_upper * count


@kernel
def household_risks(upper, lower, out):
    """out[i] = the risk of a household, from its sums of `add_safety`."""
    for i in range(upper.size):
        high, low = wide_of_digits(upper[i], lower[i])
        out[i] = risk_of_safety(float_of_digits(high, low))
