"""A run from files to files against one attacker: the table is scored, and the scores are summarised.

An attacker who knows any few columns has two runs: the worst and the mean over all sets of these columns.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..attack.any_known import KnownSubsets
from ..attack.priors import Prior
from ..engines.partition_plan import computed_measure
from ..io.ipc_batches import read_batch
from ..measures import POPULATION_SIZE, find_measure
from ..results.cell_explanations import ExplainedCells
from ..results.riskiest import RiskyCell, cell_records
from ..results.score_distribution import ColumnQuery, ScoreAnswers, ScoreQuestions, answer_column
from ..results.score_outputs import MEAN
from ..results.summary import Summary
from ..results.summary_figures import OF_COLUMNS, OF_ROWS, ColumnFacts, summary_columns
from ..rows.threads import Workers
from ..utils.percentiles import ONCE, Pieces, percentiles
from .chunk_scores import AttackerScores
from .one_partition_scoring import OnePartitionScoring
from .table_chunks import TableChunks
from .table_scoring import StoredScores, TableScoring, score_name


@dataclass(eq=False)
class AttackerRun:
    """The run against one attacker, or for the worst or the mean over an attacker's sets of known columns.

    scoring: TableScoring. The scoring of the table with the attacker's job.
    fold: str. "", or the name of the worst or the mean.
    chunks: TableChunks. The rows of the table.
    prior_of: by column name. The prior distribution.
    subsets: KnownSubsets. The sets of columns that the attacker may know; None for one list of known columns.
    """

    scoring: TableScoring
    fold: str
    chunks: TableChunks
    prior_of: Mapping[Hashable, Prior]
    subsets: KnownSubsets | None
    _chunk_scores: AttackerScores = field(init=False)

    def __post_init__(self) -> None:
        self.job = self.scoring.fold_job(self.fold)

    def score(self) -> AttackerScores:
        """Score the table, unless that is done; return the scores chunk by chunk."""
        self.weights = self.scoring.weights[self.fold]
        folder = self.scoring.file(f"facts-{self.fold}" if self.fold else "facts")
        self._chunk_scores = AttackerScores(self.scoring, self.fold, self.weights, folder)
        return self._chunk_scores

    @property
    def column_facts(self) -> list[ColumnFacts]:
        """The facts of the scored columns."""
        priors = [self.prior_of[name] for name in self._names]
        return [ColumnFacts(prior.column.cardinality, prior.entropy) for prior in priors]

    @cached_property
    def summary(self) -> Summary:
        """The summary without times, to be asked for when all scores are made."""
        started = time.perf_counter()
        scoring, context = self.scoring, self.scoring.context
        context.report.stage("summarise", None, "")
        chunk_scores, chunks = self._chunk_scores, self.chunks
        figures, cells = chunk_scores.figures_and_top(len(chunks.sizes))
        asked = {} if "cig" not in chunk_scores.types else {"cig": ColumnQuery(percentiles=OF_COLUMNS)}
        answers = self._answer(ScoreQuestions(asked, OF_ROWS))
        percentiles = [[*one.percentiles.values()] for one in answers.of_columns.get("cig", ())]
        summary = Summary(
            rows=chunks.rows,
            distinct_rows=scoring.distinct_rows(),
            device=context.engine.device,
            measures=tuple(chunk_scores.measures),
            seconds={},
            columns=summary_columns(
                self._names, self.column_facts, chunks.rows, figures, percentiles, chunk_scores.weights
            ),
            pif={int(percent): bits for percent, bits in answers.of_rows.items()},
            top=cell_records(cells, self._names, chunk_scores.measures, self._explain(cells)),
        )
        context.timed("summarise", started)
        return summary

    @cached_property
    def answers(self) -> ScoreAnswers:
        """The answers to the questions of the run besides the summary, to be asked for when all scores are made."""
        return self._answer(self.scoring.context.questions)

    def _answer(self, questions: ScoreQuestions) -> ScoreAnswers:
        columns = {
            name: [answer_column(self._scores(name, place), asked) for place in range(len(self.job.scored_columns))]
            for name, asked in questions.of_columns.items()
        }
        return ScoreAnswers(columns, self._row_gain_percentiles(questions.of_rows))

    def _scores(self, name: str, place: int) -> Pieces:
        """Return a function that yields the scores of a measure in a scored column, and how often each occurs."""
        scoring, chunk_scores = self.scoring, self._chunk_scores
        if name == POPULATION_SIZE.name:
            return partial(self._population_sizes, place)
        (measure,) = (one for one in self.job.measures if one.name == name)
        files = scoring.values(self.fold, self.job.scored_columns[place], computed_measure(measure))
        weight = chunk_scores.weights[place] if measure.weighted else None
        return partial(_occurring_scores, files, weight, chunk_scores.types[name])

    def _population_sizes(self, place: int) -> Iterator[tuple[Any, Any]]:
        """Yield the sizes of cohorts in the population, chunk by chunk."""
        kind = self._chunk_scores.types[POPULATION_SIZE.name]
        name = score_name(self.job.scored_columns[place], self.fold, POPULATION_SIZE.name)
        with StoredScores(self.scoring) as stored, Workers() as workers:
            for number, size in enumerate(self.chunks.sizes):
                sizes = np.empty(size, kind)
                stored.fill(number, {name: [(1, sizes)]}, workers)
                yield sizes, ONCE

    def _row_gain_percentiles(self, wanted: Sequence[float]) -> dict[float, float]:
        """Return PIF by percentile; nothing if CIG was not scored."""
        chunk_scores = self._chunk_scores
        if "cig" not in chunk_scores.types or not wanted:
            return {}

        def pieces() -> Iterator[tuple[Any, Any]]:
            for number in range(len(self.chunks.sizes)):
                yield read_batch(chunk_scores.gains(number))[0], ONCE

        return dict(zip(wanted, percentiles(pieces, wanted), strict=True))

    @property
    def _names(self) -> list[Hashable]:
        return [self.chunks.columns[scored_column].name for scored_column in self.job.scored_columns]

    def _explain(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """Return the cohorts of the riskiest cells; see `Explainer`."""
        scoring, chunks = self.scoring, self.chunks
        asked = ExplainedCells(self.job, chunks.columns, cells, [_codes_of_row(chunks, cell.row) for cell in cells])
        if self.subsets is not None:
            if self.fold == MEAN:
                return asked.values()
            assert isinstance(scoring, OnePartitionScoring)
            by, weights_of = find_measure(self._chunk_scores.by), scoring.weights_of
            return asked.explain_worst(
                scoring.distinct_job(), self.subsets, lambda _, position: weights_of(position), by
            )
        pieces = (chunks.codes(number) for number in range(len(chunks.sizes)))
        units = None if scoring.plan.weights is None else scoring.plan.weights.units
        counts = (asked.count(codes, None if units is None else units.times(codes[-1])) for codes in pieces)
        return asked.explain(asked.total(counts))


def _occurring_scores(files: Sequence[Path], weight: float | None, dtype: str) -> Iterator[tuple[Any, Any]]:
    """Yield the distinct scores of a scored column and how often each occurs, one file for each partition.

    weight: float. The factor of the scores; None for none.
    dtype: str. The type of the written scores.
    """
    for file in files:
        values, times = read_batch(file)
        scores = values if weight is None else weight * values
        yield scores.astype(dtype, copy=False).astype(np.float64), times


def _codes_of_row(chunks: TableChunks, row: int) -> list[int]:
    """Return the codes of one row."""
    ends = list(accumulate(chunks.sizes))
    number = bisect_right(ends, row)
    place = row - (ends[number] - chunks.sizes[number])
    return [int(codes[place]) for codes in chunks.codes(number)]
