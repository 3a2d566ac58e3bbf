"""Cohorts as runs of rows in order: their statistics, and the measures of their cells.

The target is the only one of its `Values`; the values of a run ascend.
"""

from __future__ import annotations

from numba import cuda, float64, int64, uint64

from gpupif.kernels.cohorts import find_largest, sum_logs, sum_other_runs, sum_priors, sum_runs, sum_terms, walk_runs
from gpupif.kernels.formulas import cell_measure, is_of_size, posterior, size_measure
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.statistics import (
    VALUES,
    absent_mass,
    finish_largest,
    finish_logs,
    finish_terms,
    is_largest,
    is_of_logs,
    is_scaled,
    is_walk,
    log2_absent_power,
    needs_mass,
    scale_of_powers,
)
from gpupif.kernels.whole_sums import add_wide, float_of_digits, float_of_wide

# Threads that share a long cohort.
THREADS = 128


@cuda.jit
def describe_cells(runs, run_of, rows, field, logs, values, cells):
    """Fill in the cells of all rows in order.

    runs: (order, starts, sizes); cohort r is the rows order[starts[r]] to order[starts[r + 1] - 1], sizes[r] rows of
    the table; run_of: for each place in order its run, from 1. rows: (word of the keys that holds the target, counts).
    field: (shift, mask) of its bits there. logs: table of `log2_count`.
    """
    order, _, sizes = runs
    words, counts = rows
    shift, mask = field
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, size = order[i], sizes[run_of[i] - 1]
        value = (words[row] >> uint64(shift)) & uint64(mask)
        count = counts[row]
        cells.values[i] = value
        cells.counts[i] = count
        cells.log2_shares[i] = log2_count(count, logs) - log2_count(size, logs)
        cells.shares[i] = count / size
        cells.posteriors[i] = posterior(count, size, values.priors[value], values.accuracies[0])


@cuda.jit
def sum_short(cohorts, longest, values, wanted, cells):
    """Statistics of each cohort of at most `longest` distinct rows, one thread each.

    cohorts: (starts, found): found[r, s] gets statistic s of the cohort of the cells starts[r] to starts[r + 1] - 1.
    """
    starts, found = cohorts
    which = (cuda.grid(1), len(found), cuda.gridsize(1), longest)
    sum_runs(starts, which, 0, values, wanted, cells, found)
    sum_other_runs(starts, which, 0, values, values.masses, wanted, cells, found)


@cuda.jit
def walk_all(cohorts, values, wanted, cells):
    """Those statistics of each cohort that walk over its values, one thread each."""
    starts, found = cohorts
    which = (cuda.grid(1), len(found), cuda.gridsize(1))
    walk_runs(starts, which, 0, values.axes, values.accuracies[0], wanted, cells, cells, found)


@cuda.jit(device=True)
def add_up_block(highs, lows):
    """Have the first of a block's whole numbers be the sum of all of them (see `whole_sums.py`)."""
    thread, step = cuda.threadIdx.x, THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            highs[thread], lows[thread] = add_wide(
                highs[thread], lows[thread], highs[thread + step], lows[thread + step]
            )
        step //= 2
    cuda.syncthreads()


@cuda.jit(device=True)
def largest_of_block(numbers):
    """Have the first of a block's numbers be the largest of them."""
    thread, step = cuda.threadIdx.x, THREADS // 2
    while step > 0:
        cuda.syncthreads()
        if thread < step:
            numbers[thread] = max(numbers[thread], numbers[thread + step])
        step //= 2
    cuda.syncthreads()


@cuda.jit
def sum_long(which, cohorts, values, wanted, cells):
    """As `sum_short` for the cohorts `which`, one block of THREADS threads each: for cohorts of many values."""
    starts, sizes, found = cohorts
    highs = cuda.shared.array(THREADS, int64)
    lows = cuda.shared.array(THREADS, uint64)
    largest = cuda.shared.array(THREADS, float64)
    thread, accuracy, unit_bits = cuda.threadIdx.x, values.accuracies[0], values.unit_bits[0]
    priors, log2_priors, codes, counts = values.priors, values.log2_priors, cells.values, cells.counts
    log2_shares, posteriors = cells.log2_shares, cells.posteriors
    for place in range(cuda.blockIdx.x, which.size, cuda.gridDim.x):
        run = which[place]
        start, stop, size = starts[run], starts[run + 1], sizes[run]
        span = (start + thread, stop, THREADS)
        for s in range(wanted.kinds.size):
            kind, order, mass, scale = wanted.kinds[s], wanted.orders[s], 0.0, int64(0)
            if is_walk(kind):
                continue
            statistic = (kind, order, accuracy, unit_bits)
            if needs_mass(kind, accuracy):
                highs[thread], lows[thread] = sum_priors(span, 0, priors, codes)
                add_up_block(highs, lows)
                present = float_of_digits(highs[0], lows[0])
                mass = absent_mass(stop - start, present, values.numbers[0], values.masses[0])
                cuda.syncthreads()
            if is_largest(kind) or is_scaled(kind):
                largest[thread] = find_largest(statistic, span, 0, priors, log2_priors, codes, log2_shares, posteriors)
                largest_of_block(largest)
            if is_scaled(kind):
                scale = scale_of_powers(max(largest[0], log2_absent_power(order, mass, accuracy)), stop - start)
            if kind == VALUES:
                value = float64(stop - start)
            elif is_largest(kind):
                value = finish_largest(kind, largest[0])
            elif is_of_logs(kind, accuracy):
                highs[thread], lows[thread] = sum_logs(
                    kind, span, 0, unit_bits, log2_priors, codes, counts, log2_shares
                )
                add_up_block(highs, lows)
                value = finish_logs(kind, float_of_wide(highs[0], lows[0]), size, unit_bits)
            else:
                highs[thread], lows[thread] = sum_terms(
                    statistic, scale, span, 0, priors, log2_priors, codes, log2_shares, posteriors
                )
                add_up_block(highs, lows)
                value = finish_terms(kind, order, scale, highs[0], lows[0], mass, accuracy)
            if thread == 0:
                found[run, s] = value
            # Before the next sums are put where these were.
            cuda.syncthreads()


@cuda.jit
def score_cells(runs, run_of, values, wanted, cells, found, out):
    """out[k, order[i]] = measure k of the i-th row in order, weighted ones before weighting."""
    order, _, sizes = runs
    accuracy, unit_bits = values.accuracies[0], values.unit_bits[0]
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, run, value = order[i], run_of[i] - 1, cells.values[i]
        prior, log2_prior, log2_share = values.priors[value], values.log2_priors[value], cells.log2_shares[i]
        for k in range(wanted.measures.size):
            measure, place = wanted.measures[k], wanted.places[k]
            if is_of_size(measure):
                same = cells.counts[i] if values.inside[0] else sizes[run]
                out[k, row] = size_measure(measure, sizes[run], same, wanted.unit[0])
            else:
                statistic = found[run, place] if place >= 0 else 0.0
                out[k, row] = cell_measure(
                    measure, statistic, cells.posteriors[i], log2_share, prior, log2_prior, accuracy, unit_bits
                )
