"""Combinations of values of a set of columns, numbered column after column, and worst and summed scores over sets.

A *pair* is a row's number over some columns and its code in one more column. Pairs are ordered by number, then by code.
"""

from __future__ import annotations

from numba import cuda, uint64

from gpupif.kernels.any_known import pair_of


@cuda.jit
def place_pairs(number, words, field, radix, places):
    """Set places[i] to the pair of row i. words: the words of the keys that hold the column. field: (shift, mask)."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        places[i] = pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)


@cuda.jit
def mark_pairs(number, words, field, radix, slots):
    """Set the slot of each pair that occurs to 1."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        slots[pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)] = 1


@cuda.jit
def number_pairs(number, words, field, radix, marked, out):
    """Set out[i] to how many pairs come before the pair of row i. marked: running totals of the slots."""
    shift, mask = field
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        out[i] = marked[pair_of(number[i], (words[i] >> uint64(shift)) & uint64(mask), radix)] - 1


@cuda.jit
def count_combinations(number, multiplicities, first, counts):
    """Add multiplicities[i] to one of the counts of combination number[i].

    counts: (copies, combinations), whole numbers. The copies keep threads from waiting for each other. first: gets a
    row of each combination.
    """
    copy = cuda.grid(1) % counts.shape[0]
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        first[number[i]] = i
        cuda.atomic.add(counts, (copy, number[i]), multiplicities[i])


@cuda.jit
def aggregate_scores(number, scores, lows, worst, total):
    """Take the scores of a set of known columns into the worst scores and the sums of scores of the rows.

    number: the combination of each row. scores: (measures, combinations). lows: by measure, whether the lowest score is
    the worst. worst, total: (measures, rows).
    """
    for i in range(cuda.grid(1), number.size, cuda.gridsize(1)):
        combination = number[i]
        for k in range(lows.size):
            score = scores[k, combination]
            worst[k, i] = min(worst[k, i], score) if lows[k] else max(worst[k, i], score)
            total[k, i] += score
