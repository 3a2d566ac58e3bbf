"""Score the cells of blocks of distinct rows: find the cohorts of each block, then the measures of each cell.

The key of a row holds the codes of the columns that the attacker knows and the code of the scored column, each in
separate bits (`ScoredColumns.fields`). The cohort of a row is therefore found by masking the scored column's bits out
of its key: the rows whose masked keys are equal are one cohort. The partition plan (`gpupif.rows.partition`) puts every
cohort into one block, so that each block is scored by itself.

The rows of a block are distinct, so the rows of one cohort differ in the scored column only: each row is one value of
its cohort, and its count says how often that value occurs there. Two kinds of cohorts follow:

- A *one-value cohort* has a single distinct row: everybody in it has the same value. The scores depend on this value
  and the size of the cohort alone, so they are computed once per value and shared by all such rows (see `BlockScores`).
- A *mixed cohort* has several distinct rows. Each of its rows is scored separately.

Two indices: `column` is the index of a scored column in `ScoredColumns`, `slot` its place in `BlockScores`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64, uint64

from gpupif.kernels.cohorts import (
    CohortCells,
    ScoredValues,
    WantedMeasures,
    find_log_statistics,
    find_term_statistics,
    find_walk_statistics,
    sort_cells,
)
from gpupif.kernels.equal_rows import EqualRowsMemory, find_equal_rows, sum_equal_rows
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
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.sizes import count_heads, log2_count
from gpupif.kernels.statistics import is_of_terms, is_walk
from gpupif.kernels.walks import NOMINAL, Axes

# Number of scores that are written at once: they fit into the first-level cache.
CACHED_SCORES = 1 << 11
# The argument `values_to_score` of `score_blocks` if it is to score blocks.
NO_VALUES = (0, 0, 0, 0)


class ScoredColumns(NamedTuple):
    """The scored columns, as kernels see them.

    fields: uint64 (columns, 3). Word, shift and mask of each column's bits in a key.
    values: priors and facts of the values of all columns, one column after the other; see `ScoredValues`. Its axes are
    None.
    axes: the axes of the columns; None if no requested statistic needs them, see `only_needed`.
    one_value_scores: float64 (values, measures). Scores of each value in a one-value cohort of size 1, unweighted.
    largest_shared_size: int64 (columns). The largest size for which `BlockScores` holds shared scores of one-value
    cohorts.
    logs: int64. Table of log2 for small counts, for `log2_count`.
    """

    fields: npt.NDArray[np.uint64]
    values: ScoredValues
    axes: Axes | None
    one_value_scores: npt.NDArray[np.float64]
    largest_shared_size: npt.NDArray[np.int64]
    logs: npt.NDArray[np.int64]


class BlockScores(NamedTuple):
    """Scores, and for each row the place of its scores. Rows with equal scores can share a place.

    scores: float64 (scored columns, places, measures), before weighting. The measures of one cell are adjacent in
        memory, so that one fetch gets them all. With `rows` rows, and v values of the column:
        places 0 to rows - 1: scores of single rows, block after block.
        places rows and above: shared scores of one-value cohorts. Place rows + (n - 1) v + code is for cohorts of size
        n, for n from 1 to `ScoredColumns.largest_shared_size`. Without measures of size, the scores for size 1 serve
        all sizes.
    places: unsigned integers (scored columns, rows). The place of each row's scores.
    """

    scores: npt.NDArray[np.float64]
    places: npt.NDArray[Any]


class CohortMemory(NamedTuple):
    """Working memory for the cohorts of one block and one column.

    A cell is the value of one row in the scored column; `order` lists the cells of mixed cohorts, cohort by cohort.

    sizes: size of each cohort, at its head (its first row); 0 at all other rows.
    larger: the sizes above 1, for counting cohorts by size.
    order: rows of mixed cohorts, cohort by cohort.
    starts: where each mixed cohort begins in `order`, and where the last one ends.
    place: counters and cursors of the sort in `find_cohorts`.
    cells: the cells in `order`.
    cohort_of: number of the cohort of each cell.
    statistic_of: float64 (cohorts, statistics). Statistics of each mixed cohort.
    """

    sizes: npt.NDArray[Any]
    larger: npt.NDArray[Any]
    order: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    cells: CohortCells
    cohort_of: npt.NDArray[np.int64]
    statistic_of: npt.NDArray[np.float64]

    @classmethod
    def for_rows(cls, rows: int, dtype: Any, kinds: npt.NDArray[np.int64]) -> CohortMemory:
        """Allocate memory for blocks of up to `rows` rows.

        dtype: type of the counts of rows. kinds: the requested statistics, constants of `statistics`.
        """
        sizes, larger = np.empty(rows, dtype), np.empty(rows + 1, dtype)
        order, starts, place = (np.empty(rows + 1, np.int64) for _ in range(3))
        cells, cohort_of = CohortCells.for_cells(rows), np.empty(rows, np.int64)
        return cls(sizes, larger, order, starts, place, cells, cohort_of, np.empty((rows, len(kinds))))


def only_needed(values: ScoredValues, wanted: WantedMeasures) -> tuple[ScoredValues, Axes | None, WantedMeasures]:
    """Return the values, their axes and the request, with None for each part that the request does not use.

    Numba compiles a branch on None away, so kernels contain no code for what is not requested. The parts are the axes
    (`values.axes`, returned apart), the prior masses (`values.masses`, for statistics that are sums of terms) and the
    parameters of statistics (`wanted.orders`; None there also leaves out the measures that need a logarithm).
    """
    needs_axes = any(is_walk.py_func(kind) for kind in wanted.kinds)
    accuracies = values.accuracies.tolist()
    needs_terms = any(is_of_terms.py_func(kind, accuracy) for kind in wanted.kinds for accuracy in accuracies)
    needs_logs = any(needs_logarithm.py_func(measure) for measure in wanted.measures)
    values, axes = values._replace(axes=None), values.axes if needs_axes else None
    if not needs_terms:
        values = values._replace(masses=None)
    if not (needs_axes or needs_terms or needs_logs):
        wanted = wanted._replace(orders=None)
    return values, axes, wanted


def ordered_cells(rows: int, kinds: npt.NDArray[np.int64]) -> CohortCells | None:
    """Allocate memory for cells sorted by value; None if no statistic needs it, so that no code for it is compiled."""
    return CohortCells.for_cells(rows) if any(is_walk.py_func(kind) for kind in kinds) else None


def memory_for(
    rows: int, dtype: Any, kinds: npt.NDArray[np.int64]
) -> tuple[EqualRowsMemory, CohortMemory, CohortCells | None]:
    """Allocate the working memory of `score_blocks` for blocks of up to `rows` rows; see `CohortMemory.for_rows`."""
    return EqualRowsMemory.for_rows(rows), CohortMemory.for_rows(rows, dtype, kinds), ordered_cells(rows, kinds)


@subroutine
def find_statistics(starts, cohorts, column, values, axes, wanted, cells, ordered, statistic_of):
    """Compute all statistics of some cohorts: statistic_of[cohort, statistic].

    starts: cohort r is the cells starts[r] to starts[r + 1] - 1. cohorts: how many there are. ordered: memory for
    sorted cells, see `ordered_cells`.
    """
    number, accuracy = int64(cohorts), values.accuracies[column]
    find_log_statistics(starts, number, column, values, wanted, cells, statistic_of)
    find_term_statistics(starts, number, column, values, values.masses, wanted, cells, statistic_of)
    if ordered is not None:
        if axes.kinds[column] != NOMINAL:
            sort_cells(starts, cohorts, cells, ordered)
        every = (int64(0), number, int64(1))
        find_walk_statistics(starts, every, column, axes, accuracy, wanted, cells, ordered, statistic_of)


@subroutine
def score_cells(cohorts, column, values, asked, orders, scored, rows, sizes, out):
    """Compute the measures of the cells of some cohorts: out[cell, measure], before weighting.

    asked: (measures, places, unit) of `WantedMeasures`. orders: its orders; None if no measure needs a logarithm.
    scored: (starts, cohort_of, statistic_of, cells) of `CohortMemory`; `cohort_of` is filled in here. rows: the row of
    each cell.
    sizes: the size of each cohort, at its first row.
    """
    (measures, places, units), (starts, cohort_of, statistic_of, cells) = asked, scored
    base, accuracy, unit_bits = values.first[column], values.accuracies[column], values.unit_bits[column]
    priors, log2_priors = values.priors, values.log2_priors
    unit, inside, codes, counts = units[0], values.inside[column], cells.values, cells.counts
    posteriors, log2_shares = cells.posteriors, cells.log2_shares
    for cohort in range(cohorts):
        for i in range(starts[cohort], starts[cohort + 1]):
            cohort_of[i] = cohort
    number, step = starts[cohorts], max(1, CACHED_SCORES // measures.size)
    for first in range(0, number, step):
        last = min(first + step, number)
        # The outer loop is over measures, so that the formula is chosen once for many cells. The inner loop is over
        # cells across cohorts, because most cohorts have few cells.
        for k in range(measures.size):
            measure, place = measures[k], places[k]
            if measure == OF_COHORT:
                for i in range(first, last):
                    out[i, k] = statistic_of[cohort_of[i], place]
            elif is_of_size(measure):
                for i in range(first, last):
                    cohort_size = sizes[rows[starts[cohort_of[i]]]]
                    # The equivalence class of a row is its cohort, unless the scored column is a known column too
                    # (`inside`): then it is the rows of the cohort that have the same value.
                    class_size = counts[i] if inside else cohort_size
                    out[i, k] = size_measure(measure, cohort_size, class_size, unit)
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
def score_one_value_cohorts(column, start, stop, scored_columns, wanted, scratch, ordered):
    """Score the values start to stop - 1 of one scored column, each in a one-value cohort of size 1.

    The scores go into `scored_columns.one_value_scores`.
    """
    values, number, base = scored_columns.values, stop - start, scored_columns.values.first[column] + start
    priors, accuracy = values.priors[base : base + number], values.accuracies[column]
    sizes, order, starts, cells = scratch.sizes, scratch.order, scratch.starts, scratch.cells
    # Lay out one cohort per value, with one cell and one row: the share of the value is 1, and its log2 is 0.
    for i in range(number):
        cells.values[i], cells.counts[i], cells.log2_shares[i], cells.shares[i] = start + i, 1, 0, 1.0
        cells.posteriors[i] = posterior(1, 1, priors[i], accuracy)
        sizes[i], order[i], starts[i] = 1, i, i
    starts[number] = number
    statistic_of, asked = scratch.statistic_of, (wanted.measures, wanted.places, wanted.unit)
    find_statistics(starts, number, column, values, scored_columns.axes, wanted, cells, ordered, statistic_of)
    scored = (starts, scratch.cohort_of, statistic_of, cells)
    out = scored_columns.one_value_scores[base : base + number]
    score_cells(number, column, values, asked, wanted.orders, scored, order, sizes, out)


@subroutine
def put_value(one_value_scores, measures, size, unit, out):
    """Put the scores of a one-value cohort of this size into `out`.

    one_value_scores: the scores of the same value for size 1.
    """
    # Only the measures of size depend on how many rows have the value; all others are copied.
    for k in range(measures.size):
        out[k] = size_measure(measures[k], size, size, unit) if is_of_size(measures[k]) else one_value_scores[k]


def put_values(
    one_value_scores: npt.NDArray[np.float64], wanted: WantedMeasures, shared_size: int, out: npt.NDArray[np.float64]
) -> None:
    """Fill in the shared scores of one-value cohorts of sizes 1 to `shared_size`, see `BlockScores`.

    one_value_scores: scores for size 1, (values, measures). Measures of size are computed anew for each size; the
    others are the same for all.
    """
    values, unit = len(one_value_scores), float(wanted.unit[0])
    for count in range(shared_size):
        here = out[count * values : (count + 1) * values]
        here[:] = one_value_scores
        for k, measure in enumerate(wanted.measures.tolist()):
            if is_of_size.py_func(measure):
                here[:, k] = size_measure.py_func(measure, count + 1, count + 1, unit)


@subroutine
def point_at_values(keys, counts, field, values, shared_size, rows, places):
    """Point every row of a block at the shared scores of its value, as if each cohort had one value.

    This needs no branch. Rows for which it is wrong are pointed elsewhere by `score_sizes` and `score_blocks`.

    field: (word, shift, mask) of the column's bits. values: how many values the column has. shared_size: see
    `ScoredColumns.largest_shared_size`. rows: how many rows `BlockScores` has.
    """
    word, shift, mask = field
    shared_size, first = uint64(shared_size), uint64(rows)
    step = uint64(values) if shared_size > 1 else uint64(0)
    for row in range(len(keys)):
        count = uint64(counts[row])
        more = count - uint64(1) if count <= shared_size else uint64(0)
        places[row] = first + more * step + ((keys[row, word] >> shift) & mask)


@subroutine
def score_sizes(counts, heads, start, sizes, measures, unit, rows, shared_size, one_value_scores, scores, places):
    """Score the one-value cohorts of a block that have more than `shared_size` rows; return how many there are.

    Their measures of size differ from cohort to cohort, so each of them gets a separate place, `start` and up. If no
    measure of size is requested there is nothing to do, and the result is 0.
    """
    number, of_size = int64(0), False
    for k in range(measures.size):
        of_size |= is_of_size(measures[k])
    if of_size:
        for row in range(counts.size):
            # A row is its whole cohort if the size of the cohort equals the row's count.
            if counts[row] > shared_size and sizes[heads[row]] == counts[row]:
                place = start + number
                # `point_at_values` pointed this row at the scores for size 1, so place - rows is the value's code.
                code = np.int64(places[row]) - rows
                put_value(one_value_scores[code], measures, int64(counts[row]), unit, scores[place])
                places[row] = place
                number += 1
    return number


@subroutine
def find_cohorts(counts, heads, sizes, order, starts, place):
    """List the rows of mixed cohorts in `order`, cohort by cohort, and return how many mixed cohorts there are.

    heads: for each row the first row of its cohort. Counts are at least 1. See `CohortMemory`.
    """
    # A counting sort by head: place[head] first counts the rows of the cohort, then holds the index of its next row.
    size = counts.size
    for i in range(size):
        place[i] = 0
    for i in range(size):
        place[heads[i]] += 1
    number, end = int64(0), int64(0)
    for i in range(size):
        head = heads[i]
        # A cohort is mixed if its size differs from the count of one of its rows.
        if sizes[head] != counts[i]:
            # The head is the first row of its cohort, so that the cohort gets its range before any other row needs it.
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
    """Compute the log2 shares of the cells of large cohorts, whose sizes exceed the table `logs`.

    These are rare. They are kept out of the loop of `describe_cells`, which is faster without them.
    """
    for cohort in range(cohorts):
        size = sizes[heads[order[starts[cohort]]]]
        if size >= logs.size:
            log2_size = log2_count(int64(size), logs)
            for i in range(starts[cohort], starts[cohort + 1]):
                log2_shares[i] = log2_count(counts[i], logs) - log2_size


@subroutine
def describe_cells(keys, counts, field, cohorts, heads, sizes, order, starts, logs, base, priors, accuracy, cells):
    """Fill in `cells`, see `CohortCells`, for the rows of mixed cohorts, which `find_cohorts` put in order.

    field: (word, shift, mask) of the column's bits. base: where the column's values begin in `priors`.
    """
    word, shift, mask = field
    values, cell_counts, shares = cells.values, cells.counts, cells.shares
    log2_shares, posteriors = cells.log2_shares, cells.posteriors
    large = False
    for cohort in range(cohorts):
        size = sizes[heads[order[starts[cohort]]]]
        large |= size >= logs.size
        # Beyond the table any entry will do here: `describe_large` puts the right logarithms in afterwards.
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
def score_blocks(values_to_score, rows, offsets, blocks, columns, scored_columns, wanted, memory, tally, ends, out):
    """Score the cells of some scored_columns in some blocks, or score values in one-value cohorts.

    Callers use one of the two. They share a kernel so that the subroutines of both are compiled once.

    values_to_score: (first, last, start, stop): score values start to stop - 1 of the columns first to last - 1, see
        `score_values`; `NO_VALUES` to score blocks.
    rows: (keys, counts, hashes) of the distinct rows, in partition order.
    offsets: block b is the rows offsets[b] to offsets[b + 1] - 1.
    blocks: (first, last + 1), the blocks to score.
    columns: indices of the scored_columns to score, in `scored_columns`.
    scored_columns: a `ScoredColumns`.
    wanted: a `WantedMeasures`.
    memory: from `memory_for`, for the largest of these blocks.
    tally: (small, large, listed), one row per column. Counts the cohorts by size, see `count_sizes`.
    ends: by column, the first free place for scores of rows; moved past the places used.
    out: the `BlockScores` of the scored_columns `columns`.
    """
    rows_memory, scratch, ordered = memory
    small, large, listed = tally
    fields, values, heads = scored_columns.fields, scored_columns.values, rows_memory.heads
    sizes, order, starts, cells = scratch.sizes, scratch.order, scratch.starts, scratch.cells
    axes, statistic_of, asked = scored_columns.axes, scratch.statistic_of, (wanted.measures, wanted.places, wanted.unit)
    scored = (starts, scratch.cohort_of, statistic_of, cells)
    all_rows = out.places.shape[1]
    for block in range(blocks[0], blocks[1]):
        start, stop = offsets[block], offsets[block + 1]
        # Slices, so that loops over a block begin at 0: otherwise compilers cannot tell that no index is negative.
        keys, counts, hashes, size = rows[0][start:stop], rows[1][start:stop], rows[2][start:stop], stop - start
        for slot in range(columns.size):
            column = columns[slot]
            word, shift, mask = fields[column, 0], fields[column, 1], fields[column, 2]
            field = (word, shift, mask)
            base, shared_size = values.first[column], scored_columns.largest_shared_size[column]
            # The core idea: a cohort is the rows that agree on every bit of the key except the scored column's.
            known_bits = ~(mask << shift)
            find_equal_rows(keys, hashes, word, known_bits, rows_memory)
            sum_equal_rows(counts, size, heads, sizes)
            listed[slot] = count_heads(sizes, scratch.larger, size, small[slot], large[slot], listed[slot])
            # One-value cohorts: rows share the scores of their value. Large cohorts do not if a measure of size is
            # requested.
            scores, places = out.scores[slot], out.places[slot, start:stop]
            point_at_values(keys, counts, field, values.first[column + 1] - base, shared_size, all_rows, places)
            by_value, end, measures = scored_columns.one_value_scores[base:], ends[slot], wanted.measures
            place = end + score_sizes(
                counts, heads, end, sizes, measures, wanted.unit[0], all_rows, shared_size, by_value, scores, places
            )
            # Mixed cohorts: list their cells, then compute the statistics of each cohort, then the measures of each
            # cell.
            cohorts = find_cohorts(counts, heads, sizes, order, starts, scratch.place)
            describe_cells(
                *(keys, counts, field, cohorts, heads, sizes, order, starts, scored_columns.logs),
                *(uint64(base), values.priors, values.accuracies[column], cells),
            )
            find_statistics(starts, cohorts, column, values, axes, wanted, cells, ordered, statistic_of)
            number = starts[cohorts]
            score_cells(
                cohorts, column, values, asked, wanted.orders, scored, order, sizes, scores[place : place + number]
            )
            # The row of each cell has scores of its own.
            for i in range(number):
                places[order[i]] = place + i
            ends[slot] = place + number
    # This comes last so that compiling the kernel begins with `find_equal_rows`: helper processes compile
    # `find_statistics` and `score_cells` meanwhile, see `gpupif/engines/cpu/ahead.py`.
    for column in range(values_to_score[0], values_to_score[1]):
        first, last = values_to_score[2], min(values_to_score[3], values.first[column + 1] - values.first[column])
        score_one_value_cohorts(column, first, last, scored_columns, wanted, scratch, ordered)


def score_values(
    columns: tuple[int, int], start: int, stop: int, scored_columns: ScoredColumns, wanted: WantedMeasures, dtype: Any
) -> None:
    """Score the values start to stop - 1, or as many as there are, of some scored columns.

    Each value is in a one-value cohort of size 1. The scores go into `scored_columns.one_value_scores`.

    columns: (first, last + 1), places in `scored_columns`. dtype: type of the counts of rows, the same as for blocks,
        so that the same compiled kernel serves both.
    """
    none, counts, numbers = np.empty((0, 0), np.uint64), np.empty(0, dtype), np.empty(0, np.int64)
    rows, tally = (none, counts, np.empty(0, np.uint64)), (numbers.reshape(0, 0), numbers.reshape(0, 0), numbers)
    out = BlockScores(np.empty((0, 0, 0)), np.empty((0, 0), np.uint32))
    memory = memory_for(stop - start, dtype, wanted.kinds)
    values_to_score = (*columns, start, stop)
    score_blocks(values_to_score, rows, numbers, (0, 0), numbers, scored_columns, wanted, memory, tally, numbers, out)
