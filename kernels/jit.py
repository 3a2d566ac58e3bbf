"""Compilation of kernels for the CPU: on first use, without the GIL, kept on disk between runs.

A *kernel* is called by Python; a *subroutine* is called by kernels only. A kernel and its subroutines are optimised
together, once, and only kernels become machine code. Numba by itself optimises and compiles every function together
with all functions that it calls, and again for each of its callers.
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

# nogil: the engine's threads give each call a range of rows, so no threading layer of Numba is needed, and threads of a
# caller (a Dask worker's, for instance) can score at the same time. error_model="numpy" leaves out the checks for
# division by zero, as a CUDA kernel does. no_cfunc_wrapper: nothing calls kernels as C functions. _nrt: kernels neither
# make arrays nor return them, so references need not be counted, which saves half of the code to compile.
OPTIONS = {
    "nopython": True,
    "nogil": True,
    "error_model": "numpy",
    "boundscheck": None,
    "no_cfunc_wrapper": True,
    "_nrt": False,
}


class SubroutineCode(JITCodeLibrary):
    """Code of a subroutine and of the subroutines that it calls, for linking only."""

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, bytes]:
        """Return the name and the bitcode: Numba asks for object code to keep, and a subroutine has none."""
        return self.name, self._get_module_for_linking().as_bitcode()

    @classmethod
    def kept(cls, codegen: Any, name: str, bitcode: bytes) -> SubroutineCode:
        """Return the code again from the name and bitcode that were kept."""
        code = cls(codegen, name)
        code._final_module, code._finalized = parse_bitcode(bitcode), True
        return code


class SubroutineCompiler(Compiler):
    """Numba's compiler, for functions that only compiled functions call."""

    def compile_extra(self, function: Callable[..., Any]) -> CompileResult:
        target = self.state.targetctx
        self.state.library = SubroutineCode(target.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        compiled = _linkable(super().compile_extra(function))
        target.insert_user_function(compiled.entry_point, compiled.fndesc, [compiled.library])
        return compiled


def _linkable(compiled: CompileResult) -> CompileResult:
    """Return the subroutine with an entry point by which Numba finds it; nothing is ever called there."""
    return compiled._replace(entry_point=object())


class Kernel(CPUDispatcher):
    """A compiled function that Python calls; the first call with arguments of new types compiles it."""

    compiler, cache = Compiler, KernelCache

    def __init__(self, function: Callable[..., Any], targetoptions: Mapping[str, Any]) -> None:
        super().__init__(function, targetoptions=targetoptions, pipeline_class=self.compiler)

    def enable_caching(self) -> None:
        if CACHE_FOLDER:
            self._cache = self.cache(self.py_func, self.targetoptions, CACHE_FOLDER)

    def compile(self, sig: Any) -> Any:
        """Compile without collecting garbage meanwhile: there is none, and looking for it takes a tenth of the time."""
        if not gc.isenabled():
            return super().compile(sig)
        gc.disable()
        try:
            return super().compile(sig)
        finally:
            gc.enable()

    def compile_unless_claimed(self, arguments: Sequence[Any]) -> None:
        """Compile, or load what is kept, for the types of `arguments`, unless another process compiles it right now."""
        types = tuple(map(typeof, arguments))
        if types not in self.overloads and (not CACHE_FOLDER or self._cache.claims(types, self.targetctx)):
            self.compile(types)

    def is_kept_for(self, arguments: Sequence[Any]) -> bool:
        """Return whether compiled code for the types of `arguments` is kept, so that it can be loaded."""
        return bool(CACHE_FOLDER) and self._cache.has_overload(tuple(map(typeof, arguments)), self.targetctx)


class SubroutineCache(KernelCache):
    """Compiled code of a subroutine: other processes can compile kernels that call it, too."""

    def rebuild(self, target_context: Any, stored: tuple[Any, ...]) -> CompileResult:
        (name, bitcode), fndesc, environment, signature, *_ = stored
        library = SubroutineCode.kept(target_context.codegen(), name, bitcode)
        known = {"library": library, "fndesc": fndesc, "environment": environment, "signature": signature}
        nothing = dict.fromkeys(CompileResult._fields)
        return _linkable(CompileResult(**nothing | known | {"target_context": target_context}))


class Subroutine(Kernel):
    """A compiled function that only kernels call."""

    compiler, cache = SubroutineCompiler, SubroutineCache

    def add_overload(self, compiled: CompileResult) -> None:
        """Make the compiled code known to the kernels that call it, not to Python."""
        self.overloads[tuple(compiled.signature.args)] = compiled

    def __call__(self, *_: Any) -> None:
        # A subroutine has no code that converts arguments of Python: calling it would kill the process.
        name = self.py_func.__name__
        raise TypeError(f"{name} is called by kernels only. From Python, call kernel({name}.py_func)")


def kernel(function: Callable[..., Any]) -> Kernel:
    """Compile a function for the CPU; a CUDA kernel that calls it compiles it again for the device."""
    return _compiled(Kernel, function, {})


def subroutine(function: Callable[..., Any]) -> Kernel:
    """Compile a function that only kernels call; that takes two thirds of the time of a kernel."""
    if config.ENABLE_CUDASIM:
        # In the simulator, kernels are Python functions.
        return kernel(function)
    return _compiled(Subroutine, function, {"no_cpython_wrapper": True})


def _compiled(dispatcher: type[Kernel], function: Callable[..., Any], more: dict[str, Any]) -> Kernel:
    made = dispatcher(function, targetoptions={**OPTIONS, **more})
    made.enable_caching()
    return made
