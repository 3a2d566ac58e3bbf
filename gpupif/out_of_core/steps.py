"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..attack.priors import Prior
from ..attack.request import Question
from ..attack.worst_mean import folded_name
from ..engines.base import Engine
from ..errors import InputError, Teller
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
from .options import OfPopulation, Wish
from .passes import Means, Scored
from .population import People
from .several import FoldGatherers, Gatherers
from .worst_mean import any_attacks
from .write import ScoreWriter


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
            summaries: dict[str | None, Summary] = {}
            if finished is None:
                summaries = self._take(attacks, chunks.sizes, outputs)
                finished = {
                    "options": self.store.done(BEGUN),
                    "summaries": [[name, summary.to_dict()] for name, summary in summaries.items()],
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
        priors = {name: attack.prior_of for name, attack in attacks.items()}
        return stored_scores(self.wish.output, self.question, finished, summaries, priors, self.spilled)

    def _take(
        self, attacks: Mapping[str | None, Attack], sizes: Sequence[int], outputs: list[Piece]
    ) -> dict[str | None, Summary]:
        """The steps from codes to written scores; a summary for each attacker."""
        side_by_side = Gatherers if self.question.any_known is None else FoldGatherers
        gatherers = side_by_side({name: attack.score() for name, attack in attacks.items()})
        started = time.perf_counter()
        self.writer.write(gatherers, sizes, outputs)
        for source in (self.source, None if self.population is None else self.population.source):
            if source is not None:
                source.check_unchanged(source.found.files)
        self._timed("write", started)
        return {name: attack.summary(self.seconds) for name, attack in attacks.items()}

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

    def _attacks(self, chunks: EncodedChunks, people: People | None) -> dict[str | None, Attack]:
        """What is to be done for each attacker; for one without a name, None; for any who know few, see `FOLDS`."""
        question, weighted, units = self.question, None, None
        if question.any_known is not None:
            mine = SomeColumns(chunks, range(len(question.used)))
            job, prior_of = question.job(mine.columns, chunks.rows)
            subsets = question.subsets(chunks.rows)
            assert subsets is not None
            return any_attacks(self.means, job, mine, prior_of, subsets)
        if question.weights is not None:
            units, weighted = weigh_chunks(chunks, question.read.index(question.weights), len(question.used))
        names: list[str | None] = [None] if question.attackers is None else list(question.attackers)
        attacks: dict[str | None, Attack] = {}
        tell = Teller()
        for number, name in enumerate(names):
            one = question if name is None else question.of(name)
            places = [question.read.index(column) for column in one.used]
            columns = [chunks.columns[place] for place in places]
            priors = None if people is None else people.priors(columns)
            job, prior_of = one.job(columns, chunks.rows, "host", tell, weighted, priors)
            if question.weights is not None:
                places.append(question.read.index(question.weights))
            prefix = "" if name is None else f"attacker-{number}-"
            mine = SomeColumns(chunks, places)
            scored = Scored(self.means, prefix, job, mine, units)
            attacks[name] = Attack(scored, mine, prior_of, None if people is None else people.sizes(one, prefix))
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
    summaries: Mapping[str | None, Summary] | None = None,
    priors: Mapping[str | None, Mapping[Hashable, Prior]] | None = None,
    spilled: int = 0,
) -> StoredScores | StoredAttackerScores:
    """What a run gives back, with as much as its last mark says where there is no more."""
    files = [output if is_file(output) else output / file for file in finished["files"]]

    scores = {}
    for name, document in finished["summaries"]:
        summary = (summaries or {}).get(name) or Summary.from_dict(document)
        begins, gain = ("" if name is None else f"{name}_"), "cig"
        if question.any_known is not None:
            begins, gain = "", folded_name(gain, name)
        prior_of = (priors or {}).get(name, {})
        scores[name] = StoredScores(output, files, question.targets, summary, prior_of, spilled, begins + gain)
    if question.any_known is not None:
        subsets = question.subsets(scores["mean"].rows)
        assert subsets is not None
        return StoredAnyKnownScores(scores["worst"], scores["mean"], subsets)
    if question.attackers is None:
        return scores[None]
    return StoredAttackerScores(scores, {name: one.known for name, one in question.attackers.items()})
