"""The view of an attacker on single cells: the cohort of a cell, found among the codes of rows, and its consequences.

An attacker who knows any few columns is replaced by the one against whom the cell is worst off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels import formulas
from gpupif.kernels.log_units import LOG_BITS

from ..attack.attackers import KnownSubsets
from ..encoding.column import Column, value_order
from ..engines.attacker_scoring import score_sets
from ..engines.base import SILENT, Engine, Job
from ..engines.cpu.engine import CpuEngine
from ..engines.individual_risk import individual_risk
from ..engines.worst_and_mean import worst_place
from ..measures import POPULATION_SIZE, Measure, resolve_measures
from ..utils.arrays import on_host
from ..utils.progress import Reporter
from .riskiest import RiskyCell

NOTHING = np.zeros(0, np.int64)
# Most values of a column whose prior and posterior are explained for a cell.
MOST_VALUES = 12


class CohortCount(NamedTuple):
    """The rows of a cohort, or their units of sampling weight.

    size: all rows. equal: rows that have the cell's value in the scored column. lacking: rows whose value there is
    missing, if missing values are wildcards; else 0. values: the codes of its values in the scored column, and how
    often each occurs; empty unless the cell is spread.
    """

    size: int
    equal: int
    lacking: int
    values: tuple[npt.NDArray[Any], npt.NDArray[np.int64]] = (NOTHING, NOTHING)

    @classmethod
    def total(cls, counts: Iterable[CohortCount]) -> CohortCount:
        """Return the counts of a whole table from the counts of its chunks."""
        sizes, equal, lacking, values = zip(*counts, strict=True)
        codes, amounts = (np.concatenate(arrays) for arrays in zip(*values, strict=True))
        merged, place = np.unique(codes, return_inverse=True)
        totals = np.zeros(len(merged), np.int64)
        np.add.at(totals, place, amounts)
        return cls(sum(sizes), sum(equal), sum(lacking), (merged, totals))


@dataclass(frozen=True)
class ExplainedCells:
    """Some cells of a table whose rows may come in chunks.

    job, columns: of the columns that are scored or known, without codes of rows.
    keys: for each cell the codes of its row.
    """

    job: Job
    columns: Sequence[Column]
    cells: Sequence[RiskyCell]
    keys: Sequence[Sequence[int]]

    def values(self) -> list[dict[str, Any]]:
        """Return ``value``, ``cells`` and ``prior`` of each cell, see `Explainer.values`."""
        return [self._value(column, key[column]) for column, key in self._placed()]

    def count(self, codes: Sequence[Any], multiplicities: npt.NDArray[np.int64] | None) -> list[CohortCount]:
        """Count the rows of one chunk that are in the cohort of each cell.

        codes: by column. multiplicities: how often each row counts; None for once.
        """
        return [
            _count_cohort(self.job, codes, multiplicities, key, column, cell.spread)
            for cell, (column, key) in zip(self.cells, self._placed(), strict=True)
        ]

    @staticmethod
    def total(*counts: Sequence[CohortCount]) -> list[CohortCount]:
        """Return the cohort of each cell in the whole table. counts: what `count` returned for each chunk."""
        return [CohortCount.total(of_cell) for of_cell in zip(*counts, strict=True)]

    def explain(self, counts: Sequence[CohortCount]) -> list[dict[str, Any]]:
        """Return what the attacker sees of each cell, see `Explainer.explain`. counts: from the whole table."""
        return [
            self._explain(column, key[column], count, cell.spread)
            for cell, (column, key), count in zip(self.cells, self._placed(), counts, strict=True)
        ]

    def explain_worst(
        self,
        rows: Job,
        subsets: KnownSubsets,
        weights_of: Callable[[Job, int], npt.NDArray[np.float64]],
        by: Measure,
    ) -> list[dict[str, Any]]:
        """Return what the worst attacker sees of each cell, if the attacker knows any few columns.

        rows: the job with the codes of all distinct rows. weights_of: returns, for these rows, the weight of a column
        against each of the subsets. by: the measure that says who is the worst. Nobody is the worst by the size of
        cohorts in a population, whose rows are not at hand: then the cell is described without a cohort.
        """
        explained = []
        for cell, (column, key) in zip(self.cells, self._placed(), strict=True):
            if by.name == POPULATION_SIZE.name:
                explained.append(self._value(column, key[column]))
                continue
            weights = weights_of(rows, column) if by.weighted else np.ones(0)
            known, count = _find_worst(rows, key, column, subsets.places_of(column), weights, by)
            names = ", ".join(str(subsets.names[place]) for place in known)
            explained.append(self._explain(column, key[column], count, cell.spread) | {"known": names})
        return explained

    def _placed(self) -> Iterator[tuple[int, Sequence[int]]]:
        """Return for each cell the place of its column among all columns, and the codes of its row."""
        columns = (self.job.scored_columns[cell.scored_column] for cell in self.cells)
        return zip(columns, self.keys, strict=True)

    @cached_property
    def _orders(self) -> dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Return, by scored column of which a cell is spread, the order of its values, and its values by prior."""
        spread = {column for cell, (column, _) in zip(self.cells, self._placed(), strict=True) if cell.spread}
        orders = {column: value_order(self.columns[column]) for column in spread}
        priors = self.job.priors
        return {
            column: (order, np.lexsort((order[: len(priors[column])], -priors[column])))
            for column, order in orders.items()
        }

    def _value(self, column: int, code: int) -> dict[str, Any]:
        """Return what anyone sees of a cell with this code; the prior is NaN for a cell without a value."""
        priors, own = self.job.priors[column], self.columns[column]
        prior = float(priors[code]) if code < len(priors) else np.nan
        return {"value": own.values([code])[0], "cells": int(own.counts[code]), "prior": prior}

    def _explain(self, column: int, code: int, count: CohortCount, spread: bool) -> dict[str, Any]:
        """Return what an attacker sees of a cell with this code. A cell without a value has no posterior either.

        spread: add ``spread``, the prior and posterior of the largest values of the column, see `_spread`.
        """
        facts = self._value(column, code)
        prior = facts.pop("prior")
        posterior, certain = prior, count.size - count.lacking
        if certain and code < len(self.job.priors[column]):
            posterior = self._posterior(column, count.equal, certain, prior)
            facts |= {"spread": self._spread(column, code, certain, *count.values)} if spread else {}
        size = count.size if self.job.unit is None else count.size * self.job.unit
        return {**facts, "posterior": posterior, "prior": prior, "cohort_size": size}

    def _posterior(self, column: int, equal: Any, certain: int, prior: Any) -> Any:
        return formulas.posterior.py_func(equal, certain, prior, float(self.job.accuracies[column]))

    def _spread(
        self, column: int, code: int, certain: int, codes: npt.NDArray[Any], counts: npt.NDArray[np.int64]
    ) -> list[dict[str, Any]]:
        """Return ``value``, ``prior`` and ``posterior`` of at most MOST_VALUES values, the cell's own value first.

        Then come the likeliest by posterior, then by prior, then in the order of values. codes, counts: of the cohort.
        """
        priors, (order, by_prior) = self.job.priors[column], self._orders[column]
        # The code of missing values that match any value has no prior.
        codes, counts = codes[codes < len(priors)], counts[codes < len(priors)]
        # Of values that the cohort lacks, the posterior falls with the prior.
        frequent = by_prior[: len(codes) + MOST_VALUES]
        places = np.concatenate([codes, frequent[~np.isin(frequent, codes)][:MOST_VALUES]])
        posteriors = self._posterior(column, np.pad(counts, (0, len(places) - len(codes))), certain, priors[places])
        likeliest = places[np.lexsort((order[places], -priors[places], -posteriors))][:MOST_VALUES].tolist()
        shown = list(dict.fromkeys([code, *likeliest]))[:MOST_VALUES]

        def posterior(place: int) -> float:
            return float(self._posterior(column, int(counts[codes == place].sum()), certain, float(priors[place])))

        return [
            {"value": value, "prior": float(priors[place]), "posterior": posterior(place)}
            for place, value in zip(shown, self.columns[column].values(shown), strict=True)
        ]


def weights_of_sets(engine: Engine, subsets: KnownSubsets, job: Job, column: int) -> npt.NDArray[np.float64]:
    """Return the weight of a scored column against each attacker. job: with the codes of distinct rows."""
    one_column = replace(job, scored_columns=[column], measures=resolve_measures("cohort_size"), distinct=True)
    result = score_sets(engine, one_column, subsets.sets, SILENT)
    return result.weights[0]


def _missing_code(job: Job, column: int) -> int:
    """Return the code of missing values that match any value; -1 if there is none."""
    return len(job.counts[column]) - 1 if column in job.wildcards else -1


def _filter_cohort(cohort: Any, codes: Any, own: int, missing: int) -> Any:
    """Return which of some rows (None: all rows) have the code `own`. missing: the code that matches any, or -1."""
    here = codes if cohort is None else codes[cohort]
    agree = here == own
    if missing >= 0:
        agree = agree | (here == missing) | (own == missing)
    return np.flatnonzero(agree) if cohort is None else cohort[agree]


def _count_cohort(
    job: Job,
    codes: Sequence[Any],
    multiplicities: npt.NDArray[np.int64] | None,
    key: Sequence[int],
    scored_column: int,
    spread: bool,
) -> CohortCount:
    """Count the rows of a chunk that are in the cohort of a row with the codes `key`; see `ExplainedCells.count`."""
    cohort = None
    # The rarest value comes first, so that few rows are left at once.
    known = (column for column in job.known if column != scored_column)
    for column in sorted(known, key=lambda column: int(job.counts[column][key[column]])):
        cohort = _filter_cohort(cohort, codes[column], key[column], _missing_code(job, column))
    values = codes[scored_column] if cohort is None else codes[scored_column][cohort]
    there = slice(None) if cohort is None else cohort
    by_value = _values_in(codes[scored_column], there, multiplicities) if spread else (NOTHING, NOTHING)
    if multiplicities is not None and cohort is not None:
        multiplicities = multiplicities[on_host(cohort)]

    def count(mask: Any) -> int:
        return int(mask.sum()) if multiplicities is None else int(multiplicities[on_host(mask)].sum())

    lacking = count(values == _missing_code(job, scored_column)) if scored_column in job.wildcards else 0
    size = len(values) if multiplicities is None else int(multiplicities.sum())
    return CohortCount(size, count(values == key[scored_column]), lacking, by_value)


def _find_worst(
    job: Job,
    key: Sequence[int],
    scored_column: int,
    subsets: Sequence[tuple[int, ...]],
    weights: npt.NDArray[np.float64],
    by: Measure,
) -> tuple[tuple[int, ...], CohortCount]:
    """Return what the worst attacker of one cell knows, and the cell's cohort; the first of equally bad attackers.

    job: with the codes of all rows, or of distinct rows with `multiplicities`. key: the codes of the cell's row.
    subsets: what
    each attacker knows. weights: of the scored column against each attacker, for measures that are weighted.
    """
    code = key[scored_column]
    counts_rows = job.unit is not None and by.of_rows_and_people
    cohort_values, cohort_rows = [], []
    for cohort in _cohorts(job, key, subsets):
        cohort_values.append(_values_in(job.codes[scored_column], cohort, job.multiplicities))
        if counts_rows:
            cohort_rows.append(_rows_in(job, cohort))
    if counts_rows:
        # If the attacker does not know the column, its cohort is the equivalence class.
        people = [int(counts.sum()) * float(job.unit or 1) for _, counts in cohort_values]
        scores = individual_risk(np.array(cohort_rows), np.array(people))
    else:
        scores = _score_in_cohorts(job, scored_column, code, cohort_values, by)
    if by.weighted:
        scores = scores * weights
    worst = worst_place(by, scores)
    values, counts = cohort_values[worst]
    equal, lacking = (int(counts[values == one].sum()) for one in (code, _missing_code(job, scored_column)))
    return subsets[worst], CohortCount(int(counts.sum()), equal, lacking, (values, counts))


def _cohorts(job: Job, key: Sequence[int], subsets: Sequence[tuple[int, ...]]) -> Iterator[Any]:
    """Return for each subset the rows that agree with `key` on it.

    Subsets that follow each other share the work for the columns with which both begin.
    """
    path: list[tuple[int, Any]] = []
    for subset in subsets:
        same = 0
        while same < len(path) and path[same][0] == subset[same]:
            same += 1
        del path[same:]
        for column in subset[same:]:
            codes, before = job.codes[column], path[-1][1] if path else None
            path.append((column, _filter_cohort(before, codes, key[column], _missing_code(job, column))))
        yield path[-1][1] if path else slice(None)


def _values_in(
    codes: Any, cohort: Any, multiplicities: npt.NDArray[np.int64] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the values of a cohort, as codes, and how many rows have each."""
    if multiplicities is None:
        # Codes on a device are counted there, by CuPy.
        values, counts = map(on_host, np.unique(codes[cohort], return_counts=True))
        return values, counts
    cohort = on_host(cohort) if not isinstance(cohort, slice) else cohort
    values, place = np.unique(on_host(codes)[cohort], return_inverse=True)
    counts = np.zeros(len(values), np.int64)
    np.add.at(counts, place, multiplicities[cohort])
    return values[counts > 0], counts[counts > 0]


def _rows_in(job: Job, cohort: Any) -> int:
    """Return how many rows of the table a cohort has."""
    if job.row_counts is None:
        return job.rows if isinstance(cohort, slice) else len(cohort)
    return int(job.row_counts[on_host(cohort)].sum())


def _score_in_cohorts(
    job: Job, column: int, code: int, cohorts: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]], by: Measure
) -> npt.NDArray[np.float64]:
    """Return the score of one value in each of several cohorts.

    The cohorts are scored as a table of two columns: the number of the cohort, which is known, and the scored column.
    """
    numbers = np.arange(len(cohorts))
    # After the rows of the cohorts comes one row for each: the cell that is scored, which counts 0.
    cohort_of_row = np.repeat(numbers, [len(values) for values, _ in cohorts])
    table = replace(
        job,
        codes=[
            np.concatenate([cohort_of_row, numbers]).astype(np.uint32),
            np.concatenate([*(values for values, _ in cohorts), np.full(len(cohorts), code)]).astype(np.uint32),
        ],
        counts=[np.ones(len(cohorts), np.int64), job.counts[column]],
        priors=[np.ones(len(cohorts)), job.priors[column]],
        log2_priors=[np.zeros(len(cohorts), np.int64), job.log2_priors[column]],
        unit_bits=[LOG_BITS, job.unit_bits[column]],
        accuracies=[1.0, job.accuracies[column]],
        scored_columns=[1],
        known=[0],
        measures=(replace(by, weighted=False),),
        dtype="float64",
        scores_on="host",
        axes=None if job.axes is None else [None, job.axes[column]],
        multiplicities=np.concatenate([*(counts for _, counts in cohorts), np.zeros(len(cohorts))]).astype(np.int64),
        wildcards=[1] if column in job.wildcards else [],
    )
    values = CpuEngine().score(table, Reporter(False)).values
    scores: npt.NDArray[np.float64] = next(iter(values.values()))[0][len(cohort_of_row) :]
    return scores
