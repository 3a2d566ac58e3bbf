"""Sums of rows over columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def sum_rows(columns: Iterable[Any]) -> Any:
    """The sum of each row in float64, columns of host or device added in their order; None without columns.

    `numpy.sum` adds those of a single row, and of rows that lie one after the other, in another order.
    """
    sums: Any = None
    for column in columns:
        sums = column.astype(np.float64) if sums is None else np.add(sums, column, out=sums)
    return sums
