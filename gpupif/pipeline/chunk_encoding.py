"""Tasks of a chunk: encode and collapse its rows, send them to partitions.

A chunk is a frame of any kind, whose values are numbered here, or a `CodedChunk`, whose rows are codes already.
"""

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
from .partition_routes import Routes, find_sends
from .shuffle_messages import Message, message_memory, pack, rows_to_messages
from .table_plan import (
    ChunkTotals,
    Plan,
    ReadRequest,
    WeightedCounts,
    Weights,
    add_counts,
    add_totals,
    find_units,
)
from .task_graph import Graph, Result
from .task_resources import task_workers, worker_device


class CodedChunk(NamedTuple):
    """Rows of a table that was encoded before.

    columns: Sequence[Column]. The columns of the whole table, without codes of rows.
    codes: list of arrays, one for each column. The codes of the chunk's rows.
    """

    columns: Sequence[Column]
    codes: list[npt.NDArray[Any]]


class EncodedChunk(NamedTuple):
    """Distinct rows of a chunk.

    codes: list of arrays, one for each column. The codes of the distinct rows.
    times: array, one for each distinct row. The multiplicity of the row in the chunk.
    values: list, one for each column. `ValueCounts` of the chunk, in which its codes count; or the `Column` of the
    whole table, if they are codes of that.
    first_missing: list of int. For each column the first row of the chunk with a missing value; -1: none.
    """

    codes: list[npt.NDArray[Any]]
    times: npt.NDArray[Any]
    values: list[ValueCounts | Column]
    first_missing: list[int]
    device: DeviceRequest


class ChunkIndex(NamedTuple):
    """The labels of a chunk's rows, an index of pandas or a GPU; and for each row which distinct row it is."""

    labels: Any
    on_device: bool
    number: npt.NDArray[Any]


def encode_chunk(request: ReadRequest, device: DeviceRequest, chunk: Any) -> tuple[EncodedChunk, ChunkIndex]:
    """Number the values of a chunk's columns, unless they are codes already, and collapse equal rows.

    Raises ColumnTypeError.
    """
    here = worker_device(device)
    if isinstance(chunk, CodedChunk):
        return collapse_chunk(chunk, here)
    frame = open_frame(chunk)
    places = [frame.names.index(name) for name in request.read]
    with frame.active():
        columns = [frame.column(place) if frame.rows else pd.Series(dtype=object) for place in places]
        encoded = [encode_part(name, column) for name, column in zip(request.read, columns, strict=True)]
    first_missing = [
        int(np.argmax(column.codes == len(column.values.labels))) if column.values.missing else -1 for column in encoded
    ]
    values: list[ValueCounts | Column] = [column.values for column in encoded]
    on_device = frame.device_frames() is not None
    if frame.rows == 0:
        nothing = np.empty(0, np.uint32)
        empty = EncodedChunk([nothing] * len(encoded), nothing, values, first_missing, here)
        return empty, ChunkIndex(frame.index, on_device, nothing)
    layout = KeyLayout.of([len(column.values.labels) + (column.values.missing > 0) for column in encoded])
    codes, times, number = _distinct_codes([column.codes for column in encoded], layout)
    return EncodedChunk(codes, times, values, first_missing, here), ChunkIndex(frame.index, on_device, number)


def collapse_chunk(chunk: CodedChunk, device: DeviceRequest) -> tuple[EncodedChunk, ChunkIndex]:
    """Collapse the equal rows of a chunk of codes; missing values were refused, if need be, when it was encoded."""
    layout = KeyLayout.of([column.cardinality for column in chunk.columns])
    codes, times, number = _distinct_codes(chunk.codes, layout)
    local = EncodedChunk(codes, times, list(chunk.columns), [-1] * len(codes), device)
    return local, ChunkIndex(None, False, number)


def _distinct_codes(
    codes: Sequence[npt.NDArray[Any]], layout: KeyLayout
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the codes of the distinct rows, the multiplicity of each, and for each row which distinct row it is."""
    rows = len(codes[0])
    # Keys as they come, in order of blocks, and distinct ones, and numbers: memory that is not touched takes none.
    with task_workers(8 * rows * (4 * layout.words + 4)) as workers:
        distinct = distinct_rows(Rows(layout.pack(codes, workers)), rows, workers)
        # Copies, because they stay when the rest of that memory goes.
        times, number = distinct.rows.counts.copy(), distinct.number.copy()
        return layout.unpack(distinct.rows.keys), times, number


def find_totals(graph: Graph, request: ReadRequest, local: list[Result], of: str = "") -> Result:
    """Add the tasks that find the `ChunkTotals` of a table; local: its chunks, encoded; of: says which, in
    their names.
    """
    return graph.tree(f"totals{of}", partial(add_totals, request.read), graph.each(f"values{of}", totals, local))


def count_values(
    graph: Graph, request: ReadRequest, names: list[Hashable], local: list[Result]
) -> tuple[Result, tuple[Any, Any]]:
    """Add the tasks that count the values of encoded chunks, and weigh them where rows have weights.

    names: of all columns. Returns the `ChunkTotals` of the table, and its `Weights` with the `WeightedCounts` (None
    for both without).
    """
    together = find_totals(graph, request, local)
    if request.weights is None:
        return together, (None, None)
    units = graph.one("units", find_units, request, names, together)
    counts = graph.each("weigh", weigh_chunk, request, units, local)
    return together, (units, graph.tree("weights-of-values", add_counts, counts))


def totals(local: EncodedChunk) -> ChunkTotals:
    """Metadata of a chunk, to be reduced into the plan."""
    rows = int(local.times.sum())
    return ChunkTotals(rows, len(local.times), local.values, local.first_missing, frozenset([local.device]))


def global_codes(columns: Sequence[Column], local: EncodedChunk) -> list[npt.NDArray[Any]]:
    """The codes of a chunk's distinct rows in the columns of the whole table."""
    codes = []
    for column, own, values in zip(columns, local.codes, local.values, strict=True):
        if isinstance(values, Column):
            codes.append(own)
            continue
        labels = column.labels
        codes.append(recode(own, np.append(number_in(column.name, values.labels, labels), len(labels))))
    return codes


def weigh_chunk(request: ReadRequest, weights: Weights, local: EncodedChunk) -> WeightedCounts:
    """Sums of the weights of a chunk, in units, by column and code."""
    *codes, times = _with_times(request, weights, local)
    columns = weights.columns[: len(request.used)]
    counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
    with task_workers() as workers:
        add_chunk(columns, codes, times, counts, workers)
    return counts


def _with_times(request: ReadRequest, weights: Weights, local: EncodedChunk) -> list[npt.NDArray[Any]]:
    """The codes of the columns that are used, and at last how many units each distinct row stands for."""
    codes = global_codes(weights.columns, local)
    units = weights.units.times(codes[request.read.index(request.weights)])
    return [*codes[: len(request.used)], units * local.times]


def global_rows(plan: Plan, local: EncodedChunk) -> Rows:
    """The distinct rows of a chunk, by the values of the whole table; with weights, counted in units."""
    times = local.times
    if plan.weights is None:
        codes = global_codes([plan.prior_of[name].column for name in plan.request.used], local)
    else:
        *codes, times = _with_times(plan.request, plan.weights, local)
    if plan.population is not None:
        codes = plan.population.columns.codes(codes, SAMPLE)
    with task_workers() as workers:
        return Rows(plan.layout.pack(codes, workers), times)


def rows_as_rows(local: EncodedChunk, rows: Rows) -> Rows:
    """The distinct rows of a chunk, which are counted in units of weights, by how often each occurs."""
    return Rows(rows.keys, local.times)


def send(plan: Plan, routes: Routes, source: int, *several: Rows | None) -> pd.DataFrame:
    """The messages in which the rows of chunk `source` travel: keys, and how often each row occurs.

    several: its rows, and others, or None, that travel with them but do not come back.
    """
    messages: list[Message] = []
    with task_workers(sum(message_memory(rows) for rows in several if rows is not None)) as workers:
        for number, rows in enumerate(several):
            if rows is None:
                continue
            origin = source + number * routes.senders
            for sent in find_sends(rows, plan, routes, workers):
                messages += rows_to_messages(sent.rows, sent.dest, routes.partitions, origin, sent.cut, workers)
    return pack(messages)


def empty_index(chunk: Any) -> ChunkIndex:
    """The index of a chunk without rows."""
    frame = open_frame(chunk)
    return ChunkIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))


def frame_of(values: npt.NDArray[Any], index: ChunkIndex, columns: pd.Index[Any]) -> Any:
    """Scores (columns, rows) as a frame of the chunk's kind, with its index."""
    if not index.on_device:
        return pd.DataFrame(values.T, index=index.labels, columns=columns, copy=False)
    library = frame_library()
    with library.active():
        frame = library.frame({place: library.xp.asarray(column) for place, column in enumerate(values)}, index.labels)
    frame.columns = columns
    return frame
