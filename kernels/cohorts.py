"""Cohorts of one target column, block by block, and the measures of their cells."""

from __future__ import annotations

import numpy as np
from numba import uint64

from .formulas import cell_measure, divergence_absent, divergence_term, information_gain, posterior
from .groups import group_rows, new_table
from .jit import kernel


@kernel
def value_at(keys, row, field):
    """Code of the target column in one row."""
    word, shift, mask = field
    return (keys[row, word] >> uint64(shift)) & uint64(mask)


@kernel
def add_cohort_sizes(counts, start, stop, group_of, groups, cohort_sizes, small, large, listed):
    """Sum the rows of each cohort; count cohorts by size in `small`, list sizes too large for it in `large`."""
    cohort_sizes[:groups] = 0
    for row in range(start, stop):
        cohort_sizes[group_of[row - start]] += counts[row]
    for group in range(groups):
        size = cohort_sizes[group]
        if size < small.size:
            small[size] += 1
        else:
            large[listed] = size
            listed += 1
    return listed


@kernel
def add_gains(rows, start, stop, field, column, group_of, groups, cohort_sizes, gains, present):
    """Information gain of each cohort; its rows are its values, summed in order of first appearance in the table."""
    keys, counts = rows
    priors, information, accuracy = column
    certain = accuracy == 1.0
    gains[:groups] = 0.0
    for row in range(start, stop):
        cohort = group_of[row - start]
        value = value_at(keys, row, field)
        if certain and counts[row] == cohort_sizes[cohort]:
            gains[cohort] = information[value]
        else:
            prior = priors[value]
            gains[cohort] += divergence_term(posterior(counts[row], cohort_sizes[cohort], prior, accuracy), prior)
    if not certain:
        present[:groups] = 0.0
        for row in range(start, stop):
            present[group_of[row - start]] += priors[value_at(keys, row, field)]
        for group in range(groups):
            gains[group] += divergence_absent(present[group], accuracy)
    for group in range(groups):
        gains[group] = information_gain(gains[group])


@kernel
def score_blocks(rows, hashes, offsets, blocks, field, column, measures, needs_gain, sizes, out):
    """Score the cells of one target column in the blocks blocks[0] to blocks[1] - 1.

    rows: (keys, counts) of distinct rows in partition order. field: (word, shift, mask) of the target's bits.
    column: (prior by code, log2 1/prior by code, accuracy). sizes: (small, large) for the cohorts' sizes, see
    `add_cohort_sizes`; returns how many sizes it listed in `large`. out[k, row] gets measure measures[k], wCIG
    before weighting.
    """
    keys, counts = rows
    priors, _, accuracy = column
    word, shift, mask = field
    keep = ~(uint64(mask) << uint64(shift))
    small, large = sizes
    listed = 0
    most = 0
    for block in range(blocks[0], blocks[1]):
        most = max(most, offsets[block + 1] - offsets[block])
    heads = np.empty(most, np.int64)
    group_of = np.empty(most, np.int64)
    cohort_sizes = np.empty(most, np.int64)
    gains = np.zeros(most, np.float64)
    present = np.empty(most, np.float64)
    table = new_table()
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        groups, table = group_rows(keys, hashes, start, stop, word, keep, table, heads, group_of)
        listed = add_cohort_sizes(counts, start, stop, group_of, groups, cohort_sizes, small, large, listed)
        if needs_gain:
            add_gains(rows, start, stop, field, column, group_of, groups, cohort_sizes, gains, present)
        for row in range(start, stop):
            cohort = group_of[row - start]
            prior = priors[value_at(keys, row, field)]
            for k in range(measures.size):
                out[k, row] = cell_measure(
                    measures[k], counts[row], cohort_sizes[cohort], prior, accuracy, gains[cohort]
                )
    return listed
