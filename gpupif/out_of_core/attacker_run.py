"""A run from files to files against each attacker: the scores of chunks, their summary, and the scores of all runs.

An attacker who knows any few columns has two runs: the worst and the mean over all sets of these columns.
"""

from __future__ import annotations

import contextlib
import json
import time
from bisect import bisect_right
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.partition_plan import computed_measure
from ..io.documents import parse_json
from ..io.file_errors import disk_errors
from ..io.ipc_batches import read_batch, write_batch
from ..measures import POPULATION_SIZE, find_measure
from ..results.backing import ScoreQuery
from ..results.cell_explanations import ExplainedCells
from ..results.query_search import QuerySearch, with_scores
from ..results.riskiest import RiskyCell, cell_records, riskiest
from ..results.score_distribution import ColumnQuery, ScoreAnswers, ScoreQuestions, answer_column
from ..results.score_outputs import MEAN, CellScore, ScoredAttacker
from ..results.summary import TOP_CELLS, Summary, unknown_places
from ..results.summary_figures import OF_COLUMNS, OF_ROWS, SUMMARISED, ColumnFacts, Figures, summary_columns
from ..rows.threads import Workers
from ..utils.percentiles import ONCE, NumberChunks, percentiles
from ..utils.private_folder import private_folder, write_private
from .one_partition_scoring import OnePartitionScoring
from .table_chunks import TableChunks
from .table_scoring import StoredScores, TableScoring, score_name


class ChunkFacts(NamedTuple):
    """Facts of a chunk for the summary: its figures, and the candidates for the riskiest cells."""

    figures: Figures
    top: list[RiskyCell]

    @classmethod
    def read(cls, file: Path) -> ChunkFacts:
        """Return the facts that `write` wrote."""
        facts = parse_json(file.read_text())
        return cls(Figures.from_stored(facts["figures"]), [RiskyCell(*cell) for cell in facts["top"]])

    def write(self, file: Path) -> None:
        """Write the facts to a file, which appears whole or not at all."""
        with disk_errors(file):
            write_private(file, json.dumps({"figures": self.figures.to_stored(), "top": self.top}).encode())


@dataclass(eq=False)
class AttackerRun:
    """The run against one attacker, or for the worst or the mean over an attacker's sets of known columns.

    scoring: TableScoring. The scoring of the table with the attacker's job.
    aggregate: str. "", or the name of the worst or the mean.
    """

    scoring: TableScoring
    aggregate: str

    def __post_init__(self) -> None:
        self.job = self.scoring.aggregate_job(self.aggregate)
        self._search = QuerySearch(self._summary_query())

    def score(self) -> None:
        """Score the table, unless that is done."""
        self.weights = self.scoring.weights[self.aggregate]

    @cached_property
    def folder(self) -> Path:
        """The folder for facts and row information gains of chunks."""
        return self.scoring.file(f"facts-{self.aggregate}" if self.aggregate else "facts")

    @cached_property
    def types(self) -> dict[str, str]:
        """The type of each measure's scores. Sizes of cohorts in a population are last."""
        types = {measure.name: measure.type_in(self.job.dtype) for measure in self.job.measures}
        size_type = self.scoring.size_type(self.aggregate)
        return types if size_type is None else {**types, POPULATION_SIZE.name: size_type}

    @property
    def measures(self) -> list[str]:
        """The names of the measures, in order."""
        return list(self.types)

    @property
    def by(self) -> str:
        """The name of the measure that ranks cells by risk."""
        return "cig" if "cig" in self.types else self.measures[0]

    def gains(self, number: int) -> Path:
        """Return the file with the row information gains of a chunk."""
        return self.folder / f"rig-{number:06}.arrow"

    def chunk_scores(self, first: int, last: int, row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Yield the scores of the chunks `first` to `last` - 1: arrays by measure (scored columns, rows).

        row: int. Facts for the summary are kept of chunks that begin at this row or later.
        """
        with Workers() as workers, StoredScores(self.scoring) as scores:
            sizes = self.scoring.table.sizes
            start = sum(sizes[:first])
            for number in range(first, last):
                arrays = self._chunk(number, sizes[number], scores, workers)
                if start >= row:
                    self._keep_facts(number, start, arrays, workers)
                start += sizes[number]
                self.scoring.context.budget.give_back_unused()
                yield arrays

    def multiple(self, measure: str) -> tuple[str, Sequence[float]] | None:
        """Return the measure that this measure is a multiple of, with the factors of the scored columns; else None."""
        asked = next((one for one in self.job.measures if one.name == measure), None)
        # Scores of 32 bits are multiplied before they are rounded, so the product of rounded scores would differ.
        if asked is None or not asked.weighted or self.types[measure] != "float64":
            return None
        of = computed_measure(asked)
        return (of, self.weights) if of in self.types else None

    def facts(self, number: int) -> Path:
        """Return the file with the facts of a chunk."""
        return self.folder / f"facts-{number:06}.json"

    def figures_and_top(self) -> tuple[Figures, list[RiskyCell]]:
        """Return the figures of all rows, and the riskiest cells, from the facts of all chunks."""
        facts = [ChunkFacts.read(self.facts(number)) for number in range(len(self.scoring.table.sizes))]
        figures = Figures.together(*(chunk.figures for chunk in facts))
        return figures, riskiest((cell for chunk in facts for cell in chunk.top), TOP_CELLS)

    def _chunk(self, number: int, size: int, scores: StoredScores, workers: Workers) -> dict[str, npt.NDArray[Any]]:
        job, aggregate = self.job, self.aggregate
        arrays = {name: np.empty((len(job.scored_columns), size), kind) for name, kind in self.types.items()}
        outs: dict[str, list[tuple[Any, npt.NDArray[Any]]]] = {}
        for slot, scored_column in enumerate(job.scored_columns):
            for measure in job.measures:
                # Multiply in the type that engines use, so that the product is the same to the last bit.
                factor: Any = self.weights[slot] if measure.weighted else 1 if measure.dtype == "int64" else 1.0
                name = score_name(scored_column, aggregate, computed_measure(measure))
                outs.setdefault(name, []).append((factor, arrays[measure.name][slot]))
            if POPULATION_SIZE.name in arrays:
                name = score_name(scored_column, aggregate, POPULATION_SIZE.name)
                outs.setdefault(name, []).append((1, arrays[POPULATION_SIZE.name][slot]))
        scores.fill(number, outs, workers)
        return arrays

    def _keep_facts(self, number: int, row: int, arrays: dict[str, npt.NDArray[Any]], workers: Workers) -> None:
        """Write the facts for the summary of a chunk that begins at `row`."""
        codes = self.scoring.table.some_codes(number, self.job.scored_columns)
        facts = self._search.look_at_chunk(arrays, row, workers, codes.__getitem__)
        if facts.sums is not None:
            write_batch(self.gains(number), {"rig": facts.sums})
        figures, top = self._search.combine([facts])

        def scores_of(rows: Sequence[int]) -> dict[str, npt.NDArray[Any]]:
            places = np.array(rows) - row
            return {name: array[:, places] for name, array in arrays.items()}

        ChunkFacts(figures, with_scores(top, self._search.query.shown, scores_of)).write(self.facts(number))

    def _summary_query(self) -> ScoreQuery:
        """Return the query for the summary, whose percentiles are found later. Outputs are called by measures."""
        scores = {name: CellScore(find_measure(name), (name,)) for name in self.measures}
        return ScoreQuery(
            figures={name: scores[name] for name in SUMMARISED if name in scores},
            gains=scores.get("cig"),
            top=TOP_CELLS,
            by=scores[self.by],
            shown=list(scores.values()),
            each_value=True,
            of_places=unknown_places(self.job.scored_columns, self.job.known),
        )

    @property
    def column_facts(self) -> list[ColumnFacts]:
        """The facts of the scored columns."""
        return [ColumnFacts.from_prior(self.scoring.plan.prior_of[name]) for name in self._names]

    @cached_property
    def summary(self) -> Summary:
        """The summary without times, to be asked for when all scores are made."""
        started = time.perf_counter()
        scoring, context = self.scoring, self.scoring.context
        context.report.stage("summarise", None, "")
        chunks = self.scoring.table
        figures, cells = self.figures_and_top()
        asked = {} if "cig" not in self.types else {"cig": ColumnQuery(percentiles=OF_COLUMNS)}
        answers = self._answer(ScoreQuestions(asked, OF_ROWS))
        distributions = answers.of_columns.get("cig", ())
        summary = Summary(
            rows=chunks.rows,
            distinct_rows=scoring.distinct_rows(),
            device=context.engine.device,
            measures=tuple(self.measures),
            seconds={},
            columns=summary_columns(self._names, self.column_facts, chunks.rows, figures, distributions, self.weights),
            pif={int(percent): bits for percent, bits in answers.of_rows.items()},
            top=cell_records(cells, self._names, self.measures, self._explain(cells)),
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

    def _scores(self, name: str, place: int) -> NumberChunks:
        """Return a function that yields the scores of a measure in a scored column, and how often each occurs."""
        scoring = self.scoring
        if name == POPULATION_SIZE.name:
            return partial(self._population_sizes, place)
        (measure,) = (one for one in self.job.measures if one.name == name)
        files = scoring.values(self.aggregate, self.job.scored_columns[place], computed_measure(measure))
        weight = self.weights[place] if measure.weighted else None
        return partial(_occurring_scores, files, weight, self.types[name])

    def _population_sizes(self, place: int) -> Iterator[tuple[Any, Any]]:
        """Yield the sizes of cohorts in the population, chunk by chunk."""
        kind = self.types[POPULATION_SIZE.name]
        name = score_name(self.job.scored_columns[place], self.aggregate, POPULATION_SIZE.name)
        with StoredScores(self.scoring) as stored, Workers() as workers:
            for number, size in enumerate(self.scoring.table.sizes):
                sizes = np.empty(size, kind)
                stored.fill(number, {name: [(1, sizes)]}, workers)
                yield sizes, ONCE

    def _row_gain_percentiles(self, wanted: Sequence[float]) -> dict[float, float]:
        """Return PIF by percentile; nothing if CIG was not scored."""
        if "cig" not in self.types or not wanted:
            return {}

        def numbers() -> Iterator[tuple[Any, Any]]:
            for number in range(len(self.scoring.table.sizes)):
                yield read_batch(self.gains(number))[0], ONCE

        return dict(zip(wanted, percentiles(numbers, wanted), strict=True))

    @property
    def _names(self) -> list[Hashable]:
        return [self.scoring.table.columns[scored_column].name for scored_column in self.job.scored_columns]

    def _explain(self, cells: Sequence[RiskyCell]) -> list[dict[str, Any]]:
        """Return the cohorts of the riskiest cells; see `Explainer`."""
        scoring, chunks = self.scoring, self.scoring.table
        asked = ExplainedCells(self.job, chunks.columns, cells, [_codes_of_row(chunks, cell.row) for cell in cells])
        if self.scoring.subsets is not None:
            if self.aggregate == MEAN:
                return asked.values()
            assert isinstance(scoring, OnePartitionScoring)
            by, weights_of = find_measure(self.by), scoring.weights_of
            return asked.explain_worst(
                scoring.distinct_job(), self.scoring.subsets, lambda _, position: weights_of(position), by
            )
        numbers = (chunks.codes(number) for number in range(len(chunks.sizes)))
        units = None if scoring.plan.weights is None else scoring.plan.weights.units
        counts = (asked.count(codes, None if units is None else units.multiplicities(codes[-1])) for codes in numbers)
        return asked.explain(asked.total(*counts))


class AttackerRuns(NamedTuple):
    """The runs against one attacker.

    attacker: ScoredAttacker. The attacker.
    scoring: TableScoring. The scoring of the table.
    by_aggregate: dict of AttackerRun. The run by aggregate.
    """

    attacker: ScoredAttacker
    scoring: TableScoring
    by_aggregate: dict[str, AttackerRun]

    @property
    def first(self) -> AttackerRun:
        """The run of the first aggregate."""
        return next(iter(self.by_aggregate.values()))


class JointScores:
    """The scores against all attackers, in order, chunk by chunk."""

    def __init__(self, attackers: Sequence[AttackerRuns]) -> None:
        self._runs = {
            (runs.attacker.name, aggregate): run for runs in attackers for aggregate, run in runs.by_aggregate.items()
        }
        # The attacker, aggregate and measure of each output, in the order of the score columns.
        self._order = {
            runs.attacker.output(measure, aggregate): (runs.attacker.name, aggregate, measure)
            for runs in attackers
            for measure in runs.first.measures
            for aggregate in runs.by_aggregate
        }

    def multiples(self) -> dict[str, tuple[str, Sequence[float]]]:
        """Return, by output, the output and the factors that give it; see `AttackerRun.multiple`."""
        outputs = {place: output for output, place in self._order.items()}
        multiples: dict[str, tuple[str, Sequence[float]]] = {}
        for output, (name, aggregate, measure) in self._order.items():
            multiple = self._runs[name, aggregate].multiple(measure)
            if multiple is not None:
                multiples[output] = outputs[name, aggregate, multiple[0]], multiple[1]
        return multiples

    def make_folders(self) -> None:
        """Make the folders for facts."""
        for run in self._runs.values():
            with disk_errors(run.folder):
                private_folder(run.folder)

    def nothing(self) -> list[npt.NDArray[Any]]:
        """Return the score columns, without rows."""
        return [
            np.empty(0, self._runs[name, aggregate].types[measure])
            for name, aggregate, measure in self._order.values()
            for _ in self._runs[name, aggregate].job.scored_columns
        ]

    def chunks(self, first: int, last: int, row: int) -> Generator[dict[str, npt.NDArray[Any]]]:
        """Yield the scores of chunks by output, in the order of the score columns; see `AttackerRun.chunk_scores`."""
        with contextlib.ExitStack() as closing:
            made = [
                closing.enter_context(contextlib.closing(run.chunk_scores(first, last, row)))
                for run in self._runs.values()
            ]
            for scores in zip(*made, strict=True):
                by_run = dict(zip(self._runs, scores, strict=True))
                yield {
                    output: by_run[name, aggregate][measure]
                    for output, (name, aggregate, measure) in self._order.items()
                }


def _occurring_scores(files: Sequence[Path], weight: float | None, dtype: str) -> Iterator[tuple[Any, Any]]:
    """Yield the distinct scores of a scored column and how often each occurs, one file for each partition.

    weight: float. The factor of the scores; None for none.
    dtype: str. The type of the written scores.
    """
    for file in files:
        values, multiplicities = read_batch(file)
        scores = values if weight is None else weight * values
        yield scores.astype(dtype, copy=False).astype(np.float64), multiplicities


def _codes_of_row(chunks: TableChunks, row: int) -> list[int]:
    """Return the codes of one row."""
    ends = list(accumulate(chunks.sizes))
    number = bisect_right(ends, row)
    place = row - (ends[number] - chunks.sizes[number])
    return [int(codes[place]) for codes in chunks.codes(number)]
