"""Stores past the cache: data that is read much later must not displace data that is in use."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic


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
