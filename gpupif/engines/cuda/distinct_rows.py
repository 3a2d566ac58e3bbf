"""Rows that differ from all others on some columns, found on GPUs: row keys in order, those unlike their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import numpy.typing as npt

from ...gpu.base import DeviceMemoryError, Library
from ...rows.keys import KeyLayout
from ..cpu.count_tables import key_layout
from .rows import find_runs, pack_device_keys, sort_keys


class _Device:
    """One device with the rows on it, as soon as they are asked for."""

    def __init__(self, library: Library, codes: Sequence[Any], often: npt.NDArray[np.uint8]) -> None:
        self.library = library
        self._host = codes, often
        self._there: tuple[list[Any], Any] | None = None

    def find(self, columns: Sequence[int], layout: KeyLayout, known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
        """See `Singles`; raises DeviceMemoryError."""
        library, xp = self.library, self.library.xp
        with library.active():
            if self._there is None:
                codes, often = self._host
                self._there = [library.upload(values) for values in codes], library.upload(often).astype("int64")
            codes, often = self._there
            keys = pack_device_keys(
                library, {place: codes[column] for place, column in enumerate(columns)}, len(often), layout
            )
            order = sort_keys(library, keys, layout)
            runs = find_runs(library, keys, often, order, layout.masks(layout.fields))
            del keys
            # What is left is one row, and one of the table.
            rows = order[runs.starts[:-1]][runs.sizes == 1]
            bits = library.upload(known)[rows >> 6] >> (rows & 63).astype("uint64")
            rows = xp.sort(rows[(bits & 1) == 0])
            return library.to_host(rows.astype("uint32"))

    def forget(self) -> None:
        """Give back memory."""
        self._there = None
        self.library.release()


class CudaSingles:
    """See `Singles`; each search on the first device that is free.

    codes (columns, rows): of rows that all differ.
    """

    def __init__(
        self,
        libraries: Sequence[Library],
        codes: Sequence[Any],
        cardinalities: Sequence[int],
        often: npt.NDArray[np.uint8],
    ) -> None:
        self._cardinalities = cardinalities
        self._idle: SimpleQueue[_Device] = SimpleQueue()
        for library in {library.device: library for library in reversed(libraries)}.values():
            self._idle.put(_Device(library, codes, often))

    def find(self, columns: Sequence[int], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32] | None:
        """See `Singles`."""
        layout = key_layout([self._cardinalities[column] for column in columns])
        device = self._idle.get()
        try:
            return device.find(columns, layout, known)
        except DeviceMemoryError:
            device.forget()
            return None
        finally:
            self._idle.put(device)
