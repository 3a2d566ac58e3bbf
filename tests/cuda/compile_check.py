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
from types import ModuleType

from numba import cuda, float64, int8, int32, int64, types, uint64

from gpupif.gpu.compile import CompiledKernel, architecture
from gpupif.kernels.cohorts import Cells, Values, Wanted
from gpupif.kernels.cuda import any_known, cohorts, rows, wildcards
from gpupif.kernels.walks import Axes

MOST_REGISTERS = 128
ints, floats, words = int64[::1], float64[::1], uint64[::1]
# Places of rows: of 4 bytes, and of 8 where there are more rows than these can number.
PLACES = {"": int32[::1], " int64": ints}
keys, floats_of = uint64[:, ::1], float64[:, ::1]
# Members, ranks and parts of sums.
sums = types.Tuple((int32[::1], int64[:, ::1], int64[:, ::1]))
columns = types.Tuple((words, ints))
field = types.UniTuple(int64, 2)


def of(kind: type, **nested: types.Type) -> types.NamedTuple:
    """Return the Numba type of a named tuple of arrays, from the declared types of its fields."""
    declared = kind.__annotations__
    return types.NamedTuple(
        [nested.get(name) or (floats if "float" in str(declared[name]) else ints) for name in declared], kind
    )


axes, wanted, cells = of(Axes), of(Wanted), of(Cells)
values = of(Values, axes=axes)
# Types of the arguments of each kernel.
SIGNATURES = {
    rows: {
        **{
            f"pack_column {code}": (code[::1], int64, words)
            for code in (types.uint8, types.uint16, types.uint32, types.uint64)
        },
        **{f"mark_heads{of_type}": (keys, places, words, int8[::1]) for of_type, places in PLACES.items()},
        **{f"number_rows{of_type}": (places, places, places) for of_type, places in PLACES.items()},
    },
    cohorts: {
        **{
            f"{name}{of_type}": types_of(types.Tuple((places, ints)), places)
            for of_type, places in PLACES.items()
            for name, types_of in {
                "describe_cells": lambda runs, places: (runs, places, columns, field, ints, values, cells, int32[::1]),
                "look_ahead": lambda runs, places: (places, values, wanted, cells, sums),
                "add_cells": lambda runs, places: (places, values, wanted, cells, sums),
                "walk_all": lambda runs, places: (types.Tuple((places, floats_of)), values, wanted, cells),
                "score_cells": lambda runs, places: (runs, places, values, wanted, cells, floats_of, floats_of),
            }.items()
        },
        "finish_runs": (ints, values, wanted, sums, floats_of),
    },
    wildcards: {
        "mark_missing": (keys, keys, words, keys),
        "mask_rows": (keys, int64, keys, int64, keys),
        "find_lists": (keys, keys, types.UniTuple(ints, 3), ints, ints, ints),
        "list_cells": (int64, int64, types.UniTuple(ints, 2), types.Tuple((ints, words, ints)), int64, words, ints),
        "score_rows": (
            types.Tuple((ints, ints, words, ints)),
            int64,
            int64,
            types.UniTuple(ints, 4),
            values,
            wanted,
            cells,
            float64[:, ::1],
            floats,
            float64[:, ::1],
        ),
    },
    any_known: {
        f"{name} {number}": (number[::1], *types_of(number[::1]))
        for number in (types.uint32, types.int64)
        for name, types_of in {
            "place_pairs": lambda numbers: (words, field, int64, words),
            "mark_pairs": lambda numbers: (words, field, int64, types.uint8[::1]),
            "number_pairs": lambda numbers: (words, field, int64, numbers, numbers),
            "count_combinations": lambda numbers: (ints, ints, int64[:, ::1]),
            "aggregate_scores": lambda numbers: (float64[:, ::1], ints, float64[:, ::1], float64[:, ::1]),
        }.items()
    },
}


def find_ptxas() -> str:
    """Return the assembler in the package nvidia-cuda-nvcc."""
    for folder in map(Path, sys.path):
        for found in folder.glob("nvidia/*/bin/ptxas"):
            return str(found)
    sys.exit("compile check: ptxas was not found; run pip install '.[cuda-check]'")


def check(module: ModuleType, called: str, capability: tuple[int, int], ptxas: str) -> bool:
    """Compile one kernel, for the types it is called with, for one compute capability; print registers and spills."""
    name = called.split()[0]
    target = f"sm_{''.join(map(str, architecture(capability)))}"
    code = CompiledKernel(getattr(module, name), SIGNATURES[module][called], capability).ptx()
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
    print(
        f"{target:7} {called:24} {'ok ' if fine else 'BAD'} {shown}, spills {spills.groups() if spills else 'unknown'}"
    )
    return fine


def kernels_of(module: ModuleType) -> set[str]:
    """Return the names of a module's kernels, without functions that only kernels call."""
    return {
        name
        for name, value in vars(module).items()
        if isinstance(value, cuda.dispatcher.CUDADispatcher) and not value.targetoptions.get("device")
    }


def main() -> None:
    """Check all kernels for the compute capabilities named on the command line."""
    capabilities = [tuple(map(int, text.split("."))) for text in sys.argv[1:]]
    missing = [
        name
        for module, signatures in SIGNATURES.items()
        for name in kernels_of(module) ^ {called.split()[0] for called in signatures}
    ]
    if not capabilities or missing:
        sys.exit(f"compile check: name compute capabilities, and give a signature to each kernel; {missing}")
    ptxas = find_ptxas()
    results = [
        check(module, name, capability, ptxas)
        for capability in capabilities
        for module, names in SIGNATURES.items()
        for name in names
    ]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
