"""The opening of a table of any kind, or of a path, as a frame."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Container, Hashable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from ..engines.choose import DeviceRequest, requested_device
from ..errors import InputError, marked
from ..gpu import cudf_frames as cuda_frames
from ..gpu.cudf_frames import CudfFrames
from ..gpu.open import frame_library
from ..io.base import Pick
from ..io.databases.base import QueryTable
from ..io.formats import CSV, PARQUET
from ..io.paths import find_input
from ..io.read import open_source, read_table
from ..utils.validation import check_unique
from .arrow_frame import ArrowFrame
from .base import Frame
from .dask_frame import check_dask_frame, is_dask, known_orders
from .file_frame import EncodedFrame, EncodedSource, FileFrame
from .pandas_frame import PandasFrame


def open_table(table: Any, pick: Pick, library: CudfFrames | None = None) -> Frame:
    """Return a table as a frame.

    pick: the choice of columns of a file; only these are read. library: the library of a device, which then reads
    files. Raises InputError for a table without rows.
    """
    if isinstance(table, str | os.PathLike):
        frame = open_file(table, pick, library)
    else:
        frame = table if isinstance(table, Frame) else open_frame(table)
    if frame.names and frame.rows == 0:
        listed = ", ".join(map(str, frame.names))
        raise InputError(f"table: expected at least one row, got none (columns: {listed}).")
    return frame


def device_for(table: Any, times: Callable[[int], int] = lambda columns: 1) -> DeviceRequest:
    """Return the device for a table and a question; "auto" is the CPU for a small table, see `requested_device`.

    times: takes the number of columns, and returns how often the question goes over each cell. Default: once. Raises
    the errors of `open_source`.
    """
    return requested_device(lambda: about_cells(table, times))


def about_cells(table: Any, times: Callable[[int], int] = lambda columns: 1) -> int | None:
    """Return about how many cells a question goes over, see `device_for`.

    None for a table on a device, and for a table whose number of rows is known only after reading it.
    """
    rows: Any
    if isinstance(table, str | os.PathLike):
        source = open_source(table)
        rows, columns = source.about_rows(), len(source.names)
    elif isinstance(table, Frame):
        rows, columns = None if table.device_frames() is not None else table.rows, len(table.names)
    elif cuda_frames.CudfFrames.may_hold(table):
        return None
    else:
        shape = getattr(table, "shape", None)
        # An object that is no table has no shape, or a shape of another length.
        rows, columns = shape if isinstance(shape, tuple) and len(shape) == 2 else (None, 0)
    return rows * columns * times(columns) if isinstance(rows, int) else None


def open_frame(table: Any) -> Frame:
    """Return a table in memory as a frame.

    table: a pandas, Polars or cuDF DataFrame, a pyarrow Table, or an object with __arrow_c_stream__. Raises InputError
    for any other object, and for a stream that breaks off. Raises TableReadError if reading from a database breaks off.
    """
    if cuda_frames.CudfFrames.may_hold(table):
        from .cudf_frame import DeviceTable

        library = frame_library()
        if library.holds(table):
            return DeviceTable(table, library.beside(table))
    if isinstance(table, pd.DataFrame):
        return PandasFrame(table)
    if isinstance(table, pa.Table | pa.RecordBatch):
        return ArrowFrame(table if isinstance(table, pa.Table) else pa.Table.from_batches([table]))
    if type(table).__module__.partition(".")[0] == "polars":
        from .polars_frame import PolarsFrame

        return PolarsFrame(table)
    if isinstance(table, QueryTable):
        # Do not read it as a stream: its errors would become errors of the stream.
        return ArrowFrame(pa.Table.from_batches(table.batches(), table.schema))
    if hasattr(table, "__arrow_c_stream__") and not isinstance(table, type):
        # A column exports a stream too, which is no stream of a table.
        stream = None
        with contextlib.suppress(pa.ArrowInvalid, TypeError):
            stream = pa.RecordBatchReader.from_stream(table)
        if stream is not None:
            return ArrowFrame(_read_stream(stream))
    raise InputError(
        "table: expected a pandas, Polars or cuDF DataFrame, a pyarrow Table, an object with __arrow_c_stream__, or "
        f"the path of a Parquet, CSV or Feather file; got {type(table).__module__}.{type(table).__qualname__}."
    )


def held_table(table: Any) -> Any:
    """Return a table that can be read more than once: a stream of Arrow data as a table, any other table as it is.

    Raises InputError for an object that is no table.
    """
    if is_dask(table) or isinstance(table, str | os.PathLike):
        return table
    frame = open_frame(table)
    return frame.arrow() if isinstance(frame, ArrowFrame) else table


def table_names(table: Any, argument: str = "table") -> tuple[list[Hashable], list[Hashable]]:
    """Return the names of the columns of a table of any kind, and the names of its row labels.

    Row labels are the columns that pandas stored as an index, and the named levels of the index of a frame. If a table
    has no other columns, the stored labels are its columns. argument: the name of the table in errors. Raises
    InputError.
    """
    every: list[Hashable]
    stored: Sequence[Hashable]
    if is_dask(table):
        check_dask_frame(table, argument)
        every, stored = list(table.columns), ()
    elif isinstance(table, str | os.PathLike):
        source = open_source(find_input(table))
        every, stored = list(source.names), source.index_names
    else:
        frame = open_frame(table)
        every, stored = list(frame.names), frame.index_names
    check_unique(every, argument)
    names = [name for name in every if name not in stored]
    levels = [name for name in _index_levels(table) if name not in every]
    return (names, [*stored, *levels]) if names else (every, levels)


def table_orders(table: Any) -> dict[Hashable, list[Any]]:
    """Return for each column of ordered categories of a table of any kind its values in order; files have none."""
    if is_dask(table):
        return known_orders(table, ())
    return {} if isinstance(table, str | os.PathLike) else open_frame(table).orders()


def with_labels(table: Any, names: Container[Hashable]) -> Any:
    """Return a table in which the levels of the index that are in `names` are columns.

    A table without such levels is returned as it is. A level with the name of a column is removed: the column has its
    values.
    """
    levels = [name for name in _index_levels(table) if name in names]
    doubled = [name for name in levels if name in list(table.columns)]
    if is_dask(table):
        # The index of a Dask DataFrame has one level.
        return table.reset_index(drop=bool(doubled)) if levels else table
    if doubled:
        table = table.reset_index(level=doubled, drop=True)
    single = [name for name in levels if name not in doubled]
    return table.reset_index(level=single) if single else table


def _index_levels(table: Any) -> list[Hashable]:
    """Return the names of the levels of a frame's index, without names that repeat."""
    frame = table._meta if is_dask(table) and hasattr(table, "_meta") else table
    names = list(getattr(getattr(frame, "index", None), "names", ()))
    return [name for name in names if name is not None and names.count(name) == 1]


def _read_stream(stream: pa.RecordBatchReader) -> pa.Table:
    """Return all rows of a stream; raises InputError if it breaks off."""
    try:
        return stream.read_all()
    except (pa.ArrowException, OSError) as error:
        reason = marked(str(error).partition("\n")[0].partition(" Detail: ")[0].rstrip("."))
        raise InputError(f"table: its stream of Arrow data broke off: {reason}. Make it anew.") from error


def open_file(path: str | os.PathLike[str], pick: Pick, library: CudfFrames | None = None) -> Frame:
    """Return the files that a path names as a frame.

    pick: the columns to read. library: the library of a device, which reads the files if it can. Raises the errors of
    `read_table`.
    """
    started = time.perf_counter()
    input_files = find_input(path)
    frame: Frame | None = None
    origin = input_files.path, path.stamps if isinstance(path, EncodedSource) else input_files.stamps()
    if isinstance(path, EncodedSource):
        frame = EncodedFrame(path, pick)
    elif library is not None:
        from .cudf_files import ParquetOnDevice, csv_on_device

        if input_files.format is PARQUET:
            frame = ParquetOnDevice(input_files, pick, library)
        elif input_files.format is CSV and not input_files.is_folder_or_pattern:
            frame = csv_on_device(input_files, pick, library)
    frame = frame or FileFrame(read_table(input_files, pick))
    frame.origin = origin
    frame.check_unchanged()
    frame.opened_in = time.perf_counter() - started
    return frame
