"""The libraries that work with a GPU, chosen: CuPy for arrays, cuDF for frames."""

from __future__ import annotations

from collections.abc import Sequence

from .base import FrameLibrary, Library

# Streams of each device: while one computes, the other copies.
STREAMS = 2


def open_libraries(devices: Sequence[int]) -> list[Library]:
    """STREAMS for each of these devices, all first streams first."""
    from .cupy_arrays import CupyLibrary

    return [CupyLibrary(device) for _ in range(STREAMS) for device in devices]


def frame_library(device: int | None = None) -> FrameLibrary:
    """Frames on this device, by default the current one."""
    from .cudf_frames import CudfFrames

    return CudfFrames(device)
