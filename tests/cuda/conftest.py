"""Fixtures for tests of the CUDA engine. They need a GPU or its stand-in: GPUPIF_DEVICE_ON_HOST=1 pytest."""

from __future__ import annotations

import pytest

from gpupif.datasets import census
from gpupif.gpu.open import frame_library
from tests.helpers.gpu.numpy_device import DeviceFrame


@pytest.fixture
def library():
    """Return the frame library of the device."""
    return frame_library()


@pytest.fixture(params=["pandas", "device", "parquet", "csv"])
def table(request, tmp_path, monkeypatch):
    """A table that comes from a place, beside arrays of the device that refuse those of the host."""
    from tests.helpers.gpu.strict import StrictFrames

    monkeypatch.setattr("gpupif.frames.open.frame_library", StrictFrames)
    frame = census(60)
    if request.param in ("parquet", "csv"):
        file = tmp_path / f"t.{request.param}"
        {"parquet": frame.to_parquet, "csv": frame.to_csv}[request.param](file, index=False)
        return file
    return frame if request.param == "pandas" else DeviceFrame(frame)
