"""Columns encoded in parts: the values of each part numbered by themselves, then the labels of all parts merged.

What comes out does not depend on how the table was cut: whole numbers and booleans are numbered in their order, other
values in order of first appearance, missing ones last.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpupif.kernels import codes as kernels

from ..errors import ColumnTypeError, reason_of
from ..rows.keys import code_type
from .column import Column, hash_values, merge_labels, plain_floats
from .encode import encode_column

# Fewest bytes of labels that are merged at once. More wait until they are as many bytes as the merged labels.
LEAST_PENDING = 1 << 22


class ValueCounts(NamedTuple):
    """The distinct values of some rows of a column.

    labels: in order of first appearance. counts: rows with each value. missing: rows with a missing value.
    """

    labels: pa.Array
    counts: npt.NDArray[np.int64]
    missing: int


class EncodedPart(NamedTuple):
    """Rows of a column: codes that count in `values` from 0, missing ones last."""

    codes: npt.NDArray[Any]
    values: ValueCounts


def encode_part(name: Hashable, array: Any) -> EncodedPart:
    """Encode some rows of a column as `encode_column` takes it; codes on the host. Raises ColumnTypeError."""
    if hasattr(array, "__len__") and len(array) == 0:
        return EncodedPart(
            np.empty(0, np.uint8), ValueCounts(pa.array([], _label_type(name, array)), np.empty(0, np.int64), 0)
        )
    column = encode_column(name, array).on_host()
    codes, size = column.codes, len(column.labels)
    labels = label_array(column)
    if size == 0:
        labels = pa.array([], _label_type(name, array))
    counts = column.counts[:size]
    first = np.empty(column.cardinality, np.int64)
    kernels.first_rows(codes, first)
    order = np.argsort(first[:size])
    if not (order[1:] > order[:-1]).all():
        new_codes = np.arange(column.cardinality)
        new_codes[order] = np.arange(size)
        ordered = np.empty_like(codes)
        kernels.recode(codes, 0, new_codes, ordered)
        codes, labels, counts = ordered, labels.take(pa.array(order)), counts[order]
    return EncodedPart(codes, ValueCounts(labels, counts, column.missing_rows))


def label_array(column: Column) -> pa.Array:
    """Return the labels of a column as an Arrow array. Raise ColumnTypeError for values of several types."""
    labels = column.labels
    if not isinstance(labels, pa.Array):
        try:
            labels = pa.array(labels, from_pandas=True)
        except (pa.ArrowException, TypeError) as error:
            raise ColumnTypeError(column.name, f"values of several types ({reason_of(error)})") from error
        if isinstance(labels, pa.ChunkedArray):
            labels = labels.combine_chunks()
    return labels if len(labels) else pa.nulls(0)


def _label_type(name: Hashable, array: Any) -> pa.DataType:
    """Return the type of the labels of an Arrow array: null if it has no values."""
    if not isinstance(array, pa.ChunkedArray) or pa.types.is_null(array.type):
        return pa.null()
    if pa.types.is_dictionary(array.type):
        return array.type.value_type
    none = pa.chunked_array([], array.type)
    return hash_values(name, plain_floats(none) if pa.types.is_floating(array.type) else none).type.value_type


class ColumnMerger:
    """The values of a column's parts, merged one part after the other; numbers, once given, stay."""

    def __init__(self, name: Hashable) -> None:
        self.name = name
        self.values = ValueCounts(pa.nulls(0), np.empty(0, np.int64), 0)
        self._pending: list[ValueCounts] = []
        # Bytes of their labels.
        self._waiting = 0

    def add(self, part: ValueCounts) -> list[npt.NDArray[np.int64]]:
        """Add the next part. Returns, for the earliest parts that have none yet, the number of each of their values."""
        self._pending.append(part)
        self._waiting += part.labels.nbytes
        return self.flush() if self._waiting >= max(LEAST_PENDING, self.values.labels.nbytes) else []

    def flush(self) -> list[npt.NDArray[np.int64]]:
        """Return the numbers of the values of all parts that are not numbered yet."""
        pending, self._pending, self._waiting = self._pending, [], 0
        before = self.values
        parts = [before, *pending]
        kind = _common_type(self.name, [part.labels.type for part in parts])
        labels = pa.chunked_array([self._cast(part.labels, kind) for part in parts], kind)
        if len(labels) == 0:
            merged, number = pa.array([], kind), np.empty(0, np.int64)
        else:
            merged, number = merge_labels(self.name, labels)
        counts = np.zeros(len(merged), np.int64)
        np.add.at(counts, number, np.concatenate([part.counts for part in parts]))
        self.values = ValueCounts(merged, counts, sum(part.missing for part in parts))
        ends = np.cumsum([len(part.labels) for part in parts])
        return [number[start:stop] for start, stop in pairwise(ends.tolist())]

    def _cast(self, labels: pa.Array, kind: pa.DataType) -> pa.Array:
        if len(labels) == 0:
            return pa.array([], kind)
        if labels.type == kind:
            return labels
        try:
            return labels.cast(kind)
        except pa.ArrowException as error:
            raise ColumnTypeError(self.name, f"{kind} in one part and {labels.type} in another") from error


def _common_type(name: Hashable, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return a type for values of all these types, in which values are equal as in Python. Raise ColumnTypeError."""
    several = list(dict.fromkeys(kind for kind in kinds if not pa.types.is_null(kind)))
    common = several[0] if several else pa.null()
    for kind in several[1:]:
        binary, decimal, floating = (
            [is_one(one) for one in (common, kind)]
            for is_one in (_is_binary, pa.types.is_decimal, pa.types.is_floating)
        )
        # Bytes are no text, and as a float a decimal number would equal others.
        if binary[0] != binary[1] or (any(decimal) and any(floating)):
            raise ColumnTypeError(name, f"{common} in one part and {kind} in another")
        try:
            schemas = [pa.schema([("", one)]) for one in (common, kind)]
            common = pa.unify_schemas(schemas, promote_options="permissive").field(0).type
        except pa.ArrowException as error:
            raise ColumnTypeError(name, f"{common} in one part and {kind} in another") from error
    return common


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def number_in(name: Hashable, labels: pa.Array, merged: pa.Array) -> npt.NDArray[np.int64]:
    """Return the number of each label among `merged`, whose labels are distinct."""
    if len(labels) == 0:
        return np.empty(0, np.int64)
    _, number = merge_labels(name, pa.chunked_array([merged, labels.cast(merged.type)]))
    return number[len(merged) :]


def final_order(labels: pa.Array, ascending: bool) -> npt.NDArray[np.int64]:
    """Return the code of each merged label. ascending: whole numbers and booleans are sorted, others are not."""
    import pyarrow.compute as pc

    kind = labels.type
    rank = np.arange(len(labels))
    if ascending and (pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        rank[pc.array_sort_indices(labels).to_numpy()] = np.arange(len(labels))
    return rank


def merged_column(
    name: Hashable, values: ValueCounts, rank: npt.NDArray[np.int64], labels: pa.Array | None = None
) -> Column:
    """Return the column, without codes of rows, of merged values. labels: to replace its labels one for one."""
    order = np.argsort(rank)
    labels = (values.labels if labels is None else labels).take(pa.array(order))
    counts = values.counts[order]
    if values.missing:
        counts = np.append(counts, values.missing)
    return Column(name, np.empty(0, code_type(len(counts))), counts, labels, bool(values.missing))


def recode(codes: npt.NDArray[Any], new_codes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Return new_codes[codes], in the narrowest type for the largest new code."""
    out = np.empty(len(codes), code_type(int(new_codes.max(initial=0)) + 1))
    kernels.recode(codes, 0, new_codes, out)
    return out


def total_values(name: Hashable, parts: Sequence[ValueCounts]) -> ValueCounts:
    """Return the values of several parts together, in order of first appearance."""
    merger = ColumnMerger(name)
    for part in parts:
        merger.add(part)
    merger.flush()
    return merger.values
