"""A kernel compiled for arguments of some types, to be run here."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from gpupif.gpu import compile as gpu_compile
from gpupif.gpu.compile import CompiledKernel
from gpupif.gpu.kernel_arguments import pack
from gpupif.kernels.cache import CACHE_FOLDER, write_whole
from gpupif.utils.versions import installed_version

from . import ir
from .arrays import Copies
from .errors import DeviceCodeError
from .fibers import Code, Order, TouchedError, run_grid, symbols
from .objects import EXPORTED, object_code

# What kernels are compiled for; IR does not differ between those that are supported.
CAPABILITY = (9, 0)

_linker = llvm.create_lljit_compiler()
_numbers = itertools.count()


def is_ours(kernel: Any) -> bool:
    """Whether a kernel is the package's, and not a test's."""
    return bool(kernel.py_func.__module__.startswith("gpupif."))


def modules_of(kernel: Any, types: Sequence[Any], folder: str = CACHE_FOLDER) -> list[str]:
    """Return a kernel's IR, see `ir.portable`: that of our kernels from a file, in the folder of their sources."""
    function = kernel.py_func
    folder = folder if is_ours(kernel) else ""
    key = repr((function.__module__, function.__qualname__, types, installed_version("numba-cuda"), _compiled_by()))
    file = Path(folder) / f"{function.__name__}-{hashlib.sha256(key.encode()).hexdigest()[:32]}.ir.json"
    if folder and file.exists():
        return list(json.loads(file.read_text()))
    compiled = CompiledKernel(kernel, types, CAPABILITY)
    modules = ir.portable(compiled.modules, compiled.name)
    if folder:
        write_whole(file, json.dumps(modules).encode())
    return modules


@functools.cache
def _compiled_by() -> tuple[str, ...]:
    """Return the text of what makes the IR."""
    return tuple(Path(str(module.__file__)).read_text() for module in (gpu_compile, ir))


class HostFunction:
    """A kernel for arguments of these Numba types. first: the test that was the first to launch it."""

    def __init__(self, kernel: Any, types: Sequence[Any]) -> None:
        modules = modules_of(kernel, types)
        library = llvm.JITLibraryBuilder().add_object_img(object_code(modules))
        for name, address in symbols().items():
            library.import_symbol(name, address)
        for name in EXPORTED:
            library.export_symbol(name)
        # Kept, for so long as it is there the code is.
        self._linked = library.link(_linker, f"kernel {next(_numbers)}")
        self._words = len(ir.parameters(modules))
        barriers = any("@host.barrier0" in text for text in modules)
        self._code = Code(*(self._linked[name] for name in EXPORTED), barriers)
        self._name = kernel.py_func.__name__
        self.first = os.environ.get("PYTEST_CURRENT_TEST", "")

    def __call__(self, blocks: int, threads: int, arguments: Sequence[Any], order: Order) -> None:
        """Run so many blocks of so many threads in an order.

        Raises DeviceCodeError, with the kernel's name, for what `Copies` and `run_grid` find.
        """
        try:
            with Copies(arguments) as copies:
                words = bytes(pack(arguments, copies.address))
                if len(words) != 8 * self._words:
                    raise DeviceCodeError(f"has {self._words} parameters, and is given {len(words) // 8}")
                try:
                    run_grid(self._code, words, blocks, threads, order)
                except TouchedError as error:
                    raise DeviceCodeError(f"touches memory {copies.beside(error.address)}") from None
        except DeviceCodeError as error:
            raise DeviceCodeError(f"kernel {self._name}: {error}") from None
