"""The last task of a partition: scores that came home are given to its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread

from ..errors import GpupifError
from ..rows.partition import Rows, index_type
from ..rows.threads import Workers
from .packed_scores import PackedScores, SentScores, unpack_target
from .parcels import order_by_part, unpack
from .partition import PartitionIndex, frame_of
from .plan import Plan
from .shuffle import Routes, find_sends
from .worker import task_workers

if TYPE_CHECKING:
    import pandas as pd


class Received(NamedTuple):
    """Scores of the rows of a `Send`, by part.

    source_rows: the distinct rows that they are for; place: which of the rows sent, part after part, each of them is.
    """

    targets: list[int]
    parts: list[PackedScores]
    source_rows: npt.NDArray[np.intp]
    place: npt.NDArray[np.intp]


def receive(
    plan: Plan,
    routes: Routes,
    columns: pd.Index[Any],
    weights: Mapping[str, Sequence[float]] | None,
    source: int,
    index: PartitionIndex,
    rows: Rows,
    frame: pd.DataFrame,
) -> dict[str, Any]:
    """By measure, the frame of scores of partition `source`, from the parcels that came back to it.

    columns: the labels of the scored columns. weights: theirs, by fold, where a measure needs them. Raises
    GpupifError where scores are missing.
    """
    job, outputs = plan.job, plan.request.outputs
    shape = (len(job.targets), len(index.number))
    values = [np.empty(shape, measure.type_in(job.dtype)) for measure in outputs]
    sent = SentScores.of(plan.request)
    with task_workers() as workers:
        received = list(_receive_scores(plan, routes, sent, source, rows, frame, workers))
    which: list[int] = []
    places = np.empty(0, np.uint32)
    for target, column in enumerate(job.targets if len(index.number) else []):
        mine = [number for number, one in enumerate(received) if column in one.targets]
        if mine != which:
            # Most targets come by the same sends, one after the other.
            which, places = mine, _places([received[number] for number in mine], len(rows.keys))[index.number]
        groups = unpack_target(sent, [part for number in which for part in received[number].parts], column)
        of_rows = [_looked_up(group.places, places) for group in groups]
        for measure, out in zip(outputs, values, strict=True):
            group, place = sent.place(measure)
            scores: npt.NDArray[Any] = groups[group].items[place].view(measure.type_in("float64"))
            if measure.weighted and weights is not None:
                scores = weights[""][target] * scores
            spread.look_up(scores, of_rows[group], out[target])
    return {measure.name: frame_of(array, index, columns) for measure, array in zip(outputs, values, strict=True)}


def _receive_scores(
    plan: Plan, routes: Routes, sent: SentScores, source: int, rows: Rows, frame: pd.DataFrame, workers: Workers
) -> Iterator[Received]:
    """The scores of each `Send` of a partition."""
    parcels = {(parcel.cut, parcel.source): parcel.words for parcel in unpack(frame, source)}
    for one in find_sends(rows, plan, routes, workers):
        order, stretches = order_by_part(one.dest, routes.parts)
        targets, keys = routes.cuts[one.cut].targets, one.rows.keys[order]
        parts = []
        for part, start, stop in stretches:
            words = parcels.get((one.cut, part), _NOTHING)
            scores = PackedScores(sent, plan.layout, keys[start:stop], targets, words)
            if not scores.complete:
                raise GpupifError(
                    f"partition {source}: the scores of {stop - start:,} rows did not come back from part {part}. This "
                    "is a fault of the cluster or of gpupif; compute it again."
                )
            parts.append(scores)
        place = np.empty(len(order), np.intp)
        place[order] = np.arange(len(order))
        yield Received(targets, parts, one.source_rows, place[one.place])


_NOTHING: npt.NDArray[np.uint64] = np.empty(0, np.uint64)


def _places(received: Sequence[Received], rows: int) -> npt.NDArray[Any]:
    """For each distinct row its place among the rows of several sends together."""
    places = np.empty(rows, index_type(sum(len(one.source_rows) for one in received)))
    before = 0
    for one in received:
        places[one.source_rows] = one.place + before
        before += sum(len(part.keys) for part in one.parts)
    return places


def _looked_up(table: npt.NDArray[np.uint32], index: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    found = np.empty(len(index), np.uint32)
    spread.look_up(table, index, found)
    return found
