"""Bounds on how many rows of an equivalence class can be left so that they meet criteria on a sensitive attribute.

The bound of a class is never below the most rows, out of the class, that meet the criteria. If classes that meet them
are merged, all their rows together still meet them. So the bounds of coarser classes never add up to fewer rows than
finer classes leave, whichever rows these suppress.
"""

from __future__ import annotations

import math

from numba import uint64

from gpupif.kernels.hashing import hash_row
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.walks import recursive

# Kinds of criteria: limits on the share of each value, the entropy in bits, recursive (c,l)-diversity.
SHARES, ENTROPY, RECURSIVE = range(3)
# Rounds in which a bound by shares is lowered. Each round is a bound.
ROUNDS = 64
# The share by which a bound is relaxed. The scores of engines and these sums are off by much less.
SLACK = 1e-9
# A value beyond its limit by this share of it still meets a criterion, see `Criterion.is_met`: a tenth of what does.
ROUNDED = 1e-13


@kernel
def number_classes(keys, counts, masks, slots, first, following, sizes, number):
    """Find the classes of rows that agree on the bits of masks. Return how many there are.

    keys: (rows, words). counts: the multiplicities of the rows. masks: (words,). slots: zeros, their number a power of
    two. first: gets a row of each class. following: gets for each row the next row of its class, -1 after the last row.
    sizes: gets the sizes of the classes. number: gets for each row the number of its class.
    """
    last = uint64(slots.size - 1)
    classes = 0
    for row in range(keys.shape[0]):
        slot = hash_row(keys, row, masks) & last
        while True:
            own = int(slots[slot]) - 1
            if own < 0:
                slots[slot] = classes + 1
                first[classes], following[row], sizes[classes], number[row] = row, -1, counts[row], classes
                classes += 1
                break
            same = True
            for word in range(keys.shape[1]):
                same &= (keys[row, word] ^ keys[first[own], word]) & masks[word] == uint64(0)
            if same:
                following[row], number[row] = first[own], own
                first[own] = row
                sizes[own] += counts[row]
                break
            slot = (slot + uint64(1)) & last
    return classes


@subroutine
def most_by_shares(counts, codes, values, size, highest, needed):
    """Return a bound by the highest share of each value; `needed`: the share of the rows that have to be within it."""
    most = size
    for _ in range(ROUNDS):
        within = 0.0
        for i in range(values):
            allowed = highest[codes[i]] * most * (1.0 + SLACK)
            within += min(float(counts[i]), math.floor(allowed) if needed == 1.0 else allowed)
        fewer = math.floor((within + SLACK * most) / needed)
        if fewer >= most:
            break
        most = fewer
    return most


@subroutine
def meets_capped(kind, limit, least, counts, values, cap, capped):
    """Return whether counts meet a criterion if none of them is above `cap`. capped: gets the counts that are left."""
    size, weighted = 0, 0.0
    for i in range(values):
        capped[i] = min(counts[i], cap)
        size += capped[i]
        weighted += capped[i] * math.log2(float(capped[i]))
    if kind == RECURSIVE:
        return recursive(capped, 0, values, least) <= limit * (1.0 + SLACK)
    return math.log2(float(size)) - weighted / size >= limit - SLACK


@subroutine
def most_by_cap(kind, limit, least, counts, values, size, capped):
    """Return a bound by taking rows from the most frequent values, which leaves more rows than any other way."""
    met, failing = 0, 0
    for i in range(values):
        failing = max(failing, counts[i])
    if meets_capped(kind, limit, least, counts, values, failing, capped):
        return size
    while failing - met > 1:
        middle = (met + failing) // 2
        if meets_capped(kind, limit, least, counts, values, middle, capped):
            met = middle
        else:
            failing = middle
    if failing == 1:
        return 0
    left = -1
    for i in range(values):
        left += min(counts[i], failing)
    return left


@subroutine
def surely_meets(kind, limit, least, needed, highest, lowest, margin, counts, codes, values, size):
    """Return whether all rows of a class meet a criterion, which has at least `least` values. See `bound_classes`."""
    if kind == RECURSIVE:
        return recursive(counts, 0, values, least) <= limit * (1.0 + margin)
    if kind == ENTROPY:
        weighted = 0.0
        for i in range(values):
            weighted += counts[i] * math.log2(float(counts[i]))
        return math.log2(float(size)) - weighted / size >= limit - margin
    within, met = 0.0, True
    for i in range(values):
        share = highest[codes[i]] * size
        within += min(float(counts[i]), share)
        met &= counts[i] >= lowest[codes[i]] * size * (1.0 - margin)
        met &= needed < 1.0 or counts[i] <= share * (1.0 + margin)
    return met and (needed == 1.0 or within >= needed * size * (1.0 - margin))


@kernel
def bound_classes(rows, codes, criteria, working, sizes, kept, failing, open_classes):
    """Lower kept[class] to the most rows that meet criteria on an attribute, and set failing[class] if all rows do not.

    Set open_classes[class] if rounding leaves open whether all rows meet the criteria, or a distance that is not known
    here does.

    rows: (first, following, counts), see `number_classes`. codes: of the attribute, by row.
    criteria: (kinds, limits, least, needed, highest, lowest, margins). least: how many values a class has at least.
    highest, lowest: (criteria, values). The shares that values may have, if the class has them. limits: for other
    kinds. margins: the share by which a class may be beyond a limit and surely meets it; below 0 if it has to be within
    it, -infinity if no class surely meets the criterion.
    working: int64 (4, values), zeros.
    """
    first, following, counts = rows
    kinds, limits, least, needed, highest, lowest, margins = criteria
    histogram, present, numbers, capped = working
    for own in range(sizes.size):
        values, row, size = 0, first[own], sizes[own]
        while row >= 0:
            code = int(codes[row])
            if histogram[code] == 0:
                present[values] = code
                values += 1
            histogram[code] += counts[row]
            row = following[row]
        for i in range(values):
            numbers[i] = histogram[present[i]]
            histogram[present[i]] = 0
        for which in range(kinds.size):
            most = size
            if values < least[which]:
                most = 0
            elif kinds[which] == SHARES:
                most = most_by_shares(numbers, present, values, size, highest[which], needed[which])
                for i in range(values):
                    failing[own] |= numbers[i] < lowest[which, present[i]] * size * (1.0 - SLACK)
            else:
                most = most_by_cap(kinds[which], limits[which], least[which], numbers, values, size, capped)
            failing[own] |= most < size
            open_classes[own] |= values < least[which] or not surely_meets(
                kinds[which],
                limits[which],
                least[which],
                needed[which],
                highest[which],
                lowest[which],
                margins[which],
                numbers,
                present,
                values,
                size,
            )
            kept[own] = min(kept[own], most)
