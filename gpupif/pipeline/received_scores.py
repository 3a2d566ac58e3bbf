"""The last task of a chunk: the scores that partitions sent back are assigned to the rows of the chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import messages as kernels
from gpupif.kernels import spread

from ..errors import GpupifError
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers
from .chunk_encoding import ChunkIndex, frame_of
from .packed_scores import PackedScores, SentScores, unpack_scored_column
from .partition_routes import Routes, find_sends
from .shuffle_messages import order_by_partition, stretches, unpack
from .table_plan import Plan
from .task_resources import task_workers

if TYPE_CHECKING:
    import pandas as pd


class Received(NamedTuple):
    """The scores of the rows of one `Send`, by partition.

    source_rows: array. The distinct rows of the chunk that the scores are for.
    sent: array, one for each of `source_rows`. The number of the sent row.
    place: array, one for each sent row. The place of its scores, counted over all partitions.
    """

    scored_columns: list[int]
    partitions: list[PackedScores]
    source_rows: npt.NDArray[Any]
    sent: npt.NDArray[Any]
    place: npt.NDArray[Any]


def receive(
    plan: Plan,
    routes: Routes,
    columns: pd.Index[Any],
    weights: Mapping[str, Sequence[float]] | None,
    source: int,
    index: ChunkIndex,
    rows: Rows,
    frame: pd.DataFrame,
) -> dict[str, Any]:
    """Return, by measure, the frame of scores of chunk `source`, from the messages that partitions sent back to it.

    columns: the labels of the scored columns.
    weights: by "" or worst and mean, the weight of each scored column; None if no measure needs weights.
    index: ChunkIndex. The labels of the chunk's rows, and the distinct row of each.

    Raises GpupifError if scores are missing.
    """
    job, outputs = plan.job, plan.request.outputs
    shape = (len(job.scored_columns), len(index.number))
    values = [np.empty(shape, measure.type_in(job.dtype)) for measure in outputs]
    sent = SentScores.from_request(plan.request)
    # Keys of each distinct row in two orders, and a few numbers. Memory that is never touched is not taken.
    memory = 8 * len(rows.keys) * (3 * plan.layout.words + 12) + 8 * len(index.number)
    with task_workers(memory) as workers:
        received = list(_receive_scores(plan, routes, sent, source, rows, frame, workers))
        which: list[int] = []
        index_of = np.empty(0, np.uint32)
        for scored_column, column in enumerate(job.scored_columns if len(index.number) else []):
            mine = [number for number, one in enumerate(received) if column in one.scored_columns]
            if mine != which:
                # Most neighbouring scored columns have the same sends: the places are found once for all of them.
                which, index_of = mine, _index([received[number] for number in mine], len(rows.keys), index, workers)
            partitions = [partition for number in which for partition in received[number].partitions]
            groups = unpack_scored_column(sent, partitions, column, workers.empty)
            for measure, out in zip(outputs, values, strict=True):
                group, place = sent.place(measure)
                items: npt.NDArray[Any] = groups[group].items[place].view(measure.type_in("float64"))
                if measure.weighted and weights is not None:
                    items = weights[""][scored_column] * items
                kernels.spread_items(items.astype(out.dtype), groups[group].places, index_of, out[scored_column])
    return {measure.name: frame_of(array, index, columns) for measure, array in zip(outputs, values, strict=True)}


def _receive_scores(
    plan: Plan, routes: Routes, sent: SentScores, source: int, rows: Rows, frame: pd.DataFrame, workers: Workers
) -> Iterator[Received]:
    """Yield the scores of each `Send` of a chunk."""
    messages = {(message.cut, message.source): message.words for message in unpack(frame, source)}
    for one in find_sends(rows, plan, routes, workers):
        # Only keys: scores were computed where the counts are known.
        blocks = order_by_partition(Rows(one.rows.keys), one.dest, routes.partitions, workers)
        scored_columns = routes.cuts[one.cut].scored_columns
        partitions = []
        for partition, start, stop in stretches(blocks):
            words = messages.get((one.cut, partition), _NOTHING)
            scores = PackedScores(sent, plan.layout, blocks.rows.keys[start:stop], scored_columns, words)
            if not scores.complete:
                raise GpupifError(
                    f"chunk {source}: the scores of {stop - start:,} rows did not return from partition {partition}. "
                    "This is a fault of the cluster or of gpupif; compute it again."
                )
            partitions.append(scores)
        place = workers.empty(len(blocks.order), blocks.order.dtype)
        spread.invert(blocks.order, 0, place)
        yield Received(scored_columns, partitions, one.source_rows, one.place, place)


_NOTHING: npt.NDArray[np.uint64] = np.empty(0, np.uint64)


def _index(received: Sequence[Received], rows: int, index: ChunkIndex, workers: Workers) -> npt.NDArray[Any]:
    """Return for each row of a chunk its place among the scores of several sends.

    rows: int. The number of distinct rows of the chunk.
    """
    kind = index_type(sum(len(one.place) for one in received))
    places, before = workers.empty(rows, kind), 0
    for one in received:
        kernels.place_rows(one.source_rows, one.sent, one.place, before, places)
        before += len(one.place)
    found = workers.empty(len(index.number), kind)
    spread.look_up(places, index.number, found)
    return found
