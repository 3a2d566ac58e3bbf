"""Nearest rows of a table to a row; the distance of two rows is a sum over columns of differences from 0 to `whole`.

Two numbers differ by their distance times the column's scale. Other values differ by `whole` unless they are equal. NaN
is a missing value; two missing values are equal.
"""

from __future__ import annotations

import math

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def distance(row, rows, other, others, scales, whole, most):
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
                    total += whole
            elif scales[column] > 0.0:
                total += abs(mine - theirs) * scales[column]
            else:
                total += whole
            if total > most:
                return total
    return total


@subroutine
def keep_nearest(apart, multiplicity, nearest, at_nearest):
    """Return the least distance, and how many rows are at it, after a further row, at the distance `apart`."""
    if apart < nearest:
        return apart, multiplicity
    return nearest, at_nearest + multiplicity * (apart == nearest)


@kernel
def find_nearest(start, stop, rows, others, multiplicities, scales, whole, least, ties):
    """Find the nearest of `others` for each row start to stop - 1.

    multiplicities: the multiplicity of each of the others. least[row] gets the least distance; ties[row] gets how many
    of the others are at that distance.
    """
    for row in range(start, stop):
        nearest, at_nearest = math.inf, 0
        for other in range(len(others)):
            apart = distance(row, rows, other, others, scales, whole, nearest)
            nearest, at_nearest = keep_nearest(apart, multiplicities[other], nearest, at_nearest)
        least[row] = nearest
        ties[row] = at_nearest


@kernel
def find_own(rows, others, which, own, scales, whole, least, nearest):
    """Set nearest[pair] to whether no other row is nearer to row which[pair] than own[pair] is."""
    for pair in range(len(which)):
        apart = distance(which[pair], rows, own[pair], others, scales, whole, math.inf)
        nearest[pair] = apart == least[which[pair]]


@subroutine
def square_distance(row, rows, other, others, scales):
    """Return the squared Euclidean distance of two rows of numbers.

    rows, others: (rows, columns). scales: (columns,), the factor of differences in a column.
    """
    total = 0.0
    for column in range(rows.shape[1]):
        off = (rows[row, column] - others[other, column]) * scales[column]
        total += off * off
    return total


@subroutine
def box_distance(row, rows, box, lows, highs, scales):
    """Return the squared distance of a row from a box. lows, highs: (boxes, columns).

    It is computed as `square_distance` is, from differences that are no larger. So rounding never makes it larger than
    the distance from a row in the box.
    """
    total = 0.0
    for column in range(rows.shape[1]):
        number, off = rows[row, column], 0.0
        if number < lows[box, column]:
            off = number - lows[box, column]
        elif number > highs[box, column]:
            off = number - highs[box, column]
        off *= scales[column]
        total += off * off
    return total


@kernel
def find_nearest_points(start, stop, rows, others, multiplicities, scales, edges, lows, highs, stack, least, ties):
    """Find the nearest of `others` for each row start to stop - 1, by the squared Euclidean distance.

    others: (others, columns), in the order of the leaves of a tree of boxes. Box b has the halves 2 b + 1 and 2 b + 2;
    the last boxes are the leaves. edges: the first of the others in each leaf, and last their number. lows, highs:
    (boxes, columns), the least and greatest numbers in each box. stack: int64, overwritten; longer than the tree is
    high. Other arguments: as of `find_nearest`.
    """
    inner = len(lows) // 2
    for row in range(start, stop):
        nearest, at_nearest = math.inf, 0
        stack[0] = 0
        height = 1
        while height > 0:
            height -= 1
            box = stack[height]
            if box_distance(row, rows, box, lows, highs, scales) > nearest:
                continue
            if box < inner:
                left = 2 * box + 1
                # The nearer half is searched first.
                apart = box_distance(row, rows, left + 1, lows, highs, scales)
                nearer = box_distance(row, rows, left, lows, highs, scales) <= apart
                stack[height] = left + 1 if nearer else left
                stack[height + 1] = left if nearer else left + 1
                height += 2
                continue
            for other in range(edges[box - inner], edges[box - inner + 1]):
                apart = square_distance(row, rows, other, others, scales)
                nearest, at_nearest = keep_nearest(apart, multiplicities[other], nearest, at_nearest)
        least[row] = nearest
        ties[row] = at_nearest
