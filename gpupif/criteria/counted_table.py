"""A table as counted rows: its distinct rows over some columns, and the multiplicity of each."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..attack.weights import TableWeights, Units, add_chunk, read_weights
from ..encoding.column import Column, value_order
from ..encoding.plain_values import refuse_intervals
from ..engines.base import Counter
from ..errors import InputError
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetRequest, Total
from ..rows.distinct import Distinct, distinct_rows
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.display import plural
from ..utils.memory import shown
from ..utils.progress import Reporter, announce_compilation

# The share of the memory that the distinct rows of a table may take.
MEMORY_SHARE = 0.5
# Classes are counted with a counter for each combination of values, if there are at most so many.
MOST_COUNTERS = 2**18


@dataclass(frozen=True)
class CountedTable:
    """The distinct rows of a table, and how often each occurs.

    columns: their `codes` are arrays (distinct rows), their `counts` are over all rows. Labels ascend: they are equal
        for every kind of table.
    multiplicities: int64 array (distinct rows). The multiplicity of each row.
    rows: int. The number of rows of the table.
    orders: for each column of ordered categories, all values in their order.
    is_distinct: bool. False if some of the rows may be equal, because values or columns were removed.
    population: CountedTable or None. The population that the table is a part of. None without one.
    whole: CountedTable or None. The table that these rows are some of, with whose distributions classes are compared.
        The columns have its counts. None if these are all rows.
    """

    columns: Sequence[Column]
    multiplicities: npt.NDArray[np.int64]
    rows: int
    orders: Mapping[Hashable, Sequence[Any]] = field(default_factory=dict)
    is_distinct: bool = False
    population: CountedTable | None = None
    whole: CountedTable | None = None

    @classmethod
    def from_table(
        cls,
        table: Any,
        columns: Sequence[Hashable] | None = None,
        argument: str = "columns",
        named_by: Mapping[Hashable, str] | None = None,
        missing: str = "category",
    ) -> CountedTable:
        """Count the rows of a table of any kind, or of a path.

        columns: the columns by which rows are compared (None: all). argument, named_by: what errors call `columns`, see
        `CountRequest`. missing: "error" refuses missing values, which else are a value of their own. Raises InputError,
        also if the distinct rows do not fit into half of the memory that `gpupif.config` allows, TableReadError,
        OutputError, DeviceError.
        """
        request = CountRequest(columns, argument=argument, named_by=named_by or {})
        room = int(MEMORY_SHARE * resources().memory)
        with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
            places = list(range(len(counts.names)))
            result = counts.count([SetRequest(places)], partial(_FindRows, room))
            orders = counts.orders
        for column in result.columns:
            if missing == "error" and column.missing:
                raise InputError(
                    f"{argument}: column {column.name!r}: {column.missing_rows:,} missing "
                    f"{plural(column.missing_rows, 'value')}; missing='error' expects none. Fill or drop them, or use "
                    "missing='category'."
                )
        partitions = result.found[0]
        codes = [np.concatenate(own) for own in zip(*(codes for codes, _ in partitions), strict=True)]
        multiplicities = np.concatenate([multiplicities for _, multiplicities in partitions]).astype(np.int64)
        ascending = [_ascending(column, own) for column, own in zip(result.columns, codes, strict=True)]
        return cls(ascending, multiplicities, result.total.rows, orders, True)

    @property
    def names(self) -> list[Hashable]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    def cells(self) -> int:
        """Return how many cells the distinct rows have."""
        return len(self.multiplicities) * len(self.columns)

    def place(self, name: Hashable) -> int:
        """Return the place of a column."""
        return self.names.index(name)

    def classes(self, known: Sequence[Hashable], workers: Workers) -> Distinct:
        """Return the equivalence classes over some columns, and the number of the class of each distinct row."""
        columns = [self.columns[self.place(name)] for name in known]
        keys = KeyLayout.from_cardinalities([column.cardinality for column in columns]).pack(
            [column.codes for column in columns], workers
        )
        return distinct_rows(Rows(keys, self.multiplicities), self.rows, workers)

    def class_sizes(self, known: Sequence[Hashable], workers: Workers) -> npt.NDArray[Any]:
        """Return for each distinct row how many rows of the table agree with it on some columns."""
        columns = [self.columns[self.place(name)] for name in known]
        cardinalities = [column.cardinality for column in columns]
        if math.prod(cardinalities) > MOST_COUNTERS:
            classes = self.classes(known, workers)
            return np.asarray(classes.rows.counts[classes.number])
        number = np.ravel_multi_index([column.codes for column in columns], cardinalities)
        return np.asarray(np.bincount(number, self.multiplicities).astype(np.int64)[number])

    def units(self, name: Hashable) -> Units:
        """Return the sampling weights in a column. Raises InputError for a wrong one."""
        # The rows of a counted table are in no order that a user knows.
        return read_weights(self.columns[self.place(name)], lambda _: -1)

    def weights(self, name: Hashable, columns: Sequence[Column]) -> TableWeights:
        """Return the sampling weights in a column, by distinct row and by value of other columns. Raises InputError."""
        units = self.units(name)
        people = units.multiplicities(self.columns[self.place(name)].codes) * self.multiplicities
        counts = {own.name: np.zeros(own.cardinality, np.int64) for own in columns}
        with Workers() as workers:
            add_chunk(columns, [own.codes for own in columns], people, counts, workers)
        return TableWeights(people, counts, units.total, units.unit)

    def some(self, rows: npt.NDArray[Any]) -> CountedTable:
        """Return a table of some distinct rows, whose columns keep the counts of all rows, and so their distributions.

        rows: a mask, or the numbers of the rows.
        """
        columns = [replace(column, codes=column.codes[rows]) for column in self.columns]
        whole = self.whole or self
        return replace(self, columns=columns, multiplicities=self.multiplicities[rows], whole=whole)

    def kept(self, rows: npt.NDArray[np.bool_]) -> CountedTable:
        """Return the table with some of its distinct rows, at least one. rows: the mask of the rows that are kept."""
        multiplicities = self.multiplicities[rows]
        columns = [_used(column, column.codes[rows], multiplicities) for column in self.columns]
        rows_left = int(multiplicities.sum())
        return replace(self, columns=columns, multiplicities=multiplicities, rows=rows_left, whole=None)


class _FindRows:
    """Finds the distinct rows of a partition of a table: their codes by column, and their multiplicity.

    room: bytes that the distinct rows of all partitions together may take.
    """

    def __init__(self, room: int, columns: Sequence[Column], total: Total) -> None:
        self._kinds = [code_type(column.cardinality) for column in columns]
        self._room = self._left = room

    def __call__(
        self, columns: Sequence[int], counter: Counter, place: int
    ) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        rows = counter.combinations(place, ordered=False)
        codes = [own.astype(kind, copy=False) for own, kind in zip(rows.codes, self._kinds, strict=True)]
        self._left -= rows.counts.nbytes + sum(own.nbytes for own in codes)
        if self._left < 0:
            raise InputError(
                f"memory_limit: the distinct rows of the table over these {len(columns)} columns take more than "
                f"{shown(self._room)}, half of the memory that there is. Raise it, or name fewer columns."
            )
        return codes, rows.counts


def _ascending(column: Column, codes: npt.NDArray[Any]) -> Column:
    """Return a column of counted rows with its values in order. codes: of the distinct rows."""
    place = value_order(column)
    order = np.argsort(place)
    labels = column.labels if isinstance(column.labels, pa.Array) else pa.array(column.labels)
    refuse_intervals(column.name, labels.type)
    ordered = labels.take(pa.array(order[: len(labels)]))
    narrow = place.astype(code_type(column.cardinality))
    return Column(column.name, narrow[codes], column.counts[order], ordered, column.missing)


def _used(column: Column, codes: npt.NDArray[Any], multiplicities: npt.NDArray[np.int64]) -> Column:
    """Return a column of some of the counted rows, without unused values. codes, multiplicities: of these rows."""
    counts = np.bincount(codes, multiplicities, column.cardinality).astype(np.int64)
    if counts.all():
        return replace(column, codes=codes, counts=counts)
    there = np.flatnonzero(counts)
    number = np.zeros(column.cardinality, codes.dtype)
    number[there] = np.arange(len(there))
    labels = column.labels.take(pa.array(there[there < len(column.labels)]))
    return Column(column.name, number[codes], counts[there], labels, column.missing and bool(counts[-1]))
