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
    found = 0
    for i in range(left.size):
        place = pair_of(left[i], codes[i], radix)
        if slots[place] == 0:
            first[found] = i
            found += 1
            slots[place] = found
        number[i] = slots[place] - 1
    return found


@kernel
def clear_slots(left, codes, radix, first, slots):
    """Set the slots that `number_pairs` used to zero again. first: the first row of each number."""
    for c in range(first.size):
        slots[pair_of(left[first[c]], codes[first[c]], radix)] = 0


@kernel
def sum_multiplicities(number, multiplicities, counts):
    """Set counts[c] to the sum of the multiplicities multiplicities[i] of the rows with number c."""
    for c in range(counts.size):
        counts[c] = 0
    for i in range(number.size):
        counts[number[i]] += multiplicities[i]


# It is a kernel of its own, so that it is optimised by itself: inlined in the loops around it, it is a quarter slower.
@kernel
def aggregate_pair(number, scores, found):
    """Raise found[i, :2] to the two scores of row i, scores[number[i]], and add the scores to found[i, 2:]."""
    for i in range(number.size):
        at = uint64(number[i])
        one, other = scores[at, 0], scores[at, 1]
        found[i, 0] = max(found[i, 0], one)
        found[i, 1] = max(found[i, 1], other)
        found[i, 2] += one
        found[i, 3] += other


@kernel
def aggregate_set(number, scores, scored_columns, found):
    """Take the scores of a set of known columns into the worst scores and the sums of scores of the rows.

    number: the combination of each row. scores: (scored columns, pairs of measures, combinations, 2). scored_columns:
    the place of each among all scored columns. found: (all scored columns, pairs of measures, rows, 4), the highest
    scores of both measures and the sums of both: adjacent, for one access to memory.
    The loops go table by table: a table of scores fits the cache, and the many rows are read in order.
    """
    for t in range(scored_columns.size):
        for pair in range(scores.shape[1]):
            aggregate_pair(number, scores[t, pair], found[scored_columns[t], pair])
