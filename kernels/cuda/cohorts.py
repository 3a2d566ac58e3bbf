"""Cohorts as runs of rows in order: their statistics, and the measures of their cells.

The target is the only one of its `Values`; the values of a run ascend.
"""

from __future__ import annotations

import math

from numba import cuda, float64, uint64

from ..cohorts import sum_runs, walk_runs
from ..formulas import cell_measure, is_of_size, posterior, size_measure
from ..statistics import absent, absent_mass, begin, combine, finish, is_walk, term

# Threads that share a long cohort; the sums of all of them are added in a fixed order.
THREADS = 128


@cuda.jit
def describe_cells(runs, run_of, rows, field, values, cells):
    """Fill in the cells of all rows in order.

    runs: (order, starts, sizes); cohort r is the rows order[starts[r]] to order[starts[r + 1] - 1], sizes[r] rows of
    the table; run_of: for each place in order its run, from 1. rows: (word of the keys that holds the target, counts).
    field: (shift, mask) of its bits there.
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
        cells.shares[i] = count / size
        cells.log2_shares[i] = math.log2(count) - math.log2(size)
        cells.posteriors[i] = posterior(count, size, values.priors[value], values.accuracies[0])


@cuda.jit
def sum_short(cohorts, longest, values, wanted, cells):
    """Statistics of each cohort of at most `longest` distinct rows, one thread each.

    cohorts: (starts, found): found[r, s] gets statistic s of the cohort of the cells starts[r] to starts[r + 1] - 1.
    """
    starts, found = cohorts
    which = (cuda.grid(1), len(found), cuda.gridsize(1), longest)
    sum_runs(starts, which, 0, values, wanted, cells, found)


@cuda.jit
def walk_all(cohorts, values, wanted, cells):
    """Those statistics of each cohort that walk over its values, one thread each."""
    starts, found = cohorts
    walk_runs(starts, (cuda.grid(1), len(found), cuda.gridsize(1)), 0, values, wanted, cells, cells, found)


@cuda.jit
def sum_long(which, cohorts, values, wanted, cells):
    """As `sum_short` for the cohorts `which`, one block of THREADS threads each: for cohorts of many values."""
    starts, found = cohorts
    totals = cuda.shared.array(THREADS, float64)
    presents = cuda.shared.array(THREADS, float64)
    thread, accuracy = cuda.threadIdx.x, values.accuracies[0]
    for place in range(cuda.blockIdx.x, which.size, cuda.gridDim.x):
        start, stop = starts[which[place]], starts[which[place] + 1]
        for s in range(wanted.kinds.size):
            kind, order = wanted.kinds[s], wanted.orders[s]
            if not is_walk(kind):
                total, present = begin(kind), 0.0
                for i in range(start + thread, stop, THREADS):
                    prior, log2_prior = values.priors[cells.values[i]], values.log2_priors[cells.values[i]]
                    share, log2_share = cells.shares[i], cells.log2_shares[i]
                    more = term(kind, order, cells.posteriors[i], share, log2_share, prior, log2_prior, accuracy)
                    total = combine(kind, total, more)
                    present += prior
                totals[thread] = total
                presents[thread] = present
                step = THREADS // 2
                while step > 0:
                    cuda.syncthreads()
                    if thread < step:
                        totals[thread] = combine(kind, totals[thread], totals[thread + step])
                        presents[thread] += presents[thread + step]
                    step //= 2
                if thread == 0:
                    mass = absent_mass(stop - start, presents[0], values.numbers[0], values.masses[0])
                    total = combine(kind, totals[0], absent(kind, order, mass, accuracy))
                    found[which[place], s] = finish(kind, order, total)
                cuda.syncthreads()


@cuda.jit
def score_cells(runs, run_of, values, wanted, cells, found, out):
    """out[k, order[i]] = measure k of the i-th row in order, weighted ones before weighting."""
    order, _, sizes = runs
    accuracy = values.accuracies[0]
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
                    measure, statistic, cells.posteriors[i], log2_share, prior, log2_prior, accuracy
                )
