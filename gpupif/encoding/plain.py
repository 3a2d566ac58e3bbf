"""Values of columns in the few types that all kinds of tables have in common, and what family a type belongs to."""

from __future__ import annotations

import contextlib

import pyarrow as pa

FAMILIES = {
    "text": (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    "whole": (pa.types.is_integer,),
    "number": (pa.types.is_floating,),
    "boolean": (pa.types.is_boolean,),
    "decimal": (pa.types.is_decimal,),
    "date": (pa.types.is_date,),
    "moment": (pa.types.is_timestamp,),
    "span": (pa.types.is_duration,),
    "time": (pa.types.is_time,),
    "bytes": (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
}


def family(kind: pa.DataType) -> str:
    """What values of a type are, whatever their width; the type itself in words where it is none of `FAMILIES`."""
    if pa.types.is_dictionary(kind):
        return family(kind.value_type)
    return next((name for name, checks in FAMILIES.items() if any(is_one(kind) for is_one in checks)), str(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type that stands for all of its family: text for large text, 64 bits for fewer."""
    if pa.types.is_integer(kind):
        return pa.uint64() if kind == pa.uint64() else pa.int64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    return kind


def plain_labels(labels: pa.Array) -> pa.Array:
    """Labels in their plain type; large text that does not fit into plain text as it is."""
    kind = plain_type(labels.type)
    if labels.type == pa.uint64():
        with contextlib.suppress(pa.ArrowInvalid):
            return labels.cast(pa.int64())
    if kind != labels.type:
        with contextlib.suppress(pa.ArrowException):
            return labels.cast(kind)
    return labels
