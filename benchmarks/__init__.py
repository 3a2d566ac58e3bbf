"""Benchmarks that anyone can run: `python -m benchmarks.engines`, `python -m benchmarks.scale`."""

import sys
from pathlib import Path

# The gpupif that is installed is measured: the folder of that name beside this one has no kernels in it.
_ROOT = str(Path(__file__).parent.parent)
if _ROOT in sys.path:
    sys.path.remove(_ROOT)
    sys.path.append(_ROOT)
