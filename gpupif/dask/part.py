"""Parts of the table in which cohorts lie whole: scored by the engine, scores sent home."""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attack.population import sizes_job
from ..engines.block_scoring import unpack_keys
from ..engines.known_subsets import score_sets
from ..engines.known_subsets_memory import AnyNeeds, share_out
from ..engines.part_jobs import dense, part_job
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows
from ..utils.arrays import on_host
from ..utils.information import LogSum
from ..utils.progress import Reporter
from .parcels import Parcel, pack, unpack
from .plan import Plan, Sums, TargetSizes, add_sizes
from .routing import MOST_BYTES, any_known_bytes
from .worker import task_engine, task_threads, task_workers

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from ..engines.base import Engine, Job
    from .routing import Routes


def score_part(plan: Plan, routes: Routes, part: int, frame: pd.DataFrame) -> tuple[pd.DataFrame, TargetSizes]:
    """Score the rows that reached a part; returns the parcels that go home, and the sizes of cohorts."""
    engine = task_engine(plan.device)
    home: list[Parcel] = []
    sizes: list[TargetSizes] = []
    for cut, group in groupby(unpack(frame, part), key=lambda parcel: parcel.cut):
        several = list(group)
        parcels = [parcel for parcel in several if parcel.source < routes.partitions]
        if not parcels:
            continue
        items = [parcel.items.reshape(-1, plan.layout.words + 1) for parcel in parcels]
        rows = np.concatenate(items)
        targets = routes.cuts[cut].targets
        codes = unpack_keys(rows, plan.layout)
        codes = codes if plan.people is None else plan.people.own(codes)
        job = part_job(plan.job, targets, codes, rows[:, -1].astype(np.int64))
        if plan.question.any_known is not None:
            values, found = _any_known(plan, engine, job)
        else:
            result = engine.score(dense(job), Reporter(visible=False))
            values = list(result.values.values())
            each = zip(result.cohorts, result.distinct, result.weights, strict=True)
            found = [Sums(one.log_sum(), other.log_sum(), weight) for one, other, weight in each]
        if plan.people is not None:
            others = [parcel.items for parcel in several if parcel.source >= routes.partitions]
            people = np.concatenate([rows[:0].ravel(), *others]).reshape(-1, plan.layout.words + 1)
            values.append(_sizes(plan, engine, targets, rows, people))
        ends = np.cumsum([0, *map(len, items)]).tolist()
        home += [
            Parcel(parcel.source, part, cut, [scores[:, start:stop] for scores in values])
            for parcel, (start, stop) in zip(parcels, pairwise(ends), strict=True)
        ]
        sizes.append(dict(zip(targets, found, strict=True)))
    return pack(home), add_sizes(*sizes)


def _any_known(plan: Plan, engine: Engine, job: Job) -> tuple[list[npt.NDArray[Any]], list[Sums]]:
    """The worst and the mean of each measure over attackers who know any few columns, and the weights."""
    subsets = plan.question.subsets(plan.rows)
    assert subsets is not None
    needs, rows, targets = AnyNeeds.of(job, plan.rows, subsets.sets), job.rows, len(job.targets)
    # Beside what comes and goes.
    memory = MOST_BYTES - any_known_bytes(plan, rows) + needs.least(rows, kept=targets)
    shares = share_out(needs, rows, targets, task_threads(), memory, kept=targets)
    found = score_sets(engine, replace(job, measures=plan.job.measures), subsets.sets, Reporter(visible=False), shares)
    values = [both[measure.name] for measure in plan.job.measures for both in (found.worst, found.mean)]
    nothing = LogSum.total([])
    return values, [Sums(nothing, nothing, float(w.min()), float(w.mean())) for w in found.weights]


def _sizes(
    plan: Plan, engine: Engine, targets: list[int], rows: npt.NDArray[np.uint64], others: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Of some targets and rows, how many rows of the population are in their cohorts; others: these, counted."""
    assert plan.people is not None
    counts = np.concatenate([np.zeros(len(rows), np.int64), others[:, -1].astype(np.int64)])
    keys = np.ascontiguousarray(np.concatenate([rows, others])[:, :-1])
    with task_workers() as workers:
        found = distinct_rows(Rows(keys, counts), int(counts.sum()), workers)
    codes = unpack_keys(found.rows.keys, plan.layout)
    job = replace(
        sizes_job(plan.question, plan.people.counts),
        targets=targets,
        codes=codes,
        times=found.rows.counts.astype(np.int64),
    )
    sizes = on_host(engine.score(dense(job), Reporter(visible=False)).values["cohort_size"])
    return np.asarray(sizes[:, found.number[: len(rows)]])
