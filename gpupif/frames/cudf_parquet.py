"""Parquet files that cuDF reads, column by column, and that are numbered on the device."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..encoding.device import DeviceColumn, DevicePart, in_halves, number_values
from ..errors import ColumnTypeError, DeviceError, InputError, reason_of
from ..gpu.cudf_frames import CudfFrames
from ..io.base import Input
from ..io.common import Pick, check_rows, pandas_index_names, unreadable
from ..io.parquet_files import keys_of_files, open_parquet
from ..io.read import read_table
from . import cudf_frame as frames_device
from .cudf_frame import DeviceFile

# Types of columns in files that cuDF has.
KNOWN = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string),
    *(pa.types.is_large_string, pa.types.is_timestamp, pa.types.is_date32, pa.types.is_duration),
    *(pa.types.is_decimal32, pa.types.is_decimal64, pa.types.is_decimal128, pa.types.is_null),
)


class ParquetOnDevice(DeviceFile):
    """A Parquet file or folder, read column by column, so many row groups at once as are numbered at once."""

    reads_late = True

    def __init__(self, found: Input, pick: Pick, library: CudfFrames) -> None:
        super().__init__(found, pick, library)
        import pyarrow.parquet as pq

        file = found.path
        try:
            table = open_parquet(found, pick)
            files, self._schema, columns = table.files, table.schema, table.columns
            metadata = [pq.read_metadata(part) for part in files]
            self._keys = keys_of_files(table)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, "Parquet", error) from error
        self.names = list(self._schema.names if columns is None else columns)
        self.rows = sum(part.num_rows for part in metadata)
        self.index_names = pandas_index_names(self._schema)
        check_rows(file, self.rows, [str(name) for name in self.names])
        self._reads = [
            (path, *edges)
            for path, part in zip(files, metadata, strict=True)
            for edges in _row_ranges(part, frames_device.PART_ROWS)
        ]
        self._rows_of = {path: part.num_rows for path, part in zip(files, metadata, strict=True)}

    def column(self, position: int) -> Any:
        """See `Frame`; raises, when it is encoded, InputError for a type that cuDF lacks."""
        name = str(self.names[position])
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind

        def parts() -> Iterator[DevicePart]:
            _check_type(name, kind)
            if pa.types.is_null(kind):
                yield DevicePart(self._library.full(self.rows, -1, "int8"), pa.nulls(0))
                return
            if name in next(iter(self._keys.values())):
                yield from self._of_folders(name, kind)
                return
            for file, start, stop in self._reads:
                read = partial(self._read, file, name)
                yield from in_halves(self._library, read, start, stop, frames_device.LEAST_ROWS)

        return DeviceColumn(self._library, parts, kind)

    def _of_folders(self, name: str, kind: pa.DataType) -> Iterator[DevicePart]:
        """A column that the names of folders hold: one value, or none, a file."""
        for file, keys in self._keys.items():
            missing = keys[name] is None
            numbers = self._library.full(self._rows_of[file], -int(missing), "int8")
            yield DevicePart(numbers, pa.array([] if missing else [keys[name]], kind))

    def _read(self, file: Path, name: str, start: int, stop: int) -> list[DevicePart]:
        """The rows start to stop - 1 of a column."""
        return [number_values(self._library, name, self._series(file, name, start, stop))]

    def _series(self, file: Path, name: str, start: int, stop: int) -> Any:
        try:
            series = self._library.read_parquet(file, name, start, stop)
        except (RuntimeError, ValueError, OSError) as error:
            # What is wrong with the file the CPU's reader says in the usual words.
            read_table(file, lambda _: [name])
            raise DeviceError(
                f"{file}: cuDF could not read it ({reason_of(error)}). Use gpupif.config(device='cpu')."
            ) from error
        self.check_unchanged()
        return series


def _check_type(name: str, kind: pa.DataType) -> None:
    if pa.types.is_nested(kind):
        raise ColumnTypeError(name, kind)
    if not any(is_known(kind) for is_known in KNOWN):
        raise InputError(
            f"column {name!r}: expected a type that cuDF has, which reads files for the GPU; got {kind}. Convert it to "
            "text, leave the column out with columns=, or use gpupif.config(device='cpu')."
        )


def _row_ranges(metadata: Any, rows: int) -> Iterator[tuple[int, int]]:
    """Rows (first, last + 1) of whole row groups of a file, so many groups that they have at most so many rows, or one.

    A part of a row group costs as much to read as all of it.
    """
    start = stop = 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if stop > start and stop + size - start > rows:
            yield start, stop
            start = stop
        stop += size
    if stop > start:
        yield start, stop
