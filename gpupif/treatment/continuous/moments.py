"""Means, covariances and their triangular factors, summed exactly: the same on every machine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
# The share of a column's variance below which the part that other columns do not explain is a rounding error.
NOTHING = 1e-12


def mean_of(values: Floats) -> float:
    """Return the mean of some numbers; 0 for none."""
    return math.fsum(values.tolist()) / max(1, len(values))


def covariance(columns: Sequence[Floats]) -> Floats:
    """Return the covariances (columns, columns) of columns of equal length, with the number of rows as divisor."""
    off = [column - mean_of(column) for column in columns]
    lower = np.zeros((len(off), len(off)))
    for row, own in enumerate(off):
        lower[row, : row + 1] = [mean_of(own * other) for other in off[: row + 1]]
    return lower + np.tril(lower, -1).T


def factor(matrix: Floats) -> Floats:
    """Return the lower triangular L with L L' = matrix (Cholesky); a column of L is 0 if others explain it."""
    lower = np.zeros(matrix.shape)
    for column in range(len(matrix)):
        left = matrix[column, column] - math.fsum((lower[column, :column] ** 2).tolist())
        if left <= NOTHING * matrix[column, column]:
            continue
        lower[column, column] = math.sqrt(left)
        for row in range(column + 1, len(matrix)):
            inner = math.fsum((lower[row, :column] * lower[column, :column]).tolist())
            lower[row, column] = (matrix[row, column] - inner) / lower[column, column]
    return lower
