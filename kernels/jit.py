"""How kernels are compiled for the CPU: on first use, without the GIL, kept on disk between runs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

from numba import typeof
from numba.core import config
from numba.core.registry import CPUDispatcher

from gpupif.kernels.cache import CACHE_FOLDER, KernelCache

# nogil with plain loops: the engine's threads hand each call a range, so no Numba threading layer is involved and a
# caller's threads (a Dask worker's, say) may score at the same time. error_model="numpy" leaves out the checks for
# division by zero, as a CUDA kernel does. Nothing calls kernels as C functions. Kernels neither make arrays nor hand
# them on, so that no references are to be counted: half of what there would be to compile.
OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": None,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


class Kernel(CPUDispatcher):
    """A compiled function, called like any other; by the first call with arguments of other types it is compiled."""

    def enable_caching(self) -> None:
        if CACHE_FOLDER:
            self._cache = KernelCache(self.py_func, self.targetoptions, CACHE_FOLDER)

    def compile(self, sig: Any) -> Any:
        """As of any dispatcher, without looking for garbage meanwhile: a tenth of the time, and there is none."""
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()

    def compile_for(self, arguments: Sequence[Any]) -> None:
        """Compile it, or load what is kept, for arguments of the types of these."""
        self.compile(tuple(map(typeof, arguments)))

    def is_kept_for(self, arguments: Sequence[Any]) -> bool:
        """Whether that was done before, by whatever process, so that it is loaded at once."""
        return bool(CACHE_FOLDER) and self._cache.has_overload(tuple(map(typeof, arguments)), self.targetctx)


class Subroutine(Kernel):
    """A kernel that only kernels call."""

    def __call__(self, *_: Any) -> None:
        # Without what hands over arguments of Python, the process would die of it.
        name = self.py_func.__name__
        raise TypeError(f"{name} is called by kernels only. From Python, call kernel({name}.py_func)")


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function for the CPU; a CUDA kernel that calls it compiles it again for the device."""
    return _compiled(Kernel, function, {})


def subroutine(function: Callable[..., Any]) -> Kernel:
    """As `kernel`, of a function that only kernels call: that is compiled in two thirds of the time."""
    if config.ENABLE_CUDASIM:
        # There kernels are Python.
        return kernel(function)
    return _compiled(Subroutine, function, {"no_cpython_wrapper": True})


def _compiled(dispatcher: type[Kernel], function: Callable[..., Any], more: dict[str, Any]) -> Kernel:
    made = dispatcher(function, targetoptions={**OPTIONS, **more})
    made.enable_caching()
    return made
