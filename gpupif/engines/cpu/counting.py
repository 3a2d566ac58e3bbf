"""Exact counts of the combinations of values of small sets of columns, for many sets at once, chunk by chunk.

If a set has few possible combinations, each has a counter; else distinct row keys are counted. The result is equal: the
combinations that occur, in the order of their codes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import subsets as kernels
from gpupif.kernels.spread import invert, look_up

from ...rows.distinct import distinct_rows
from ...rows.keys import KeyLayout
from ...rows.partition import NO_ROWS, Rows, index_type
from ...rows.threads import Workers
from ...utils.information import Sizes
from ..cohort_sizes import sizes_of_counts
from .count_tables import (
    BLOCK_ROWS,
    DENSE,
    Combinations,
    DenseSets,
    GroupedSet,
    ListedRows,
    combination_bytes,
    common_type,
    is_dense,
    key_layout,
    key_order,
)

# Most bytes of the sets that are counted at once, if they need not all be counted at once.
BATCH_BYTES = 1 << 28


def in_batches(
    subsets: Sequence[Sequence[int]],
    cardinalities: Sequence[int],
    rows: int,
    memory: int = BATCH_BYTES,
    total: int | None = None,
) -> Iterator[list[Sequence[int]]]:
    """Yield the sets in batches that fit `memory` bytes, each of one set or more.

    rows: rows of the table. total: the sum of their multiplicities; None: 1 each.
    """
    batch: list[Sequence[int]] = []
    taken = 0
    for subset in subsets:
        needed = combination_bytes([cardinalities[column] for column in subset], rows, total)
        if batch and taken + needed > memory:
            yield batch
            batch, taken = [], 0
        batch.append(subset)
        taken += needed
    if batch:
        yield batch


class SubsetCounter:
    """A counter of the combinations of sets of columns, over rows that are added in one chunk or many.

    subsets: sets of columns, each a list of places of columns.
    cardinalities: the number of values of each column.
    rows: about the number of rows that will be added. No result depends on it.
    dense: the most counters of a set, 1 or more. No result depends on it.
    at_once: whether one call adds all rows. No result depends on it.
    """

    def __init__(
        self,
        subsets: Sequence[Sequence[int]],
        cardinalities: Sequence[int],
        rows: int,
        workers: Workers,
        dense: int = DENSE,
        at_once: bool = False,
    ) -> None:
        self.subsets = [list(subset) for subset in subsets]
        self.total = 0
        self._cardinalities = cardinalities
        self._at_once = at_once
        self._workers = workers
        fits = [is_dense([cardinalities[column] for column in subset], rows, dense) for subset in self.subsets]
        self._dense = DenseSets([s for s, small in zip(self.subsets, fits, strict=True) if small], cardinalities)
        self._grouped = [GroupedSet(s, cardinalities) for s, small in zip(self.subsets, fits, strict=True) if not small]
        # For each set, whether it is dense, and its place among the dense or the grouped sets.
        self._where = [(small, fits[:place].count(small)) for place, small in enumerate(fits)]

    def add(self, codes: Sequence[npt.NDArray[Any]], multiplicities: npt.NDArray[Any] | None = None) -> None:
        """Count further rows.

        codes: by column, (rows,) below the column's cardinality. multiplicities: (rows,) multiplicities, 0 or more;
        None: 1.
        """
        if not len(codes[0]):
            return
        self.total += len(codes[0]) if multiplicities is None else int(multiplicities.sum())
        self._dense.add(codes, multiplicities, self.total, self._workers)
        for grouped in self._not_listed(codes, multiplicities):
            grouped.add(codes, multiplicities, self.total, self._workers)

    def _not_listed(
        self, codes: Sequence[npt.NDArray[Any]], multiplicities: npt.NDArray[Any] | None
    ) -> list[GroupedSet]:
        """Count the sets that `ListedRows` serves, and return the other sets without dense counters."""
        listed: list[GroupedSet] = []
        others: list[GroupedSet] = []
        for one in self._grouped:
            own = [self._cardinalities[column] for column in one.subset]
            (listed if self._at_once and ListedRows.serves(len(codes[0]), own) else others).append(one)
        if listed:
            rows = ListedRows(codes, multiplicities, self.total, [one.subset for one in listed], self._cardinalities)
            self._workers.run(lambda one: one.add_listed(rows.count(one.subset)), [(one,) for one in listed])
        return others

    def nbytes(self) -> int:
        """Return the bytes of the counts so far."""
        return self._dense.tables.nbytes + sum(grouped.nbytes() for grouped in self._grouped)

    def combinations(self, place: int, ordered: bool = True) -> Combinations:
        """Return the combinations of the set at this place that occur. ordered: by their codes, or in any order."""
        dense, where = self._where[place]
        if dense:
            return self._dense.combinations(where)
        return self._grouped[where].combinations(self.total, self._workers, ordered)

    def counts(self, place: int) -> npt.NDArray[Any]:
        """Return the number of rows with each combination of the set at this place, in no particular order."""
        dense, where = self._where[place]
        if dense:
            table = self._dense.table(where)
            return table[table > 0]
        return self._grouped[where].counts(self.total, self._workers)

    def sizes(self, place: int) -> Sizes:
        """Return the number of combinations of each count, for the set at this place."""
        return sizes_of_counts(self.counts(place), self.total, self._workers)


class CpuCounting:
    """The maker of counters on the host (see `Counting`)."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers

    def counter(
        self, subsets: Sequence[Sequence[int]], cardinalities: Sequence[int], rows: int, dense: int = DENSE
    ) -> SubsetCounter:
        """See `Counting`."""
        return SubsetCounter(subsets, cardinalities, rows, self._workers, dense)

    def counters(
        self,
        codes: Sequence[npt.NDArray[Any]],
        cardinalities: Sequence[int],
        sets: Sequence[Sequence[int]],
        multiplicities: npt.NDArray[np.int64] | None = None,
        differ: bool = False,
    ) -> Iterator[tuple[SubsetCounter, int]]:
        """See `Counting`."""
        rows, workers = len(codes[0]), self._workers
        total = rows if multiplicities is None else int(multiplicities.sum())
        wide = [set_ for set_ in sets if not is_dense([cardinalities[column] for column in set_], rows)]
        if not differ and len(wide) > 1 and 2 * len(wide) >= len(sets):
            # Collapse rows that are equal on the columns of all sets: fewer rows are counted for each set.
            used = sorted({column for set_ in sets for column in set_})
            layout = KeyLayout.from_cardinalities([cardinalities[column] for column in used])
            counts = NO_ROWS if multiplicities is None else multiplicities.astype(index_type(total + 1))
            keys = layout.pack([codes[column] for column in used], workers)
            found = distinct_rows(Rows(keys, counts), total, workers).rows
            at = dict(zip(used, layout.unpack(found.keys), strict=True))
            # Columns of no set are not read: any array of the right length serves.
            codes, multiplicities = [at.get(column, found.counts) for column in range(len(cardinalities))], found.counts
        for batch in in_batches(sets, cardinalities, rows, total=total):
            counter = SubsetCounter(batch, cardinalities, rows, workers, at_once=True)
            counter.add(codes, multiplicities)
            for place in range(len(batch)):
                yield counter, place

    def singles(self, codes: Sequence[Any], cardinalities: Sequence[int], often: npt.NDArray[np.uint8]) -> None:
        """Return None: nothing is faster than the search on the host (see `Counting`)."""


@dataclass(frozen=True)
class NumberedRows:
    """The combinations of some columns that occur, and the number of each row's combination, (rows,)."""

    combinations: Combinations
    number: npt.NDArray[Any]


def number_rows(
    codes: Sequence[npt.NDArray[Any]],
    cardinalities: Sequence[int],
    workers: Workers,
    multiplicities: npt.NDArray[Any] | None = None,
) -> NumberedRows:
    """Return the combinations of all columns, and the number of each row's combination. codes: of 1 column or more."""
    rows, every = len(codes[0]), list(range(len(codes)))
    if is_dense(cardinalities, rows):
        return _number_dense(codes, cardinalities, workers, multiplicities)
    total = rows if multiplicities is None else int(multiplicities.sum())
    layout = key_layout(cardinalities)
    counts = NO_ROWS if multiplicities is None else multiplicities.astype(index_type(total + 1))
    keys = layout.pack([codes[column] for column in every], workers)
    found = distinct_rows(Rows(keys, counts), total, workers)
    order = key_order(found.rows.keys)
    rank = np.empty(len(order), found.number.dtype)
    invert(order, 0, rank)
    number = found.number
    workers.run(lambda a, b: look_up(rank, number[a:b], number[a:b]), workers.ranges(rows))
    found_codes = layout.unpack(found.rows.keys[order])
    return NumberedRows(Combinations(found_codes, found.rows.counts[order].astype(np.int64)), number)


def _number_dense(
    codes: Sequence[npt.NDArray[Any]],
    cardinalities: Sequence[int],
    workers: Workers,
    multiplicities: npt.NDArray[Any] | None,
) -> NumberedRows:
    counted = DenseSets([range(len(codes))], cardinalities)
    counted.add(codes, multiplicities, len(codes[0]) if multiplicities is None else int(multiplicities.sum()), workers)
    present = counted.table(0) > 0
    rank = (np.cumsum(present) - 1).astype(index_type(len(present)))
    number = np.empty(len(codes[0]), index_type(len(codes[0])))
    every, radices = np.arange(len(codes)), np.array(cardinalities, np.int64)

    def look(start: int, stop: int) -> None:
        block = np.empty((len(codes), BLOCK_ROWS), common_type(cardinalities))
        index = np.empty(BLOCK_ROWS, np.uint32)
        for begin in range(start, stop, BLOCK_ROWS):
            size = min(BLOCK_ROWS, stop - begin)
            for place, values in enumerate(codes):
                block[place, :size] = values[begin : begin + size]
            kernels.combine(block, 0, every, radices, index[:size])
            look_up(rank, index[:size], number[begin : begin + size])

    workers.run(look, workers.ranges(len(codes[0])))
    return NumberedRows(counted.combinations(0), number)
