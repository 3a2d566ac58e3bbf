"""Blocks of distinct rows: the cohorts of scored columns in them, and the measures of their cells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from gpupif.kernels.cohorts import Cells, Values, Wanted, sort_runs, sum_other_runs, sum_runs, walk_runs
from gpupif.kernels.formulas import (
    OF_COHORT,
    is_of_probabilities,
    is_of_size,
    logarithm_measure,
    needs_logarithm,
    posterior,
    probability_measure,
    size_measure,
)
from gpupif.kernels.groups import Room, group_rows, sum_groups
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.sizes import count_heads, log2_count
from gpupif.kernels.statistics import is_of_terms, is_walk
from gpupif.kernels.walks import NOMINAL, Axes

# Scores of so many cells are written at once that these stay in the first-level cache.
CACHED_SCORES = 1 << 11
# Where no values are scored by themselves.
NONE_ALONE = (0, 0, 0)


class ScoredColumns(NamedTuple):
    """What the kernels know of the scored columns.

    fields: (word, shift, mask) of each one's bits. values: of all, without axes; axes: if a statistic needs them, see
    `only_needed`. alone: scores of each value by itself, see `Out`; few: for how many rows, at most, there are scores
    of each. logs: table of `log2_count`.
    """

    fields: npt.NDArray[np.uint64]
    values: Values
    axes: Axes | None
    alone: npt.NDArray[np.float64]
    few: npt.NDArray[np.int64]
    logs: npt.NDArray[np.int64]


class Out(NamedTuple):
    """Scores, and where those of each row are: of many rows they are the same, and stand there once.

    scores[t, place, k]: of measure k of scored column t, before weighting: those of a row are fetched at once. Places
    up to
    `rows` are for scores of rows, those of blocks that are scored together side by side. Behind them stand those of
    each value whose cohort holds no other, of one row, of two, ... up to `ScoredColumns.few` rows. places[t, row]: of
    the row's scores.
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


def only_needed(values: Values, wanted: Wanted) -> tuple[Values, Axes | None, Wanted]:
    """The values, their axes and what is wanted, less what is of no use for anything that is asked.

    No code is compiled for what is None.
    """
    walks = any(is_walk.py_func(kind) for kind in wanted.kinds)
    accuracies = values.accuracies.tolist()
    terms = any(is_of_terms.py_func(kind, accuracy) for kind in wanted.kinds for accuracy in accuracies)
    logarithms = any(needs_logarithm.py_func(measure) for measure in wanted.measures)
    values, axes = values._replace(axes=None), values.axes if walks else None
    if not terms:
        values = values._replace(masses=None)
    if not (walks or terms or logarithms):
        wanted = wanted._replace(orders=None)
    return values, axes, wanted


def ordered_cells(rows: int, kinds: npt.NDArray[np.int64]) -> Cells | None:
    """Memory for cells by value, None where no statistic needs them: then no code for it is compiled either."""
    return Cells.of(rows) if any(is_walk.py_func(kind) for kind in kinds) else None


def memory_for(rows: int, dtype: Any, kinds: npt.NDArray[np.int64]) -> tuple[Room, Scratch, Cells | None]:
    """What `score_blocks` works in, for blocks of at most `rows` rows; see `Scratch.of`."""
    return Room.of(rows), Scratch.of(rows, dtype, kinds), ordered_cells(rows, kinds)


@subroutine
def find_statistics(starts, cohorts, scored_column, values, axes, wanted, cells, ordered, found):
    """Put all statistics of cohorts into `found`: cohort r is the cells starts[r] to starts[r + 1] - 1.

    ordered: see `ordered_cells`.
    """
    number, accuracy = int64(cohorts), values.accuracies[scored_column]
    sum_runs(starts, number, scored_column, values, wanted, cells, found)
    sum_other_runs(starts, number, scored_column, values, values.masses, wanted, cells, found)
    if ordered is not None:
        if axes.kinds[scored_column] != NOMINAL:
            sort_runs(starts, cohorts, cells, ordered)
        walk_runs(starts, (int64(0), number, int64(1)), scored_column, axes, accuracy, wanted, cells, ordered, found)


@subroutine
def score_cells(cohorts, scored_column, values, asked, orders, scored, rows, sizes, out):
    """Put measure k of cell i into out[i, k], see `Out`.

    asked: (measures, places, unit) of `Wanted`; orders: of it, None where no measure needs a logarithm. scored:
    (starts, runs, found, cells), see `Scratch`. rows: of the cells; sizes: of cohorts, at their first row.
    """
    (measures, places, units), (starts, runs, found, cells) = asked, scored
    base, accuracy, unit_bits = (
        values.first[scored_column],
        values.accuracies[scored_column],
        values.unit_bits[scored_column],
    )
    priors, log2_priors = values.priors, values.log2_priors
    unit, inside, codes, counts = units[0], values.inside[scored_column], cells.values, cells.counts
    posteriors, log2_shares = cells.posteriors, cells.log2_shares
    for cohort in range(cohorts):
        for i in range(starts[cohort], starts[cohort + 1]):
            runs[i] = cohort
    number, step = starts[cohorts], max(1, CACHED_SCORES // measures.size)
    for first in range(0, number, step):
        last = min(first + step, number)
        # Measure by measure, so that what to compute is not decided anew for each cell; and not cohort by cohort, most
        # of which are few cells.
        for k in range(measures.size):
            measure, place = measures[k], places[k]
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
            elif orders is not None:
                for i in range(first, last):
                    prior, log2_prior = priors[base + codes[i]], log2_priors[base + codes[i]]
                    out[i, k] = logarithm_measure(
                        measure, posteriors[i], log2_shares[i], prior, log2_prior, accuracy, unit_bits
                    )


@subroutine
def score_alone(scored_column, start, stop, scored_columns, wanted, scratch, ordered):
    """Score the values start to stop - 1 of one scored column, each for rows whose cohort holds no other: see `Out`."""
    values, number, base = scored_columns.values, stop - start, scored_columns.values.first[scored_column] + start
    priors, accuracy = values.priors[base : base + number], values.accuracies[scored_column]
    sizes, order, starts, cells = scratch.sizes, scratch.order, scratch.starts, scratch.cells
    for i in range(number):
        cells.values[i], cells.counts[i], cells.log2_shares[i], cells.shares[i] = start + i, 1, 0, 1.0
        cells.posteriors[i] = posterior(1, 1, priors[i], accuracy)
        sizes[i], order[i], starts[i] = 1, i, i
    starts[number] = number
    find_statistics(starts, number, scored_column, values, scored_columns.axes, wanted, cells, ordered, scratch.found)
    asked, scored = (wanted.measures, wanted.places, wanted.unit), (starts, scratch.runs, scratch.found, cells)
    out = scored_columns.alone[base : base + number]
    score_cells(number, scored_column, values, asked, wanted.orders, scored, order, sizes, out)


@subroutine
def put_value(alone, measures, size, unit, out):
    """Scores of rows that are all of their cohort, of this size; alone: those of one such row."""
    for k in range(measures.size):
        out[k] = size_measure(measures[k], size, size, unit) if is_of_size(measures[k]) else alone[k]


def put_values(alone: npt.NDArray[np.float64], wanted: Wanted, few: int, out: npt.NDArray[np.float64]) -> None:
    """Scores of each value by itself, for 1 to `few` rows: its cohort's size is another then."""
    values, unit = len(alone), float(wanted.unit[0])
    for count in range(few):
        here = out[count * values : (count + 1) * values]
        here[:] = alone
        for k, measure in enumerate(wanted.measures.tolist()):
            if is_of_size.py_func(measure):
                here[:, k] = size_measure.py_func(measure, count + 1, count + 1, unit)


@subroutine
def point_at_values(keys, counts, field, values, few, rows, places):
    """Have the rows of a block scored as if each were all the values of its cohort.

    field: (word, shift, mask) of the scored column's bits. values: of the scored column; few: see `ScoredColumns`.
    """
    word, shift, mask = field
    few, first, step = uint64(few), uint64(rows), uint64(values) if few > 1 else uint64(0)
    for row in range(len(keys)):
        count = uint64(counts[row])
        more = count - uint64(1) if count <= few else uint64(0)
        places[row] = first + more * step + ((keys[row, word] >> shift) & mask)


@subroutine
def score_sizes(counts, heads, start, sizes, measures, unit, rows, few, alone, scores, places):
    """Scores of their own for the rows of a block that are all the values of their cohort, but more than `few`.

    The cohort's size is another in each, where it is wanted. Returns how many they are.
    """
    number, of_size = int64(0), False
    for k in range(measures.size):
        of_size |= is_of_size(measures[k])
    if of_size:
        for row in range(counts.size):
            if counts[row] > few and sizes[heads[row]] == counts[row]:
                place = start + number
                value = np.int64(places[row]) - rows
                put_value(alone[value], measures, int64(counts[row]), unit, scores[place])
                places[row] = place
                number += 1
    return number


@subroutine
def point_at_cells(order, cells, place, places):
    """Have the rows that are these cells scored by what stands at `place` and behind it."""
    for i in range(cells):
        places[order[i]] = place + i


@subroutine
def find_cohorts(counts, heads, sizes, order, starts, place):
    """Bring the rows with other values in their cohorts into order, cohort by cohort; returns how many cohorts.

    See `Scratch`.
    """
    size = counts.size
    for i in range(size):
        place[i] = 0
    for i in range(size):
        place[heads[i]] += 1
    number, end = int64(0), int64(0)
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


@subroutine
def describe_large(cohorts, heads, sizes, order, starts, logs, counts, log2_shares):
    """Put the logarithms of cells of large cohorts, beyond the table `logs`, into `log2_shares`.

    Apart from `describe_cells`, in which nearly all cells are done: the loop there is the faster without them.
    """
    for cohort in range(cohorts):
        size = sizes[heads[order[starts[cohort]]]]
        if size >= logs.size:
            log2_size = log2_count(int64(size), logs)
            for i in range(starts[cohort], starts[cohort + 1]):
                log2_shares[i] = log2_count(counts[i], logs) - log2_size


@subroutine
def describe_cells(keys, counts, field, cohorts, heads, sizes, order, starts, logs, base, priors, accuracy, cells):
    """Fill in `cells` for the rows of a block that `find_cohorts` brought into order.

    field: see `point_at_values`. base: where the scored column's values begin in `priors`.
    """
    word, shift, mask = field
    values, cell_counts, shares = cells.values, cells.counts, cells.shares
    log2_shares, posteriors = cells.log2_shares, cells.posteriors
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
        describe_large(cohorts, heads, sizes, order, starts, logs, cell_counts, log2_shares)


@kernel
def score_blocks(alone, rows, offsets, blocks, which, scored_columns, wanted, memory, tally, ends, out):
    """Score the cells of scored columns in the blocks blocks[0] to blocks[1] - 1, or values by themselves.

    alone: (scored column, start, stop), see `score_values`; `NONE_ALONE` with blocks. It is one kernel so that what
    both take
    is compiled once. rows: (keys, counts, hashes) of distinct rows in partition order. which: of the scored columns.
    memory:
    see `memory_for`, for the largest of these blocks. tally: (small, large, listed), one row per scored column, gets
    the
    cohorts' sizes, see `count_sizes`. ends: by scored column where places for scores of these rows begin, and when all
    are there where they end. out: an `Out`, for these scored columns.
    """
    room, scratch, ordered = memory
    small, large, listed = tally
    fields, values, heads = scored_columns.fields, scored_columns.values, room.heads
    sizes, order, starts, cells = scratch.sizes, scratch.order, scratch.starts, scratch.cells
    asked, scored = (wanted.measures, wanted.places, wanted.unit), (starts, scratch.runs, scratch.found, cells)
    all_rows = out.places.shape[1]
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        # Loops over a block begin at 0: from another row on, compilers do not see that no index is negative.
        keys, counts, hashes, size = rows[0][start:stop], rows[1][start:stop], rows[2][start:stop], stop - start
        for t in range(which.size):
            scored_column = which[t]
            field = (fields[scored_column, 0], fields[scored_column, 1], fields[scored_column, 2])
            base, few = values.first[scored_column], scored_columns.few[scored_column]
            group_rows(keys, hashes, field[0], ~(field[2] << field[1]), room)
            sum_groups(counts, size, heads, sizes)
            listed[t] = count_heads(sizes, scratch.several, size, small[t], large[t], listed[t])
            scores, places = out.scores[t], out.places[t, start:stop]
            point_at_values(keys, counts, field, values.first[scored_column + 1] - base, few, all_rows, places)
            by_value = scored_columns.alone[base:]
            place = ends[t] + score_sizes(
                counts, heads, ends[t], sizes, wanted.measures, wanted.unit[0], all_rows, few, by_value, scores, places
            )
            cohorts = find_cohorts(counts, heads, sizes, order, starts, scratch.place)
            describe_cells(
                *(keys, counts, field, cohorts, heads, sizes, order, starts, scored_columns.logs),
                *(uint64(base), values.priors, values.accuracies[scored_column], cells),
            )
            find_statistics(
                starts, cohorts, scored_column, values, scored_columns.axes, wanted, cells, ordered, scratch.found
            )
            number = starts[cohorts]
            score_cells(
                cohorts,
                scored_column,
                values,
                asked,
                wanted.orders,
                scored,
                order,
                sizes,
                scores[place : place + number],
            )
            point_at_cells(order, number, place, places)
            ends[t] = place + number
    # Below the loop, so that a process that compiles this begins with what no other one does, see `ahead.py`.
    if alone[1] < alone[2]:
        score_alone(alone[0], alone[1], alone[2], scored_columns, wanted, scratch, ordered)


def score_values(
    scored_column: int, start: int, stop: int, scored_columns: ScoredColumns, wanted: Wanted, dtype: Any
) -> None:
    """Score the values start to stop - 1 of one scored column, each for rows whose cohort holds no other: see `Out`.

    dtype: of counts of rows, as in blocks.
    """
    none, counts, numbers = np.empty((0, 0), np.uint64), np.empty(0, dtype), np.empty(0, np.int64)
    rows, tally = (none, counts, np.empty(0, np.uint64)), (numbers.reshape(0, 0), numbers.reshape(0, 0), numbers)
    out = Out(np.empty((0, 0, 0)), np.empty((0, 0), np.uint32))
    memory = memory_for(stop - start, dtype, wanted.kinds)
    alone = (scored_column, start, stop)
    score_blocks(alone, rows, numbers, (0, 0), numbers, scored_columns, wanted, memory, tally, numbers, out)
