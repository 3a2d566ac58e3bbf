"""Sampling weights: the people of the population that each row represents, as whole multiples of one unit.

Whole numbers add up to the same in any order, so that shares and sums of weights do not depend on the order of the
rows, the number of threads or the engine. The unit is a power of two: 1 for whole weights, and fine enough for all
weights that are multiples of some power of two, as far as all of them together are at most 2^61 units. Where they would
be more, the unit is such that they are 2^60 to 2^61, and weights are rounded to it: by less than 2^-60 of their sum.
One that would be rounded to nothing is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import codes as kernels

from ..encoding.column import Column, amounts
from ..errors import InputError, marked
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.validation import table_value

# Base-2 logarithm of the largest sum of all weights, in units. Rounding to units changes next to nothing.
TOTAL_BITS = 61
MANTISSA_BITS = 53


@dataclass(frozen=True)
class Units:
    """The weights of a column. of_code: units by code. unit: people for each unit. total: units of all rows."""

    of_code: npt.NDArray[np.int64]
    unit: float
    total: int

    def multiplicities(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the units of people of each row. codes: the rows' codes in the column of weights."""
        return np.asarray(self.of_code[codes])


@dataclass(frozen=True)
class TableWeights:
    """The sampling weights of a table.

    multiplicities: (rows,) the units of people of each row; None if the rows are not in memory.
    counts: by column, (values,) the units with each code.
    total: the units of all rows.
    unit: the number of people for each unit.
    """

    multiplicities: npt.NDArray[np.int64] | None
    counts: Mapping[Hashable, npt.NDArray[np.int64]]
    total: int
    unit: float


def read_weights(column: Column, first_row: Callable[[int], int] | None = None) -> Units:
    """Return the weights in a column. first_row: finds the first row with a code, if the column has no codes.

    Raise InputError for a weight that is missing, negative, infinite or no number, and if no weight is above 0.
    """
    weights = amounts(column)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if len(wrong):
        codes = on_host(column.codes)
        find = first_row or (lambda code: int(np.argmax(codes == code)) if len(codes) else -1)
        row, code = min((find(code), code) for code in wrong.tolist()[:1000])
        if len(column.labels) and np.isnan(weights[: len(column.labels)]).all():
            raise InputError(
                f"weights: column {column.name!r}: expected numbers of people, 0 or more; none of its values is a "
                f"number, {table_value(column.values([0])[0])} for one. Name a column of numbers."
            )
        place = "" if row < 0 else f", row {row} (from 0)"
        value = column.values([code])[0]
        came = "a missing value" if value is None else table_value(value)
        raise InputError(
            f"weights: column {column.name!r}{place}: expected a number of people, 0 or more, got {came}. "
            "Give the row a weight, or drop it."
        )
    order = np.argsort(weights)
    units, exponent = whole_units(weights[order], column.counts[order])
    if ((units == 0) & (weights[order] > 0)).any():
        raise InputError(
            f"weights: column {column.name!r}: expected weights whose sum is not 2^60 times as large as one of them, "
            f"got {marked(f'{weights[weights > 0].min():g}')} beside {marked(f'{weights.max():g}')}. Leave out the "
            "rows of the smallest, or correct the largest."
        )
    total = int((units * column.counts[order]).sum())
    if total == 0:
        raise InputError(
            f"weights: column {column.name!r}: expected weights that sum to more than 0, all {column.counts.sum():,} "
            "are 0. Name the column that says how many people a row stands for."
        )
    of_code = np.empty(len(units), np.int64)
    of_code[order] = units
    return Units(of_code, 2.0**-exponent, total)


def whole_units(
    weights: npt.NDArray[np.float64], multiplicities: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], int]:
    """Weights, ascending, each of which occurs so often, as multiples of 2^-e, and e."""
    some = weights[weights > 0]
    if len(some) == 0:
        return np.zeros(len(weights), np.int64), 0
    # Fractions of the largest weight, so that the sum is finite.
    high = int(np.frexp(some[-1])[1])
    needed = high + int(np.frexp((np.ldexp(weights, -high) * multiplicities).sum())[1])
    fractions, exponents = np.frexp(some)
    digits = np.ldexp(fractions, MANTISSA_BITS).astype(np.int64)
    lowest = np.log2((digits & -digits).astype(np.float64)).astype(np.int64)
    exact = max(0, -int((exponents - MANTISSA_BITS + lowest).min()))
    exponent = min(exact, TOTAL_BITS - needed)
    return np.rint(np.ldexp(weights, exponent)).astype(np.int64), exponent


def weigh_table(columns: Sequence[Column], weights: Column, workers: Workers) -> TableWeights:
    """Return the weights of a table. columns: the columns used. weights: the column of weights. Raise as
    `read_weights`.
    """
    units = read_weights(weights)
    multiplicities = units.multiplicities(on_host(weights.codes))
    counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
    add_chunk(columns, [column.codes for column in columns], multiplicities, counts, workers)
    return TableWeights(multiplicities, counts, units.total, units.unit)


def add_chunk(
    columns: Sequence[Column],
    codes: Sequence[Any],
    multiplicities: npt.NDArray[np.int64],
    counts: Mapping[Hashable, npt.NDArray[np.int64]],
    workers: Workers,
) -> None:
    """Add the units of people of these rows to `counts`, by column and code."""
    workers.run(
        lambda column, own: kernels.add_multiplicities(on_host(own), multiplicities, counts[column.name]),
        list(zip(columns, codes, strict=True)),
    )
