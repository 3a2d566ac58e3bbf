"""Rounding of counts and sums to multiples of a base: nearest, random by a secret key, and controlled.

A figure n = base m + r with a remainder r is rounded down to base m or up to base (m + 1). Multiples stay.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..treatment.random.draws import Numbers
from .linear import Additivity, need_solvers

Figures = npt.NDArray[Any]
# The most cells, totals included, and seconds, for controlled rounding: a cube of 20 values takes 2 seconds.
MOST_CONTROLLED = 50_000
SECONDS = 60
# Beyond two columns a rounding is accepted whose total change is at most so much above the least.
GAP = 0.3
OFFER = "Take method='random', which has no limit, name fewer columns, or make them coarser first."


def _split(figures: Figures, base: int) -> tuple[Figures, Figures]:
    """Return how many times each figure has the base in whole, and its remainder."""
    times = np.floor_divide(figures, base)
    return times, figures - times * base


def round_nearest(figures: Figures, base: int) -> Figures:
    """Return each figure as its nearest multiple; halves are rounded up."""
    times, rest = _split(figures, base)
    return (times + (2 * rest >= base)) * base


def round_random(figures: Figures, base: int, numbers: Numbers) -> Figures:
    """Return each figure rounded up with probability r / base: unbiased, with variance r (base - r).

    numbers: uint64, a random number for each figure. Source: Willenborg and de Waal, Elements of Statistical Disclosure
    Control (2001), section 9.3.
    """
    times, rest = _split(figures, base)
    # The probability is exact to 2^-53.
    return (times + (numbers / 2.0**64 < rest / base)) * base


def round_controlled(figures: Figures, base: int, totals: Additivity, hidden: npt.NDArray[np.bool_]) -> Figures:
    """Return figures rounded so that all totals hold, at the least sum of changes (beyond two columns within `GAP`).

    figures: flat, all cells. hidden: a mask of suppressed cells. Their figures are not read: a suppressed cell is any
    number of 0 or more, so that roundings of the others give nothing away about it.

    Raises InputError for more than `MOST_CONTROLLED` cells, and if no rounding is found: with three columns or more
    there may be none. Source: Causey, Cox and Ernst, Applications of transportation theory to statistical problems,
    Journal of the American Statistical Association 80 (1985), 903-909.
    """
    if len(figures) > MOST_CONTROLLED:
        raise InputError(
            f"method: controlled rounding takes at most {MOST_CONTROLLED:,} cells with totals, got {len(figures):,}. "
            f"{OFFER}"
        )
    optimize = need_solvers("method='controlled'").optimize
    shown = np.where(hidden, 0, figures)
    times, rest = _split(shown, base)
    moves = (rest > 0) & ~hidden
    wanted = -(totals.matrix @ times)
    # The last variable is 1 and costs what rounding all down changes, so that the gap is relative to the whole change.
    costs = np.append(np.where(moves, base - 2 * rest, 0), rest.sum()).astype(float) / base
    most = np.append(np.where(hidden, np.inf, moves), 1)
    least = np.append(np.zeros(len(figures)), 1)
    result = optimize.milp(
        costs,
        constraints=optimize.LinearConstraint(totals.with_empty_column(), wanted, wanted),
        bounds=optimize.Bounds(least, most),
        integrality=np.append(moves, False).astype(int),
        options={"time_limit": SECONDS, "mip_rel_gap": GAP if totals.dimensions > 2 else 0.0},
    )
    if result.status != 0:
        # A rounding that only time stopped would be another one on another machine.
        reason = "there is none" if result.status == 2 else f"none came in {SECONDS} seconds"
        raise InputError(f"method: expected a controlled rounding of these {len(figures):,} cells, {reason}. {OFFER}")
    up = np.where(moves, np.rint(result.x[:-1]), 0).astype(times.dtype)
    rounded: Figures = (times + up) * base
    return rounded
