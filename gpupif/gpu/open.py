"""The libraries of GPUs, opened: CuPy for arrays, cuDF for frames. Tests replace their classes in their modules."""

from __future__ import annotations

from collections.abc import Sequence

from . import cudf_frames, cupy_arrays

# Streams of each device: while one computes, the other copies.
STREAMS = 2


def open_libraries(devices: Sequence[int]) -> list[cupy_arrays.CupyLibrary]:
    """Return STREAMS libraries for each of these devices, the first of each device first."""
    return [cupy_arrays.CupyLibrary(device) for _ in range(STREAMS) for device in devices]


def frame_library(device: int | None = None) -> cudf_frames.CudfFrames:
    """Return the frame library of this device, by default the current device."""
    return cudf_frames.CudfFrames(device)
