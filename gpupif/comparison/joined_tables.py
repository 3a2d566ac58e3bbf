"""Two tables joined row by row, and the versions of their rows: tasks that a graph executes here or on Dask.

If both tables have the same rows in chunks of the same sizes, their chunks are joined as they are. Else the rows of the
table after are sent through a shuffle to the chunks of the table before.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..encoding.column import Column
from ..engines.choose import choose_engine, requested_device
from ..io.temporary_folder import temporary_folder
from ..marginals.coded_table import code_columns
from ..marginals.counts_on_disk import ChunkCounts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetCounts
from ..out_of_core.memory_budget import plan_reading
from ..out_of_core.table_chunks import MemoryChunks, TableChunks
from ..out_of_core.temporary_table import TemporaryTable
from ..pipeline.local_graph import LocalGraph
from ..pipeline.shuffle_messages import pack, rows_in, rows_to_messages, unpack
from ..pipeline.task_graph import Graph, Result
from ..pipeline.task_resources import task_workers
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import Rows
from ..rows.threads import Workers
from ..utils.config import resources
from ..utils.progress import Reporter
from .aligned_rows import CompareRequest, FindKept, homes_by_name, homes_by_place
from .released_values import ReleasedColumn
from .row_versions import KEPT_AFTER, NumberedRows, VersionLayout

# The rows of a chunk of a table in memory.
CHUNK_ROWS = 1 << 20
Codes = list[npt.NDArray[Any]]


class Side(NamedTuple):
    """The table before, or the table after.

    columns: list of Column. The columns that are read, without codes of rows; names of rows are the last column, and
        sampling weights the last one before.
    sizes: list of int. The number of rows of each chunk.
    add_codes: function. It adds the tasks to a graph that return the codes of some columns of each chunk. Its arguments
        are the graph and a tuple with the places of the columns.
    """

    columns: Sequence[Column]
    sizes: Sequence[int]
    add_codes: Callable[[Any, tuple[int, ...]], list[Result]]

    @property
    def rows(self) -> int:
        """The number of rows of the table."""
        return sum(self.sizes)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """The first row of each chunk, and last the number of rows."""
        return np.cumsum([0, *self.sizes])


class JoinPlan(NamedTuple):
    """The facts that each task needs to join rows.

    edges: array. The first row of each chunk of the table before, and last the number of rows.
    layout: KeyLayout. The layout in which rows of the table after are sent.
    missing: list of int, one for each column of the table after. The code of missing values.
    places: list, one for each compared column. The place of the column in the table after; None if it was dropped.
    """

    edges: npt.NDArray[np.int64]
    layout: KeyLayout
    missing: Sequence[int]
    places: Sequence[int | None]

    def joined(self, before: Codes, after: Codes, there: npt.NDArray[np.uint8]) -> Codes:
        """Return the columns before, the columns after, whether the table after has the row, and sampling weights."""
        nothing, size = np.zeros(len(there), np.uint8), len(self.places)
        others = (nothing if place is None else after[place] for place in self.places)
        return [*before[:size], *others, there, *before[size:]]


def send_rows(plan: JoinPlan, source: int, homes: npt.NDArray[np.int64] | range, codes: Codes) -> pd.DataFrame:
    """Return the messages that bring the rows of a chunk of the table after to the chunks of the table before.

    homes: array or range, one for each row. The row of the table before.
    """
    if not len(homes):
        return pack([])
    if isinstance(homes, range):
        homes = np.arange(homes.start, homes.stop)
    chunk = np.searchsorted(plan.edges, homes, "right") - 1
    with task_workers() as workers:
        # Each row is sent with its place in the chunk of the table before, in place of a multiplicity.
        rows = Rows(plan.layout.pack(codes, workers), homes - plan.edges[chunk])
        return pack(rows_to_messages(rows, chunk, len(plan.edges) - 1, source, 0, workers))


def join_sent_rows(plan: JoinPlan, number: int, before: Codes, arrived: Any) -> Codes:
    """Return a chunk of the joined table. arrived: the messages of `send_rows` for chunk `number`."""
    rows = rows_in(unpack(arrived, number), plan.layout.words)
    size = int(plan.edges[number + 1] - plan.edges[number])
    there = np.zeros(size, np.uint8)
    there[rows.counts] = 1
    after = [np.full(size, code, code_type(code + 1)) for code in plan.missing]
    for own, codes in zip(after, plan.layout.unpack(rows.keys), strict=True):
        own[rows.counts] = codes
    return plan.joined(before, after, there)


def join_same_rows(plan: JoinPlan, before: Codes, after: Codes) -> Codes:
    """Return a chunk of the joined table, from the same rows of both tables."""
    return plan.joined(before, after, np.ones(len(before[0]), np.uint8))


class JoinedTables(ABC):
    """Two tables with aligned rows; a context manager.

    rows: int. The number of rows of the table before.
    lacking: int. The number of these rows that the table after lacks. Their values after are missing.
    columns: list of Column. The columns of the joined table, without codes of rows: the columns before, the columns
        after, whether the table after has the row (1, else 0), and the sampling weights if there are any.
    """

    def __init__(self, before: Side, after: Side, request: CompareRequest, find_kept: FindKept | None) -> None:
        names = list(request.columns)
        self._before, self._after = before, after
        self.rows = before.rows
        # For each row of the table after its row before. None: both tables have the same rows.
        self._homes = (
            homes_by_place(before.rows, after.rows, find_kept)
            if request.row_id is None
            else homes_by_name(before.columns[-1], after.columns[-1], *map(self._row_names, (before, after)))
        )
        self.lacking = before.rows - after.rows
        own = {column.name: place for place, column in enumerate(after.columns)}
        places = [None if name in request.dropped else own[name] for name in names]
        others = [
            _nothing(name, before.rows) if place is None else _with_missing(after.columns[place], self.lacking)
            for name, place in zip(names, places, strict=True)
        ]
        there = _plain(len(names), np.array([self.lacking, after.rows]))
        weights = before.columns[len(names) :][: int(request.weights is not None)]
        self.columns = [*before.columns[: len(names)], *others, there, *weights]
        left = after.columns[: len(names) - len(request.dropped)]
        layout = KeyLayout.from_cardinalities([column.cardinality for column in left])
        self._plan = JoinPlan(before.edges, layout, [len(column.labels) for column in left], places)

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *error: object) -> None: ...

    @abstractmethod
    def _values(self, side: Side, place: int) -> list[Codes]:
        """Return the codes of one column, chunk by chunk."""

    @abstractmethod
    def joined(self) -> SetCounts:
        """Open the joined table."""

    @abstractmethod
    def versions(self, layout: VersionLayout) -> SetCounts:
        """Open the table of versions, see `row_versions`."""

    def _row_names(self, side: Side) -> npt.NDArray[Any]:
        """Return the code of the name of each row."""
        return np.concatenate([codes for (codes,) in self._values(side, len(side.columns) - 1)])

    def _add_join(self, graph: Graph) -> list[Result]:
        """Add the tasks that join the rows; return the codes of each chunk of the joined table."""
        plan, before, after = self._plan, self._before, self._after
        first = before.add_codes(graph, tuple(range(len(self.columns) - len(plan.places) - 1)))
        second = after.add_codes(graph, tuple(range(len(plan.missing))))
        if self._homes is None and list(before.sizes) == list(after.sizes):
            return graph.each("join", join_same_rows, plan, first, second)
        homes = range(after.rows) if self._homes is None else self._homes
        chunks = [homes[start:stop] for start, stop in pairwise(after.edges)]
        sent = graph.each("send-after", send_rows, plan, range(len(chunks)), chunks, second)
        numbers = range(len(before.sizes))
        return graph.each("join", join_sent_rows, plan, numbers, first, graph.shuffle("after", sent, len(numbers)))


def version_columns(layout: VersionLayout, rows: int) -> list[Column]:
    """Return the columns of the table of versions, without codes of rows. rows: of the table before."""
    own = [_numbered(column) for column in layout.columns]
    version, fate = _plain(len(own), np.full(KEPT_AFTER + 1, rows)), _plain(len(own) + 1, np.array([rows, 0, 0]))
    there = [_plain(place, np.array([0, rows])) for place in range(len(own) + 2, layout.width)]
    return [*own, version, fate, *there]


def _nothing(name: Hashable, rows: int) -> Column:
    """Return a column of missing values, without codes of rows."""
    return Column(name, np.empty(0, np.uint8), np.array([rows]), pa.nulls(0), missing=True)


def _with_missing(column: Column, more: int) -> Column:
    """Return the column with `more` further missing values."""
    if not more:
        return column
    counts = np.append(column.counts[: len(column.labels)], column.missing_rows + more)
    return replace(column, counts=counts, missing=True)


def _numbered(column: ReleasedColumn) -> Column:
    """Return a column of the numbers of a column's values in all versions, without codes of rows.

    The last number is for cells that are not in both tables.
    """
    detail = np.zeros(column.size, np.int64)
    np.add.at(detail, column.detail, column.before)
    return _plain(column.name, np.append(column.before + detail + column.after, 0))


def _plain(name: Hashable, counts: npt.NDArray[np.int64]) -> Column:
    """Return a column of the whole numbers from 0, without codes of rows. counts: how many rows have each number."""
    return Column(name, np.empty(0, np.uint8), counts, np.arange(len(counts)), missing=False)


class LocalTables(JoinedTables):
    """Two tables on this machine: frames, or paths of files, which are read in streams if they are too large."""

    def __init__(
        self, before: Any, after: Any, request: CompareRequest, report: Reporter, find_kept: FindKept | None
    ) -> None:
        self._report = report
        budget = plan_reading(resources().memory, 2 * len(request.columns) + 1)
        with contextlib.ExitStack() as opened:
            first = _open(before, request.read(0), report, opened)
            second = _open(after, request.read(1), report, opened)
            self._folder = opened.enter_context(temporary_folder(resources().temp))
            self._graph = opened.enter_context(LocalGraph(self._folder / "graph", budget))
            super().__init__(first, second, request, find_kept)
            self._opened = opened.pop_all()
        cells = sum(side.rows * len(side.columns) for side in (first, second))
        self._engine = choose_engine(requested_device(lambda: cells))
        self._joined = ResultChunks(self._graph, self._add_join(self._graph), self._before.sizes, self.columns)

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def _values(self, side: Side, place: int) -> list[Codes]:
        return [self._graph.value(codes) for codes in side.add_codes(self._graph, (place,))]

    def joined(self) -> SetCounts:
        return self._count(self._joined)

    def versions(self, layout: VersionLayout) -> SetCounts:
        return self._count(VersionChunks(self._joined, layout))

    def _count(self, chunks: TableChunks) -> SetCounts:
        """Return an object that counts sets of columns of the chunks. The chunks are closed with this object."""
        budget = plan_reading(resources().memory, len(chunks.columns))
        names = list(range(len(chunks.columns)))
        stream = TemporaryTable(names, chunks, self._folder, budget, contextlib.ExitStack())
        return ChunkCounts(stream, CountRequest(), self._report, self._engine)


def _open(table: Any, names: Sequence[Hashable], report: Reporter, opened: contextlib.ExitStack) -> Side:
    """Return the table before or after, encoded in memory or on disk."""
    request = CountRequest(names)
    if request.in_streams(table):
        chunks: TableChunks = opened.enter_context(request.open_temporary_table(table, report)).chunks
    else:
        with Workers() as workers:
            chunks = MemoryChunks(code_columns(table, request, workers, report).columns, CHUNK_ROWS)

    def add_codes(graph: LocalGraph, places: tuple[int, ...]) -> list[Result]:
        return graph.each("codes", partial(chunks.some_codes, places=places), range(len(chunks.sizes)))

    return Side(chunks.columns, chunks.sizes, add_codes)


class ResultChunks(TableChunks):
    """A table whose chunks of codes are results of a graph. Each chunk is computed when it is read."""

    def __init__(
        self, graph: LocalGraph, results: Sequence[Result], sizes: Sequence[int], columns: Sequence[Column]
    ) -> None:
        self.sizes = sizes
        self.columns = columns
        self._graph = graph
        self._results = results

    def some_codes(self, number: int, places: Sequence[int]) -> Codes:
        codes = self._graph.value(self._results[number])
        return [codes[place] for place in places]

    def close(self) -> None:
        """Close nothing: the graph deletes its files."""


class VersionChunks(TableChunks):
    """The table of versions, see `row_versions`: for each chunk of the joined table one chunk for each version."""

    def __init__(self, joined: ResultChunks, layout: VersionLayout) -> None:
        self.sizes = np.repeat(joined.sizes, len(layout.versions)).tolist()
        self.columns = version_columns(layout, joined.rows)
        self._joined = joined
        self._layout = layout
        self._numbers: dict[int, NumberedRows] = {}

    def some_codes(self, number: int, places: Sequence[int]) -> Codes:
        chunk, version = divmod(number, len(self._layout.versions))
        if chunk not in self._numbers:
            # All versions of a chunk are read one after the other: its numbers are kept until the next chunk.
            self._numbers = {chunk: self._layout.numbers(self._joined.codes(chunk))}
        codes = self._layout.rows(self._numbers[chunk], self._layout.versions[version])
        return [codes[place] for place in places]

    def close(self) -> None:
        """Close nothing: the graph deletes its files."""
