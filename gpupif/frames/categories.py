"""Codes of rows as categories: those that occur, in an order, numbered from 0."""

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
from .replacement import Replacement


class Categories(NamedTuple):
    """Categories, all of which occur, and of each row which it has, -1 for none, in signed numbers.

    ordered: whether they are in the order of the categories that there were.
    """

    numbers: npt.NDArray[Any]
    values: pa.Array
    ordered: bool


def categories_of(column: Replacement, order: Sequence[Any] | None = None) -> Categories:
    """The labels that occur, in a given order where all of them are in it, else in that of their values."""
    labels, counts = column.labels, column.counts
    size = len(labels)
    if counts is None:
        counters = np.zeros((size + 1, 4 if size < 1 << 16 else 1), np.int64)
        kernels.count_values(read_only(column.row_places(code_type(size + 1))), 0, counters)
        counts = counters.sum(axis=1)
    there = np.flatnonzero(counts[:size])
    values = labels.take(pa.array(there))
    rank = _places(values, order)
    if rank is None:
        sequence = np.argsort(value_order(Column("", there[:0], np.ones(len(values), np.int64), values, False)))
    else:
        sequence = np.argsort(rank)
    numbers = np.full(size + 1, -1, np.int64)
    numbers[there[sequence]] = np.arange(len(there))
    made = column.renumbered(numbers, _signed(len(there)))
    return Categories(made, values.take(pa.array(sequence)), rank is not None)


def _places(values: pa.Array, order: Sequence[Any] | None) -> npt.NDArray[np.int64] | None:
    """The place of each value in an order; None where one has none, or there is no order."""
    if order is None:
        return None
    try:
        among = order if isinstance(order, pa.Array) else pa.array(order)
        place = pc.index_in(values, among.cast(values.type))
    except (pa.ArrowException, TypeError):
        return None
    return None if place.null_count else place.to_numpy(zero_copy_only=False).astype(np.int64)


def _signed(size: int) -> type[np.signedinteger[Any]]:
    """The smallest signed type of numbers below `size`."""
    return np.int8 if size <= 1 << 7 else np.int16 if size <= 1 << 15 else np.int32
