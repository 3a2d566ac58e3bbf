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
def take_pairs(scores, places, out):
    """out[pair, i] = scores[pair, places[i]], two scores side by side."""
    for pair in range(len(out)):
        for i in range(places.size):
            out[pair, i, 0], out[pair, i, 1] = scores[pair, places[i], 0], scores[pair, places[i], 1]


@kernel
def invert(order, start, place):
    """place[order[i]] = start + i."""
    for i in range(order.size):
        place[order[i]] = start + i


@kernel
def place(values, factor, order, out):
    """out[order[i]] = factor * values[i]."""
    for i in range(order.size):
        out[order[i]] = factor * values[i]


@kernel
def spread_measure(scores, k, factor, index, out):
    """out[i] = factor * scores[index[i], k]."""
    for i in range(index.size):
        store_past_cache(out, i, factor * scores[index[i], k])


@kernel
def spread(scores, picks, factors, index, outs):
    """Scores of distinct rows (rows, measures) to rows of the table.

    outs[m][i] = factors[m] * scores[index[i], picks[m]]. The scores of a row lie side by side, so two measures at once
    cost one access to far memory.
    """
    for first in range(0, index.size, CHUNK):
        part = index[first : first + CHUNK]
        for m in range(picks.size):
            spread_measure(scores, picks[m], factors[m], part, outs[m][first : first + CHUNK])
    finish_stores()


@kernel
def find_extremes(scores, places, out):
    """Lower out[k, 0] to the lowest and raise out[k, 1] to the highest of scores[k // 2, places[row], k % 2]."""
    for k in range(len(out)):
        pair, side = scores[k // 2], k % 2
        low, high = out[k, 0], out[k, 1]
        for row in range(places.size):
            score = pair[places[row], side]
            low = min(low, score)
            high = max(high, score)
        out[k, 0], out[k, 1] = low, high
