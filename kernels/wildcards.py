"""Measures of cells where a missing value matches every value: `wildcard_cohorts.py` tells how cohorts are found."""

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
    """Put the values of a cohort into `cells` from `cell` on, but missing ones; returns rows, known ones, next cell.

    cells: the arrays of `Cells`.
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
    """A statistic of a cohort in which no value is known: nothing is learnt, its entropy and recursion are unknown."""
    return math.nan if kind in (ENTROPY, RECURSIVE) else 0.0


@subroutine
def loss(count, log2_share):
    """What so many rows add to H(X|known), in bits; log2_share: of their value in their cohort, in units."""
    return count * bits_of_units(-log2_share, LOG_BITS)


@subroutine
def score_rows(asked, first, number, scratch, results):
    """Put the measures of the rows of the keys `first` and on into `results`, see `score_patterns`.

    Of key first + j: scratch.order[j] its run or -1, scratch.sizes[j] its cohort's size, scratch.place[j] the rows
    there whose value is known. own[row]: those with the row's own value.
    """
    known, scored_column, values, _, logs, wanted = asked
    own, losses, out = results
    # Behind the codes of its values is that of missing ones.
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
                    # Who lacks a value matches every value.
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
    """Score the rows of the keys start to stop - 1, in batches that there is memory for; see `score_patterns`."""
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
        # Its own rows, then what other patterns have for it; see `make_groups` for why there is no call.
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
    """Score the rows of segments (pattern, first key, last key + 1).

    asked: (known, scored column, values, axes, logs, wanted): `Keys`, which of the `Values` is scored, and where a
    statistic
    needs them their axes, see `log2_count`, `Wanted`. memory: (room, scratch, ordered), see `Room`, `Scratch` and
    `ordered_cells`. results: (own, losses, out): out[row, k] gets measure k, before weighting: NaN what is of the row's
    own value where that is missing. losses[row]: -log2 of the share of its cohort that has its value, times how often
    it occurs; own: to work in. Rows that occur 0 times are scored, and are in no cohort.
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
