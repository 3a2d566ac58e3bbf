"""What gpupif runs on: versions, processor, memory, GPU."""

from __future__ import annotations

import os
import platform
from pathlib import Path

from . import __version__
from .device import cuda_status
from .engines.workers import default_threads
from .versions import installed_version

PACKAGES = ("numba", "numpy", "pandas", "pyarrow", "polars", "cupy", "numba-cuda", "cudf")


def describe() -> dict[str, str]:
    """Facts by name, in the order to show them."""
    cuda = cuda_status()
    facts = {"gpupif": __version__, "Python": platform.python_version()}
    facts |= {package: installed_version(package) or "not installed" for package in PACKAGES}
    facts["CPU"] = f"{_cpu_model()}, {default_threads()} threads used"
    facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    facts["GPU"] = ", ".join(f"{gpu}{gpu.reason and ', ' + gpu.reason}" for gpu in cuda.gpus) or "none"
    if cuda.usable:
        from .engines.cuda import whole_tables

        facts["GPU memory"] = "; ".join(f"GPU {device}: {whole_tables(device)}" for device in cuda.devices)
    facts["engine"] = "cuda" if cuda.usable else f"cpu (CUDA is not used: {cuda.reason})"
    return facts


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
