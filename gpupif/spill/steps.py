"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..engines.base import Engine
from ..errors import Teller
from ..job import Question
from ..priors import Prior
from ..progress import Reporter
from ..sources import Source
from ..stored import StoredAttackerScores, StoredScores
from ..summary import Summary
from .attack import Attack
from .budget import Budget
from .chunks import EncodedChunks, SomeColumns
from .encode import encode, open_encoded, rows_read, weigh_chunks
from .outputs import Piece, is_file, plan_outputs
from .several import Gatherers
from .store import BEGUN, FINISHED, Store, identity
from .wish import Wish
from .write import ScoreWriter


class Steps:
    """One run, all of whose steps are kept in `store`."""

    def __init__(
        self,
        source: Source,
        question: Question,
        engine: Engine,
        wish: Wish,
        store: Store,
        budget: Budget,
        report: Reporter,
    ) -> None:
        self.source = source
        self.question = question
        self.engine = engine
        self.wish = wish
        self.store = store
        self.report = report
        self.budget = budget
        self.writer = ScoreWriter(source, question, wish, store.folder, budget, report)
        self.seconds: dict[str, float] = {}
        self.spilled = 0

    def scores(self) -> StoredScores | StoredAttackerScores:
        """Take all steps that are not done."""
        started = time.perf_counter()
        encoded = self.store.once("encoded", self._encode)
        chunks = open_encoded(self.store.part("encoded"), self.question.read, encoded, self.source)
        try:
            self.seconds["read and encode"] = time.perf_counter() - started
            outputs = plan_outputs(self.wish.output, self.source.found, encoded["file_rows"], self.wish.rows_per_file)
            attacks = self._attacks(chunks)
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
        self.writer.publish(outputs, finished["identity"])
        priors = {name: attack.prior_of for name, attack in attacks.items()}
        return stored_scores(self.wish.output, self.question, finished, summaries, priors, self.spilled)

    def _take(
        self, attacks: Mapping[str | None, Attack], sizes: Sequence[int], outputs: list[Piece]
    ) -> dict[str | None, Summary]:
        """The steps from codes to written scores; a summary for each attacker."""
        gatherers = Gatherers({name: attack.score() for name, attack in attacks.items()})
        started = time.perf_counter()
        self.writer.write(gatherers, sizes, outputs)
        self.source.check_unchanged(self.source.found.files)
        self._timed("write", started)
        return {name: attack.summary(self.seconds) for name, attack in attacks.items()}

    def _attacks(self, chunks: EncodedChunks) -> dict[str | None, Attack]:
        """What is to be done for each attacker; for one without a name, None."""
        question, weighted, units = self.question, None, None
        if question.weights is not None:
            units, weighted = weigh_chunks(chunks, question.read.index(question.weights), len(question.used))
        names: list[str | None] = [None] if question.attackers is None else list(question.attackers)
        attacks: dict[str | None, Attack] = {}
        tell = Teller()
        for number, name in enumerate(names):
            one = question if name is None else question.of(name)
            places = [question.read.index(column) for column in one.used]
            job, prior_of = one.job([chunks.columns[place] for place in places], chunks.rows, "host", tell, weighted)
            if question.weights is not None:
                places.append(question.read.index(question.weights))
            prefix = "" if name is None else f"attacker-{number}-"
            mine = SomeColumns(chunks, places)
            given = (self.engine, self.store, self.budget, self.report, self._timed)
            attacks[name] = Attack(prefix, job, prior_of, mine, units, *given)
        return attacks

    def _timed(self, stage: str, started: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.spilled = max(self.spilled, self.store.size())

    def _encode(self) -> dict[str, Any]:
        folder = self.store.fresh("encoded")
        memory = self.budget.values_bytes()
        used, missing = self.question.read, self.question.missing
        done = rows_read(self.source, self.report)
        return encode(self.source, used, missing, self.budget.chunk_rows, folder, memory, done)


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
        prefix = "" if name is None else f"{name}_"
        prior_of = (priors or {}).get(name, {})
        scores[name] = StoredScores(output, files, question.targets, summary, prior_of, spilled, prefix)
    return scores[None] if question.attackers is None else StoredAttackerScores(scores, question.attackers)
