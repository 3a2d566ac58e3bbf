"""Compilation of kernels by numba-cuda and NVVM. Only this module uses private parts of numba-cuda.

A product and a sum are never contracted to one operation: the CPU, for which the same functions are compiled, makes
two, and both must give the same bits. Needs no device.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

from ..errors import DeviceError
from ..utils.versions import installed_version

# Options of numba-cuda, whatever the environment sets, and further options of NVVM.
NUMBA_OPTIONS = {"opt": True, "debug": False}
NVVM_OPTIONS = {"fma": False}
MEND = (
    "Install what gpupif is known to work with: pip install 'gpupif[gpu-cu13]' (or gpu-cu12); or use "
    "gpupif.config(device='cpu')."
)
# Least capability for which numba-cuda uses features that only devices of exactly one capability have.
SPECIFIC = (9, 0)

# numba-cuda compiles one kernel at a time, but its libraries change while another one is linked to the same functions.
_compiling = threading.RLock()


class CompiledKernel:
    """A kernel compiled for arguments of some Numba types and a compute capability.

    Raise DeviceError for an unknown version of numba-cuda.

    name: the kernel's name in the code. modules: LLVM IR as text, of the kernel and of all functions that it calls.
    """

    def __init__(self, kernel: Any, types: Sequence[Any], capability: tuple[int, int]) -> None:
        with _private_names():
            from numba.cuda.compiler import _compile_pyfunc_with_fixup
        with _compiling, _as_if_on(capability):
            self._library, _ = _compile_pyfunc_with_fixup(
                kernel.py_func, tuple(types), device=False, cc=capability, abi="numba", **NUMBA_OPTIONS
            )
            with _private_names():
                self._library._nvvm_options.update(NVVM_OPTIONS)
                self.name: str = self._library._entry_name
            self.modules: list[str] = self._library.llvm_strs
        self._kernel, self._target = kernel.py_func.__name__, architecture(capability)

    def ptx(self) -> str:
        """Return the PTX that NVVM makes of the modules. Raise DeviceError if it fails."""
        return self._made(lambda: self._library.get_asm_str(cc=self._target))  # type: ignore[no-any-return]

    def cubin(self) -> bytes:
        """Return the machine code. Raise DeviceError if NVVM or the linker fails."""
        return self._made(lambda: self._library.get_cubin(cc=self._target).code)  # type: ignore[no-any-return]

    def _made(self, make: Callable[[], Any]) -> Any:
        with _compiling:
            try:
                return make()
            except Exception as error:
                # The toolkit's, which has many ways to say that it is missing or too old for the device.
                raise DeviceError(
                    f"the kernel {self._kernel} cannot be compiled for sm_{''.join(map(str, self._target))} with "
                    f"numba-cuda {installed_version('numba-cuda')}: {' '.join(str(error).split())}. {MEND}"
                ) from error


def architecture(capability: tuple[int, int]) -> tuple[int, int, str]:
    """Return the target of compilation for a compute capability, as numba-cuda expects it."""
    return (*capability, "a" if capability >= SPECIFIC else "")


@contextlib.contextmanager
def _as_if_on(capability: tuple[int, int]) -> Iterator[None]:
    """Have numba-cuda compile called functions for this capability, not for the current device's, in the context.

    Other threads that compile with numba-cuda meanwhile still get the capability of their device.
    """
    with _private_names():
        from numba.cuda import dispatcher

        asked = dispatcher.get_current_device
    compiling = threading.get_ident()

    def current() -> Any:
        return SimpleNamespace(compute_capability=capability) if threading.get_ident() == compiling else asked()

    dispatcher.get_current_device = current
    try:
        yield
    finally:
        dispatcher.get_current_device = asked


@contextlib.contextmanager
def _private_names() -> Iterator[None]:
    try:
        yield
    except (ImportError, AttributeError) as error:
        raise DeviceError(
            f"numba-cuda {installed_version('numba-cuda')} cannot compile kernels as they are needed: {error}. {MEND}"
        ) from error
