"""From distinct rows back to all rows, and the index arithmetic around it."""

from __future__ import annotations

from .jit import kernel


@kernel
def look_up(table, index, start, stop, out):
    """out[i] = table[index[i]] for start <= i < stop."""
    for i in range(start, stop):
        out[i] = table[index[i]]


@kernel
def invert(order, start, stop, place):
    """place[order[i]] = i for start <= i < stop."""
    for i in range(start, stop):
        place[order[i]] = i


@kernel
def spread(scores, index, start, stop, factor, out):
    """out[i] = factor * scores[index[i]] for start <= i < stop: scores of distinct rows to rows of the table."""
    for i in range(start, stop):
        out[i] = factor * scores[index[i]]
