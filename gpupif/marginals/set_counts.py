"""Combinations of values of sets of columns, counted wherever the table is: the interface of all ways to count."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, Self

from ..attack.weights import TableWeights
from ..encoding.column import Column
from ..engines.base import Counter


class Total(NamedTuple):
    """All rows of a table together.

    rows: number of rows. units: units that all rows count. unit: people that one unit is; None without weights.

    Without weights each row counts 1. With weights a row counts as many units as its weight is (see `attack.weights`).
    Counts of combinations are sums over their rows.
    """

    rows: int
    units: int
    unit: float | None = None

    @classmethod
    def from_weights(cls, rows: int, weighted: TableWeights | None) -> Total:
        """Return the total of a table of `rows` rows. weighted: None without weights."""
        return cls(rows, rows) if weighted is None else cls(rows, weighted.total, weighted.unit)

    @property
    def alone(self) -> int:
        """The highest count that is at most one person."""
        return 1 if self.unit is None else int(1 / self.unit)

    def people(self, count: int) -> int | float:
        """Return the rows, or with weights the people, that a count is."""
        return count if self.unit is None else count * self.unit


# A function that makes the result of one partition, which holds combinations of a set whole. Its arguments are the
# columns of the set, a counter, and the set's place in the counter. Results of all partitions together must not depend
# on the number of partitions.
Find = Callable[[Sequence[int], "Counter", int], Any]
# A function that returns a `Find`, from the columns of the whole table, without codes of rows, and the total. Dask
# sends it to workers.
MakeFind = Callable[[Sequence["Column"], Total], Find]


class SetRequest(NamedTuple):
    """A set of columns to be counted, by their places.

    whole: rows that agree on these columns of the set are in one partition. None: on all columns of the set.
    """

    columns: Sequence[int]
    whole: Sequence[int] | None = None

    @property
    def by(self) -> list[int]:
        """The columns by whose values rows are cut into partitions."""
        return list(self.columns if self.whole is None else self.whole)


class CountResult(NamedTuple):
    """The result of counting sets.

    columns: of the table, with codes of rows or without. Their `counts` are sums over the rows of each value. found:
    for each set the results of its partitions.
    """

    columns: Sequence[Column]
    total: Total
    found: list[list[Any]]


class SetCounts(ABC):
    """A table whose sets of columns are counted; a context manager.

    names: of its columns. device: the device that counts. orders: all values of ordered categories of a frame in
    memory, in order, by column.
    """

    names: Sequence[Hashable]
    device: str
    orders: Mapping[Hashable, Sequence[Any]] = MappingProxyType({})

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        """Return the results of `make`'s function for each set. Combinations whose rows count 0 do not occur."""


def with_counts(columns: Sequence[Column], weighted: TableWeights | None) -> Sequence[Column]:
    """Return the columns, with how much the rows of each value count. weighted: None without weights."""
    return columns if weighted is None else [replace(column, counts=weighted.counts[column.name]) for column in columns]
