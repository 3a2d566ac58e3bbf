"""A column as codes with labels, a table of such columns; labels merged, ordered and read as numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import ColumnTypeError
from ..utils.arrays import on_host
from ..utils.validation import is_number

# Integers within so narrow a range (or one no wider than the table is long) are counted instead of hashed.
COUNTED_RANGE = 1 << 16


@dataclass(frozen=True)
class Column:
    """An encoded column. Each row has a dense code: every code from 0 to cardinality - 1 occurs.

    labels: the values by code (a NumPy array, pandas Index or Arrow array); where the column has missing values they
    are the last code and have no label. counts: rows by code.
    """

    name: Hashable
    codes: npt.NDArray[Any]
    counts: npt.NDArray[np.int64]
    labels: Any
    missing: bool

    @property
    def cardinality(self) -> int:
        """Number of distinct values; all missing values count as one."""
        return len(self.counts)

    @property
    def missing_rows(self) -> int:
        """Number of rows with a missing value."""
        return int(self.counts[-1]) if self.missing else 0

    def without_missing(self) -> Column:
        """Return the column with its known values only. The code above them denotes a missing value."""
        return replace(self, counts=self.counts[:-1], missing=False) if self.missing else self

    def on_host(self) -> Column:
        """Return the column with its codes on the host."""
        return replace(self, codes=on_host(self.codes))

    def values(self, codes: Sequence[int] | None = None) -> list[Any]:
        """Python values of these codes (default: of all), None for missing."""
        if codes is None:
            return [*self._plain(self.labels), *([None] if self.missing else [])]
        return [self._plain(self.labels[code : code + 1])[0] if code < len(self.labels) else None for code in codes]

    def texts(self) -> list[str | None]:
        """Return the values by code as text files have them; missing values are last, as None."""
        return [*map(_text, self._plain(self.labels)), None]

    @staticmethod
    def _plain(labels: Any) -> list[Any]:
        return list(labels.to_pylist() if hasattr(labels, "to_pylist") else labels.tolist())


def _text(value: Any) -> str:
    """Return a value as text, equal for a value from any library."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, timedelta):
        return str(value)
    # Nanoseconds only if they are not 0, as in pandas.
    minutes, seconds = divmod(value.seconds, 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"
    nanoseconds = getattr(value, "nanoseconds", 0)
    fraction = f".{value.microseconds:06}" if value.microseconds or nanoseconds else ""
    rest = f"{nanoseconds:03}" if nanoseconds else ""
    return f"{value.days} days {'+' if value.days < 0 else ''}{clock}{fraction}{rest}"


@dataclass(frozen=True)
class EncodedTable:
    """Columns of equal length, in the order of the table."""

    columns: Sequence[Column]
    rows: int


def value_order(column: Column) -> npt.NDArray[np.int64]:
    """Return the place of each code's value among the sorted values of a column. Missing values are last."""
    labels = column.labels
    try:
        if isinstance(labels, pa.Array):
            order = pc.array_sort_indices(labels).to_numpy()
        else:
            order = np.argsort(np.asarray(labels), kind="stable")
    except (TypeError, pa.ArrowException):
        # Values of several types, say: by their text.
        order = np.argsort(np.array([str(value) for value in column.values()[: len(labels)]]), kind="stable")
    place = np.arange(column.cardinality)
    place[order] = np.arange(len(order))
    return place


def amounts(column: Column) -> npt.NDArray[np.float64]:
    """Return, by code, the number that is the value; NaN for a missing value and a value that is no number.

    A text counts as the number it says: CSV has nothing else.
    """
    numbers = np.full(column.cardinality, np.nan)
    numbers[: len(column.labels)] = numbers_of(column.labels)
    return numbers


def numbers_of(labels: Any) -> npt.NDArray[np.float64]:
    """Return the number of each label, or in its text; NaN if it is no number."""
    if isinstance(labels, pa.Array):
        kind = labels.type
        if any(is_one(kind) for is_one in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)):
            return labels.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
        values = labels.to_pylist()
    else:
        array = np.asarray(labels)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
        values = list(labels)
    return np.array([_number(value) for value in values], np.float64)


def _number(value: Any) -> float:
    if not (is_number(value) or isinstance(value, str | Decimal)):
        return np.nan
    # Python reads 1_000 as a number, which no file means.
    if isinstance(value, str) and "_" in value:
        return np.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return np.nan


def merge_labels(name: Hashable, labels: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[Any]]:
    """Return the distinct labels in order of first appearance, and the number of each label, -1 for null."""
    if pa.types.is_floating(labels.type):
        labels = plain_floats(labels)
    merged = hash_values(name, labels).combine_chunks()
    if isinstance(merged, pa.ChunkedArray):
        merged = merged.chunk(0)
    return merged.dictionary, merged.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def hash_values(name: Hashable, array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a dictionary array of these values. Raise ColumnTypeError for values that are no categories."""
    kind = array.type
    if isinstance(kind, pa.BaseExtensionType):
        return hash_values(name, array.cast(kind.storage_type))
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        array = array.cast(pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary())
    try:
        return array.dictionary_encode()
    except pa.ArrowNotImplementedError as error:
        raise ColumnTypeError(name, kind) from error


def plain_floats(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """NaN to null and -0.0 to 0.0."""
    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return pc.add(array, pa.scalar(0.0, array.type))


def plan_codes(
    counts: npt.NDArray[np.int64], missing: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """Return dense codes for the values that occur: by value the new code, the count of each code, and a flag.

    A missing value gets the last code. The flag says whether it occurs.

    counts: rows with each value. missing: whether the first value is the missing value.
    """
    used = counts > 0
    has_missing = bool(missing and used[0])
    new_codes = np.cumsum(used) - 1
    if missing:
        new_codes -= int(has_missing)
        new_codes[0] = np.count_nonzero(used[1:])
    kept = np.append(counts[1:][used[1:]], counts[0]) if has_missing else counts[used]
    return new_codes, kept, has_missing


def used_labels(labels: Any, counts: npt.NDArray[np.int64]) -> Any:
    """Return the labels of the values that occur."""
    present = counts > 0
    if present.all():
        return labels
    return labels.filter(pa.array(present)) if isinstance(labels, pa.Array) else labels[present]
