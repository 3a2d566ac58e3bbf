"""Arguments of kernels that describe scored columns and cohorts, and the statistics of a cohort; for CPU and GPU."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import float64, int64, uint64

from gpupif.kernels.formulas import log2_gain
from gpupif.kernels.jit import subroutine
from gpupif.kernels.statistics import (
    DIVERGENCE,
    MOVER,
    VALUES,
    absent_mass,
    finish_largest,
    finish_logs,
    finish_terms,
    is_largest,
    is_of_logs,
    is_of_terms,
    is_scaled,
    is_walk,
    log2_absent_power,
    needs_mass,
    of_value,
    scale_of_powers,
    term,
)
from gpupif.kernels.walks import NOMINAL, Axes, move_nominal, move_runs, recursive
from gpupif.kernels.whole_sums import (
    add_wide,
    digits_of_float,
    float_of_digits,
    float_of_wide,
    multiply_wide,
    wide_of_digits,
)

# For cohorts of fewer rows, a float holds the sum of counts times half the bits of a logarithm exactly.
FEW_ROWS = 1 << 21
HALF_LOG = int64(31)
LOWER_HALF = int64((1 << 31) - 1)
TO_UPPER = 2.0**31


class Wanted(NamedTuple):
    """Measures that are requested of each cell, and the statistics of cohorts that they need.

    measures: int64 (measures). Constants of `formulas`.
    places: int64 (measures). The statistic of each measure `OF_COHORT`, -1 for other measures.
    kinds: int64 (statistics). Constants of `statistics`.
    orders: float64 (statistics). Parameters of the statistics; None if unused, see `blocks.only_needed`.
    unit: float64 (1). The number of people that sizes of cohorts count as 1.
    """

    measures: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    orders: npt.NDArray[np.float64] | None
    unit: npt.NDArray[np.float64]


class Values(NamedTuple):
    """The values of the scored columns, column after column.

    first: int64 (columns + 1). The place in `priors` and `log2_priors` at which the values of each column begin.
    priors: float64 (values). The prior of each value.
    log2_priors: int64 (values). log2 of the priors, in units of 2^-unit_bits bits; see `logarithms.py`.
    unit_bits: int64 (columns). The unit of each column's `log2_priors`.
    accuracies: float64 (columns). The accuracy of the attacker's knowledge.
    numbers: int64 (columns). The number of values that occur in the table.
    masses: float64 (columns). The prior mass of these values; None if unused, see `blocks.only_needed`.
    inside: int64 (columns). Whether the column is a known column when another column is scored.
    axes: how far values are apart; None if unused.
    """

    first: npt.NDArray[np.int64]
    priors: npt.NDArray[np.float64]
    log2_priors: npt.NDArray[np.int64]
    unit_bits: npt.NDArray[np.int64]
    accuracies: npt.NDArray[np.float64]
    numbers: npt.NDArray[np.int64]
    masses: npt.NDArray[np.float64] | None
    inside: npt.NDArray[np.int64]
    axes: Axes | None


class Cells(NamedTuple):
    """Cells of cohorts, cohort after cohort on the CPU and for statistics that need values in order.

    values: int64 (cells). The code of the cell's value.
    counts: int64 (cells). c, the rows of the cohort that have the value.
    log2_shares: int64 (cells). log2 c - log2 C in units of 2^-LOG_BITS bits.
    shares: float64 (cells). c / C; empty if no statistic needs it.
    posteriors: float64 (cells). The posterior of the value.
    """

    values: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]
    log2_shares: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float64]
    posteriors: npt.NDArray[np.float64]

    @classmethod
    def for_cells(cls, cells: int, empty: Any = np.empty, walks: bool = True) -> Cells:
        """Allocate memory for a number of cells.

        empty: function that makes an array from size and type. walks: whether any statistic needs values in order; only
        these need `shares`.
        """
        integers = [empty(cells, "int64") for _ in range(3)]
        return cls(*integers, empty(cells if walks else 0, "float64"), empty(cells, "float64"))


@subroutine
def log_of_cell(kind, log2_share, log2_prior, unit_bits):
    """Return the logarithm that a cell's count is multiplied by in a sum. kind: DIVERGENCE or ENTROPY."""
    return log2_gain(log2_share, log2_prior, unit_bits) if kind == DIVERGENCE else -log2_share


@subroutine
def sum_few_logs(kind, start, stop, base, unit_bits, log2_priors, codes, counts, log2_shares):
    """Return the sum of `sum_logs` as the nearest float, and the number of rows, if there are fewer than FEW_ROWS.

    Most cohorts are that small.
    """
    upper, lower, size = int64(0), int64(0), int64(0)
    if stop - start == 1 and kind == DIVERGENCE:
        # The mean over a single value does not depend on its count: count 1, as engines do that combine equal rows.
        return float64(log2_gain(log2_shares[start], log2_priors[base + codes[start]], unit_bits)), int64(1)
    if kind == DIVERGENCE:
        for i in range(start, stop):
            gain, count = log2_gain(log2_shares[i], log2_priors[base + codes[i]], unit_bits), counts[i]
            upper += count * (gain >> HALF_LOG)
            lower += count * (gain & LOWER_HALF)
            size += count
    else:
        for i in range(start, stop):
            log, count = -log2_shares[i], counts[i]
            upper += count * (log >> HALF_LOG)
            lower += count * (log & LOWER_HALF)
            size += count
    # Both sums are exact in floats, so the result is rounded once.
    return float64(upper) * TO_UPPER + float64(lower), size


@subroutine
def sum_logs(kind, start, stop, base, unit_bits, log2_priors, codes, counts, log2_shares):
    """Return the sum of counts times logarithms over the cells of a cohort: (high, low), see `whole_sums.py`.

    kind: DIVERGENCE or ENTROPY.
    """
    high, low = int64(0), uint64(0)
    for i in range(start, stop):
        log = log_of_cell(kind, log2_shares[i], log2_priors[base + codes[i]], unit_bits)
        more_high, more_low = multiply_wide(counts[i], log)
        high, low = add_wide(high, low, more_high, more_low)
    return high, low


@subroutine
def sum_terms(statistic, scale, start, stop, base, priors, log2_priors, codes, log2_shares, posteriors):
    """Return the sum of terms over the cells of a cohort: (high, low), see `wide_of_digits`.

    statistic, scale: see `term`.
    """
    upper, lower = int64(0), int64(0)
    for i in range(start, stop):
        value = base + codes[i]
        more = term(statistic, scale, posteriors[i], log2_shares[i], priors[value], log2_priors[value])
        more_upper, more_lower = digits_of_float(more)
        upper += more_upper
        lower += more_lower
    return wide_of_digits(upper, lower)


@subroutine
def sum_priors(start, stop, base, priors, codes):
    """Return the prior mass of the values of a cohort: (high, low), see `wide_of_digits`."""
    upper, lower = int64(0), int64(0)
    for i in range(start, stop):
        more_upper, more_lower = digits_of_float(priors[base + codes[i]])
        upper += more_upper
        lower += more_lower
    return wide_of_digits(upper, lower)


@subroutine
def find_other(statistic, start, stop, mass, base, priors, log2_priors, codes, log2_shares, posteriors):
    """Return a statistic of a cohort that is not a sum of logarithms (see `is_of_terms`). mass: see `absent`."""
    kind, order, accuracy, _ = statistic
    scale = int64(0)
    if is_largest(kind) or is_scaled(kind):
        largest = -math.inf
        for i in range(start, stop):
            value = base + codes[i]
            said = of_value(statistic, posteriors[i], log2_shares[i], priors[value], log2_priors[value])
            largest = max(largest, said)
        if is_largest(kind):
            return finish_largest(kind, largest)
        scale = scale_of_powers(max(largest, log2_absent_power(order, mass, accuracy)), stop - start)
    high, low = sum_terms(statistic, scale, start, stop, base, priors, log2_priors, codes, log2_shares, posteriors)
    return finish_terms(kind, order, scale, high, low, mass, accuracy)


@subroutine
def sum_runs(starts, number, scored_column, values, wanted, cells, found):
    """Set found[cohort, statistic] for the statistics that are sums of logarithms or numbers of values.

    starts: cohort r, below `number`, is the cells starts[r] to starts[r + 1] - 1.
    """
    # Arrays are read from tuples once, not for each cell: reading one counts a reference.
    log2_priors, codes, counts, log2_shares = values.log2_priors, cells.values, cells.counts, cells.log2_shares
    base, accuracy, unit_bits = (
        values.first[scored_column],
        values.accuracies[scored_column],
        values.unit_bits[scored_column],
    )
    kinds = wanted.kinds
    for s in range(kinds.size):
        kind = kinds[s]
        if is_of_logs(kind, accuracy):
            for run in range(number):
                start, stop = starts[run], starts[run + 1]
                total, size = sum_few_logs(kind, start, stop, base, unit_bits, log2_priors, codes, counts, log2_shares)
                if size >= FEW_ROWS:
                    high, low = sum_logs(kind, start, stop, base, unit_bits, log2_priors, codes, counts, log2_shares)
                    total = float_of_wide(high, low)
                found[run, s] = finish_logs(kind, total, size, unit_bits)
        elif kind == VALUES:
            for run in range(number):
                found[run, s] = float64(starts[run + 1] - starts[run])


@subroutine
def sum_other_runs(starts, number, scored_column, values, masses, wanted, cells, found):
    """Set found[cohort, statistic], see `sum_runs`, for statistics that are sums of other terms, or the largest term.

    masses: `values.masses`; None if no such statistic is requested: then no code for them is compiled.
    """
    if masses is None:
        return
    priors, log2_priors, accuracy = values.priors, values.log2_priors, values.accuracies[scored_column]
    base, all_values, all_mass = values.first[scored_column], values.numbers[scored_column], masses[scored_column]
    codes, log2_shares, posteriors = cells.values, cells.log2_shares, cells.posteriors
    kinds, orders, unit_bits = wanted.kinds, wanted.orders, values.unit_bits[scored_column]
    for s in range(kinds.size):
        kind = kinds[s]
        if not is_of_terms(kind, accuracy):
            continue
        for run in range(number):
            start, stop, mass = starts[run], starts[run + 1], 0.0
            if needs_mass(kind, accuracy):
                present = float_of_digits(*sum_priors(start, stop, base, priors, codes))
                mass = absent_mass(stop - start, present, all_values, all_mass)
            statistic = (kind, orders[s], accuracy, unit_bits)
            found[run, s] = find_other(
                statistic, start, stop, mass, base, priors, log2_priors, codes, log2_shares, posteriors
            )


@subroutine
def walk_runs(starts, which, scored_column, axes, accuracy, wanted, cells, ordered, found):
    """Set found[cohort, statistic] for the statistics that need values in order.

    which: (first, number, step) of the cohorts. ordered: their cells in the order of the column's axis.
    """
    first, number, step = which
    for s in range(wanted.kinds.size):
        kind, order, out = wanted.kinds[s], wanted.orders[s], found[:, s]
        if kind == MOVER and axes.kinds[scored_column] == NOMINAL:
            move_nominal(starts, which, scored_column, axes, accuracy, cells.values, cells.shares, out)
        elif kind == MOVER:
            move_runs(starts, which, scored_column, axes, accuracy, ordered.values, ordered.shares, out)
        elif is_walk(kind):
            for run in range(first, number, step):
                out[run] = recursive(cells.counts, starts[run], starts[run + 1], order)


@subroutine
def sort_runs(starts, number, cells, ordered):
    """Copy the values and shares of each cohort to `ordered`, sorted by value.

    Most cohorts have few cells, for which Shell's sort is fast.
    """
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
