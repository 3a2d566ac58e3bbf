"""Two tables with aligned rows, of which at least one is a Dask frame. Each count computes both tables anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..dask.parquet_partitions import read_files
from ..encoding.column import Column
from ..engines.choose import DeviceRequest, requested_device
from ..frames.dask_frame import is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..marginals.dask import ColumnsRead, DaskCounts, TablePlan, TaskCounts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetCounts, Total
from ..pipeline.chunk_encoding import ChunkIndex, CodedChunk, EncodedChunk, collapse_chunk, encode_chunk, global_codes
from ..pipeline.task_graph import Result
from ..utils.progress import Reporter
from .aligned_rows import CompareRequest, FindKept
from .joined_tables import Codes, JoinedTables, Side, version_columns
from .row_versions import VersionLayout


class DaskTables(JoinedTables):
    """Two tables, of which at least one is a Dask frame. Only their distinct values come to the client."""

    def __init__(self, before: Any, after: Any, request: CompareRequest, find_kept: FindKept | None) -> None:
        partitions = max(table.npartitions for table in (before, after) if is_dask(table))
        first = _open("before", before, request.read(0), partitions)
        second = _open("after", after, request.read(1), partitions)
        super().__init__(first, second, request, find_kept)

    def __exit__(self, *error: object) -> None:
        """Close nothing: Dask holds the data."""

    def _values(self, side: Side, place: int) -> list[Codes]:
        graph = Graph()
        values: list[Codes] = _computed(graph, graph.all("values", side.add_codes(graph, (place,))))
        return values

    def joined(self) -> SetCounts:
        return _ResultCounts(self.columns, self.rows, self._add_distinct)

    def versions(self, layout: VersionLayout) -> SetCounts:
        def add(graph: Graph) -> list[Result]:
            return graph.each("versions", add_versions, graph.given("layout", layout), self._add_distinct(graph))

        columns = version_columns(layout, self.rows)
        return _ResultCounts(columns, self.rows * len(layout.versions), add)

    def _add_distinct(self, graph: Graph) -> list[Result]:
        """Add the tasks that join the rows; return the distinct rows of each chunk of the joined table."""
        columns = graph.given("columns", self.columns)
        return graph.each("distinct", distinct_rows, columns, requested_device(), self._add_join(graph))


def distinct_rows(columns: Sequence[Column], device: DeviceRequest, codes: Codes) -> tuple[EncodedChunk, ChunkIndex]:
    """Return the distinct rows of a chunk of codes."""
    return collapse_chunk(CodedChunk(columns, codes), device)


def add_versions(layout: VersionLayout, chunk: tuple[EncodedChunk, ChunkIndex]) -> tuple[EncodedChunk, None]:
    """Return the rows of the table of versions for the distinct rows of a chunk of the joined table."""
    local, _ = chunk
    numbered = layout.numbers(local.codes)
    each = [layout.rows(numbered, version) for version in layout.versions]
    codes = [np.concatenate(own) for own in zip(*each, strict=True)]
    # Codes of the whole table have columns in place of the values of the chunk.
    values = [local.values[0]] * len(codes)
    return local._replace(codes=codes, multiplicities=np.tile(local.multiplicities, len(each)), values=values), None


class _ResultCounts(TaskCounts):
    """The counts of a table whose columns are known and whose chunks are results of a graph.

    add: function that adds the tasks of the chunks to a graph and returns their results, as of `encode_chunk`.
    """

    def __init__(self, columns: Sequence[Column], rows: int, add: Callable[[Graph], list[Result]]) -> None:
        super().__init__([column.name for column in columns], requested_device())
        self._whole = TablePlan(columns, columns, Total(rows, rows), self.device)
        self._add = add

    def add_plan(self, graph: Graph) -> tuple[list[Result], Result]:
        return self._add(graph), graph.given("whole", self._whole)


def _open(argument: str, table: Any, names: Sequence[Hashable], partitions: int) -> Side:
    """Return the table before or after; its values are counted at once.

    partitions: int. The number of partitions of a table in memory.
    """
    frame = _as_dask(argument, table, names, partitions)
    device = requested_device()
    graph = Graph()
    encoded, whole = DaskCounts(frame, CountRequest(names), device).add_plan(graph)
    sizes = graph.all("sizes", graph.each("size", count_rows, encoded))
    plan, chunk_rows = _computed(graph, graph.all("facts", [whole, sizes]))

    def add_codes(graph: Graph, places: tuple[int, ...]) -> list[Result]:
        read = [names[place] for place in places]
        request = ColumnsRead(read, read, None, "category")
        chunks = graph.each(f"encode-{argument}", encode_chunk, request, device, graph.take(frame[read]))
        columns = graph.given(f"columns-{argument}", [plan.columns[place] for place in places])
        return graph.each(f"codes-{argument}", row_codes, columns, chunks)

    return Side(plan.columns, chunk_rows, add_codes)


def count_rows(encoded: tuple[EncodedChunk, ChunkIndex]) -> int:
    """Return the number of rows of a chunk."""
    return len(encoded[1].number)


def row_codes(columns: Sequence[Column], encoded: tuple[EncodedChunk, ChunkIndex]) -> Codes:
    """Return the codes of the rows of a chunk, as the columns of the whole table have them."""
    local, index = encoded
    return [codes[index.number] for codes in global_codes(columns, local)]


def _computed(graph: Graph, result: Result) -> Any:
    """Return the value of a result."""
    return compute(graph.value(result), Reporter(visible=False))


def _as_dask(argument: str, table: Any, names: Sequence[Hashable], partitions: int) -> Any:
    """Return some columns of a table of any kind as a Dask frame."""
    import dask
    import dask.dataframe as dd

    if is_dask(table):
        return table[list(names)]
    if isinstance(table, str | os.PathLike):
        return read_files(argument, find_input(table), lambda every: [str(name) for name in names]).frame[list(names)]
    if isinstance(table, pd.DataFrame):
        frame = table[list(names)].reset_index(drop=True)
    else:
        frame = open_frame(table).arrow().select([str(name) for name in names]).to_pandas(types_mapper=pd.ArrowDtype)
    # Values of several types stay as they are, and are no texts.
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_pandas(frame, npartitions=partitions, sort=False)
