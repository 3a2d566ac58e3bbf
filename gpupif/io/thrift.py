"""Thrift's compact protocol, the encoding of the metadata of Parquet files: structs are read and written.

A struct is a dictionary from the number of a field to its type and value. The value of a list is a pair: the type of
its items, and the items. Source: Apache Thrift, "Thrift Compact protocol encoding" (thrift-compact-protocol.md).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import IO, Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _, STRUCT = range(1, 13)
WHOLE_NUMBERS = (I16, I32, I64)
# The number of bytes of a value, for types whose values are kept as bytes.
SIZES = {BYTE: 1, DOUBLE: 8}

_BYTES = [bytes([value]) for value in range(128)]

Struct = dict[int, tuple[int, Any]]


def read_struct(data: bytes) -> Struct:
    """Return the struct that `data` begins with; it may hold no maps, which Parquet does not use."""
    return _read_struct(io.BytesIO(data))


def write_struct(fields: Mapping[int, tuple[int, Any]]) -> bytes:
    """Return the bytes of a struct."""
    out, before = bytearray(), 0
    for number, (kind, value) in sorted(fields.items()):
        if kind in (TRUE, FALSE):
            kind = TRUE if value else FALSE
        step = number - before
        out += bytes([step << 4 | kind]) if step < 16 else bytes([kind]) + _signed(number)
        out += b"" if kind in (TRUE, FALSE) else _value(kind, value)
        before = number
    return bytes(out) + b"\0"


def unsigned(value: int) -> bytes:
    """Return the bytes of a whole number, 0 or more: seven bits to a byte, the lowest first (ULEB128)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _signed(value: int) -> bytes:
    zigzag = value << 1 if value >= 0 else (-value << 1) - 1
    return _BYTES[zigzag] if zigzag < 128 else unsigned(zigzag)


def _value(kind: int, value: Any) -> bytes:
    if kind in WHOLE_NUMBERS:
        return _signed(value)
    if kind == BINARY:
        return unsigned(len(value)) + bytes(value)
    if kind in (LIST, SET):
        inner, items = value
        size = bytes([len(items) << 4 | inner]) if len(items) < 15 else bytes([15 << 4 | inner]) + unsigned(len(items))
        return size + b"".join(_item(inner, item) for item in items)
    return write_struct(value) if kind == STRUCT else bytes(value)


def _item(kind: int, value: Any) -> bytes:
    """Return the bytes of an item of a list. A truth value takes a byte there; as a field it takes none."""
    return bytes([TRUE if value else FALSE]) if kind in (TRUE, FALSE) else _value(kind, value)


def _read_struct(data: IO[bytes]) -> Struct:
    fields: Struct = {}
    number = 0
    while head := data.read(1)[0]:
        number = number + (head >> 4) if head >> 4 else _read_signed(data)
        fields[number] = head & 15, _read_value(data, head & 15)
    return fields


def _read_unsigned(data: IO[bytes]) -> int:
    number = shift = 0
    while (byte := data.read(1)[0]) > 127:
        number |= (byte & 127) << shift
        shift += 7
    return number | byte << shift


def _read_signed(data: IO[bytes]) -> int:
    number = _read_unsigned(data)
    return number >> 1 ^ -(number & 1)


def _read_value(data: IO[bytes], kind: int) -> Any:
    if kind in (TRUE, FALSE):
        return kind == TRUE
    if kind in WHOLE_NUMBERS:
        return _read_signed(data)
    if kind == BINARY:
        return data.read(_read_unsigned(data))
    if kind in (LIST, SET):
        head = data.read(1)[0]
        size = head >> 4 if head >> 4 < 15 else _read_unsigned(data)
        return head & 15, [_read_item(data, head & 15) for _ in range(size)]
    return _read_struct(data) if kind == STRUCT else data.read(SIZES[kind])


def _read_item(data: IO[bytes], kind: int) -> Any:
    """Read an item of a list. A truth value takes a byte there; as a field it takes none."""
    return data.read(1)[0] == TRUE if kind in (TRUE, FALSE) else _read_value(data, kind)
