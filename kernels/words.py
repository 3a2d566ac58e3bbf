"""Bytes that are looked at or copied several at a time, wherever they begin."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from gpupif.kernels.jit import subroutine

# Bytes that are copied at once: all of a number.
STEP = 32


def _check_bytes(name: str, *arrays: Any) -> None:
    for array in arrays:
        if not (isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and array.dtype == types.u1):
            raise TypingError(f"{name}: expected contiguous one-dimensional arrays of bytes, got {array}")


def _pointer(context: Any, builder: Any, kind: Any, array: Any, at: Any, to: Any) -> Any:
    """Where element `at` of an array is, as the place of something else."""
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [at]), to.as_pointer())


@intrinsic
def load_word(typing_context: Any, array: Any, at: Any) -> Any:
    """Eight bytes of an array from `at` on, as a number whose lowest byte is the first of them."""
    _check_bytes("load_word", array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _pointer(context, builder, signature.args[0], *arguments, ir.IntType(64))
        return builder.load(place, align=1)

    return types.uint64(array, types.intp), generate


@intrinsic
def copy_step(typing_context: Any, out: Any, at: Any, array: Any, start: Any) -> Any:
    """out[at : at + STEP] = array[start : start + STEP], all at once."""
    _check_bytes("copy_step", out, array)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        step = ir.VectorType(ir.IntType(8), STEP)
        source = _pointer(context, builder, signature.args[2], *arguments[2:], step)
        scored_column = _pointer(context, builder, signature.args[0], *arguments[:2], step)
        builder.store(builder.load(source, align=1), scored_column, align=1)
        return context.get_dummy_value()

    return types.void(out, types.intp, array, types.intp), generate


@intrinsic
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """How many of the lowest bits of a word are 0: of 0 all 64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@subroutine
def copy_bytes(out, at, array, start, size):
    """out[at : at + size] = array[start : start + size], and up to STEP bytes more."""
    for k in range(0, size, STEP):
        copy_step(out, at + k, array, start + k)
