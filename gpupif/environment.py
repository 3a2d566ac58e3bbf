"""What gpupif runs on: versions, processor, memory, GPU."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import __version__
from .device import cuda_status
from .engines.workers import default_threads

PACKAGES = ("numba", "numpy", "pandas", "pyarrow", "polars", "cupy", "cudf")


def describe() -> dict[str, str]:
    """Facts by name, in the order to show them."""
    cuda = cuda_status()
    facts = {"gpupif": __version__, "Python": platform.python_version()}
    facts |= {package: _version(package) for package in PACKAGES}
    facts["CPU"] = f"{_cpu_model()}, {default_threads()} threads used"
    facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    facts["GPU"] = ", ".join(cuda.gpus) or "none"
    facts["engine"] = "cuda" if cuda.usable else f"cpu (CUDA is not used: {cuda.reason})"
    return facts


def _version(package: str) -> str:
    for name in (package, f"{package}-cu13", f"{package}-cu12", f"{package}-cuda13x", f"{package}-cuda12x"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
