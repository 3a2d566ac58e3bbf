"""Frames in and out: one adapter a kind, from a frame to its columns and from scores to a frame of the same kind."""

from __future__ import annotations

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Container, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa

from ..encoding.encode import check_arrow
from ..errors import ColumnTypeError, InputError, OutputError, warn
from ..gpu import cudf_frames as cuda_frames
from ..gpu.open import frame_library
from ..io.common import Pick, decode, pandas_index_names
from ..io.formats import CSV, PARQUET
from ..io.paths import find_input
from ..io.read import read_table
from ..utils.arrays import on_host

if TYPE_CHECKING:
    from pathlib import Path

    import numpy.typing as npt

    from ..gpu.base import FrameLibrary


class Frame(ABC):
    """A table seen by its columns.

    kind: "pandas", "polars", "pyarrow", "cudf" or "file". names: of the columns, in order. index: row labels, where
    the kind has them. index_names: columns that hold row labels, scored only where they are asked for. opened_in:
    seconds that opening a file took; reads_late: its columns are read only when they are encoded.
    """

    kind: str
    names: list[Hashable]
    rows: int
    index: Any = None
    index_names: Sequence[Hashable] = ()
    opened_in: float = 0.0
    reads_late: bool = False

    @abstractmethod
    def column(self, position: int) -> Any:
        """A column as a pandas Series, an Arrow chunked array or a `DeviceColumn`."""

    @abstractmethod
    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """A frame of the kind that came in, with its rows and index, of scores (columns, rows) of host or device."""

    def orders(self) -> dict[Hashable, list[Any]]:
        """Of ordered categories, by column, all values in order; a file does not keep them."""
        return {}

    def series(self, values: Any, name: str) -> Any:
        """One value a row as a series of the kind that came in, with its index."""
        return pd.Series(on_host(values), index=self.index, name=name)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """A frame of the kind that came in, with its rows and index, of values by name."""
        return pd.DataFrame(dict(columns), index=self.index, copy=False)

    def host_index(self) -> pd.Index[Any] | None:
        """The row labels on the host, where the kind has them."""
        return self.index  # type: ignore[no-any-return]

    def device_frames(self) -> FrameLibrary | None:
        """What the table's columns lie in, where that is a device."""
        return None

    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Where the columns lie on a device, make it that of the calling thread for a while."""
        library = self.device_frames()
        return contextlib.nullcontext() if library is None else library.active()

    @abstractmethod
    def arrow(self) -> pa.Table:
        """The whole table as Arrow data."""


class PandasFrame(Frame):
    """A pandas DataFrame."""

    kind = "pandas"

    def __init__(self, table: pd.DataFrame) -> None:
        self._table = table
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        """See `Frame`."""
        return self._table.iloc[:, position]

    def orders(self) -> dict[Hashable, list[Any]]:
        """See `Frame`."""
        return category_orders(self._table)

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> pd.DataFrame:
        """See `Frame`."""
        columns = self._table.columns.take([self.names.index(name) for name in names])
        return pd.DataFrame(values.T, index=self.index, columns=columns, copy=False)

    def arrow(self) -> pa.Table:
        """See `Frame`; raises OutputError for a column that Arrow cannot hold."""
        columns = []
        for position, name in enumerate(self.names):
            series = self.column(position)
            if isinstance(series.dtype, pd.SparseDtype):
                series = pd.Series(series.to_numpy())
            try:
                columns.append(pa.array(series, from_pandas=True))
            except (pa.ArrowException, TypeError) as error:
                raise OutputError(
                    f"output: column {name!r} of the table, of type {series.dtype}, cannot be stored beside the scores "
                    f"({error}). Convert it, to text for instance, or write the scores alone."
                ) from error
        return pa.table(columns, names=[str(name) for name in self.names])


class ArrowFrame(Frame):
    """A pyarrow Table; for one read from a file (`kind` "file") scores come as pandas DataFrames."""

    def __init__(self, table: pa.Table, kind: str = "pyarrow") -> None:
        self.kind = kind
        self._table = table
        self.names = list(table.column_names)
        self.rows = table.num_rows
        try:
            self.index_names = pandas_index_names(table.schema)
        except pa.ArrowInvalid as error:
            raise InputError(f"table: {error}. Drop it with table.replace_schema_metadata(None).") from error

    def column(self, position: int) -> Any:
        """See `Frame`; raises InputError for data that do not hold together."""
        column = self._table.column(position)
        # Those of files were checked when they were read.
        if self.kind != "file":
            check_arrow(self.names[position], column)
        return column

    def orders(self) -> dict[Hashable, list[Any]]:
        """See `Frame`."""
        found: dict[Hashable, list[Any]] = {}
        for field in self._table.schema if self.kind != "file" else ():
            if pa.types.is_dictionary(field.type) and field.type.ordered:
                chunks = self._table.column(field.name).chunks
                if chunks and all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks):
                    found[field.name] = chunks[0].dictionary.to_pylist()
        return found

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        if self.kind == "file":
            return pd.DataFrame(values.T, columns=list(names), copy=False)
        return arrow_table(values, names)

    def series(self, values: Any, name: str) -> Any:
        """See `Frame`."""
        return super().series(values, name) if self.kind == "file" else pa.array(values)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """See `Frame`."""
        return super().named(columns) if self.kind == "file" else pa.table(dict(columns))

    def arrow(self) -> pa.Table:
        """See `Frame`; raises InputError for data that do not hold together."""
        for position in range(len(self.names)):
            self.column(position)
        return decode(self._table)


class PolarsFrame(Frame):
    """A Polars DataFrame, or what a LazyFrame collects to."""

    kind = "polars"

    def __init__(self, table: Any) -> None:
        import polars as pl

        if isinstance(table, pl.LazyFrame):
            table = table.collect()
        if not isinstance(table, pl.DataFrame):
            raise InputError(f"table: expected a Polars DataFrame or LazyFrame, got {type(table).__qualname__}.")
        self._table = table
        self.names = list(table.columns)
        self.rows = table.height

    def column(self, position: int) -> Any:
        """See `Frame`; raises ColumnTypeError for a type that Arrow does not know."""
        import polars as pl

        series = self._table.get_columns()[position]
        try:
            if series.dtype == pl.Object:
                raise pa.ArrowInvalid("objects")
            array = series.to_arrow(compat_level=pl.CompatLevel.oldest())
        except pa.ArrowException as error:
            raise ColumnTypeError(series.name, f"Polars type {series.dtype}") from error
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])

    def orders(self) -> dict[Hashable, list[Any]]:
        """See `Frame`."""
        import polars as pl

        return {
            name: kind.categories.to_list() for name, kind in self._table.schema.items() if isinstance(kind, pl.Enum)
        }

    def wrap(self, values: npt.NDArray[Any], names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        import polars as pl

        return pl.DataFrame(arrow_table(values, names))

    def series(self, values: Any, name: str) -> Any:
        """See `Frame`."""
        import polars as pl

        return pl.Series(name, values)

    def named(self, columns: Mapping[str, Any]) -> Any:
        """See `Frame`."""
        import polars as pl

        return pl.DataFrame(dict(columns))

    def arrow(self) -> pa.Table:
        """See `Frame`."""
        import polars as pl

        return self._table.to_arrow(compat_level=pl.CompatLevel.oldest())


def category_orders(table: Any) -> dict[Hashable, list[Any]]:
    """The values, in order, of ordered categories of a pandas or cuDF DataFrame."""
    found: dict[Hashable, list[Any]] = {}
    for name, kind in table.dtypes.items():
        if getattr(kind, "ordered", False):
            categories = kind.categories
            found[name] = list((categories.to_pandas() if hasattr(categories, "to_pandas") else categories).tolist())
    return found


def known_orders(table: Any, used: Container[Hashable]) -> dict[Hashable, list[Any]]:
    """`category_orders` of a Dask DataFrame, which may not know the categories before it computes.

    used: columns whose order matters; of these it warns where it is not known.
    """
    orders = category_orders(table._meta)
    unknown = [name for name in orders if not table[name].cat.known]
    for name in unknown:
        if name in used:
            warn(
                f"table: Dask does not know the categories of column {name!r}, so that their order is not used: they "
                f"are as far apart as any. Give their distance, or make them known: table[{name!r}].cat.as_known().",
                UserWarning,
            )
    return {name: order for name, order in orders.items() if name not in unknown}


def is_dask(table: Any) -> bool:
    """Whether a table is a Dask collection; Dask itself is not imported."""
    return any(base.__module__.partition(".")[0] == "dask" for base in type(table).__mro__)


def open_frame(table: Any) -> Frame:
    """View a pandas, Polars or cuDF DataFrame, a pyarrow Table or anything with __arrow_c_stream__ by its columns.

    Raises InputError for anything else.
    """
    if cuda_frames.CudfFrames.may_hold(table):
        from .cudf_frame import DeviceTable

        library = frame_library()
        if library.holds(table):
            return DeviceTable(table, library)
    if isinstance(table, pd.DataFrame):
        return PandasFrame(table)
    if isinstance(table, pa.Table | pa.RecordBatch):
        return ArrowFrame(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))
    if type(table).__module__.partition(".")[0] == "polars":
        return PolarsFrame(table)
    if hasattr(table, "__arrow_c_stream__") and not isinstance(table, type):
        # A column, say, exports a stream too.
        with contextlib.suppress(pa.ArrowInvalid, TypeError):
            return ArrowFrame(pa.table(table))
    raise InputError(
        "table: expected a pandas, Polars or cuDF DataFrame, a pyarrow Table, an object with __arrow_c_stream__, or "
        f"the path of a Parquet, CSV or Feather file; got {type(table).__module__}.{type(table).__qualname__}."
    )


def open_file(file: Path, pick: Pick, sep: str | None = None, library: FrameLibrary | None = None) -> Frame:
    """What a path names as a frame, read by the device's library where there is one; raises what `read_table` does."""
    started = time.perf_counter()
    frame: Frame | None = None
    if library is not None:
        from .cudf_csv import csv_on_device
        from .cudf_parquet import ParquetOnDevice

        found = find_input(file, sep)
        if found.format is PARQUET:
            frame = ParquetOnDevice(file, pick, library)
        elif found.format is CSV and not found.several:
            frame = csv_on_device(file, pick, sep, library)
    frame = frame or ArrowFrame(read_table(file, pick, sep), kind="file")
    frame.opened_in = time.perf_counter() - started
    return frame


def arrow_table(values: npt.NDArray[Any], names: Sequence[Hashable]) -> pa.Table:
    """Arrow table over the rows of a (columns, rows) array, without a copy."""
    return pa.table({str(name): pa.array(column) for name, column in zip(names, values, strict=True)})
