"""From distinct rows back to all rows, and the index arithmetic around it."""

from __future__ import annotations

from .jit import kernel
from .stream import finish_stores, store_past_cache

# Rows whose scores are fetched once and then written column by column: they stay in the first-level cache.
CHUNK = 512


@kernel
def look_up(table, index, out):
    """out[i] = table[index[i]]."""
    for i in range(index.size):
        out[i] = table[index[i]]


@kernel
def invert(order, start, place):
    """place[order[i]] = start + i."""
    for i in range(order.size):
        place[order[i]] = start + i


@kernel
def spread_measure(scores, k, factor, index, out):
    """out[i] = factor * scores[index[i], k]."""
    for i in range(index.size):
        store_past_cache(out, i, factor * scores[index[i], k])


@kernel
def spread(scores, picks, factors, index, target, start, out):
    """Scores of distinct rows (rows, measures) to the rows of the table from `start` on.

    out[m, target, start + i] = factors[m] * scores[index[i], picks[m]].
    """
    for first in range(0, index.size, CHUNK):
        part = index[first : first + CHUNK]
        for m in range(picks.size):
            column = out[m, target, start + first : start + first + part.size]
            spread_measure(scores, picks[m], factors[m], part, column)
    finish_stores()
