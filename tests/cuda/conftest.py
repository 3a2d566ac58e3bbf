"""These tests need a GPU, or the CUDA simulator in a process of its own: NUMBA_ENABLE_CUDASIM=1 pytest tests/cuda."""

from __future__ import annotations

import importlib.util
import os

from gpupif.device import cuda_status

collect_ignore = []
if os.environ.get("NUMBA_ENABLE_CUDASIM") != "1":
    collect_ignore.append("test_engine.py")
    if not cuda_status().usable:
        collect_ignore.append("test_device_frames.py")
# Without cuDF, which brings CuPy, there is nothing to hold calls against.
if importlib.util.find_spec("cudf") is None or os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
    collect_ignore.append("test_signatures.py")
