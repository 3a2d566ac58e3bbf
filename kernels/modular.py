"""Elimination of matrices modulo a prime below 2^23; sums of `BLOCK` products are exact in float64."""

from __future__ import annotations

import numpy as np

from gpupif.kernels.jit import kernel, subroutine

BLOCK = 128


@subroutine
def _reduced(value, prime, reciprocal):
    """Return a whole number from 0 to 2^53, in float64, modulo `prime`. reciprocal: 1 / prime."""
    rest = value - np.floor(value * reciprocal) * prime
    if rest < 0:
        rest += prime
    elif rest >= prime:
        rest -= prime
    return rest


@kernel
def eliminate_panel(panel, free, pivots, prime):
    """Invert the columns of a panel in place, as far as its free rows allow (Gauss-Jordan, modulo `prime`).

    panel: float64 array (rows, columns) of whole numbers. A column with a pivot then holds the multiples in which the
    pivot's row was added to each row; any other column holds what is left of it. free: uint8 array (rows,), 1 for rows
    without a pivot; updated. pivots: int64 array (columns,). Set to the row of each column's pivot, or -1.
    """
    rows, columns = panel.shape
    reciprocal = 1.0 / prime
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
        # The inverse is the power prime - 2.
        inverse, base, exponent = 1.0, panel[pivot, column], prime - 2
        while exponent:
            if exponent & 1:
                inverse = _reduced(inverse * base, prime, reciprocal)
            base = _reduced(base * base, prime, reciprocal)
            exponent >>= 1
        for place in range(columns):
            panel[pivot, place] = _reduced(panel[pivot, place] * inverse, prime, reciprocal)
        panel[pivot, column] = inverse
        for row in range(rows):
            factor = panel[row, column]
            if row == pivot or factor == 0:
                continue
            panel[row, column] = 0
            for place in range(columns):
                value = panel[row, place] + (prime - factor) * panel[pivot, place]
                panel[row, place] = _reduced(value, prime, reciprocal)


@kernel
def add_reduced(matrix, more, prime):
    """Add whole numbers up to 2^53 to a matrix of float64, modulo `prime`."""
    rows, columns = matrix.shape
    reciprocal = 1.0 / prime
    for row in range(rows):
        for column in range(columns):
            matrix[row, column] = _reduced(matrix[row, column] + more[row, column], prime, reciprocal)


@kernel
def peel(row_starts, row_atoms, atom_starts, atom_rows, order, alive, degrees, stack, pivots):
    """Bring a 0/1 matrix of rows x atoms into triangular form; return the number of rows that have a pivot.

    A row with an atom that no other row has gets the atom as its pivot, and is set aside. Where there is none, the next
    row of `order` is set aside without a pivot, as in inactivation decoding.

    row_starts, row_atoms, atom_starts, atom_rows: the matrix, by rows and by atoms. order: int64 array (rows,). alive:
    uint8 array (rows,) of ones, used up. degrees: int64 array (atoms,), the rows of each atom, used up. stack: int64
    array (atoms,), for atoms in a single row. pivots: int64 array (2, rows). Set to the rows with pivots and their
    atoms, in the order of peeling.
    """
    height, peeled, following = 0, 0, 0
    for atom in range(len(degrees)):
        if degrees[atom] == 1:
            stack[height] = atom
            height += 1
    for _ in range(len(order)):
        row = -1
        while height and row < 0:
            height -= 1
            atom = stack[height]
            if degrees[atom] == 1:
                for place in range(atom_starts[atom], atom_starts[atom + 1]):
                    if alive[atom_rows[place]]:
                        row = atom_rows[place]
                pivots[0, peeled], pivots[1, peeled] = row, atom
                peeled += 1
        while row < 0:
            if alive[order[following]]:
                row = order[following]
            following += 1
        alive[row] = 0
        for place in range(row_starts[row], row_starts[row + 1]):
            atom = row_atoms[place]
            degrees[atom] -= 1
            if degrees[atom] == 1:
                stack[height] = atom
                height += 1
    return peeled


@kernel
def back_substitute(starts, columns, right, prime):
    """Solve T x = right modulo `prime`, for an upper triangular 0/1 matrix T with ones in its diagonal, in place.

    starts, columns: the matrix by rows. right: int64 array (rows, right sides).
    """
    for row in range(len(starts) - 2, -1, -1):
        for place in range(starts[row], starts[row + 1]):
            column = columns[place]
            if column != row:
                for side in range(right.shape[1]):
                    right[row, side] -= right[column, side]
        for side in range(right.shape[1]):
            right[row, side] %= prime


@kernel
def forward_substitute(starts, columns, right, prime):
    """Solve T' x = right modulo `prime`, in place, for the transpose of a matrix T as `back_substitute` has it."""
    for row in range(len(starts) - 1):
        for side in range(right.shape[1]):
            right[row, side] %= prime
        for place in range(starts[row], starts[row + 1]):
            column = columns[place]
            if column != row:
                for side in range(right.shape[1]):
                    right[column, side] -= right[row, side]
