"""Frames on the device: cuDF with the functions of pandas, and functions that only cuDF has."""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from ..utils.arrays import GROUP_ROWS


class CudfFrames:
    """The library of cuDF's frames and series on one device, by default the current one. `xp` has arrays of columns.

    Tests replace this class by one that needs no GPU.
    """

    xp: Any
    frames: Any

    def __init__(self, device: int | None = None) -> None:
        import cupy

        from .cupy_arrays import user_pool

        self.xp = cupy
        self.frames = import_cudf()
        self._device = cupy.cuda.Device(device)
        with self._device:
            self._pool = user_pool()

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make the device the current device of the calling thread in the context.

        Arrays and cuDF's memory share one pool, as in `CupyLibrary`.
        """
        from .cupy_arrays import array_memory
        from .rmm_pool import memory_of_cupy

        of_cudf = memory_of_cupy(self._device.id) if self._pool is None else contextlib.nullcontext()
        with self._device, array_memory(self._pool), of_cudf:
            yield

    def ran_out(self, error: Exception) -> bool:
        """Return whether an error says that the device's memory is too small."""
        from .cupy_arrays import is_out_of_memory

        return is_out_of_memory(error)

    def free_bytes(self) -> int:
        """Return the device's memory that the driver has left."""
        with self._device:
            return int(self.xp.cuda.runtime.memGetInfo()[0])

    def release(self) -> None:
        """Give back memory that is kept for later."""
        with self._device:
            self.xp.get_default_memory_pool().free_all_blocks()

    @staticmethod
    def may_hold(table: Any) -> bool:
        """Return whether a table is of this library, a frame or not; imports nothing."""
        return any(base.__module__.partition(".")[0] == "cudf" for base in type(table).__mro__)

    def holds(self, table: Any) -> bool:
        """Return whether a table is a frame of this library."""
        return isinstance(table, self.frames.DataFrame)

    def beside(self, table: Any) -> CudfFrames:
        """Return the library of the device that has a frame, even if another device is the current one."""
        device = device_of(table, self.xp.cuda.runtime)
        return self if device in (None, self._device.id) else CudfFrames(device)

    def array(self, series: Any) -> Any:
        """Return the values of a series without missing ones as an array, without a copy if possible."""
        return series.values

    def full(self, size: int, value: int, dtype: Any) -> Any:
        """Return a new array, all of it this value."""
        return self.xp.full(size, value, dtype)

    def to_arrow(self, values: Any) -> pa.Array:
        """Return the values of a series or index on the host; short decimals, which Arrow cannot hash, as long ones."""
        import pyarrow as pa

        array = values.to_arrow()
        if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
        return array

    def frame(self, columns: dict[Any, Any], index: Any = None) -> Any:
        """Return a frame of arrays, without copies of them."""
        return self.frames.DataFrame(columns, index=index)

    def to_pandas(self, values: Any) -> Any:
        """Return a frame or an index of the host with the same contents."""
        return values.to_pandas()

    def read_parquet(self, file: Path, column: str, start: int, stop: int) -> Any:
        """Return the rows start to stop - 1 of one column of a file as a series.

        cuDF's own function takes paths for patterns, folders' names for columns and stored indexes out of the table;
        the one below it does none of that.
        """
        from pylibcudf.io import SourceInfo, parquet

        source = SourceInfo([str(file.absolute())])
        options = parquet.ParquetReaderOptions.builder(source).use_pandas_metadata(False).build()
        options.set_column_names([column])
        options.set_skip_rows(start)
        options.set_num_rows(stop - start)
        return self.frames.Series.from_pylibcudf(parquet.read_parquet(options).tbl.columns()[0])

    def read_lines(self, file: Path, start: int, size: int) -> Any:
        """Return the lines of a text file that begin within `size` bytes from `start` on, as a series of text.

        cuDF's own function takes paths for patterns.
        """
        from pylibcudf.io import text

        source = text.make_source_from_file(str(file.absolute()))
        options = text.ParseOptions(byte_range=(start, size), strip_delimiters=True)
        return self.frames.Series.from_pylibcudf(text.multibyte_split(source, "\n", options))

    @contextlib.contextmanager
    def parquet_writer(self, sink: IO[bytes], metadata: Mapping[bytes, bytes], codec: str) -> Iterator[Any]:
        """Yield a function that writes frames to a Parquet file, one after the other. Raise the errors of the file.

        metadata: of the file. codec: how it is compressed, "zstd", "lz4", "snappy" or "none".
        """
        guarded = GuardedSink(sink)
        writer = self.open_writer(guarded, metadata, codec)

        def write(frame: Any) -> None:
            writer.write_table(frame)
            guarded.check()

        try:
            yield write
        finally:
            writer.close()
            guarded.check()

    def open_writer(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> Any:
        """Return a writer of frames to one file, see `parquet_writer`."""
        return ParquetWriter(sink, metadata, codec)


def import_cudf() -> Any:
    """Return cuDF, imported without a change of the allocator of CuPy's arrays outside gpupif.

    Whoever imports cuDF himself has them taken from RMM, by which he may set a pool for both.
    """
    if "cudf" not in sys.modules:
        import cupy

        before = cupy.cuda.get_allocator()
        importlib.import_module("cudf")
        cupy.cuda.set_allocator(before)
    return sys.modules["cudf"]


def device_of(frame: Any, runtime: Any) -> int | None:
    """Return the number of the device that a frame's memory is on; None for a frame that has none.

    runtime: CuPy's, which asks the driver where a pointer points to.
    """
    table, _ = frame.to_pylibcudf()
    columns = list(table.columns())
    while columns:
        column = columns.pop()
        for buffer in (column.data(), column.null_mask()):
            if buffer is not None and buffer.ptr:
                return int(runtime.pointerGetAttributes(buffer.ptr).device)
        columns += column.children()
    return None


class ParquetWriter:
    """A writer of frames, and of metadata, to a Parquet file. cuDF's own writer takes no metadata."""

    def __init__(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> None:
        self._sink = sink
        self._codec = codec
        self._metadata = {key.decode(): value.decode() for key, value in metadata.items()}
        self._writer: Any = None

    def write_table(self, frame: Any) -> None:
        """Write a frame after the earlier frames."""
        table, _ = frame.to_pylibcudf()
        self._writer = self._writer or self._open(table, [str(name) for name in frame.columns])
        self._writer.write(table)

    def _open(self, table: Any, names: Sequence[str]) -> Any:
        from pylibcudf.io import SinkInfo, parquet, types

        columns = types.TableInputMetadata(table)
        for column, name in zip(columns.column_metadata, names, strict=True):
            column.set_name(name)
        options = (
            parquet.ChunkedParquetWriterOptions.builder(SinkInfo([self._sink]))
            .metadata(columns)
            .key_value_metadata([self._metadata])
            .compression(getattr(types.CompressionType, self._codec.upper()))
            .stats_level(types.StatisticsFreq.STATISTICS_ROWGROUP)
            .row_group_size_rows(GROUP_ROWS)
            .build()
        )
        return parquet.ChunkedParquetWriter.from_options(options)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close([])


class GuardedSink(io.RawIOBase):
    """A file for C++ to write to. C++ takes no error: the first error is kept, and `check` raises it."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._written = 0
        self._error: BaseException | None = None

    def writable(self) -> bool:
        """Return whether the file can be written to."""
        return True

    def write(self, data: Any) -> int:
        """Write, or after an error only count."""
        size = len(data)
        self._written += size
        if self._error is None:
            try:
                self._sink.write(data)
            except BaseException as error:
                self._error = error
        return size

    def tell(self) -> int:
        """Bytes so far."""
        return self._written

    def check(self) -> None:
        """Raise the first error, if there was one."""
        if self._error is not None:
            raise self._error
