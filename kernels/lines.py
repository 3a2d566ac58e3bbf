"""Lines of a file of text, put together from texts that come again and again."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic

from gpupif.kernels.jit import kernel

# Bytes that are copied at once: all of a number.
STEP = 32


@intrinsic
def copy_step(typing_context: Any, out: Any, at: Any, texts: Any, start: Any) -> Any:
    """out[at : at + STEP] = texts[start : start + STEP], of bytes, in one load and one store."""
    for array in (out, texts):
        if not (isinstance(array, types.Array) and array.ndim == 1 and array.layout == "C" and array.dtype == types.u1):
            raise TypingError(f"copy_step: expected contiguous one-dimensional arrays of bytes, got {array}")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def place(array: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, arguments[array]).data
            step = ir.VectorType(ir.IntType(8), STEP).as_pointer()
            return builder.bitcast(builder.gep(data, [arguments[array + 1]]), step)

        loaded = builder.load(place(2))
        loaded.align = 1
        builder.store(loaded, place(0), align=1)
        return context.get_dummy_value()

    return types.void(out, types.intp, texts, types.intp), generate


@kernel
def put_lines(numbers, starts, texts, separator, out):
    """Fill `out` with the lines texts[numbers[0, i]], texts[numbers[1, i]], ... for each i; how many bytes they take.

    starts: where each text begins, and where the last one ends. separator: the byte between the texts of a line; a line
    feed ends it. Behind all texts there are STEP more bytes, behind all lines as many may be written to.
    """
    at, last = 0, numbers.shape[0] - 1
    for i in range(numbers.shape[1]):
        for k in range(numbers.shape[0]):
            number = numbers[k, i]
            start = starts[number]
            size = starts[number + 1] - start
            copy_step(out, at, texts, start)
            for copied in range(STEP, size, STEP):
                copy_step(out, at + copied, texts, start + copied)
            at += size
            out[at] = separator if k < last else 10
            at += 1
    return at
