"""Statistics of the cohorts of one scored column, and the measures of their cells.

The scored column is the only column of its `ScoredValues`. The cells are in any order. Each thread adds the terms of
its cells to the sums of their cohorts, by atomic operations on whole numbers, so that sums do not depend on the order.
Only statistics that need values in order (`walks.py`) need the cells of a cohort side by side, their values ascending.
"""

from __future__ import annotations

from numba import cuda, float64, int32, int64, uint64

from gpupif.kernels import statistics, whole_sums
from gpupif.kernels.cohorts import find_walk_statistics, log_of_cell
from gpupif.kernels.formulas import cell_measure, is_of_size, posterior, size_measure
from gpupif.kernels.sizes import log2_count

# Number of numbers in which a sum is kept, see `parts_of_wide`.
PARTS = 3


@cuda.jit
def describe_cells(cohorts, cohort_of, rows, field, logs, values, cells, members):
    """Fill in the cells of all rows in order, and count the cells of each cohort in `members`.

    cohorts: (order, sizes). Cell i is of row order[i]; cohort r has sizes[r] rows of the table.
    cohort_of: the cohort of each cell, counted from 1.
    rows: (words of the keys that hold the column, counts of the rows). field: (shift, mask) of the column's bits.
    logs: table of `log2_count`. members: zeros before.
    """
    order, sizes = cohorts
    words, counts = rows
    shift, mask = field
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, cohort = order[i], cohort_of[i] - 1
        value, count, size = (words[row] >> uint64(shift)) & uint64(mask), counts[row], sizes[cohort]
        cells.values[i] = value
        cells.counts[i] = count
        cells.log2_shares[i] = log2_count(count, logs) - log2_count(size, logs)
        if cells.shares.size > 0:
            cells.shares[i] = count / size
        cells.posteriors[i] = posterior(count, size, values.priors[value], values.accuracies[0])
        if count == size:
            # The cohort has this cell only, so no other thread writes here, and no atomic operation is needed.
            members[cohort] = 1
        else:
            cuda.atomic.add(members, cohort, int32(1))


@cuda.jit(device=True)
def add_to(parts, cohort, place, number, alone):
    """Add a whole number (high, low) to a sum of a cohort, kept in three numbers.

    alone: whether the cohort is a single cell, as most are: then no other thread adds to its sums.
    """
    high, middle, low = whole_sums.parts_of_wide(number[0], uint64(number[1]))
    first = PARTS * place
    if alone:
        parts[cohort, first], parts[cohort, first + 1], parts[cohort, first + 2] = high, middle, low
    else:
        cuda.atomic.add(parts, (cohort, first), high)
        cuda.atomic.add(parts, (cohort, first + 1), middle)
        cuda.atomic.add(parts, (cohort, first + 2), low)


@cuda.jit(device=True)
def sum_at(parts, cohort, place):
    """Return a sum of a cohort: (high, low), see `whole_sums.py`."""
    first = PARTS * place
    high, low = whole_sums.wide_of_parts(parts[cohort, first], parts[cohort, first + 1], parts[cohort, first + 2])
    return high, uint64(low)


@cuda.jit
def look_ahead(cohort_of, values, wanted, cells, sums):
    """Find the largest terms and the prior mass of each cohort, which must be known before its statistics are computed.

    sums: (members, largest, parts). members: the number of cells of each cohort. largest[r, s] gets the `rank_of_float`
    of the largest term for statistic s; before, it is the rank of -inf. parts[r]: zeros before; it has PARTS numbers
    for the sum of each statistic, then PARTS numbers for the prior mass.
    """
    members, largest, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for i in range(cuda.grid(1), cohort_of.size, cuda.gridsize(1)):
        cohort, value = cohort_of[i] - 1, cells.values[i]
        prior, log2_prior = values.priors[value], values.log2_priors[value]
        add_to(parts, cohort, kinds.size, whole_sums.wide_of_float(prior), members[cohort] == 1)
        for s in range(kinds.size):
            if statistics.is_largest(kinds[s]) or statistics.is_scaled(kinds[s]):
                statistic = (kinds[s], wanted.orders[s], accuracy, unit_bits)
                said = statistics.of_value(statistic, cells.posteriors[i], cells.log2_shares[i], prior, log2_prior)
                cuda.atomic.max(largest, (cohort, s), whole_sums.rank_of_float(said))


@cuda.jit(device=True)
def mass_of(kind, cohort, values, wanted, sums):
    """Return the prior mass of the values that do not occur in a cohort; 0 if the statistic does not need it."""
    if not statistics.needs_mass(kind, values.accuracies[0]):
        return 0.0
    members, _, parts = sums
    high, low = sum_at(parts, cohort, wanted.kinds.size)
    present = whole_sums.float_of_digits(high, low)
    return statistics.absent_mass(members[cohort], present, values.numbers[0], values.masses[0])


@cuda.jit(device=True)
def scale_of(s, cohort, values, wanted, sums):
    """Return the scale of the terms of statistic s of a cohort, see `term`."""
    if not statistics.is_scaled(wanted.kinds[s]):
        return int64(0)
    members, largest, _ = sums
    mass = mass_of(wanted.kinds[s], cohort, values, wanted, sums)
    absent = statistics.log2_absent_power(wanted.orders[s], mass, values.accuracies[0])
    return statistics.scale_of_powers(max(whole_sums.float_of_rank(largest[cohort, s]), absent), members[cohort])


@cuda.jit
def add_cells(cohort_of, values, wanted, cells, sums):
    """Add the terms of each cell to the sums of its cohort, see `look_ahead`."""
    members, _, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for i in range(cuda.grid(1), cohort_of.size, cuda.gridsize(1)):
        cohort, value = cohort_of[i] - 1, cells.values[i]
        alone = members[cohort] == 1
        prior, log2_prior, log2_share = values.priors[value], values.log2_priors[value], cells.log2_shares[i]
        for s in range(kinds.size):
            kind = kinds[s]
            if statistics.is_of_logs(kind, accuracy):
                # The statistic of a cohort with one value does not depend on how many rows have it.
                count = int64(1) if alone else cells.counts[i]
                log = log_of_cell(kind, log2_share, log2_prior, unit_bits)
                add_to(parts, cohort, s, whole_sums.multiply_wide(count, log), alone)
            elif statistics.is_of_terms(kind, accuracy) and not statistics.is_largest(kind):
                statistic = (kind, wanted.orders[s], accuracy, unit_bits)
                scale = scale_of(s, cohort, values, wanted, sums)
                said = statistics.term(statistic, scale, cells.posteriors[i], log2_share, prior, log2_prior)
                add_to(parts, cohort, s, whole_sums.wide_of_float(said), alone)


@cuda.jit
def finish_cohorts(sizes, values, wanted, sums, statistic_of):
    """Set statistic_of[cohort, statistic] for all statistics that do not need values in order.

    sums: see `look_ahead`.
    """
    members, largest, parts = sums
    accuracy, unit_bits, kinds = values.accuracies[0], values.unit_bits[0], wanted.kinds
    for cohort in range(cuda.grid(1), sizes.size, cuda.gridsize(1)):
        for s in range(kinds.size):
            kind = kinds[s]
            if kind == statistics.VALUES:
                statistic_of[cohort, s] = float64(members[cohort])
            elif statistics.is_largest(kind):
                statistic_of[cohort, s] = statistics.finish_largest(kind, whole_sums.float_of_rank(largest[cohort, s]))
            elif statistics.is_of_logs(kind, accuracy):
                high, low = sum_at(parts, cohort, s)
                total, size = whole_sums.float_of_wide(high, low), int64(1) if members[cohort] == 1 else sizes[cohort]
                statistic_of[cohort, s] = statistics.finish_logs(kind, total, size, unit_bits)
            elif statistics.is_of_terms(kind, accuracy):
                mass, scale = mass_of(kind, cohort, values, wanted, sums), scale_of(s, cohort, values, wanted, sums)
                high, low = sum_at(parts, cohort, s)
                statistic_of[cohort, s] = statistics.finish_terms(
                    kind, wanted.orders[s], scale, high, low, mass, accuracy
                )


@cuda.jit
def walk_all(cohorts, values, wanted, cells):
    """Compute the statistics that need a cohort's values in order, one thread for each cohort."""
    starts, statistic_of = cohorts
    which = (cuda.grid(1), len(statistic_of), cuda.gridsize(1))
    find_walk_statistics(starts, which, 0, values.axes, values.accuracies[0], wanted, cells, cells, statistic_of)


@cuda.jit
def score_cells(cohorts, cohort_of, values, wanted, cells, statistic_of, out):
    """Set out[k, order[i]] to measure k of cell i, before weighting. cohorts: see `describe_cells`."""
    order, sizes = cohorts
    accuracy, unit_bits = values.accuracies[0], values.unit_bits[0]
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        row, cohort, value = order[i], cohort_of[i] - 1, cells.values[i]
        prior, log2_prior, log2_share = values.priors[value], values.log2_priors[value], cells.log2_shares[i]
        for k in range(wanted.measures.size):
            measure, place = wanted.measures[k], wanted.places[k]
            if is_of_size(measure):
                same = cells.counts[i] if values.inside[0] else sizes[cohort]
                out[k, row] = size_measure(measure, sizes[cohort], same, wanted.unit[0])
            else:
                statistic = statistic_of[cohort, place] if place >= 0 else 0.0
                out[k, row] = cell_measure(
                    measure, statistic, cells.posteriors[i], log2_share, prior, log2_prior, accuracy, unit_bits
                )
