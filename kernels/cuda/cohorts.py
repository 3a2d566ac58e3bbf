"""Cohorts as runs of rows in order: their sums, and the measures of their cells."""

from __future__ import annotations

import math

from numba import cuda, float64, uint64

from ..formulas import cell_measure, divergence_absent, divergence_term, information_gain, posterior
from ..jit import kernel

# Threads that share a long cohort; the sums of all of them are added in a fixed order.
THREADS = 128


@kernel
def add_value(word, field, count, size, target, gain, present):
    """Sums (gain, present prior mass) of a cohort of `size` rows, with one more of its values added, `count` times."""
    shift, mask = field
    priors, log2_priors, accuracy = target
    value = (word >> uint64(shift)) & uint64(mask)
    prior = priors[value]
    log2_share = math.log2(count) - math.log2(size)
    share = posterior(count, size, prior, accuracy)
    return gain + divergence_term(share, log2_share, prior, log2_priors[value], accuracy), present + prior


@cuda.jit
def sum_short(runs, rows, field, target, longest, gains):
    """Information gain of each cohort of at most `longest` distinct rows, one thread each.

    runs: (order, starts, sizes); cohort r is the rows order[starts[r]] to order[starts[r + 1] - 1], sizes[r] rows of
    the table. rows: (word of the keys that holds the target, counts). field: (shift, mask) of its bits there.
    target: (prior by code, log2 of it, accuracy).
    """
    order, starts, sizes = runs
    words, counts = rows
    for run in range(cuda.grid(1), gains.size, cuda.gridsize(1)):
        gain, present = 0.0, 0.0
        if starts[run + 1] - starts[run] <= longest:
            for i in range(starts[run], starts[run + 1]):
                row = order[i]
                gain, present = add_value(words[row], field, counts[row], sizes[run], target, gain, present)
            gains[run] = information_gain(gain + divergence_absent(present, target[2]))


@cuda.jit
def sum_long(which, runs, rows, field, target, gains):
    """The same for the cohorts `which`, one block of THREADS threads each: for cohorts of many values."""
    order, starts, sizes = runs
    words, counts = rows
    gain_of = cuda.shared.array(THREADS, float64)
    present_of = cuda.shared.array(THREADS, float64)
    thread = cuda.threadIdx.x
    for place in range(cuda.blockIdx.x, which.size, cuda.gridDim.x):
        run = which[place]
        gain, present = 0.0, 0.0
        for i in range(starts[run] + thread, starts[run + 1], THREADS):
            row = order[i]
            gain, present = add_value(words[row], field, counts[row], sizes[run], target, gain, present)
        gain_of[thread] = gain
        present_of[thread] = present
        step = THREADS // 2
        while step > 0:
            cuda.syncthreads()
            if thread < step:
                gain_of[thread] += gain_of[thread + step]
                present_of[thread] += present_of[thread + step]
            step //= 2
        if thread == 0:
            gains[run] = information_gain(gain_of[0] + divergence_absent(present_of[0], target[2]))
        cuda.syncthreads()


@cuda.jit
def score_cells(runs, run_of, gains, rows, field, target, measures, out):
    """out[k, order[i]] = measure measures[k] of the i-th row in order, of cohort run_of[i] - 1; wCIG unweighted."""
    order, _, sizes = runs
    words, counts = rows
    shift, mask = field
    priors, _, accuracy = target
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, run = order[i], run_of[i] - 1
        prior = priors[(words[row] >> uint64(shift)) & uint64(mask)]
        probability = posterior(counts[row], sizes[run], prior, accuracy)
        for k in range(measures.size):
            out[k, row] = cell_measure(measures[k], probability, prior, sizes[run], gains[run])
