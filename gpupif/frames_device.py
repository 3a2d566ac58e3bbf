"""Tables on the device: frames of cuDF, and files that cuDF reads."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from .csv_text import has_any, read_head, typed_texts
from .encode_device import DeviceColumn, Part, number_values
from .engines.base import on_host
from .errors import ColumnTypeError, DeviceError, InputError
from .frames import Frame
from .reading import Pick, check_rows, decode, open_parquet, pandas_index_names, read_table, unreadable

if TYPE_CHECKING:
    from .engines.cuda_frames import FrameLibrary

# Rows of a column that are numbered at once, and bytes of a text file that are split into fields at once.
PART_ROWS = 1 << 26
PART_BYTES = 1 << 28
# Types of columns in files that cuDF has.
KNOWN = (
    *(pa.types.is_boolean, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64, pa.types.is_string),
    *(pa.types.is_large_string, pa.types.is_timestamp, pa.types.is_date32, pa.types.is_duration),
    *(pa.types.is_decimal32, pa.types.is_decimal64, pa.types.is_decimal128, pa.types.is_null),
)


class DeviceTable(Frame):
    """A cuDF DataFrame; its scores come as such frames, without a copy through the host."""

    kind = "cudf"

    def __init__(self, table: Any, library: FrameLibrary) -> None:
        self._table = table
        self._library = library
        self.names = list(table.columns)
        self.rows = len(table)
        self.index = table.index

    def column(self, position: int) -> Any:
        """See `Frame`."""
        name = self.names[position]
        series = self._table[name]

        def parts() -> Iterator[Part]:
            for start in range(0, self.rows, PART_ROWS):
                yield number_values(self._library, name, series.iloc[start : start + PART_ROWS])

        return DeviceColumn(self._library, parts)

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        with self._library.active():
            frame = self._library.frame(dict(enumerate(values)), self.index)
        frame.columns = self._table.columns.take([self.names.index(name) for name in names])
        return frame

    def series(self, values: Any, name: str) -> Any:
        """See `Frame`."""
        with self._library.active():
            return self._library.frame({name: values}, self.index)[name]

    def host_index(self) -> pd.Index[Any] | None:
        """See `Frame`."""
        return self._library.to_pandas(self.index)  # type: ignore[no-any-return]

    def arrow(self) -> pa.Table:
        """See `Frame`."""
        columns = [self._library.to_arrow(self._table[name]) for name in self.names]
        return pa.table(columns, names=[str(name) for name in self.names])

    def device_frames(self) -> FrameLibrary:
        """See `Frame`."""
        return self._library


class DeviceFile(Frame):
    """A file that cuDF reads; scores come as pandas DataFrames, and may lie on the device until then."""

    kind = "file"

    def __init__(self, file: Path, pick: Pick, sep: str | None, library: FrameLibrary) -> None:
        self._file = file
        self._pick = pick
        self._sep = sep
        self._library = library

    def wrap(self, values: Any, names: Sequence[Hashable]) -> Any:
        """See `Frame`."""
        return pd.DataFrame(on_host(values).T, columns=list(names), copy=False)

    def arrow(self) -> pa.Table:
        """See `Frame`; read anew, on the host."""
        return decode(read_table(self._file, self._pick, self._sep))

    def device_frames(self) -> FrameLibrary:
        """See `Frame`."""
        return self._library

    @abstractmethod
    def column(self, position: int) -> Any:
        """See `Frame`."""


class ParquetOnDevice(DeviceFile):
    """A Parquet file or folder, read column by column, as many row groups at once as are numbered at once."""

    reads_late = True

    def __init__(self, file: Path, pick: Pick, library: FrameLibrary) -> None:
        super().__init__(file, pick, None, library)
        import pyarrow.parquet as pq

        try:
            files, self._schema, columns = open_parquet(file, pick)
            metadata = [pq.read_metadata(part) for part in files]
        except (pa.ArrowException, OSError) as error:
            raise unreadable(file, "Parquet", error) from error
        self.names = list(self._schema.names if columns is None else columns)
        self.rows = sum(part.num_rows for part in metadata)
        self.index_names = pandas_index_names(self._schema)
        check_rows(file, self.rows, [str(name) for name in self.names])
        self._reads = [
            (path, groups) for path, part in zip(files, metadata, strict=True) for groups in _groups(part, PART_ROWS)
        ]

    def column(self, position: int) -> Any:
        """See `Frame`; raises InputError for a type that cuDF lacks."""
        name = str(self.names[position])
        kind = self._schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_nested(kind):
            raise ColumnTypeError(name, kind)
        if not any(is_known(kind) for is_known in KNOWN):
            raise InputError(
                f"column {name!r}: expected a type that cuDF has, which reads files for the GPU; got {kind}. Convert "
                "it to text, leave the column out with columns=, or use device='cpu'."
            )

        def parts() -> Iterator[Part]:
            if pa.types.is_null(kind):
                yield Part(self._library.full(self.rows, -1, "int8"), pa.nulls(0))
                return
            for file, groups in self._reads:
                yield from self._read(file, name, groups)

        return DeviceColumn(self._library, parts, kind)

    def _read(self, file: Path, name: str, groups: list[int]) -> list[Part]:
        """Some row groups of a column; where the device's memory is too small for all at once, in halves."""
        try:
            series = self._attempt(file, partial(self._library.read_parquet, file, name, groups))
            return [number_values(self._library, name, series)]
        except Exception as error:
            if len(groups) == 1 or not self._library.ran_out(error):
                raise
        middle = len(groups) // 2
        return self._read(file, name, groups[:middle]) + self._read(file, name, groups[middle:])

    def _attempt(self, file: Path, read: Callable[[], Any]) -> Any:
        try:
            return read()
        except (RuntimeError, ValueError, OSError) as error:
            # What is wrong with the file the CPU's reader says in the usual words.
            read_table(file)
            raise DeviceError(
                f"{file}: cuDF could not read it ({' '.join(str(error).split()).rstrip('.')}). Use device='cpu'."
            ) from error


def _groups(metadata: Any, rows: int) -> Iterator[list[int]]:
    """Row groups of a file, so many in a row that they have at most so many rows, or one."""
    groups: list[int] = []
    together = 0
    for group in range(metadata.num_row_groups):
        size = metadata.row_group(group).num_rows
        if groups and together + size > rows:
            yield groups
            groups, together = [], 0
        groups.append(group)
        together += size
    if groups:
        yield groups


class CsvOnDevice(DeviceFile):
    """A CSV file whose fields are split on the device; made by `csv_on_device`."""

    def __init__(
        self, file: Path, pick: Pick, sep: str | None, library: FrameLibrary, parts: dict[str, list[Part]]
    ) -> None:
        super().__init__(file, pick, sep, library)
        self._parts = parts
        self.names = list(parts)
        self.rows = sum(len(part.numbers) for part in next(iter(parts.values())))

    def column(self, position: int) -> Any:
        """See `Frame`."""
        return DeviceColumn(self._library, lambda: self._parts[str(self.names[position])], ascending=False)


def csv_on_device(file: Path, pick: Pick, sep: str | None, library: FrameLibrary) -> CsvOnDevice | None:
    """Read a CSV file on the device, where each of its lines is a row with as many fields as the header.

    None for any other: with quotes, carriage returns, a single column, lines of other lengths, or text that is not
    UTF-8. What such files hold, or what is wrong with them, only the CPU's parser says exactly.
    """
    if has_any(file, b'"\r\0'):
        return None
    separator, names, alone = read_head(file, sep)
    columns = pick(names)
    wanted = names if columns is None else columns
    if alone or len(names) == 1 or not wanted:
        return None
    parts: dict[str, list[Part]] = {name: [] for name in wanted}
    header = True
    with library.active():
        for start in range(0, file.stat().st_size, PART_BYTES):
            lines = library.read_lines(file, start, PART_BYTES)
            lines = lines[lines.str.len() > 0].reset_index(drop=True)
            if header and len(lines):
                header, lines = False, lines.iloc[1:].reset_index(drop=True)
            if len(lines) == 0:
                continue
            fields = lines.str.split(separator, expand=True, regex=False)
            if len(fields.columns) != len(names) or bool(fields[len(names) - 1].isna().any()):
                return None
            for name in wanted:
                numbers, labels = number_values(library, name, fields[names.index(name)])
                parts[name].append(Part(numbers, labels.cast(pa.large_string())))
    return _typed(file, pick, sep, library, parts)


def _typed(
    file: Path, pick: Pick, sep: str | None, library: FrameLibrary, parts: dict[str, list[Part]]
) -> CsvOnDevice | None:
    """The frame, texts as values of the type that they have; None where a text is not UTF-8."""
    for name, own in parts.items():
        texts = pa.chunked_array([part.labels for part in own], pa.large_string())
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            return None
        unlike = texts.unique()
        unlike = unlike.filter(pc.not_equal(unlike, ""))
        values = typed_texts(unlike.cast(pa.string()))
        parts[name] = [Part(part.numbers, values.take(pc.index_in(part.labels, value_set=unlike))) for part in own]
    check_rows(file, sum(len(part.numbers) for part in next(iter(parts.values()))), list(parts))
    return CsvOnDevice(file, pick, sep, library, parts)


def open_on_device(file: Path, kind: str, pick: Pick, sep: str | None, library: FrameLibrary) -> Frame | None:
    """A file as a frame on the device; None where it is to be read by the host (see `csv_on_device`; Feather)."""
    if kind == "Parquet":
        return ParquetOnDevice(file, pick, library)
    return csv_on_device(file, pick, sep, library) if kind == "CSV" else None
