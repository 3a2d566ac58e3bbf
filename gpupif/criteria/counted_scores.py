"""Classes of counted rows, and scores of their cells, through the engines."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.distances import CategoryOrder
from ..attack.known_subsets import AnyKnown
from ..attack.request import ScoreRequest
from ..disclosure.class_sizes import ClassSizes
from ..disclosure.request import NO_ATTRIBUTE, constant_column
from ..encoding.column import Column
from ..engines.base import SILENT, Engine, EngineResult, Job
from ..engines.known_subsets import score_attacker
from ..measures import Measure, find_measure
from ..rows.threads import Workers
from .counted import CountedTable

SIZE = "cohort_size"


class CellScores(NamedTuple):
    """What was found of the scores of a column: its lowest and highest, or all scores of the counted rows."""

    low_high: tuple[float, float] | None
    scores: npt.NDArray[Any] | None


def columns_of(known: Sequence[Hashable] | AnyKnown) -> list[Hashable]:
    """The columns that an attacker knows, or may know any of."""
    return list(known.pool or ()) if isinstance(known, AnyKnown) else list(known)


def class_sizes(
    table: CountedTable, known: Sequence[Hashable] | AnyKnown, engine: Engine, missing: str = "category"
) -> ClassSizes:
    """How many rows agree with each on what an attacker knows; of any few the fewest. missing: see `CriterionSet`."""
    some_match = missing == "wildcard" and any(one.missing for one in table.columns if one.name in columns_of(known))
    if isinstance(known, AnyKnown) or some_match:
        _, scores = score_counted(table, known, [NO_ATTRIBUTE], [find_measure(SIZE)], {}, engine, missing=missing)
        sizes, place = np.unique(np.asarray(scores[SIZE][0].scores), return_inverse=True)
        rows = np.bincount(place, table.times).astype(np.int64)
        return ClassSizes(dict(zip(sizes.astype(np.int64).tolist(), rows.tolist(), strict=True)), overlapping=True)
    if not known:
        return ClassSizes.from_classes({table.rows: 1})
    if table.is_distinct and set(known) == set(table.names):
        counts = table.times
    else:
        with Workers() as workers:
            counts = table.classes(known, workers).rows.counts
    sizes, classes = np.unique(counts, return_counts=True)
    return ClassSizes.from_classes(dict(zip(sizes.tolist(), classes.tolist(), strict=True)))


def score_counted(
    table: CountedTable,
    known: Sequence[Hashable] | AnyKnown,
    criteria: Sequence[Hashable],
    measures: Sequence[Measure],
    distances: Mapping[Any, Any],
    engine: Engine,
    only_extremes: bool = False,
    missing: str = "category",
) -> tuple[Job, dict[str, list[CellScores]]]:
    """Scores of cells of counted rows, by measure and criterion; against any few columns each cell's worst.

    criteria: columns, or `NO_ATTRIBUTE` for a column that says nothing. only_extremes: only the lowest and the highest
    score are needed. missing: see `CriterionSet`.
    """
    pool = list(known.pool or ()) if isinstance(known, AnyKnown) else list(known)
    every: list[Column] = [
        *table.columns,
        *([constant_column(table.rows, len(table.times))] if NO_ATTRIBUTE in criteria else []),
    ]
    columns = [column for column in every if column.name in {*criteria, *pool}]
    used = [column.name for column in columns]
    orders = {name: order for name, order in table.orders.items() if name in used}
    request = ScoreRequest(
        scored_columns=list(criteria),
        known=pool,
        used=used,
        priors={},
        accuracies={},
        distances={
            **{name: CategoryOrder(order) for name, order in orders.items()},
            **{name: one for name, one in distances.items() if name in used},
        },
        missing=missing,
        measures=tuple(measures),
        dtype="float64",
        any_known=known if isinstance(known, AnyKnown) else None,
    )
    job, _ = request.job(columns, table.rows, "host", lambda *_: None, None)
    subsets = request.subsets(table.rows)
    distinct = table.is_distinct and len(columns) == len(every)
    only_extremes = only_extremes and subsets is None and not job.wildcards
    job = replace(job, times=table.times, extremes_only=only_extremes, distinct=distinct)
    result = score_attacker(engine, job, None if subsets is None else subsets.sets, SILENT)
    places = range(len(criteria))
    if job.extremes_only:
        assert isinstance(result, EngineResult)
        return job, {
            name: [CellScores((float(found[place][0]), float(found[place][1])), None) for place in places]
            for name, found in result.extremes.items()
        }
    worst = result.by_fold()["" if subsets is None else "worst"]
    return job, {
        name: [CellScores(None, np.asarray(found[place])) for place in places] for name, found in worst.items()
    }
