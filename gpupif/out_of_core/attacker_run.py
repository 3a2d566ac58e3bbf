"""One attacker in a run from files to files: the table scored, and the scores summarised.

Who knows any few of the columns is two: the worst and the mean over all subsets of them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..attack.known_subsets import KnownSubsets
from ..attack.priors import Prior
from ..engines.base import Job
from ..engines.partition_plan import WeightSums
from ..measures import find_measure
from ..results.base import RiskyCell
from ..results.explained_cells import ExplainedCells
from ..results.figures import ColumnFacts, Figures, summary_columns
from ..results.outputs import MEAN
from ..results.riskiest import cell_records, riskiest
from ..results.summary import TOP_CELLS, Summary
from .chunks import TableChunks
from .fold import Folding
from .gather import Gatherer, ScoreFacts
from .one_part import FoldRun
from .passes import PartitionedRun
from .summary import codes_of_row, gain_percentiles, row_gain_percentiles


class FoldFacts(ScoreFacts):
    """What a summary needs of the scores of one fold. figures, top: when all parts were put together."""

    def __init__(self, job: Job, weights: Sequence[float], folder: Path, population: PartitionedRun | None) -> None:
        super().__init__(job, weights, folder, population)
        self.figures: Figures | None = None
        self.top: list[RiskyCell] = []

    def figures_and_top(self, chunks: int) -> tuple[Figures, list[RiskyCell]]:
        assert self.figures is not None
        return self.figures, riskiest(self.top, TOP_CELLS)


@dataclass(eq=False)
class AttackerRun:
    """The run for one attacker, or for one fold of an attacker with any few columns.

    scoring: the table, for the attacker's job. chunks: its rows. prior_of: by column. subsets: of columns that the
    attacker may know. population_scoring: the population's rows beside those of the table, for the sizes of cohorts in
    it; None where there is no population.
    """

    scoring: PartitionedRun
    chunks: TableChunks
    prior_of: Mapping[Hashable, Prior]
    subsets: KnownSubsets | None
    population_scoring: PartitionedRun | None = None
    _gatherer: ScoreFacts = field(init=False)

    def score(self) -> Gatherer:
        """Score the table in parts; the gatherer of the scores."""
        scoring = self.scoring
        sums = scoring.score()
        if self.population_scoring is not None:
            self.population_scoring.score()
        self._find_weights(sums)
        gatherer = Gatherer(scoring, self.weights, scoring.file("facts"), self.population_scoring)
        self._gatherer = gatherer
        return gatherer

    def fold(self, folding: Folding) -> FoldFacts:
        """Score the table in parts, and keep of the scores only what is needed; what a summary needs, to be filled.

        The sizes of cohorts in a population, by which nothing is chosen, are stored as they are.
        """
        self.scoring.folding, self.scoring.files = folding, folding.files
        self._find_weights(self.scoring.score())
        if self.population_scoring is not None:
            self.population_scoring.files = folding.files
            self.population_scoring.score()
        facts = FoldFacts(self.scoring.job, self.weights, self.scoring.file("facts"), self.population_scoring)
        self._gatherer = facts
        return facts

    def _find_weights(self, sums: WeightSums) -> None:
        (self.weights,) = sums.by_fold(self.scoring.job, self.scoring.total).values()

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
        figures, cells = gatherer.figures_and_top(len(chunks.sizes))
        percentiles = gain_percentiles(job, chunks.rows, scoring.gains)
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

    def _explain(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """What is seen of the riskiest cells; see `Explainer`."""
        scoring, chunks = self.scoring, self.chunks
        asked = ExplainedCells(scoring.job, chunks.columns, cells, [codes_of_row(chunks, cell.row) for cell in cells])
        if isinstance(scoring, FoldRun) and scoring.fold:
            whole = scoring.whole
            if scoring.fold == MEAN or self.subsets is None:
                return asked.values()
            table = whole.table
            rows = replace(whole.job, codes=table.codes, times=table.times, row_counts=table.row_counts)
            by = find_measure(self._gatherer.by)
            return asked.explain_worst(rows, self.subsets, lambda _, position: whole.weights_of(position), by)
        pieces = (chunks.codes(number) for number in range(len(chunks.sizes)))
        units = scoring.units
        counts = (asked.count(codes, None if units is None else units.times(codes[-1])) for codes in pieces)
        return asked.explain(asked.total(counts))
