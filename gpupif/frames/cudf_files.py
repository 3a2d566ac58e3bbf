"""Files that cuDF reads on a GPU: Parquet column by column, and CSV if cuDF splits all its fields correctly."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..encoding.device import DeviceColumn, DevicePart, in_halves, number_values
from ..encoding.refused_types import refuse_nested
from ..errors import DeviceError, InputError, reason_of
from ..gpu.cudf_frames import CudfFrames
from ..io.base import Input, Pick, check_rows, decode, pandas_index_names
from ..io.csv_files import has_any, typed_texts
from ..io.csv_separator import CsvHeader, read_header
from ..io.file_errors import unreadable
from ..io.parquet_files import keys_of_files, open_parquet
from ..io.read import read_table
from . import cudf_frame
from .file_frame import FileFrame

# Tests for the types of columns of files that cuDF has.
KNOWN = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string),
    *(pa.types.is_large_string, pa.types.is_timestamp, pa.types.is_date32, pa.types.is_duration),
    *(pa.types.is_decimal32, pa.types.is_decimal64, pa.types.is_decimal128, pa.types.is_null),
)
# Bytes of a CSV file that are split into fields at once, and the fewest that are tried if memory runs out.
PART_BYTES, LEAST_BYTES = 1 << 28, 1 << 20


class DeviceFile(FileFrame):
    """A file that cuDF reads. Its scores become pandas DataFrames, and may be on the device until then."""

    def __init__(self, input_files: Input, pick: Pick, library: CudfFrames) -> None:
        self._input_files = input_files
        self._pick = pick
        self._library = library

    def arrow(self) -> pa.Table:
        """See `Frame`; the file is read anew, on the host."""
        self.check_unchanged()
        table = read_table(self._input_files, self._pick)
        self.check_unchanged()
        return decode(table)

    def device_frames(self) -> CudfFrames:
        return self._library


class ParquetOnDevice(DeviceFile):
    """Parquet files, read column by column; row groups of up to `PART_ROWS` rows are read and numbered at once."""

    reads_late = True

    def __init__(self, input_files: Input, pick: Pick, library: CudfFrames) -> None:
        super().__init__(input_files, pick, library)
        file = input_files.path
        try:
            table = open_parquet(input_files, pick)
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
            for edges in _row_ranges(part, cudf_frame.PART_ROWS)
        ]
        self._rows_of = {path: part.num_rows for path, part in zip(files, metadata, strict=True)}

    def column(self, position: int) -> Any:
        """See `Frame`. Encoding the column raises InputError for a type that cuDF lacks."""
        name = str(self.names[position])
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind

        def parts() -> Iterator[DevicePart]:
            _check_type(name, kind)
            if pa.types.is_null(kind):
                yield DevicePart(self._library.full(self.rows, -1, "int8"), pa.nulls(0))
                return
            if name in next(iter(self._keys.values())):
                yield from self._folder_column(name, kind)
                return
            for file, start, stop in self._reads:
                read = partial(self._read, file, name)
                yield from in_halves(self._library, read, start, stop, cudf_frame.LEAST_ROWS)

        return DeviceColumn(self._library, parts, kind)

    def _folder_column(self, name: str, kind: pa.DataType) -> Iterator[DevicePart]:
        """Yield the parts of a column that the names of folders hold: in each file all rows have the same value."""
        for file, keys in self._keys.items():
            missing = keys[name] is None
            numbers = self._library.full(self._rows_of[file], -int(missing), "int8")
            yield DevicePart(numbers, pa.array([] if missing else [keys[name]], kind))

    def _read(self, file: Path, name: str, start: int, stop: int) -> list[DevicePart]:
        """Return the rows `start` to `stop` - 1 of a column, with their values numbered."""
        try:
            series = self._library.read_parquet(file, name, start, stop)
        except (RuntimeError, ValueError, OSError) as error:
            # If the file is damaged, the reader of the CPU raises the usual error.
            read_table(file, lambda _: [name])
            raise DeviceError(
                f"{file}: cuDF could not read it ({reason_of(error)}). Use gpupif.config(device='cpu')."
            ) from error
        self.check_unchanged()
        return [number_values(self._library, name, series)]


def _check_type(name: str, kind: pa.DataType) -> None:
    refuse_nested(name, kind)
    if not any(is_known(kind) for is_known in KNOWN):
        raise InputError(
            f"column {name!r}: expected a type that cuDF has, which reads files for the GPU; got {kind}. Convert it to "
            "text, leave the column out with columns=, or use gpupif.config(device='cpu')."
        )


def _row_ranges(metadata: Any, rows: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows (start, stop). A range is whole row groups with up to `rows` rows, or a single row group.

    Reading a part of a row group takes as long as reading the whole row group.
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


class CsvOnDevice(DeviceFile):
    """A CSV file whose fields were split on the device by `csv_on_device`."""

    def __init__(self, input_files: Input, pick: Pick, library: CudfFrames, parts: dict[str, list[DevicePart]]) -> None:
        super().__init__(input_files, pick, library)
        self._parts = parts
        self.names = list(parts)
        self.rows = sum(len(part.numbers) for part in next(iter(parts.values())))

    def column(self, position: int) -> Any:
        """See `Frame`. Each column can be taken once, so that its memory is free after it is encoded."""
        parts = self._parts.pop(str(self.names[position]))
        return DeviceColumn(self._library, lambda: parts, ascending=False)


def csv_on_device(input_files: Input, pick: Pick, library: CudfFrames) -> CsvOnDevice | None:
    """Return a CSV file read on the device, if each of its lines is a row with as many fields as the header.

    Returns None for any other file: with quotes, carriage returns, a byte order mark, a single column, lines with other
    numbers of fields, or text that is not UTF-8. Only the parser of the CPU reads such files exactly, or reports their
    errors. Raises DeviceError if the device fails.
    """
    file = input_files.path
    head = read_header(file, input_files.sep)
    if has_any(file, b'"\r\0') or _marked(file):
        return None
    columns = pick(head.names)
    wanted = head.names if columns is None else columns
    if head.alone or len(head.names) == 1 or not wanted:
        return None
    try:
        with library.active():
            parts = _split(file, head, wanted, library)
    except _IrregularError:
        return None
    except (MemoryError, RuntimeError) as error:
        # If the file is damaged, the reader of the CPU raises the usual error.
        read_table(input_files, pick)
        reason = reason_of(error)
        if library.ran_out(error):
            reason = f"its memory ran out, {library.free_bytes() / 2**30:.3f} GiB are free"
        raise DeviceError(f"{file}: the GPU could not read it ({reason}). Use gpupif.config(device='cpu').") from error
    if not _type(parts):
        return None
    frame = CsvOnDevice(input_files, pick, library, parts)
    check_rows(file, frame.rows, wanted)
    return frame


def _marked(file: Path) -> bool:
    """Return whether a file begins with the byte order mark of UTF-8."""
    with file.open("rb") as opened:
        return opened.read(len(codecs.BOM_UTF8)) == codecs.BOM_UTF8


class _IrregularError(Exception):
    """A line with more or fewer fields than the header."""


def _split(file: Path, head: CsvHeader, wanted: list[str], library: CudfFrames) -> dict[str, list[DevicePart]]:
    """Return the parts of each column, with their values numbered. Raises _IrregularError for an irregular line."""
    # A list for each part of the file, with a part of each column.
    chunks: list[list[DevicePart]] = []

    def split(start: int, stop: int) -> list[list[DevicePart]]:
        lines = library.read_lines(file, start, stop - start)
        lines = lines[lines != ""].reset_index(drop=True)
        # The header is the first line of the file that is not empty.
        rows = lines.iloc[int(start <= header < stop) :].reset_index(drop=True)
        if len(rows) == 0:
            return []
        fields = rows.str.split(head.separator, expand=True, regex=False)
        if len(fields.columns) != len(head.names) or bool(fields[len(head.names) - 1].isna().any()):
            raise _IrregularError
        parts = [number_values(library, name, fields[head.names.index(name)]) for name in wanted]
        return [[DevicePart(part.numbers, part.labels.cast(pa.large_string())) for part in parts]]

    header = _header_start(file)
    size = file.stat().st_size
    for start in range(0, size, PART_BYTES):
        chunks += in_halves(library, split, start, min(size, start + PART_BYTES), LEAST_BYTES)
    return {name: [parts[place] for parts in chunks] for place, name in enumerate(wanted)}


def _header_start(file: Path) -> int:
    """Return the place of the first byte of the first line that is not empty."""
    with file.open("rb") as opened:
        place = 0
        for line in opened:
            if line != b"\n":
                break
            place += 1
    return place


def _type(parts: dict[str, list[DevicePart]]) -> bool:
    """Replace texts by the values that they spell, and empty texts by missing values.

    Returns False if a text is not UTF-8.
    """
    for name, column_parts in parts.items():
        texts = pa.chunked_array([part.labels for part in column_parts], pa.large_string())
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            return False
        distinct = texts.unique()
        distinct = distinct.filter(pc.not_equal(distinct, ""))
        values = typed_texts(distinct.cast(pa.string()))
        parts[name] = [
            DevicePart(part.numbers, values.take(pc.index_in(part.labels, value_set=distinct))) for part in column_parts
        ]
    return True
