"""Encoding: the values of each column are numbered densely and exactly, for values of any type."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from gpupif.kernels import codes as kernels

from ..errors import ColumnTypeError, InputError, reason_of
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.arrays import read_only, validate
from ..utils.validation import is_hashable
from .column import (
    COUNTED_RANGE,
    Column,
    EncodedTable,
    hash_values,
    merge_labels,
    plain_floats,
    plan_codes,
    used_labels,
)
from .device import DeviceColumn, encode_on_device
from .refused_types import refuse_nested


def encode_table(
    names: Sequence[Hashable],
    arrays: Sequence[Any],
    rows: int,
    missing: str,
    workers: Workers,
    done: Callable[[], None] = lambda: None,
) -> EncodedTable:
    """Encode columns given as pandas Series, Arrow chunked arrays, `DeviceColumn`s or `Column`s, several at a time.

    Raise ColumnTypeError for values that are no categories.

    missing: "category" makes all missing values (null, None, NaN, NA, NaT) one further value; "error" raises
        InputError.
    done: called after each column.
    """

    def encode(name: Hashable, array: Any) -> Column:
        column = encode_column(name, array)
        if missing == "error" and column.missing:
            row = int(np.flatnonzero(column.codes == column.cardinality - 1)[0])
            count = column.missing_rows
            raise InputError(
                f"column {name!r}: {count:,} missing value{'s' * (count > 1)}, the first in row {row} (from 0); "
                "missing='error' expects none. Fill or drop them, or use missing='category'."
            )
        done()
        return column

    if any(isinstance(array, DeviceColumn) for array in arrays):
        return EncodedTable(encode_on_device(names, arrays, encode), rows)
    return EncodedTable(workers.run(encode, list(zip(names, arrays, strict=True))), rows)


def encode_column(name: Hashable, array: Any) -> Column:
    """Encode one pandas Series, Arrow chunked array or `DeviceColumn`; a `Column` is encoded already."""
    if isinstance(array, Column):
        return array
    if isinstance(array, DeviceColumn):
        return array.encode(name)
    if isinstance(array, pd.Series):
        return _encode_series(name, array)
    return _encode_arrow(name, array)


def _encode_series(name: Hashable, series: pd.Series[Any]) -> Column:
    dtype = series.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _renumber(name, series.array.codes, 0, len(series.cat.categories), series.cat.categories)
    if isinstance(dtype, np.dtype) and dtype.kind in "iubfmM" and dtype.itemsize <= 8:
        return _encode_numpy(name, series.to_numpy())
    if isinstance(dtype, pd.ArrowDtype | pd.StringDtype) or _is_masked(dtype):
        # Text that is no Unicode (a lone surrogate) has no place in Arrow, but is text for Python.
        with contextlib.suppress(UnicodeEncodeError):
            array = pa.array(series.array, from_pandas=True)
            array = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
            check_arrow(name, array)
            return _encode_arrow(name, array)
    return _encode_objects(name, series)


def check_arrow(name: Hashable, array: pa.ChunkedArray) -> None:
    """Raise InputError for Arrow data that do not hold together, as numbers of dictionary values that there are not."""
    try:
        validate(array)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"column {name!r}: its Arrow data do not hold together ({reason_of(error)}). Read or make it anew; what "
            "made it without checks left it damaged."
        ) from error


def _encode_numpy(name: Hashable, values: npt.NDArray[Any]) -> Column:
    """Numbers, booleans, dates or time spans of at most 64 bits."""
    values = values.astype(values.dtype.newbyteorder("="), copy=False)
    if values.dtype.kind in "iub":
        return _encode_integers(name, values)
    if values.dtype.kind == "f":
        # Adding zero makes -0.0 and 0.0 the one value that they are.
        return _encode_arrow(name, pa.chunked_array([pa.array(values + 0, from_pandas=True)]))
    return _with_labels(_encode_arrow(name, pa.chunked_array([pa.array(values)])), pd.Index)


def _is_masked(dtype: Any) -> bool:
    """Return whether dtype is a nullable numeric or boolean type of pandas."""
    return isinstance(dtype, pd.api.extensions.ExtensionDtype) and hasattr(dtype, "numpy_dtype")


def _with_labels(column: Column, convert: Callable[[Any], Any]) -> Column:
    return Column(column.name, column.codes, column.counts, convert(column.labels.to_pandas()), column.missing)


def _encode_objects(name: Hashable, series: pd.Series[Any]) -> Column:
    """Python objects and other pandas types: equal where Python says equal (1 == 1.0 == True)."""
    try:
        codes, labels = pd.factorize(series, use_na_sentinel=True)
    except TypeError as error:
        raise ColumnTypeError(name, next(type(value).__name__ for value in series if not is_hashable(value))) from error
    # The object type is kept: pandas 2 would guess a type for Python objects, and warn of it.
    return _renumber(name, codes, 0, len(labels), labels if isinstance(labels, pd.Index) else pd.Index(labels))


def _encode_arrow(name: Hashable, array: pa.ChunkedArray) -> Column:
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _encode_dictionary(name, array)
    refuse_nested(name, kind)
    if pa.types.is_null(kind):
        return _renumber(name, np.full(len(array), -1, np.int8), 0, 0, pa.array([], pa.null()))
    if pa.types.is_integer(kind) and array.null_count == 0:
        return _encode_integers(name, array.to_numpy())
    if pa.types.is_floating(kind):
        array = plain_floats(array)
    return _encode_dictionary(name, hash_values(name, array))


def _encode_dictionary(name: Hashable, array: pa.ChunkedArray) -> Column:
    """Codes of a dictionary array; its dictionary may differ by chunk, hold duplicates, nulls or unused values."""
    kind = array.type.value_type
    refuse_nested(name, kind)
    chunks = array.chunks
    if all(chunk.dictionary.equals(chunks[0].dictionary) for chunk in chunks[1:]):
        labels = pa.chunked_array([chunk.dictionary for chunk in chunks[:1]], kind)
        shifts = [0] * len(chunks)
    else:
        labels = pa.chunked_array([chunk.dictionary for chunk in chunks], kind)
        shifts = np.cumsum([0, *(len(chunk.dictionary) for chunk in chunks)])[:-1].tolist()
    parts = [_indices(chunk.indices, shift) for chunk, shift in zip(chunks, shifts, strict=True)]
    codes = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if pa.types.is_null(kind) or len(labels) == 0:
        return _renumber(name, np.full(len(codes), -1, np.int8), 0, 0, pa.nulls(0))
    merged, code_of = merge_labels(name, labels)
    if len(merged) < len(labels):
        # Equal labels under several codes become one code, null labels the missing value.
        codes = np.append(code_of, -1)[codes]
    return _renumber(name, codes, 0, len(merged), merged)


def _indices(indices: pa.Array, shift: int) -> npt.NDArray[Any]:
    """Return dictionary indices plus `shift`, -1 for null."""
    if indices.null_count == 0 and shift == 0:
        return indices.to_numpy()  # type: ignore[no-any-return]
    codes = indices.cast(pa.int64()).fill_null(-1 - shift).to_numpy(zero_copy_only=False)
    return codes + shift  # type: ignore[no-any-return]


def _encode_integers(name: Hashable, values: npt.NDArray[Any]) -> Column:
    """Integers or booleans without missing values; labels in ascending order."""
    low, high = int(values.min()), int(values.max())
    if high - low < max(COUNTED_RANGE, len(values)):
        labels = np.arange(high - low + 1, dtype=np.int64) + low if low >= -(2**63) and high < 2**63 else None
        if labels is not None:
            return _renumber(name, values, low, len(labels), labels.astype(values.dtype), missing=False)
    encoded = pa.chunked_array([pa.array(values)]).dictionary_encode()
    return _encode_dictionary(name, encoded)


def _renumber(
    name: Hashable, values: npt.NDArray[Any], low: int, size: int, labels: Any, missing: bool = True
) -> Column:
    """Column of integer values `low` to `low` + `size` - 1, labels[v - low] their labels; -1 missing if `missing`.

    Values that do not occur lose their label, so that the codes are dense.
    """
    offset, values = int(missing), read_only(values)
    counters = np.zeros((size + offset, 4 if size <= COUNTED_RANGE else 1), np.int64)
    kernels.count_values(values, low - offset, counters)
    counts = counters.sum(axis=1)
    new_codes, kept, has_missing = plan_codes(counts, missing)
    if low == 0 and len(kept) == size and not has_missing:
        codes = values.astype(code_type(size))
    else:
        codes = np.empty(len(values), code_type(len(kept)))
        kernels.recode(values, low - offset, new_codes, codes)
    return Column(name, codes, kept, used_labels(labels, counts[offset:]), has_missing)
