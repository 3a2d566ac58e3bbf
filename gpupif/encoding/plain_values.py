"""Values in the few types that all kinds of tables have in common, and as texts that tell them apart."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnTypeError

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
    """Return the name of a type's family, for any width. A type of no family in `FAMILIES` is named itself."""
    if pa.types.is_dictionary(kind):
        return family(kind.value_type)
    return next((name for name, checks in FAMILIES.items() if any(is_one(kind) for is_one in checks)), str(kind))


def refuse_intervals(name: Hashable, kind: pa.DataType) -> None:
    """Raise ColumnTypeError for a type of intervals, which have no order, hash or text here. name: of the column."""
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind):
        raise ColumnTypeError(name, kind, mend="Convert them to text, or leave the column out.")


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type that represents a family: text for large text, 64 bits for fewer bits."""
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


def texts(values: pa.Array) -> pa.Array:
    """Each value as a text, null for null; different values of one type have different texts.

    A whole number has no decimal point, whatever its type, a decimal number no zeros at its end, a date and a time of
    midnight are ``2020-01-31``, any other time ``2020-01-31 08:00:00``, with as many decimal places as it needs, and
    bytes are in hexadecimal digits.
    """
    kind = values.type
    if pa.types.is_dictionary(kind):
        return texts(values.dictionary_decode())
    if isinstance(kind, pa.BaseExtensionType):
        return texts(values.cast(kind.storage_type))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    if pa.types.is_floating(kind):
        return _texts_of_floats(values)
    if pa.types.is_decimal(kind):
        shorter = pc.replace_substring_regex(values.cast(pa.string()), r"(\.\d*?)0+$", r"\1")
        return pc.replace_substring_regex(shorter, r"\.$", "")
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind):
        return _texts_of_times(values)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    if pa.types.is_duration(kind):
        return pa.array([None if value is None else str(value) for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _texts_of_floats(values: pa.Array) -> pa.Array:
    if pa.types.is_float16(values.type):
        values = values.cast(pa.float32())
    # Arrow writes whole floats of seventeen digits or more with an exponent, but integers with all digits.
    whole = pc.and_(pc.equal(values, pc.trunc(values)), pc.less(pc.abs(values), pa.scalar(2.0**63, values.type)))
    if not pc.any(whole).as_py():
        return values.cast(pa.string())
    digits = pc.if_else(whole, values, pa.scalar(None, values.type)).cast(pa.int64()).cast(pa.string())
    return pc.if_else(pc.fill_null(whole, False), digits, values.cast(pa.string()))


def _texts_of_times(values: pa.Array) -> pa.Array:
    written = pc.replace_substring_regex(values.cast(pa.string()), r"(\.\d*?)0+([^\d.]*|[+-]\d{4})$", r"\1\2")
    written = pc.replace_substring_regex(written, r"\.(Z|[+-]\d{4})?$", r"\1")
    if pa.types.is_timestamp(values.type):
        written = pc.replace_substring_regex(written, r" 00:00:00$", "")
    return written


def text_of(value: Any) -> str:
    """Return the text of a single Python value, as in `texts`. Raise pyarrow.ArrowException if it is no value."""
    try:
        # Arrow has no whole numbers of more than 64 bits.
        return str(value) if type(value) is int else str(texts(pa.array([value], from_pandas=True))[0].as_py())
    except ValueError as error:
        raise pa.ArrowInvalid(str(error)) from None


def texts_of(values: Iterable[Any]) -> list[str]:
    """Return the texts of Python values of any types, none of them missing."""
    several = list(values)
    if all(isinstance(value, str) for value in several):
        return several
    if len({type(value) for value in several}) == 1:
        with contextlib.suppress(pa.ArrowException, OverflowError):
            return [str(text) for text in texts(pa.array(several)).to_pylist()]
    return [value if isinstance(value, str) else text_of(value) for value in several]
