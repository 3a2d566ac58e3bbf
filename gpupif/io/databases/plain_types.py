"""The conversion of Arrow types of databases to plain types, so that each library returns the same values."""

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
# The texts of NaN, which is a missing value.
NOT_A_NUMBER = r"(?i)^-?s?nan$"
# Replacements by which equal numbers get equal texts: no zeros at the end after a point, no point at the end, and one
# word for infinity.
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
    """Return a schema with the plain type of each column; raises ColumnTypeError for a column without a plain type."""
    return pa.schema([pa.field(field.name, plain_type(field)) for field in schema])


def plain_type(field: pa.Field) -> pa.DataType:
    """Return the type that a column is read as.

    Times of any zone become times in UTC. UUIDs become text. Intervals become spans of time, with months of 30 days as
    databases compare them. Decimals of a declared scale stay decimals; other decimals become exact text without zeros
    at the end. Raises ColumnTypeError for lists, structs, and types that Arrow lacks.
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
    """Return precision and scale of a numeric column of PostgreSQL, from the metadata of ADBC's driver.

    Both are None if they are not declared.
    """
    declared = int(metadata.get(b"POSTGRESQL:typmod", b"-1"))
    if declared < 0:
        return None, None
    # See numeric_typmod_precision and numeric_typmod_scale of PostgreSQL.
    declared -= 4
    return declared >> 16 & 0xFFFF, ((declared & 0x7FF) ^ 1024) - 1024


def decimal_type(precision: int | None, scale: int | None) -> pa.DataType:
    """Return the Arrow type of decimals; text if precision or scale is unknown, or too large for Arrow.

    precision: the number of digits. scale: the number of digits after the point.
    """
    if precision is None or scale is None or not 0 <= scale <= precision <= MOST_DIGITS or precision == 0:
        return pa.string()
    return pa.decimal128(precision, scale) if precision <= FEW_DIGITS else pa.decimal256(precision, scale)


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows with the types of `plain_schema`."""
    columns = [plain_column(column, kind) for column, kind in zip(batch.columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def plain_column(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return the values of a column in its plain type, `kind`."""
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
    """Return numbers in decimal notation as decimals, or as texts that are equal if the numbers are equal.

    NaN becomes a missing value.
    """
    texts = pc.if_else(pc.match_substring_regex(texts, NOT_A_NUMBER), None, texts)
    if not pa.types.is_string(kind):
        return texts.cast(kind)
    for pattern, instead in PLAIN:
        texts = pc.replace_substring_regex(texts, pattern, instead)
    return texts


def decimal_text(number: object) -> str | None:
    """Return a number as the text that `decimals` makes of it; None for NaN."""
    text = format(number, "f")
    for pattern, instead in PLAIN:
        text = re.sub(pattern, instead, text)
    return None if re.search(NOT_A_NUMBER, text) else text


def time_spans(intervals: pa.Array) -> pa.Array:
    """Return intervals of months, days and nanoseconds as spans of microseconds."""
    parts = _fixed_bytes(intervals, INTERVAL.itemsize).view(INTERVAL).ravel()
    days = parts["months"].astype(np.int64) * DAYS_PER_MONTH + parts["days"]
    spans = days * MICROSECONDS_PER_DAY + parts["nanoseconds"] // 1_000
    return pa.array(spans, pa.duration("us"), mask=_missing(intervals))


def uuid_text(storage: pa.Array) -> pa.Array:
    """Return UUIDs of 16 bytes as text, in lower case and with hyphens."""
    given = _fixed_bytes(storage, 16)
    digits = HEX_DIGITS[np.stack([given >> 4, given & 15], axis=2).reshape(len(storage), 32)]
    letters = np.full((len(storage), UUID_LETTERS), ord("-"), np.uint8)
    letters[:, [place for place in range(UUID_LETTERS) if place not in HYPHENS]] = digits
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(UUID_LETTERS), len(storage), [None, pa.py_buffer(np.ascontiguousarray(letters))]
    )
    return pc.if_else(pa.array(_missing(storage)), None, fixed.cast(pa.binary()).cast(pa.string()))


def _fixed_bytes(array: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """Return the bytes of values of a fixed size: an array (values, size). Bytes of missing values are undefined."""
    values = np.frombuffer(array.buffers()[1] or b"", np.uint8)
    return values[array.offset * size : (array.offset + len(array)) * size].reshape(len(array), size)


def _missing(array: pa.Array) -> npt.NDArray[np.bool_]:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
