"""A table partitioned on disk and its parts scored: each step is taken once, whatever kills the run in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from ..attack.weights import Units
from ..engines.base import Engine, Job
from ..engines.partition_plan import Pass, WeightSums, computed_measure, part_measures, plan_shuffles
from ..io.checkpoints import Store
from ..io.ipc_batches import write_batch
from ..results.score_distribution import ScoreQuestions
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .budget import Budget
from .chunks import Chunks
from .part_scoring import PartResult, PartScorer
from .shuffle import HashRange, Partitioned, hash_partition


class RunContext(NamedTuple):
    """Engine, checkpoint store, memory budget and progress reporter that all steps of a run share.

    timed: is called at the end of a stage with its name and when it began. questions: what is asked beside summaries.
    """

    engine: Engine
    store: Store
    budget: Budget
    report: Reporter
    timed: Callable[[str, float], None]
    questions: ScoreQuestions = ScoreQuestions()

    def counted(self, job: Job) -> list[str]:
        """The measures of parts of which it has to be known which scores occur, and how often."""
        asked = {"cig", *self.questions.of_columns}
        return list(dict.fromkeys(computed_measure(measure) for measure in job.measures if measure.name in asked))


@dataclass(eq=False)
class TableRun:
    """A table to be scored for one job; its steps are kept in the store.

    prefix: of the steps' names. job: without codes of rows. chunks: the table's columns that are used, and last that of
    the weights; units: those weights. asked: see `PartScorer`. what: the rows that are scored, in words, if not those
    of the table.
    """

    context: RunContext
    prefix: str
    job: Job
    chunks: Chunks
    units: Units | None
    asked: int | None = None
    what: str = ""

    @property
    def total(self) -> int:
        """What all rows count together."""
        return self.chunks.rows if self.units is None else self.units.total

    def step(self, name: str) -> str:
        """Name of a step of this table."""
        return f"{self.prefix}{name}"

    def file(self, name: str, *names: str) -> Path:
        """A file or folder of a step."""
        return self.context.store.part(self.step(name), *names)


@dataclass(eq=False)
class PartitionedRun(TableRun):
    """A table hash-partitioned and scored, once for each pass."""

    passes: list[Pass] = field(init=False, default_factory=list)
    cuts: list[Partitioned] = field(init=False, default_factory=list)

    def score(self) -> WeightSums:
        """Partition the table and score its parts, once for each pass; return what weights are made of."""
        job, chunks, budget = self.job, self.chunks, self.context.budget
        limit = budget.part_rows(job)
        planned = self.context.store.once(
            self.step("planned"), lambda: budget.planned_rows(limit, chunks.rows, len(job.counts), budget.together)
        )
        self.passes = plan_shuffles(job, chunks.rows, planned)
        found = []
        for number in range(len(self.passes)):
            pieces = self._cut_pass(number, planned)
            found.append(self._score_pass(number, pieces, limit))
            self.cuts.append(pieces)
        return WeightSums.total(*found)

    def values(self, scored_column: int, measure: str) -> list[Path]:
        """Files of the distinct scores of a scored column, and their multiplicities."""
        number = next(number for number, one in enumerate(self.passes) if scored_column in one.scored_columns)
        files = [self._values(number, part, scored_column, measure) for part in range(self.cuts[number].parts)]
        return [file for file in files if file.exists()]

    def distinct_rows(self) -> int:
        """Number of distinct rows of the table."""
        steps = [self.step(f"scored-0-{part}") for part in range(self.cuts[0].parts)]
        return sum(self.context.store.done(step)["rows"] for step in steps)

    def _which(self, number: int) -> str:
        """Which pass that is, in words."""
        return f"{self.what} {number + 1} of {len(self.passes)}" if len(self.passes) > 1 else self.what

    def _cut_pass(self, number: int, planned: int) -> Partitioned:
        """The table cut for a pass, in parts of about so many rows; it may be cut already."""
        started, one = time.perf_counter(), self.passes[number]
        parts = 1 if len(self.passes) == 1 and not one.by else -(-self.chunks.rows // planned)
        sizes = self.context.store.once(self.step(f"cut-{number}"), partial(self._cut, one, number, parts))
        self.context.timed("cut", started)
        return Partitioned(self.file(f"pass-{number}"), sizes)

    def _score_pass(self, number: int, pieces: Partitioned, limit: int) -> WeightSums:
        """Score the parts of a pass, `limit` rows at once, and drop them; what weights are made of."""
        one, job, (engine, store, budget, report, timed, *_) = self.passes[number], self.job, self.context
        started = time.perf_counter()
        report.stage(f"score{self._which(number)}", self._cells_of(one), "cells")
        distinct = budget.distinct_scores(pieces.parts * len(job.scored_columns) * len(part_measures(job)))
        # Rows that are beside those asked for count in no percentile.
        counted = self.context.counted(job) if self.asked is None else ()
        scorer = PartScorer(engine, job, limit, report, self.units, self.asked, distinct, counted)
        found = []
        for part in range(pieces.parts):
            step = self.step(f"scored-{number}-{part}")
            if store.done(step) is None:
                store.mark(step, self._score_part(scorer, pieces, part, one, number))
            else:
                report.advance(sum(pieces.sizes[part][: self.asked]) * len(one.scored_columns))
            pieces.drop_part(part)
            found.append(PartResult.from_json(store.done(step)).sums)
        timed("score", started)
        return WeightSums.total(*found)

    def _cells_of(self, one: Pass) -> int:
        """How many cells a pass scores."""
        return sum(self.chunks.sizes[: self.asked]) * len(one.scored_columns)

    def _cut(self, one: Pass, number: int, parts: int) -> Any:
        report = self.context.report
        report.stage(f"cut{self._which(number)}", self.chunks.rows, "rows")
        folder = self.context.store.fresh(self.step(f"pass-{number}"))
        with Workers() as workers:
            return hash_partition(
                self.chunks, self.job.cardinalities, one.by, parts, folder, workers, done=report.advance
            ).sizes

    def _score_part(self, scorer: PartScorer, pieces: Partitioned, part: int, one: Pass, number: int) -> dict[str, Any]:
        store = self.context.store
        chunks = pieces.part(part)
        inner = store.fresh(self.step(f"pass-{number}"), "inner")
        hashes = HashRange(part, pieces.parts)
        found = scorer.score(chunks, one, pieces.scores(part), inner, hashes) if chunks.rows else PartResult(rows=0)
        if number == 0 and found.rows is None and self.asked is None:
            found.rows = scorer.count_distinct(chunks, inner)
        for (scored_column, measure), (values, times) in found.values.items():
            write_batch(self._values(number, part, scored_column, measure), {"value": values, "times": times})
        chunks.close()
        store.drop(self.step(f"pass-{number}"), "inner")
        pa.default_memory_pool().release_unused()
        self.context.timed("score", time.perf_counter())
        return found.as_json()

    def _values(self, number: int, part: int, scored_column: int, measure: str) -> Path:
        return self.file(f"pass-{number}", f"values-{part:05}-{scored_column}-{measure}.arrow")
