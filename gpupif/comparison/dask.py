"""Two tables with aligned rows of which one at least is a Dask frame; both are computed anew by each count."""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd

from ..dask.read import read_files
from ..encoding.encode import encode_column
from ..engines.choose import requested_device
from ..errors import InputError
from ..frames.dask_frame import is_dask
from ..frames.open import open_frame
from ..io.paths import find_input
from ..marginals.base import SetCounts
from ..marginals.dask import DaskCounts
from ..marginals.request import CountRequest
from .aligned import AlignedTables, CompareRequest, rows_differ
from .released import ReleasedColumn
from .versions import counted_as, versions_of


class DaskTables(AlignedTables):
    """Tables of which one at least is a Dask frame; the other is cut as this is, or joined to it by Dask."""

    def __init__(self, before: Any, after: Any, request: CompareRequest) -> None:
        import dask

        first, second = (_open(table, side, request.read(side)) for side, table in enumerate((before, after)))
        with dask.config.set({"dataframe.convert-string": False}):
            self._frame, self.rows, self.lacking = (
                _by_place(first, second, request) if request.row_id is None else _by_id(first, second, request)
            )
        self._columns = len(request.columns)

    def __exit__(self, *error: object) -> None:
        """Nothing is kept."""

    def joined(self) -> SetCounts:
        return DaskCounts(self._frame, CountRequest(), requested_device())

    def versions(self, columns: Sequence[ReleasedColumn]) -> SetCounts:
        import dask

        released = [ColumnNumbers.of(column) for column in columns]
        which = sorted(set(counted_as(columns)))
        meta = pd.DataFrame({place: pd.Series(dtype="int64") for place in range(len(columns) + 2)})
        with dask.config.set({"dataframe.convert-string": False}):
            frame = self._frame.map_partitions(number_versions, released, which, meta=meta, enforce_metadata=False)
        return DaskCounts(frame, CountRequest(), requested_device())


class ColumnNumbers(NamedTuple):
    """Of a column what a worker needs: the rest of `ReleasedColumn` stays."""

    column: ReleasedColumn

    @classmethod
    def of(cls, column: ReleasedColumn) -> ColumnNumbers:
        """Without what was counted, but for how many rows have each value."""
        nothing = np.empty(0, np.int64)
        shared = column.shared._replace(before=nothing, after=nothing)
        joint = column.joint._replace(values=nothing, released=nothing)
        return cls(column._replace(shared=shared, before=nothing, after=nothing, joint=joint))

    def numbers(self, series: pd.Series[Any]) -> npt.NDArray[np.int64]:
        """The number of each value of some rows."""
        own = encode_column(self.column.name, series).on_host()
        found: npt.NDArray[np.int64] = self.column.shared.numbers(own)[own.codes]
        return found


def number_versions(frame: pd.DataFrame, columns: Sequence[ColumnNumbers], versions: Sequence[int]) -> pd.DataFrame:
    """The table of these versions of some rows of the joined frame."""
    half = len(columns)
    if not len(frame):
        return pd.DataFrame({place: np.empty(0, np.int64) for place in range(half + 2)})
    before, after = (
        [one.numbers(frame.iloc[:, start + place]) for place, one in enumerate(columns)] for start in (0, half)
    )
    released = [one.column for one in columns]
    each = [versions_of(before, after, released, version) for version in versions]
    return pd.DataFrame(
        {place: np.concatenate(own).astype(np.int64) for place, own in enumerate(zip(*each, strict=True))}
    )


def _open(table: Any, side: int, names: Sequence[Hashable]) -> Any:
    """A Dask or pandas frame of some columns."""
    if is_dask(table):
        return table[list(names)]
    if isinstance(table, str | os.PathLike):
        argument = ("before", "after")[side]
        return read_files(argument, find_input(table), lambda every: [str(name) for name in names]).frame[list(names)]
    if isinstance(table, pd.DataFrame):
        return table[list(names)].reset_index(drop=True)
    return open_frame(table).arrow().select([str(name) for name in names]).to_pandas(types_mapper=pd.ArrowDtype)


def _by_place(before: Any, after: Any, request: CompareRequest) -> tuple[Any, int, int]:
    """The joined frame, with the partitions of that which is a Dask frame, of both those of the first."""
    sizes = [_sizes(frame) for frame in (before, after)]
    rows, others = (sum(own) for own in sizes)
    if rows != others:
        raise rows_differ(rows, others)
    edges = np.cumsum([0, *(sizes[0] if is_dask(before) else sizes[1])]).tolist()
    parts = [_cut(frame, own, edges) for frame, own in zip((before, after), sizes, strict=True)]
    meta = join_rows(_meta(before), _meta(after), request)
    return _frame(parts, request, meta), rows, 0


def _meta(frame: Any) -> pd.DataFrame:
    return frame._meta if is_dask(frame) else frame.iloc[:0]  # type: ignore[no-any-return]


def _sizes(frame: Any) -> list[int]:
    """Rows of each partition."""
    if not is_dask(frame):
        return [len(frame)]
    found: list[int] = frame.map_partitions(len).compute().tolist()
    return found


def _cut(frame: Any, sizes: Sequence[int], edges: Sequence[int]) -> list[Any]:
    """Frames of the rows between edges, lazy where the frame is."""
    import dask

    if not is_dask(frame):
        return [frame.iloc[start:stop] for start, stop in pairwise(edges)]
    partitions = frame.to_delayed()
    starts = np.cumsum([0, *sizes]).tolist()
    take = dask.delayed(take_rows, pure=False)
    found = []
    for start, stop in pairwise(edges):
        pieces = [
            (part, max(start, first) - first, min(stop, last) - first)
            for part, (first, last) in zip(partitions, pairwise(starts), strict=True)
            if max(start, first) < min(stop, last)
        ] or [(partitions[0], 0, 0)]
        found.append(take([part for part, _, _ in pieces], [where for _, *where in pieces]))
    return found


def take_rows(parts: Sequence[pd.DataFrame], where: Sequence[tuple[int, int]]) -> pd.DataFrame:
    """Some rows of each of some partitions."""
    pieces = [part.iloc[start:stop] for part, (start, stop) in zip(parts, where, strict=True)]
    return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)


def _frame(parts: Sequence[Sequence[Any]], request: CompareRequest, meta: pd.DataFrame) -> Any:
    import dask
    import dask.dataframe as dd

    join = dask.delayed(join_rows, pure=False)
    joined = [join(before, after, request) for before, after in zip(*parts, strict=True)]
    return dd.from_delayed(joined, meta=meta, verify_meta=False)


def join_rows(before: pd.DataFrame, after: pd.DataFrame, request: CompareRequest) -> pd.DataFrame:
    """The columns before and after of the same rows, named by their places."""
    nothing = np.full(len(before), None, object)
    columns = [before[name].reset_index(drop=True) for name in request.columns]
    columns += [
        pd.Series(nothing) if name in request.dropped else after[name].reset_index(drop=True)
        for name in request.columns
    ]
    return pd.DataFrame(dict(enumerate(columns)))


def _by_id(before: Any, after: Any, request: CompareRequest) -> tuple[Any, int, int]:
    """The joined frame, by the names of rows."""
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
            what = f"{missing:,} rows without a value" if missing else f"{known:,} different values in {own:,} rows"
            raise InputError(f"row_id: column {request.row_id!r}: {argument} has {what}. Expected another in each row.")
    if both < others:
        raise InputError(
            f"row_id: column {request.row_id!r}: after has {others - both:,} values that before lacks. Expected rows "
            "of the table before only."
        )
    place = {name: number for number, name in enumerate(request.columns)}
    half = len(place)
    first = frames[0].rename(columns={name: f"{number}" for name, number in place.items()})
    second = frames[1].rename(columns={name: f"{half + number}" for name, number in place.items()})
    merged = dd.merge(first, second, on=request.row_id, how="left")
    meta = join_merged(merged._meta, 2 * half)
    return merged.map_partitions(join_merged, 2 * half, meta=meta, enforce_metadata=False), rows, rows - both


def join_merged(frame: pd.DataFrame, columns: int) -> pd.DataFrame:
    """The columns by their places; those that the table after lacks are missing."""
    nothing = pd.Series(np.full(len(frame), None, object), index=frame.index)
    return pd.DataFrame({place: frame.get(f"{place}", nothing) for place in range(columns)}).reset_index(drop=True)
