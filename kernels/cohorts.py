"""Cohorts of target columns, block by block, and the measures of their cells."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from .formulas import COHORT_SIZE, cell_measure, divergence_absent, divergence_term, information_gain, posterior
from .groups import block_of, group_rows, sum_groups
from .jit import kernel


class Targets(NamedTuple):
    """What the kernels know of the target columns, one after the other.

    fields: (word, shift, mask) of each one's bits. first: where its values begin in priors and log2_priors.
    accuracies: one each. alone: scores of each value by itself, see `score_values`. logs: table of `log2_count`.
    """

    fields: npt.NDArray[np.uint64]
    first: npt.NDArray[np.int64]
    priors: npt.NDArray[np.float64]
    log2_priors: npt.NDArray[np.float64]
    accuracies: npt.NDArray[np.float64]
    alone: npt.NDArray[np.float64]
    logs: npt.NDArray[np.float64]

    def only(self, targets: list[int]) -> Targets:
        """Some of the targets, by their places here."""
        return self._replace(
            fields=self.fields[targets], first=self.first[targets], accuracies=self.accuracies[targets]
        )


class Sums(NamedTuple):
    """What is summed over each cohort of a block, kept at its first row, and scratch.

    sizes: rows. gains: bits. present: prior mass of the values that occur. probabilities: of rows. several: sizes above
    one row.
    """

    sizes: npt.NDArray[Any]
    gains: npt.NDArray[np.float64]
    present: npt.NDArray[np.float64]
    probabilities: npt.NDArray[np.float64]
    several: npt.NDArray[Any]

    @classmethod
    def of(cls, rows: int, dtype: Any) -> Sums:
        """For blocks of at most `rows` rows; dtype: of counts of rows."""
        floats = [np.empty(rows) for _ in range(3)]
        return cls(np.empty(rows, dtype), floats[0], floats[1], floats[2], np.empty(rows + 1, dtype))


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
def count_sizes(sizes, number, small, large, listed):
    """Count cohorts by size in `small`, list the sizes too large for it in `large`; returns how many are listed."""
    for i in range(number):
        size = sizes[i]
        if size < small.size:
            small[size] += 1
        else:
            large[listed] = size
            listed += 1
    return listed


@kernel
def count_heads(sums, size, small, large, listed):
    """`count_sizes` of the cohorts of a block; most are of one row, so the others are picked out first."""
    sizes, _, _, _, several = sums
    ones = 0
    for i in range(size):
        ones += sizes[i] == 1
    small[1] += ones
    number = 0
    for i in range(size):
        several[number] = sizes[i]
        number += sizes[i] > 1
    return count_sizes(several, number, small, large, listed)


@kernel
def score_values(priors, log2_priors, accuracy, start, stop, measures, out):
    """Score the values start to stop of one target, each for rows whose cohort holds no other; out[value, k].

    The cohort's size is another in each row: see `copy_alone`.
    """
    for value in range(start, stop):
        prior = priors[value]
        probability = posterior(1, 1, prior, accuracy)
        gain = divergence_term(probability, 0.0, prior, log2_priors[value], accuracy)
        gain = information_gain(gain + divergence_absent(prior, accuracy))
        for k in range(measures.size):
            out[value, k] = cell_measure(measures[k], probability, prior, 1, gain)


@kernel
def copy_alone(rows, target, targets, measures, out):
    """Score the rows of a block as if each were all the values of its cohort; out[row, k] by measure k."""
    keys, counts, _ = rows
    word, shift, mask = targets.fields[target, 0], targets.fields[target, 1], targets.fields[target, 2]
    base, alone = uint64(targets.first[target]), targets.alone
    for k in range(0, measures.size - 1, 2):
        for row in range(len(keys)):
            value = base + ((keys[row, word] >> shift) & mask)
            out[row, k], out[row, k + 1] = alone[value, k], alone[value, k + 1]
    if measures.size % 2:
        last = measures.size - 1
        for row in range(len(keys)):
            out[row, last] = alone[base + ((keys[row, word] >> shift) & mask), last]
    for k in range(measures.size):
        if measures[k] == COHORT_SIZE:
            for row in range(len(keys)):
                out[row, k] = counts[row]


@kernel
def score_shared(rows, shared, heads, sums, target, targets, measures, out):
    """Score those rows of a block (`shared`) whose cohorts have several values.

    A cohort's rows are its values, summed in order of first appearance in the table.
    """
    keys, counts, _ = rows
    fields, first, priors, log2_priors, accuracies, _, logs = targets
    sizes, gains, present, probabilities, _ = sums
    word, shift, mask, base = fields[target, 0], fields[target, 1], fields[target, 2], uint64(first[target])
    accuracy = accuracies[target]
    for j in range(shared.size):
        gains[shared[j]] = 0.0
        present[shared[j]] = 0.0
    for j in range(shared.size):
        i = shared[j]
        head = heads[i]
        value = base + ((keys[i, word] >> shift) & mask)
        prior, count, size = priors[value], counts[i], sizes[head]
        log2_share = log2_count(count, logs) - log2_count(size, logs)
        probability = posterior(count, size, prior, accuracy)
        probabilities[i] = probability
        gains[head] += divergence_term(probability, log2_share, prior, log2_priors[value], accuracy)
        if accuracy < 1.0:
            present[head] += prior
    for j in range(shared.size):
        i = shared[j]
        head = heads[i]
        prior = priors[base + ((keys[i, word] >> shift) & mask)]
        gain = information_gain(gains[head] + divergence_absent(present[head], accuracy))
        for k in range(measures.size):
            out[i, k] = cell_measure(measures[k], probabilities[i], prior, sizes[head], gain)


@kernel
def score_blocks(rows, offsets, blocks, targets, measures, room, sums, tally, out):
    """Score the cells of target columns in the blocks blocks[0] to blocks[1] - 1.

    rows: (keys, counts, hashes) of distinct rows in partition order. room, sums: for the largest of these blocks.
    tally: (small, large, listed), one row per target, gets the cohorts' sizes, see `count_sizes`.
    out[t, row, k] gets measure measures[k] of target t, wCIG before weighting.
    """
    fields = targets.fields
    small, large, listed = tally
    heads, left, sizes = room.heads, room.left, sums.sizes
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        part = block_of(rows, start, stop)
        counts, size = part[1], stop - start
        for target in range(len(fields)):
            keep = ~(fields[target, 2] << fields[target, 1])
            group_rows(part, fields[target, 0], keep, room)
            sum_groups(counts, size, heads, sizes)
            listed[target] = count_heads(sums, size, small[target], large[target], listed[target])
            scores = out[target, start:stop]
            copy_alone(part, target, targets, measures, scores)
            number = 0
            for i in range(size):
                left[number] = i
                number += sizes[heads[i]] != counts[i]
            score_shared(part, left[:number], heads, sums, target, targets, measures, scores)
