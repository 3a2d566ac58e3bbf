"""Combinations of values of sets of columns of a Dask frame, counted by its workers.

One shuffle, whatever the number of sets: each partition sends the combinations that it has of each set, counted, to the
part that the hash of their values says. What is found there, which is little, comes to who asks.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy.typing as npt
import pandas as pd

from ..attack.weights import TableWeights, Units
from ..dask.cluster_progress import compute
from ..dask.dask_graph import Graph
from ..encoding.column import Column
from ..engines.choose import DeviceRequest
from ..engines.cpu.count_tables import key_layout
from ..frames.dask_frame import check_dask_frame
from ..pipeline import chunk_encoding as chunk_tasks
from ..pipeline import table_plan as plan
from ..pipeline.chunk_encoding import EncodedChunk
from ..pipeline.shuffle_messages import Message, pack, partition_of_keys, rows_in, rows_to_messages, unpack
from ..pipeline.table_plan import ChunkTotals, WeightedCounts, Weights
from ..pipeline.task_graph import Result
from ..pipeline.task_resources import task_engine, task_workers
from ..rows.partition import Rows
from ..utils.progress import Reporter
from .request import CountRequest
from .set_counts import CountResult, MakeFind, SetCounts, SetRequest, Total, with_counts


class ColumnsRead(NamedTuple):
    """Columns read of a table (see `ReadRequest`). read: its columns, of which `used` are counted. missing: "category"
    or "error".
    """

    read: list[Hashable]
    used: list[Hashable]
    weights: Hashable
    missing: str


class TablePlan(NamedTuple):
    """Global metadata broadcast to all parts. read: the columns that are read, without codes of rows; columns: those
    that are counted. units: of the weights, in the column of this place. device: that counts.
    """

    read: Sequence[Column]
    columns: Sequence[Column]
    total: Total
    device: str
    units: tuple[int, Units] | None = None

    def rows(self, local: EncodedChunk) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        """The codes, by column, of the distinct rows of a partition, and what they count."""
        codes = chunk_tasks.global_codes(self.read, local)
        if self.units is None:
            return codes, local.times
        place, units = self.units
        return codes, units.times(codes[place]) * local.times


class DaskCounts(SetCounts):
    """A Dask frame; it is computed anew by each `count`."""

    def __init__(self, table: Any, request: CountRequest, device: DeviceRequest) -> None:
        check_dask_frame(table)
        self.names = request.chosen(list(table.columns))
        self._all_names = list(table.columns)
        self._read = ColumnsRead(request.read(self.names), list(self.names), request.weights, request.missing)
        self._table = table
        # As it was asked for; what that means is known to the workers.
        self.device, self._asked = device.device, device

    def __exit__(self, *error: object) -> None:
        """Nothing is kept."""

    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        graph = Graph()
        encoded, whole = self.add_plan(graph)
        local = graph.each("local", itemgetter(0), encoded)
        asked, count = tuple(sets), range(len(local))
        sent = graph.each("send", send_combinations, asked, len(local), self._asked, whole, count, local)
        shared = graph.given("make", make)
        there = graph.shuffle("out", sent, len(local))
        parts = graph.each("count", count_partition, asked, self._asked, shared, whole, count, there)
        result = graph.one("result", _result, whole, graph.tree("found", add_found, parts))
        counted: CountResult
        self.device, counted = compute(graph.value(result), Reporter(visible=False))
        return counted

    def add_plan(self, graph: Graph) -> tuple[list[Result], Result]:
        """Add tasks that encode each partition, and one that returns the `TablePlan`."""
        read, table, names = self._read, self._table, self._all_names
        partitions = graph.take(table[read.read] if read.read != names else table)
        encoded = graph.each("encode", chunk_tasks.encode_chunk, read, self._asked, partitions)
        totals, weighing = chunk_tasks.count_values(graph, read, names, graph.each("counted", itemgetter(0), encoded))
        return encoded, graph.one("whole", plan_table, read, names, totals, *weighing)


def plan_table(
    read: ColumnsRead,
    names: list[Hashable],
    totals: ChunkTotals,
    weights: Weights | None,
    counts: WeightedCounts | None,
) -> TablePlan:
    """The table by its totals; counts: what the rows of each value count, where they have weights.

    Raises InputError for a table without rows, or with missing values where they are errors.
    """
    device = " and ".join(sorted(asked.device for asked in totals.devices))
    if weights is None or counts is None:
        plan.check_totals(read, names, totals)
        columns: Sequence[Column] = plan.merged_columns(read.read, totals.values)
        return TablePlan(columns, columns, Total(totals.rows, totals.rows), device)
    units = weights.units
    weighted = TableWeights(None, counts, units.total, units.unit)
    columns = with_counts(weights.columns[: len(read.used)], weighted)
    place = read.read.index(read.weights)
    return TablePlan(weights.columns, columns, Total.from_weights(totals.rows, weighted), device, (place, units))


def send_combinations(
    sets: Sequence[SetRequest],
    partitions: int,
    device: DeviceRequest,
    whole: TablePlan,
    source: int,
    local: EncodedChunk,
) -> pd.DataFrame:
    """Return the parcels in which the combinations of chunk `source` travel: keys, and how often each occurs."""
    cardinalities = [column.cardinality for column in whole.columns]
    parcels: list[Message] = []
    if not len(local.times):
        return pack(parcels)
    codes, times = whole.rows(local)
    with task_workers() as workers, task_engine(device).counting(workers) as counting:
        each = counting.counters(codes, cardinalities, [one.columns for one in sets], times, differ=True)
        for number, (one, (counter, place)) in enumerate(zip(sets, each, strict=True)):
            found = counter.combinations(place, ordered=False)
            layout = key_layout([cardinalities[column] for column in one.columns])
            keys = layout.pack(found.codes, workers)
            columns = list(one.columns)
            to = partition_of_keys(keys, layout, (columns.index(column) for column in one.by), partitions)
            parcels += rows_to_messages(Rows(keys, found.counts), to, partitions, source, number, workers)
    return pack(parcels)


def count_partition(
    sets: Sequence[SetRequest], device: DeviceRequest, make: MakeFind, whole: TablePlan, partition: int, arrived: Any
) -> list[list[Any]]:
    """Return what is found in the combinations that reached a partition, by set."""
    find = make(whole.columns, whole.total)
    found: list[list[Any]] = [[] for _ in sets]
    with task_workers() as workers, task_engine(device).counting(workers) as counting:
        for number, group in groupby(unpack(arrived, partition), key=lambda parcel: parcel.cut):
            columns = sets[number].columns
            cardinalities = [whole.columns[column].cardinality for column in columns]
            layout = key_layout(cardinalities)
            rows = rows_in(group, layout.words)
            counter = counting.counter([list(range(len(columns)))], cardinalities, len(rows.keys))
            counter.add(layout.unpack(rows.keys), rows.counts)
            found[number].append(find(columns, counter, 0))
    return found


def add_found(*parts: list[list[Any]]) -> list[list[Any]]:
    """Return what was found in several partitions, by set."""
    return [[one for part in several for one in part] for several in zip(*parts, strict=True)]


def _result(whole: TablePlan, found: list[list[Any]]) -> tuple[str, CountResult]:
    return whole.device, CountResult(whole.columns, whole.total, found)
