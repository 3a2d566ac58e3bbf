"""Frames on the device: cuDF, with pandas' functions, and what only cuDF has."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ..utils.arrays import GROUP_ROWS
from .base import FrameLibrary, GuardedSink


class CudfFrames(FrameLibrary):
    """cuDF on one device, by default the current one."""

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
        """See `DeviceLibrary`; arrays and what cuDF makes lie in one pool, as those of `CupyLibrary` do."""
        from .cupy_arrays import array_memory
        from .rmm_pool import memory_of_cupy

        of_cudf = memory_of_cupy(self._device.id) if self._pool is None else contextlib.nullcontext()
        with self._device, array_memory(self._pool), of_cudf:
            yield

    def ran_out(self, error: Exception) -> bool:
        from .cupy_arrays import is_out_of_memory

        return is_out_of_memory(error)

    def free_bytes(self) -> int:
        """See `FrameLibrary`: what the driver has."""
        with self._device:
            return int(self.xp.cuda.runtime.memGetInfo()[0])

    def release(self) -> None:
        with self._device:
            self.xp.get_default_memory_pool().free_all_blocks()

    @staticmethod
    def may_hold(table: Any) -> bool:
        return any(base.__module__.partition(".")[0] == "cudf" for base in type(table).__mro__)

    def holds(self, table: Any) -> bool:
        return isinstance(table, self.frames.DataFrame)

    def beside(self, table: Any) -> FrameLibrary:
        device = device_of(table, self.xp.cuda.runtime)
        return self if device in (None, self._device.id) else CudfFrames(device)

    def array(self, series: Any) -> Any:
        return series.values

    def full(self, size: int, value: int, dtype: Any) -> Any:
        return self.xp.full(size, value, dtype)

    def to_arrow(self, values: Any) -> pa.Array:
        """See `FrameLibrary`; short decimals, which Arrow cannot hash, as long ones."""
        import pyarrow as pa

        array = values.to_arrow()
        if pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
        return array

    def frame(self, columns: dict[Any, Any], index: Any = None) -> Any:
        return self.frames.DataFrame(columns, index=index)

    def to_pandas(self, values: Any) -> Any:
        return values.to_pandas()

    def read_parquet(self, file: Path, column: str, start: int, stop: int) -> Any:
        """See `FrameLibrary`.

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
        """See `FrameLibrary`; cuDF's own function takes paths for patterns."""
        from pylibcudf.io import text

        source = text.make_source_from_file(str(file.absolute()))
        options = text.ParseOptions(byte_range=(start, size), strip_delimiters=True)
        return self.frames.Series.from_pylibcudf(text.multibyte_split(source, "\n", options))

    def open_writer(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> Any:
        return ParquetWriter(sink, metadata, codec)


def import_cudf() -> Any:
    """Return cuDF, imported without a trace on what CuPy's arrays are taken from outside of gpupif.

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
    """Writes frames to a Parquet file; what cuDF's own does, which takes no metadata."""

    def __init__(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> None:
        self._sink = sink
        self._codec = codec
        self._metadata = {key.decode(): value.decode() for key, value in metadata.items()}
        self._writer: Any = None

    def write_table(self, frame: Any) -> None:
        """Write a frame after those before."""
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
