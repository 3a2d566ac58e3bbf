"""Combinations of values of sets of columns, counted wherever the table is: what all ways to count have in common."""

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
    """All rows of a table together: how many, how many units they count, and for how many people one unit stands.

    Without weights each row counts 1, and `unit` is None; with them, as many units as its weight is (see
    `attack.weights`). Counts of combinations are sums of what their rows count.
    """

    rows: int
    units: int
    unit: float | None = None

    @classmethod
    def from_weights(cls, rows: int, weighted: TableWeights | None) -> Total:
        """Return the total of a table of so many rows, with or without weights."""
        return cls(rows, rows) if weighted is None else cls(rows, weighted.total, weighted.unit)

    @property
    def alone(self) -> int:
        """The highest count that is at most one person."""
        return 1 if self.unit is None else int(1 / self.unit)

    def people(self, count: int) -> int | float:
        """Return how many rows, or with weights people, a count stands for."""
        return count if self.unit is None else count * self.unit


# Finds something in one partition, which holds combinations of a set whole: find(columns of the set, counter, the set's
# place in the counter). The result of all partitions must not depend on how many there are.
Find = Callable[[Sequence[int], "Counter", int], Any]
# Makes a `Find` of the columns of the whole table, without codes of rows, and of its total. Dask sends it to workers.
MakeFind = Callable[[Sequence["Column"], Total], Find]


class SetRequest(NamedTuple):
    """A set of columns to be counted, by their places.

    whole: rows that agree on these of the columns are in one partition (None: on all).
    """

    columns: Sequence[int]
    whole: Sequence[int] | None = None

    @property
    def by(self) -> list[int]:
        """The columns whose values say in which partition a row is."""
        return list(self.columns if self.whole is None else self.whole)


class CountResult(NamedTuple):
    """The result of counting sets.

    columns: of the table, with codes of rows or without; their `counts` are sums of what rows count. found: for each
    set what was found in each partition.
    """

    columns: Sequence[Column]
    total: Total
    found: list[list[Any]]


class SetCounts(ABC):
    """A table whose sets of columns are counted; a context manager. names: of its columns. device: that counts. orders:
    of ordered categories of a frame in memory, all values in order, by column.
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
        """Return what is found in the combinations of each set; combinations whose rows count 0 do not occur."""


def with_counts(columns: Sequence[Column], weighted: TableWeights | None) -> Sequence[Column]:
    """The columns with what the rows of each value count."""
    return columns if weighted is None else [replace(one, counts=weighted.counts[one.name]) for one in columns]
