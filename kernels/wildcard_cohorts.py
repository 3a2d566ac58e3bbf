"""Cohorts where a missing value matches every value: they overlap, so each key has its own.

Keys are the distinct rows over the columns that the attacker knows, sorted by *pattern*: which of these columns are
missing. A key of one pattern matches one of another where they agree on the columns that neither lacks. For each pair
of patterns the keys of both are seen through that mask and joined by a hash table of the smaller side.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from gpupif.kernels.groups import full_hashes
from gpupif.kernels.jit import kernel, subroutine


class Keys(NamedTuple):
    """Keys by pattern, and the rows that have each.

    keys: (keys, words); those of pattern p are offsets[p] to offsets[p + 1] - 1. keep: (patterns, words), the masks of
    the known columns that a pattern does not lack. The rows of key k are starts[k] to starts[k + 1] - 1: the code of
    each in the scored column column, one above all values where it is missing there, and how often it occurs.
    """

    keys: npt.NDArray[np.uint64]
    keep: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    values: npt.NDArray[np.int64]
    counts: npt.NDArray[Any]


class Room(NamedTuple):
    """What a task works in.

    table: of slots, each with a hash and the number of a group from 1 on, or 0; firsts: a key of each group; hashes:
    of all keys of a pair of patterns, masks: of the pair; groups: of each key that answers. links[p, i]: the list of
    what the keys of pattern p have for key i of those that ask, or -1; starts, ends: of lists in values and counts.
    amounts: by value, all 0 between uses; touched: those that are not.
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
    def of(cls, keys: Keys, asking: int, values: int) -> Room:
        """For at most so many keys that ask at once, and a scored column column of so many values."""
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
    """Bit c of flags[key]: whether the key's code in field c (word, shift, mask) is missing[c]."""
    for key in range(len(keys)):
        for c in range(len(fields)):
            code = (keys[key, fields[c, 0]] >> fields[c, 1]) & fields[c, 2]
            flags[key, c // 64] |= uint64(code == missing[c]) << uint64(c % 64)


@kernel
def sort_by_group(groups, ends, order):
    """Bring numbers into order by their group, stably; ends: where each group begins, then where it ends."""
    for i in range(groups.size):
        group = groups[i]
        order[ends[group]] = i
        ends[group] += 1


@subroutine
def same_masked(keys, a, b, masks):
    """Whether two keys agree where seen through masks."""
    same = True
    for word in range(masks.size):
        same = same and (keys[a, word] ^ keys[b, word]) & masks[word] == uint64(0)
    return same


@subroutine
def make_groups(keys, start, masks, seen, last, table, firsts, groups):
    """Group keys from `start` on, of hashes `seen`, where they agree through masks; returns how many groups there are.

    last: number of the last slot of the table.
    """
    # Loops without calls: the many words of which arrays consist would be handed over for each key.
    number, one_word = 0, masks.size == 1
    for i in range(seen.size):
        slot, group = seen[i] & last, -1
        while table[slot, 1] > uint64(0):
            # Different words never share a hash.
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
    """As `make_groups`, the groups that there are: -1 for keys that have none."""
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
    """Groups of the keys that answer and links of the keys that ask, each (first, last + 1), to them; -1 where none of
    the other side is in it. Returns how many there are. hashes, table, firsts: to work in.
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
    """Make the entries start to stop - 1 one for each value; returns where they end then."""
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
    """Lists of what the keys of a pattern have for the keys start to stop - 1 of another.

    lists, end: lists and entries that there are already. Returns how many there are then.
    """
    # Once, not for each key: reading an array from a tuple counts a reference.
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
