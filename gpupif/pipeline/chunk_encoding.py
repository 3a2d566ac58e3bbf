"""Tasks of a chunk: encode its values, collapse equal rows, and send the distinct rows to partitions.

A chunk is a frame of any kind, whose values are encoded here, or a `CodedChunk`, whose rows are codes already. On Dask
a chunk is a partition of the Dask frame.
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
from .shuffle_messages import (
    Message,
    blocks_to_messages,
    message_memory,
    only_counts,
    order_by_partition,
    pack,
)
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
    """The distinct rows of a chunk.

    codes: list of arrays, one for each column. The codes of the distinct rows.
    multiplicities: array, one for each distinct row. The multiplicity of the row in the chunk.
    values: list, one for each column. The `ValueCounts` of the chunk if `codes` count within the chunk; the `Column` of
    the whole table if `codes` are its codes.
    first_missing: list of int, one for each column. The first row of the chunk with a missing value; -1 if there is
    none.
    device: DeviceRequest. The device that the worker of this chunk would score on.
    """

    codes: list[npt.NDArray[Any]]
    multiplicities: npt.NDArray[Any]
    values: list[ValueCounts | Column]
    first_missing: list[int]
    device: DeviceRequest


class ChunkIndex(NamedTuple):
    """The labels of a chunk's rows, and the distinct row that each row is.

    labels: an index of pandas or of a GPU; None for a `CodedChunk`.
    on_device: bool. Whether the chunk is on a GPU.
    number: array, one for each row. The number of the distinct row.
    """

    labels: Any
    on_device: bool
    number: npt.NDArray[Any]


def encode_chunk(request: ReadRequest, device: DeviceRequest, chunk: Any) -> tuple[EncodedChunk, ChunkIndex]:
    """Encode the values of a chunk's columns, unless they are codes already, and collapse equal rows.

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
    layout = KeyLayout.from_cardinalities(
        [len(column.values.labels) + (column.values.missing > 0) for column in encoded]
    )
    codes, multiplicities, number = _distinct_codes([column.codes for column in encoded], layout)
    return EncodedChunk(codes, multiplicities, values, first_missing, here), ChunkIndex(frame.index, on_device, number)


def collapse_chunk(chunk: CodedChunk, device: DeviceRequest) -> tuple[EncodedChunk, ChunkIndex]:
    """Collapse the equal rows of a chunk of codes.

    Missing values are not refused here: the encoder of the table did that, if requested.
    """
    layout = KeyLayout.from_cardinalities([column.cardinality for column in chunk.columns])
    codes, multiplicities, number = _distinct_codes(chunk.codes, layout)
    local = EncodedChunk(codes, multiplicities, list(chunk.columns), [-1] * len(codes), device)
    return local, ChunkIndex(None, False, number)


def _distinct_codes(
    codes: Sequence[npt.NDArray[Any]], layout: KeyLayout
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the codes of the distinct rows, the multiplicity of each, and for each row its distinct row."""
    rows = len(codes[0])
    # Keys in the order of the rows, in order of blocks, and distinct keys; row numbers. Memory that is never touched is
    # not taken.
    with task_workers(8 * rows * (4 * layout.words + 4)) as workers:
        distinct = distinct_rows(Rows(layout.pack(codes, workers)), rows, workers)
        # Copies outlive the working memory of the workers.
        multiplicities, number = distinct.rows.counts.copy(), distinct.number.copy()
        return layout.unpack(distinct.rows.keys), multiplicities, number


def find_totals(graph: Graph, request: ReadRequest, local: list[Result], of: str = "") -> Result:
    """Add the tasks that find the `ChunkTotals` of a table; return their result.

    local: the encoded chunks of the table.
    of: str. A suffix of the tasks' names, which names the table.
    """
    return graph.tree(f"totals{of}", partial(add_totals, request.read), graph.each(f"values{of}", totals, local))


def count_values(
    graph: Graph, request: ReadRequest, names: list[Hashable], local: list[Result]
) -> tuple[Result, tuple[Any, Any]]:
    """Add the tasks that count the values of encoded chunks, and weigh them if rows have weights.

    names: list. The names of all columns of the table.
    Returns the `ChunkTotals` of the table, and its `Weights` with the `WeightedCounts` (None for both without weights).
    """
    together = find_totals(graph, request, local)
    if request.weights is None:
        return together, (None, None)
    units = graph.one("units", find_units, request, names, together)
    counts = graph.each("weigh", weigh_chunk, request, units, local)
    return together, (units, graph.tree("weights-of-values", add_counts, counts))


def totals(local: EncodedChunk) -> ChunkTotals:
    """Return the metadata of a chunk, to be combined into the plan."""
    rows = int(local.multiplicities.sum())
    return ChunkTotals(rows, len(local.multiplicities), local.values, local.first_missing, frozenset([local.device]))


def global_codes(columns: Sequence[Column], local: EncodedChunk) -> list[npt.NDArray[Any]]:
    """Return the codes of a chunk's distinct rows as the columns of the whole table have them."""
    codes = []
    for column, own, values in zip(columns, local.codes, local.values, strict=True):
        if isinstance(values, Column):
            codes.append(own)
            continue
        labels = column.labels
        codes.append(recode(own, np.append(number_in(column.name, values.labels, labels), len(labels))))
    return codes


def weigh_chunk(request: ReadRequest, weights: Weights, local: EncodedChunk) -> WeightedCounts:
    """Return the sums of the weights of a chunk, in units, by column and code."""
    *codes, multiplicities = _with_multiplicities(request, weights, local)
    columns = weights.columns[: len(request.used)]
    counts = {column.name: np.zeros(column.cardinality, np.int64) for column in columns}
    with task_workers() as workers:
        add_chunk(columns, codes, multiplicities, counts, workers)
    return counts


def _with_multiplicities(request: ReadRequest, weights: Weights, local: EncodedChunk) -> list[npt.NDArray[Any]]:
    """Return the codes of the used columns, and last the weight of all rows equal to each distinct row.

    The weight is in units.
    """
    codes = global_codes(weights.columns, local)
    units = weights.units.multiplicities(codes[request.read.index(request.weights)])
    return [*codes[: len(request.used)], units * local.multiplicities]


def global_rows(plan: Plan, local: EncodedChunk) -> Rows:
    """Return the distinct rows of a chunk as keys of the whole table, with the count of each.

    A row counts as often as it occurs, or by its weight in units if rows have weights.
    """
    multiplicities = local.multiplicities
    if plan.weights is None:
        codes = global_codes([plan.prior_of[name].column for name in plan.request.used], local)
    else:
        *codes, multiplicities = _with_multiplicities(plan.request, plan.weights, local)
    if plan.population is not None:
        codes = plan.population.columns.codes(codes, SAMPLE)
    with task_workers() as workers:
        return Rows(plan.layout.pack(codes, workers), multiplicities)


def rows_as_rows(local: EncodedChunk, rows: Rows) -> Rows:
    """Return the rows that `global_rows` counts in units of weight, with their multiplicities in place of units."""
    return Rows(rows.keys, local.multiplicities)


def send(plan: Plan, routes: Routes, source: int, *row_sets: Rows | None) -> pd.DataFrame:
    """Return the messages in which chunk `source` sends its rows to partitions: keys, and how often each row counts.

    row_sets: the rows of the chunk, then further rows or None. Partitions send scores back for the first set only. A
    set with the same array of keys as the set before is sent without keys.
    """
    messages: list[Message] = []
    keys: Any = None
    with task_workers(sum(message_memory(rows) for rows in row_sets if rows is not None)) as workers:
        for number, rows in enumerate(row_sets):
            if rows is None:
                continue
            origin = source + number * routes.senders
            again, keys = rows.keys is keys, rows.keys
            for sent in find_sends(rows, plan, routes, workers):
                blocks = order_by_partition(sent.rows, sent.dest, routes.partitions, workers)
                if again:
                    blocks = only_counts(blocks, sent.rows.counts)
                messages += blocks_to_messages(blocks, origin, sent.cut, workers)
    return pack(messages)


def empty_index(chunk: Any) -> ChunkIndex:
    """Return the index of a chunk without rows."""
    frame = open_frame(chunk)
    return ChunkIndex(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))


def frame_of(values: npt.NDArray[Any], index: ChunkIndex, columns: pd.Index[Any]) -> Any:
    """Return scores as a frame of the chunk's kind, with the chunk's index.

    values: array (columns, rows).
    """
    if not index.on_device:
        return pd.DataFrame(values.T, index=index.labels, columns=columns, copy=False)
    library = frame_library()
    with library.active():
        frame = library.frame({place: library.xp.asarray(column) for place, column in enumerate(values)}, index.labels)
    frame.columns = columns
    return frame
