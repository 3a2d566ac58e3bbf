"""Sets of columns numbered one column after the other, and scores of their combinations folded into those of rows.

A pair is a row's number over some columns and its code in one more. Pairs are ordered by number, then by code.
"""

from __future__ import annotations

from numba import cuda, uint64

from gpupif.kernels.any_known import pair_of


@cuda.jit
def place_pairs(number, words, field, radix, places):
    """places[i] = the pair of row i. words: of the keys that hold the column; field: (shift, mask) of its bits."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        places[i] = pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)


@cuda.jit
def mark_pairs(number, words, field, radix, slots):
    """Put 1 into the slot of each pair that occurs."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        slots[pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)] = 1


@cuda.jit
def number_pairs(number, words, field, radix, marked, out):
    """out[i] = how many other pairs come before that of row i; marked: running totals of the slots marked."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        out[i] = marked[pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)] - 1


@cuda.jit
def count_combinations(number, times, first, counts):
    """Add times[i] to one of the counts (copies, combinations) of number[i]; first: gets a row of each combination.

    Whole numbers, so that their order does not matter; in copies, so that few threads wait for each other.
    """
    copy = cuda.grid(1) % counts.shape[0]
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        first[number[i]] = i
        cuda.atomic.add(counts, (copy, number[i]), times[i])


@cuda.jit
def fold_scores(number, scores, lows, worst, total):
    """Take the scores (measures, combinations) into the worst and the sums (measures, rows) of the rows.

    number: each row's combination. lows: by measure whether the lowest score is the worst.
    """
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        combination = number[i]
        for k in range(lows.size):
            score = scores[k, combination]
            worst[k, i] = min(worst[k, i], score) if lows[k] else max(worst[k, i], score)
            total[k, i] += score
