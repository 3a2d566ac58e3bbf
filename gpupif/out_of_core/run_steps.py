"""The steps of a run from files to files: each is done once, however often the run is killed and resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..attack.priors import Prior
from ..attack.request import ScoreRequest
from ..engines.base import Engine
from ..engines.choose import DeviceRequest
from ..errors import InputError, WarnOnce
from ..io.base import Source, stamps_of
from ..io.checkpoints import BEGUN, FINISHED, identity
from ..io.score_files import ScoreFile, is_file, plan_outputs
from ..pipeline.table_plan import Weights, make_plan
from ..results.backing import AttackerOutcome, RunDescription, ScoresDescription
from ..results.cell_file import CellFileBacking, SummaryBacking
from ..results.in_files import FileBacking
from ..results.packed_priors import pack_priors
from ..results.provenance import describe_files, describe_run
from ..results.score_distribution import ScoreAnswers
from ..results.score_outputs import ScoredAttacker, ScoreView, for_each_aggregate
from ..results.scores import Scores
from ..results.summary import Summary
from ..results.summary_figures import ColumnFacts
from .attacker_run import AttackerRun, AttackerRuns, JointScores
from .encoded_population import EncodedPopulation, encoded_totals
from .file_encoding import JOINED, encode_files, open_encoded, rows_read, weigh_chunks
from .files_explainer import FilesExplainer
from .one_partition_scoring import OnePartitionScoring
from .output_options import OutputOptions, PopulationFiles
from .run_context import RunContext
from .scores_writer import ScoreWriter, select_cells
from .table_chunks import SomeColumns, TableChunks
from .table_scoring import TableScoring


class RunFindings(NamedTuple):
    """Results of a run that its last checkpoint does not have.

    prior_of: by column name. The prior distributions of all columns.
    explainers: by name of attacker.
    summaries: by name of attacker and aggregate. The summaries that this process made.
    spilled: int. The bytes of spill files.
    """

    prior_of: Mapping[Hashable, Prior] = {}
    explainers: Mapping[str | None, FilesExplainer] = {}
    summaries: Mapping[tuple[str | None, str], Summary] = {}
    spilled: int = 0


@dataclass(eq=False)
class Steps:
    """The steps of one run; the checkpoint keeps each of them.

    source: Source. The table in files.
    request: ScoreRequest. The request.
    about: RunDescription. The description of the run.
    options: OutputOptions. The place and form of the scores.
    context: RunContext. The context of the run.
    population: PopulationFiles. The files of the population; None without population.
    """

    source: Source
    request: ScoreRequest
    about: RunDescription
    options: OutputOptions
    context: RunContext
    population: PopulationFiles | None = None

    def __post_init__(self) -> None:
        context = self.context
        self.store = context.store
        self.writer = ScoreWriter(
            self.source, self.request, self.options, self.store.folder, context.budget, context.report
        )
        # Resolve the path now: the output may be the working folder, which the scores replace.
        self._place = self.options.output.absolute()
        self._summaries: dict[tuple[str | None, str], Summary] = {}

    def scores(self, about_to_publish: Callable[[], None]) -> Scores:
        """Do all steps that are not done.

        about_to_publish: function called when the scores are complete and before they are moved to the output.
        """
        started = time.perf_counter()
        encoded, chunks = self._encoded(self.source, "encoded", self.request.read, self.request.missing)
        encoded_population = None
        try:
            encoded_population = self._encoded_population(chunks)
            seconds = self.context.seconds
            seconds["read and encode"] = time.perf_counter() - started - seconds.get("compare", 0.0)
            outputs = plan_outputs(
                self.options.output, self.source.input_files, encoded["file_rows"], self.options.rows_per_file
            )
            runs = self._attacker_runs(chunks, encoded_population)
            finished = self.store.done(FINISHED)
            if finished is None:
                finished = self._score_and_write(runs, chunks, outputs)
                self.store.mark(FINISHED, finished)
        finally:
            chunks.close()
            if encoded_population is not None:
                encoded_population.close()
        if not self.options.summary_only:
            about_to_publish()
            self.writer.publish(outputs, finished["identity"])
        explainers = {
            attacker.name: FilesExplainer(
                self.source,
                scoring.table.columns,
                scoring.plan.job,
                None if scoring.plan.weights is None else scoring.plan.weights.units,
                attacker.subsets,
                self.context.engine,
            )
            for attacker, scoring, _ in runs
        }
        findings = RunFindings(runs[0].scoring.plan.prior_of, explainers, self._summaries, self.context.spilled)
        return stored_scores(self.options, self._place, self.request, self.about, finished, findings)

    def _score_and_write(
        self, runs: Sequence[AttackerRuns], chunks: TableChunks, outputs: list[ScoreFile]
    ) -> dict[str, Any]:
        """Score the encoded table and write the scores; return the facts for the last checkpoint."""
        started = self._write_scores(runs, chunks, outputs)
        for source in (self.source, None if self.population is None else self.population.source):
            if source is not None:
                source.check_unchanged(source.input_files.files)
        # Summaries are part of writing, because files contain them; their time is counted apart.
        self.context.timed("write", started + self.context.seconds.get("summarise", 0.0))
        every = [
            (attacker.name, aggregate, run)
            for attacker, _, by_aggregate in runs
            for aggregate, run in by_aggregate.items()
        ]
        self._summaries = {(name, aggregate): run.summary for name, aggregate, run in every}
        return {
            "options": self.store.done(BEGUN),
            "summaries": [
                [name, aggregate, replace(run.summary, seconds=self.context.seconds).to_stored()]
                for name, aggregate, run in every
            ],
            "answers": [[name, aggregate, run.answers.to_stored()] for name, aggregate, run in every],
            "identity": [] if self.options.summary_only else identity(self.writer.staged(outputs)),
            "files": [] if self.options.summary_only else [output.path for output in outputs],
        }

    def _write_scores(self, runs: Sequence[AttackerRuns], chunks: TableChunks, outputs: list[ScoreFile]) -> float:
        """Score the table, and write the requested scores; return the time at which writing began."""
        selection, search = self.options.selection, None
        if selection is not None:
            # Raise errors of the selection before scoring.
            attackers = tuple(attacker for attacker, *_ in runs)
            query = selection.query(ScoreView(self.about.measures, attackers, self.about.dtype))
            places = [self.request.read.index(name) for name in self.request.scored_columns]
            search = partial(select_cells, query, chunks, places)
        for _, _, by_aggregate in runs:
            for run in by_aggregate.values():
                run.score()
        started = time.perf_counter()
        describe = partial(self._describe, runs, chunks.rows, outputs)
        self.writer.write(JointScores(runs), chunks.sizes, outputs, describe, search)
        return started

    def _describe(
        self, runs: Sequence[AttackerRuns], rows: int, outputs: Sequence[ScoreFile], with_summaries: bool
    ) -> ScoresDescription:
        """Return the description that score files hold."""
        outcomes = [
            AttackerOutcome(
                attacker,
                for_each_aggregate({aggregate: run.weights for aggregate, run in by_aggregate.items()}),
                scoring.distinct_rows(),
                summaries={aggregate: run.summary for aggregate, run in by_aggregate.items()} if with_summaries else {},
            )
            for attacker, scoring, by_aggregate in runs
        ]
        first = runs[0].first
        priors = pack_priors({name: first.scoring.plan.prior_of[name] for name in self.request.scored_columns})
        files = [] if is_file(self.options.output) else [output.path for output in outputs]
        selection = self.options.selection
        cells = None if selection is None else selection.to_dict()
        return ScoresDescription(self.about, outcomes, first.column_facts, priors, rows, files, cells)

    def _encoded_population(self, chunks: TableChunks) -> EncodedPopulation | None:
        """Return the encoded population; None without population.

        chunks: TableChunks. The encoded table.
        """
        if self.population is None:
            return None
        try:
            given = (self.population.source, "population", self.request.used, self.request.missing)
            _, others = self._encoded(*given)
        except InputError as error:
            raise error.about("population") from None
        try:
            return EncodedPopulation(self.context, self.request, chunks, others, self.population.lacks)
        except BaseException:
            others.close()
            raise

    def _attacker_runs(self, chunks: TableChunks, encoded_population: EncodedPopulation | None) -> list[AttackerRuns]:
        """Return the runs of each attacker."""
        request, units, weighted = self.request, None, None
        if request.weights is not None:
            units, weighted = weigh_chunks(chunks, request.read.index(request.weights), len(request.used))
        runs = []
        on_warning = WarnOnce()
        for number, (name, own) in enumerate(request.by_attacker().items()):
            mine = SomeColumns(chunks, [request.read.index(column) for column in own.read])
            totals = encoded_totals(mine, DeviceRequest(self.context.engine.device))
            weights = None if units is None else Weights(list(mine.columns), units)
            counts = None if weighted is None else dict(weighted.counts)
            population = None if encoded_population is None else encoded_population.plan
            plan = make_plan(own, [], totals, weights, counts, population, on_warning)
            prefix = "" if name is None else f"attacker-{number}-"
            attacker = ScoredAttacker.from_request(name, own, chunks.rows)
            scores = OnePartitionScoring if plan.in_one_partition else TableScoring
            scoring = scores(self.context, prefix, plan, mine, attacker.subsets, encoded_population)
            by_aggregate = {aggregate: AttackerRun(scoring, aggregate) for aggregate in scoring.aggregates}
            runs.append(AttackerRuns(attacker, scoring, by_aggregate))
        return runs

    def _encoded(
        self, source: Source, step: str, names: Sequence[Hashable], missing: str
    ) -> tuple[dict[str, Any], TableChunks]:
        """Encode some columns of files in a step of their own.

        Returns the facts of `encode_files`, and the encoded table.
        """
        facts = self.store.once(step, lambda: self._encode(source, step, names, missing))
        return facts, open_encoded(self.store.part(step), names, facts, source)

    def _encode(self, source: Source, step: str, names: Sequence[Hashable], missing: str) -> dict[str, Any]:
        done = rows_read(source, self.context.report, "" if source is self.source else " the population")
        folder, budget = self.store.fresh(step), self.context.budget
        memory = budget.values_bytes() // (1 if self.population is None else JOINED)
        return encode_files(source, names, missing, budget.chunk_rows, folder, memory, done)


def about_run(
    source: Source, request: ScoreRequest, engine: Engine, population: PopulationFiles | None
) -> RunDescription:
    """Return the description of a run that all attackers share, without times."""
    input_files = describe_files(source.input_files.path, source.stamps)
    if population is None:
        return describe_run(request, input_files, engine.device, {})
    files = describe_files(population.source.input_files.path, population.source.stamps)
    return describe_run(request, input_files, engine.device, {}, files, population.lacks)


def stored_scores(
    options: OutputOptions,
    output: Path,
    request: ScoreRequest,
    about: RunDescription,
    finished: dict[str, Any],
    findings: RunFindings,
) -> Scores:
    """Return the scores of a run from its last checkpoint.

    finished: dict. The last checkpoint.
    findings: RunFindings. Further results, if this process made them.
    """
    output = output.absolute()
    files = [output if is_file(output) else output / file for file in finished["files"]]
    summaries: dict[str | None, dict[str, Summary]] = {}
    for name, aggregate, document in finished["summaries"]:
        stored, made = Summary.from_dict(document), findings.summaries.get((name, aggregate))
        # A summary that this process made has the values of the table in their own types, but no times.
        summaries.setdefault(name, {})[aggregate] = stored if made is None else replace(made, seconds=stored.seconds)
    first = next(iter(summaries[next(iter(summaries))].values()))
    answers: dict[str | None, dict[str, ScoreAnswers]] = {}
    for name, aggregate, document in finished["answers"]:
        answers.setdefault(name, {})[aggregate] = ScoreAnswers.from_stored(document)
    outcomes = []
    for name, one in request.by_attacker().items():
        aggregates = for_each_aggregate(summaries[name])
        weights = {aggregate: summary.columns["weight"].tolist() for aggregate, summary in aggregates.items()}
        attacker = ScoredAttacker.from_request(name, one, first.rows)
        distinct = next(iter(aggregates.values())).distinct_rows
        found = for_each_aggregate(answers[name])
        outcomes.append(AttackerOutcome(attacker, weights, distinct, findings.explainers.get(name), aggregates, found))
    facts = [
        ColumnFacts(int(row["distinct_values"]), float(row["prior_entropy"])) for _, row in first.columns.iterrows()
    ]
    by_column = {name: findings.prior_of[name] for name in request.scored_columns if name in findings.prior_of}
    cells = None if options.selection is None else options.selection.to_dict()
    description = ScoresDescription(replace(about, seconds=dict(first.seconds)), outcomes, facts, cells=cells)
    kind = SummaryBacking if options.summary_only else FileBacking if options.selection is None else CellFileBacking
    return Scores(kind(output, stamps_of(files), description, first.rows, findings.spilled, by_column))
