"""Compile every CUDA kernel to PTX and machine code without a GPU; fail on register spills.

Usage: python tests/cuda/compile_check.py 7.5 8.0 9.0 10.0   (compute capabilities)
Needs pip install '.[cuda-check]'.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import formula_kernels as kernels
import numba.cuda.dispatcher
from numba import cuda, float64, int64, uint64

MOST_REGISTERS = 128
ints, floats, words = int64[::1], float64[::1], uint64[::1]
SIGNATURES = {
    "measure_cells": (int64, ints, ints, floats, float64, floats, floats),
    "gain_of_single_values": (ints, ints, floats, floats, float64, floats),
    "hash_words": (words, int64, words),
}


def find_ptxas() -> str:
    """The assembler that the package nvidia-cuda-nvcc brings."""
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/*/bin/ptxas"):
            return str(found)
    sys.exit("compile check: ptxas was not found; run pip install '.[cuda-check]'")


def check(name: str, capability: tuple[int, int], ptxas: str) -> bool:
    """Compile one kernel for one compute capability; print registers and spills."""
    # A kernel that calls device functions asks for the current device: say which it would be.
    numba.cuda.dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=capability)
    target = f"sm_{capability[0]}{capability[1]}"
    code, _ = cuda.compile(
        getattr(kernels, name).py_func, SIGNATURES[name], cc=capability, abi="numba", device=False, output="ptx"
    )
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(code)
        file.flush()
        command = [ptxas, "-v", f"-arch={target}", file.name, "-o", os.devnull]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    log = result.stderr + result.stdout
    registers = re.search(r"Used (\d+) registers", log)
    spills = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", log)
    fine = (
        result.returncode == 0
        and f".target {target}" in code
        and registers is not None
        and int(registers[1]) <= MOST_REGISTERS
        and spills is not None
        and spills.groups() == ("0", "0")
    )
    shown = f"{registers[1]} registers" if registers else log.strip()
    print(f"{target:7} {name:24} {'ok ' if fine else 'BAD'} {shown}, spills {spills.groups() if spills else 'unknown'}")
    return fine


def main() -> None:
    """Check all kernels for the compute capabilities named on the command line."""
    capabilities = [tuple(map(int, text.split("."))) for text in sys.argv[1:]]
    kernels_here = {name for name, value in vars(kernels).items() if isinstance(value, cuda.dispatcher.CUDADispatcher)}
    if not capabilities or kernels_here != set(SIGNATURES):
        sys.exit(f"compile check: name compute capabilities, and give a signature to each of {kernels_here}")
    ptxas = find_ptxas()
    results = [check(name, capability, ptxas) for capability in capabilities for name in SIGNATURES]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
