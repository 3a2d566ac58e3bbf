"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from ..attack.priors import Prior
from ..attack.request import Question
from ..engines.base import Engine
from ..errors import InputError, WarnOnce
from ..io.base import Source
from ..io.checkpoints import BEGUN, FINISHED, Store, identity
from ..io.score_files import Piece, is_file, plan_outputs
from ..measures import POPULATION_SIZE
from ..results.base import About, Description, Outcome, ScoredAttacker, of_each_fold
from ..results.figures import ColumnFacts
from ..results.packed_priors import pack_priors
from ..results.provenance import describe_files, describe_request
from ..results.scores import Scores
from ..results.stored import InFiles
from ..results.summary import Summary
from ..utils.progress import Reporter
from .attacker_run import Attack
from .budget import Budget
from .chunks import EncodedChunks, SomeColumns
from .encode import JOINED, encode, open_encoded, rows_read, weigh_chunks
from .explain import FilesExplainer
from .gather_attackers import Gatherers
from .one_part import scored_by_fold
from .options import OfPopulation, Wish
from .passes import Means, Scored
from .population import People
from .write import ScoreWriter

# By attacker, one without a name under None, and fold: "", or those over subsets of columns.
Attacks = dict[str | None, dict[str, Attack]]


class AtHand(NamedTuple):
    """What a run knows of an attacker beside its last mark: priors of all columns, and summaries by fold as far as they
    were made in this process.
    """

    prior_of: Mapping[Hashable, Prior]
    explainer: FilesExplainer | None
    summaries: Mapping[str, Summary | None]


class Steps:
    """One run, all of whose steps are kept in `store`.

    population: the files of the table's population, None where it has none.
    """

    def __init__(
        self,
        source: Source,
        question: Question,
        engine: Engine,
        wish: Wish,
        store: Store,
        budget: Budget,
        report: Reporter,
        population: OfPopulation | None = None,
    ) -> None:
        self.source = source
        self.question = question
        self.wish = wish
        self.store = store
        self.report = report
        self.budget = budget
        self.population = population
        self.means = Means(engine, store, budget, report, self._timed)
        self.writer = ScoreWriter(source, question, wish, store.folder, budget, report)
        self.seconds: dict[str, float] = {}
        self.spilled = 0
        self._summaries: dict[tuple[str | None, str], Summary] = {}

    def scores(self, about_to_publish: Callable[[], None]) -> Scores:
        """Take all steps that are not done; about_to_publish: called when the scores are complete, but not in place."""
        started = time.perf_counter()
        encoded, chunks = self._encoded(self.source, "encoded", self.question.read, self.question.missing)
        people = None
        try:
            people = self._people(chunks)
            self.seconds["read and encode"] = time.perf_counter() - started - self.seconds.get("compare", 0.0)
            outputs = plan_outputs(self.wish.output, self.source.found, encoded["file_rows"], self.wish.rows_per_file)
            attacks = self._attacks(chunks, people)
            finished = self.store.done(FINISHED)
            if finished is None:
                finished = self._take(attacks, chunks, outputs)
                self.store.mark(FINISHED, finished)
        finally:
            chunks.close()
            if people is not None:
                people.close()
        about_to_publish()
        self.writer.publish(outputs, finished["identity"])
        at_hand = {name: self._at_hand(name, folds) for name, folds in attacks.items()}
        return stored_scores(self.wish.output, self.question, self.about, finished, at_hand, self.spilled)

    def _at_hand(self, name: str | None, folds: Mapping[str, Attack]) -> AtHand:
        """What is known of an attacker beside what is kept of the run."""
        attack = next(iter(folds.values()))
        scored, subsets = attack.scored, self.question.each()[name].subsets(attack.chunks.rows)
        rest = (scored.job, scored.units, subsets, self.means.engine)
        explainer = FilesExplainer(self.source, attack.chunks.columns, *rest)
        return AtHand(attack.prior_of, explainer, {fold: self._summaries.get((name, fold)) for fold in folds})

    @cached_property
    def about(self) -> About:
        """What all attackers have in common."""
        population = None if self.population is None else self.population.source
        return about_run(self.source, self.question, self.means.engine, population, self.seconds)

    def _take(self, attacks: Attacks, chunks: EncodedChunks, outputs: list[Piece]) -> dict[str, Any]:
        """The steps from codes to written scores; what is kept of them."""
        gatherers = Gatherers(
            {name: {fold: attack.score() for fold, attack in folds.items()} for name, folds in attacks.items()}
        )
        started = time.perf_counter()
        self.writer.write(gatherers, chunks.sizes, outputs, partial(self._describe, attacks, chunks.rows, outputs))
        for source in (self.source, None if self.population is None else self.population.source):
            if source is not None:
                source.check_unchanged(source.found.files)
        # The files say what the scores come to.
        self._timed("write", started + self.seconds.get("summarise", 0.0))
        self._summaries = {
            (name, fold): attack.summary for name, folds in attacks.items() for fold, attack in folds.items()
        }
        return {
            "options": self.store.done(BEGUN),
            "summaries": [
                [name, fold, replace(summary, seconds=self.seconds).to_stored()]
                for (name, fold), summary in self._summaries.items()
            ],
            "identity": identity(self.writer.staged(outputs)),
            "files": [piece.path for piece in outputs],
        }

    def _describe(self, attacks: Attacks, rows: int, outputs: Sequence[Piece], with_summaries: bool) -> Description:
        """What score files say of themselves."""
        outcomes = [
            Outcome(
                ScoredAttacker(name, tuple(one.known), one.subsets(rows)),
                of_each_fold({fold: attack.weights for fold, attack in attacks[name].items()}),
                next(iter(attacks[name].values())).scored.distinct_rows(),
                summaries={fold: attack.summary for fold, attack in attacks[name].items()} if with_summaries else {},
            )
            for name, one in self.question.each().items()
        ]
        attack = next(iter(next(iter(attacks.values())).values()))
        facts = attack.column_facts
        values = {name: fact.distinct_values for name, fact in zip(self.question.targets, facts, strict=True)}
        priors = pack_priors({name: attack.prior_of[name] for name in values}, values)
        files = [] if is_file(self.wish.output) else [piece.path for piece in outputs]
        return Description(self.about, outcomes, facts, priors, rows, files)

    def _people(self, chunks: EncodedChunks) -> People | None:
        """The population, if any, beside the table with these rows."""
        if self.population is None:
            return None
        try:
            given = (self.population.source, "population", self.question.used, self.question.missing)
            _, others = self._encoded(*given)
        except InputError as error:
            raise error.about("population") from None
        try:
            return People(self.means, self.question, chunks, others, self.population.lacks)
        except BaseException:
            others.close()
            raise

    def _attacks(self, chunks: EncodedChunks, people: People | None) -> Attacks:
        """What is to be done for each attacker."""
        question, weighted, units = self.question, None, None
        if question.weights is not None:
            units, weighted = weigh_chunks(chunks, question.read.index(question.weights), len(question.used))
        attacks: Attacks = {}
        on_warning = WarnOnce()
        for number, (name, one) in enumerate(question.each().items()):
            places = [question.read.index(column) for column in one.used]
            columns = [chunks.columns[place] for place in places]
            priors = None if people is None else people.priors(columns)
            job, prior_of = one.job(columns, chunks.rows, "host", on_warning, weighted, priors)
            subsets = one.subsets(chunks.rows)
            if question.weights is not None:
                places.append(question.read.index(question.weights))
            prefix = "" if name is None else f"attacker-{number}-"
            mine = SomeColumns(chunks, places)
            folds = scored_by_fold(self.means, prefix, job, mine, units, subsets)
            sizes: Mapping[str, Scored] = {} if people is None else people.sizes(one, prefix, subsets)
            attacks[name] = {fold: Attack(scored, mine, prior_of, sizes.get(fold)) for fold, scored in folds.items()}
        return attacks

    def _timed(self, stage: str, started: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.spilled = max(self.spilled, self.store.size())

    def _encoded(
        self, source: Source, step: str, names: Sequence[Hashable], missing: str
    ) -> tuple[dict[str, Any], EncodedChunks]:
        """Some columns of files encoded, in a step of their own, and what `encode` says of them."""
        facts = self.store.once(step, lambda: self._encode(source, step, names, missing))
        return facts, open_encoded(self.store.part(step), names, facts, source)

    def _encode(self, source: Source, step: str, names: Sequence[Hashable], missing: str) -> dict[str, Any]:
        done = rows_read(source, self.report, "" if source is self.source else " the population")
        folder = self.store.fresh(step)
        memory = self.budget.values_bytes() // (1 if self.population is None else JOINED)
        return encode(source, names, missing, self.budget.chunk_rows, folder, memory, done)


def about_run(
    source: Source, question: Question, engine: Engine, population: Source | None, seconds: dict[str, float]
) -> About:
    """What all attackers of a run have in common."""
    people = None if population is None else describe_files(population.found.path, population.stamps)
    return About(
        columns=question.targets,
        measures=[*question.measures, *([] if population is None else [POPULATION_SIZE])],
        dtype=question.dtype,
        device=engine.device,
        seconds=seconds,
        request=describe_request(question, describe_files(source.found.path, source.stamps), people),
    )


def stored_scores(
    output: Path,
    question: Question,
    about: About,
    finished: dict[str, Any],
    at_hand: Mapping[str | None, AtHand] | None = None,
    spilled: int = 0,
) -> Scores:
    """What a run gives back, from its last mark, and what is at hand beside it."""
    nothing = dict.fromkeys(question.each(), AtHand({}, None, {}))
    beside = nothing if at_hand is None else at_hand
    files = [output if is_file(output) else output / file for file in finished["files"]]
    summaries: dict[str | None, dict[str, Summary]] = {}
    for name, fold, document in finished["summaries"]:
        stored, made = Summary.from_dict(document), beside[name].summaries.get(fold)
        # One that is made still has its values as they are in the table, but no times.
        summaries.setdefault(name, {})[fold] = stored if made is None else replace(made, seconds=stored.seconds)
    first = next(iter(summaries[next(iter(summaries))].values()))
    outcomes = []
    for name, one in question.each().items():
        folds = of_each_fold(summaries[name])
        weights = {fold: summary.columns["weight"].tolist() for fold, summary in folds.items()}
        attacker = ScoredAttacker(name, tuple(one.known), one.subsets(first.rows))
        distinct = next(iter(folds.values())).distinct_rows
        outcomes.append(Outcome(attacker, weights, distinct, beside[name].explainer, folds))
    facts = [
        ColumnFacts(int(row["distinct_values"]), float(row["prior_entropy"])) for _, row in first.columns.iterrows()
    ]
    priors = next(iter(beside.values())).prior_of
    by_column = {name: priors[name] for name in question.targets if name in priors}
    description = Description(replace(about, seconds=dict(first.seconds)), outcomes, facts)
    return Scores(InFiles(output, files, description, first.rows, spilled, by_column))
