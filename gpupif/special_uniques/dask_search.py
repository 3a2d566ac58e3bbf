"""Special uniques of a Dask frame. Its workers search at once; frames of scores are lazy.

Either the distinct rows of all partitions are brought together and searched by pairs, or the combinations of values are
counted in the partitions.
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
from ..marginals.coded_table import CodedTable
from ..marginals.dask import DaskCounts, TablePlan
from ..pipeline import chunk_encoding as chunk_tasks
from ..pipeline.chunk_encoding import ChunkIndex, EncodedChunk
from ..pipeline.task_resources import task_memory, task_slots, task_workers
from ..utils.memory import free_bytes, resident_bytes
from ..utils.progress import Reporter
from . import search_time_and_memory as predictions
from .distinct_rows import DistinctRows, KeyColumns, PlacedRows, merge_rows, place_of_each
from .minimal_uniques import MsuCounts, Uniques
from .request import SudaRequest
from .result import SpecialUniques
from .search import MERGING, bytes_needed, few_uniques
from .search_by_counting import Hits, Minimal, assemble, find_hits, find_minimal
from .search_by_pairs import SearchByPairs

if TYPE_CHECKING:
    import dask.dataframe as dd


def place(rows: npt.NDArray[np.int64], values: npt.NDArray[Any], names: pd.Index[Any], partition: Any) -> Any:
    """Return a frame with the index of a partition: the values of the given rows, and 0 for all other rows.

    rows: places of rows in the partition. values: array (columns, rows). names: of the columns.
    """
    frame = open_frame(partition)
    every = np.zeros((len(names), frame.rows), values.dtype)
    every[:, rows] = values
    index = chunk_tasks.ChunkIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))
    return chunk_tasks.frame_of(every, index, names)


class DaskSpecialUniques(SpecialUniques):
    """Special uniques of a Dask frame; made by `gpupif.suda`.

    `summary` and `top` (without labels of rows) are computed already. score, dis_score, msus and contributions are Dask
    collections with the partitions, the index and the divisions of the table. Computing them reads the table again for
    its index.
    """

    def __init__(
        self,
        coded: CodedTable,
        found: Uniques,
        request: SudaRequest,
        seconds: Mapping[str, float],
        table: dd.DataFrame,
        starts: Sequence[int],
    ) -> None:
        super().__init__(coded, found, request, seconds)
        self._table = table
        # See `DaskUniques`.
        self._starts = starts

    def _lazy(self, names: pd.Index[Any], values: npt.NDArray[Any]) -> dd.DataFrame:
        """Return values of records as a frame of all rows. values: array (columns, records), see `FewRows`."""
        rows = self._number.rows
        graph = Graph()
        partitions = graph.take(self._table)
        edges = np.searchsorted(rows, self._starts).tolist()
        placing = [
            partial(place, rows[first:last] - start, values[:, first + 1 : last + 1], names)
            for start, (first, last) in zip(self._starts, pairwise(edges), strict=False)
        ]
        tasks = [
            graph.one("place", *task, number=number)
            for number, task in enumerate(zip(placing, partitions, strict=True))
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
    """Return the special uniques of a Dask frame. Raises the errors of `gpupif.suda`."""
    started = time.perf_counter()
    check_dask_frame(table)
    reads = request.reads
    names = reads.chosen(list(table.columns))
    request = request.for_columns(len(names))
    predictions.check_sets(len(names), request.max_size)
    # Uniques are combinations that one row has, whatever its weight: sampling weights are read as a plain column.
    counts = DaskCounts(table, replace(reads, columns=reads.read(names), weights=None), device)
    uniques = search_pairs(counts, names, request) or count_sets(counts, names, request)
    warn_of_unique(uniques.columns, uniques.starts[-1])
    frame = FileFrame(pa.table({}))
    frame.names, frame.rows = names, uniques.starts[-1]
    seconds = {"search": time.perf_counter() - started}
    return DaskSpecialUniques(
        CodedTable(frame, uniques.columns), uniques.uniques, request, seconds, table, uniques.starts
    )


class DaskUniques(NamedTuple):
    """The uniques of a Dask frame.

    columns: its key variables. starts: for each partition the place in the table of its first row; last, the number of
    rows of the table.
    """

    columns: Sequence[Column]
    starts: Sequence[int]
    uniques: Uniques


def search_pairs(counts: DaskCounts, names: Sequence[Hashable], request: SudaRequest) -> DaskUniques | None:
    """Search the distinct rows of all partitions by pairs, each worker a share of the single rows.

    Return None if a search by pairs is not the fastest, or a worker has too little memory for the rows of all.
    """
    graph = Graph()
    encoded, whole = counts.add_plan(graph)
    table = graph.one("table", key_columns, whole, len(names), request.reads.weights)
    many = graph.all("distinct", graph.each("count", count_distinct, encoded))
    together = graph.one("together", by_pairs, request, table, many)
    gathered = graph.each("gather", gather_partition, whole, table, together, encoded)
    rows = graph.one("rows", merge_partitions, table, graph.all("gathered", gathered))
    shares = len(encoded)
    results = graph.all("all", graph.each("search", search_share, request, table, rows, shares, range(shares)))
    result: DaskUniques | None = compute(
        graph.value(graph.one("join", join_shares, request, table, rows, results)),
        Reporter(visible=False),
    )
    return result


def key_columns(whole: TablePlan, keys: int, weights: Hashable) -> KeyColumns:
    """Return the key variables of the table. keys, weights: as of `KeyColumns`."""
    return KeyColumns(whole.columns, keys, weights)


def count_distinct(encoded: tuple[EncodedChunk, ChunkIndex]) -> int:
    """Return how many distinct rows a partition has."""
    return len(encoded[0].multiplicities)


def by_pairs(request: SudaRequest, table: KeyColumns, distinct: Sequence[int]) -> bool:
    """Return whether to search by pairs. distinct: how many distinct rows each partition has."""
    rows, memory = sum(distinct), task_memory() or free_bytes()
    columns, sizes = len(table.columns), range(1, request.max_size + 1)
    estimates = {
        largest: predictions.seconds_by_way(rows, rows, table.cardinalities, largest, gpu=False) for largest in sizes
    }
    fastest = next(iter(estimates[request.max_size]))
    merging = MERGING * rows * (8 * table.layout.words + 24)
    # The task that joins the shares holds each result twice.
    results = 2 * bytes_needed(rows, table.cardinalities, request)["pairs"]
    if fastest != "pairs" or max(merging, merging // MERGING + results) > memory:
        return False
    predictions.check_time(rows, columns, {largest: next(iter(ways.values())) for largest, ways in estimates.items()})
    return True


def gather_partition(
    whole: TablePlan, table: KeyColumns, together: bool, encoded: tuple[EncodedChunk, ChunkIndex]
) -> tuple[int, PlacedRows] | None:
    """Return how many rows a partition has, and its distinct rows; None if they are not to be brought together."""
    if not together:
        return None
    local, index = encoded
    codes, multiplicities = whole.rows(local)
    places = place_of_each(index.number, len(multiplicities))
    with task_workers() as workers:
        return len(index.number), merge_rows([table.placed_rows(codes, multiplicities, places, workers)], workers)


class PartitionedRows(NamedTuple):
    """The distinct rows of all partitions. starts: as of `DaskUniques`."""

    merged: PlacedRows
    rows: DistinctRows
    starts: Sequence[int]


def merge_partitions(table: KeyColumns, partitions: Sequence[tuple[int, PlacedRows] | None]) -> PartitionedRows | None:
    """Merge the distinct rows of all partitions; None if they were not brought together.

    partitions: for each partition its number of rows, and its distinct rows.
    """
    gathered = [partition for partition in partitions if partition is not None]
    if not gathered:
        return None
    starts = [0, *accumulate(rows for rows, _ in gathered)]
    placed = [own._replace(places=own.places + start) for start, (_, own) in zip(starts, gathered, strict=False)]
    with task_workers() as workers:
        merged = merge_rows(placed, workers)
        rows = DistinctRows.from_keys(merged.keys, merged.multiplicities, table.cardinalities, workers)
    return PartitionedRows(merged, rows, starts)


def search_share(
    request: SudaRequest, table: KeyColumns, gathered: PartitionedRows | None, shares: int, share: int
) -> MsuCounts | None:
    """Search a share of the single rows; None if rows were not brought together.

    Share 0 has the single rows 0, `shares`, 2 `shares`, ...
    """
    if gathered is None:
        return None
    rows, missing = gathered.rows, request.missing_values(table.columns)
    own = rows.single[share::shares]
    weights = request.set_weights(len(table.columns))
    msus = MsuCounts.nothing(len(weights), len(own), len(table.columns), request.contributions)
    with task_workers() as workers:
        limit = task_memory()
        room = None if limit is None else max(0, limit - resident_bytes()) // task_slots()
        SearchByPairs(rows, weights, room, missing).search(own, np.arange(len(own)), msus, workers)
    return msus


def join_shares(
    request: SudaRequest, table: KeyColumns, gathered: PartitionedRows | None, shares: Sequence[MsuCounts | None]
) -> DaskUniques | None:
    """Join the results of all shares; None if rows were not brought together."""
    if gathered is None:
        return None
    rows, weights = gathered.rows, request.set_weights(len(table.columns))
    together = MsuCounts.nothing(len(weights), len(rows), len(table.columns), request.contributions)
    for share, msus in enumerate(shares):
        if msus is not None:
            own = rows.single[share :: len(shares)]
            together.counts[:, own] = msus.counts
            together.by_column[:] += msus.by_column
            if request.contributions:
                together.shares[own] = msus.shares
    uniques = few_uniques(rows, gathered.merged, together, table.units)
    return DaskUniques(table.columns, gathered.starts, uniques)


def count_sets(counts: DaskCounts, names: Sequence[Hashable], request: SudaRequest) -> DaskUniques:
    """Count combinations of values in the partitions; only the minimal sample uniques come to the client."""
    predictions.check_counting(len(names), request.max_size)
    minimal = find_minimal(counts, names, request)
    graph = Graph()
    encoded, whole = counts.add_plan(graph)
    by_partition = graph.each("hits", find_rows, whole, graph.given("minimal", minimal.minimal), encoded)
    hits = compute(graph.value(graph.all("all", by_partition)), Reporter(visible=False))
    return DaskUniques(minimal.columns, [0, *accumulate(rows for rows, _ in hits)], assemble(minimal, hits, request))


def find_rows(whole: TablePlan, minimal: Minimal, encoded: tuple[EncodedChunk, ChunkIndex]) -> tuple[int, Hits]:
    """Return how many rows a partition has, and by set of columns its rows with a minimal combination."""
    local, index = encoded
    with task_workers() as workers:
        hits = find_hits(minimal, whole.rows(local)[0], workers)
    # A distinct row with a minimal combination occurs once in the table: `place_of_each` finds this row.
    row_of = place_of_each(index.number, len(local.multiplicities))
    return len(index.number), {set_: row_of[distinct] for set_, distinct in hits.items()}
