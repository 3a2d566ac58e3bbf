"""Labels of columns: merged by value, whatever their type, and numbered densely by those that occur."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ..errors import ColumnTypeError

# Integers within so narrow a range (or one no wider than the table is long) are counted instead of hashed.
COUNTED_RANGE = 1 << 16


def merge_labels(name: Hashable, labels: pa.ChunkedArray) -> tuple[pa.Array, npt.NDArray[Any]]:
    """The different values among labels in order of first appearance, and for each label which it is, -1 for null."""
    if pa.types.is_floating(labels.type):
        labels = plain_floats(labels)
    merged = hash_values(name, labels).combine_chunks()
    if isinstance(merged, pa.ChunkedArray):
        merged = merged.chunk(0)
    return merged.dictionary, merged.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def hash_values(name: Hashable, array: pa.ChunkedArray) -> pa.ChunkedArray:
    """A dictionary array of these values; raises ColumnTypeError for values that are no categories."""
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
    import pyarrow.compute as pc

    if pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
    return pc.add(array, pa.scalar(0.0, array.type))


def plan_codes(
    counts: npt.NDArray[np.int64], missing: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], bool]:
    """Dense codes for those of some values that occur, `counts` times; `missing`: the first stands for missing values.

    Returns the new code of each value, missing ones last; how often each new code occurs; whether values are missing.
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
    """Labels of values that occur."""
    present = counts > 0
    if present.all():
        return labels
    return labels.filter(pa.array(present)) if isinstance(labels, pa.Array) else labels[present]
