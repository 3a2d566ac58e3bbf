"""One attacker in a run from files to files: the table scored, and what a summary says of the scores.

Who knows any few of the columns is two: the worst and the mean over all subsets of them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..attack.priors import Prior
from ..engines.part_jobs import weight_of
from ..measures import find_measure
from ..results.base import MEAN, Cell
from ..results.figures import ColumnFacts, Figures, summary_columns
from ..results.riskiest import cell_records, describe_value, riskiest
from ..results.summary import TOP_CELLS, Summary
from ..results.worst_attacker import describe_worst, row_with
from .chunks import TableChunks
from .gather import Facts, Gatherer
from .one_part import Fold
from .part_result import Found
from .passes import Scored
from .summary import codes_of_row, explain_cells, gain_percentiles, row_gain_percentiles


class Attack:
    """What is done for one attacker, or one fold of one who knows any few columns.

    scored: the table, for the attacker's job. chunks: its rows. prior_of: by column. people: the population's rows
    beside those of the table, for the sizes of cohorts in it; None where there is no population.
    """

    def __init__(
        self, scored: Scored, chunks: TableChunks, prior_of: Mapping[Hashable, Prior], people: Scored | None = None
    ) -> None:
        self.scored = scored
        self.chunks = chunks
        self.prior_of = prior_of
        self.people = people

    def score(self) -> Gatherer:
        """Score the table in parts; what puts the scores together."""
        scored, job = self.scored, self.scored.job
        found = scored.score()
        if self.people is not None:
            self.people.score()
        self.weights = [found.weights[target] for target in job.targets] if found.weights else self._weights(found)
        self._gatherer = Gatherer(scored, self.weights, scored.file("facts"), self.people)
        return self._gatherer

    def _weights(self, found: Found) -> list[float]:
        scored, job = self.scored, self.scored.job
        total = self.chunks.rows if scored.units is None else scored.units.total
        return [
            weight_of(job, total, target, [found.cohorts[target]], [found.distinct[target]]) for target in job.targets
        ]

    @property
    def column_facts(self) -> list[ColumnFacts]:
        """Of the scored columns."""
        priors = [self.prior_of[name] for name in self._names]
        return [ColumnFacts(prior.column.cardinality, prior.entropy) for prior in priors]

    @cached_property
    def summary(self) -> Summary:
        """The summary, when all scores are put together; without times."""
        started = time.perf_counter()
        scored, means, job = self.scored, self.scored.means, self.scored.job
        means.report.stage("summarise", None, "")
        gatherer, chunks = self._gatherer, self.chunks
        facts = [Facts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]
        figures = Figures.together(*(chunk.figures for chunk in facts))
        percentiles = gain_percentiles(job, chunks.rows, scored.gains)
        cells = riskiest((cell for chunk in facts for cell in chunk.top), TOP_CELLS)
        summary = Summary(
            rows=chunks.rows,
            distinct_rows=scored.distinct_rows(),
            device=means.engine.device,
            measures=tuple(gatherer.measures),
            seconds={},
            columns=summary_columns(
                self._names, self.column_facts, chunks.rows, figures, percentiles, gatherer.weights
            ),
            pif=row_gain_percentiles(gatherer, chunks),
            top=cell_records(cells, self._names, gatherer.measures, self._explain(cells)),
        )
        means.timed("summarise", started)
        return summary

    @property
    def _names(self) -> list[Hashable]:
        return [self.chunks.columns[target].name for target in self.scored.job.targets]

    def _explain(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """What is seen of the riskiest cells; see `Explainer`."""
        scored = self.scored
        if not isinstance(scored, Fold) or not scored.fold:
            return explain_cells(scored.job, self.chunks, cells, scored.units)
        return [self._explain_any_known(scored, cell) for cell in cells]

    def _explain_any_known(self, fold: Fold, cell: Cell) -> dict[str, Any]:
        whole, job = fold.whole, fold.job
        position, key = job.targets[cell.target], codes_of_row(self.chunks, cell.row)
        column, code = self.chunks.columns[position], key[position]
        if fold.fold == MEAN:
            return describe_value(job, position, column, code)
        assert whole.subsets is not None
        table = replace(whole.job, codes=whole.table.codes, times=whole.table.times)
        row = row_with(table.codes, key[: len(table.codes)])
        by, weights = find_measure(self._gatherer.by), whole.weights_of(position)
        return describe_worst(table, column, row, position, whole.subsets, weights, by)
