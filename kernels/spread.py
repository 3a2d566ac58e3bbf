"""From distinct rows back to all rows, and the index arithmetic around it."""

from __future__ import annotations

from .jit import kernel
from .stream import finish_stores, store_past_cache

# Rows whose scores are fetched once and then written column by column: they stay in the first-level cache.
CHUNK = 512


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
def spread_column(scores, lane, k, factor, index, start, stop, out):
    """out[i] = factor * scores[index[i], lane, k] for start <= i < stop."""
    for i in range(start, stop):
        store_past_cache(out, i, factor * scores[index[i], lane, k])


@kernel
def spread(scores, columns, picks, factors, index, start, stop, out):
    """Scores of distinct rows (rows, lanes, measures) to rows start to stop of the table.

    out[m, columns[lane], i] = factors[lane, m] * scores[index[i], lane, picks[m]].
    """
    for first in range(start, stop, CHUNK):
        last = min(first + CHUNK, stop)
        for lane in range(columns.size):
            for m in range(picks.size):
                spread_column(scores, lane, picks[m], factors[lane, m], index, first, last, out[m, columns[lane]])
    finish_stores()
