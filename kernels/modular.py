"""Elimination of matrices modulo a prime below 2^23, whose products of 128 terms are exact in float64."""

from __future__ import annotations

import numpy as np

from gpupif.kernels.jit import kernel

PRIME, BLOCK = 8388593, 128
_INVERSE = 1.0 / PRIME


@kernel
def eliminate_panel(panel, free, pivots):
    """Invert the columns of a panel in place, as far as its free rows allow (Gauss-Jordan, modulo `PRIME`).

    panel: int64 array (rows, columns). A column with a pivot then holds the multiples in which the pivot's row was
    added to each row; any other column holds what is left of it. free: uint8 array (rows,), 1 for rows without a pivot;
    updated. pivots: int64 array (columns,). Set to the row of each column's pivot, or -1.
    """
    rows, columns = panel.shape
    for column in range(columns):
        pivot = -1
        for row in range(rows):
            if free[row] and panel[row, column] != 0:
                pivot = row
                break
        pivots[column] = pivot
        if pivot < 0:
            continue
        free[pivot] = 0
        # The inverse is the power PRIME - 2.
        inverse, base, exponent = 1, panel[pivot, column], PRIME - 2
        while exponent:
            if exponent & 1:
                inverse = inverse * base % PRIME
            base = base * base % PRIME
            exponent >>= 1
        for place in range(columns):
            panel[pivot, place] = panel[pivot, place] * inverse % PRIME
        panel[pivot, column] = inverse
        for row in range(rows):
            factor = panel[row, column]
            if row == pivot or factor == 0:
                continue
            panel[row, column] = 0
            for place in range(columns):
                panel[row, place] = (panel[row, place] + (PRIME - factor) * panel[pivot, place]) % PRIME


@kernel
def add_reduced(matrix, more):
    """Add whole numbers up to 2^53 to a matrix of float64, modulo `PRIME`."""
    rows, columns = matrix.shape
    for row in range(rows):
        for column in range(columns):
            value = matrix[row, column] + more[row, column]
            value -= np.floor(value * _INVERSE) * PRIME
            if value < 0:
                value += PRIME
            elif value >= PRIME:
                value -= PRIME
            matrix[row, column] = value
