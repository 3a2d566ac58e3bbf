"""These tests need the CUDA simulator in a process of its own: NUMBA_ENABLE_CUDASIM=1 pytest tests/cuda."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1" else ["test_*.py"]
