"""A device that stands in for a GPU, and whose arrays are measured."""

from __future__ import annotations

import contextlib
import mmap
import tracemalloc

import numpy as np

from tests.helpers.gpu.without_gpu import DeviceLibrary


class Measured(DeviceLibrary):
    """peak: bytes of arrays that were there at the same time at most; most: the same by stage.

    What a launch takes meanwhile is left out: what stands in copies what a kernel gets. What it keeps of what it
    compiled is not, so that all has to be compiled before. The host's arrays that copies go through are left out too.
    NumPy's sort has other buffers than CuPy's: a copy of the keys, and keys and places a second time each.
    """

    def __init__(self, memory=1 << 40):
        super().__init__(memory=memory)
        self.peak = 0
        self.most = {}
        self._stage = None

    @contextlib.contextmanager
    def measuring(self):
        """Measure for a while."""
        tracemalloc.start()
        try:
            yield
            self.note()
        finally:
            tracemalloc.stop()

    @contextlib.contextmanager
    def stage(self, name):
        self.note()
        self._stage = name
        yield
        self.note()
        self._stage = None

    def note(self):
        """Look at what there was since the last look."""
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        self.peak = max(most, self.peak)
        if self._stage is not None:
            self.most[self._stage] = max(most, self.most.get(self._stage, 0))

    def pinned(self, size):
        # Which is not traced.
        return np.frombuffer(mmap.mmap(-1, size), np.uint8)

    def launch(self, *arguments):
        self.note()
        super().launch(*arguments)
        # No array is made by a launch.
        tracemalloc.reset_peak()

    def stable_order(self, keys):
        buffers = np.empty((len(keys), 8 + 2 * keys.itemsize), np.uint8)
        order = super().stable_order(keys)
        del buffers
        return order
