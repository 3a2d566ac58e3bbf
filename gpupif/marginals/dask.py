"""Combinations of values of sets of columns of a Dask frame, counted by its workers.

There is one shuffle for all sets. Each chunk sends its combinations of each set, counted, to the partition that the
hash of their values says. Only the results of partitions, which are small, come to the client.
"""

from __future__ import annotations

from abc import abstractmethod
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
    """The columns that are read of a table (see `ReadRequest`).

    read: all of them. used: the columns that are counted. weights: the column of weights. missing: "category" or
    "error".
    """

    read: list[Hashable]
    used: list[Hashable]
    weights: Hashable
    missing: str


class TablePlan(NamedTuple):
    """The facts of the whole table that each partition needs.

    read: the columns that are read, without codes of rows. columns: the columns that are counted. total: of all rows.
    device: the device that counts. units: the place of the column of weights in `read`, and the units of its codes;
    None without weights.
    """

    read: Sequence[Column]
    columns: Sequence[Column]
    total: Total
    device: str
    units: tuple[int, Units] | None = None

    def rows(self, local: EncodedChunk) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any]]:
        """Return the codes, by column, of the distinct rows of a chunk, and how much they count."""
        codes = chunk_tasks.global_codes(self.read, local)
        if self.units is None:
            return codes, local.multiplicities
        place, units = self.units
        return codes, units.multiplicities(codes[place]) * local.multiplicities


class TaskCounts(SetCounts):
    """The counts of a table whose chunks are encoded by tasks on Dask. Each `count` computes the table anew.

    device: the requested device, until workers say which device counted.
    """

    def __init__(self, names: Sequence[Hashable], device: DeviceRequest) -> None:
        self.names = names
        self.device, self._asked = device.device, device

    def __exit__(self, *error: object) -> None:
        """Do nothing: there is nothing to close."""

    @abstractmethod
    def add_plan(self, graph: Graph) -> tuple[list[Result], Result]:
        """Add tasks that encode each chunk (see `encode_chunk`), and a task that returns the `TablePlan`."""

    def count(self, sets: Sequence[SetRequest], make: MakeFind) -> CountResult:
        """Return the results for each set; see `SetCounts.count`."""
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


class DaskCounts(TaskCounts):
    """The counts of a Dask frame."""

    def __init__(self, table: Any, request: CountRequest, device: DeviceRequest) -> None:
        check_dask_frame(table)
        super().__init__(request.chosen(list(table.columns)), device)
        self._all_names = list(table.columns)
        self._read = ColumnsRead(request.read(self.names), list(self.names), request.weights, request.missing)
        self._table = table

    def add_plan(self, graph: Graph) -> tuple[list[Result], Result]:
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
    """Return the plan of a table. counts: how much the rows of each value count; None without weights.

    Raises InputError for a table without rows, or with missing values if they are errors.
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
    """Return the messages with the combinations of chunk `source`: keys, and how often each occurs."""
    cardinalities = [column.cardinality for column in whole.columns]
    messages: list[Message] = []
    if not len(local.multiplicities):
        return pack(messages)
    codes, multiplicities = whole.rows(local)
    with task_workers() as workers, task_engine(device).counting(workers) as counting:
        each = counting.counters(
            codes, cardinalities, [request.columns for request in sets], multiplicities, differ=True
        )
        for number, (request, (counter, place)) in enumerate(zip(sets, each, strict=True)):
            combinations = counter.combinations(place, ordered=False)
            layout = key_layout([cardinalities[column] for column in request.columns])
            keys = layout.pack(combinations.codes, workers)
            columns = list(request.columns)
            to = partition_of_keys(keys, layout, (columns.index(column) for column in request.by), partitions)
            messages += rows_to_messages(Rows(keys, combinations.counts), to, partitions, source, number, workers)
    return pack(messages)


def count_partition(
    sets: Sequence[SetRequest], device: DeviceRequest, make: MakeFind, whole: TablePlan, partition: int, arrived: Any
) -> list[list[Any]]:
    """Return the results of a partition, by set, from the combinations that reached it."""
    find = make(whole.columns, whole.total)
    results: list[list[Any]] = [[] for _ in sets]
    with task_workers() as workers, task_engine(device).counting(workers) as counting:
        for number, group in groupby(unpack(arrived, partition), key=lambda message: message.cut):
            columns = sets[number].columns
            cardinalities = [whole.columns[column].cardinality for column in columns]
            layout = key_layout(cardinalities)
            rows = rows_in(group, layout.words)
            counter = counting.counter([list(range(len(columns)))], cardinalities, len(rows.keys))
            counter.add(layout.unpack(rows.keys), rows.counts)
            results[number].append(find(columns, counter, 0))
    return results


def add_found(*parts: list[list[Any]]) -> list[list[Any]]:
    """Return the results of several groups of partitions together, by set."""
    return [[result for part in own_parts for result in part] for own_parts in zip(*parts, strict=True)]


def _result(whole: TablePlan, found: list[list[Any]]) -> tuple[str, CountResult]:
    return whole.device, CountResult(whole.columns, whole.total, found)
