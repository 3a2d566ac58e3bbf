"""Statistics of a cohort that need its values in order: scalar functions for CPU and GPU.

The earth mover's distance (Li, Li and Venkatasubramanian, t-Closeness, ICDE 2007, section 5) is the least work that
turns the prior into the posterior. For ordered values, it is the sum over the steps from each value to the next of the
probability that has to move across the step: the difference of the cumulated probabilities. In a tree, it is the sum
over the nodes of the probability that has to leave or enter the node, times the distance to the parent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64

from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.whole_sums import digits_of_float, float_of_digits, wide_of_digits

# Distance of two values: 1 for NOMINAL; the number of steps between them for ORDERED; the way in the tree for TREE.
NOMINAL, ORDERED, TREE = range(3)
# Up to this many steps are summed one by one; more are summed by bisection.
FEW_STEPS = 16


class Axes(NamedTuple):
    """Axes of the scored columns: how far apart their values are, column after column.

    kinds: int64 (columns). NOMINAL, ORDERED or TREE.
    values_first: int64 (columns + 1). The place in `places` at which a column's values begin.
    places: int64 (values). ORDERED: the place of each value in the order, from 0 to steps - 1.
    steps_first: int64 (columns). ORDERED: the place in `prior` and `prior_sum` at which a column's steps begin.
    steps: int64 (columns). ORDERED: the number of places.
    prior: float64 (steps). ORDERED: the prior, cumulated over the places.
    prior_sum: float64 (steps). ORDERED: the sum of the numbers of `prior` before each place.
    levels: int64 (columns). TREE: the number of levels.
    nodes_first: int64 (columns). TREE: the place in `nodes` at which a column begins. NOMINAL: the place in `masses`.
    nodes: int64. TREE: level after level, the node of each value.
    masses: float64. TREE: the prior mass of each node. NOMINAL: the prior of each value.
    lengths: float64. TREE: the distance of each node from its parent.
    bases: float64 (columns). TREE: the work for an empty cohort.
    """

    kinds: npt.NDArray[np.int64]
    values_first: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    steps_first: npt.NDArray[np.int64]
    steps: npt.NDArray[np.int64]
    prior: npt.NDArray[np.float64]
    prior_sum: npt.NDArray[np.float64]
    levels: npt.NDArray[np.int64]
    nodes_first: npt.NDArray[np.int64]
    nodes: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    lengths: npt.NDArray[np.float64]
    bases: npt.NDArray[np.float64]


@subroutine
def carried(prior, prior_sum, start, stop, share):
    """Return the sum of |share - Q_i| over the steps i = start to stop - 1.

    share: the posterior of all values up to these steps. Q_i = prior[i] is the prior mass of the values 0 to i;
    prior_sum[i] is the sum of Q_0 to Q_(i - 1).
    """
    total = 0.0
    if stop - start <= FEW_STEPS:
        for i in range(start, stop):
            total += abs(share - prior[i])
        return total
    low, high = start, stop
    # Q rises, so bisection finds the first step at which it is not below the share.
    while low < high:
        middle = (low + high) // 2
        if prior[middle] < share:
            low = middle + 1
        else:
            high = middle
    below = share * (low - start) - (prior_sum[low] - prior_sum[start])
    above = (prior_sum[stop] - prior_sum[low]) - share * (stop - low)
    return max(0.0, below) + max(0.0, above)


@subroutine
def carried_out(share, mass, length):
    """Return the work of a node with a share of the cohort and a prior mass, less the work of the node when empty."""
    return length * (abs(share - mass) - mass)


@subroutine
def move_ordered(places, prior, prior_sum, steps, values, shares, start, stop):
    """Return the work between ordered values.

    values, shares: from start to stop - 1 the values of the cohort, ascending, and their shares.
    """
    total, share, at = 0.0, 0.0, 0
    for i in range(start, stop):
        place = places[values[i]]
        total += carried(prior, prior_sum, at, place, share)
        share += shares[i]
        at = place
    return total + carried(prior, prior_sum, at, steps - 1, share)


@subroutine
def move_in_tree(nodes, levels, count, masses, lengths, base, values, shares, start, stop):
    """Return the work in a tree. The cohort's values are sorted so that values under the same node are adjacent."""
    total = base
    for level in range(levels):
        first = level * count
        node, share = nodes[first + values[start]], 0.0
        for i in range(start, stop):
            other = nodes[first + values[i]]
            if other != node:
                total += carried_out(share, masses[node], lengths[node])
                node, share = other, 0.0
            share += shares[i]
        total += carried_out(share, masses[node], lengths[node])
    return max(0.0, total)


@subroutine
def move_nominal(starts, which, scored_column, axes, accuracy, values, shares, out):
    """Compute the earth mover's distance as `move_cohorts` does, for values of which any two have distance 1.

    The work is the sum of the differences of share and prior that are above 0.
    """
    first, number, step = which
    masses = axes.masses[axes.nodes_first[scored_column] :]
    for cohort in range(first, number, step):
        upper, lower = int64(0), int64(0)
        for i in range(starts[cohort], starts[cohort + 1]):
            more_upper, more_lower = digits_of_float(max(0.0, shares[i] - masses[values[i]]))
            upper += more_upper
            lower += more_lower
        high, low = wide_of_digits(upper, lower)
        out[cohort] = accuracy * float_of_digits(high, low)


@subroutine
def move_cohorts(starts, which, scored_column, axes, accuracy, values, shares, out):
    """Compute the earth mover's distance of posterior and prior of each cohort: accuracy times that of c / C and q.

    starts: cohort r is the cells starts[r] to starts[r + 1] - 1, in the order of the axis. which: (first, number, step)
    of the cohorts to compute. out: gets the distances by cohort.
    """
    first, number, step = which
    kind, count = axes.kinds[scored_column], axes.values_first[scored_column + 1] - axes.values_first[scored_column]
    places = axes.places[axes.values_first[scored_column] :]
    prior, prior_sum = axes.prior[axes.steps_first[scored_column] :], axes.prior_sum[axes.steps_first[scored_column] :]
    nodes, levels = axes.nodes[axes.nodes_first[scored_column] :], axes.levels[scored_column]
    masses, lengths, steps, base = axes.masses, axes.lengths, axes.steps[scored_column], axes.bases[scored_column]
    for cohort in range(first, number, step):
        start, stop = starts[cohort], starts[cohort + 1]
        if kind == ORDERED:
            total = move_ordered(places, prior, prior_sum, steps, values, shares, start, stop)
        else:
            total = move_in_tree(nodes, levels, count, masses, lengths, base, values, shares, start, stop)
        out[cohort] = accuracy * total


@kernel
def move_classes(starts, axes, values, shares, out):
    """Compute the earth mover's distance of each class, of the values of one column, as `move_cohorts` does."""
    every = (0, out.size, 1)
    if axes.kinds[0] == NOMINAL:
        move_nominal(starts, every, 0, axes, 1.0, values, shares, out)
    else:
        move_cohorts(starts, every, 0, axes, 1.0, values, shares, out)


@subroutine
def recursive(counts, start, stop, least):
    """Return r_1 / (r_l + ... + r_m) of recursive (c,l)-diversity, which c must exceed (l-Diversity, 2007, 4.2).

    least: l. r_1 >= r_2 >= ... >= r_m are the counts of the cohort's values; the result is infinite for m below l.
    """
    largest, tail = 0, 0
    for i in range(start, stop):
        largest = max(largest, counts[i])
        tail += counts[i]
    bound, taken = largest + 1, 0
    while taken < least - 1:
        top, times = -1, 0
        for i in range(start, stop):
            if top < counts[i] < bound:
                top, times = counts[i], 1
            elif counts[i] == top:
                times += 1
        if times == 0:
            return math.inf
        times = min(times, int(least) - 1 - taken)
        tail -= times * top
        taken += times
        bound = top
    return largest / tail if tail > 0 else math.inf
