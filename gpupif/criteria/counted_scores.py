"""The sizes of classes of a counted table, and the scores of its cells, found by the engines."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.attackers import AnyKnown
from ..attack.distances import CategoryOrder
from ..attack.request import ScoreRequest
from ..disclosure.class_sizes import ClassSizes
from ..disclosure.request import NO_ATTRIBUTE, constant_column
from ..encoding.column import Column
from ..engines.attacker_scoring import score_attacker
from ..engines.base import SILENT, Engine, EngineResult, Job
from ..engines.individual_risk import needs_rows
from ..engines.zero_weights import counted_rows, has_zero_weights
from ..measures import Measure, as_weighted, find_measure
from ..rows.threads import Workers
from .counted_table import CountedTable

SIZE = "cohort_size"


class CellScores(NamedTuple):
    """The scores of a column: the lowest and the highest score, or all scores of the distinct rows."""

    low_high: tuple[float, float] | None
    scores: npt.NDArray[Any] | None

    def extreme(self, high: bool, zeros: bool = True) -> float:
        """Return the highest or the lowest score, NaN if none is known. zeros: whether a score of 0 is known."""
        if self.low_high is not None:
            return self.low_high[high]
        assert self.scores is not None
        known = self.scores[self.scores == self.scores if zeros else self.scores > 0]
        return float(known.max() if high else known.min()) if len(known) else math.nan


def known_columns(known: Sequence[Hashable] | AnyKnown) -> list[Hashable]:
    """Return the columns that an attacker knows, or of which the attacker knows any few."""
    return list(known.pool or ()) if isinstance(known, AnyKnown) else list(known)


def class_sizes(
    table: CountedTable, known: Sequence[Hashable] | AnyKnown, engine: Engine, missing: str = "category"
) -> ClassSizes:
    """Return how many rows of the table agree with each row on the columns that an attacker knows.

    If the attacker knows any few columns, the set of columns with the fewest such rows counts. missing: see
    `CriterionSet`.
    """
    some_match = missing == "wildcard" and any(
        column.missing for column in table.columns if column.name in known_columns(known)
    )
    if isinstance(known, AnyKnown) or some_match:
        _, scores = score_counted(table, known, [NO_ATTRIBUTE], [find_measure(SIZE)], {}, engine, missing=missing)
        sizes, which = np.unique(np.asarray(scores[SIZE][0].scores), return_inverse=True)
        rows = np.bincount(which, table.multiplicities).astype(np.int64)
        return ClassSizes(dict(zip(sizes.astype(np.int64).tolist(), rows.tolist(), strict=True)), overlapping=True)
    if not known:
        return ClassSizes.from_classes({table.rows: 1})
    if table.is_distinct and set(known) == set(table.names):
        counts = table.multiplicities
    else:
        with Workers() as workers:
            counts = table.classes(known, workers).rows.counts
    sizes, classes = np.unique(counts, return_counts=True)
    return ClassSizes.from_classes(dict(zip(sizes.tolist(), classes.tolist(), strict=True)))


def longest_distances(job: Job, columns: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the longest distance of two values of each scored column; none if no measure is on distances."""
    axes = [] if job.axes is None else [job.axes[place] for place in job.scored_columns]
    return {name: axis.longest for name, axis in zip(columns, axes, strict=False) if axis is not None}


def score_counted(
    table: CountedTable,
    known: Sequence[Hashable] | AnyKnown,
    scored: Sequence[Hashable],
    measures: Sequence[Measure],
    distances: Mapping[Any, Any],
    engine: Engine,
    only_extremes: bool = False,
    missing: str = "category",
    weights: Hashable = None,
    counted: bool = False,
) -> tuple[Job, dict[str, list[CellScores]]]:
    """Score the cells of a counted table. Return the job, and by measure the scores of each scored column.

    If the attacker knows any few columns, the score of a cell is the worst over attackers. scored: columns, or
    `NO_ATTRIBUTE` for a column with one value. only_extremes: whether the lowest and the highest score are enough.
    missing: see `CriterionSet`. weights: a column of sampling weights, as in `gpupif.score`. counted: whether rows of
    weight 0 are left out; else their cells are scored too. Classes are compared with the distributions of
    `CountedTable.whole`.
    """
    pool = known_columns(known)
    every: list[Column] = [
        *table.columns,
        *([constant_column(table.rows, len(table.multiplicities))] if NO_ATTRIBUTE in scored else []),
    ]
    columns = [column for column in every if column.name in {*scored, *pool}]
    used = [column.name for column in columns]
    orders = {name: order for name, order in table.orders.items() if name in used}
    request = ScoreRequest(
        scored_columns=list(scored),
        known=pool,
        used=used,
        priors={},
        accuracies={},
        distances={
            **{name: CategoryOrder(order) for name, order in orders.items()},
            **{name: distance for name, distance in distances.items() if name in used},
        },
        missing=missing,
        measures=tuple(measures if weights is None else map(as_weighted, measures)),
        dtype="float64",
        weights=weights,
        any_known=known if isinstance(known, AnyKnown) else None,
    )
    weighted = None if weights is None else table.weights(weights, columns)
    if weighted is not None and table.whole is not None:
        # Known columns may be coarser than those of the whole table; only scored columns are compared.
        of_whole = table.whole.weights(weights, [column for column in table.whole.columns if column.name in scored])
        weighted = replace(weighted, counts={**weighted.counts, **of_whole.counts})
    job, _ = request.job(columns, table.rows, "host", lambda *_: None, weighted)
    subsets = request.subsets(table.rows)
    distinct = table.is_distinct and len(columns) == len(every)
    only_extremes = only_extremes and subsets is None and not job.wildcards
    if weighted is None:
        job = replace(job, multiplicities=table.multiplicities)
    elif counted:
        job = counted_rows(job)
    else:
        job = replace(job, row_counts=table.multiplicities)
        only_extremes = only_extremes and not has_zero_weights(job) and not needs_rows(job)
    job = replace(job, extremes_only=only_extremes, distinct=distinct)
    result = score_attacker(engine, job, None if subsets is None else subsets.sets, SILENT)
    slots = range(len(scored))
    if job.extremes_only:
        assert isinstance(result, EngineResult)
        return job, {
            name: [CellScores((float(extremes[slot][0]), float(extremes[slot][1])), None) for slot in slots]
            for name, extremes in result.extremes.items()
        }
    worst = result.by_aggregate()["" if subsets is None else "worst"]
    return job, {name: [CellScores(None, np.asarray(scores[slot])) for slot in slots] for name, scores in worst.items()}
