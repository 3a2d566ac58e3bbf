"""What travels between machines, made small: numbers in as few bits as they need, scores as numbers of different ones.

Most rows of a value have the same scores: those that are alone in their cohorts. These *usual* scores of a value travel
once, a bit says which rows have them, and the others name theirs among those that differ.
"""

from __future__ import annotations

from numba import int64, uint64

from gpupif.kernels.hashing import mix
from gpupif.kernels.jit import kernel
from gpupif.kernels.stream import finish_stores, store_past_cache


@kernel
def find_usual_number(numbers):
    """The number that more than half of these are, if there is one; else one of them."""
    usual, votes = numbers[0], 0
    for i in range(numbers.size):
        if votes == 0:
            usual = numbers[i]
        votes += 1 if numbers[i] == usual else -1
    return usual


@kernel
def part_numbers(numbers, usual, flags, others):
    """Put the numbers that are not the usual one into others; returns how many. flags: see `join_numbers`."""
    found = 0
    for start in range(0, numbers.size, 64):
        flag = uint64(0)
        for i in range(start, min(start + 64, numbers.size)):
            same = numbers[i] == usual
            flag |= uint64(same) << uint64(i - start)
            others[found] = numbers[i]
            found += not same
        flags[start >> 6] = flag
    return found


@kernel
def join_numbers(flags, usual, others, numbers):
    """Numbers that are the usual one where their bit of the flags is set, else the next of the others."""
    found = 0
    for i in range(numbers.size):
        if (flags[i >> 6] >> uint64(i & 63)) & uint64(1):
            numbers[i] = usual
        else:
            numbers[i] = others[found]
            found += 1


@kernel
def any_bits(numbers):
    """The bits that are set in any of the numbers."""
    bits = uint64(0)
    for i in range(numbers.size):
        bits |= numbers[i]
    return bits


@kernel
def same_items(items, a, b):
    """Whether rows a and b have the same items; items: (scores, rows)."""
    same = True
    for k in range(len(items)):
        same &= items[k, a] == items[k, b]
    return same


@kernel
def find_usual(keys, word, shift, mask, items, step, usual, votes):
    """usual[v] = a row with value v, with the items that most rows of the value have if more than half have the same.

    The value of a row is a field of its key. items: (any number, rows), what tells the rows' scores apart. Only every
    so many rows are looked at: usual stays as it is for a value that none of these has. votes: zeros, one for each
    value.
    """
    for row in range(0, len(keys), step):
        value = (keys[row, word] >> uint64(shift)) & uint64(mask)
        if votes[value] == 0:
            usual[value] = row
        votes[value] += 1 if same_items(items, row, usual[value]) else -1


@kernel
def find_others(keys, word, shift, mask, items, usual, flags, others):
    """Rows that have not the usual items of their value; returns how many. flags: a bit for each row, set where it has.

    usual: see `find_usual`; the number of rows where none is known: then the first row of the value is.
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
    """numbers[i] = which of the different items row i has, in order of first appearance; returns how many differ.

    items: (scores, rows), as bits. slots: zeros, more than different items, 2^(64 - shift) of them: each holds a
    number, from 1 on. first: gets the row of each number.
    """
    found, last = int64(0), slots.size - 1
    for row in range(items.shape[1]):
        hashed = uint64(0)
        for k in range(len(items)):
            hashed = mix(hashed ^ items[k, row])
        slot = int64(hashed >> uint64(shift))
        while slots[slot] != 0 and not same_items(items, row, first[slots[slot] - 1]):
            slot = (slot + 1) & last
        if slots[slot] == 0:
            first[found] = row
            found += 1
            slots[slot] = found
        numbers[row] = slots[slot] - 1
    return found


@kernel
def rank_values(keys, word, shift, mask, ranks):
    """ranks[v] = how many smaller values rows have; returns how many values they have. ranks: zeros, one for each."""
    for row in range(len(keys)):
        ranks[(keys[row, word] >> uint64(shift)) & uint64(mask)] = 1
    found = 0
    for value in range(ranks.size):
        there = ranks[value]
        ranks[value] = found
        found += there
    return found


@kernel
def find_places(keys, word, shift, mask, ranks, flags, numbers, first, second, places):
    """Where the items of each row are: behind `first` by the rank of its value, if its flag is set; else behind
    `second` by the next of `numbers`, of which the last is read but not used.
    """
    other, rows = uint64(0), len(keys)
    for start in range(0, rows, 64):
        flag = flags[start >> 6]
        for row in range(start, min(start + 64, rows)):
            # Both are looked up, for whether a row has the usual scores cannot be foreseen.
            usual = first + ranks[(keys[row, word] >> uint64(shift)) & uint64(mask)]
            own = second + numbers[other]
            places[row] = usual if flag & uint64(1) else own
            other += uint64(1) - (flag & uint64(1))
            flag >>= uint64(1)


@kernel
def place_rows(source_rows, sent, place, first, places):
    """places[source_rows[i]] = first + place[sent[i]]."""
    for i in range(source_rows.size):
        places[source_rows[i]] = first + place[sent[i]]


@kernel
def spread_items(items, places, index, out):
    """out[i] = items[places[index[i]]]."""
    for i in range(index.size):
        store_past_cache(out, i, items[places[index[i]]])
    finish_stores()
