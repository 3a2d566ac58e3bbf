"""Statistics of a cohort for which its values are walked over in an order: scalar steps for CPU and CUDA alike.

Earth mover's distance (Li, Li & Venkatasubramanian, t-Closeness, ICDE 2007, section 5): the least work that makes the
posterior out of the prior. Between ordered values it is the sum, over each step from a value to the next, of what must
be carried across: the difference of the cumulated shares. In a tree it is the sum of what must be carried out of or
into each node, times the length of the way to its parent.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import int64

from gpupif.kernels.jit import subroutine
from gpupif.kernels.whole_sums import digits_of_float, float_of_digits, wide_of_digits

# How far apart two values are: 1; as many steps as there are between them in their order; by a tree.
NOMINAL, ORDERED, TREE = range(3)
# Steps that are summed one by one.
FEW_STEPS = 16


class Axes(NamedTuple):
    """Where the values of some scored columns lie, one column after the other.

    kinds: of each column, one of those above. ORDERED: values_first tells where a column's values begin in `places`,
    which holds their places 0 to steps - 1; steps_first where its places begin in `prior`, cumulated over them, and
    `prior_sum`, the sums of all before. TREE: levels[t] rows of one node for each value begin at nodes_first[t] of
    `nodes`; masses and lengths are those of nodes; bases: the work for an empty cohort. NOMINAL: masses begin at
    nodes_first, one for each value.
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
    """Sum of |share - Q_i| over the steps i = start to stop - 1.

    share: of the cohort up to there. Q_i = prior[i] is the prior mass of the values 0 to i, prior_sum[i] the sum of Q_0
    to Q_(i - 1).
    """
    total = 0.0
    if stop - start <= FEW_STEPS:
        for i in range(start, stop):
            total += abs(share - prior[i])
        return total
    low, high = start, stop
    # Q rises: below `low` it is less than the share.
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
    """What a node adds that holds `share` of the cohort and `mass` of the prior, beyond what it adds when empty."""
    return length * (abs(share - mass) - mass)


@subroutine
def move_ordered(places, prior, prior_sum, steps, values, shares, start, stop):
    """Work between ordered values; values[start:stop] are those of the cohort, ascending, with their shares."""
    total, share, at = 0.0, 0.0, 0
    for i in range(start, stop):
        place = places[values[i]]
        total += carried(prior, prior_sum, at, place, share)
        share += shares[i]
        at = place
    return total + carried(prior, prior_sum, at, steps - 1, share)


@subroutine
def move_in_tree(nodes, levels, count, masses, lengths, base, values, shares, start, stop):
    """The same in a tree: the cohort's values that have a node in common stand side by side."""
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
    """As `move_runs`, between values of which each is as far from each: what rises."""
    first, number, step = which
    masses = axes.masses[axes.nodes_first[scored_column] :]
    for run in range(first, number, step):
        upper, lower = int64(0), int64(0)
        for i in range(starts[run], starts[run + 1]):
            more_upper, more_lower = digits_of_float(max(0.0, shares[i] - masses[values[i]]))
            upper += more_upper
            lower += more_lower
        high, low = wide_of_digits(upper, lower)
        out[run] = accuracy * float_of_digits(high, low)


@subroutine
def move_runs(starts, which, scored_column, axes, accuracy, values, shares, out):
    """Earth mover's distance of posterior and prior in each cohort: of c/C and prior, times the accuracy.

    Cohort r is the cells starts[r] to starts[r + 1] - 1, in the order of the axis. which: (first, number, step) of the
    cohorts.
    """
    first, number, step = which
    kind, count = axes.kinds[scored_column], axes.values_first[scored_column + 1] - axes.values_first[scored_column]
    places = axes.places[axes.values_first[scored_column] :]
    prior, prior_sum = axes.prior[axes.steps_first[scored_column] :], axes.prior_sum[axes.steps_first[scored_column] :]
    nodes, levels, base = (
        axes.nodes[axes.nodes_first[scored_column] :],
        axes.levels[scored_column],
        axes.bases[scored_column],
    )
    masses, lengths, steps = axes.masses, axes.lengths, axes.steps[scored_column]
    for run in range(first, number, step):
        start, stop = starts[run], starts[run + 1]
        if kind == ORDERED:
            total = move_ordered(places, prior, prior_sum, steps, values, shares, start, stop)
        else:
            total = move_in_tree(nodes, levels, count, masses, lengths, base, values, shares, start, stop)
        out[run] = accuracy * total


@subroutine
def recursive(counts, start, stop, least):
    """C of recursive (c,l)-diversity, r_1 / (r_l + ... + r_m): the bound that a c must exceed (l-Diversity, 2007, 4.2).

    least: l. r_1 >= r_2 >= ... are the cohort's counts by value; infinite where they are fewer than l.
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
