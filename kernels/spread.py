"""Scores of distinct rows copied to all rows of the table, and lookups by index."""

from __future__ import annotations

from gpupif.kernels.formulas import size_measure
from gpupif.kernels.intrinsics import finish_stores, store_past_cache
from gpupif.kernels.jit import kernel, subroutine

# Number of scores that are fetched once and then written column by column: they stay in the first-level cache.
CHUNK = 2048


@kernel
def look_up(table, index, out):
    """Set out[i] to table[index[i]]."""
    for i in range(index.size):
        out[i] = table[index[i]]


@kernel
def take_pairs(scores, picks, places, out):
    """Set out[k // 2, i, k % 2] to scores[places[i], picks[k]]: two scores are adjacent in memory."""
    for i in range(places.size):
        for k in range(picks.size):
            out[k // 2, i, k % 2] = scores[places[i], picks[k]]


@kernel
def invert(order, start, place):
    """Set place[order[i]] to start + i."""
    for i in range(order.size):
        place[order[i]] = start + i


@subroutine
def spread_measure(scores, k, factor, index, out):
    """Set out[i] to factor * scores[index[i], k]."""
    for i in range(index.size):
        store_past_cache(out, i, factor * scores[index[i], k])


@kernel
def spread_sizes(sizes, index, measure, unit, out):
    """Set out[i] to a measure of the row whose equivalence class counts sizes[index[i]] units."""
    for i in range(index.size):
        size = sizes[index[i]]
        store_past_cache(out, i, size_measure(measure, size, size, unit[0]))
    finish_stores()


@kernel
def spread(scores, picks, factors, where, outs, others):
    """Copy the scores of distinct rows to the rows of the table.

    scores: (places, measures). The scores of a row are adjacent, so that all measures cost one access to far memory.
    where: (index, places, own). The scores of row i are at places[index[i]]. own: working memory for `CHUNK` places.
    picks: (numbers, rest). outs[m][i] gets factors[m] * scores[place of i, numbers[m]]; others[m][i], arrays of another
    type, get the scores of the measures `rest` times the factors after the first ones.
    There can be more arrays in `outs` and `others` than picks: their number is fixed, so that the kernel is compiled
    once for each pair of types.
    """
    (index, places, own), (numbers, rest) = where, picks
    rows = max(1, CHUNK // (numbers.size + rest.size))
    for first in range(0, index.size, rows):
        last = min(first + rows, index.size)
        part = own[: last - first]
        look_up(places, index[first:last], part)
        for m in range(numbers.size):
            spread_measure(scores, numbers[m], factors[m], part, outs[m][first:last])
        for m in range(rest.size):
            spread_measure(scores, rest[m], factors[numbers.size + m], part, others[m][first:last])
    finish_stores()


@kernel
def find_extremes(scores, places, out):
    """Lower out[k, 0] to the lowest, and raise out[k, 1] to the highest, of scores[places[row], k]."""
    rows = max(1, CHUNK // len(out))
    for first in range(0, places.size, rows):
        part = places[first : first + rows]
        for k in range(len(out)):
            low, high = out[k, 0], out[k, 1]
            for row in range(part.size):
                score = scores[part[row], k]
                low = min(low, score)
                high = max(high, score)
            out[k, 0], out[k, 1] = low, high
