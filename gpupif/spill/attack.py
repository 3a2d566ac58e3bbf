"""One attacker in a run from files to files: the table cut, its parts scored, and what a summary says of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ..engines.base import Engine, Job
from ..engines.passes import Pass, plan_shuffles, weight_of
from ..engines.workers import Workers
from ..priors import Prior
from ..progress import Reporter
from ..summary import Summary
from ..weighting import Units
from .budget import Budget
from .chunks import TableChunks
from .cut import Cut, Span, cut
from .found import Found
from .gather import Facts, Gatherer, riskiest
from .parts import PartScorer
from .store import Store, write_batch
from .summarise import riskiest_cells, row_gain_percentiles, summary_columns

if TYPE_CHECKING:
    import pandas as pd


class Attack:
    """The steps of one attacker, each kept in `store`; prefix: of their names.

    job, prior_of: what is to be done. chunks: the table's columns that are used, and last that of the weights. units:
    those weights. timed: hears how long a stage took that began at a time.
    """

    def __init__(
        self,
        prefix: str,
        job: Job,
        prior_of: Mapping[Hashable, Prior],
        chunks: TableChunks,
        units: Units | None,
        engine: Engine,
        store: Store,
        budget: Budget,
        report: Reporter,
        timed: Callable[[str, float], None],
    ) -> None:
        self.prefix = prefix
        self.job = job
        self.prior_of = prior_of
        self.chunks = chunks
        self.units = units
        self.engine = engine
        self.store = store
        self.budget = budget
        self.report = report
        self.timed = timed
        self._passes: list[Pass] = []
        self._cuts: list[Cut] = []

    def score(self) -> Gatherer:
        """Score the table in parts; what puts the scores together."""
        found = self._score()
        total = self.chunks.rows if self.units is None else self.units.total
        weights = [
            weight_of(self.job, total, target, [found.cohorts[target]], [found.distinct[target]])
            for target in self.job.targets
        ]
        self._gatherer = Gatherer(self.job, self._passes, self._cuts, weights, self._part("facts"))
        return self._gatherer

    def _step(self, name: str) -> str:
        return f"{self.prefix}{name}"

    def _part(self, name: str, *names: str) -> Path:
        return self.store.part(self._step(name), *names)

    def _score(self) -> Found:
        """Cut the table and score its parts, once for each pass; also what was found in all of them."""
        job, chunks, store = self.job, self.chunks, self.store
        limit = self.budget.part_rows(job)
        planned = store.once(
            self._step("planned"), lambda: self.budget.planned_rows(limit, chunks.rows, len(job.counts))
        )
        self._passes = plan_shuffles(job, chunks.rows, planned)
        total = Found()
        for number, one in enumerate(self._passes):
            of = f" {number + 1} of {len(self._passes)}" if len(self._passes) > 1 else ""
            parts = 1 if len(self._passes) == 1 and not one.by else -(-chunks.rows // planned)
            started = time.perf_counter()
            sizes = store.once(self._step(f"cut-{number}"), partial(self._cut, one, number, parts, of))
            pieces = Cut(self._part(f"pass-{number}"), sizes)
            self.timed("cut", started)
            started = time.perf_counter()
            self.report.stage(f"score{of}", chunks.rows * len(one.targets), "cells")
            scorer = PartScorer(self.engine, job, limit, self.report, self.units)
            for part in range(pieces.parts):
                step = self._step(f"scored-{number}-{part}")
                if store.done(step) is None:
                    store.mark(step, self._score_part(scorer, pieces, part, one, number))
                else:
                    self.report.advance(sum(sizes[part]) * len(one.targets))
                pieces.drop_part(part)
                total.add(Found.from_json(store.done(step)))
            self.timed("score", started)
            self._cuts.append(pieces)
        return total

    def _cut(self, one: Pass, number: int, parts: int, of: str) -> Any:
        self.report.stage(f"cut{of}", self.chunks.rows, "rows")
        cardinalities = [len(counts) for counts in self.job.counts]
        folder = self.store.fresh(self._step(f"pass-{number}"))
        with Workers() as workers:
            return cut(self.chunks, cardinalities, one.by, parts, folder, workers, done=self.report.advance).sizes

    def _score_part(self, scorer: PartScorer, pieces: Cut, part: int, one: Pass, number: int) -> dict[str, Any]:
        chunks = pieces.part(part)
        inner = self.store.fresh(self._step(f"pass-{number}"), "inner")
        span = Span(part, pieces.parts)
        found = scorer.score(chunks, one, pieces.scores(part), inner, span) if chunks.rows else Found(rows=0)
        if number == 0 and found.rows is None:
            found.rows = scorer.count_distinct(chunks, inner)
        for target, (gains, times) in found.gains.items():
            write_batch(self._gains(number, part, target), {"gain": gains, "times": times})
        chunks.close()
        self.store.drop(self._step(f"pass-{number}"), "inner")
        pa.default_memory_pool().release_unused()
        self.timed("score", time.perf_counter())
        return found.as_json()

    def _gains(self, number: int, part: int, target: int) -> Path:
        return self._part(f"pass-{number}", f"gains-{part:05}-{target}.arrow")

    def summary(self, seconds: Mapping[str, float]) -> Summary:
        """The summary, when all scores are put together."""
        started = time.perf_counter()
        self.report.stage("summarise", None, "")
        gatherer, chunks, job = self._gatherer, self.chunks, self.job
        facts = [Facts.read(gatherer.facts(number)) for number in range(len(chunks.sizes))]

        def gains(target: int) -> list[Path]:
            number = next(number for number, one in enumerate(self._passes) if target in one.targets)
            files = [self._gains(number, part, target) for part in range(self._cuts[number].parts)]
            return [file for file in files if file.exists()]

        columns: pd.DataFrame = summary_columns(job, self.prior_of, chunks, facts, gatherer.weights, gains)
        pif = row_gain_percentiles(gatherer, chunks)
        top = riskiest_cells(job, chunks, riskiest(cell for chunk in facts for cell in chunk.top), self.units)
        steps = [self._step(f"scored-0-{part}") for part in range(self._cuts[0].parts)]
        distinct = sum(self.store.done(step)["rows"] for step in steps)
        self.timed("summarise", started)
        measures = tuple(measure.name for measure in job.measures)
        return Summary(chunks.rows, distinct, self.engine.device, measures, dict(seconds), columns, pif, top)
