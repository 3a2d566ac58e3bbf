"""Cohorts of one target column, block by block, and the measures of their cells."""

from __future__ import annotations

import math

import numpy as np
from numba import uint64

from .formulas import cell_measure, divergence_absent, divergence_term, information_gain, posterior
from .groups import group_rows, new_table, room_for
from .jit import kernel


@kernel
def log2_of(counts, out):
    """out[i] = log2 counts[i], by the same function in all places, so that equal logarithms cancel."""
    for i in range(counts.size):
        out[i] = math.log2(counts[i])


@kernel
def log2_count(count, logs):
    """log2 of a count >= 1, from the table `logs` (logs[c] = log2 c) as far as it goes."""
    if count < logs.size:
        return logs[count]
    return math.log2(count)


@kernel
def value_at(keys, row, field):
    """Code of the target column in one row."""
    word, shift, mask = field
    return (keys[row, word] >> uint64(shift)) & uint64(mask)


@kernel
def count_sizes(sizes, groups, small, large, listed):
    """Count cohorts by size in `small`, list the sizes too large for it in `large`; returns how many are listed."""
    ones = 0
    for group in range(groups):
        size = sizes[group]
        if size == 1:
            ones += 1
        elif size < small.size:
            small[size] += 1
        else:
            large[listed] = size
            listed += 1
    small[1] += ones
    return listed


@kernel
def add_gains(rows, start, stop, field, column, found, groups, gains):
    """Information gain of each cohort; its rows are its values, summed in order of first appearance in the table."""
    keys, counts, _ = rows
    _, sizes, group_of = found
    priors, log2_priors, accuracy, logs = column
    gains[:groups] = 0.0
    for row in range(start, stop):
        cohort = group_of[row - start]
        value = value_at(keys, row, field)
        prior, count, size = priors[value], counts[row], sizes[cohort]
        log2_share = log2_count(count, logs) - log2_count(size, logs)
        probability = posterior(count, size, prior, accuracy)
        gains[cohort] += divergence_term(probability, log2_share, prior, log2_priors[value], accuracy)
    if accuracy < 1.0:
        present = np.zeros(groups)
        for row in range(start, stop):
            present[group_of[row - start]] += priors[value_at(keys, row, field)]
        for group in range(groups):
            gains[group] += divergence_absent(present[group], accuracy)
    for group in range(groups):
        gains[group] = information_gain(gains[group])


@kernel
def score_blocks(rows, offsets, blocks, field, column, measures, needs_gain, tally, out):
    """Score the cells of one target column in the blocks blocks[0] to blocks[1] - 1.

    rows: (keys, counts, hashes) of distinct rows in partition order. field: (word, shift, mask) of the target's bits.
    column: (prior by code, log2 of it, accuracy, table of `log2_count`). tally: (small, large) for the cohorts' sizes,
    see `count_sizes`; returns how many are listed. out[row, k] gets measure measures[k], wCIG before weighting.
    """
    keys, counts, _ = rows
    priors, _, accuracy, _ = column
    word, shift, mask = field
    keep = ~(uint64(mask) << uint64(shift))
    small, large = tally
    listed = 0
    found = room_for(offsets, blocks)
    _, sizes, group_of = found
    gains = np.zeros(group_of.size)
    table = new_table(group_of.size)
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        groups, table = group_rows(rows, start, stop, word, keep, table, block - blocks[0] + 1, found)
        listed = count_sizes(sizes, groups, small, large, listed)
        if needs_gain:
            add_gains(rows, start, stop, field, column, found, groups, gains)
        for row in range(start, stop):
            cohort = group_of[row - start]
            prior = priors[value_at(keys, row, field)]
            probability = posterior(counts[row], sizes[cohort], prior, accuracy)
            for k in range(measures.size):
                out[row, k] = cell_measure(measures[k], probability, prior, sizes[cohort], gains[cohort])
    return listed
