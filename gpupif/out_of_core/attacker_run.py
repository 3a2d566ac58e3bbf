"""One attacker in a run from files to files: the table scored, and the scores summarised.

Who knows any few of the columns is two: the worst and the mean over all subsets of them.
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ..attack.any_known import KnownSubsets
from ..attack.priors import Prior
from ..engines.base import Job
from ..engines.partition_plan import WeightSums, computed_measure
from ..measures import POPULATION_SIZE, find_measure
from ..results.cell_explanations import ExplainedCells
from ..results.riskiest import RiskyCell, cell_records, riskiest
from ..results.score_distribution import ColumnQuery, ScoreAnswers, ScoreQuestions, answer_column
from ..results.score_outputs import MEAN
from ..results.summary import TOP_CELLS, Summary
from ..results.summary_figures import OF_COLUMNS, OF_ROWS, ColumnFacts, Figures, summary_columns
from ..rows.threads import Workers
from ..utils.percentiles import ONCE, Pieces
from .chunks import TableChunks
from .fold import Folding, Output, RawScores
from .gather import Gatherer, ScoreFacts, StoredScores
from .one_part import FoldRun
from .passes import PartitionedRun
from .summary import codes_of_row, occurring_scores, row_gain_percentiles


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
        scoring, context = self.scoring, self.scoring.context
        context.report.stage("summarise", None, "")
        gatherer, chunks = self._gatherer, self.chunks
        figures, cells = gatherer.figures_and_top(len(chunks.sizes))
        asked = {} if "cig" not in gatherer.types else {"cig": ColumnQuery(percentiles=OF_COLUMNS)}
        answers = self._answer(ScoreQuestions(asked, OF_ROWS))
        percentiles = [[*one.percentiles.values()] for one in answers.of_columns.get("cig", ())]
        summary = Summary(
            rows=chunks.rows,
            distinct_rows=scoring.distinct_rows(),
            device=context.engine.device,
            measures=tuple(gatherer.measures),
            seconds={},
            columns=summary_columns(
                self._names, self.column_facts, chunks.rows, figures, percentiles, gatherer.weights
            ),
            pif={int(percent): bits for percent, bits in answers.of_rows.items()},
            top=cell_records(cells, self._names, gatherer.measures, self._explain(cells)),
        )
        context.timed("summarise", started)
        return summary

    @cached_property
    def answers(self) -> ScoreAnswers:
        """What the run was asked beside the summary, when all scores are put together."""
        return self._answer(self.scoring.context.questions)

    def _answer(self, questions: ScoreQuestions) -> ScoreAnswers:
        columns = {
            name: [
                answer_column(self._scores(name, place), asked) for place in range(len(self.scoring.job.scored_columns))
            ]
            for name, asked in questions.of_columns.items()
        }
        return ScoreAnswers(columns, row_gain_percentiles(self._gatherer, self.chunks, questions.of_rows))

    def _scores(self, name: str, place: int) -> Pieces:
        """The scores of a measure of one of the scored columns, and how often each occurs."""
        scoring, gatherer = self.scoring, self._gatherer
        if name == POPULATION_SIZE.name:
            return partial(self._population_sizes, place)
        (measure,) = (one for one in scoring.job.measures if one.name == name)
        raw = computed_measure(measure)
        output = Output(RawScores("", raw), gatherer.types[name], measure.weighted)
        return occurring_scores(scoring.values(scoring.job.scored_columns[place], raw), output, gatherer.weights[place])

    def _population_sizes(self, place: int) -> Iterator[tuple[Any, Any]]:
        """Those of cohorts in the population, chunk by chunk."""
        assert self.population_scoring is not None
        kind = self._gatherer.types[POPULATION_SIZE.name]
        with StoredScores(self.population_scoring) as stored, Workers() as workers:
            for number, size in enumerate(self.chunks.sizes):
                yield stored.sizes(number, size, kind, workers)[place], ONCE

    @property
    def _names(self) -> list[Hashable]:
        return [self.chunks.columns[scored_column].name for scored_column in self.scoring.job.scored_columns]

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
