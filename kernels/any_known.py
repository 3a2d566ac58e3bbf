"""Sets of columns numbered one column after the other, and scores of their combinations folded into those of rows."""

from __future__ import annotations

from numba import uint64

from .jit import kernel

# Rows whose results, of many targets, stay in the second-level cache.
BLOCK = 1024


@kernel
def number_pairs(left, codes, radix, slots, first, number):
    """number[i] = the number of the pair (left[i], codes[i]), in order of first appearance; returns how many differ.

    codes: below radix. slots: zeros, one for each possible pair, and zeros again afterwards. first: gets the first row
    of each number. number: may be `left` itself.
    """
    found = 0
    for i in range(left.size):
        place = uint64(left[i]) * uint64(radix) + uint64(codes[i])
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
        slots[uint64(left[first[c]]) * uint64(radix) + uint64(codes[first[c]])] = 0


@kernel
def sum_times(number, times, counts):
    """counts[c] = the sum of times[i] over rows with number c."""
    for c in range(counts.size):
        counts[c] = 0
    for i in range(number.size):
        counts[number[i]] += times[i]


@kernel
def fold_highest(number, scores, first, side, factor, worst, total):
    """Raise worst[i] to, and add to total[i], the score of row i: factor * scores[first + 2 * number[i] + side]."""
    part = scores[first + side :]
    for i in range(number.size):
        value = factor * part[2 * uint64(number[i])]
        worst[i] = max(worst[i], value)
        total[i] += value


@kernel
def fold_lowest(number, scores, first, side, factor, worst, total):
    """The same where low scores are the worst."""
    part = scores[first + side :]
    for i in range(number.size):
        value = factor * part[2 * uint64(number[i])]
        worst[i] = min(worst[i], value)
        total[i] += value


@kernel
def fold_sets(rows, numbers, folds, factors, lows, scores, worst, total):
    """Fold the scores of combinations into the rows rows[0] to rows[1] - 1, in the order of `folds`.

    numbers (sets, rows): each row's combination. folds: (set, target, where the scores begin, combinations) each; the
    scores lie there as (pairs of measures, combinations, 2). factors (folds, measures): what they are multiplied by.
    lows: by measure, whether low is worst. worst, total: (targets, measures, rows).
    """
    for start in range(rows[0], rows[1], BLOCK):
        stop = min(rows[1], start + BLOCK)
        for f in range(len(folds)):
            target, first, combinations = folds[f, 1], folds[f, 2], folds[f, 3]
            number = numbers[folds[f, 0], start:stop]
            for k in range(lows.size):
                at = first + (k // 2) * 2 * combinations
                lowest_or_highest, sums = worst[target, k, start:stop], total[target, k, start:stop]
                if lows[k]:
                    fold_lowest(number, scores, at, k % 2, factors[f, k], lowest_or_highest, sums)
                else:
                    fold_highest(number, scores, at, k % 2, factors[f, k], lowest_or_highest, sums)
