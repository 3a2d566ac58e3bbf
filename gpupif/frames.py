"""Frames in and out: one adapter a kind, from a frame to its columns and from scores to a frame of the same kind."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from .errors import ColumnTypeError, InputError, OutputError
from .reading import decode, pandas_index_names

if TYPE_CHECKING:
    import numpy.typing as npt

    # Column name to the scores of that column.
    Values = Mapping[Hashable, npt.NDArray[Any]]


@dataclass(frozen=True)
class Frame:
    """A table seen by its columns.

    names: in order. column(i): a pandas Series or an Arrow chunked array. wrap: a frame of the kind that came in, with
    its rows and index, from the scores by column. index: row labels, where the kind has them. arrow: the whole table
    as Arrow data. index_names: columns that hold row labels, scored only where they are asked for.
    """

    kind: str
    names: list[Hashable]
    rows: int
    column: Callable[[int], Any]
    wrap: Callable[[npt.NDArray[Any], Sequence[Hashable]], Any]
    index: pd.Index[Any] | None
    arrow: Callable[[], pa.Table]
    index_names: Sequence[Hashable] = ()


def open_frame(table: Any) -> Frame:
    """View a pandas or Polars DataFrame, a pyarrow Table or anything with __arrow_c_stream__ by its columns.

    Raises InputError for anything else.
    """
    if isinstance(table, pd.DataFrame):
        return _pandas(table)
    if isinstance(table, pa.Table | pa.RecordBatch):
        return _arrow(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))
    if type(table).__module__.partition(".")[0] == "polars":
        return _polars(table)
    if hasattr(table, "__arrow_c_stream__") and not isinstance(table, type):
        # A column, say, exports a stream too.
        with contextlib.suppress(pa.ArrowInvalid, TypeError):
            return _arrow(pa.table(table))
    raise InputError(
        "table: expected a pandas or Polars DataFrame, a pyarrow Table, an object with __arrow_c_stream__, or the path "
        f"of a Parquet, CSV or Feather file; got {type(table).__module__}.{type(table).__qualname__}."
    )


def _pandas(table: pd.DataFrame) -> Frame:
    # Copy-on-write: what happens to the table later does not reach the codes that the scores keep.
    frame = table.copy(deep=False)

    def wrap(values: npt.NDArray[Any], names: Sequence[Hashable]) -> pd.DataFrame:
        positions: list[Hashable] = list(frame.columns)
        columns = frame.columns.take([positions.index(name) for name in names])
        return pd.DataFrame(values.T, index=frame.index, columns=columns, copy=False)

    return Frame(
        "pandas",
        list(frame.columns),
        len(frame),
        lambda i: frame.iloc[:, i],
        wrap,
        frame.index,
        lambda: _pandas_to_arrow(frame),
    )


def _pandas_to_arrow(frame: pd.DataFrame) -> pa.Table:
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.iloc[:, position]
        if isinstance(series.dtype, pd.SparseDtype):
            series = pd.Series(series.to_numpy())
        try:
            columns.append(pa.array(series, from_pandas=True))
        except (pa.ArrowException, TypeError) as error:
            raise OutputError(
                f"output: column {name!r} of the table, of type {series.dtype}, cannot be stored beside the scores "
                f"({error}). Convert it, to text for instance, or write the scores alone."
            ) from error
    return pa.table(columns, names=[str(name) for name in frame.columns])


def _arrow(table: pa.Table) -> Frame:
    return Frame(
        "pyarrow",
        list(table.column_names),
        table.num_rows,
        table.column,
        arrow_table,
        None,
        lambda: decode(table),
        pandas_index_names(table.schema),
    )


def _polars(frame: Any) -> Frame:
    import polars as pl

    if isinstance(frame, pl.LazyFrame):
        frame = frame.collect()
    if not isinstance(frame, pl.DataFrame):
        raise InputError(f"table: expected a Polars DataFrame or LazyFrame, got {type(frame).__qualname__}.")

    def column(i: int) -> pa.ChunkedArray:
        if frame.dtypes[i] == pl.Object:
            raise ColumnTypeError(frame.columns[i], "Polars objects")
        array = frame.get_column(frame.columns[i]).to_arrow(compat_level=pl.CompatLevel.oldest())
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    return Frame(
        "polars",
        list(frame.columns),
        frame.height,
        column,
        lambda values, names: pl.DataFrame(arrow_table(values, names)),
        None,
        lambda: frame.to_arrow(compat_level=pl.CompatLevel.oldest()),
    )


def arrow_table(values: npt.NDArray[Any], names: Sequence[Hashable]) -> pa.Table:
    """Arrow table over the rows of a (columns, rows) array, without a copy."""
    return pa.table({str(name): pa.array(column) for name, column in zip(names, values, strict=True)})
