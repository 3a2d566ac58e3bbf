"""Partitions of the table in which cohorts lie whole: scored by the engine, scores sent back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..attack.known_subsets import folded_name
from ..engines.base import SILENT, AnyKnownResult, Engine, EngineResult, Job, KnownSubset
from ..engines.known_subsets import score_attacker
from ..engines.partition_plan import WeightSums, compact_codes, part_job
from ..measures import POPULATION_SIZE
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..utils.arrays import on_host
from .one_partition import shares_of
from .packed_scores import Room, SentScores, pack_scores
from .parcels import Parcel, pack, row_count, rows_in, unpack
from .routes import Routes
from .table_plan import Plan
from .task_resources import task_engine, task_workers

if TYPE_CHECKING:
    import pandas as pd


def score_partition(plan: Plan, routes: Routes, partition: int, frame: pd.DataFrame) -> tuple[pd.DataFrame, WeightSums]:
    """Score the rows that reached a partition; returns the parcels that go back, and what weights are made of."""
    engine, sent = task_engine(plan.device), SentScores.of(plan.request)
    several = unpack(frame, partition)
    back: list[Parcel] = []
    sums: list[WeightSums] = []
    words = plan.layout.words
    # Keys and counts, and what scores are packed in: what is not touched takes none.
    memory = sum(map(row_count, several)) * 8 * (words + 1 + 3 * sent.number + 8)
    with task_workers(memory) as workers:
        for cut, group in groupby(several, key=lambda parcel: parcel.cut):
            scored_columns, (own, others, counted) = routes.cuts[cut].scored_columns, _by_table(group, routes)
            if not own:
                continue
            rows = rows_in(own, words, workers.empty)
            # The same rows, in the same order.
            row_counts = rows_in(counted, words, workers.empty).counts if counted else None
            scorer = _Scorer(plan, engine, scored_columns, rows, row_counts, rows_in(others, words, workers.empty))
            values, found = scorer.score()
            sums.append(found)
            sizes = list(map(row_count, own))
            room, edges = Room(max(sizes), sent.number, workers.empty), pairwise(accumulate(sizes, initial=0))
            for parcel, (start, stop) in zip(own, edges, strict=True):
                packed = pack_scores(sent, plan.layout, rows.keys[start:stop], scored_columns, values, start, room)
                back.append(Parcel(parcel.source, partition, cut, packed))
        return pack(back), WeightSums.total(*sums)


def _by_table(parcels: Iterable[Parcel], routes: Routes) -> tuple[list[Parcel], list[Parcel], list[Parcel]]:
    """Parcels of the table's chunks, those of the population, and the table's rows counted once more, as rows."""
    several = list(parcels)
    edges = (0, routes.chunks, 2 * routes.senders, 3 * routes.senders)
    own, others, counted = ([one for one in several if a <= one.source < b] for a, b in pairwise(edges))
    return own, others, counted


@dataclass(eq=False)
class _Scorer:
    """Rows of the table in one partition, and `others` of the population.

    row_counts: how often each occurs, where they are counted in units of weights and a measure needs both.
    """

    plan: Plan
    engine: Engine
    scored_columns: list[int]
    rows: Rows
    row_counts: npt.NDArray[np.int64] | None
    others: Rows

    @cached_property
    def _sets(self) -> Sequence[KnownSubset] | None:
        subsets = self.plan.request.subsets(self.plan.rows)
        return None if subsets is None else subsets.sets

    def score(self) -> tuple[dict[str, Any], WeightSums]:
        """Scores (scored columns, rows), arrays or `SharedScores`, of each of the outputs that has scores of its own,
        by name; what weights are made of.
        """
        plan = self.plan
        codes = plan.layout.unpack(self.rows.keys)
        codes = codes if plan.population is None else plan.population.own(codes)
        job = part_job(plan.job, self.scored_columns, codes, self.rows.counts, self.row_counts)
        if self._sets is None and self.engine.device == "cpu":
            job = replace(job, scores_on="either")
        elif self._sets is not None:
            # Weights are of each set, so that scores are weighted before they are folded.
            job = replace(job, measures=plan.job.measures)
        result = self._score(job)
        folds = result.by_fold().items()
        values = {_output(name, fold): found for fold, scores in folds for name, found in scores.items()}
        if plan.population is not None:
            values |= self._population_sizes()
        return values, WeightSums.of(result, self.scored_columns, plan.in_one_partition)

    def _score(self, job: Job) -> EngineResult | AnyKnownResult:
        sets = self._sets
        shares = None if sets is None else shares_of(self.plan, job, sets, len(self.rows.keys), len(self.others.keys))
        return score_attacker(self.engine, compact_codes(job), sets, SILENT, shares)

    def _population_sizes(self) -> dict[str, npt.NDArray[Any]]:
        """How many rows of the population are in the cohorts of the table's rows, by output.

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
        folds = self._score(job).by_fold().items()
        return {_output(POPULATION_SIZE.name, fold): on_host(sizes["cohort_size"])[:, place] for fold, sizes in folds}


def _output(measure: str, fold: str) -> str:
    """What the scores of a fold are called; "": of none."""
    return folded_name(measure, fold) if fold else measure
