"""A kernel compiled for arguments of some types, to be run here."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm

from gpupif.gpu.compile import CompiledKernel
from gpupif.gpu.kernel_arguments import pack

from . import ir
from .arrays import Copies
from .errors import DeviceCodeError
from .fibers import Code, Order, TouchedError, run_grid, symbols
from .objects import EXPORTED, object_code

# What kernels are compiled for; IR does not differ between those that are supported.
CAPABILITY = (9, 0)

_linker = llvm.create_lljit_compiler()
_numbers = itertools.count()


class HostFunction:
    """A kernel for arguments of these Numba types. first: the test that was the first to launch it."""

    def __init__(self, kernel: Any, types: Sequence[Any]) -> None:
        compiled = CompiledKernel(kernel, types, CAPABILITY)
        modules = ir.portable(compiled.modules, compiled.name)
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
