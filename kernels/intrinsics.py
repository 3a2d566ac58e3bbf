"""Loads, copies and stores that Numba has not: of several bytes at once, and past the cache.

Data that is read much later must not displace data that is in use: it is stored past the cache.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic

from gpupif.kernels.jit import subroutine

# Number of bytes that are copied at once: the whole text of a number fits.
STEP = 32


def _check_bytes(name: str, *arrays: Any) -> None:
    for array in arrays:
        if not (isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and array.dtype == types.u1):
            raise TypingError(f"{name}: expected contiguous one-dimensional arrays of bytes, got {array}")


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any, to: Any) -> Any:
    """Return the address of element `at` of an array, as a pointer to type `to`."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), to.as_pointer())


@intrinsic
def load_word(typing_context: Any, array: Any, at: Any) -> Any:
    """Return the eight bytes of an array from `at` on as a number; the first byte is the lowest."""
    _check_bytes("load_word", array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature.args[0], *arguments, ir.IntType(64))
        return builder.load(place, align=1)

    return types.uint64(array, types.intp), generate


@intrinsic
def copy_step(typing_context: Any, out: Any, at: Any, array: Any, start: Any) -> Any:
    """Copy array[start : start + STEP] to out[at : at + STEP], all bytes at once."""
    _check_bytes("copy_step", out, array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        step = ir.VectorType(ir.IntType(8), STEP)
        source = _pointer(context, builder, signature.args[2], *arguments[2:], step)
        destination = _pointer(context, builder, signature.args[0], *arguments[:2], step)
        builder.store(builder.load(source, align=1), destination, align=1)
        return context.get_dummy_value()

    return types.void(out, types.intp, array, types.intp), generate


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Return how many of the lowest bits of a word are 0; 64 for the word 0."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@subroutine
def copy_bytes(out, at, array, start, size):
    """Copy array[start : start + size] to out[at : at + size], and up to STEP bytes more."""
    for k in range(0, size, STEP):
        copy_step(out, at + k, array, start + k)


@intrinsic
def store_past_cache(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Set array[index] to value, for a contiguous one-dimensional array, without reading its cache line first.

    It takes half the memory traffic of a usual store. Only `finish_stores` orders it before later stores.
    """
    if not (isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and array.mutable):
        raise TypingError(f"store_past_cache: expected a contiguous one-dimensional array to write to, got {array}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        store = builder.store(
            context.cast(builder, arguments[2], signature.args[2], signature.args[0].dtype),
            builder.gep(data, [arguments[1]]),
        )
        store.align = signature.args[0].dtype.bitwidth // 8
        store.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
        return context.get_dummy_value()

    return types.void(array, types.intp, value), generate


@intrinsic
def finish_stores(typing_context: Any) -> Any:
    """Make other threads see all stores before this call before anything that follows it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        sfence = ir.FunctionType(ir.VoidType(), [])
        builder.call(cgutils.get_or_insert_function(builder.module, sfence, "llvm.x86.sse.sfence"), [])
        return context.get_dummy_value()

    return types.void(), generate
