"""Partitions of the table in which cohorts lie whole: scored by the engine, scores sent back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.any_known import folded_name
from ..engines.attacker_scoring import score_attacker
from ..engines.base import (
    SILENT,
    AnyKnownResult,
    AnyKnownShares,
    Engine,
    EngineResult,
    Job,
    KnownSubset,
    Progress,
)
from ..engines.partition_plan import WeightSums, compact_codes, part_job
from ..measures import POPULATION_SIZE
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..utils.arrays import on_host
from .one_partition_memory import shares_of
from .packed_scores import Room, SentScores, pack_scores
from .partition_routes import Routes
from .shuffle_messages import Message, pack, row_count, rows_in, unpack
from .table_plan import Plan
from .task_resources import task_engine, task_workers

if TYPE_CHECKING:
    import pandas as pd


def score_partition(plan: Plan, routes: Routes, partition: int, frame: pd.DataFrame) -> tuple[pd.DataFrame, WeightSums]:
    """Score the rows that reached a partition; returns the messages that go back, and what weights are made of."""
    engine, sent = task_engine(plan.device), SentScores.of(plan.request)
    several = unpack(frame, partition)
    back: list[Message] = []
    sums: list[WeightSums] = []
    words = plan.layout.words
    # Keys and counts, and what scores are packed in: what is not touched takes none.
    memory = sum(map(row_count, several)) * 8 * (words + 1 + 3 * sent.number + 8)
    with task_workers(memory) as workers:
        for cut, group in groupby(several, key=lambda message: message.cut):
            scored_columns, (own, others, counted) = routes.cuts[cut].scored_columns, _by_table(group, routes)
            if not own:
                continue
            rows = rows_in(own, words, workers.empty)
            # The same rows, in the same order.
            row_counts = rows_in(counted, words, workers.empty).counts if counted else None
            population = rows_in(others, words, workers.empty)
            found = PartitionScorer(plan, engine, scored_columns, rows, row_counts, population).score()
            values = {_output(name, fold): scores for (fold, name), scores in found.values.items()}
            sums.append(found.sums)
            sizes = list(map(row_count, own))
            room, edges = Room(max(sizes), sent.number, workers.empty), pairwise(accumulate(sizes, initial=0))
            for message, (start, stop) in zip(own, edges, strict=True):
                packed = pack_scores(sent, plan.layout, rows.keys[start:stop], scored_columns, values, start, room)
                back.append(Message(message.source, partition, cut, packed))
        return pack(back), WeightSums.total(*sums)


def _by_table(messages: Iterable[Message], routes: Routes) -> tuple[list[Message], list[Message], list[Message]]:
    """Messages of the table's chunks, those of the population, and the table's rows counted once more, as rows."""
    several = list(messages)
    edges = (0, routes.chunks, 2 * routes.senders, 3 * routes.senders)
    own, others, counted = ([one for one in several if a <= one.source < b] for a, b in pairwise(edges))
    return own, others, counted


class ScoredRows(NamedTuple):
    """Scores of the rows of a partition.

    values: by fold and measure an array (scored columns, rows), or `SharedScores`. A fold is "" or what several sets of
    known columns come to.
    sums: what weights are made of. distinct_rows: how many rows differ over all columns that are used.
    weights: by scored column that of each of several sets of known columns; None for one set.
    """

    values: dict[tuple[str, str], Any]
    sums: WeightSums
    distinct_rows: int
    weights: list[npt.NDArray[np.float64]] | None


@dataclass(eq=False)
class PartitionScorer:
    """Scores rows of the table that are in one partition, as a table of their own with the priors of the whole.

    rows: of the table.
    row_counts: how often each row occurs, where rows are counted in units of weights and a measure needs both.
    others: rows of the population, which count in the sizes of cohorts there.
    progress: hears of cells.
    anywhere: whether scores may stay on the device that made them.
    shares: of a plan, a job and numbers of rows of both tables, the memory that scoring on several sets of known
    columns may take.
    """

    plan: Plan
    engine: Engine
    scored_columns: list[int]
    rows: Rows
    row_counts: npt.NDArray[np.int64] | None
    others: Rows
    progress: Progress = SILENT
    anywhere: bool = False
    shares: Callable[[Plan, Job, Sequence[KnownSubset], int, int], AnyKnownShares | None] = shares_of

    @cached_property
    def _sets(self) -> Sequence[KnownSubset] | None:
        subsets = self.plan.request.subsets(self.plan.rows)
        return None if subsets is None else subsets.sets

    def score(self) -> ScoredRows:
        """Return the scores that outputs are made from, CIG in place of weighted CIG."""
        plan = self.plan
        codes = plan.layout.unpack(self.rows.keys)
        codes = codes if plan.population is None else plan.population.own(codes)
        job = part_job(plan.job, self.scored_columns, codes, self.rows.counts, self.row_counts)
        if self._sets is None and (self.anywhere or self.engine.device == "cpu"):
            job = replace(job, scores_on="either")
        elif self._sets is not None:
            # Weights are of each set, so that scores are weighted before they are folded.
            job = replace(job, measures=plan.job.measures)
        result = self._score(job, self.progress)
        values = {(fold, name): found for fold, scores in result.by_fold().items() for name, found in scores.items()}
        if plan.population is not None:
            values |= self._population_sizes()
        sums = WeightSums.of(result, self.scored_columns, plan.in_one_partition)
        weights = result.weights if isinstance(result, AnyKnownResult) else None
        return ScoredRows(values, sums, result.distinct_rows, weights)

    def _score(self, job: Job, progress: Progress) -> EngineResult | AnyKnownResult:
        sets, sizes = self._sets, (len(self.rows.keys), len(self.others.keys))
        shares = None if sets is None else self.shares(self.plan, job, sets, *sizes)
        return score_attacker(self.engine, compact_codes(job), sets, progress, shares)

    def _population_sizes(self) -> dict[tuple[str, str], npt.NDArray[Any]]:
        """Return how many rows of the population are in the cohorts of the table's rows, by fold.

        A row that agrees with none, as is possible where missing values are wildcards, counts itself.
        """
        plan, asked = self.plan, len(self.rows.keys)
        assert plan.population is not None
        counts = np.concatenate([np.zeros(asked, np.int64), self.others.counts])
        keys = np.concatenate([self.rows.keys, self.others.keys])
        with task_workers() as workers:
            found = distinct_rows(Rows(keys, counts), int(counts.sum()), workers)
        job = replace(
            plan.population.columns.sizes_job(plan.request),
            scored_columns=self.scored_columns,
            codes=plan.layout.unpack(found.rows.keys),
            times=found.rows.counts.astype(np.int64),
        )
        place = found.number[:asked]
        folds = self._score(job, SILENT).by_fold().items()
        return {(fold, POPULATION_SIZE.name): on_host(sizes["cohort_size"])[:, place] for fold, sizes in folds}


def _output(measure: str, fold: str) -> str:
    """Return the name of the scores of a fold; "": of none."""
    return folded_name(measure, fold) if fold else measure
