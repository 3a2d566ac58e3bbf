"""One attacker in a run from files to files: the table scored, and the scores summarised.

Who knows any few of the columns is two: the worst and the mean over all subsets of them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from ..attack.priors import Prior
from ..engines.partition_plan import target_weight
from ..measures import find_measure
from ..results.base import MEAN, Cell
from ..results.figures import ColumnFacts, Figures, summary_columns
from ..results.riskiest import cell_records, describe_value, riskiest
from ..results.summary import TOP_CELLS, Summary
from ..results.worst_attacker import describe_worst, row_with
from .chunks import TableChunks
from .gather import ChunkFacts, Gatherer
from .one_part import FoldRun
from .part_result import PartResult
from .passes import PartitionedRun
from .summary import codes_of_row, explain_cells, gain_percentiles, row_gain_percentiles


class AttackerRun:
    """The run for one attacker, or for one fold of an attacker with any few columns.

    scoring: the table, for the attacker's job. chunks: its rows. prior_of: by column. population_scoring: the
    population's rows beside those of the table, for the sizes of cohorts in it; None where there is no population.
    """

    def __init__(
        self,
        scoring: PartitionedRun,
        chunks: TableChunks,
        prior_of: Mapping[Hashable, Prior],
        population_scoring: PartitionedRun | None = None,
    ) -> None:
        self.scoring = scoring
        self.chunks = chunks
        self.prior_of = prior_of
        self.population_scoring = population_scoring

    def score(self) -> Gatherer:
        """Score the table in parts; the gatherer of the scores."""
        scoring, job = self.scoring, self.scoring.job
        found = scoring.score()
        if self.population_scoring is not None:
            self.population_scoring.score()
        self.weights = [found.weights[target] for target in job.targets] if found.weights else self._weights(found)
        self._gatherer = Gatherer(scoring, self.weights, scoring.file("facts"), self.population_scoring)
        return self._gatherer

    def _weights(self, found: PartResult) -> list[float]:
        scoring, job = self.scoring, self.scoring.job
        total = self.chunks.rows if scoring.units is None else scoring.units.total
        return [
            target_weight(job, total, target, [found.cohorts[target]], [found.distinct[target]])
            for target in job.targets
        ]

    @property
    def column_facts(self) -> list[ColumnFacts]:
        """Facts of the scored columns."""
        priors = [self.prior_of[name] for name in self._names]
        return [ColumnFacts(prior.column.cardinality, prior.entropy) for prior in priors]

    @cached_property
    def summary(self) -> Summary:
        """The summary, when all scores are put together; without times."""
        started = time.perf_counter()
        scoring, context, job = self.scoring, self.scoring.context, self.scoring.job
        context.report.stage("summarise", None, "")
        gatherer, chunks = self._gatherer, self.chunks
        facts = [ChunkFacts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]
        figures = Figures.together(*(chunk.figures for chunk in facts))
        percentiles = gain_percentiles(job, chunks.rows, scoring.gains)
        cells = riskiest((cell for chunk in facts for cell in chunk.top), TOP_CELLS)
        summary = Summary(
            rows=chunks.rows,
            distinct_rows=scoring.distinct_rows(),
            device=context.engine.device,
            measures=tuple(gatherer.measures),
            seconds={},
            columns=summary_columns(
                self._names, self.column_facts, chunks.rows, figures, percentiles, gatherer.weights
            ),
            pif=row_gain_percentiles(gatherer, chunks),
            top=cell_records(cells, self._names, gatherer.measures, self._explain(cells)),
        )
        context.timed("summarise", started)
        return summary

    @property
    def _names(self) -> list[Hashable]:
        return [self.chunks.columns[target].name for target in self.scoring.job.targets]

    def _explain(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """What is seen of the riskiest cells; see `Explainer`."""
        scoring = self.scoring
        if not isinstance(scoring, FoldRun) or not scoring.fold:
            return explain_cells(scoring.job, self.chunks, cells, scoring.units)
        return [self._explain_any_known(scoring, cell) for cell in cells]

    def _explain_any_known(self, fold: FoldRun, cell: Cell) -> dict[str, Any]:
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
