"""Sets of columns numbered one column after the other, and scores of their combinations folded into those of rows."""

from __future__ import annotations

from numba import uint64

from gpupif.kernels.jit import kernel, subroutine


@subroutine
def pair_of(number, code, radix):
    """The place of a number and a code, which is below radix, among all pairs."""
    return uint64(number) * uint64(radix) + uint64(code)


@kernel
def number_pairs(left, codes, radix, slots, first, number):
    """number[i] = the number of the pair (left[i], codes[i]), in order of first appearance; returns how many differ.

    codes: below radix. slots: zeros, one for each possible pair, and zeros again afterwards. first: gets the first row
    of each number. number: may be `left` itself.
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
    """Make the slots that `number_pairs` used zeros again; first: the first row of each number."""
    for c in range(first.size):
        slots[pair_of(left[first[c]], codes[first[c]], radix)] = 0


@kernel
def sum_times(number, times, counts):
    """counts[c] = the sum of times[i] over rows with number c."""
    for c in range(counts.size):
        counts[c] = 0
    for i in range(number.size):
        counts[number[i]] += times[i]


# A kernel, so that it is optimised by itself: within the loops around it, it takes a quarter longer.
@kernel
def fold_pair(number, scores, found):
    """Raise found[i, :2] to the two scores of row i, scores[number[i]], and add them to found[i, 2:]."""
    for i in range(number.size):
        at = uint64(number[i])
        one, other = scores[at, 0], scores[at, 1]
        found[i, 0] = max(found[i, 0], one)
        found[i, 1] = max(found[i, 1], other)
        found[i, 2] += one
        found[i, 3] += other


@kernel
def fold_set(number, scores, scored_columns, found):
    """Fold the scores of a set's combinations into those of rows; number: each row's combination.

    scores: (scored columns, pairs of measures, combinations, 2). found: (all scored columns, pairs of measures, rows,
    4), the highest
    scores of both measures and their sums: side by side, for one access to memory. scored columns: which of all they
    are. Table by table, each of which a cache holds, over many rows, which are read in order.
    """
    for t in range(scored_columns.size):
        for pair in range(scores.shape[1]):
            fold_pair(number, scores[t, pair], found[scored_columns[t], pair])
