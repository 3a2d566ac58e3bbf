"""The command `gpupif info`: what gpupif runs on, versions, processor, memory, GPU."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import typer

from .._version import __version__
from ..gpu.status import cuda_status
from ..utils.display import json_text
from ..utils.versions import installed_version
from .options import Given

PACKAGES = ("numba", "numpy", "pandas", "pyarrow", "polars", "cupy", "numba-cuda", "cudf")
# What a package is needed for that is not always needed.
NEEDED_FOR = {
    "polars": "frames of Polars",
    "cupy": "GPUs",
    "numba-cuda": "GPUs",
    "cudf": "frames of cuDF, reading files on the GPU, grouping rows there by hashing (--gpu-grouping cudf)",
}


def info(given: Given) -> None:
    """Show versions, CPU and GPU: which engine runs, and where that is not CUDA, exactly why not."""
    facts = describe()
    if given.as_json:
        typer.echo(json_text(facts))
        return
    width = max(map(len, facts))
    for name, fact in facts.items():
        typer.echo(f"{name:{width}}  {fact}")


def describe() -> dict[str, str]:
    """Return facts by name, in the order to show them."""
    from ..engines.choose import LEAST_CELLS
    from ..rows.threads import default_threads

    cuda = cuda_status()
    facts = {"gpupif": __version__, "Python": platform.python_version()}
    facts |= {package: _version(package) for package in PACKAGES}
    if cuda.no_cudf and installed_version("cudf"):
        facts["cudf"] += f", not used: {cuda.no_cudf}"
    facts["CPU"] = f"{_cpu_model()}, {default_threads()} threads used"
    facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    several = len(cuda.gpus) > 1
    gpus = [f"GPU {number}: {gpu.described}" if several else gpu.described for number, gpu in enumerate(cuda.gpus)]
    facts["GPU"] = "; ".join(gpus) or "none"
    if cuda.usable:
        from ..engines.cuda.engine import whole_tables

        facts["GPU memory"] = "; ".join(f"GPU {device}: {whole_tables(device)}" for device in cuda.devices)
    fewer = f"cuda (the CPU for tables of fewer than {LEAST_CELLS:,} cells, unless --device cuda asks for a GPU)"
    facts["engine"] = fewer if cuda.usable else f"cpu (CUDA is not used: {cuda.reason})"
    return facts


def _version(package: str) -> str:
    """Return the version of a package, or that it is missing, and what it is needed for."""
    needed = f": needed for {NEEDED_FOR[package]}" if package in NEEDED_FOR else ""
    return installed_version(package) or f"not installed{needed}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
