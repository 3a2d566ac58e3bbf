"""What stands in for CuPy and cuDF where there is no GPU: NumPy and pandas, strict where they are not.

Kernels run in Numba's simulator (`SimulatedLibrary`) or, compiled, on this machine's CPU (`host.library`).
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.gpu.cudf_frames import CudfFrames, GuardedSink
from gpupif.gpu.cupy_arrays import CupyLibrary, PinnedStaging, RowGroups

if TYPE_CHECKING:
    import numpy.typing as npt

# The simulator changes the modules of a kernel while it runs, and `host` has one set of registers.
one_kernel = threading.Lock()
# Every byte of an array that nobody has written to: 1e306 as a float, huge as an integer.
POISON = 0x7F


class OnDevice(np.ndarray):
    """An array that stands for one on the device."""

    device_number = 0

    def __array_finalize__(self, source: Any) -> None:
        self.device_number = getattr(source, "device_number", 0)

    def get(self) -> npt.NDArray[Any]:
        """The contents as an array of the host, as CuPy's arrays have it."""
        return np.array(self, subok=False)


class NumpyLibrary(CupyLibrary):
    """NumPy in place of CuPy. memory: bytes that the device is to have; an array beyond them does not fit."""

    xp: Any = np

    def __init__(self, device: int = 0, memory: int = 1 << 40) -> None:
        self.device = device
        # Small, so that tests use several buffers.
        self.staging = PinnedStaging(self, buffer_bytes=1 << 12, small_bytes=1 << 13)
        self._memory = memory
        self._chance = np.random.default_rng()

    def _current(self) -> contextlib.AbstractContextManager[None]:
        """See `CupyLibrary`."""
        return contextlib.nullcontext()

    def ran_out(self, error: Exception) -> bool:
        """See `CupyLibrary`: as with RMM, the bare class is the device's."""
        return type(error) is MemoryError

    def stable_order(self, keys: Any) -> Any:
        """See `CupyLibrary`."""
        return np.argsort(keys, kind="stable")

    def group_rows(self, words: Mapping[int, Any], counts: Any) -> RowGroups:
        """See `CupyLibrary`: groups of pandas, in an order of no meaning, another one each time, as cuDF's are."""
        frame = pd.DataFrame({word: np.asarray(values) for word, values in words.items()})
        number = frame.groupby(list(words), sort=False).ngroup().to_numpy()
        order = self._chance.permutation(int(number.max()) + 1)
        of_row = order[number].astype(np.int32)
        sums, first = np.zeros(len(order), np.int64), np.empty(len(order), np.int64)
        np.add.at(sums, of_row, 1 if counts is None else np.asarray(counts))
        first[of_row] = np.arange(len(of_row))
        return RowGroups({word: values[first] for word, values in words.items()}, sums, of_row)

    def on_device(self, array: Any) -> bool:
        """See `CupyLibrary`: what `bring`, `upload` and the frames made."""
        return isinstance(array, OnDevice)

    def device_of(self, array: Any) -> int | None:
        """See `CupyLibrary`."""
        return array.device_number if self.on_device(array) else None

    def settle(self, array: Any) -> None:
        """See `CupyLibrary`."""

    def empty(self, shape: Any, dtype: Any) -> Any:
        """See `CupyLibrary`."""
        array = np.empty(shape, dtype).view(OnDevice)
        array.device_number = self.device
        array.view(np.ndarray).reshape(-1).view(np.uint8)[:] = POISON
        return array

    def bring(self, array: Any) -> Any:
        """See `CupyLibrary`."""
        if self.device_of(array) == self.device:
            return array
        if array.nbytes > self._memory:
            raise MemoryError
        there = self.empty(array.shape, array.dtype)
        there[...] = array
        return there

    def pinned(self, size: int) -> npt.NDArray[np.uint8]:
        """See `CupyLibrary`."""
        return np.empty(size, np.uint8)

    def start_download(self, array: Any, pinned: npt.NDArray[Any]) -> Any:
        """See `CupyLibrary`; copied only when waited for, the latest that a device may do it."""
        return lambda: np.copyto(pinned, array)

    def start_upload(self, pinned: npt.NDArray[Any], array: Any) -> Any:
        """See `CupyLibrary`."""
        return lambda: np.copyto(array, pinned)

    def finish(self) -> None:
        """See `CupyLibrary`."""

    def trim(self) -> None:
        """See `CupyLibrary`."""

    def close(self) -> None:
        """See `CupyLibrary`."""
        self.staging.release()

    def free_bytes(self) -> int:
        """See `CupyLibrary`."""
        return self._memory

    def release(self) -> None:
        """See `CupyLibrary`."""
        self.staging.release()


class SimulatedLibrary(NumpyLibrary):
    """Numba's simulator: kernels as Python runs them, a thread of a block each."""

    name = "Numba's CUDA simulator"

    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """See `CupyLibrary`."""
        with one_kernel:
            _of_tuple(kernel)[1, 8](arguments)


def _of_tuple(kernel: Any) -> Any:
    """A kernel of the simulator that takes its arguments as one tuple.

    The simulator puts arrays that are arguments, but not those in tuples, into arrays of its own, which functions that
    are compiled for the CPU do not take.
    """

    def run(arguments: tuple[Any, ...]) -> None:
        kernel.fn(*arguments)

    # The simulator looks for its module among a kernel's own globals.
    there = FunctionType(run.__code__, kernel.fn.__globals__, closure=run.__closure__)
    return type(kernel)(there, device=False)


class DeviceFrame(pd.DataFrame):
    """A pandas DataFrame that stands for one of cuDF."""

    @property
    def _constructor(self) -> Any:
        return DeviceFrame


class PandasFrames(CudfFrames):
    """pandas in place of cuDF."""

    xp: Any = np
    frames: Any = pd

    def __init__(self, device: int | None = None) -> None:
        self.device = device

    def active(self) -> contextlib.AbstractContextManager[None]:
        """See `CudfFrames`."""
        return contextlib.nullcontext()

    def ran_out(self, error: Exception) -> bool:
        """See `CudfFrames`."""
        return type(error) is MemoryError

    def free_bytes(self) -> int:
        """See `CudfFrames`."""
        return 1 << 40

    def release(self) -> None:
        """See `CudfFrames`."""

    @staticmethod
    def may_hold(table: Any) -> bool:
        """See `CudfFrames`."""
        return isinstance(table, DeviceFrame)

    def holds(self, table: Any) -> bool:
        """See `CudfFrames`."""
        return isinstance(table, DeviceFrame)

    def beside(self, table: Any) -> CudfFrames:
        """See `CudfFrames`."""
        return self

    def array(self, series: Any) -> Any:
        """See `CudfFrames`."""
        return np.asarray(series).view(OnDevice)

    def full(self, size: int, value: int, dtype: Any) -> Any:
        """See `CudfFrames`."""
        return np.full(size, value, dtype).view(OnDevice)

    def to_arrow(self, values: Any) -> pa.Array:
        """See `CudfFrames`."""
        try:
            array = pa.array(values, from_pandas=True)
        except UnicodeEncodeError:
            # Like cuDF, which looks no closer at text.
            raw = pa.array([value.encode(errors="surrogateescape") for value in values])
            array = pc.cast(raw, options=pc.CastOptions(pa.string(), allow_invalid_utf8=True))
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array

    def frame(self, columns: dict[Any, Any], index: Any = None) -> Any:
        """See `CudfFrames`."""
        plain = {name: np.asarray(values) for name, values in columns.items()}
        return DeviceFrame(pd.DataFrame(plain, index=index, copy=False))

    def to_pandas(self, values: Any) -> Any:
        """See `CudfFrames`."""
        return pd.DataFrame(values) if isinstance(values, pd.DataFrame) else values

    def read_parquet(self, file: Path, column: str, start: int, stop: int) -> Any:
        """See `CudfFrames`; as cuDF, without dictionaries."""
        import pyarrow.parquet as pq

        with pq.ParquetFile(file) as opened:
            array = opened.read(columns=[column]).column(0).slice(start, stop - start)
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        return pd.Series(pd.arrays.ArrowExtensionArray(array))

    def read_lines(self, file: Path, start: int, size: int) -> Any:
        """See `CudfFrames`."""
        lines, place = [], 0
        for line in file.read_bytes().split(b"\n"):
            if start <= place < start + size:
                lines.append(line.decode(errors="surrogateescape"))
            place += len(line) + 1
        return pd.Series(lines, dtype=object)

    def open_writer(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> Any:
        """See `CudfFrames`."""
        return _Writer(sink, metadata, codec)


class _Writer:
    """In place of cuDF's writer."""

    def __init__(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> None:
        self._sink = sink
        self._codec = codec
        self._metadata = metadata
        self._writer: Any = None

    def write_table(self, frame: pd.DataFrame) -> None:
        """Write a frame after those before."""
        import pyarrow.parquet as pq

        table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(dict(self._metadata))
        self._writer = self._writer or pq.ParquetWriter(self._sink, table.schema, compression=self._codec)
        self._writer.write_table(table)

    def close(self) -> None:
        """Write the end of the file."""
        if self._writer is not None:
            self._writer.close()
