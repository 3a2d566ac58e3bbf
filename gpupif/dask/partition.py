"""Tasks of a partition: encode and collapse its rows, send them to parts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..attack.joined_columns import SAMPLE
from ..attack.weights import add_chunk
from ..encoding.column import Column
from ..encoding.merge import ValueCounts, encode_part, number_in, recode
from ..engines.choose import DeviceRequest
from ..frames.open import open_frame
from ..gpu.open import frame_library
from ..rows.distinct import distinct_rows
from ..rows.keys import KeyLayout
from ..rows.partition import Rows
from .graph import Graph, Result
from .parcels import Parcel, pack, parcel_memory, parcel_rows
from .plan import (
    PartitionTotals,
    Plan,
    ReadRequest,
    WeightedCounts,
    Weights,
    add_counts,
    add_totals,
    find_units,
)
from .shuffle import Routes, find_sends
from .worker import task_workers, worker_device


class EncodedPartition(NamedTuple):
    """Distinct rows of a partition: codes by column, that count in `values`, and how often each row occurs there."""

    codes: list[npt.NDArray[Any]]
    times: npt.NDArray[Any]
    values: list[ValueCounts]
    first_missing: list[int]
    device: DeviceRequest


class PartitionIndex(NamedTuple):
    """The labels of a partition's rows, an index of pandas or a GPU; and for each row which distinct row it is."""

    labels: Any
    on_device: bool
    number: npt.NDArray[Any]


def encode_partition(
    request: ReadRequest, device: DeviceRequest, partition: Any
) -> tuple[EncodedPartition, PartitionIndex]:
    """Number the values of a partition's columns by themselves and collapse equal rows; raises ColumnTypeError."""
    frame = open_frame(partition)
    here = worker_device(device)
    places = [frame.names.index(name) for name in request.read]
    with frame.active():
        columns = [frame.column(place) if frame.rows else pd.Series(dtype=object) for place in places]
        parts = [encode_part(name, column) for name, column in zip(request.read, columns, strict=True)]
    first_missing = [
        int(np.argmax(part.codes == len(part.values.labels))) if part.values.missing else -1 for part in parts
    ]
    values = [part.values for part in parts]
    on_device = frame.device_frames() is not None
    if frame.rows == 0:
        nothing = np.empty(0, np.uint32)
        empty = EncodedPartition([nothing] * len(parts), nothing, values, first_missing, here)
        return empty, PartitionIndex(frame.index, on_device, nothing)
    layout = KeyLayout.of([len(part.labels) + (part.missing > 0) for part in values])
    # Keys, as they come, in order of blocks and different ones, and numbers: what is not touched takes none.
    with task_workers(8 * frame.rows * (4 * layout.words + 4)) as workers:
        keys = layout.pack([part.codes for part in parts], workers)
        distinct = distinct_rows(Rows(keys), frame.rows, workers)
        # Copies, for these stay when the rest of that memory goes.
        times, number = distinct.rows.counts.copy(), distinct.number.copy()
        local = EncodedPartition(layout.unpack(distinct.rows.keys), times, values, first_missing, here)
    return local, PartitionIndex(frame.index, on_device, number)


def find_totals(graph: Graph, request: ReadRequest, local: list[Result], of: str = "") -> Result:
    """Add the tasks that find the `PartitionTotals` of a table; local: its partitions, encoded; of: says which, in
    their names.
    """
    return graph.tree(f"totals{of}", partial(add_totals, request.read), graph.each(f"values{of}", totals, local))


def count_values(
    graph: Graph, request: ReadRequest, names: list[Hashable], local: list[Result]
) -> tuple[Result, tuple[Any, Any]]:
    """Add the tasks that count the values of encoded partitions, and weigh them where rows have weights.

    names: of all columns. Returns the `PartitionTotals` of the table, and its `Weights` with the `WeightedCounts` (None
    for both without).
    """
    together = find_totals(graph, request, local)
    if request.weights is None:
        return together, (None, None)
    units = graph.one("units", find_units, request, names, together)
    counts = graph.each("weigh", weigh_partition, request, units, local)
    return together, (units, graph.tree("weights-of-values", add_counts, counts))


def totals(local: EncodedPartition) -> PartitionTotals:
    """Metadata of a partition, to be reduced into the plan."""
    rows = int(local.times.sum())
    return PartitionTotals(rows, len(local.times), local.values, local.first_missing, frozenset([local.device]))


def global_codes(columns: Sequence[Column], local: EncodedPartition) -> list[npt.NDArray[Any]]:
    """The codes of a partition's distinct rows in the columns of the whole table."""
    codes = []
    for column, own, values in zip(columns, local.codes, local.values, strict=True):
        labels = column.labels
        codes.append(recode(own, np.append(number_in(column.name, values.labels, labels), len(labels))))
    return codes


def weigh_partition(request: ReadRequest, weights: Weights, local: EncodedPartition) -> WeightedCounts:
    """Sums of the weights of a partition, in units, by column and code."""
    *codes, times = _with_times(request, weights, local)
    columns = weights.columns[: len(request.used)]
    counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
    with task_workers() as workers:
        add_chunk(columns, codes, times, counts, workers)
    return counts


def _with_times(request: ReadRequest, weights: Weights, local: EncodedPartition) -> list[npt.NDArray[Any]]:
    """The codes of the columns that are used, and at last how many units each distinct row stands for."""
    codes = global_codes(weights.columns, local)
    units = weights.units.times(codes[request.read.index(request.weights)])
    return [*codes[: len(request.used)], units * local.times]


def global_rows(plan: Plan, local: EncodedPartition) -> Rows:
    """The distinct rows of a partition, by the values of the whole table; with weights, counted in units."""
    times = local.times
    if plan.weights is None:
        codes = global_codes([plan.prior_of[name].column for name in plan.request.used], local)
    else:
        *codes, times = _with_times(plan.request, plan.weights, local)
    if plan.population is not None:
        codes = plan.population.columns.codes(codes, SAMPLE)
    with task_workers() as workers:
        return Rows(plan.layout.pack(codes, workers), times)


def rows_as_rows(local: EncodedPartition, rows: Rows) -> Rows:
    """The distinct rows of a partition, which are counted in units of weights, by how often each occurs."""
    return Rows(rows.keys, local.times)


def send(plan: Plan, routes: Routes, source: int, *several: Rows | None) -> pd.DataFrame:
    """The parcels in which the rows of partition `source` travel: keys, and how often each row occurs.

    several: its rows, and others, or None, that travel with them but do not come back.
    """
    parcels: list[Parcel] = []
    with task_workers(sum(parcel_memory(rows) for rows in several if rows is not None)) as workers:
        for number, rows in enumerate(several):
            if rows is None:
                continue
            origin = source + number * routes.parts
            for sent in find_sends(rows, plan, routes, workers):
                parcels += parcel_rows(sent.rows, sent.dest, routes.parts, origin, sent.cut, workers)
    return pack(parcels)


def empty_index(partition: Any) -> PartitionIndex:
    """The index of a partition without rows."""
    frame = open_frame(partition)
    return PartitionIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))


def frame_of(values: npt.NDArray[Any], index: PartitionIndex, columns: pd.Index[Any]) -> Any:
    """Scores (columns, rows) as a frame of the partition's kind, with its index."""
    if not index.on_device:
        return pd.DataFrame(values.T, index=index.labels, columns=columns, copy=False)
    library = frame_library()
    with library.active():
        frame = library.frame({place: library.xp.asarray(column) for place, column in enumerate(values)}, index.labels)
    frame.columns = columns
    return frame
