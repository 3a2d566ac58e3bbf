"""The steps of a run from files to files: each is taken once, however often the run is killed and taken up again."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..engines.base import Engine, Job
from ..engines.passes import Pass, plan_shuffles, weight_of
from ..engines.workers import Workers
from ..job import Question
from ..priors import Prior
from ..progress import Reporter
from ..sources import Source
from ..stored import StoredScores
from ..summary import Summary
from .budget import Budget
from .chunks import EncodedChunks
from .cut import Cut, Span, cut
from .encode import encode, open_encoded
from .found import Found
from .gather import Facts, Gatherer, riskiest
from .outputs import Piece, is_file, plan_outputs
from .parts import PartScorer
from .store import BEGUN, FINISHED, Store, identity, write_batch
from .summarise import riskiest_cells, row_gain_percentiles, summary_columns
from .wish import Wish
from .write import ScoreWriter

if TYPE_CHECKING:
    import pandas as pd


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

    def scores(self) -> StoredScores:
        """Take all steps that are not done."""
        started = time.perf_counter()
        encoded = self.store.once("encoded", self._encode)
        chunks = open_encoded(self.store.part("encoded"), self.question.used, encoded, self.source)
        try:
            self.seconds["read and encode"] = time.perf_counter() - started
            outputs = plan_outputs(self.wish.output, self.source.found, encoded["file_rows"], self.wish.rows_per_file)
            job, prior_of = self.question.job(chunks.columns, chunks.rows)
            finished = self.store.done(FINISHED)
            if finished is None:
                summary = self._take(job, prior_of, chunks, outputs)
                finished = {
                    "options": self.store.done(BEGUN),
                    "summary": summary.to_dict(),
                    "identity": identity(self.writer.staged(outputs)),
                    "files": [piece.path for piece in outputs],
                }
                self.store.mark(FINISHED, finished)
            else:
                summary = Summary.from_dict(finished["summary"])
        finally:
            chunks.close()
        self.writer.publish(outputs, finished["identity"])
        return stored_scores(self.wish.output, self.question.targets, finished, summary, prior_of, self.spilled)

    def _take(
        self, job: Job, prior_of: Mapping[Hashable, Prior], chunks: EncodedChunks, outputs: list[Piece]
    ) -> Summary:
        """The steps from codes to written scores."""
        passes, cuts, found = self._score(job, chunks)
        weights = [
            weight_of(job, chunks.rows, target, [found.cohorts[target]], [found.distinct[target]])
            for target in job.targets
        ]
        gatherer = Gatherer(job, passes, cuts, weights, self.store.part("facts"))
        started = time.perf_counter()
        self.writer.write(gatherer, chunks.sizes, outputs)
        self.source.check_unchanged(self.source.found.files)
        self._timed("write", started)
        return self._summary(gatherer, chunks, prior_of, passes, cuts)

    def _timed(self, stage: str, started: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started
        self.spilled = max(self.spilled, self.store.size())

    def _encode(self) -> dict[str, Any]:
        self.report.stage("read and encode", self.source.rows, "rows")
        folder = self.store.fresh("encoded")
        memory = self.budget.values_bytes()
        used, missing = self.question.used, self.question.missing
        source, rows = self.source, 0

        def done(more: int) -> None:
            nonlocal rows
            rows += more
            self.report.advance(more)
            if source.rows is None and source.bytes_read:
                self.report.expect(rows * source.bytes // source.bytes_read)

        return encode(source, used, missing, self.budget.chunk_rows, folder, memory, done)

    def _score(self, job: Job, chunks: EncodedChunks) -> tuple[list[Pass], list[Cut], Found]:
        """Cut the table and score its parts, once for each pass; also what was found in all of them."""
        limit = self.budget.part_rows(job)
        planned = self.store.once("planned", lambda: self.budget.planned_rows(limit, chunks.rows, len(job.counts)))
        passes = plan_shuffles(job, chunks.rows, planned)
        cuts = []
        total = Found()
        for number, one in enumerate(passes):
            of = f" {number + 1} of {len(passes)}" if len(passes) > 1 else ""
            parts = 1 if len(passes) == 1 and not one.by else -(-chunks.rows // planned)
            started = time.perf_counter()
            sizes = self.store.once(f"cut-{number}", partial(self._cut, job, chunks, one, number, parts, of))
            pieces = Cut(self.store.part(f"pass-{number}"), sizes)
            self._timed("cut", started)
            started = time.perf_counter()
            self.report.stage(f"score{of}", chunks.rows * len(one.targets), "cells")
            scorer = PartScorer(self.engine, job, limit, self.report)
            for part in range(pieces.parts):
                step = f"scored-{number}-{part}"
                if self.store.done(step) is None:
                    self.store.mark(step, self._score_part(scorer, pieces, part, one, number))
                else:
                    self.report.advance(sum(sizes[part]) * len(one.targets))
                pieces.drop_part(part)
                total.add(Found.from_json(self.store.done(step)))
            self._timed("score", started)
            cuts.append(pieces)
        return passes, cuts, total

    def _cut(self, job: Job, chunks: EncodedChunks, one: Pass, number: int, parts: int, of: str) -> Any:
        self.report.stage(f"cut{of}", chunks.rows, "rows")
        cardinalities = [len(counts) for counts in job.counts]
        folder = self.store.fresh(f"pass-{number}")
        with Workers() as workers:
            return cut(chunks, cardinalities, one.by, parts, folder, workers, done=self.report.advance).sizes

    def _score_part(self, scorer: PartScorer, pieces: Cut, part: int, one: Pass, number: int) -> dict[str, Any]:
        chunks = pieces.part(part)
        inner = self.store.fresh(f"pass-{number}", "inner")
        span = Span(part, pieces.parts)
        found = scorer.score(chunks, one, pieces.scores(part), inner, span) if chunks.rows else Found(rows=0)
        if number == 0 and found.rows is None:
            found.rows = scorer.count_distinct(chunks, inner)
        for target, (gains, times) in found.gains.items():
            write_batch(self._gains(number, part, target), {"gain": gains, "times": times})
        chunks.close()
        self.store.drop(f"pass-{number}", "inner")
        pa.default_memory_pool().release_unused()
        self.spilled = max(self.spilled, self.store.size())
        return found.as_json()

    def _gains(self, number: int, part: int, target: int) -> Path:
        return self.store.part(f"pass-{number}", f"gains-{part:05}-{target}.arrow")

    def _summary(
        self,
        gatherer: Gatherer,
        chunks: EncodedChunks,
        prior_of: Mapping[Hashable, Prior],
        passes: list[Pass],
        cuts: list[Cut],
    ) -> Summary:
        started = time.perf_counter()
        self.report.stage("summarise", None, "")
        facts = [Facts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]

        def gains(target: int) -> list[Path]:
            number = next(number for number, one in enumerate(passes) if target in one.targets)
            files = [self._gains(number, part, target) for part in range(cuts[number].parts)]
            return [file for file in files if file.exists()]

        job = gatherer.job
        columns: pd.DataFrame = summary_columns(job, prior_of, chunks, facts, gatherer.weights, gains)
        pif = row_gain_percentiles(gatherer, chunks)
        top = riskiest_cells(job, chunks, riskiest(cell for chunk in facts for cell in chunk.top))
        distinct = sum(self.store.done(f"scored-0-{part}")["rows"] for part in range(cuts[0].parts))
        self._timed("summarise", started)
        measures = tuple(measure.name for measure in job.measures)
        return Summary(chunks.rows, distinct, self.engine.device, measures, dict(self.seconds), columns, pif, top)


def stored_scores(
    output: Path,
    columns: Sequence[Hashable],
    finished: dict[str, Any],
    summary: Summary | None = None,
    priors: Mapping[Hashable, Prior] | None = None,
    spilled: int = 0,
) -> StoredScores:
    """What a run gives back, with as much as its last mark says where there is no more."""
    files = [output if is_file(output) else output / file for file in finished["files"]]
    return StoredScores(
        output, files, columns, summary or Summary.from_dict(finished["summary"]), priors or {}, spilled
    )
