"""Combinations of values of a set of columns, numbered column after column, and worst and summed scores over sets."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def pair_of(number, code, radix):
    """Return the place of (number, code) among all pairs; code is below radix."""
    return uint64(number) * uint64(radix) + uint64(code)


@kernel
def number_pairs(left, codes, radix, slots, first, number):
    """Assign numbers to the distinct pairs (left[i], codes[i]) in order of first appearance. Return how many there are.

    number[i] gets the number of row i's pair; it can be `left` itself. first: gets the first row of each number. codes:
    below radix. slots: a zero for each possible pair; `clear_slots` makes them zeros again.
    """
    pairs = 0
    for i in range(left.size):
        place = pair_of(left[i], codes[i], radix)
        if slots[place] == 0:
            first[pairs] = i
            pairs += 1
            slots[place] = pairs
        number[i] = slots[place] - 1
    return pairs


@kernel
def clear_slots(left, codes, radix, first, slots):
    """Set the slots that `number_pairs` used to zero again. first: the first row of each number."""
    for c in range(first.size):
        slots[pair_of(left[first[c]], codes[first[c]], radix)] = 0


# It is a kernel of its own, so that it is optimised by itself: inlined in the loops around it, it is a quarter slower.
@kernel
def aggregate_pair(number, scores, worst_and_sums):
    """Raise worst_and_sums[i, :2] to the two scores of row i, and add the scores to worst_and_sums[i, 2:].

    scores[number[i]] are the scores of row i.
    """
    for i in range(number.size):
        at = uint64(number[i])
        one, other = scores[at, 0], scores[at, 1]
        worst_and_sums[i, 0] = max(worst_and_sums[i, 0], one)
        worst_and_sums[i, 1] = max(worst_and_sums[i, 1], other)
        worst_and_sums[i, 2] += one
        worst_and_sums[i, 3] += other


@kernel
def aggregate_set(number, scores, scored_columns, worst_and_sums):
    """Take the scores of a set of known columns into the worst scores and the sums of scores of the rows.

    number: the combination of each row. scores: (scored columns, pairs of measures, combinations, 2). scored_columns:
    the place of each among all scored columns. worst_and_sums: (all scored columns, pairs of measures, rows, 4), the
    highest
    scores of both measures and the sums of both: adjacent, for one access to memory.
    The loops go table by table: a table of scores fits the cache, and the many rows are read in order.
    """
    for t in range(scored_columns.size):
        for pair in range(scores.shape[1]):
            aggregate_pair(number, scores[t, pair], worst_and_sums[scored_columns[t], pair])
