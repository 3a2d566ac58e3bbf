"""Scores of the rows in a partition that holds their cohorts whole; the engine computes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.attackers import aggregate_name
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
from ..engines.partition_plan import WeightSums, compact_codes, partition_job
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
    """Score the rows that reached a partition.

    Returns the messages with scores for the chunks, and the sums from which weights are computed.
    """
    engine, sent = task_engine(plan.device), SentScores.from_request(plan.request)
    several = unpack(frame, partition)
    back: list[Message] = []
    sums: list[WeightSums] = []
    words = plan.layout.words
    # Keys and counts of the rows, and packed scores. Memory that is never touched is not taken.
    memory = sum(map(row_count, several)) * 8 * (words + 1 + 3 * sent.number + 8)
    with task_workers(memory) as workers:
        for cut, group in groupby(several, key=lambda message: message.cut):
            scored_columns, (own, others, counted) = routes.cuts[cut].scored_columns, _by_table(group, routes)
            if not own:
                continue
            rows = rows_in(own, words, workers.empty)
            # `counted` has the same rows as `own`, in the same order.
            row_counts = rows_in(counted, words, workers.empty).counts if counted else None
            population = rows_in(others, words, workers.empty)
            found = PartitionScorer(plan, engine, scored_columns, rows, row_counts, population).score()
            # The aggregate "" adds nothing to the name of the measure.
            values = {
                aggregate_name(name, aggregate) if aggregate else name: scores
                for (aggregate, name), scores in found.values.items()
            }
            sums.append(found.sums)
            sizes = list(map(row_count, own))
            room, edges = Room(max(sizes), sent.number, workers.empty), pairwise(accumulate(sizes, initial=0))
            for message, (start, stop) in zip(own, edges, strict=True):
                packed = pack_scores(sent, plan.layout, rows.keys[start:stop], scored_columns, values, start, room)
                back.append(Message(message.source, partition, cut, packed))
        return pack(back), WeightSums.total(*sums)


def _by_table(messages: Iterable[Message], routes: Routes) -> tuple[list[Message], list[Message], list[Message]]:
    """Return messages apart: of the table, of the population, and of the table's rows counted once more as rows."""
    several = list(messages)
    edges = (0, routes.chunks, 2 * routes.senders, 3 * routes.senders)
    own, others, counted = ([one for one in several if a <= one.source < b] for a, b in pairwise(edges))
    return own, others, counted


class ScoredRows(NamedTuple):
    """The scores of the rows of a partition.

    values: by (aggregate, measure) an array (scored columns, rows), or `SharedScores`. The aggregate is "", or names
    the worst or mean over several sets of known columns.
    sums: WeightSums. The sums from which weights of wCIG are computed.
    distinct_rows: int. The number of distinct rows over all used columns.
    weights: list of arrays, one for each scored column. The weight against each set of known columns; None for one set.
    """

    values: dict[tuple[str, str], Any]
    sums: WeightSums
    distinct_rows: int
    weights: list[npt.NDArray[np.float64]] | None


@dataclass(eq=False)
class PartitionScorer:
    """The scorer of the table's rows in one partition: as a table of their own, with the priors of the whole table.

    plan: Plan. The plan of the run.
    engine: Engine. The engine that scores.
    scored_columns: list of int. The columns to score.
    rows: Rows. The rows of the table.
    row_counts: array, one for each row. The multiplicity, if rows are counted in units of weight and a measure needs
    both.
    others: Rows. The rows of the population, which count in the sizes of its cohorts.
    progress: Progress. It is called with the number of scored cells. Default: silent.
    anywhere: bool. Whether scores may stay on the device that computed them. Default False.
    shares: function of a plan, a job, sets, and the numbers of rows of the table and the population. The memory for
    scoring against several sets of known columns.
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
        """Return the scores that outputs are computed from, with CIG in place of weighted CIG."""
        plan = self.plan
        codes = plan.layout.unpack(self.rows.keys)
        codes = codes if plan.population is None else plan.population.own(codes)
        job = partition_job(plan.job, self.scored_columns, codes, self.rows.counts, self.row_counts)
        if self._sets is None and (self.anywhere or self.engine.device == "cpu"):
            job = replace(job, scores_on="either")
        elif self._sets is not None:
            # Each set of known columns has its own weights: weigh the scores before the worst and the mean are taken.
            job = replace(job, measures=plan.job.measures)
        result = self._score(job, self.progress)
        values = {
            (aggregate, name): found
            for aggregate, scores in result.by_aggregate().items()
            for name, found in scores.items()
        }
        if plan.population is not None:
            values |= self._population_sizes()
        sums = WeightSums.from_result(result, self.scored_columns, plan.in_one_partition)
        weights = result.weights if isinstance(result, AnyKnownResult) else None
        return ScoredRows(values, sums, result.distinct_rows, weights)

    def _score(self, job: Job, progress: Progress) -> EngineResult | AnyKnownResult:
        sets, sizes = self._sets, (len(self.rows.keys), len(self.others.keys))
        shares = None if sets is None else self.shares(self.plan, job, sets, *sizes)
        return score_attacker(self.engine, compact_codes(job), sets, progress, shares)

    def _population_sizes(self) -> dict[tuple[str, str], npt.NDArray[Any]]:
        """Return how many rows of the population are in the cohort of each cell, by aggregate and measure.

        If missing values are wildcards, a row may agree with no row of the population; it then counts itself.
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
            multiplicities=found.rows.counts.astype(np.int64),
        )
        place = found.number[:asked]
        aggregates = self._score(job, SILENT).by_aggregate().items()
        return {
            (aggregate, POPULATION_SIZE.name): on_host(sizes["cohort_size"])[:, place]
            for aggregate, sizes in aggregates
        }
