"""Which rows of a table lie nearest to a row: a sum over its columns of differences from 0 to 1, compared one by one.

A number differs from another by their distance times the column's scale, any other value by 1 where it is not the same;
NaN is a missing value, the same as another one.
"""

from __future__ import annotations

import math

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def distance(row, rows, other, others, scales, most):
    """How far a row is from another; anything above `most` where it is farther.

    rows, others: (rows, columns). scales: by column; 0 for what is no number.
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
def find_nearest(start, stop, rows, others, times, scales, least, ties):
    """Of rows start to stop the least distance to any of the others, and how many of these are so near.

    times: how often each of the others is there. least, ties: by row.
    """
    for row in range(start, stop):
        nearest, several = math.inf, 0
        for other in range(len(others)):
            found = distance(row, rows, other, others, scales, nearest)
            if found < nearest:
                nearest, several = found, times[other]
            elif found == nearest:
                several += times[other]
        least[row] = nearest
        ties[row] = several


@kernel
def find_own(rows, others, which, own, scales, least, nearest):
    """Of pairs of a row and one of the others whether no other is nearer."""
    for pair in range(len(which)):
        nearest[pair] = distance(which[pair], rows, own[pair], others, scales, math.inf) == least[which[pair]]
