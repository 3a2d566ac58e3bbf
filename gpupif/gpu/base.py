"""What is asked of the libraries that work with a GPU: of those of arrays, CuPy, and those of frames, cuDF.

What only CuPy and cuDF have is in `cupy_arrays` and `cudf_frames`, so that all else can be tested without them.
"""

from __future__ import annotations

import contextlib
import io
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa


class DeviceMemoryError(Exception):
    """The device's memory is too small for what was asked of it; the host's may be fine."""


class RowGroups(NamedTuple):
    """Rows that agree in some words. words: of each group, by number; counts: the sum of its rows' counts, int64.

    of_row: the group of each row, in 32 bits.
    """

    words: dict[int, Any]
    counts: Any
    of_row: Any


class Staging(Protocol):
    """What large copies between the host and a device go through; see `staging`."""

    def download(self, array: Any, out: npt.NDArray[Any]) -> None:
        """Fill `out`, of one dimension or contiguous, with an array of the device."""

    def upload(self, array: Any) -> Any:
        """An array on the device with the contents of one of the host."""

    def release(self) -> None:
        """Give back memory that is kept for later."""


class DeviceLibrary(ABC):
    """What holds memory of one device."""

    @abstractmethod
    def active(self) -> contextlib.AbstractContextManager[Any]:
        """Make the device that of the calling thread for a while."""

    @abstractmethod
    def ran_out(self, error: Exception) -> bool:
        """Whether an error says that the device's memory is too small."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory of the device that can be taken."""

    @abstractmethod
    def release(self) -> None:
        """Give back memory that is kept for later."""


class Library(DeviceLibrary):
    """Arrays (`xp`, with NumPy's functions), launches and copies on one stream of one device.

    failures: what is raised where the device itself fails. device: its number. staging: what large copies between
    host and device go through.
    """

    xp: Any
    name: str
    device: int = 0
    failures: tuple[type[Exception], ...] = ()
    staging: Staging

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Make the device and stream those of the calling thread for a while; what is started then is done after.

        Raises DeviceMemoryError where the device's memory runs out.
        """
        try:
            with self._current():
                yield
        except Exception as error:
            if self.ran_out(error):
                raise DeviceMemoryError from error
            raise

    @abstractmethod
    def _current(self) -> contextlib.AbstractContextManager[None]:
        """As `active`, errors as they are."""

    @abstractmethod
    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel over so many items."""

    @abstractmethod
    def stable_order(self, keys: Any) -> Any:
        """Places of the keys in ascending order, equal ones as they stand."""

    @abstractmethod
    def group_rows(self, words: Mapping[int, Any], counts: Any) -> RowGroups:
        """Groups of rows that agree in all words, in any order, found by hash tables of the frame library.

        words: by any numbers, uint64, at least one; counts: how often each row occurs, int64, or None: once. At most
        2^31 - 1 rows.
        """

    @abstractmethod
    def on_device(self, array: Any) -> bool:
        """Whether an array is on a device already, this one or another."""

    @abstractmethod
    def device_of(self, array: Any) -> int | None:
        """The number of the device that an array is on; None for the host."""

    @abstractmethod
    def settle(self, array: Any) -> None:
        """Wait until whatever is to fill an array, on whichever device, has done so."""

    @abstractmethod
    def empty(self, shape: Any, dtype: Any) -> Any:
        """A new array on this device."""

    @abstractmethod
    def bring(self, array: Any) -> Any:
        """A small or device array on this device; one that is there already as it is."""

    def upload(self, array: Any) -> Any:
        """A large array on this device; one that is there already as it is."""
        return self.bring(array) if self.on_device(array) else self.staging.upload(array)

    def to_host(self, array: Any, out: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """A NumPy array with the same contents, `out` where it is given."""
        host = np.empty(array.shape, array.dtype) if out is None else out
        self.staging.download(array, host)
        return host

    @abstractmethod
    def pinned(self, size: int) -> npt.NDArray[np.uint8]:
        """So many bytes of the host's memory that copies of the device can go to while others work."""

    @abstractmethod
    def start_download(self, array: Any, pinned: npt.NDArray[Any]) -> Any:
        """Begin to copy an array to pinned memory; call what is returned to wait until it is done."""

    @abstractmethod
    def start_upload(self, pinned: npt.NDArray[Any], array: Any) -> Any:
        """Begin to copy pinned memory to an array; call what is returned to wait until it is done."""

    @abstractmethod
    def finish(self) -> None:
        """Wait until all that was started is done."""

    @abstractmethod
    def trim(self) -> None:
        """Give memory that is kept for later back where it is more than a library may keep between scores."""

    @abstractmethod
    def close(self) -> None:
        """Hand what the library works with on to the one that is opened next; it is not used any more."""

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Note that what is started now belongs to this stage; for benchmarks, which replace it."""
        return contextlib.nullcontext()


class FrameLibrary(DeviceLibrary):
    """Frames and series on one device; arrays of their columns are those of `xp`."""

    xp: Any
    frames: Any

    @staticmethod
    @abstractmethod
    def may_hold(table: Any) -> bool:
        """Whether a table is of this library, a frame or not; imports nothing."""

    @abstractmethod
    def holds(self, table: Any) -> bool:
        """Whether a table is a frame of this library."""

    @abstractmethod
    def beside(self, table: Any) -> FrameLibrary:
        """Return the library of the device that a frame lies on, whichever device is the current one."""

    @abstractmethod
    def array(self, series: Any) -> Any:
        """The values of a series without missing ones as an array, without a copy where that can be."""

    @abstractmethod
    def full(self, size: int, value: int, dtype: Any) -> Any:
        """A new array, all of it this value."""

    @abstractmethod
    def to_arrow(self, values: Any) -> pa.Array:
        """The values of a series or index on the host."""

    @abstractmethod
    def frame(self, columns: dict[Any, Any], index: Any = None) -> Any:
        """A frame of arrays, without copies of them."""

    @abstractmethod
    def to_pandas(self, values: Any) -> Any:
        """A frame or an index of the host with the same contents."""

    @abstractmethod
    def read_parquet(self, file: Path, column: str, start: int, stop: int) -> Any:
        """The rows start to stop - 1 of one column as a series."""

    @abstractmethod
    def read_lines(self, file: Path, start: int, size: int) -> Any:
        """The lines of a text file that begin within `size` bytes from `start` on, as a series of text."""

    @contextlib.contextmanager
    def parquet_writer(self, sink: IO[bytes], metadata: Mapping[bytes, bytes], codec: str) -> Iterator[Any]:
        """A function that writes frames to a Parquet file, one after the other; raises what the file raises.

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

    @abstractmethod
    def open_writer(self, sink: GuardedSink, metadata: Mapping[bytes, bytes], codec: str) -> Any:
        """A writer of the library's own, see `parquet_writer`."""


class GuardedSink(io.RawIOBase):
    """A file for C++ to write to, which cannot be told of an error: the first one is kept, and raised by `check`."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._written = 0
        self._error: BaseException | None = None

    def writable(self) -> bool:
        """As files have it."""
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
