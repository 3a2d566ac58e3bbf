"""Rows by their patterns of missing values, which rows of other patterns they match, and the measures of their cells.

Keys are words of known columns, and a last word with the pattern above `bits` and the value of the scored column below.
"""

from __future__ import annotations

import math

from numba import cuda, int64, uint64

from gpupif.kernels.formulas import OF_COHORT, absent_measure, cell_measure, is_of_size, size_measure
from gpupif.kernels.wildcards import loss, of_nothing


@cuda.jit
def mark_missing(keys, fields, missing, flags):
    """Bit c of flags[:, row]: whether the row's code in field c (word, shift, mask) is missing[c]."""
    for row in range(cuda.grid(1), keys.shape[1], cuda.gridsize(1)):
        for c in range(len(fields)):
            code = (keys[int64(fields[c, 0]), row] >> fields[c, 1]) & fields[c, 2]
            if code == missing[c]:
                flags[c // 64, row] |= uint64(1) << uint64(c % 64)


@cuda.jit
def mask_rows(keys, bits, keep, asking, seen):
    """Rows seen by those of the pattern `asking`: of each the known columns that neither lacks.

    keep[pattern, word]: masks of the known columns that a pattern does not lack.
    """
    last = len(keys) - 1
    for row in range(cuda.grid(1), keys.shape[1], cuda.gridsize(1)):
        pattern = int64(keys[last, row] >> uint64(bits))
        for word in range(last):
            seen[word, row] = keys[word, row] & keep[asking, word] & keep[pattern, word]
        seen[last, row] = keys[last, row]


@cuda.jit
def find_lists(seen, keep, lists, asking, links, lengths):
    """Which list each asking row finds with each pattern p: links[i * patterns + p], -1 for none; and how long it is.

    lists: (offsets, firsts, starts); those of pattern p are offsets[p] to offsets[p + 1] - 1, sorted by what is seen of
    their rows, firsts: one row of each; starts: where their entries begin. asking: rows.
    """
    offsets, firsts, starts = lists
    patterns = len(keep)
    for i in range(cuda.grid(1), links.size, cuda.gridsize(1)):
        row, pattern = asking[i // patterns], i % patterns
        low, high = offsets[pattern], offsets[pattern + 1]
        found = int64(-1)
        while low < high:
            middle = (low + high) // 2
            there = firsts[middle]
            smaller, same = False, True
            for word in range(keep.shape[1]):
                wanted = seen[word, row] & keep[pattern, word]
                if same and seen[word, there] != wanted:
                    smaller, same = seen[word, there] < wanted, False
            if same:
                found, low = middle, high
            elif smaller:
                low = middle + 1
            else:
                high = middle
        links[i] = found
        lengths[i] = starts[found + 1] - starts[found] if found >= 0 else 0


@cuda.jit
def list_cells(before, patterns, which, lists, bits, words, counts):
    """Entries of the lists that some rows find, one after the other: the row, from 0 on, above `bits` and the value
    below, and how many rows have it.

    which: (links, offsets): see `find_lists`, and where the entries of each begin; before: where those of the first do.
    lists: (starts, values, counts) of entries.
    """
    links, offsets = which
    starts, list_values, list_counts = lists
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        # The last link whose entries begin there or before: those that have none begin where the next one does.
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
def score_rows(rows, first, mask, cohorts, values, wanted, cells, found, losses, out):
    """out[k, order[i]] = measure k of the i-th row, weighted ones before weighting.

    rows: (order, keys, words, counts): of each row its key, from `first` on, and the word whose `mask` is its value.
    cohorts: (runs, sizes, certain, starts): by key the run of its cells or -1, and rows of the table, all and those
    whose value is known. losses: for each row -log2 of the share of its cohort that has its value, times how often it
    occurs.
    """
    order, keys, words, counts = rows
    runs, sizes, certain, starts = cohorts
    missing, accuracy, unit_bits = values.first[1], values.accuracies[0], values.unit_bits[0]
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        key, value = keys[i] - first, int64(words[i] & uint64(mask))
        run = runs[key]
        chance, prior, log2_share, log2_prior = math.nan, math.nan, int64(0), int64(0)
        losses[i], same, own = 0.0, sizes[key], int64(0)
        if value != missing:
            prior, log2_prior = values.priors[value], values.log2_priors[value]
        if value != missing and run >= 0:
            low, high = starts[run], starts[run + 1] - 1
            while low < high:
                middle = (low + high) // 2
                if cells.values[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            # Rows that occur 0 times may have a value that no row of the cohort has.
            if cells.values[low] == value:
                own, chance, log2_share = cells.counts[low], cells.posteriors[low], cells.log2_shares[low]
            if counts[i] > 0:
                losses[i] = loss(counts[i], log2_share)
        if value != missing and values.inside[0]:
            # Who lacks a value matches every value.
            same = own + sizes[key] - certain[key]
        for k in range(wanted.measures.size):
            measure, place, statistic = wanted.measures[k], wanted.places[k], 0.0
            if place >= 0:
                statistic = found[run, place] if run >= 0 else of_nothing(wanted.kinds[place])
            if is_of_size(measure):
                out[k, order[i]] = size_measure(measure, sizes[key], same, wanted.unit[0])
            elif value == missing and measure != OF_COHORT:
                out[k, order[i]] = math.nan
            elif own == 0 and measure != OF_COHORT:
                out[k, order[i]] = absent_measure(measure, run >= 0, prior, log2_prior, accuracy, unit_bits)
            else:
                out[k, order[i]] = cell_measure(
                    measure, statistic, chance, log2_share, prior, log2_prior, accuracy, unit_bits
                )
