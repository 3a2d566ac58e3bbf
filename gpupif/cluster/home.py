"""What happens to a partition of the table where it lies: encoded, equal rows collapsed, sent, and its scores put together."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from gpupif.kernels import spread

from ..engines.cuda_library import frame_library
from ..engines.distinct import distinct_rows
from ..engines.host_run import pack_keys
from ..engines.partition import Rows
from ..engines.passes import source_of
from ..errors import GpupifError
from ..frames import open_frame
from ..keys import KeyLayout
from ..labels import code_type
from ..merge import Values, encode_part, number_in, recode
from .parcels import Parcel, pack, unpack
from .plan import Plan, Totals
from .routes import Routes, Trip, find_trips
from .workers import device_here, task_workers

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..engines.workers import Workers
    from ..job import Question


class Local(NamedTuple):
    """Distinct rows of a partition: codes by column, that count in `values`, and how often each row occurs there."""

    codes: list[npt.NDArray[Any]]
    times: npt.NDArray[Any]
    values: list[Values]
    first_missing: list[int]
    device: str


class Back(NamedTuple):
    """What a partition waits for its scores with: its index, of pandas or a GPU, and for each row its distinct row."""

    index: Any
    on_device: bool
    number: npt.NDArray[Any]


def encode(question: Question, device: str, partition: Any) -> tuple[Local, Back]:
    """Number the values of a partition's columns by themselves and collapse equal rows; raises ColumnTypeError."""
    frame = open_frame(partition)
    here = device_here(device)
    places = [frame.names.index(name) for name in question.used]
    with frame.active():
        columns = [frame.column(place) if frame.rows else pd.Series(dtype=object) for place in places]
        parts = [encode_part(name, column) for name, column in zip(question.used, columns, strict=True)]
    first_missing = [
        int(np.argmax(part.codes == len(part.values.labels))) if part.values.missing else -1 for part in parts
    ]
    values = [part.values for part in parts]
    on_device = frame.device_frames() is not None
    if frame.rows == 0:
        nothing = np.empty(0, np.uint32)
        return Local([nothing] * len(parts), nothing, values, first_missing, here), Back(frame.index, on_device, nothing)
    layout = KeyLayout.of([len(part.labels) + (part.missing > 0) for part in values])
    with task_workers() as workers:
        keys = pack_keys([part.codes for part in parts], layout, workers)
        distinct = distinct_rows(Rows(keys), frame.rows, workers)
    local = Local(unpack_keys(distinct.rows.keys, layout), distinct.rows.counts, values, first_missing, here)
    return local, Back(frame.index, on_device, distinct.number)


def unpack_keys(keys: npt.NDArray[np.uint64], layout: KeyLayout) -> list[npt.NDArray[Any]]:
    """The codes of each column of the layout, from row keys (rows, words)."""
    codes = []
    for column in range(len(layout.fields)):
        field = layout.fields[column]
        values = (keys[:, field.word] >> np.uint64(field.shift)) & np.uint64(field.mask)
        codes.append(values.astype(code_type(field.mask + 1)))
    return codes


def totals(local: Local) -> Totals:
    """What of a partition the whole table has to know."""
    rows = int(local.times.sum())
    return Totals(rows, len(local.times), local.values, local.first_missing, frozenset([local.device]))


def global_rows(plan: Plan, local: Local) -> Rows:
    """The distinct rows of a partition, by the values of the whole table."""
    codes = []
    for name, own, values in zip(plan.question.used, local.codes, local.values, strict=True):
        labels = plan.prior_of[name].column.labels
        codes.append(recode(own, np.append(number_in(name, values.labels, labels), len(labels))))
    with task_workers() as workers:
        return Rows(pack_keys(codes, plan.layout, workers), local.times)


def send(plan: Plan, routes: Routes, source: int, rows: Rows) -> pd.DataFrame:
    """The parcels in which the rows of partition `source` travel: keys, and how often each row occurs."""
    parcels = []
    with task_workers() as workers:
        for trip in find_trips(rows, plan, routes, workers):
            items = np.column_stack([trip.sent.keys, trip.sent.counts.astype(np.uint64)])
            parcels += [Parcel(part, source, trip.cut, items[chosen]) for part, chosen in _by_part(trip, routes)]
    return pack(parcels)


def _by_part(trip: Trip, routes: Routes) -> list[tuple[int, npt.NDArray[np.intp]]]:
    """For each part that rows travel to, which rows, in their order."""
    narrow = trip.dest.astype(np.uint16 if routes.parts <= 2**16 else np.uint32)
    order = np.argsort(narrow, kind="stable")
    edges = np.searchsorted(narrow[order], np.arange(routes.parts + 1))
    parts = np.flatnonzero(np.diff(edges)).tolist()
    return [(part, order[edges[part] : edges[part + 1]]) for part in parts]


def receive(
    plan: Plan,
    routes: Routes,
    columns: pd.Index[Any],
    weights: Mapping[Hashable, float] | None,
    source: int,
    back: Back,
    rows: Rows,
    frame: pd.DataFrame,
) -> dict[str, Any]:
    """By measure, the frame of scores of partition `source`, from the parcels that came back to it.

    columns: the labels of the scored columns. weights: where a measure needs them.
    """
    job = plan.job
    sources = list(dict.fromkeys(source_of(measure) for measure in job.measures))
    with task_workers() as workers:
        scores = _distinct_scores(plan, routes, sources, source, rows, frame, workers)
        frames = {}
        for measure in job.measures:
            values = np.empty((len(job.targets), len(back.number)), "int64" if measure.integer else job.dtype)
            for name, target, out in zip(plan.question.targets, job.targets, values, strict=True):
                column = scores[sources.index(source_of(measure)), job.targets.index(target)]
                column = column if measure.integer else column.view(np.float64)
                column = weights[name] * column if measure.weighted and weights is not None else column
                workers.run(
                    lambda a, b, column=column, out=out: spread.look_up(column, back.number[a:b], out[a:b]),
                    workers.ranges(len(out)),
                )
            frames[measure.name] = frame_of(values, back, columns)
    return frames


def _distinct_scores(
    plan: Plan,
    routes: Routes,
    sources: Sequence[str],
    source: int,
    rows: Rows,
    frame: pd.DataFrame,
    workers: Workers,
) -> npt.NDArray[np.int64]:
    """Scores (measures, targets, distinct rows) of a partition, as 64 bits each; raises GpupifError where some lack."""
    targets = plan.job.targets
    parcels = {(parcel.cut, parcel.source): parcel.items.view(np.int64) for parcel in unpack(frame, source)}
    scores = np.empty((len(sources), len(targets), len(rows.keys)), np.int64)
    for trip in find_trips(rows, plan, routes, workers):
        places = [targets.index(target) for target in routes.cuts[trip.cut].targets]
        sent = np.empty((len(sources), len(places), len(trip.dest)), np.int64)
        for part, chosen in _by_part(trip, routes):
            items = parcels.pop((trip.cut, part), None)
            if items is None or items.size != len(sources) * len(places) * len(chosen):
                raise GpupifError(
                    f"partition {source}: the scores of {len(chosen):,} rows did not come back from part {part}. This "
                    "is a fault of the cluster or of gpupif; compute it again."
                )
            sent[:, :, chosen] = items.reshape(len(sources), len(places), len(chosen))
        for measure, several in enumerate(sent):
            for place, column in zip(places, several, strict=True):
                scores[measure, place, trip.home] = column[trip.place]
    return scores


def nobody(partition: Any) -> Back:
    """What a partition without rows waits with."""
    frame = open_frame(partition)
    return Back(frame.index, frame.device_frames() is not None, np.empty(0, np.uint32))


def frame_of(values: npt.NDArray[Any], back: Back, columns: pd.Index[Any]) -> Any:
    """Scores (columns, rows) as a frame of the partition's kind, with its index."""
    if not back.on_device:
        return pd.DataFrame(values.T, index=back.index, columns=columns, copy=False)
    library = frame_library()
    with library.active():
        frame = library.frame({place: library.xp.asarray(column) for place, column in enumerate(values)}, back.index)
    frame.columns = columns
    return frame
