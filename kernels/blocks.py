"""Blocks of distinct rows: the cohorts of target columns in them, and the measures of their cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import uint64

from gpupif.kernels.cohorts import Cells, Values, sort_runs, sum_runs, walk_runs
from gpupif.kernels.formulas import (
    OF_COHORT,
    is_of_probabilities,
    is_of_size,
    logarithm_measure,
    posterior,
    probability_measure,
    size_measure,
)
from gpupif.kernels.groups import Room, block_of, group_rows, sum_groups
from gpupif.kernels.jit import kernel
from gpupif.kernels.sizes import count_heads, log2_count
from gpupif.kernels.statistics import is_walk
from gpupif.kernels.walks import NOMINAL

# Scores of so many cells are written at once that these stay in the first-level cache.
CACHED_SCORES = 1 << 11


class Targets(NamedTuple):
    """What the kernels know of the target columns.

    fields: (word, shift, mask) of each one's bits. values: of all. alone: scores of each value by itself, see
    `score_values` and `Out`; few: for how many rows, at most, there are scores of each. logs: table of `log2_count`.
    """

    fields: npt.NDArray[np.uint64]
    values: Values
    alone: npt.NDArray[np.float64]
    few: npt.NDArray[np.int64]
    logs: npt.NDArray[np.int64]


class Out(NamedTuple):
    """Scores, and where those of each row are: of many rows they are the same, and stand there once.

    scores[t, place, k]: of measure k of target t, before weighting: those of a row are fetched at once. Places up to
    `rows` are for scores of rows, those of blocks that are scored together side by side. Behind them stand those of
    each value whose cohort holds no other, of one row, of two, ... up to `Targets.few` rows. places[t, row]: of the
    row's scores.
    """

    scores: npt.NDArray[np.float64]
    places: npt.NDArray[Any]


class Scratch(NamedTuple):
    """Memory for the cohorts of a block.

    sizes: rows of each, at its first row; several: sizes above one row. order: rows with other values in their cohorts,
    cohort by cohort; starts: of these cohorts; place: for finding these. cells: of the rows in order, runs: the cohort
    of each. found: statistics, by cohort.
    """

    sizes: npt.NDArray[Any]
    several: npt.NDArray[Any]
    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    cells: Cells
    runs: npt.NDArray[np.int64]
    found: npt.NDArray[np.float64]

    @classmethod
    def of(cls, rows: int, dtype: Any, kinds: npt.NDArray[np.int64]) -> Scratch:
        """For blocks of at most `rows` rows; dtype: of counts of rows. kinds: of the statistics."""
        integers = [np.empty(rows + 1, np.int64) for _ in range(3)]
        cells, runs, found = Cells.of(rows), np.empty(rows, np.int64), np.empty((rows, len(kinds)))
        return cls(np.empty(rows, dtype), np.empty(rows + 1, dtype), *integers, cells, runs, found)


def ordered_cells(rows: int, kinds: npt.NDArray[np.int64]) -> Cells | None:
    """Memory for cells by value, None where no statistic needs them: then no code for it is compiled either."""
    return Cells.of(rows) if any(is_walk.py_func(kind) for kind in kinds) else None


def memory_for(rows: int, dtype: Any, kinds: npt.NDArray[np.int64]) -> tuple[Room, Scratch, Cells | None]:
    """What `score_blocks` works in, for blocks of at most `rows` rows; see `Scratch.of`."""
    return Room.of(rows), Scratch.of(rows, dtype, kinds), ordered_cells(rows, kinds)


@kernel
def find_statistics(cohorts, target, values, wanted, scratch, ordered):
    """Put all statistics of cohorts into scratch.found; ordered: see `ordered_cells`."""
    starts, cells, found = scratch.starts, scratch.cells, scratch.found
    sum_runs(starts, (0, cohorts, 1, cells.values.size), target, values, wanted, cells, found)
    if ordered is not None:
        if values.axes.kinds[target] != NOMINAL:
            sort_runs(starts, cohorts, cells, ordered)
        walk_runs(starts, (0, cohorts, 1), target, values, wanted, cells, ordered, found)


@kernel
def score_cells(cohorts, target, values, wanted, scratch, rows, sizes, out):
    """Put measure k of cell i into out[i, k], see `Out`; sizes: of cohorts, at their first row."""
    base, accuracy, unit_bits = values.first[target], values.accuracies[target], values.unit_bits[target]
    priors, log2_priors = values.priors, values.log2_priors
    starts, runs, found, codes = scratch.starts, scratch.runs, scratch.found, scratch.cells.values
    unit, inside, counts = wanted.unit[0], values.inside[target], scratch.cells.counts
    posteriors, log2_shares = scratch.cells.posteriors, scratch.cells.log2_shares
    for cohort in range(cohorts):
        for i in range(starts[cohort], starts[cohort + 1]):
            runs[i] = cohort
    cells, step = starts[cohorts], max(1, CACHED_SCORES // wanted.measures.size)
    for first in range(0, cells, step):
        last = min(first + step, cells)
        # Measure by measure, so that what to compute is not decided anew for each cell; and not cohort by cohort, most
        # of which are few cells.
        for k in range(wanted.measures.size):
            measure, place = wanted.measures[k], wanted.places[k]
            if measure == OF_COHORT:
                for i in range(first, last):
                    out[i, k] = found[runs[i], place]
            elif is_of_size(measure):
                for i in range(first, last):
                    size = sizes[rows[starts[runs[i]]]]
                    out[i, k] = size_measure(measure, size, counts[i] if inside else size, unit)
            elif is_of_probabilities(measure):
                for i in range(first, last):
                    out[i, k] = probability_measure(measure, posteriors[i], priors[base + codes[i]])
            else:
                for i in range(first, last):
                    prior, log2_prior = priors[base + codes[i]], log2_priors[base + codes[i]]
                    out[i, k] = logarithm_measure(
                        measure, posteriors[i], log2_shares[i], prior, log2_prior, accuracy, unit_bits
                    )


@kernel
def score_values(target, start, stop, targets, wanted, scratch, ordered):
    """Score the values start to stop of one target, each for rows whose cohort holds no other: see `Out`."""
    values, cells = targets.values, scratch.cells
    alone = targets.alone[values.first[target] :]
    for value in range(start, stop):
        cell = value - start
        cells.values[cell], cells.counts[cell], cells.log2_shares[cell], cells.shares[cell] = value, 1, 0, 1.0
        prior = values.priors[values.first[target] + value]
        cells.posteriors[cell] = posterior(1, 1, prior, values.accuracies[target])
        scratch.starts[cell], scratch.order[cell], scratch.sizes[cell] = cell, cell, 1
    scratch.starts[stop - start] = stop - start
    find_statistics(stop - start, target, values, wanted, scratch, ordered)
    score_cells(stop - start, target, values, wanted, scratch, scratch.order, scratch.sizes, alone[start:stop])


@kernel
def put_value(alone, measures, size, unit, out):
    """Scores of rows that are all of their cohort, of this size; alone: those of one such row."""
    for k in range(measures.size):
        out[k] = size_measure(measures[k], size, size, unit) if is_of_size(measures[k]) else alone[k]


@kernel
def put_values(alone, wanted, few, out):
    """Scores of each value by itself, for 1 to `few` rows: its cohort's size is another then."""
    values, measures, unit = len(alone), wanted.measures, wanted.unit[0]
    for count in range(few):
        for value in range(values):
            put_value(alone[value], measures, count + 1, unit, out[count * values + value])


@kernel
def point_at_values(keys, counts, target, targets, rows, places):
    """Have the rows of a block scored as if each were all the values of its cohort."""
    word, shift, mask = targets.fields[target, 0], targets.fields[target, 1], targets.fields[target, 2]
    values, few = targets.values.first[target + 1] - targets.values.first[target], uint64(targets.few[target])
    first, step = uint64(rows), uint64(values) if few > 1 else uint64(0)
    for row in range(len(keys)):
        count = uint64(counts[row])
        more = count - uint64(1) if count <= few else uint64(0)
        places[row] = first + more * step + ((keys[row, word] >> shift) & mask)


@kernel
def score_sizes(counts, heads, start, sizes, wanted, rows, few, alone, scores, places):
    """Scores of their own for the rows of a block that are all the values of their cohort, but more than `few`.

    The cohort's size is another in each, where it is wanted. Returns how many they are.
    """
    number, measures, unit = 0, wanted.measures, wanted.unit[0]
    of_size = False
    for k in range(measures.size):
        of_size |= is_of_size(measures[k])
    if of_size:
        for row in range(counts.size):
            if counts[row] > few and sizes[heads[row]] == counts[row]:
                place = start + number
                value = np.int64(places[row]) - rows
                put_value(alone[value], measures, counts[row], unit, scores[place])
                places[row] = place
                number += 1
    return number


@kernel
def point_at_cells(order, cells, place, places):
    """Have the rows that are these cells scored by what stands at `place` and behind it."""
    for i in range(cells):
        places[order[i]] = place + i


@kernel
def find_cohorts(counts, heads, size, scratch):
    """Bring the rows with other values in their cohorts into order, cohort by cohort; returns how many cohorts."""
    sizes, order, starts, place = scratch.sizes, scratch.order, scratch.starts, scratch.place
    for i in range(size):
        place[i] = 0
    for i in range(size):
        place[heads[i]] += 1
    number, end = 0, 0
    for i in range(size):
        head = heads[i]
        if sizes[head] != counts[i]:
            if head == i:
                starts[number] = end
                number += 1
                members = place[i]
                place[i] = end
                end += members
            order[place[head]] = i
            place[head] += 1
    starts[number] = end
    return number


@kernel
def describe_large(cohorts, heads, scratch, logs):
    """Put the logarithms of cells of large cohorts, beyond the table `logs`, into scratch.cells.

    Apart from `describe_cells`, in which nearly all cells are done: the loop there is the faster without them.
    """
    starts, sizes, order, counts = scratch.starts, scratch.sizes, scratch.order, scratch.cells.counts
    log2_shares = scratch.cells.log2_shares
    for cohort in range(cohorts):
        size = sizes[heads[order[starts[cohort]]]]
        if size >= logs.size:
            log2_size = log2_count(size, logs)
            for i in range(starts[cohort], starts[cohort + 1]):
                log2_shares[i] = log2_count(counts[i], logs) - log2_size


@kernel
def describe_cells(rows, cohorts, heads, target, targets, scratch):
    """Fill in scratch.cells for the rows of a block that `find_cohorts` brought into order."""
    keys, counts, _ = rows
    word, shift, mask = targets.fields[target, 0], targets.fields[target, 1], targets.fields[target, 2]
    logs, order, starts, sizes = targets.logs, scratch.order, scratch.starts, scratch.sizes
    base, accuracy, priors = (
        uint64(targets.values.first[target]),
        targets.values.accuracies[target],
        targets.values.priors,
    )
    values, cell_counts, shares = scratch.cells.values, scratch.cells.counts, scratch.cells.shares
    log2_shares, posteriors = scratch.cells.log2_shares, scratch.cells.posteriors
    large = False
    for cohort in range(cohorts):
        size = sizes[heads[order[starts[cohort]]]]
        large |= size >= logs.size
        log2_size = logs[uint64(size) if size < logs.size else uint64(0)]
        for i in range(starts[cohort], starts[cohort + 1]):
            row = order[i]
            value, count = (keys[row, word] >> shift) & mask, counts[row]
            values[i], cell_counts[i], shares[i] = value, count, count / size
            log2_shares[i] = logs[uint64(count) if count < logs.size else uint64(0)] - log2_size
            posteriors[i] = posterior(count, size, priors[base + value], accuracy)
    if large:
        describe_large(cohorts, heads, scratch, logs)


@kernel
def score_blocks(rows, offsets, blocks, which, targets, wanted, memory, tally, ends, out):
    """Score the cells of target columns in the blocks blocks[0] to blocks[1] - 1.

    rows: (keys, counts, hashes) of distinct rows in partition order. which: of the targets. memory: see `memory_for`,
    for the largest of these blocks. tally: (small, large, listed), one row per target, gets the cohorts' sizes, see
    `count_sizes`. ends: by target where places for scores of these rows begin, and when all are there where they end.
    out: an `Out`, for these targets.
    """
    room, scratch, ordered = memory
    small, large, listed = tally
    all_rows = out.places.shape[1]
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        part = block_of(rows, start, stop)
        counts, size = part[1], stop - start
        for t in range(which.size):
            target = which[t]
            keep = ~(targets.fields[target, 2] << targets.fields[target, 1])
            group_rows(part, targets.fields[target, 0], keep, room)
            sum_groups(counts, size, room.heads, scratch.sizes)
            listed[t] = count_heads(scratch.sizes, scratch.several, size, small[t], large[t], listed[t])
            scores, places = out.scores[t], out.places[t, start:stop]
            point_at_values(part[0], counts, target, targets, all_rows, places)
            alone = targets.alone[targets.values.first[target] :]
            place = ends[t] + score_sizes(
                *(counts, room.heads, ends[t], scratch.sizes, wanted),
                *(all_rows, targets.few[target], alone, scores, places),
            )
            cohorts = find_cohorts(counts, room.heads, size, scratch)
            describe_cells(part, cohorts, room.heads, target, targets, scratch)
            find_statistics(cohorts, target, targets.values, wanted, scratch, ordered)
            order, cells = scratch.order, scratch.starts[cohorts]
            score_cells(
                cohorts, target, targets.values, wanted, scratch, order, scratch.sizes, scores[place : place + cells]
            )
            point_at_cells(order, cells, place, places)
            ends[t] = place + cells
