"""Coded columns, the form in which steps read values: made from tables, joined, relabelled and compared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpupif.kernels import codes as code_kernels

from ..encoding.column import Column, merge_labels, plan_codes, value_order
from ..encoding.encode import encode_column
from ..encoding.merge import ColumnMerger, ValueCounts, label_array, recode
from ..encoding.plain_values import family, plain_labels
from ..rows.keys import code_type
from ..rows.threads import Workers
from ..utils.arrays import read_only

# Families whose values are compared as numbers. Values of other different families are compared by their texts.
NUMBERS = ("whole", "number", "decimal")


@dataclass(frozen=True)
class CodedColumn:
    """A column of some rows, as codes.

    codes: unsigned integers (rows,). Position of each row's value among the labels; `len(labels)` if it is missing.
    labels: Arrow array. Distinct values, none missing, in any order. Some may occur in no row.

    Original labels have plain types for every kind of table: int64 (uint64 for larger numbers), float64, string, bool,
    date32, timestamps, ... The labels that a step writes have the same type in all chunks.
    """

    codes: npt.NDArray[Any]
    labels: pa.Array


@dataclass(frozen=True)
class ColumnValues:
    """The distinct values of a column of a whole table, and how often each occurs.

    labels: Arrow array (values,). Distinct values, ascending: the same order for every kind of table.
    counts: int64 (values,). Rows with each value.
    missing: int. Rows with a missing value.
    """

    labels: pa.Array
    counts: npt.NDArray[np.int64]
    missing: int


def coded_column(name: Hashable, array: Any) -> CodedColumn:
    """Return the coded column of an array.

    array: any column that `encode_column` takes. Raises ColumnTypeError for values that are no categories.
    """
    if hasattr(array, "__len__") and len(array) == 0:
        return CodedColumn(np.empty(0, np.uint8), plain_labels(_no_values(array)))
    column = encode_column(name, array).on_host()
    labels = label_array(column)
    return CodedColumn(column.codes, plain_labels(labels) if len(labels) else plain_labels(_no_values(array)))


def _no_values(array: Any) -> pa.Array:
    """Return an empty array with the type of an Arrow column's values; of type null for other columns."""
    kind = array.type if isinstance(array, pa.ChunkedArray) else pa.null()
    return pa.array([], kind.value_type if pa.types.is_dictionary(kind) else kind)


def counts_of(column: CodedColumn) -> npt.NDArray[np.int64]:
    """Return the number of rows with each code: int64 (labels + 1,). The last is the number of missing values."""
    counters = np.zeros((len(column.labels) + 1, 4 if len(column.labels) < 1 << 16 else 1), np.int64)
    code_kernels.count_values(read_only(column.codes), 0, counters)
    counts: npt.NDArray[np.int64] = counters.sum(axis=1)
    return counts


def table_column(name: Hashable, column: CodedColumn) -> Column:
    """Return the column in the form of encoded tables, which have codes only for values that occur."""
    counts = counts_of(column)
    # `plan_codes` takes missing values first; coded columns have them last.
    new_codes, kept, missing = plan_codes(np.append(counts[-1:], counts[:-1]), True)
    codes = recode(column.codes, np.append(new_codes[1:], new_codes[:1]))
    return Column(name, codes, kept, column.labels.filter(pa.array(counts[:-1] > 0)), missing)


def ascending(labels: pa.Array) -> npt.NDArray[np.int64]:
    """Return the positions of labels in ascending order of their values."""
    column = Column("", np.empty(0, np.uint8), np.ones(len(labels), np.int64), labels, False)
    return np.argsort(value_order(column), kind="stable")


def column_values(labels: pa.Array, counts: npt.NDArray[np.int64], missing: int) -> ColumnValues:
    """Return the labels that occur, in ascending order, with their counts. counts: rows by label."""
    labels, counts = labels.filter(pa.array(counts > 0)), counts[counts > 0]
    order = ascending(labels)
    return ColumnValues(labels.take(pa.array(order)), counts[order], missing)


def with_other_labels(column: CodedColumn, values: pa.Array) -> CodedColumn:
    """Return the column with other labels. values: the labels; they must contain all values that occur."""
    if not len(column.labels):
        return CodedColumn(np.full(len(column.codes), len(values), code_type(len(values) + 1)), values)
    labels = column.labels if column.labels.type == values.type else column.labels.cast(values.type)
    place = pc.index_in(labels, values).fill_null(len(values)).to_numpy(zero_copy_only=False)
    return CodedColumn(recode(column.codes, np.append(place, len(values)).astype(np.int64)), values)


def joined(name: Hashable, parts: Sequence[CodedColumn]) -> CodedColumn:
    """Join the rows of several coded columns; raises ColumnTypeError if the types of their values do not agree."""
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


def selected_rows(column: CodedColumn, rows: Any) -> CodedColumn:
    """Return the rows that a mask or a slice selects."""
    return CodedColumn(column.codes[rows], column.labels)


class Changes(NamedTuple):
    """The changes of a column's cells.

    cells: cells with another value than before. suppressed: changed cells whose value is missing now.
    """

    cells: int = 0
    suppressed: int = 0

    def __add__(self, other: Any) -> Changes:
        return Changes(self.cells + other.cells, self.suppressed + other.suppressed)


def changes(before: CodedColumn, after: CodedColumn) -> Changes:
    """Count the changed cells between two versions of a column, see `places_among` for equal values."""
    if before.codes is after.codes and before.labels is after.labels:
        return Changes()
    if max(len(before.labels), len(after.labels)) > len(after.codes):
        before, after = with_used_labels(before), with_used_labels(after)
    same = places_among(after.labels, before.labels)
    counts = np.zeros(2, np.int64)
    sizes = np.int64(len(before.labels)), np.int64(len(after.labels))
    code_kernels.count_changes(read_only(before.codes), read_only(after.codes), same, *sizes, counts)
    return Changes(*counts.tolist())


def places_among(labels: pa.Array, among: pa.Array) -> npt.NDArray[np.int64]:
    """Return the position of each label among other labels, -1 if it is not there: int64 (labels,).

    Numbers of different types are equal if they are as floats, other values of different types if their texts are.
    """
    if labels.equals(among):
        return np.arange(len(labels))
    kinds = family(labels.type), family(among.type)
    if labels.type != among.type or not pa.types.is_primitive(labels.type):
        if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            labels, among = (values.cast(pa.float64(), safe=False) for values in (labels, among))
        elif labels.type != among.type:
            labels, among = (as_text(values) for values in (labels, among))
    place = pc.index_in(labels, among).fill_null(-1).to_numpy(zero_copy_only=False)
    return np.asarray(place, np.int64)


def as_text(labels: pa.Array) -> pa.Array:
    """Return labels as files of text hold them."""
    if family(labels.type) == "text":
        return labels.cast(pa.large_string())
    return pa.array(
        Column("", np.empty(0, np.uint8), np.ones(len(labels), np.int64), labels, False).texts()[:-1], pa.large_string()
    )


def with_used_labels(column: CodedColumn) -> CodedColumn:
    """Return the column without the labels that no row has."""
    occurs = np.bincount(column.codes, minlength=len(column.labels) + 1) > 0
    occurs[-1] = True
    new_codes = (np.cumsum(occurs) - 1).astype(code_type(len(occurs)))
    return CodedColumn(_recoded(column.codes, new_codes), column.labels.filter(pa.array(occurs[:-1])))


def relabeled(column: CodedColumn, labels: pa.Array, missing_value: str | None = None) -> CodedColumn:
    """Return the column with new labels.

    labels: Arrow array with an item for each code of the column, so at least for each old label. Labels may be equal
        to each other; null makes the value missing.
    missing_value: the text that replaces missing values, if the labels are texts; None keeps them missing.
    """
    if missing_value is not None:
        labels = pa.concat_arrays([labels, pa.array([missing_value], labels.type)])
    elif labels is column.labels:
        return column
    elif pa.types.is_null(labels.type) or not len(labels):
        return CodedColumn(np.zeros(len(column.codes), np.uint8), labels[:0])
    distinct, number = merge_labels("", pa.chunked_array([plain_labels(labels)]))
    if len(distinct) == len(labels) == len(column.labels) and missing_value is None:
        # All new labels are distinct and keep their order: the codes stay valid.
        return CodedColumn(column.codes, distinct)
    missing = len(distinct)
    new_codes = np.append(np.where(number < 0, missing, number), [missing] * (missing_value is None))
    return CodedColumn(_recoded(column.codes, new_codes.astype(code_type(missing + 1))), distinct)


def _recoded(codes: npt.NDArray[Any], new_codes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return new_codes[codes], computed by all threads."""
    codes, recoded = read_only(codes), np.empty(len(codes), new_codes.dtype)
    with Workers() as workers:
        workers.run(
            lambda start, stop: code_kernels.recode(codes[start:stop], 0, read_only(new_codes), recoded[start:stop]),
            workers.ranges(len(codes)),
        )
    return recoded
