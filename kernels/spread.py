"""From distinct rows back to all rows, and the index arithmetic around it."""

from __future__ import annotations

from gpupif.kernels.formulas import size_measure
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.stream import finish_stores, store_past_cache

# Scores of some rows that are fetched once and then written column by column: they stay in the first-level cache.
CHUNK = 2048


@kernel
def look_up(table, index, out):
    """out[i] = table[index[i]]."""
    for i in range(index.size):
        out[i] = table[index[i]]


@kernel
def take_pairs(scores, picks, places, out):
    """out[k // 2, i, k % 2] = scores[places[i], picks[k]], two scores side by side."""
    for i in range(places.size):
        for k in range(picks.size):
            out[k // 2, i, k % 2] = scores[places[i], picks[k]]


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
def place_repeated(distinct, numbers, factor, order, out):
    """out[order[i]] = factor * distinct[numbers[i]]."""
    for i in range(order.size):
        out[order[i]] = factor * distinct[numbers[i]]


@subroutine
def spread_measure(scores, k, factor, index, out):
    """out[i] = factor * scores[index[i], k]."""
    for i in range(index.size):
        store_past_cache(out, i, factor * scores[index[i], k])


@kernel
def spread_sizes(sizes, index, measure, unit, out):
    """out[i] = a measure of the row whose equivalence class is sizes[index[i]] units."""
    for i in range(index.size):
        size = sizes[index[i]]
        store_past_cache(out, i, size_measure(measure, size, size, unit[0]))
    finish_stores()


@kernel
def spread(scores, picks, factors, where, outs, others):
    """Scores of distinct rows (places, measures) to rows of the table.

    where: (index, places, own): those of row i stand at places[index[i]]; own: memory for `CHUNK` of such places.
    outs[m][i] = factors[m] * its scores[picks[0][m]]; others, of another type, as outs, of picks[1], with the factors
    behind. The scores of a row lie side by side, so all measures cost one access to far memory. There may be more
    arrays than picks: always as many, so that it is compiled once for each pair of types.
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
    """Lower out[k, 0] to the lowest and raise out[k, 1] to the highest of scores[places[row], k]."""
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
