"""The individual risk of a row in the population that sampling weights estimate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# Up to so many rows and this sampling fraction the recurrence is right to the last bits, beyond either the series is.
FEW_ROWS = 32
SMALL_FRACTION = 0.25


def individual_risk(rows: npt.NDArray[np.int64], people: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Benedetti & Franconi's risk r of classes with so many rows f in the sample and an estimated size F there.

    r is the expected value of 1 / F where F, given f, is negative binomial: F - f people are missed before f are
    sampled, each with probability p = f / F: r = p times the integral of u^(f-1) / (p + (1-p) u) from 0 to 1. For f = 1
    that is p / (1-p) ln(1 / p); where F is at most f it is 1 / f, and where F = 0, 0.

    rows: 1 or more. people: 0 or more. References: Benedetti & Franconi 1998; Franconi & Polettini 2004, Individual
    risk estimation in mu-Argus: a review.
    """
    found = np.zeros(len(rows))
    counted = people > 0
    fraction = np.divide(rows, people, out=np.ones(len(rows)), where=people > rows)
    few = counted & (rows <= FEW_ROWS) & (fraction <= SMALL_FRACTION)
    rest = counted & ~few
    found[few] = _by_recurrence(rows[few], fraction[few])
    found[rest] = _by_series(rows[rest], fraction[rest])
    return found


def _by_recurrence(rows: npt.NDArray[np.int64], fraction: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """From f = 1 on: r of f + 1 rows is p / (1-p) (1 / f - r of f rows)."""
    odds = fraction / (1 - fraction)
    risk = -odds * np.log(fraction)
    for before in range(1, int(rows.max(initial=1))):
        risk = np.where(rows > before, odds * (1 / before - risk), risk)
    return risk


def _by_series(rows: npt.NDArray[np.int64], fraction: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Sum over j of p (1-p)^j (f-1)! j! / (f+j)!: terms that are too small to matter are added to no effect."""
    missed = 1 - fraction
    term = fraction / rows
    risk, step = term.copy(), 0
    while (term > 2.0**-54 * risk).any():
        step += 1
        term = term * (missed * step / (rows + step))
        risk += term
    return risk
