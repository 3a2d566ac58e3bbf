"""Parts of the table in which cohorts lie whole: scored by the engine, scores sent home."""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import TYPE_CHECKING

import numpy as np

from ..engines.host_run import unpack_keys
from ..engines.nobody import score_job
from ..engines.passes import dense, part_job
from ..progress import Reporter
from .parcels import Parcel, pack, unpack
from .plan import Plan, TargetSizes, add_sizes
from .workers import task_engine

if TYPE_CHECKING:
    import pandas as pd

    from .routes import Routes


def score_part(plan: Plan, routes: Routes, part: int, frame: pd.DataFrame) -> tuple[pd.DataFrame, TargetSizes]:
    """Score the rows that reached a part; returns the parcels that go home, and the sizes of cohorts."""
    engine = task_engine(plan.device)
    home: list[Parcel] = []
    sizes: list[TargetSizes] = []
    for cut, group in groupby(unpack(frame, part), key=lambda parcel: parcel.cut):
        # By partition and in its order: so rows come in order of first appearance in the table.
        parcels = list(group)
        items = [parcel.items.reshape(-1, plan.layout.words + 1) for parcel in parcels]
        rows = np.concatenate(items)
        targets = routes.cuts[cut].targets
        job = part_job(plan.job, targets, unpack_keys(rows, plan.layout), rows[:, -1].astype(np.int64))
        result = score_job(engine, dense(job), Reporter(visible=False))
        ends = np.cumsum([0, *map(len, items)]).tolist()
        home += [
            Parcel(parcel.source, part, cut, [scores[:, start:stop] for scores in result.values.values()])
            for parcel, (start, stop) in zip(parcels, pairwise(ends), strict=True)
        ]
        found = zip(targets, result.cohorts, result.distinct, strict=True)
        sizes.append({target: (cohorts.log_sum(), distinct.log_sum()) for target, cohorts, distinct in found})
    return pack(home), add_sizes(*sizes)
