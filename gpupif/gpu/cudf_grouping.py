"""Row keys hashed and grouped by cuDF: the calls of its lower layer, pylibcudf.

Of what pylibcudf has, these calls hash and compare whole keys: a group-by of sums or counts (`GroupBy.aggregate`, as
long as all that it is asked for can be added up by atomic operations) and a join. Others that seem fit sort:
`GroupBy.get_groups` and `scan`, `transform.encode`. Nothing here is missing (null), so that nothing else is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cupy
import pylibcudf

from .base import RowGroups


def group_rows(words: Mapping[int, Any], counts: Any, stream: Any) -> RowGroups:
    """See `Library.group_rows`; all is done on this stream of CuPy, the current one."""
    columns = [as_column(values) for values in words.values()]
    keys = pylibcudf.Table(columns)
    # Rows are counted in 32 bits, and counts added up in 64.
    added = columns[0] if counts is None else as_column(counts)
    how = pylibcudf.aggregation.count() if counts is None else pylibcudf.aggregation.sum()
    request = pylibcudf.groupby.GroupByRequest(added, [how])
    groups, (sums,) = pylibcudf.groupby.GroupBy(keys).aggregate([request], stream=stream)
    # Each row finds the one group that has its key; pairs of them come in any order.
    rows, found = pylibcudf.join.inner_join(keys, groups, pylibcudf.types.NullEquality.EQUAL, stream=stream)
    of_row = cupy.empty(keys.num_rows(), "int32")
    of_row[as_array(rows, "int32")] = as_array(found, "int32")
    of_groups = dict(zip(words, (as_array(column, "uint64") for column in groups.columns()), strict=True))
    total = as_array(sums.columns()[0], "int32" if counts is None else "int64")
    return RowGroups(of_groups, total.astype("int64", copy=False), of_row)


def as_column(array: Any) -> Any:
    """A contiguous array of CuPy, of one dimension, as a column, without a copy."""
    kind = pylibcudf.types.DataType(getattr(pylibcudf.types.TypeId, array.dtype.name.upper()))
    return pylibcudf.Column(kind, len(array), pylibcudf.gpumemoryview(array), None, 0, 0, [])


def as_array(column: Any, dtype: str) -> Any:
    """A column without missing values, as cuDF made it, as an array of CuPy, without a copy."""
    return cupy.asarray(column.data()).view(dtype)
