"""What kernels know of target columns and of cohorts, and the statistics of a cohort; for CPU and CUDA alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from .jit import kernel
from .statistics import MOVER, absent, absent_mass, begin, combine, finish, is_walk, term
from .walks import NOMINAL, Axes, move_nominal, move_runs, recursive


class Wanted(NamedTuple):
    """What is asked of each cell, and of each cohort for it.

    measures: constants of `formulas`; places: for each which statistic it is of, if any. kinds: of the statistics,
    constants of `statistics`; orders: their parameters. unit: one number, how many people sizes of cohorts count as 1.
    """

    measures: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    orders: npt.NDArray[np.float64]
    unit: npt.NDArray[np.float64]


class Values(NamedTuple):
    """The values of target columns, one column after the other.

    first: where those of each begin in priors and log2_priors, and where those of the last end. accuracies: of columns;
    numbers, masses: how many values occur in the table, and their prior mass; inside: whether the attacker knows the
    column, when it is not the one that is scored. axes: how far values are apart.
    """

    first: npt.NDArray[np.int64]
    priors: npt.NDArray[np.float64]
    log2_priors: npt.NDArray[np.float64]
    accuracies: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64]
    inside: npt.NDArray[np.int64]
    axes: Axes


class Cells(NamedTuple):
    """Cells of cohorts, cohort by cohort: the code of each one's value, how many rows of the cohort have it (c), c / C,
    log2 c - log2 C, and the posterior.
    """

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    log2_shares: npt.NDArray[np.float64]
    posteriors: npt.NDArray[np.float64]

    @classmethod
    def of(cls, cells: int, empty: Any = np.empty) -> Cells:
        """For so many cells; empty: makes arrays from size and type."""
        integers, floats = [empty(cells, "int64") for _ in range(2)], [empty(cells, "float64") for _ in range(3)]
        return cls(*integers, *floats)


@kernel
def sum_runs(starts, which, target, values, wanted, cells, found):
    """Put those statistics of cohorts into found[run, statistic] that are sums or largest terms.

    Cohort r is the cells starts[r] to starts[r + 1] - 1. which: (first, number, step, longest): the cohorts first,
    first + step, ... below `number` of at most `longest` cells.
    """
    # Once, not for each cell: reading an array from a tuple counts a reference.
    priors, log2_priors, accuracy = values.priors, values.log2_priors, values.accuracies[target]
    base, all_values, all_mass = values.first[target], values.numbers[target], values.masses[target]
    codes, shares, log2_shares, posteriors = cells.values, cells.shares, cells.log2_shares, cells.posteriors
    kinds, orders = wanted.kinds, wanted.orders
    first, number, step, longest = which
    for run in range(first, number, step):
        start, stop = starts[run], starts[run + 1]
        if stop - start > longest:
            continue
        present = 0.0
        for i in range(start, stop):
            present += priors[base + codes[i]]
        mass = absent_mass(stop - start, present, all_values, all_mass)
        for s in range(kinds.size):
            kind, order = kinds[s], orders[s]
            if not is_walk(kind):
                total = begin(kind)
                for i in range(start, stop):
                    value = base + codes[i]
                    more = term(
                        kind,
                        order,
                        posteriors[i],
                        shares[i],
                        log2_shares[i],
                        priors[value],
                        log2_priors[value],
                        accuracy,
                    )
                    total = combine(kind, total, more)
                found[run, s] = finish(kind, order, combine(kind, total, absent(kind, order, mass, accuracy)))


@kernel
def walk_runs(starts, which, target, values, wanted, cells, ordered, found):
    """Put the other statistics of cohorts into `found`; `ordered`: their cells in the order of the column's axis."""
    first, number, step = which
    axes, accuracy = values.axes, values.accuracies[target]
    for s in range(wanted.kinds.size):
        kind, order, out = wanted.kinds[s], wanted.orders[s], found[:, s]
        if kind == MOVER and axes.kinds[target] == NOMINAL:
            move_nominal(starts, which, target, axes, accuracy, cells.values, cells.shares, out)
        elif kind == MOVER:
            move_runs(starts, which, target, axes, accuracy, ordered.values, ordered.shares, out)
        elif is_walk(kind):
            for run in range(first, number, step):
                out[run] = recursive(cells.counts, starts[run], starts[run + 1], order)


@kernel
def sort_runs(starts, number, cells, ordered):
    """Put the cells of each cohort into `ordered` by value: values and shares. Most are few: Shell's sort."""
    values, shares, sorted_values, sorted_shares = cells.values, cells.shares, ordered.values, ordered.shares
    for run in range(number):
        start, stop = starts[run], starts[run + 1]
        for i in range(start, stop):
            sorted_values[i], sorted_shares[i] = values[i], shares[i]
        gap = 1
        while 3 * gap < stop - start:
            gap = 3 * gap + 1
        while gap > 0:
            for i in range(start + gap, stop):
                value, share, j = sorted_values[i], sorted_shares[i], i
                while j >= start + gap and sorted_values[j - gap] > value:
                    sorted_values[j], sorted_shares[j] = sorted_values[j - gap], sorted_shares[j - gap]
                    j -= gap
                sorted_values[j], sorted_shares[j] = value, share
            gap //= 3
