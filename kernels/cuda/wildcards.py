"""Rows by their patterns of missing values, the rows of other patterns that they match, and measures of their cells.

A key has the words of the known columns, and a last word with the pattern above `bits` bits and the value of the scored
column in these bits. Patterns, lists and links: see `kernels/wildcard_cohorts.py`.
"""

from __future__ import annotations

import math

from numba import cuda, int64, uint64

from gpupif.kernels.formulas import is_of_size, matched_measure, size_measure
from gpupif.kernels.wildcards import loss, of_nothing


@cuda.jit
def mark_missing(keys, fields, missing, flags):
    """Set bit c of flags[:, row] if the row's code in field c (word, shift, mask) is missing[c]."""
    for row in range(cuda.grid(1), keys.shape[1], cuda.gridsize(1)):
        for c in range(len(fields)):
            code = (keys[int64(fields[c, 0]), row] >> fields[c, 1]) & fields[c, 2]
            if code == missing[c]:
                flags[c // 64, row] |= uint64(1) << uint64(c % 64)


@cuda.jit
def mask_rows(keys, bits, keep, asking, seen):
    """Set seen[:, row] to the row's key on the known columns in which its pattern and the asking one have values.

    keep: (patterns, words). The mask of the known columns that each pattern has values in.
    """
    last = len(keys) - 1
    for row in range(cuda.grid(1), keys.shape[1], cuda.gridsize(1)):
        pattern = int64(keys[last, row] >> uint64(bits))
        for word in range(last):
            seen[word, row] = keys[word, row] & keep[asking, word] & keep[pattern, word]
        seen[last, row] = keys[last, row]


@cuda.jit
def find_lists(seen, keep, lists, asking, links, lengths):
    """Find the list of each pattern p for each asking row i: links[i * patterns + p], -1 for none, and its length.

    lists: (offsets, firsts, starts). The lists of pattern p are offsets[p] to offsets[p + 1] - 1, sorted by the masked
    keys of their rows. firsts: a row of each list. starts: the place at which the entries of each list begin. asking:
    the asking rows.
    """
    offsets, firsts, starts = lists
    patterns = len(keep)
    for i in range(cuda.grid(1), links.size, cuda.gridsize(1)):
        row, pattern = asking[i // patterns], i % patterns
        low, high = offsets[pattern], offsets[pattern + 1]
        match = int64(-1)
        while low < high:
            middle = (low + high) // 2
            there = firsts[middle]
            smaller, same = False, True
            for word in range(keep.shape[1]):
                wanted = seen[word, row] & keep[pattern, word]
                if same and seen[word, there] != wanted:
                    smaller, same = seen[word, there] < wanted, False
            if same:
                match, low = middle, high
            elif smaller:
                low = middle + 1
            else:
                high = middle
        links[i] = match
        lengths[i] = starts[match + 1] - starts[match] if match >= 0 else 0


@cuda.jit
def list_cells(before, patterns, which, lists, bits, words, counts):
    """Copy the entries of the lists that some rows find, list after list.

    words: gets the number of the row, from 0 on, above `bits` bits, and the value in these bits. counts: gets how many
    rows have the value. which: (links, offsets), the links of `find_lists` and the place at which the entries of each
    link begin. before: the place of the first entry. lists: (starts, values, counts) of the entries.
    """
    links, offsets = which
    starts, list_values, list_counts = lists
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        # Find the last link whose entries begin here or before. A link without entries begins where the next one does.
        low, high = int64(0), links.size
        while high - low > 1:
            middle = (low + high) // 2
            if offsets[middle] <= before + i:
                low = middle
            else:
                high = middle
        entry = starts[links[low]] + before + i - offsets[low]
        words[i] = uint64(low // patterns) << uint64(bits) | list_values[entry]
        counts[i] = list_counts[entry]


@cuda.jit
def score_rows(rows, first, mask, cohorts, values, wanted, cells, statistic_of, losses, out):
    """Set out[k, order[i]] to measure k of the i-th row, before weighting.

    rows: (order, keys, words, counts). For each row its place, its key, counted from `first` on, the word whose bits
        `mask` are its value, and its count.
    cohorts: (cohort_of, sizes, certain, starts). For each key the number of its cohort, -1 if no value is known in it;
        the rows of the table in the cohort; the number of these whose value is known; where the cohort's cells begin.
    losses: for each row, gets -log2 of the share of its cohort that has its value, times its count.
    """
    order, keys, words, counts = rows
    cohort_of, sizes, certain, starts = cohorts
    missing, accuracy, unit_bits = values.first[1], values.accuracies[0], values.unit_bits[0]
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        key, value = keys[i] - first, int64(words[i] & uint64(mask))
        cohort = cohort_of[key]
        chance, prior, log2_share, log2_prior = math.nan, math.nan, int64(0), int64(0)
        losses[i], same, own = 0.0, sizes[key], int64(0)
        if value != missing:
            prior, log2_prior = values.priors[value], values.log2_priors[value]
        if value != missing and cohort >= 0:
            low, high = starts[cohort], starts[cohort + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if cells.values[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            # A row with count 0 may have a value that no row of the cohort has.
            if cells.values[low] == value:
                own, chance, log2_share = cells.counts[low], cells.posteriors[low], cells.log2_shares[low]
            if counts[i] > 0:
                losses[i] = loss(counts[i], log2_share)
        if value != missing and values.inside[0]:
            # A row whose value is missing matches every value.
            same = own + sizes[key] - certain[key]
        for k in range(wanted.measures.size):
            measure, place, statistic = wanted.measures[k], wanted.places[k], 0.0
            if place >= 0:
                statistic = statistic_of[cohort, place] if cohort >= 0 else of_nothing(wanted.kinds[place])
            if is_of_size(measure):
                out[k, order[i]] = size_measure(measure, sizes[key], same, wanted.unit[0])
            else:
                probabilities = (chance, log2_share, prior, log2_prior, accuracy, unit_bits)
                out[k, order[i]] = matched_measure(
                    measure, statistic, value != missing, own, cohort >= 0, *probabilities
                )
