"""Combinations of values of sets of columns, counted wherever the table is: in memory, on disk, or with Dask."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

from ..encoding.column import Column
from ..engines.choose import asked_device, choose_engine
from ..engines.counting import Counter, CountingEngine
from ..frames.dask_frame import is_dask
from ..out_of_core.temporary_table import in_streams, open_stream
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .coded_table import chosen_of, code_columns

# What is looked for: find(set of columns, counter, the set's place there) in each part of the table in which the set's
# combinations lie whole. It must not depend on how many parts there are.
Find = Callable[[Sequence[int], Counter, int], Any]
# Makes one of the table's columns, without codes of rows, and of how many rows it has. Dask sends it to workers.
MakeFind = Callable[[Sequence[Column], int], Find]


class Wanted(NamedTuple):
    """A set of columns, by their places. whole: rows that agree on these of them lie in one part (None: on all)."""

    columns: Sequence[int]
    whole: Sequence[int] | None = None

    @property
    def by(self) -> list[int]:
        """Columns whose values say in which part a row lies."""
        return list(self.columns if self.whole is None else self.whole)


class Counted(NamedTuple):
    """columns: of the table, without codes of rows. rows: of it. found: by set what was found in each part."""

    columns: Sequence[Column]
    rows: int
    found: list[list[Any]]


class SetCounts(ABC):
    """A table whose sets of columns are counted; a context manager. names: of its columns. device: that counts."""

    names: Sequence[Hashable]
    device: str

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def count(self, sets: Sequence[Wanted], make: MakeFind) -> Counted:
        """What is found in the combinations of each set."""


class MemoryCounts(SetCounts):
    """A table in memory: everything is one part."""

    def __init__(
        self,
        table: Any,
        columns: Sequence[Hashable] | None,
        missing: str,
        argument: str,
        report: Reporter,
        sep: str | None,
        engine: CountingEngine,
    ) -> None:
        self._report = report
        self.device = engine.device
        with contextlib.ExitStack() as opened:
            workers = opened.enter_context(Workers())
            self._coded = code_columns(table, columns, missing, workers, report, argument, sep, engine.frames)
            self._counting = opened.enter_context(engine.counting(workers))
            self._opened = opened.pop_all()
        self.names = self._coded.names

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def count(self, sets: Sequence[Wanted], make: MakeFind) -> Counted:
        """See `SetCounts`."""
        coded = self._coded
        find = make(coded.columns, coded.rows)
        self._report.stage("count", len(sets), "sets")
        found = []
        each = self._counting.counters(coded.codes, coded.cardinalities, [one.columns for one in sets])
        for one, (counter, place) in zip(sets, each, strict=True):
            found.append([find(one.columns, counter, place)])
            self._report.advance()
        return Counted(coded.columns, coded.rows, found)


def open_counts(
    table: Any,
    columns: Sequence[Hashable] | None,
    missing: str,
    report: Reporter,
    argument: str = "columns",
    sep: str | None = None,
) -> SetCounts:
    """A table of any kind, or a path, in streams where it is too large; argument: what errors call `columns`.

    sep: the separator of a CSV file (None: found by itself). Raises InputError, TableReadError, OutputError,
    DeviceError.
    """
    if is_dask(table):
        from .dask import DaskCounts

        return DaskCounts(table, columns, missing, argument, asked_device())
    engine = choose_engine(asked_device())
    choose = partial(chosen_of, columns=columns, argument=argument)
    if in_streams(table, choose, sep):
        from .out_of_core import ChunkCounts

        stream = open_stream(table, choose, missing, report, sep, copies=2)
        return ChunkCounts(stream, report, engine)
    return MemoryCounts(table, columns, missing, argument, report, sep, engine)
