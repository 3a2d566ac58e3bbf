"""Measures of cells if a missing value matches every value; `wildcard_cohorts.py` finds the cohorts."""

from __future__ import annotations

import math

from numba import int64

from gpupif.kernels.blocks import find_statistics
from gpupif.kernels.formulas import is_of_size, matched_measure, posterior, size_measure
from gpupif.kernels.jit import kernel, subroutine
from gpupif.kernels.log_units import LOG_BITS
from gpupif.kernels.logarithms import bits_of_units
from gpupif.kernels.sizes import log2_count
from gpupif.kernels.statistics import ENTROPY, RECURSIVE
from gpupif.kernels.wildcard_cohorts import list_answers


@subroutine
def describe_cohort(number, cell, missing, priors, accuracy, logs, amounts, touched, cells):
    """Put the known values of a cohort into `cells`, from place `cell` on.

    touched: the `number` values of the cohort. amounts: by value, the number of rows. cells: the arrays of
    `CohortCells`. Return the size of the cohort, the number of its rows whose value is known, and the next free place
    in `cells`.
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
    cohort_of, sizes, certains, statistic_of = scratch.order, scratch.sizes, scratch.place, scratch.statistic_of
    unit, inside = wanted.unit[0], values.inside[scored_column]
    for k in range(wanted.measures.size):
        measure, place = wanted.measures[k], wanted.places[k]
        for j in range(number):
            size, certain, statistic = sizes[j], certains[j], 0.0
            if place >= 0:
                statistic = statistic_of[cohort_of[j], place] if cohort_of[j] >= 0 else of_nothing(wanted.kinds[place])
            for row in range(starts[first + j], starts[first + j + 1]):
                value, same_value = row_values[row], own[row]
                value_known = value != missing
                if is_of_size(measure):
                    # A row whose value is missing matches every value.
                    same = same_value + size - certain if inside and value_known else size
                    out[row, k] = size_measure(measure, size, same, unit)
                    continue
                chance, prior, log2_share, log2_prior = math.nan, math.nan, int64(0), int64(0)
                if value_known:
                    prior, log2_prior = priors[value], log2_priors[value]
                if value_known and same_value > 0:
                    chance = posterior(same_value, certain, prior, accuracy)
                    log2_share = log2_count(same_value, logs) - log2_count(certain, logs)
                probabilities = (chance, log2_share, prior, log2_prior, accuracy, unit_bits)
                out[row, k] = matched_measure(measure, statistic, value_known, same_value, certain > 0, *probabilities)
    for j in range(number):
        for row in range(starts[first + j], starts[first + j + 1]):
            losses[row] = 0.0
            if row_values[row] != missing and row_counts[row] > 0:
                losses[row] = loss(row_counts[row], log2_count(own[row], logs) - log2_count(certains[j], logs))


@subroutine
def score_keys(asked, start, stop, memory, results):
    """Score the rows of the keys start to stop - 1, as many keys at once as fit the memory; see `score_patterns`."""
    known, scored_column, values, axes, logs, wanted = asked
    matching, scratch, ordered = memory
    own = results[0]
    base, end = values.first[scored_column], values.first[scored_column + 1]
    missing, priors, accuracy = end - base, values.priors[base:end], values.accuracies[scored_column]
    row_starts, row_values, row_counts = known.starts, known.values, known.counts
    links, amounts, touched = matching.links, matching.amounts, matching.touched
    list_starts, list_ends, list_values, list_counts = matching.starts, matching.ends, matching.values, matching.counts
    cohort_of, starts, sizes, certains = scratch.order, scratch.starts, scratch.sizes, scratch.place
    cells = scratch.cells
    codes, cell_counts, log2_shares, shares, posteriors = cells
    described = (codes, cell_counts, log2_shares, shares, posteriors)
    first, cohort, cell = start, 0, 0
    starts[0] = 0
    for key in range(start, stop):
        # Add up the key's own rows, then matching rows of other patterns. `number_keys` says why this is no call.
        number = 0
        for row in range(row_starts[key], row_starts[key + 1]):
            if row_counts[row] > 0:
                touched[number] = row_values[row]
                number += 1
                amounts[row_values[row]] = row_counts[row]
        for answering in range(len(links)):
            link = links[answering, key - start]
            if link >= 0:
                for entry in range(list_starts[link], list_ends[link]):
                    value = list_values[entry]
                    if amounts[value] == 0:
                        touched[number] = value
                        number += 1
                    amounts[value] += list_counts[entry]
        if cell + number > codes.size or key - first == sizes.size:
            find_statistics(starts, cohort, scored_column, values, axes, wanted, cells, ordered, scratch.statistic_of)
            score_rows(asked, first, key - first, scratch, results)
            first, cohort, cell = key, 0, 0
        size, certain, cell = describe_cohort(
            number, cell, missing, priors, accuracy, logs, amounts, touched, described
        )
        sizes[key - first], certains[key - first], cohort_of[key - first] = size, certain, -1
        if certain > 0:
            cohort_of[key - first] = cohort
            cohort += 1
            starts[cohort] = cell
        for row in range(row_starts[key], row_starts[key + 1]):
            own[row] = amounts[row_values[row]]
        for i in range(number):
            amounts[touched[i]] = 0
    find_statistics(starts, cohort, scored_column, values, axes, wanted, cells, ordered, scratch.statistic_of)
    score_rows(asked, first, stop - first, scratch, results)


@kernel
def score_patterns(asked, segments, memory, results):
    """Score the rows of segments of keys.

    asked: (known, scored column, values, axes, logs, wanted). known: `PatternKeys`. The scored column is a place in
    `values`.
        axes: None if no statistic needs them. logs: see `log2_count`. wanted: `WantedMeasures`.
    segments: (segments, 3). The pattern of the keys, the first key, the last key + 1.
    memory: (matching, scratch, ordered), see `MatchingMemory`, `CohortMemory` and `ordered_cells`.
    results: (own, losses, out). out[row, k] gets measure k, before weighting; NaN for a measure of the row's own value
        if that value is missing. losses[row] gets -log2 of the share of the row's cohort that has its value, times the
        row's count. own: working memory.
    Rows with count 0 are scored, and are in no cohort.
    """
    known, matching = asked[0], memory[0]
    for s in range(len(segments)):
        asking, start, stop = segments[s, 0], segments[s, 1], segments[s, 2]
        lists, end = 0, 0
        for answering in range(len(known.keep)):
            if answering == asking:
                matching.links[asking, : stop - start] = -1
            else:
                lists, end = list_answers(known, asking, start, stop, answering, matching, lists, end)
        score_keys(asked, start, stop, memory, results)
