"""Nearest rows of a table to a row; the distance of two rows is a sum over columns of differences from 0 to 1.

Two numbers differ by their distance times the column's scale. Other values differ by 1 unless they are equal. NaN is a
missing value; two missing values are equal.
"""

from __future__ import annotations

import math

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def distance(row, rows, other, others, scales, most):
    """Return the distance of row `row` of `rows` from row `other` of `others`.

    rows, others: (rows, columns). scales: (columns), 0 for a column that is not numeric. most: if the distance is above
    it, the result may be any number above it.
    """
    total = 0.0
    for column in range(len(scales)):
        mine, theirs = rows[row, column], others[other, column]
        if mine != theirs:
            if math.isnan(mine) or math.isnan(theirs):
                if not (math.isnan(mine) and math.isnan(theirs)):
                    total += 1.0
            elif scales[column] > 0.0:
                total += abs(mine - theirs) * scales[column]
            else:
                total += 1.0
            if total > most:
                return total
    return total


@kernel
def find_nearest(start, stop, rows, others, multiplicities, scales, least, ties):
    """Find the nearest of `others` for each row start to stop - 1.

    multiplicities: the multiplicity of each of the others. least[row] gets the least distance; ties[row] gets how many
    of the others are at that distance.
    """
    for row in range(start, stop):
        nearest, several = math.inf, 0
        for other in range(len(others)):
            found = distance(row, rows, other, others, scales, nearest)
            if found < nearest:
                nearest, several = found, multiplicities[other]
            elif found == nearest:
                several += multiplicities[other]
        least[row] = nearest
        ties[row] = several


@kernel
def find_own(rows, others, which, own, scales, least, nearest):
    """Set nearest[pair] to whether no other row is nearer to row which[pair] than own[pair] is."""
    for pair in range(len(which)):
        nearest[pair] = distance(which[pair], rows, own[pair], others, scales, math.inf) == least[which[pair]]
