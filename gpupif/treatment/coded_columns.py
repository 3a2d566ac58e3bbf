"""Columns as codes and labels, as steps see them: made, brought together, relabelled, compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.kernels import codes as code_kernels
from gpupif.kernels.changes import count_changes

from ..encoding.column import Column, merge_labels, plan_codes, value_order
from ..encoding.encode import encode_column
from ..encoding.merge import ColumnMerger, ValueCounts, label_array, recode
from ..encoding.plain_values import family, plain_labels
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.arrays import read_only

# Numbers of these families are compared as numbers, all else of different families by its text.
NUMBERS = ("whole", "number", "decimal")


@dataclass(frozen=True)
class CodedColumn:
    """A column of some rows: per row the number of its value among the labels, `len(labels)` where it is missing.

    labels: values, all different, none of them missing; not all of them need occur, and their order means nothing.
    Those of a table that comes in are of plain types, whatever kind of table it is: int64 (uint64 beyond), float64,
    string, bool, date32, timestamps, ... What a step puts in their place has one type in all pieces.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array


@dataclass(frozen=True)
class ColumnValues:
    """The values of a column of a whole table, ascending (the same order whatever the kind of table), and their rows.

    counts: by value. missing: rows without one.
    """

    labels: pa.Array
    counts: npt.NDArray[np.int64]
    missing: int


def coded_column(name: Hashable, array: Any) -> CodedColumn:
    """A column as `encode_column` takes it; raises ColumnTypeError for values that are no categories."""
    if hasattr(array, "__len__") and len(array) == 0:
        return CodedColumn(np.empty(0, np.uint8), plain_labels(_none_of(array)))
    column = encode_column(name, array).on_host()
    labels = label_array(column)
    return CodedColumn(column.codes, plain_labels(labels) if len(labels) else plain_labels(_none_of(array)))


def _none_of(array: Any) -> pa.Array:
    """No values, of the type that an Arrow column has."""
    kind = array.type if isinstance(array, pa.ChunkedArray) else pa.null()
    return pa.array([], kind.value_type if pa.types.is_dictionary(kind) else kind)


def counts_of(column: CodedColumn) -> npt.NDArray[np.int64]:
    """Rows by code, missing ones last."""
    counters = np.zeros((len(column.labels) + 1, 4 if len(column.labels) < 1 << 16 else 1), np.int64)
    code_kernels.count_values(read_only(column.codes), 0, counters)
    counts: npt.NDArray[np.int64] = counters.sum(axis=1)
    return counts


def table_column(name: Hashable, column: CodedColumn) -> Column:
    """The same column for what takes a table encoded: with codes only for values that occur."""
    counts = counts_of(column)
    # There the missing values are the first.
    new_codes, kept, missing = plan_codes(np.append(counts[-1:], counts[:-1]), True)
    codes = recode(column.codes, np.append(new_codes[1:], new_codes[:1]))
    return Column(name, codes, kept, column.labels.filter(pa.array(counts[:-1] > 0)), missing)


def ascending(labels: pa.Array) -> npt.NDArray[np.int64]:
    """The places of labels in the order of their values."""
    column = Column("", np.empty(0, np.uint8), np.ones(len(labels), np.int64), labels, False)
    return np.argsort(value_order(column), kind="stable")


def column_values(labels: pa.Array, counts: npt.NDArray[np.int64], missing: int) -> ColumnValues:
    """Those of labels that occur, in the order of their values."""
    labels, counts = labels.filter(pa.array(counts > 0)), counts[counts > 0]
    order = ascending(labels)
    return ColumnValues(labels.take(pa.array(order)), counts[order], missing)


def values_of(column: CodedColumn) -> ColumnValues:
    """The values of all rows of a column."""
    counts = counts_of(column)
    return column_values(column.labels, counts[:-1], int(counts[-1]))


def in_order(column: CodedColumn, values: pa.Array) -> CodedColumn:
    """The same column with these labels, all that occur in it among them."""
    if not len(column.labels):
        return CodedColumn(np.full(len(column.codes), len(values), code_type(len(values) + 1)), values)
    labels = column.labels if column.labels.type == values.type else column.labels.cast(values.type)
    place = pc.index_in(labels, values).fill_null(len(values)).to_numpy(zero_copy_only=False)
    return CodedColumn(recode(column.codes, np.append(place, len(values)).astype(np.int64)), values)


def joined(name: Hashable, parts: Sequence[CodedColumn]) -> CodedColumn:
    """Rows that follow each other; raises ColumnTypeError where the types of parts do not go together."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0].labels
    if all(part.labels is first or part.labels.equals(first) for part in parts):
        return CodedColumn(np.concatenate([part.codes for part in parts]), first)
    merger = ColumnMerger(name)
    numbers: list[npt.NDArray[np.int64]] = []
    for part in parts:
        numbers += merger.add(ValueCounts(part.labels, np.zeros(len(part.labels), np.int64), 0))
    numbers += merger.flush()
    labels = merger.values.labels
    codes = np.empty(sum(len(part.codes) for part in parts), code_type(len(labels) + 1))
    start = 0
    for part, number in zip(parts, numbers, strict=True):
        stop = start + len(part.codes)
        code_kernels.recode(read_only(part.codes), 0, np.append(number, len(labels)), codes[start:stop])
        start = stop
    return CodedColumn(codes, labels)


def some_rows(column: CodedColumn, rows: Any) -> CodedColumn:
    """Those rows that a mask or a slice says."""
    return CodedColumn(column.codes[rows], column.labels)


class Changes(NamedTuple):
    """Cells of a column that have another value than before, and those of them that have none any more."""

    cells: int = 0
    suppressed: int = 0

    def __add__(self, other: Any) -> Changes:
        return Changes(self.cells + other.cells, self.suppressed + other.suppressed)


def changes(before: CodedColumn, after: CodedColumn) -> Changes:
    """How the same rows of a column differ; numbers are compared as such, values of other types by their texts."""
    if before.codes is after.codes and before.labels is after.labels:
        return Changes()
    if max(len(before.labels), len(after.labels)) > len(after.codes):
        before, after = with_used_labels(before), with_used_labels(after)
    same = places_among(after.labels, before.labels)
    counts = np.zeros(2, np.int64)
    sizes = np.int64(len(before.labels)), np.int64(len(after.labels))
    count_changes(read_only(before.codes), read_only(after.codes), same, *sizes, counts)
    return Changes(*counts.tolist())


def places_among(labels: pa.Array, among: pa.Array) -> npt.NDArray[np.int64]:
    """Of each of these labels its place among others, -1 where it is not there."""
    if labels.equals(among):
        return np.arange(len(labels))
    kinds = family(labels.type), family(among.type)
    if labels.type != among.type or not pa.types.is_primitive(labels.type):
        if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            labels, among = (one.cast(pa.float64(), safe=False) for one in (labels, among))
        elif labels.type != among.type:
            labels, among = (as_text(one) for one in (labels, among))
    place = pc.index_in(labels, among).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(place, np.int64)


def as_text(labels: pa.Array) -> pa.Array:
    """Labels as files of text have them."""
    if family(labels.type) == "text":
        return labels.cast(pa.large_string())
    return pa.array(
        Column("", np.empty(0, np.uint8), np.ones(len(labels), np.int64), labels, False).texts()[:-1], pa.large_string()
    )


def with_used_labels(column: CodedColumn) -> CodedColumn:
    """Return the same column without labels that no row has."""
    occurs = np.bincount(column.codes, minlength=len(column.labels) + 1) > 0
    occurs[-1] = True
    new_codes = (np.cumsum(occurs) - 1).astype(code_type(len(occurs)))
    return CodedColumn(_recoded(column.codes, new_codes), column.labels.filter(pa.array(occurs[:-1])))


def relabeled(column: CodedColumn, labels: pa.Array, of_missing: str | None = None) -> CodedColumn:
    """The column with other labels, some of which may be equal to each other, or null: then the value is missing.

    of_missing: in place of missing values; the labels are texts then.
    """
    if of_missing is not None:
        labels = pa.concat_arrays([labels, pa.array([of_missing], labels.type)])
    elif labels is column.labels:
        return column
    elif pa.types.is_null(labels.type) or not len(labels):
        return CodedColumn(np.zeros(len(column.codes), np.uint8), labels[:0])
    different, number = merge_labels("", pa.chunked_array([plain_labels(labels)]))
    if len(different) == len(column.labels) and of_missing is None:
        # Each label has one of its own, in their order.
        return CodedColumn(column.codes, different)
    missing = len(different)
    new_codes = np.append(np.where(number < 0, missing, number), [missing] * (of_missing is None))
    return CodedColumn(_recoded(column.codes, new_codes.astype(code_type(missing + 1))), different)


def _recoded(codes: npt.NDArray[Any], new_codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """For each row new_codes[code], by all threads."""
    codes, found = read_only(codes), np.empty(len(codes), new_codes.dtype)
    with Workers() as workers:
        workers.run(
            lambda start, stop: code_kernels.recode(codes[start:stop], 0, read_only(new_codes), found[start:stop]),
            workers.ranges(len(codes)),
        )
    return found
