"""How kernels are compiled for the CPU: on first use, without the GIL, kept on disk between runs.

A kernel and the subroutines that it calls are optimised together, once, and only kernels become machine code. Numba by
itself does both for each function with all that it calls, and again for whatever calls that.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite.binding import parse_bitcode
from numba import typeof
from numba.core import config
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
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


class SubroutineCode(JITCodeLibrary):
    """Code of a subroutine and of those that it calls, for linking only."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """What is kept of it, which is no object code."""
        return self.name, self._get_module_for_linking().as_bitcode()

    @classmethod
    def kept(cls, codegen: Any, name: str, bitcode: bytes) -> SubroutineCode:
        """The same again from what was kept."""
        code = cls(codegen, name)
        code._final_module, code._finalized = parse_bitcode(bitcode), True
        return code


class SubroutineCompiler(Compiler):
    """Numba's, for what nothing but other functions call."""

    def compile_extra(self, function: Callable[..., Any]) -> CompileResult:
        target = self.state.targetctx
        self.state.library = SubroutineCode(target.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        compiled = _linkable(super().compile_extra(function))
        target.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
        return compiled


def _linkable(compiled: CompileResult) -> CompileResult:
    """A subroutine that its callers find: by its entry point, which is none, only a thing of its own."""
    return compiled._replace(entry_point=object())


class Kernel(CPUDispatcher):
    """A compiled function, called like any other; by the first call with arguments of other types it is compiled."""

    compiler, cache = Compiler, KernelCache

    def __init__(self, function: Callable[..., Any], targetoptions: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=targetoptions, pipeline_class=self.compiler)

    def enable_caching(self) -> None:
        if CACHE_FOLDER:
            self._cache = self.cache(self.py_func, self.targetoptions, CACHE_FOLDER)

    def compile(self, sig: Any) -> Any:
        """As of any dispatcher, without looking for garbage meanwhile: a tenth of the time, and there is none."""
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()

    def compile_unless_claimed(self, arguments: Sequence[Any]) -> None:
        """Compile it, or load what is kept, for arguments of the types of these; what another process compiles at the
        moment is left to that.
        """
        types = tuple(map(typeof, arguments))
        if types not in self.overloads and (not CACHE_FOLDER or self._cache.claims(types, self.targetctx)):
            self.compile(types)

    def is_kept_for(self, arguments: Sequence[Any]) -> bool:
        """Whether that was done before, by whatever process, so that it is loaded at once."""
        return bool(CACHE_FOLDER) and self._cache.has_overload(tuple(map(typeof, arguments)), self.targetctx)


class SubroutineCache(KernelCache):
    """Where subroutines are kept, as other processes may compile kernels that call them too."""

    def rebuild(self, target_context: Any, stored: tuple[Any, ...]) -> CompileResult:
        (name, bitcode), fndesc, environment, signature, *_ = stored
        library = SubroutineCode.kept(target_context.codegen(), name, bitcode)
        known = {"library": library, "fndesc": fndesc, "environment": environment, "signature": signature}
        nothing = dict.fromkeys(CompileResult._fields)
        return _linkable(CompileResult(**nothing | known | {"target_context": target_context}))


class Subroutine(Kernel):
    """A kernel that only kernels call."""

    compiler, cache = SubroutineCompiler, SubroutineCache

    def add_overload(self, compiled: CompileResult) -> None:
        """Known to kernels that call it, not to Python."""
        self.overloads[tuple(compiled.signature.args)] = compiled

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
