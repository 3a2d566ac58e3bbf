"""The contingency table of a sample over its quasi-identifiers: the cells that occur, with their rows and people."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..encoding.column import Column, amounts
from ..engines.base import Counter
from ..errors import InputError
from ..marginals.base import SetRequest, Total
from ..marginals.open import open_counts
from ..marginals.request import CountRequest
from ..utils.progress import Reporter, announce_compilation


class CellCounts(NamedTuple):
    """The cells that occur. codes: (quasi-identifiers, cells), ascending; rows: of the sample; people: the sum of their
    sampling weights, without weights the rows.

    names, values: of the quasi-identifiers, and how many values each has.
    """

    names: Sequence[Hashable]
    values: Sequence[int]
    codes: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]
    people: npt.NDArray[np.float64]
    device: str

    @classmethod
    def of(cls, table: Any, known: Sequence[Hashable], weights: Hashable, missing: str) -> CellCounts:
        """Of a table of any kind. Raises InputError, TableReadError, OutputError, DeviceError."""
        columns = [*known, *([] if weights is None else [weights])]
        request = CountRequest(columns, missing=missing, argument="quasi_identifiers")
        places = list(range(len(columns)))
        asked = SetRequest(places, places[: len(known)])
        with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
            result = counts.count([asked], partial(_FindCells, len(known)))
            device = counts.device
        if weights is not None:
            _check_weights(result.columns[-1])
        codes, rows, people = zip(*result.found[0], strict=True)
        every = np.concatenate(codes, axis=1)
        order = np.lexsort(every[::-1])
        values = [column.cardinality for column in result.columns[: len(known)]]
        several = (np.concatenate(rows)[order], np.concatenate(people)[order])
        return cls(list(known), values, every[:, order], *several, device)


class _FindCells:
    """Finds the cells of a part that holds all their rows, from combinations that have the weight last, if any."""

    def __init__(self, known: int, columns: Sequence[Column], total: Total) -> None:
        self._known = known
        self._weights = amounts(columns[-1]) if len(columns) > known else None

    def __call__(self, columns: Sequence[int], counter: Counter, place: int) -> tuple[npt.NDArray[Any], ...]:
        found = counter.combinations(place)
        codes = np.stack([own.astype(np.int64) for own in found.codes[: self._known]])
        if self._weights is None or not len(found.counts):
            return codes, found.counts, found.counts.astype(np.float64)
        first = np.flatnonzero(np.append(True, (codes[:, 1:] != codes[:, :-1]).any(axis=0)))
        # In the order of the weights, so that sums do not depend on how they are numbered.
        weights = self._weights[found.codes[-1]]
        cell = np.cumsum(np.isin(np.arange(len(weights)), first)) - 1
        order = np.lexsort((weights, cell))
        people = np.add.reduceat((found.counts * weights)[order], first)
        return codes[:, first], np.add.reduceat(found.counts, first), people


def _check_weights(column: Column) -> None:
    """Raise InputError for a weight that is no number of 1 or more."""
    weights = amounts(column)
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~((weights >= 1) & (weights < np.inf)))
    if len(wrong):
        (value,) = column.values([int(wrong[0])])
        came = "a missing value" if value is None else repr(value)
        raise InputError(
            f"weights: column {column.name!r}: expected numbers of 1 or more, the people of the population that each "
            f"row stands for; got {came}. Correct such weights, or drop the rows: one of weight 0 is in no sample."
        )
