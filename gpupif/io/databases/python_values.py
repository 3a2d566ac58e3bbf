"""Values that libraries of databases give as Python objects, as Arrow columns of one type throughout."""

from __future__ import annotations

import datetime
import ipaddress
import uuid
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from ...errors import ColumnTypeError, TableReadError
from .plain_types import EXPECTED, MEND, decimal_text, decimal_type

CAST = "Give it one type in the query: CAST(... AS ...)."


class ColumnKind(NamedTuple):
    """What a column holds. type: in Arrow; classes: of its values in Python; convert: makes them what Arrow takes."""

    type: pa.DataType
    classes: frozenset[type]
    convert: Callable[[Any], Any] | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether only missing values have been seen."""
        return not self.classes


def _kind(kind: pa.DataType, *classes: type, convert: Callable[[Any], Any] | None = None) -> ColumnKind:
    return ColumnKind(kind, frozenset(classes), convert)


UNKNOWN = _kind(pa.null())
WHOLE = _kind(pa.int64(), int)
NUMBERS = _kind(pa.float64(), float, int)
TEXT = _kind(pa.string(), str)
BYTES = _kind(pa.binary(), bytes, bytearray, memoryview, convert=bytes)
ADDRESSES = (ipaddress.IPv4Address, ipaddress.IPv6Address, ipaddress.IPv4Interface, ipaddress.IPv6Interface)
NETWORKS = (ipaddress.IPv4Network, ipaddress.IPv6Network)
KINDS = (
    _kind(pa.bool_(), bool),
    WHOLE,
    NUMBERS,
    TEXT,
    BYTES,
    _kind(pa.date32(), datetime.date),
    _kind(pa.timestamp("us"), datetime.datetime),
    _kind(pa.time64("us"), datetime.time),
    _kind(pa.duration("us"), datetime.timedelta),
    _kind(pa.string(), uuid.UUID, *ADDRESSES, *NETWORKS, convert=str),
)
ZONED = _kind(pa.timestamp("us", "UTC"), datetime.datetime)
# What SQLite's typeof says; "null" of what is missing.
SQLITE_KINDS = {
    frozenset(): UNKNOWN,
    frozenset({"integer"}): WHOLE,
    frozenset({"real"}): NUMBERS,
    frozenset({"integer", "real"}): NUMBERS,
    frozenset({"text"}): TEXT,
    frozenset({"blob"}): BYTES,
}


def sqlite_kind(name: str, types: Iterable[str]) -> ColumnKind:
    """The kind of a column of SQLite whose values have these types; raises TableReadError for several."""
    found = frozenset(types) - {"null", ""}
    if found not in SQLITE_KINDS:
        raise TableReadError(f"column {name!r}: expected values of one type, got {' and '.join(sorted(found))}. {CAST}")
    return SQLITE_KINDS[found]


def find_kind(name: str, values: Iterable[Any], declared: tuple[int | None, int | None]) -> ColumnKind:
    """The kind of a column by some of its values; declared: digits of decimals, and how many behind the point.

    Raises ColumnTypeError for values that have no kind, and TableReadError for those of several.
    """
    values = [value for value in values if value is not None]
    classes = frozenset(map(type, values))
    if not classes:
        return UNKNOWN
    if classes == {Decimal}:
        kind = decimal_type(*declared)
        return _kind(kind, Decimal, convert=decimal_text if pa.types.is_string(kind) else _number)
    if datetime.time in classes and any(value.tzinfo is not None for value in values):
        raise ColumnTypeError(name, "time with time zone", EXPECTED, MEND)
    if classes == {datetime.datetime} and values[0].tzinfo is not None:
        return ZONED
    kind = next((kind for kind in KINDS if classes <= kind.classes), None)
    if kind is not None:
        return kind
    came = " and ".join(sorted(one.__name__ for one in classes))
    if len(classes) == 1:
        raise ColumnTypeError(name, came, EXPECTED, MEND)
    raise TableReadError(f"column {name!r}: expected values of one type, got {came}. {CAST}")


def arrow_column(name: str, values: Sequence[Any], kind: ColumnKind, row: int) -> pa.Array:
    """Values of a column as Arrow data. row: of the result, from 0, that the first is of.

    Raises TableReadError, without the value, for one that is not of the column's kind.
    """
    others = set(map(type, values)) - kind.classes - {type(None)}
    if others:
        place = next(place for place, value in enumerate(values) if type(value) in others)
        expected = "nothing" if kind.is_unknown else kind.type
        raise TableReadError(
            f"column {name!r}: expected {expected}, as in the rows before, got {type(values[place]).__name__} in row "
            f"{row + place} (from 0). {CAST}"
        )
    if kind.convert is not None:
        values = [None if value is None else kind.convert(value) for value in values]
    try:
        return pa.array(values, kind.type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        raise TableReadError(
            f"column {name!r}: values from row {row} (from 0) on do not fit {kind.type}. {CAST}"
        ) from None


def _number(value: Decimal) -> Decimal | None:
    return value if value.is_finite() else None
