"""What the CUDA engine asks of the libraries that it works with, and which they are: CuPy, cuDF and a device.

What only CuPy and cuDF have is in `cuda_cupy` and `cuda_frames`, so that all else can be tested without them.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from .cudf_frames import FrameLibrary
    from .staging import Staging

# Streams of each device: while one computes, the other copies.
STREAMS = 2


class DeviceMemoryError(Exception):
    """The device's memory is too small for what was asked of it; the host's may be fine."""


class RowGroups(NamedTuple):
    """Rows that agree in some words. words: of each group, by number; counts: the sum of its rows' counts, int64.

    of_row: the group of each row, in 32 bits.
    """

    words: dict[int, Any]
    counts: Any
    of_row: Any


class Library(ABC):
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
    def ran_out(self, error: Exception) -> bool:
        """Whether an error says that the device's memory is too small."""

    @abstractmethod
    def launch(self, kernel: Any, size: int, *arguments: Any) -> None:
        """Run a kernel over so many items."""

    @abstractmethod
    def launch_blocks(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        """Run a kernel in blocks of exactly so many threads."""

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

    def stage(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Note that what is started now belongs to this stage; for benchmarks, which replace it."""
        return contextlib.nullcontext()

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory of the device that can be taken."""

    @abstractmethod
    def release(self) -> None:
        """Give back memory that is kept for later."""


def open_libraries(devices: Sequence[int]) -> list[Library]:
    """STREAMS for each of these devices, all first streams first."""
    from .cupy_arrays import CupyLibrary

    return [CupyLibrary(device) for _ in range(STREAMS) for device in devices]


def frame_library(device: int | None = None) -> FrameLibrary:
    """Frames on this device, by default the current one."""
    from .cudf_frames import CudfFrames

    return CudfFrames(device)
