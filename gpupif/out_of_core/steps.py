"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..attack.priors import Prior
from ..attack.request import Question
from ..attack.worst_mean import folded_name
from ..engines.base import Engine
from ..errors import InputError, WarnOnce
from ..io.base import Source
from ..io.checkpoints import BEGUN, FINISHED, Store, identity
from ..io.score_files import Piece, is_file, plan_outputs
from ..results.stored import StoredAnyKnownScores, StoredAttackerScores, StoredScores
from ..results.summary import Summary
from ..utils.progress import Reporter
from .attack import Attack
from .budget import Budget
from .chunks import EncodedChunks, SomeColumns
from .encode import JOINED, encode, open_encoded, rows_read, weigh_chunks
from .one_place import scored_by_fold
from .options import OfPopulation, Wish
from .passes import Means, Scored
from .population import People
from .several import Gatherers
from .write import ScoreWriter

# By attacker, one without a name under None, and fold: "", or those over subsets of columns.
Attacks = dict[str | None, dict[str, Attack]]


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

    def scores(self, about_to_publish: Callable[[], None]) -> StoredScores | StoredAttackerScores:
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
            summaries: dict[tuple[str | None, str], Summary] = {}
            if finished is None:
                summaries = self._take(attacks, chunks.sizes, outputs)
                finished = {
                    "options": self.store.done(BEGUN),
                    "summaries": [[*which, summary.to_dict()] for which, summary in summaries.items()],
                    "identity": identity(self.writer.staged(outputs)),
                    "files": [piece.path for piece in outputs],
                }
                self.store.mark(FINISHED, finished)
        finally:
            chunks.close()
            if people is not None:
                people.close()
        about_to_publish()
        self.writer.publish(outputs, finished["identity"])
        priors = {name: next(iter(folds.values())).prior_of for name, folds in attacks.items()}
        return stored_scores(self.wish.output, self.question, finished, summaries, priors, self.spilled)

    def _take(
        self, attacks: Attacks, sizes: Sequence[int], outputs: list[Piece]
    ) -> dict[tuple[str | None, str], Summary]:
        """The steps from codes to written scores; a summary for each attacker and fold."""
        gatherers = Gatherers(
            {name: {fold: attack.score() for fold, attack in folds.items()} for name, folds in attacks.items()}
        )
        started = time.perf_counter()
        self.writer.write(gatherers, sizes, outputs)
        for source in (self.source, None if self.population is None else self.population.source):
            if source is not None:
                source.check_unchanged(source.found.files)
        self._timed("write", started)
        return {
            (name, fold): attack.summary(self.seconds)
            for name, folds in attacks.items()
            for fold, attack in folds.items()
        }

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


def stored_scores(
    output: Path,
    question: Question,
    finished: dict[str, Any],
    summaries: Mapping[tuple[str | None, str], Summary] | None = None,
    priors: Mapping[str | None, Mapping[Hashable, Prior]] | None = None,
    spilled: int = 0,
) -> StoredScores | StoredAttackerScores:
    """What a run gives back, with as much as its last mark says where there is no more."""
    files = [output if is_file(output) else output / file for file in finished["files"]]

    scores: dict[str | None, dict[str, StoredScores]] = {}
    for name, fold, document in finished["summaries"]:
        summary = (summaries or {}).get((name, fold)) or Summary.from_dict(document)
        begins, gain = ("" if name is None else f"{name}_"), folded_name("cig", fold) if fold else "cig"
        prior_of = (priors or {}).get(name, {})
        one = StoredScores(output, files, question.targets, summary, prior_of, spilled, begins + gain)
        scores.setdefault(name, {})[fold] = one
    found: dict[str | None, Any] = {}
    for name, asked in question.each().items():
        folds = scores[name]
        subsets = asked.subsets(next(iter(folds.values())).rows)
        found[name] = folds[""] if subsets is None else StoredAnyKnownScores(folds["worst"], folds["mean"], subsets)
    if question.attackers is None:
        return cast("StoredScores", found[None])
    by_name = {str(name): one for name, one in found.items()}
    return StoredAttackerScores(by_name, {name: one.known for name, one in question.attackers.items()})
