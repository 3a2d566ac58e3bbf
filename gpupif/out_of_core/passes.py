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
from ..engines.partition_plan import Pass, WeightSums, part_measures, plan_shuffles
from ..io.checkpoints import Store
from ..io.ipc_batches import write_batch
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .budget import Budget
from .chunks import Chunks
from .fold import Folding
from .part_result import PartResult
from .part_scoring import PartScorer
from .shuffle import HashRange, Partitioned, hash_partition


class RunContext(NamedTuple):
    """Engine, checkpoint store, memory budget and progress reporter that all steps of a run share.

    timed: is called at the end of a stage with its name and when it began.
    """

    engine: Engine
    store: Store
    budget: Budget
    report: Reporter
    timed: Callable[[str, float], None]


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
    # What is kept of the scores, None for all.
    folding: Folding | None = field(init=False, default=None)

    def score(self) -> WeightSums:
        """Partition the table and score its parts, once for each pass; what weights are made of."""
        job, chunks, (_, store, budget, report, timed) = self.job, self.chunks, self.context
        limit = budget.part_rows(job)
        # Scores against all attackers are put together at the same time, unless they are folded.
        files = budget.attackers if self.folding is None else self.folding.files
        planned = store.once(
            self.step("planned"), lambda: budget.planned_rows(limit, chunks.rows, len(job.counts), files)
        )
        self.passes = plan_shuffles(job, chunks.rows, planned)
        found: list[WeightSums] = []
        for number, one in enumerate(self.passes):
            of = f"{self.what} {number + 1} of {len(self.passes)}" if len(self.passes) > 1 else self.what
            parts = 1 if len(self.passes) == 1 and not one.by else -(-chunks.rows // planned)
            started = time.perf_counter()
            sizes = store.once(self.step(f"cut-{number}"), partial(self._cut, one, number, parts, of))
            pieces = Partitioned(self.file(f"pass-{number}"), sizes)
            timed("cut", started)
            started = time.perf_counter()
            report.stage(f"score{of}", sum(chunks.sizes[: self.asked]) * len(one.targets), "cells")
            distinct = budget.distinct_scores(parts * len(job.targets) * len(part_measures(job)))
            scorer = PartScorer(self.context.engine, job, limit, report, self.units, self.asked, distinct)
            for part in range(pieces.parts):
                step = self.step(f"scored-{number}-{part}")
                if store.done(step) is None:
                    store.mark(step, self._score_part(scorer, pieces, part, one, number))
                else:
                    report.advance(sum(sizes[part][: self.asked]) * len(one.targets))
                pieces.drop_part(part)
                found.append(PartResult.from_json(store.done(step)).sums)
            timed("score", started)
            self.cuts.append(pieces)
        return WeightSums.total(*found)

    def gains(self, target: int) -> list[Path]:
        """Files of the distinct CIG of a target, and their multiplicities."""
        number = next(number for number, one in enumerate(self.passes) if target in one.targets)
        files = [self._gains(number, part, target) for part in range(self.cuts[number].parts)]
        return [file for file in files if file.exists()]

    def distinct_rows(self) -> int:
        """Number of distinct rows of the table."""
        steps = [self.step(f"scored-0-{part}") for part in range(self.cuts[0].parts)]
        return sum(self.context.store.done(step)["rows"] for step in steps)

    def _cut(self, one: Pass, number: int, parts: int, of: str) -> Any:
        report = self.context.report
        report.stage(f"cut{of}", self.chunks.rows, "rows")
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
        given = (chunks, one, pieces.scores(part), inner, hashes)
        found = scorer.score(*given, folding=self.folding) if chunks.rows else PartResult(rows=0)
        if number == 0 and found.rows is None and self.asked is None:
            found.rows = scorer.count_distinct(chunks, inner)
        for target, (gains, times) in found.gains.items():
            write_batch(self._gains(number, part, target), {"gain": gains, "times": times})
        chunks.close()
        store.drop(self.step(f"pass-{number}"), "inner")
        pa.default_memory_pool().release_unused()
        self.context.timed("score", time.perf_counter())
        return found.as_json()

    def _gains(self, number: int, part: int, target: int) -> Path:
        return self.file(f"pass-{number}", f"gains-{part:05}-{target}.arrow")
