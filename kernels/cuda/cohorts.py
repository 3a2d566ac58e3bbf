"""Statistics of the cohorts of one scored column, and the measures of their cells.

The scored column is the only column of its `Values`. The cells are in any order. Each thread adds the terms of its
cells to the sums of their cohorts, by atomic operations on whole numbers, so that sums do not depend on the order. Only
statistics that need values in order (`walks.py`) need the cells of a cohort side by side, their values ascending.
"""

from __future__ import annotations

from numba import cuda, float64, int32, int64, uint64

from gpupif.kernels.cohorts import log_of_cell, walk_runs
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
    is_of_terms,
    is_scaled,
    log2_absent_power,
    needs_mass,
    of_value,
    scale_of_powers,
    term,
)
from gpupif.kernels.whole_sums import (
    digits_of_float,
    float_of_digits,
    float_of_rank,
    float_of_wide,
    multiply_wide,
    parts_of_wide,
    rank_of_float,
    wide_of_digits,
    wide_of_parts,
)

# Number of numbers in which a sum is kept, see `parts_of_wide`.
PARTS = 3


@cuda.jit
def describe_cells(runs, run_of, rows, field, logs, values, cells, members):
    """Fill in the cells of all rows in order, and count the cells of each cohort in `members`.

    runs: (order, sizes). Cell i is of row order[i]; cohort r has sizes[r] rows of the table.
    run_of: the cohort of each cell, counted from 1.
    rows: (words of the keys that hold the column, counts of the rows). field: (shift, mask) of the column's bits.
    logs: table of `log2_count`. members: zeros before.
    """
    order, sizes = runs
    words, counts = rows
    shift, mask = field
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, run = order[i], run_of[i] - 1
        value, count, size = (words[row] >> uint64(shift)) & uint64(mask), counts[row], sizes[run]
        cells.values[i] = value
        cells.counts[i] = count
        cells.log2_shares[i] = log2_count(count, logs) - log2_count(size, logs)
        if cells.shares.size > 0:
            cells.shares[i] = count / size
        cells.posteriors[i] = posterior(count, size, values.priors[value], values.accuracies[0])
        if count == size:
            # The cohort has this cell only, so no other thread writes here, and no atomic operation is needed.
            members[run] = 1
        else:
            cuda.atomic.add(members, run, int32(1))


@cuda.jit(device=True)
def add_to(parts, run, place, number, alone):
    """Add a whole number (high, low) to a sum of a cohort, kept in three numbers.

    alone: whether the cohort is a single cell, as most are: then no other thread adds to its sums.
    """
    high, middle, low = parts_of_wide(number[0], uint64(number[1]))
    first = PARTS * place
    if alone:
        parts[run, first], parts[run, first + 1], parts[run, first + 2] = high, middle, low
    else:
        cuda.atomic.add(parts, (run, first), high)
        cuda.atomic.add(parts, (run, first + 1), middle)
        cuda.atomic.add(parts, (run, first + 2), low)


@cuda.jit(device=True)
def sum_at(parts, run, place):
    """Return a sum of a cohort: (high, low), see `whole_sums.py`."""
    first = PARTS * place
    high, low = wide_of_parts(parts[run, first], parts[run, first + 1], parts[run, first + 2])
    return high, uint64(low)


@cuda.jit
def look_ahead(run_of, values, wanted, cells, sums):
    """Find the largest terms and the prior mass of each cohort, which must be known before its statistics are computed.

    sums: (members, largest, parts). members: the number of cells of each cohort. largest[r, s] gets the `rank_of_float`
    of the largest term for statistic s; before, it is the rank of -inf. parts[r]: zeros before; it has PARTS numbers
    for the sum of each statistic, then PARTS numbers for the prior mass.
    """
    members, largest, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for i in range(cuda.grid(1), run_of.size, cuda.gridsize(1)):
        run, value = run_of[i] - 1, cells.values[i]
        prior, log2_prior = values.priors[value], values.log2_priors[value]
        upper, lower = digits_of_float(prior)
        add_to(parts, run, kinds.size, wide_of_digits(upper, lower), members[run] == 1)
        for s in range(kinds.size):
            if is_largest(kinds[s]) or is_scaled(kinds[s]):
                statistic = (kinds[s], wanted.orders[s], accuracy, unit_bits)
                said = of_value(statistic, cells.posteriors[i], cells.log2_shares[i], prior, log2_prior)
                cuda.atomic.max(largest, (run, s), rank_of_float(said))


@cuda.jit(device=True)
def mass_of(kind, run, values, wanted, sums):
    """Return the prior mass of the values that do not occur in a cohort; 0 if the statistic does not need it."""
    if not needs_mass(kind, values.accuracies[0]):
        return 0.0
    members, _, parts = sums
    high, low = sum_at(parts, run, wanted.kinds.size)
    return absent_mass(members[run], float_of_digits(high, low), values.numbers[0], values.masses[0])


@cuda.jit(device=True)
def scale_of(s, run, values, wanted, sums):
    """Return the scale of the terms of statistic s of a cohort, see `term`."""
    if not is_scaled(wanted.kinds[s]):
        return int64(0)
    members, largest, _ = sums
    mass = mass_of(wanted.kinds[s], run, values, wanted, sums)
    absent = log2_absent_power(wanted.orders[s], mass, values.accuracies[0])
    return scale_of_powers(max(float_of_rank(largest[run, s]), absent), members[run])


@cuda.jit
def add_cells(run_of, values, wanted, cells, sums):
    """Add the terms of each cell to the sums of its cohort, see `look_ahead`."""
    members, _, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for i in range(cuda.grid(1), run_of.size, cuda.gridsize(1)):
        run, value = run_of[i] - 1, cells.values[i]
        alone = members[run] == 1
        prior, log2_prior, log2_share = values.priors[value], values.log2_priors[value], cells.log2_shares[i]
        for s in range(kinds.size):
            kind = kinds[s]
            if is_of_logs(kind, accuracy):
                # The statistic of a cohort with one value does not depend on how many rows have it.
                count = int64(1) if alone else cells.counts[i]
                add_to(parts, run, s, multiply_wide(count, log_of_cell(kind, log2_share, log2_prior, unit_bits)), alone)
            elif is_of_terms(kind, accuracy) and not is_largest(kind):
                statistic = (kind, wanted.orders[s], accuracy, unit_bits)
                scale = scale_of(s, run, values, wanted, sums)
                said = term(statistic, scale, cells.posteriors[i], log2_share, prior, log2_prior)
                upper, lower = digits_of_float(said)
                add_to(parts, run, s, wide_of_digits(upper, lower), alone)


@cuda.jit
def finish_runs(sizes, values, wanted, sums, found):
    """Set found[cohort, statistic] for all statistics that do not need values in order. sums: see `look_ahead`."""
    members, largest, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for run in range(cuda.grid(1), sizes.size, cuda.gridsize(1)):
        for s in range(kinds.size):
            kind = kinds[s]
            if kind == VALUES:
                found[run, s] = float64(members[run])
            elif is_largest(kind):
                found[run, s] = finish_largest(kind, float_of_rank(largest[run, s]))
            elif is_of_logs(kind, accuracy):
                high, low = sum_at(parts, run, s)
                size = int64(1) if members[run] == 1 else sizes[run]
                found[run, s] = finish_logs(kind, float_of_wide(high, low), size, unit_bits)
            elif is_of_terms(kind, accuracy):
                mass, scale = mass_of(kind, run, values, wanted, sums), scale_of(s, run, values, wanted, sums)
                high, low = sum_at(parts, run, s)
                found[run, s] = finish_terms(kind, wanted.orders[s], scale, high, low, mass, accuracy)


@cuda.jit
def walk_all(cohorts, values, wanted, cells):
    """Compute the statistics that need a cohort's values in order, one thread for each cohort."""
    starts, found = cohorts
    which = (cuda.grid(1), len(found), cuda.gridsize(1))
    walk_runs(starts, which, 0, values.axes, values.accuracies[0], wanted, cells, cells, found)


@cuda.jit
def score_cells(runs, run_of, values, wanted, cells, found, out):
    """Set out[k, order[i]] to measure k of cell i, before weighting. runs: see `describe_cells`."""
    order, sizes = runs
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
