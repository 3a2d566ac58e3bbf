"""The benchmark of the GPU with its stand-in: python tests/cuda/benchmark.py --rows 40 --no-tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent.parent))

from benchmarks import gpu
from tests.helpers.gpu import without_gpu

if __name__ == "__main__":
    without_gpu.install()
    gpu.COMMAND = (__file__,)
    gpu.main()
