"""Thrift's compact protocol, in which Parquet files say what they hold: structs read, and written again.

A struct is a dictionary: by the number of a field its type and value. The value of a list is the type of its items,
and these. Source: Apache Thrift, "Thrift Compact protocol encoding" (thrift-compact-protocol.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, _, STRUCT = range(1, 13)
WHOLE_NUMBERS = (I16, I32, I64)
# Of types that are bytes as they stand.
SIZES = {BYTE: 1, DOUBLE: 8}

Struct = dict[int, tuple[int, Any]]


def read_struct(data: bytes) -> Struct:
    """The struct that `data` begins with; without maps, of which Parquet has none."""
    return _Reader(data).struct()


def write_struct(fields: Mapping[int, tuple[int, Any]]) -> bytes:
    """The bytes of a struct."""
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
    """A whole number from 0 on, seven bits to a byte, the lowest first (ULEB128)."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def _signed(value: int) -> bytes:
    return unsigned(value << 1 if value >= 0 else (-value << 1) - 1)


def _value(kind: int, value: Any) -> bytes:
    if kind in WHOLE_NUMBERS:
        return _signed(value)
    if kind == BINARY:
        return unsigned(len(value)) + bytes(value)
    if kind in (LIST, SET):
        of, items = value
        size = bytes([len(items) << 4 | of]) if len(items) < 15 else bytes([15 << 4 | of]) + unsigned(len(items))
        return size + b"".join(_item(of, item) for item in items)
    return write_struct(value) if kind == STRUCT else bytes(value)


def _item(kind: int, value: Any) -> bytes:
    """Of a list, where a truth value takes a byte."""
    return bytes([TRUE if value else FALSE]) if kind in (TRUE, FALSE) else _value(kind, value)


class _Reader:
    """Reads from bytes, in order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def struct(self) -> Struct:
        """The struct that comes next."""
        fields: Struct = {}
        number = 0
        while head := self._bytes(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._signed()
            fields[number] = head & 15, self._value(head & 15)
        return fields

    def _bytes(self, size: int) -> bytes:
        self._place += size
        return self._data[self._place - size : self._place]

    def _unsigned(self) -> int:
        found = shift = 0
        while (byte := self._bytes(1)[0]) > 127:
            found |= (byte & 127) << shift
            shift += 7
        return found | byte << shift

    def _signed(self) -> int:
        found = self._unsigned()
        return found >> 1 ^ -(found & 1)

    def _value(self, kind: int) -> Any:
        if kind in (TRUE, FALSE):
            return kind == TRUE
        if kind in WHOLE_NUMBERS:
            return self._signed()
        if kind == BINARY:
            return self._bytes(self._unsigned())
        if kind in (LIST, SET):
            head = self._bytes(1)[0]
            size = head >> 4 if head >> 4 < 15 else self._unsigned()
            return head & 15, [self._item(head & 15) for _ in range(size)]
        return self.struct() if kind == STRUCT else self._bytes(SIZES[kind])

    def _item(self, kind: int) -> Any:
        return self._bytes(1)[0] == TRUE if kind in (TRUE, FALSE) else self._value(kind)
