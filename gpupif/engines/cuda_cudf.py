"""Row keys hashed and grouped by cuDF: the calls of its lower layer, pylibcudf.

Of what pylibcudf has, these calls hash and compare whole keys: a group-by of sums (`GroupBy.aggregate`, as long as all
that it is asked for can be added up by atomic operations) and a join. Others that seem fit sort: `GroupBy.get_groups`
and `scan`, `transform.encode`. Nothing here is missing (null), so that nothing else is compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import cupy
import pylibcudf

from .cuda_library import RowGroups


def group_rows(words: Mapping[int, Any], counts: Any, stream: Any) -> RowGroups:
    """See `Library.group_rows`; all is done on this stream of CuPy, the current one."""
    keys = pylibcudf.Table([as_column(values) for values in words.values()])
    requests = [pylibcudf.groupby.GroupByRequest(as_column(counts), [pylibcudf.aggregation.sum()])]
    groups, (sums,) = pylibcudf.groupby.GroupBy(keys).aggregate(requests, stream=stream)
    # Each row finds the one group that has its key; pairs of them come in any order.
    rows, found = pylibcudf.join.inner_join(keys, groups, pylibcudf.types.NullEquality.EQUAL, stream=stream)
    of_row = cupy.empty(len(counts), "int32")
    of_row[as_array(rows, "int32")] = as_array(found, "int32")
    of_groups = [as_array(column, "uint64") for column in groups.columns()]
    return RowGroups(dict(zip(words, of_groups, strict=True)), as_array(sums.columns()[0], "int64"), of_row)


def as_column(array: Any) -> Any:
    """A contiguous array of CuPy, of one dimension, as a column, without a copy."""
    kind = pylibcudf.types.DataType(getattr(pylibcudf.types.TypeId, array.dtype.name.upper()))
    return pylibcudf.Column(kind, len(array), pylibcudf.gpumemoryview(array), None, 0, 0, [])


def as_array(column: Any, dtype: str) -> Any:
    """A column without missing values, as cuDF made it, as an array of CuPy, without a copy."""
    return cupy.asarray(column.data()).view(dtype)
