"""A column that replaces another column of a frame: the codes of its rows, its labels, and its categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.kernels import codes as kernels

from ..encoding.column import Column, value_order
from ..rows.keys import code_type
from ..utils.arrays import read_only


class Replacement(NamedTuple):
    """A column that replaces another column: the codes of its rows, and its labels.

    codes: a whole number for each row.
    labels: the values of the column, each once.
    before: the type of the values of the replaced column, see `encoding.plain_values`.
    counts: the number of rows of each label, and at the end of rows without a value; None: not counted yet.
    places: for each code the place of its label, `len(labels)` for a missing value; None: codes are the places.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array
    before: pa.DataType
    counts: npt.NDArray[Any] | None = None
    places: npt.NDArray[np.int64] | None = None

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """A mask of the rows that have no value."""
        absent = np.zeros(len(self.labels) + 1, np.bool_)
        absent[-1] = True
        return self.taken(absent)

    def row_places(self, kind: Any) -> npt.NDArray[Any]:
        """Return the place of each row's label, as numbers of the type `kind`."""
        return self.renumbered(np.arange(len(self.labels) + 1), kind)

    def renumbered(self, numbers: npt.NDArray[np.int64], kind: Any) -> npt.NDArray[Any]:
        """Return for each row the number at the place of its label, as numbers of the type `kind`."""
        by_code = numbers if self.places is None else numbers[self.places]
        renumbered = np.empty(len(self.codes), kind)
        kernels.recode(read_only(self.codes), 0, by_code, renumbered)
        return renumbered

    def taken(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return for each row the value at the place of its label."""
        return np.take(values if self.places is None else values[self.places], self.codes)


class Categories(NamedTuple):
    """The categories of a column: the labels that occur in it.

    numbers: for each row the number of its category, -1 for none; a signed type.
    values: the categories, all of which occur.
    ordered: whether they are in the order that the replaced column had.
    """

    numbers: npt.NDArray[Any]
    values: pa.Array
    ordered: bool


def categories_of(column: Replacement, order: Sequence[Any] | None = None) -> Categories:
    """Return the labels that occur as categories, in the given order, or in that of their values.

    order: values in order; it counts only if every label that occurs is among them.
    """
    labels, counts = column.labels, column.counts
    size = len(labels)
    if counts is None:
        counters = np.zeros((size + 1, 4 if size < 1 << 16 else 1), np.int64)
        kernels.count_values(read_only(column.row_places(code_type(size + 1))), 0, counters)
        counts = counters.sum(axis=1)
    used = np.flatnonzero(counts[:size])
    values = labels.take(pa.array(used))
    rank = _places_in(order, values)
    if rank is None:
        sequence = np.argsort(value_order(Column("", used[:0], np.ones(len(values), np.int64), values, False)))
    else:
        sequence = np.argsort(rank)
    numbers = np.full(size + 1, -1, np.int64)
    numbers[used[sequence]] = np.arange(len(used))
    row_numbers = column.renumbered(numbers, _signed_type(len(used)))
    return Categories(row_numbers, values.take(pa.array(sequence)), rank is not None)


def _places_in(order: Sequence[Any] | None, values: pa.Array) -> npt.NDArray[np.int64] | None:
    """Return the place of each value in an order; None if there is no order, or a value is not in it."""
    if order is None:
        return None
    try:
        ordered = order if isinstance(order, pa.Array) else pa.array(order)
        place = pc.index_in(values, ordered.cast(values.type))
    except (pa.ArrowException, TypeError):
        return None
    return None if place.null_count else place.to_numpy(zero_copy_only=False).astype(np.int64)


def _signed_type(size: int) -> type[np.signedinteger[Any]]:
    """Return the smallest signed type that holds all numbers below `size`."""
    return np.int8 if size <= 1 << 7 else np.int16 if size <= 1 << 15 else np.int32
