"""Bounds of single values, by linear programs, from the answers to sums and means of a column with bounds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from .linear import ContradictionError, bound_jointly
from .query_sets import Membership, RowsByClass

# The most atoms of a workload, each of which takes two linear programs. HiGHS is exact to about this share.
MOST_ATOMS, TOLERANCE = 1_000, 1e-6


class Bounds(NamedTuple):
    """The lowest and the highest possible value of each row in an atom."""

    atom: int
    low: float
    high: float


def atom_sums(rows: RowsByClass, matrix: Membership, column: str) -> npt.NDArray[np.float64]:
    """Return the sum of a column over the rows of each atom, rounded once; rows without a value count 0."""
    values = np.nan_to_num(rows.values[column][rows.codes[column]])
    order = np.argsort(matrix.atom, kind="stable")
    starts = np.searchsorted(matrix.atom[order], np.arange(len(matrix.sizes) + 1))
    terms = values[order] * rows.counts[order]
    return np.array([math.fsum(terms[start:stop]) for start, stop in pairwise(starts)])


# Bounds times rows that overflow are no bounds.
@np.errstate(over="ignore")
def value_bounds(
    matrix: Membership, sums: npt.NDArray[np.float64], column: str, low: float, high: float, width: float
) -> list[Bounds]:
    """Return the atoms whose values the answers bound within `width`, with these bounds.

    matrix: of the sums and means of the column. sums: of each atom. low, high: the bounds that all values have, maybe
    infinite. An atom of several rows bounds each value by the sum of the atom and the bounds of the other values.

    Raises InputError for more than `MOST_ATOMS` atoms.
    """
    asked = np.flatnonzero((matrix.combine(np.ones(matrix.queries, np.int64)) > 0) & (matrix.sizes > 0))
    if len(asked) > MOST_ATOMS:
        raise InputError(
            f"bounds: the sums of {column!r} tell {len(asked):,} groups of rows apart; expected at most "
            f"{MOST_ATOMS:,}, since each takes two linear programs. Audit fewer queries, or leave the bounds out."
        )
    rows, sizes = matrix.columns(asked).astype(float), matrix.sizes[asked].astype(float)
    answers = rows @ sums[asked]
    try:
        lowest, highest = bound_jointly(rows, answers, sizes * low, sizes * high, np.ones(len(asked), bool))
    except ContradictionError:
        raise InputError(
            f"bounds: no values of {column!r} within these bounds have these sums. Do all values of the column lie "
            "within the bounds?"
        ) from None
    several = sizes > 1
    rest = sizes[several] - 1
    lowest[several], highest[several] = lowest[several] - rest * high, highest[several] - rest * low
    lowest, highest = np.maximum(low, lowest), np.minimum(high, highest)
    is_narrow = highest - lowest <= width + TOLERANCE * np.maximum(1.0, np.abs(lowest))
    narrow = np.flatnonzero(is_narrow & np.isfinite(lowest))
    return [Bounds(int(asked[place]), float(lowest[place]), float(highest[place])) for place in narrow]
