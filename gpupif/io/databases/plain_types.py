"""Arrow types of databases as plain ones, so that a value is the same whichever library fetched it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import ColumnTypeError

MOST_DIGITS = 76
FEW_DIGITS = 38
MEND = (
    "Convert it to text in the query, CAST(... AS text), make columns of its own of it, or leave it out of the query."
)
EXPECTED = "plain values (text, numbers, dates, ...)"
# How numbers that are none are written, which are missing values.
NOT_A_NUMBER = r"(?i)^-?s?nan$"
# Of numbers in decimal notation: zeros at the end behind a point, a point there, and what is beyond all numbers.
PLAIN = ((r"(\.\d*?)0+$", r"\1"), (r"\.$", ""), (r"(?i)inf(inity)?$", "Infinity"))
DAYS_PER_MONTH = 30
MICROSECONDS_PER_DAY = 86_400_000_000
# Month, day and nanoseconds of an interval, as Arrow lays them out.
INTERVAL = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
HEX_DIGITS = np.frombuffer(b"0123456789abcdef", np.uint8)
# Places of hyphens in a UUID of 36 letters.
HYPHENS = (8, 13, 18, 23)
UUID_LETTERS = 36


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """The schema with plain types. Raises ColumnTypeError for a column that has none."""
    return pa.schema([pa.field(field.name, plain_type(field)) for field in schema])


def plain_type(field: pa.Field) -> pa.DataType:
    """What a column is read as; raises ColumnTypeError for lists, structs, and types that Arrow does not have.

    Times of any zone are in UTC; UUIDs are text; intervals are spans of time, a month of 30 days as databases compare
    them; decimals of a declared scale are decimals, others exact text without zeros at their end.
    """
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.UuidType):
        return pa.string()
    if isinstance(kind, pa.OpaqueType):
        if kind.type_name == "numeric":
            return decimal_type(*declared_digits(field.metadata or {}))
        raise ColumnTypeError(field.name, f"{kind.vendor_name}'s {kind.type_name}", EXPECTED, MEND)
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_nested(kind) or pa.types.is_union(kind):
        raise ColumnTypeError(field.name, kind, EXPECTED, MEND)
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_interval(kind):
        return pa.duration("us")
    return kind


def declared_digits(metadata: Mapping[bytes, bytes]) -> tuple[int | None, int | None]:
    """Precision and scale of a numeric of PostgreSQL, as ADBC's driver says them; None: not declared."""
    declared = int(metadata.get(b"POSTGRESQL:typmod", b"-1"))
    if declared < 0:
        return None, None
    # See numeric_typmod_precision and numeric_typmod_scale of PostgreSQL.
    declared -= 4
    return declared >> 16 & 0xFFFF, ((declared & 0x7FF) ^ 1024) - 1024


def decimal_type(precision: int | None, scale: int | None) -> pa.DataType:
    """That of decimals with so many digits, so many of them behind the point; text where that is not known."""
    if precision is None or scale is None or not 0 <= scale <= precision <= MOST_DIGITS or precision == 0:
        return pa.string()
    return pa.decimal128(precision, scale) if precision <= FEW_DIGITS else pa.decimal256(precision, scale)


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows with the types of `plain_schema`."""
    columns = [plain_column(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of a column with the plain type of it."""
    given = column.type
    if given == kind:
        return column
    if isinstance(given, pa.UuidType):
        return uuid_text(column.storage)
    if isinstance(given, pa.OpaqueType):
        return decimals(column.storage, kind)
    if isinstance(given, pa.BaseExtensionType):
        return plain_column(column.storage, kind)
    if pa.types.is_interval(given):
        return time_spans(column)
    return column.cast(kind)


def decimals(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers in decimal notation as decimals, or as texts of which equal numbers have the same."""
    texts = pc.if_else(pc.match_substring_regex(texts, NOT_A_NUMBER), None, texts)
    if not pa.types.is_string(kind):
        return texts.cast(kind)
    for pattern, instead in PLAIN:
        texts = pc.replace_substring_regex(texts, pattern, instead)
    return texts


def decimal_text(number: object) -> str | None:
    """As `decimals`, of one number."""
    text = format(number, "f")
    for pattern, instead in PLAIN:
        text = re.sub(pattern, instead, text)
    return None if re.search(NOT_A_NUMBER, text) else text


def time_spans(intervals: pa.Array) -> pa.Array:
    """Months, days and nanoseconds as spans of microseconds."""
    parts = _fixed_bytes(intervals, INTERVAL.itemsize).view(INTERVAL).ravel()
    days = parts["months"].astype(np.int64) * DAYS_PER_MONTH + parts["days"]
    spans = days * MICROSECONDS_PER_DAY + parts["nanoseconds"] // 1_000
    return pa.array(spans, pa.duration("us"), mask=_missing(intervals))


def uuid_text(storage: pa.Array) -> pa.Array:
    """UUIDs of 16 bytes as text, in lower case and with hyphens."""
    given = _fixed_bytes(storage, 16)
    digits = HEX_DIGITS[np.stack([given >> 4, given & 15], axis=2).reshape(len(storage), 32)]
    letters = np.full((len(storage), UUID_LETTERS), ord("-"), np.uint8)
    letters[:, [place for place in range(UUID_LETTERS) if place not in HYPHENS]] = digits
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(UUID_LETTERS), len(storage), [None, pa.py_buffer(np.ascontiguousarray(letters))]
    )
    return pc.if_else(pa.array(_missing(storage)), None, fixed.cast(pa.binary()).cast(pa.string()))


def _fixed_bytes(array: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """The bytes of values that all have as many, one row each; of missing ones whatever is there."""
    values = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    return values[array.offset * size : (array.offset + len(array)) * size].reshape(len(array), size)


def _missing(array: pa.Array) -> npt.NDArray[np.bool_]:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
