"""Columns of numbers that say how much, read as any other column is: by code the number that each value is."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..utils.quantities import is_number

if TYPE_CHECKING:
    import numpy.typing as npt

    from .column import Column


def amounts(column: Column) -> npt.NDArray[np.float64]:
    """By code the number that the value is; NaN for a missing value and for what is no number.

    A text counts as the number it says: CSV has nothing else.
    """
    numbers = np.full(column.cardinality, np.nan)
    numbers[: len(column.labels)] = _numbers(column.labels)
    return numbers


def _numbers(labels: Any) -> npt.NDArray[np.float64]:
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
