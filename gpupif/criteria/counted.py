"""A table as counted rows: its different rows over some columns, and how often each occurs."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..encoding.column import Column, value_order
from ..engines.counting import Counter
from ..errors import InputError
from ..marginals.open_counts import open_counts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetRequest, Total
from ..rows.distinct import Distinct, distinct_rows
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.memory import shown
from ..utils.progress import Reporter, announce_compilation

# Of the memory that there is: what the different rows of a table may take.
MEMORY_SHARE = 0.5


class ColumnGroups(NamedTuple):
    """The groups that the values of a column fall into.

    group: by code of the column (missing values last, where it has some) the number of the group, each in use; labels:
    the names of the groups; those of missing values have none, and the last number.
    """

    group: npt.NDArray[Any]
    labels: pa.Array


@dataclass(frozen=True)
class CountedTable:
    """The different rows of a table, and how often each occurs.

    columns: `codes` are of the different rows, labels ascending, the same for every kind of table; `counts` are of all
    rows. times: by different row how often it occurs. rows: of the table. orders: of ordered categories, all values in
    order, by column. is_distinct: whether no two rows are equal.
    """

    columns: Sequence[Column]
    times: npt.NDArray[np.int64]
    rows: int
    orders: Mapping[Hashable, Sequence[Any]] = field(default_factory=dict)
    is_distinct: bool = False

    @classmethod
    def of(
        cls,
        table: Any,
        columns: Sequence[Hashable] | None = None,
        argument: str = "columns",
        named_by: Mapping[Hashable, str] | None = None,
    ) -> CountedTable:
        """Of a table of any kind, or a path; columns: over which rows are compared (None: all).

        Missing values are a value of their own. argument, named_by: what errors call `columns`, see `CountRequest`.
        Raises InputError, where the different rows do not fit into half of the memory that `gpupif.config` allows too,
        TableReadError, OutputError, DeviceError.
        """
        request = CountRequest(columns, argument=argument, named_by=named_by or {})
        room = int(MEMORY_SHARE * resources().memory)
        with Reporter() as report, announce_compilation(), open_counts(table, request, report) as counts:
            places = list(range(len(counts.names)))
            result = counts.count([SetRequest(places)], partial(_FindRows, room))
            orders = counts.orders
        found: list[_Found] = result.found[0]
        codes = [np.concatenate(each) for each in zip(*(one.codes for one in found), strict=True)]
        times = np.concatenate([one.times for one in found]).astype(np.int64)
        every = zip(result.columns, codes, strict=True)
        return cls([_ascending(column, own) for column, own in every], times, result.total.rows, orders, True)

    @property
    def names(self) -> list[Hashable]:
        """The columns."""
        return [column.name for column in self.columns]

    def cells(self) -> int:
        """Return how many cells the different rows have."""
        return len(self.times) * len(self.columns)

    @property
    def cardinalities(self) -> list[int]:
        """How many values each column has."""
        return [column.cardinality for column in self.columns]

    def place(self, name: Hashable) -> int:
        """Where a column is."""
        return self.names.index(name)

    def grouped(self, groups: Mapping[Hashable, ColumnGroups]) -> CountedTable:
        """The table with groups in place of the values of some columns; rows may then be equal to each other."""
        columns = [
            in_groups(column, groups[column.name]) if column.name in groups else column for column in self.columns
        ]
        return replace(self, columns=columns, is_distinct=False)

    def without(self, name: Hashable) -> CountedTable:
        """The table without a column; rows may then be equal to each other."""
        return replace(self, columns=[one for one in self.columns if one.name != name], is_distinct=False)

    def classes(self, known: Sequence[Hashable], workers: Workers) -> Distinct:
        """The classes of rows that agree on some columns, and which of them each is in."""
        columns = [self.columns[self.place(name)] for name in known]
        keys = KeyLayout.of([column.cardinality for column in columns]).pack([one.codes for one in columns], workers)
        return distinct_rows(Rows(keys, self.times), self.rows, workers)

    def sizes(self, known: Sequence[Hashable], workers: Workers) -> npt.NDArray[Any]:
        """By different row how many rows of the table agree with it on some columns."""
        found = self.classes(known, workers)
        sizes: npt.NDArray[Any] = found.rows.counts[found.number]
        return sizes

    def kept(self, rows: npt.NDArray[np.bool_]) -> CountedTable:
        """The table without some of its different rows, at least one of which is kept."""
        times = self.times[rows]
        columns = [_used(column, column.codes[rows], times) for column in self.columns]
        return replace(self, columns=columns, times=times, rows=int(times.sum()))


def in_groups(column: Column, groups: ColumnGroups) -> Column:
    """A column with groups in place of its values."""
    size = int(groups.group.max()) + 1
    counts = np.bincount(groups.group, column.counts, size).astype(np.int64)
    codes = groups.group.astype(code_type(size))[column.codes]
    return Column(column.name, codes, counts, groups.labels, size > len(groups.labels))


class _Found(NamedTuple):
    """Different rows of a part: codes by column, and how often each occurs."""

    codes: list[npt.NDArray[Any]]
    times: npt.NDArray[Any]


class _FindRows:
    """Finds the different rows of a part, of all parts together as many as fit into so many bytes."""

    def __init__(self, room: int, columns: Sequence[Column], total: Total) -> None:
        self._kinds = [code_type(column.cardinality) for column in columns]
        self._room = self._left = room

    def __call__(self, columns: Sequence[int], counter: Counter, place: int) -> _Found:
        found = counter.combinations(place, ordered=False)
        codes = [own.astype(kind, copy=False) for own, kind in zip(found.codes, self._kinds, strict=True)]
        self._left -= found.counts.nbytes + sum(own.nbytes for own in codes)
        if self._left < 0:
            raise InputError(
                f"memory_limit: the different rows of the table over these {len(columns)} columns take more than "
                f"{shown(self._room)}, half of the memory that there is. Raise it, or name fewer columns."
            )
        return _Found(codes, found.counts)


def _ascending(column: Column, codes: npt.NDArray[Any]) -> Column:
    """A column of counted rows with its values in order."""
    place = value_order(column)
    order = np.argsort(place)
    labels = column.labels if isinstance(column.labels, pa.Array) else pa.array(column.labels)
    ordered = labels.take(pa.array(order[: len(labels)]))
    narrow = place.astype(code_type(column.cardinality))
    return Column(column.name, narrow[codes], column.counts[order], ordered, column.missing)


def _used(column: Column, codes: npt.NDArray[Any], times: npt.NDArray[np.int64]) -> Column:
    """A column of some of the counted rows, with those of its values that they have."""
    counts = np.bincount(codes, times, column.cardinality).astype(np.int64)
    if counts.all():
        return replace(column, codes=codes, counts=counts)
    there = np.flatnonzero(counts)
    number = np.zeros(column.cardinality, codes.dtype)
    number[there] = np.arange(len(there))
    labels = column.labels.take(pa.array(there[there < len(column.labels)]))
    return Column(column.name, number[codes], counts[there], labels, column.missing and bool(counts[-1]))
