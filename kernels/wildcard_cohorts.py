"""Cohorts if a missing value matches every value: cohorts overlap, so each key has a cohort of its own.

Keys are the distinct rows over the known columns. They are sorted by *pattern*: the set of known columns whose value is
missing. Two keys match if they agree on all columns in which both have a value. For each pair of patterns, a mask
selects these columns in the keys of both patterns, and a hash table of the smaller side joins the keys.

One pattern is *asking* at a time: cohorts are found for its keys. All other patterns are *answering*.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from gpupif.kernels.groups import full_hashes
from gpupif.kernels.jit import kernel, subroutine


class Keys(NamedTuple):
    """Keys by pattern, and the rows of each key.

    keys: uint64 (keys, words). The keys of pattern p are offsets[p] to offsets[p + 1] - 1.
    keep: uint64 (patterns, words). The mask of the known columns that a pattern has values in.
    offsets: int64 (patterns + 1), see `keys`.
    starts: int64 (keys + 1). The rows of key k are starts[k] to starts[k + 1] - 1.
    values: int64 (rows). The code of each row in the scored column; a missing value has the code after all values.
    counts: (rows). How much each row counts.
    """

    keys: npt.NDArray[np.uint64]
    keep: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[Any]


class Room(NamedTuple):
    """Working memory of one task.

    table: uint64 (slots, 2). A hash, and the number of a group, counted from 1; 0 for a free slot.
    firsts: int64. A key of each group.
    hashes: uint64. The hashes of the keys of a pair of patterns.
    masks: uint64 (words). The mask of a pair of patterns.
    groups: int64. The group of each answering key.
    links: int64 (patterns, asking keys). The list of values that the keys of a pattern have for an asking key, or -1.
    starts, ends: int64 (lists). Where each list begins and ends in `values` and `counts`.
    values, counts: int64. The entries of the lists: a value, and how many rows have it.
    amounts: int64 (values + 1). The number of rows by value; all 0 between uses.
    touched: int64 (values + 1). The values whose amounts are not 0.
    """

    table: npt.NDArray[np.uint64]
    firsts: npt.NDArray[np.int64]
    hashes: npt.NDArray[np.uint64]
    masks: npt.NDArray[np.uint64]
    groups: npt.NDArray[np.int64]
    links: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    amounts: npt.NDArray[np.int64]
    touched: npt.NDArray[np.int64]

    @classmethod
    def for_keys(cls, keys: Keys, asking: int, values: int) -> Room:
        """Allocate memory for up to `asking` keys at once, and for a scored column of `values` values."""
        patterns, size = len(keys.keep), len(keys.keys)
        lists = min(patterns * asking, size)
        largest = int(np.diff(keys.offsets).max())
        return cls(
            np.empty((1 << (2 * asking).bit_length(), 2), np.uint64),
            np.empty(asking, np.int64),
            np.empty(asking + largest, np.uint64),
            np.empty(keys.keys.shape[1], np.uint64),
            np.empty(largest, np.int64),
            np.empty((patterns, asking), np.int64),
            *(np.empty(length, np.int64) for length in (lists, lists, len(keys.values), len(keys.values))),
            np.zeros(values + 1, np.int64),
            np.empty(values + 1, np.int64),
        )


@kernel
def mark_missing(keys, fields, missing, flags):
    """Set bit c of flags[key] if the key's code in field c (word, shift, mask) is missing[c]."""
    for key in range(len(keys)):
        for c in range(len(fields)):
            code = (keys[key, fields[c, 0]] >> fields[c, 1]) & fields[c, 2]
            flags[key, c // 64] |= uint64(code == missing[c]) << uint64(c % 64)


@kernel
def sort_by_group(groups, ends, order):
    """List numbers by their group, stably, in `order`.

    ends: where each group begins, before the call; where it ends, after it.
    """
    for i in range(groups.size):
        group = groups[i]
        order[ends[group]] = i
        ends[group] += 1


@subroutine
def same_masked(keys, a, b, masks):
    """Return whether two keys agree on all bits of the masks."""
    same = True
    for word in range(masks.size):
        same = same and (keys[a, word] ^ keys[b, word]) & masks[word] == uint64(0)
    return same


@subroutine
def make_groups(keys, start, masks, seen, last, table, firsts, groups):
    """Group the keys from `start` on that agree on the bits of the masks. Return how many groups there are.

    seen: the hashes of the masked keys. last: the number of the table's last slot. groups: gets the group of each key.
    """
    # The loop calls no function for keys of one word: a call would pass all the words of which arrays consist.
    number, one_word = 0, masks.size == 1
    for i in range(seen.size):
        slot, group = seen[i] & last, -1
        while table[slot, 1] > uint64(0):
            # Different words never share a hash, so keys of one word need not be compared.
            if table[slot, 0] == seen[i]:
                there = int64(table[slot, 1]) - 1
                if one_word or same_masked(keys, firsts[there], start + i, masks):
                    group = there
                    break
            slot = (slot + uint64(1)) & last
        if group < 0:
            group = number
            number += 1
            table[slot, 0], table[slot, 1], firsts[group] = seen[i], number, start + i
        groups[i] = group
    return number


@subroutine
def find_groups(keys, start, masks, seen, last, table, firsts, groups):
    """Find the groups of keys in the table that `make_groups` filled; -1 for keys without a group."""
    one_word = masks.size == 1
    for i in range(seen.size):
        slot, group = seen[i] & last, -1
        while table[slot, 1] > uint64(0):
            if table[slot, 0] == seen[i]:
                there = int64(table[slot, 1]) - 1
                if one_word or same_masked(keys, firsts[there], start + i, masks):
                    group = there
                    break
            slot = (slot + uint64(1)) & last
        groups[i] = group


@subroutine
def join(keys, asks, answers, masks, hashes, table, firsts, groups, links):
    """Group the answering keys, and link each asking key to its group. Return how many groups there are.

    asks, answers: the keys of both sides, (first, last + 1). groups: gets the group of each answering key, links: that
    of each asking key; -1 for a key that no key of the other side matches. hashes, table, firsts: working memory.
    """
    (start, stop), (first, end) = asks, answers
    asking, answering = stop - start, end - first
    ask, answer = hashes[:asking], hashes[asking : asking + answering]
    full_hashes(keys[start:stop], masks, ask)
    full_hashes(keys[first:end], masks, answer)
    slots = 2
    while slots < 2 * min(asking, answering):
        slots *= 2
    for slot in range(slots):
        table[slot, 1] = 0
    last = uint64(slots - 1)
    if answering <= asking:
        number = make_groups(keys, first, masks, answer, last, table, firsts, groups)
        find_groups(keys, start, masks, ask, last, table, firsts, links)
    else:
        number = make_groups(keys, start, masks, ask, last, table, firsts, links)
        find_groups(keys, first, masks, answer, last, table, firsts, groups)
    return number


@subroutine
def add_up(values, counts, start, stop, amounts):
    """Combine the entries start to stop - 1, so that each value has one entry. Return where the entries end then."""
    end = start
    for i in range(start, stop):
        value = values[i]
        if amounts[value] == 0:
            values[end] = value
            end += 1
        amounts[value] += counts[i]
    for i in range(start, end):
        counts[i] = amounts[values[i]]
        amounts[values[i]] = 0
    return end


@subroutine
def list_answers(known, asking, start, stop, answering, room, lists, end):
    """Make the lists of values that the keys of an answering pattern have for the asking keys start to stop - 1.

    lists, end: the number of lists and entries before. Return the number of lists and entries after.
    """
    # Arrays are read from tuples once, not for each key: reading one counts a reference.
    keep, row_starts, row_values, row_counts = known.keep, known.starts, known.values, known.counts
    masks, groups, values, counts = room.masks, room.groups, room.values, room.counts
    starts, ends, amounts = room.starts[lists:], room.ends[lists:], room.amounts
    for word in range(masks.size):
        masks[word] = keep[asking, word] & keep[answering, word]
    first, last = known.offsets[answering], known.offsets[answering + 1]
    links = room.links[answering, : stop - start]
    pair = (start, stop), (first, last)
    number = join(known.keys, *pair, masks, room.hashes, room.table, room.firsts, groups, links)
    for i in range(links.size):
        links[i] += lists if links[i] >= 0 else 0
    for group in range(number):
        ends[group] = 0
    for k in range(last - first):
        if groups[k] >= 0:
            ends[groups[k]] += row_starts[first + k + 1] - row_starts[first + k]
    for group in range(number):
        starts[group] = end
        end += ends[group]
        ends[group] = starts[group]
    for k in range(last - first):
        group = groups[k]
        if group >= 0:
            entry = ends[group]
            for row in range(row_starts[first + k], row_starts[first + k + 1]):
                if row_counts[row] > 0:
                    values[entry], counts[entry] = row_values[row], row_counts[row]
                    entry += 1
            ends[group] = entry
    for group in range(number):
        ends[group] = add_up(values, counts, starts[group], ends[group], amounts)
    return lists + number, end
