"""Special uniques of a Dask frame: searched at once by its workers, the scores of its rows lazy.

Its distinct rows are brought together and searched by pairs, or combinations of values are counted in its partitions.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ..attack.request import warn_of_unique
from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..encoding.column import Column
from ..engines.choose import DeviceRequest
from ..frames.dask_frame import check_dask_frame
from ..frames.file_frame import FileFrame
from ..frames.open import open_frame
from ..marginals.coded_table import Coded
from ..marginals.dask import DaskCounts, TablePlan
from ..pipeline import chunk_encoding as chunk_tasks
from ..pipeline.chunk_encoding import ChunkIndex, EncodedChunk
from ..pipeline.task_resources import task_memory, task_slots, task_workers
from ..rows.keys import KeyLayout
from ..utils.memory import free_bytes, resident_bytes
from ..utils.progress import Reporter
from . import search_time_and_memory as predictions
from .distinct_rows import DistinctRows, PartRows, merge_parts
from .minimal_uniques import Found, Uniques
from .request import SudaRequest, sample_units
from .result import SpecialUniques
from .search import MERGING, bytes_needed, few_uniques
from .search_by_counting import Hits, Minimal, assemble, find_hits, find_minimal
from .search_by_pairs import SearchByPairs

if TYPE_CHECKING:
    import dask.dataframe as dd


def place(rows: npt.NDArray[np.int64], values: npt.NDArray[Any], names: pd.Index[Any], partition: Any) -> Any:
    """Return a frame of all rows of a partition: values (columns, rows) of some rows, 0 for all others."""
    frame = open_frame(partition)
    every = np.zeros((len(names), frame.rows), values.dtype)
    every[:, rows] = values
    index = chunk_tasks.ChunkIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))
    return chunk_tasks.frame_of(every, index, names)


class DaskSpecialUniques(SpecialUniques):
    """Special uniques of a Dask frame; made by `gpupif.suda`.

    `summary` and `top` (without labels of rows) are there at once; score, dis_score, msus and contributions are Dask
    collections with the partitions, the index and the divisions of the table, which is read again for its index.
    """

    def __init__(
        self,
        coded: Coded,
        found: Uniques,
        request: SudaRequest,
        seconds: Mapping[str, float],
        table: dd.DataFrame,
        starts: Sequence[int],
    ) -> None:
        super().__init__(coded, found, request, seconds)
        self._table = table
        # The row that each partition begins with, and how many rows there are.
        self._starts = starts

    def _lazy(self, names: pd.Index[Any], values: npt.NDArray[Any]) -> dd.DataFrame:
        """Values of records (columns, records) as a frame of the table's rows; see `FewRows`."""
        rows = self._number.rows
        graph = Graph()
        partitions = graph.take(self._table)
        edges = np.searchsorted(rows, self._starts).tolist()
        pieces = [
            partial(place, rows[first:last] - start, values[:, first + 1 : last + 1], names)
            for start, (first, last) in zip(self._starts, pairwise(edges), strict=False)
        ]
        tasks = [
            graph.one("place", *task, number=number) for number, task in enumerate(zip(pieces, partitions, strict=True))
        ]
        meta = chunk_tasks.frame_of(
            np.empty((len(names), 0), values.dtype), chunk_tasks.empty_index(self._table._meta), names
        )
        return graph.frame("rows", tasks, meta, self._table.divisions)

    def _series(self, values: npt.NDArray[Any], name: str) -> Any:
        return self._named({name: values})[name]

    def _named(self, columns: Mapping[str, npt.NDArray[Any]]) -> Any:
        return self._lazy(pd.Index(list(columns)), np.stack(list(columns.values())))

    def _wrap(self, values: Sequence[npt.NDArray[Any]]) -> Any:
        every = list(self._table.columns)
        labels = self._table._meta.columns.take([every.index(name) for name in self.columns])
        return self._lazy(labels, np.stack(values))


def find_in_dask(table: Any, request: SudaRequest, device: DeviceRequest) -> DaskSpecialUniques:
    """Special uniques of a Dask frame; see `gpupif.suda`."""
    started = time.perf_counter()
    check_dask_frame(table)
    reads = request.reads
    names = reads.chosen(list(table.columns))
    request = request.for_columns(len(names))
    predictions.check_sets(len(names), request.max_size)
    # Weights are a column like others here: what is counted is rows.
    counts = DaskCounts(table, replace(reads, columns=reads.read(names), weights=None), device)
    found = search_pairs(counts, names, request) or count_sets(counts, names, request)
    warn_of_unique(found.columns, found.starts[-1])
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = names, found.starts[-1]
    seconds = {"search": time.perf_counter() - started}
    return DaskSpecialUniques(Coded(frame, found.columns), found.uniques, request, seconds, table, found.starts)


class DaskUniques(NamedTuple):
    """The uniques of a Dask frame. columns: its key variables. starts: the row that each partition begins with, and
    how many rows there are.
    """

    columns: Sequence[Column]
    starts: Sequence[int]
    uniques: Uniques


def search_pairs(counts: DaskCounts, names: Sequence[Hashable], request: SudaRequest) -> DaskUniques | None:
    """Search the distinct rows of all partitions, brought together to every worker, by pairs; None where that is not
    the fastest, or they are too many for the memory of one.
    """
    graph = Graph()
    encoded, whole = counts.add_plan(graph)
    weights = None if request.reads.weights is None else list(counts.names).index(request.reads.weights)
    table = graph.one("table", KeyTable, whole, len(names), weights)
    many = graph.all("distinct", graph.each("count", count_distinct, encoded))
    together = graph.one("together", by_pairs, request, table, many)
    parts = graph.all("gathered", graph.each("gather", gather_part, table, together, encoded))
    rows = graph.one("rows", merge_partitions, table, parts)
    shares = len(encoded)
    found = graph.all("all", graph.each("search", search_share, request, table, rows, shares, range(shares)))
    result: DaskUniques | None = compute(
        graph.value(graph.one("found", join_shares, request, table, rows, found)), Reporter(visible=False)
    )
    return result


class KeyTable:
    """The key variables of a table, the first columns of those read. weights: the place of that column, if any."""

    def __init__(self, whole: TablePlan, keys: int, weights: int | None) -> None:
        self.whole = whole
        self.columns = whole.columns[:keys]
        self.cardinalities = [column.cardinality for column in self.columns]
        self.layout = KeyLayout.of(self.cardinalities)
        self.weights = weights
        self.units = None if weights is None else sample_units(whole.columns[weights])


def count_distinct(encoded: tuple[EncodedChunk, ChunkIndex]) -> int:
    """Return how many distinct rows a partition has."""
    return len(encoded[0].times)


def by_pairs(request: SudaRequest, table: KeyTable, distinct: Sequence[int]) -> bool:
    """Return whether to search by pairs. distinct: how many distinct rows each partition has."""
    rows, memory = sum(distinct), task_memory() or free_bytes()
    columns, sizes = len(table.columns), range(1, request.max_size + 1)
    estimates = {
        largest: predictions.seconds_by_way(rows, rows, table.cardinalities, largest, gpu=False) for largest in sizes
    }
    fastest = next(iter(estimates[request.max_size]))
    merging = MERGING * rows * (8 * table.layout.words + 24)
    # What is found is there twice where the shares are joined.
    found = 2 * bytes_needed(rows, table.cardinalities, request)["pairs"]
    if fastest != "pairs" or max(merging, merging // MERGING + found) > memory:
        return False
    predictions.check_time(rows, columns, {largest: next(iter(ways.values())) for largest, ways in estimates.items()})
    return True


def gather_part(
    table: KeyTable, together: bool, encoded: tuple[EncodedChunk, ChunkIndex]
) -> tuple[int, PartRows] | None:
    """Return how many rows a partition has, and its distinct rows; None if they are not to be brought together."""
    if not together:
        return None
    local, index = encoded
    codes, times = table.whole.rows(local)
    # Of rows that are several, any will do.
    places = np.empty(len(times), np.int64)
    places[index.number] = np.arange(len(index.number))
    units = np.empty(0, np.int64)
    if table.units is not None and table.weights is not None:
        units = table.units.times(codes[table.weights]) * times
    with task_workers() as workers:
        keys = table.layout.pack(codes[: len(table.columns)], workers)
        return len(index.number), merge_parts([PartRows(keys, times, places, units)], workers)


class PartitionedRows(NamedTuple):
    """The distinct rows of all partitions. starts: as of `DaskUniques`."""

    merged: PartRows
    rows: DistinctRows
    starts: Sequence[int]


def merge_partitions(table: KeyTable, parts: Sequence[tuple[int, PartRows] | None]) -> PartitionedRows | None:
    """Merge the distinct rows of all partitions, in their order; None if they were not brought together."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    starts = [0, *accumulate(rows for rows, _ in there)]
    placed = [part._replace(places=part.places + start) for start, (_, part) in zip(starts, there, strict=False)]
    with task_workers() as workers:
        merged = merge_parts(placed, workers)
        rows = DistinctRows.from_keys(merged.keys, merged.times, table.cardinalities, workers)
    return PartitionedRows(merged, rows, starts)


def search_share(
    request: SudaRequest, table: KeyTable, gathered: PartitionedRows | None, shares: int, share: int
) -> Found | None:
    """Search one of several shares of the single rows; None if rows were not brought together."""
    if gathered is None:
        return None
    rows, missing = gathered.rows, request.missing_values(table.columns)
    own = rows.single[share::shares]
    weights = request.set_weights(len(table.columns))
    found = Found.nothing(len(weights), len(own), len(table.columns), request.contributions)
    with task_workers() as workers:
        limit = task_memory()
        room = None if limit is None else max(0, limit - resident_bytes()) // task_slots()
        SearchByPairs(rows, weights, room, missing).search(own, np.arange(len(own)), found, workers)
    return found


def join_shares(
    request: SudaRequest, table: KeyTable, gathered: PartitionedRows | None, shares: Sequence[Found | None]
) -> DaskUniques | None:
    """Join what all shares found; None if they did not search."""
    if gathered is None:
        return None
    rows, weights = gathered.rows, request.set_weights(len(table.columns))
    together = Found.nothing(len(weights), len(rows), len(table.columns), request.contributions)
    for share, found in enumerate(shares):
        if found is not None:
            own = rows.single[share :: len(shares)]
            together.counts[:, own] = found.counts
            together.by_column[:] += found.by_column
            if request.contributions:
                together.shares[own] = found.shares
    uniques = few_uniques(rows, gathered.merged, together, table.units)
    return DaskUniques(table.columns, gathered.starts, uniques)


def count_sets(counts: DaskCounts, names: Sequence[Hashable], request: SudaRequest) -> DaskUniques:
    """Count in the partitions what is unique; only the minimal sample uniques come to who asks."""
    predictions.check_counting(len(names), request.max_size)
    found = find_minimal(counts, names, request)
    graph = Graph()
    encoded, whole = counts.add_plan(graph)
    parts = graph.each("hits", find_rows, whole, graph.given("minimal", found.minimal), encoded)
    results = compute(graph.value(graph.all("all", parts)), Reporter(visible=False))
    starts = [0, *accumulate(rows for rows, _ in results)]
    hits = [
        {set_: rows + start for set_, rows in one.items()} for start, (_, one) in zip(starts, results, strict=False)
    ]
    return DaskUniques(found.columns, starts, assemble(found, hits, request))


def find_rows(whole: TablePlan, minimal: Minimal, encoded: tuple[EncodedChunk, ChunkIndex]) -> tuple[int, Hits]:
    """Return how many rows a partition has, and by set of columns its rows with a minimal combination."""
    local, index = encoded
    hits = find_hits(minimal, whole.rows(local)[0], list(minimal), 0)
    # A row that has one is the only one of its kind.
    row_of = np.empty(len(local.times), np.int64)
    row_of[index.number] = np.arange(len(index.number))
    return len(index.number), {set_: np.sort(row_of[distinct]) for set_, distinct in hits.items()}
