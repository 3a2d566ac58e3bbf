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
def spread(scores, pick, factor, index, start, stop, out):
    """Scores of distinct rows to rows start to stop of the table: out[i] = factor * scores[index[i], pick]."""
    for i in range(start, stop):
        out[i] = factor * scores[index[i], pick]


@kernel
def spread_two(scores, picks, factors, index, start, stop, outs):
    """`spread` of two measures at once: both scores lie in the same cache line, so this takes half the time."""
    first, second = outs
    a, b = picks
    for i in range(start, stop):
        row = index[i]
        first[i] = factors[0] * scores[row, a]
        second[i] = factors[1] * scores[row, b]
