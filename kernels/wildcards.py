"""Measures of cells if a missing value matches every value; `wildcard_cohorts.py` finds the cohorts."""

from __future__ import annotations

import math

from gpupif.kernels.blocks import find_statistics
from gpupif.kernels.formulas import OF_COHORT, absent_measure, cell_measure, is_of_size, posterior, size_measure
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import bits_of_units
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.statistics import ENTROPY, RECURSIVE
from gpupif.kernels.wildcard_cohorts import list_answers


@subroutine
def describe_cohort(number, cell, missing, priors, accuracy, logs, amounts, touched, cells):
    """Put the known values of a cohort into `cells`, from place `cell` on.

    touched: the `number` values of the cohort. amounts: by value, the number of rows. cells: the arrays of `Cells`.
    Return the size of the cohort, the number of its rows whose value is known, and the next free place in `cells`.
    """
    codes, cell_counts, log2_shares, shares, posteriors = cells
    size = 0
    for i in range(number):
        size += amounts[touched[i]]
    certain = size - amounts[missing]
    log2_size = log2_count(certain, logs) if certain > 0 else 0
    for i in range(number):
        value = touched[i]
        if value != missing:
            count = amounts[value]
            codes[cell], cell_counts[cell], shares[cell] = value, count, count / certain
            log2_shares[cell] = log2_count(count, logs) - log2_size
            posteriors[cell] = posterior(count, certain, priors[value], accuracy)
            cell += 1
    return size, certain, cell


@subroutine
def of_nothing(kind):
    """Return a statistic of a cohort in which no value is known: 0, because nothing is learnt.

    Entropy and recursive (c,l)-diversity are unknown: NaN.
    """
    return math.nan if kind in (ENTROPY, RECURSIVE) else 0.0


@subroutine
def loss(count, log2_share):
    """Return the term of `count` rows in H(X|known), in bits times rows.

    log2_share: log2 of the share of the cohort that has the rows' value, in units of logarithms.
    """
    return count * bits_of_units(-log2_share, LOG_BITS)


@subroutine
def score_rows(asked, first, number, scratch, results):
    """Compute the measures of the rows of `number` keys from key `first` on; results: see `score_patterns`.

    For key first + j, scratch.order[j] is the number of its cohort, -1 if no value is known in it; scratch.sizes[j] is
    the cohort's size, and scratch.place[j] the number of its rows whose value is known. own[row] is the number of the
    cohort's rows that have the row's value.
    """
    known, scored_column, values, _, logs, wanted = asked
    own, losses, out = results
    # The code of missing values follows the codes of the column's values.
    base, end = values.first[scored_column], values.first[scored_column + 1]
    missing, priors, log2_priors = end - base, values.priors[base:end], values.log2_priors[base:end]
    accuracy, unit_bits = values.accuracies[scored_column], values.unit_bits[scored_column]
    starts, row_values, row_counts = known.starts, known.values, known.counts
    runs, sizes, certains, found = scratch.order, scratch.sizes, scratch.place, scratch.found
    unit, inside = wanted.unit[0], values.inside[scored_column]
    for k in range(wanted.measures.size):
        measure, place = wanted.measures[k], wanted.places[k]
        for j in range(number):
            size, certain, statistic = sizes[j], certains[j], 0.0
            if place >= 0:
                statistic = found[runs[j], place] if runs[j] >= 0 else of_nothing(wanted.kinds[place])
            for row in range(starts[first + j], starts[first + j + 1]):
                value = row_values[row]
                if is_of_size(measure):
                    # A row whose value is missing matches every value.
                    same = own[row] + size - certain if inside and value != missing else size
                    out[row, k] = size_measure(measure, size, same, unit)
                elif measure == OF_COHORT:
                    out[row, k] = statistic
                elif value == missing:
                    out[row, k] = math.nan
                elif own[row] == 0:
                    out[row, k] = absent_measure(
                        measure, certain > 0, priors[value], log2_priors[value], accuracy, unit_bits
                    )
                else:
                    prior, log2_prior = priors[value], log2_priors[value]
                    chance = posterior(own[row], certain, prior, accuracy)
                    log2_share = log2_count(own[row], logs) - log2_count(certain, logs)
                    out[row, k] = cell_measure(
                        measure, statistic, chance, log2_share, prior, log2_prior, accuracy, unit_bits
                    )
    for j in range(number):
        for row in range(starts[first + j], starts[first + j + 1]):
            losses[row] = 0.0
            if row_values[row] != missing and row_counts[row] > 0:
                losses[row] = loss(row_counts[row], log2_count(own[row], logs) - log2_count(certains[j], logs))


@subroutine
def score_keys(asked, start, stop, memory, results):
    """Score the rows of the keys start to stop - 1, as many keys at once as fit the memory; see `score_patterns`."""
    known, scored_column, values, axes, logs, wanted = asked
    room, scratch, ordered = memory
    own = results[0]
    base, end = values.first[scored_column], values.first[scored_column + 1]
    missing, priors, accuracy = end - base, values.priors[base:end], values.accuracies[scored_column]
    row_starts, row_values, row_counts = known.starts, known.values, known.counts
    links, list_starts, list_ends, list_values, list_counts = (
        room.links,
        room.starts,
        room.ends,
        room.values,
        room.counts,
    )
    amounts, touched = room.amounts, room.touched
    runs, starts, sizes, certains = scratch.order, scratch.starts, scratch.sizes, scratch.place
    cells = (
        scratch.cells.values,
        scratch.cells.counts,
        scratch.cells.log2_shares,
        scratch.cells.shares,
        scratch.cells.posteriors,
    )
    first, run, cell = start, 0, 0
    starts[0] = 0
    for key in range(start, stop):
        # Add up the key's own rows, then matching rows of other patterns. `make_groups` says why this is no call.
        number = 0
        for row in range(row_starts[key], row_starts[key + 1]):
            if row_counts[row] > 0:
                touched[number] = row_values[row]
                number += 1
                amounts[row_values[row]] = row_counts[row]
        for answering in range(len(links)):
            one = links[answering, key - start]
            if one >= 0:
                for entry in range(list_starts[one], list_ends[one]):
                    value = list_values[entry]
                    if amounts[value] == 0:
                        touched[number] = value
                        number += 1
                    amounts[value] += list_counts[entry]
        if cell + number > cells[0].size or key - first == sizes.size:
            find_statistics(starts, run, scored_column, values, axes, wanted, scratch.cells, ordered, scratch.found)
            score_rows(asked, first, key - first, scratch, results)
            first, run, cell = key, 0, 0
        size, certain, cell = describe_cohort(number, cell, missing, priors, accuracy, logs, amounts, touched, cells)
        sizes[key - first], certains[key - first], runs[key - first] = size, certain, -1
        if certain > 0:
            runs[key - first] = run
            run += 1
            starts[run] = cell
        for row in range(row_starts[key], row_starts[key + 1]):
            own[row] = amounts[row_values[row]]
        for i in range(number):
            amounts[touched[i]] = 0
    find_statistics(starts, run, scored_column, values, axes, wanted, scratch.cells, ordered, scratch.found)
    score_rows(asked, first, stop - first, scratch, results)


@kernel
def score_patterns(asked, segments, memory, results):
    """Score the rows of segments of keys.

    asked: (known, scored column, values, axes, logs, wanted). known: `Keys`. The scored column is a place in `values`.
        axes: None if no statistic needs them. logs: see `log2_count`. wanted: `Wanted`.
    segments: (segments, 3). The pattern of the keys, the first key, the last key + 1.
    memory: (room, scratch, ordered), see `Room`, `Scratch` and `ordered_cells`.
    results: (own, losses, out). out[row, k] gets measure k, before weighting; NaN for a measure of the row's own value
        if that value is missing. losses[row] gets -log2 of the share of the row's cohort that has its value, times the
        row's count. own: working memory.
    Rows with count 0 are scored, and are in no cohort.
    """
    known, room = asked[0], memory[0]
    for s in range(len(segments)):
        asking, start, stop = segments[s, 0], segments[s, 1], segments[s, 2]
        lists, end = 0, 0
        for answering in range(len(known.keep)):
            if answering == asking:
                room.links[asking, : stop - start] = -1
            else:
                lists, end = list_answers(known, asking, start, stop, answering, room, lists, end)
        score_keys(asked, start, stop, memory, results)
