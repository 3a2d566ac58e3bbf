"""Measure the host's cost of launching a kernel: `python -m benchmarks.launch`.

The kernels of a plain score, through numba-cuda's dispatcher and through the engine's own launches, with the driver's
part left out of both; then what the kernels cost a process that finds none compiled, and one that does. Needs no GPU,
but pip install '.[cuda-check]'.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

from numba import types
from numba.cuda import codegen, dispatcher

try:
    from gpupif.gpu import launch as cuda_launch
except ModuleNotFoundError as error:
    sys.exit(f"benchmarks.launch: the package of {error.name} is not installed. Run pip install '.[cuda-check]'.")
from gpupif.gpu.kernel_cache import code_of
from gpupif.kernels.cuda import cohorts, rows
from tests.cuda.compile_check import SIGNATURES
from tests.helpers.gpu.stand_ins import arguments_of

CAPABILITY = (9, 0)
LAUNCHES = 1000
BLOCKS, THREADS = 128, 256
# Of kernels that are compiled for several types, the one that a table of few values needs.
PLAIN = {rows: ("pack_column uint8", "mark_heads", "number_rows"), cohorts: tuple(SIGNATURES[cohorts])}


def plain_kernels() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the kernels of a plain score, and the types of their arguments."""
    for module, names in PLAIN.items():
        for name in names:
            yield getattr(module, name.split()[0]), tuple(SIGNATURES[module][name])


def leave_out_the_driver() -> None:
    """Replace the driver by stubs, so that both ways of launching end before its calls."""
    found = SimpleNamespace(kernel=None, module=None)
    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    dispatcher.launch = lambda *arguments: None
    dispatcher._Kernel.initialize_once = lambda *arguments: None
    codegen.CUDACodeLibrary.get_asm_str = lambda library, cc=None: ""
    codegen.CUDACodeLibrary.get_cufunc = lambda library: found
    vars(cuda_launch)["driver"] = SimpleNamespace(
        cuLibraryLoadData=lambda *arguments: (0, None),
        cuLibraryGetKernel=lambda *arguments: (0, None),
        cuLaunchKernel=lambda *arguments: (0,),
    )


def microseconds(launch: Callable[[], None]) -> float:
    """Measure the processor time of one launch, with all kernels compiled."""
    launch()
    start = time.process_time()
    for _ in range(LAUNCHES):
        launch()
    return (time.process_time() - start) / LAUNCHES * 1e6


def arrays_in(kind: Any) -> int:
    """Count the arrays in an argument of a type."""
    return sum(map(arrays_in, kind)) if isinstance(kind, types.BaseTuple) else int(isinstance(kind, types.Array))


def print_launches() -> None:
    """Print both ways side by side."""
    leave_out_the_driver()
    print(f"{'kernel':16} {'arrays':>6} {'numba-cuda':>12} {'gpupif':>12}   (microseconds a launch)")
    for kernel, signature in plain_kernels():
        arguments = arguments_of(signature)
        old = microseconds(partial(kernel[BLOCKS, THREADS], *arguments))
        new = microseconds(partial(cuda_launch.launch, kernel, arguments, BLOCKS, THREADS, 0, CAPABILITY))
        print(f"{kernel.py_func.__name__:16} {sum(map(arrays_in, signature)):6} {old:12.0f} {new:12.0f}")


def print_compiling() -> None:
    """Print how long a process waits for the code of all these kernels, once numba-cuda is imported."""
    start = time.perf_counter()
    for kernel, signature in plain_kernels():
        code_of(kernel, signature, CAPABILITY)
    print(f"{time.perf_counter() - start:.3f}")


def main() -> None:
    """Print all figures."""
    if sys.argv[1:] == ["compile"]:
        print_compiling()
        return
    print_launches()
    with tempfile.TemporaryDirectory() as folder:
        for which in ("first", "second"):
            command = [sys.executable, "-m", "benchmarks.launch", "compile"]
            environment = {**os.environ, "XDG_CACHE_HOME": folder}
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            print(f"code of all of them, {which} process: {done.stdout.strip()} s")


if __name__ == "__main__":
    main()
