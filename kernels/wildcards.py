"""Cohorts where a missing value matches every value: they overlap, so each key has its own.

Keys are the distinct rows over the columns that the attacker knows, sorted by *pattern*: which of these columns are
missing. A key of one pattern matches one of another where they agree on the columns that neither lacks. For each pair
of patterns the keys of both are seen through that mask and joined by a hash table of the smaller side.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from .blocks import find_statistics
from .formulas import COHORT_SIZE, OF_COHORT, cell_measure, posterior
from .groups import full_hashes
from .jit import kernel
from .sizes import log2_count
from .statistics import ENTROPY, RECURSIVE


class Keys(NamedTuple):
    """Keys by pattern, and the rows that have each.

    keys: (keys, words); those of pattern p are offsets[p] to offsets[p + 1] - 1. keep: (patterns, words), the masks of
    the known columns that a pattern does not lack. The rows of key k are starts[k] to starts[k + 1] - 1: the code of
    each in the target column, one above all values where it is missing there, and how often it occurs.
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
        """For at most so many keys that ask at once, and a target column of so many values."""
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


@kernel
def same_masked(keys, a, b, masks):
    """Whether two keys agree where seen through masks."""
    same = True
    for word in range(masks.size):
        same = same and (keys[a, word] ^ keys[b, word]) & masks[word] == uint64(0)
    return same


@kernel
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


@kernel
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


@kernel
def join(keys, start, stop, first, end, masks, hashes, table, firsts, groups, links):
    """Groups of the keys first to end - 1 that answer and of the keys start to stop - 1 that ask; -1 where none of the
    other side is in it. Returns how many there are. hashes, table, firsts: to work in.
    """
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


@kernel
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


@kernel
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
    number = join(known.keys, start, stop, first, last, masks, room.hashes, room.table, room.firsts, groups, links)
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
                values[entry], counts[entry] = row_values[row], row_counts[row]
                entry += 1
            ends[group] = entry
    for group in range(number):
        ends[group] = add_up(values, counts, starts[group], ends[group], amounts)
    return lists + number, end


@kernel
def of_target(values, target):
    """The code of a target's missing values, the priors of its others and their logarithms, and its accuracy."""
    base, end = values.first[target], values.first[target + 1]
    return end - base, values.priors[base:end], values.log2_priors[base:end], values.accuracies[target]


@kernel
def describe_cohort(number, cell, missing, priors, accuracy, logs, amounts, touched, cells):
    """Put the values of a cohort into `cells` from `cell` on, but missing ones; returns rows, known ones, next cell.

    cells: the arrays of `Cells`.
    """
    codes, cell_counts, shares, log2_shares, posteriors = cells
    size = 0
    for i in range(number):
        size += amounts[touched[i]]
    certain = size - amounts[missing]
    log2_size = log2_count(certain, logs) if certain > 0 else 0.0
    for i in range(number):
        value = touched[i]
        if value != missing:
            count = amounts[value]
            codes[cell], cell_counts[cell], shares[cell] = value, count, count / certain
            log2_shares[cell] = log2_count(count, logs) - log2_size
            posteriors[cell] = posterior(count, certain, priors[value], accuracy)
            cell += 1
    return size, certain, cell


@kernel
def of_nothing(kind):
    """A statistic of a cohort in which no value is known: nothing is learnt, its entropy and recursion are unknown."""
    return math.nan if kind in (ENTROPY, RECURSIVE) else 0.0


@kernel
def score_rows(known, first, number, target, values, logs, wanted, scratch, own, losses, out):
    """Put the measures of the rows of the keys `first` and on into `out`, see `score_patterns`.

    Of key first + j: scratch.order[j] its run or -1, scratch.sizes[j] its cohort's size, scratch.place[j] the rows
    there whose value is known. own[row]: those with the row's own value.
    """
    missing, priors, log2_priors, accuracy = of_target(values, target)
    starts, row_values, row_counts = known.starts, known.values, known.counts
    runs, sizes, certains, found = scratch.order, scratch.sizes, scratch.place, scratch.found
    for k in range(wanted.measures.size):
        measure, place, scores, side = wanted.measures[k], wanted.places[k], out[k // 2], k % 2
        for j in range(number):
            size, certain, statistic = sizes[j], certains[j], 0.0
            if place >= 0:
                statistic = found[runs[j], place] if runs[j] >= 0 else of_nothing(wanted.kinds[place])
            for row in range(starts[first + j], starts[first + j + 1]):
                value = row_values[row]
                if measure == OF_COHORT:
                    scores[row, side] = statistic
                elif measure == COHORT_SIZE:
                    scores[row, side] = size
                elif value == missing:
                    scores[row, side] = math.nan
                else:
                    prior, log2_prior = priors[value], log2_priors[value]
                    chance = posterior(own[row], certain, prior, accuracy)
                    log2_share = log2_count(own[row], logs) - log2_count(certain, logs)
                    scores[row, side] = cell_measure(
                        measure, statistic, chance, log2_share, prior, log2_prior, accuracy, size
                    )
    for j in range(number):
        for row in range(starts[first + j], starts[first + j + 1]):
            losses[row] = 0.0
            if row_values[row] != missing:
                losses[row] = row_counts[row] * (log2_count(certains[j], logs) - log2_count(own[row], logs))


@kernel
def score_keys(known, start, stop, target, values, logs, wanted, room, scratch, own, losses, out):
    """Score the rows of the keys start to stop - 1, in batches that `scratch` has room for."""
    missing, priors, _, accuracy = of_target(values, target)
    row_starts, row_values, row_counts = known.starts, known.values, known.counts
    links, list_starts, list_ends, list_values, list_counts = (
        room.links,
        room.starts,
        room.ends,
        room.values,
        room.counts,
    )
    amounts, touched = room.amounts, room.touched
    runs, starts, sizes, certains = scratch.order, scratch.starts, scratch.sizes, scratch.place
    cells = (
        scratch.cells.values,
        scratch.cells.counts,
        scratch.cells.shares,
        scratch.cells.log2_shares,
        scratch.cells.posteriors,
    )
    first, run, cell = start, 0, 0
    starts[0] = 0
    for key in range(start, stop):
        # Its own rows, then what other patterns have for it; see `make_groups` for why there is no call.
        number = 0
        for row in range(row_starts[key], row_starts[key + 1]):
            touched[number] = row_values[row]
            number += 1
            amounts[row_values[row]] = row_counts[row]
        for answering in range(len(links)):
            one = links[answering, key - start]
            if one >= 0:
                for entry in range(list_starts[one], list_ends[one]):
                    value = list_values[entry]
                    if amounts[value] == 0:
                        touched[number] = value
                        number += 1
                    amounts[value] += list_counts[entry]
        if cell + number > cells[0].size or key - first == sizes.size:
            find_statistics(run, target, values, wanted, scratch)
            score_rows(known, first, key - first, target, values, logs, wanted, scratch, own, losses, out)
            first, run, cell = key, 0, 0
        size, certain, cell = describe_cohort(number, cell, missing, priors, accuracy, logs, amounts, touched, cells)
        sizes[key - first], certains[key - first], runs[key - first] = size, certain, -1
        if certain > 0:
            runs[key - first] = run
            run += 1
            starts[run] = cell
        for row in range(row_starts[key], row_starts[key + 1]):
            own[row] = amounts[row_values[row]]
        for i in range(number):
            amounts[touched[i]] = 0
    find_statistics(run, target, values, wanted, scratch)
    score_rows(known, first, stop - first, target, values, logs, wanted, scratch, own, losses, out)


@kernel
def score_patterns(known, segments, target, values, logs, wanted, room, scratch, own, losses, out):
    """Score the rows of segments (pattern, first key, last key + 1).

    out[k // 2, row, k % 2] gets measure k, before weighting: NaN what is of the row's own value where that is missing.
    losses[row]: -log2 of the share of its cohort that has its value, times how often it occurs; own: to work in.
    """
    for s in range(len(segments)):
        asking, start, stop = segments[s, 0], segments[s, 1], segments[s, 2]
        lists, end = 0, 0
        for answering in range(len(known.keep)):
            if answering == asking:
                room.links[asking, : stop - start] = -1
            else:
                lists, end = list_answers(known, asking, start, stop, answering, room, lists, end)
        score_keys(known, start, stop, target, values, logs, wanted, room, scratch, own, losses, out)
