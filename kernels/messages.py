"""Compact form of rows and scores that are sent between machines.

Numbers take as few bits as they need. Scores are sent as the distinct scores and, for each row, the number of its
scores among them. Most rows with the same value have equal scores, because each is alone in its cohort. These *usual*
scores of a value are sent once; a bit says which rows have them, and only the other rows are sent with a number.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.intrinsics import finish_stores, store_past_cache
from gpupif.kernels.jit import kernel


@kernel
def find_usual_number(numbers):
    """Return the number that more than half of `numbers` are; any of them if there is no such number."""
    usual, votes = numbers[0], 0
    for i in range(numbers.size):
        if votes == 0:
            usual = numbers[i]
        votes += 1 if numbers[i] == usual else -1
    return usual


@kernel
def part_numbers(numbers, usual, flags, others):
    """Copy the numbers that are not the usual one to `others`. Return how many. flags: see `join_numbers`."""
    copied = 0
    for start in range(0, numbers.size, 64):
        flag = uint64(0)
        for i in range(start, min(start + 64, numbers.size)):
            same = numbers[i] == usual
            flag |= uint64(same) << uint64(i - start)
            others[copied] = numbers[i]
            copied += not same
        flags[start >> 6] = flag
    return copied


@kernel
def join_numbers(flags, usual, others, numbers):
    """Set numbers[i] to the usual number if its bit of `flags` is set, else to the next of `others`."""
    used = 0
    for i in range(numbers.size):
        if (flags[i >> 6] >> uint64(i & 63)) & uint64(1):
            numbers[i] = usual
        else:
            numbers[i] = others[used]
            used += 1


@kernel
def any_bits(numbers):
    """Return the bits that are set in any of the numbers."""
    bits = uint64(0)
    for i in range(numbers.size):
        bits |= numbers[i]
    return bits


@kernel
def same_items(items, a, b):
    """Return whether rows a and b have equal items. items: (scores, rows)."""
    same = True
    for k in range(len(items)):
        same &= items[k, a] == items[k, b]
    return same


@kernel
def find_usual(keys, word, shift, mask, items, step, usual, votes):
    """Set usual[v] to a row with value v whose items more than half of the rows with value v have, if there are such.

    keys, word, shift, mask: the value of a row is a field of its key. items: (items, rows), which tell the rows' scores
    apart. step: only each step-th row is looked at; usual[v] does not change if none of these has value v. votes: a
    zero for each value.
    """
    for row in range(0, len(keys), step):
        value = (keys[row, word] >> uint64(shift)) & uint64(mask)
        if votes[value] == 0:
            usual[value] = row
        votes[value] += 1 if same_items(items, row, usual[value]) else -1


@kernel
def find_others(keys, word, shift, mask, items, usual, flags, others):
    """List in `others` the rows that do not have the usual items of their value. Return how many they are.

    flags: a bit for each row, set if the row has them. usual: see `find_usual`. If usual[v] is the number of rows,
    no usual row is known yet, and the first row with value v becomes it.
    """
    number, rows = 0, len(keys)
    for start in range(0, rows, 64):
        stop = min(start + 64, rows)
        for row in range(start, stop):
            value = (keys[row, word] >> uint64(shift)) & uint64(mask)
            if usual[value] == rows:
                usual[value] = row
        flag = ~uint64(0)
        for k in range(len(items)):
            own, same = items[k], uint64(0)
            for row in range(start, stop):
                value = (keys[row, word] >> uint64(shift)) & uint64(mask)
                same |= uint64(own[row] == own[usual[value]]) << uint64(row - start)
            flag &= same
        flags[start >> 6] = flag
        for row in range(start, stop):
            others[number] = row
            number += 1 - int64((flag >> uint64(row - start)) & uint64(1))
    return number


@kernel
def number_items(items, shift, slots, numbers, first):
    """Assign numbers to the distinct items of rows in order of first appearance. Return how many there are.

    numbers[i] gets the number of row i's items; first[n] gets the first row with the items of number n. items: (scores,
    rows), as bits. slots: 2^(64 - shift) zeros, more than there are distinct items; a slot gets a number, counted from
    1.
    """
    made, last = int64(0), slots.size - 1
    for row in range(items.shape[1]):
        hashed = uint64(0)
        for k in range(len(items)):
            hashed = mix(hashed ^ items[k, row])
        slot = int64(hashed >> uint64(shift))
        while slots[slot] != 0 and not same_items(items, row, first[slots[slot] - 1]):
            slot = (slot + 1) & last
        if slots[slot] == 0:
            first[made] = row
            made += 1
            slots[slot] = made
        numbers[row] = slots[slot] - 1
    return made


@kernel
def rank_values(keys, word, shift, mask, ranks):
    """Set ranks[v] to how many values smaller than v occur in rows. Return how many values occur.

    ranks: a zero for each value.
    """
    for row in range(len(keys)):
        ranks[(keys[row, word] >> uint64(shift)) & uint64(mask)] = 1
    smaller = 0
    for value in range(ranks.size):
        there = ranks[value]
        ranks[value] = smaller
        smaller += there
    return smaller


@kernel
def find_places(keys, word, shift, mask, ranks, flags, numbers, first, second, places):
    """Set places[row] to the place of the row's items.

    If the row's flag is set, it is `first` plus the rank of its value; else `second` plus the next of `numbers`. The
    last of `numbers` is read and not used.
    """
    other, rows = uint64(0), len(keys)
    for start in range(0, rows, 64):
        flag = flags[start >> 6]
        for row in range(start, min(start + 64, rows)):
            # Both are looked up, because no processor can predict which rows have the usual scores.
            usual = first + ranks[(keys[row, word] >> uint64(shift)) & uint64(mask)]
            own = second + numbers[other]
            places[row] = usual if flag & uint64(1) else own
            other += uint64(1) - (flag & uint64(1))
            flag >>= uint64(1)


@kernel
def place_rows(source_rows, sent, place, first, places):
    """Set places[source_rows[i]] to first + place[sent[i]]."""
    for i in range(source_rows.size):
        places[source_rows[i]] = first + place[sent[i]]


@kernel
def spread_items(items, places, index, out):
    """Set out[i] to items[places[index[i]]]."""
    for i in range(index.size):
        store_past_cache(out, i, items[places[index[i]]])
    finish_stores()
