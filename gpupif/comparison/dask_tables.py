"""Two tables with aligned rows, of which at least one is a Dask frame. Each count computes both tables anew."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..dask.parquet_partitions import read_files
from ..encoding.encode import encode_column
from ..engines.choose import requested_device
from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..marginals.dask import DaskCounts
from ..marginals.request import CountRequest
from ..marginals.set_counts import SetCounts
from .aligned_tables import AlignedTables, CompareRequest, FindKept, kept_rows
from .released_values import ReleasedColumn
from .row_versions import VersionLayout

# The pandas type that holds the values of a NumPy type and missing values, by the kind of the NumPy type.
NULLABLE = {"i": "Int64", "u": "UInt64", "b": "boolean"}


class DaskTables(AlignedTables):
    """Two tables, of which at least one is a Dask frame.

    By order, rows are aligned in the partitions of the first Dask frame. By `row_id`, Dask merges both tables.
    """

    def __init__(self, before: Any, after: Any, request: CompareRequest, find_kept: FindKept | None) -> None:
        import dask

        first, second = (_open(table, side, request.read(side)) for side, table in enumerate((before, after)))
        with dask.config.set({"dataframe.convert-string": False}):
            self._frame, self.rows, self.lacking = (
                _by_place(first, second, request, find_kept)
                if request.row_id is None
                else _by_id(first, second, request)
            )
        self._columns = len(request.columns)

    def __exit__(self, *error: object) -> None:
        """Close nothing: Dask holds the data."""

    def joined(self) -> SetCounts:
        return DaskCounts(self._frame, CountRequest(), requested_device())

    def versions(self, layout: VersionLayout) -> SetCounts:
        import dask

        sent = layout._replace(columns=[_for_workers(column) for column in layout.columns])
        meta = pd.DataFrame({place: pd.Series(dtype="int64") for place in range(layout.width)})
        with dask.config.set({"dataframe.convert-string": False}):
            frame = self._frame.map_partitions(number_versions, sent, meta=meta, enforce_metadata=False)
        return DaskCounts(frame, CountRequest(), requested_device())


def _for_workers(column: ReleasedColumn) -> ReleasedColumn:
    """Return the column with only the fields that a worker needs to number the values of rows, to send less."""
    nothing = np.empty(0, np.int64)
    shared = column.shared._replace(before=nothing, after=nothing)
    joint = column.joint._replace(values=nothing, released=nothing, away=nothing, hidden=nothing)
    return column._replace(shared=shared, before=nothing, after=nothing, joint=joint)


def number_versions(frame: pd.DataFrame, layout: VersionLayout) -> pd.DataFrame:
    """Return the table of versions of some rows of the joined frame."""
    if not len(frame):
        return pd.DataFrame({place: np.empty(0, np.int64) for place in range(layout.width)})
    released = [*layout.columns, *layout.columns]
    encoded = [encode_column(own.name, frame.iloc[:, place]).on_host() for place, own in enumerate(released)]
    numbers = [own.shared.numbers(column) for own, column in zip(released, encoded, strict=True)]
    before, after = layout.numbers([column.codes for column in encoded], numbers)
    there = frame.iloc[:, len(released)].to_numpy() == 1
    each = [layout.rows(before, after, there, version) for version in layout.versions]
    return pd.DataFrame(
        {place: np.concatenate(own).astype(np.int64) for place, own in enumerate(zip(*each, strict=True))}
    )


def _open(table: Any, side: int, names: Sequence[Hashable]) -> Any:
    """Return some columns of a table as a Dask or pandas frame. side: 0 for the table before, 1 for the table after."""
    if is_dask(table):
        return table[list(names)]
    if isinstance(table, str | os.PathLike):
        argument = ("before", "after")[side]
        return read_files(argument, find_input(table), lambda every: [str(name) for name in names]).frame[list(names)]
    if isinstance(table, pd.DataFrame):
        return table[list(names)].reset_index(drop=True)
    return open_frame(table).arrow().select([str(name) for name in names]).to_pandas(types_mapper=pd.ArrowDtype)


def _by_place(before: Any, after: Any, request: CompareRequest, find_kept: FindKept | None) -> tuple[Any, int, int]:
    """Join the frames by the order of rows, in the partitions of the first Dask frame.

    Returns the joined frame, its number of rows, and how many rows the frame after lacks.
    """
    sizes = [_sizes(frame) for frame in (before, after)]
    rows, others = (sum(own) for own in sizes)
    kept = kept_rows(rows, others, find_kept)
    mask = np.ones(rows, bool) if kept is None else kept
    # For each row before, the number of rows of the table after that belong to earlier rows.
    ahead = np.cumsum([0, *mask])
    edges = np.cumsum([0, *(sizes[0] if is_dask(before) else sizes[1])])
    first = edges if is_dask(before) else np.searchsorted(ahead, edges)
    first[-1] = rows
    starts = first.tolist(), ahead[first].tolist()
    chunks = [_cut(frame, own, each) for frame, own, each in zip((before, after), sizes, starts, strict=True)]
    masks = [mask[start:stop] for start, stop in pairwise(starts[0])]
    meta = join_rows(_meta(before), _meta(after), request, np.ones(0, bool))
    return _frame([*chunks, masks], request, meta), rows, rows - others


def _meta(frame: Any) -> pd.DataFrame:
    return frame._meta if is_dask(frame) else frame.iloc[:0]  # type: ignore[no-any-return]


def _sizes(frame: Any) -> list[int]:
    """Return how many rows each partition has; a frame in memory is one partition."""
    if not is_dask(frame):
        return [len(frame)]
    sizes: list[int] = frame.map_partitions(len).compute().tolist()
    return sizes


def _cut(frame: Any, sizes: Sequence[int], edges: Sequence[int]) -> list[Any]:
    """Return frames of the rows between edges, lazy if the frame is lazy. sizes: the rows of each partition."""
    import dask

    if not is_dask(frame):
        return [frame.iloc[start:stop] for start, stop in pairwise(edges)]
    partitions = frame.to_delayed()
    starts = np.cumsum([0, *sizes]).tolist()
    take = dask.delayed(take_rows, pure=False)
    taken = []
    for start, stop in pairwise(edges):
        overlaps = [
            (partition, max(start, first) - first, min(stop, last) - first)
            for partition, (first, last) in zip(partitions, pairwise(starts), strict=True)
            if max(start, first) < min(stop, last)
        ] or [(partitions[0], 0, 0)]
        taken.append(take([partition for partition, _, _ in overlaps], [span for _, *span in overlaps]))
    return taken


def take_rows(partitions: Sequence[pd.DataFrame], spans: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """Return rows of some partitions as one frame. spans: by partition its first row, and the row after its last."""
    chunks = [partition.iloc[start:stop] for partition, (start, stop) in zip(partitions, spans, strict=True)]
    return chunks[0] if len(chunks) == 1 else pd.concat(chunks, ignore_index=True)


def _frame(chunks: Sequence[Sequence[Any]], request: CompareRequest, meta: pd.DataFrame) -> Any:
    """Return the joined frame. chunks: three lists, the rows before, the rows after, and the masks of `join_rows`."""
    import dask
    import dask.dataframe as dd

    join = dask.delayed(join_rows, pure=False)
    joined = [join(before, after, request, mask) for before, after, mask in zip(*chunks, strict=True)]
    return dd.from_delayed(joined, meta=meta, verify_meta=False)


def join_rows(
    before: pd.DataFrame, after: pd.DataFrame, request: CompareRequest, kept: npt.NDArray[np.bool_]
) -> pd.DataFrame:
    """Return the columns before, the columns after, and whether the table after has the row, named by their places.

    kept: the mask of the rows before that the table after has; the frame `after` has only these rows, in order.
    """
    nothing = np.full(len(before), None, object)
    places = np.flatnonzero(kept)
    after = after.set_axis(places, axis=0)
    if len(places) < len(kept):
        # Nullable types keep whole numbers whole beside missing values; floats would round large ones.
        plain = {name: kind for name, kind in after.dtypes.items() if isinstance(kind, np.dtype)}
        kinds = {name: NULLABLE[kind.kind] for name, kind in plain.items() if kind.kind in NULLABLE}
        after = after.astype(kinds).reindex(np.arange(len(kept)))
    columns = [before[name].reset_index(drop=True) for name in request.columns]
    columns += [
        pd.Series(nothing) if name in request.dropped else after[name].reset_index(drop=True)
        for name in request.columns
    ]
    return pd.DataFrame(dict(enumerate([*columns, pd.Series(kept.astype(np.int64))])))


def _by_id(before: Any, after: Any, request: CompareRequest) -> tuple[Any, int, int]:
    """Join the frames by the names of rows.

    Returns the joined frame, its number of rows, and how many rows the frame after lacks. Raises InputError for names
    that are missing, repeat, or are only in the frame after.
    """
    import dask
    import dask.dataframe as dd

    frames = [frame if is_dask(frame) else dd.from_pandas(frame, npartitions=1) for frame in (before, after)]
    asked = []
    for frame in frames:
        ids = frame[request.row_id]
        asked += [ids.shape[0], ids.isna().sum(), ids.nunique()]
    pairs = dd.merge(*(frame[[request.row_id]] for frame in frames), on=request.row_id, how="inner")
    rows, none, different, others, no_others, different_others, both = dask.compute(*asked, pairs.shape[0])
    for argument, missing, known, own in (
        ("before", none, different, rows),
        ("after", no_others, different_others, others),
    ):
        if missing or known < own:
            fault = f"{missing:,} rows without a value" if missing else f"{known:,} different values in {own:,} rows"
            raise InputError(
                f"row_id: column {request.row_id!r}: {argument} has {fault}. Expected a different value in each row."
            )
    if both < others:
        raise InputError(
            f"row_id: column {request.row_id!r}: after has {others - both:,} values that before lacks. Expected rows "
            "of the table before only."
        )
    place = {name: number for number, name in enumerate(request.columns)}
    half = len(place)
    first = frames[0].rename(columns={name: f"{number}" for name, number in place.items()})
    second = frames[1].rename(columns={name: f"{half + number}" for name, number in place.items()})
    second = second.assign(**{f"{2 * half}": 1})
    merged = dd.merge(first, second, on=request.row_id, how="left")
    meta = join_merged(merged._meta, 2 * half)
    return merged.map_partitions(join_merged, 2 * half, meta=meta, enforce_metadata=False), rows, rows - both


def join_merged(frame: pd.DataFrame, columns: int) -> pd.DataFrame:
    """Return the columns of a merged frame in the order of `join_rows`. Dropped columns have only missing values.

    columns: the number of columns before and after together.
    """
    nothing = pd.Series(np.full(len(frame), None, object), index=frame.index)
    joined = {place: frame.get(f"{place}", nothing) for place in range(columns)}
    joined[columns] = frame[f"{columns}"].notna().astype("int64")
    return pd.DataFrame(joined).reset_index(drop=True)
