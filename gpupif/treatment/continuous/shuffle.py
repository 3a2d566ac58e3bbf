"""Shuffling: the values of columns are put into a new order, which keeps their rank correlations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from gpupif.kernels.random_values import NORMAL

from ...errors import InputError
from ...utils.validation import check_exist
from ..coded_columns import CodedColumn
from ..field_checks import not_empty
from ..random.moved_values import variates
from ..random.swap import NewCodesStep, check_apart, check_memory, have_values
from ..random.units import units_of
from ..steps import Step
from ..treatment import Tools, TreatedTable, Treatment
from .moments import Floats, covariance, factor

# The bytes of memory for each cell: ranks, normal scores, random numbers, and Python's floats while sums are made.
CELL_BYTES = 96


@dataclass(frozen=True)
class Shuffle(Treatment):
    """Put the values of columns into a new order that keeps their rank correlations (Muralidhar and Sarathy, 2006).

    columns: names of the columns of numbers or dates whose values are shuffled.
    given: names of the columns of numbers or dates that stay, and with which correlations are kept. Default: none.

    Each value has the normal score of its rank: the quantile at (rank - 1/2) / n of the standard normal distribution.
    Scores in `columns` are drawn anew from their normal distribution given the scores in `given`, with the correlations
    of the scores (a Gaussian copula). The value with the lowest rank then goes to the row with the lowest new score,
    and so on. Given the columns in `given`, the new order tells nothing more of a row's own value.

    How often each value occurs stays exactly the same. Of equal values, the earlier row has the lower rank. Rows with a
    missing value in `columns` or `given` take no part, and keep all their values; the record counts them.

    Raises InputError if fewer than two rows take part, and for a text that is neither date nor number. Also raises it
    if the columns of all rows do not fit into memory. Raises ColumnTypeError for values of other types.

    Source: Muralidhar and Sarathy (2006), Data shuffling, Management Science 52, sections 3 and 4.
    """

    do: ClassVar[str] = "shuffle"
    is_random: ClassVar[bool] = True

    columns: Annotated[Sequence[Hashable], not_empty]
    given: Sequence[Hashable] = ()

    def check(self) -> None:
        super().check()
        check_apart(self.do, self.columns, "given", self.given)

    def prepare(self, table: TreatedTable, tools: Tools) -> Step:
        check_exist(f"{self.do}: given", self.given, table.names)
        names, fixed = [*self.given, *self.columns], len(self.given)
        needed = CELL_BYTES * len(names)
        check_memory(self.do, table.rows, needed, "shuffle")
        coded = table.codes(names, needed)
        takes_part = np.flatnonzero(have_values(coded))
        count = len(takes_part)
        if count < 2:
            raise InputError(
                f"{self.do}: expected two rows or more with a value in all columns ({', '.join(map(str, names))}), "
                f"got {count}. Give fewer columns."
            )
        orders = [_order(name, own, takes_part) for name, own in zip(names, coded, strict=True)]
        scores = [normal_scores(order) for order in orders]
        mixing = factor(covariance(scores))
        # The independent variates: of the given columns those that their scores imply, of the others new ones.
        independent: list[Floats] = []
        for number, name in enumerate(names):
            if number < fixed:
                rest = scores[number] - _mixed(mixing[number, :number], independent, count)
                pivot = mixing[number, number]
                independent.append(rest / pivot if pivot > 0 else np.zeros(count))
            else:
                draws = tools.draws(self.do, name).of_rows(0, table.rows)[takes_part]
                independent.append(variates(NORMAL, draws))
        shuffled = []
        for place, own in enumerate(coded[fixed:], fixed):
            drawn = _mixed(mixing[place, : place + 1], independent, count)
            codes = own.codes.copy()
            codes[takes_part[np.argsort(drawn, kind="stable")]] = own.codes[takes_part[orders[place]]]
            shuffled.append(CodedColumn(codes, own.labels))
        return NewCodesStep.from_columns(table, self.columns, shuffled, {"rows_not_shuffled": table.rows - count})


def _order(name: Hashable, column: CodedColumn, rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return the places of some rows in ascending order of their values, of equal values the earlier row first."""
    amounts = units_of(name, column.labels, dates=True, numbers=True).amounts
    return np.argsort(amounts[column.codes[rows]], kind="stable")


def normal_scores(order: npt.NDArray[np.int64]) -> Floats:
    """Return the normal score of each row. order: places of rows, ascending by value."""
    count = len(order)
    middles = (np.arange(count) + 0.5) / count
    scores = np.empty(count)
    scores[order] = variates(NORMAL, (middles * 2.0**64).astype(np.uint64))
    return scores


def _mixed(weights: Floats, parts: Sequence[Floats], rows: int) -> Floats:
    """Return the weighted sum of arrays (rows,), in order."""
    total = np.zeros(rows)
    for weight, part in zip(weights, parts, strict=False):
        total += weight * part
    return total
