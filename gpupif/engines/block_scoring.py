"""A run that keeps the table on the host: distinct rows, partitions, and results there; `BlockRun.scorer` scores
blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread

from ..measures import Measure, wanted_of
from ..rows.distinct import Distinct, distinct_rows, look_up_rows
from ..rows.keys import KeyLayout
from ..rows.partition import BLOCK_ROWS, CohortBlocks, Rows, index_type, plan_passes
from ..rows.threads import Workers
from .base import EngineResult, Job
from .block_run import BlockRun
from .cohort_scores import score_group
from .cohort_sizes import sizes_of_counts

# Scores of values by themselves, for several numbers of rows, are so many at most, that a cache holds them.
SHARED_SCORES = 1 << 14


def working_memory(job: Job, at_once: int) -> int:
    """Bytes of all arrays with one item a row that scoring takes at most; most of them are used by turns.

    at_once: how many scored columns are scored before their scores are spread to all rows.
    """
    words, index = job.layout.words, np.dtype(index_type(job.total + 1)).itemsize
    places = job.rows + max((len(job.counts[column]) for column in job.scored_columns), default=0) + SHARED_SCORES
    scores = 8 * places * len(job.measures) * min(at_once, len(job.scored_columns))
    return job.rows * (5 * 8 * words + 14 * index) + scores


def collapse_job(job: Job, total: int, workers: Workers, block_rows: int = BLOCK_ROWS) -> Distinct:
    """The distinct rows of a job over all columns; total: what all rows count."""
    keys, kind = job.layout.pack(job.codes, workers), index_type(total + 1)
    if not job.distinct:
        rows = Rows(keys) if job.times is None else Rows(keys, job.times.astype(kind))
        return distinct_rows(rows, total, workers, block_rows)
    counts = np.ones(job.rows, kind) if job.times is None else job.times.astype(kind)
    return Distinct(Rows(keys, counts), np.arange(job.rows, dtype=index_type(job.rows)))


def shared_by_scored_columns(job: Job) -> list[Measure]:
    """The measures of rows, where they are the same for all scored columns: those of equal rows; others are scored
    anyway.
    """
    of_rows = [measure for measure in job.measures if measure.is_row_measure]
    everything = set(range(len(job.codes)))
    alike = everything == {*job.known} and len(job.scored_columns) > 1
    alike = alike and not job.extremes_only and not job.class_without_scored_column
    return of_rows if alike and len(of_rows) < len(job.measures) else []


def score_in_blocks(run: BlockRun, of_rows: Sequence[Measure] = ()) -> EngineResult:
    """Run all projections of the table that the scored columns need; the one for the scored columns among the known
    comes last.

    of_rows: further measures, see `shared_by_scored_columns`; of all scored columns they are one array.
    """
    job = run.job
    layout = run.results.layout
    # A list, so that whoever uses the table last can drop it and its memory is used again.
    tables = [collapse_job(job, run.results.total, run.workers, run.block_rows)]
    distinct = len(tables[0].rows.keys)
    shared = _score_rows(run, tables[0], of_rows) if of_rows else {}
    inside = [column for column in job.scored_columns if column in job.known]
    projections = [[column] for column in job.scored_columns if column not in job.known] + ([inside] if inside else [])
    for number, scored_columns in enumerate(projections):
        columns = sorted({*job.known, *scored_columns})
        if len(columns) < len(job.codes):
            part, words = project(run, tables[0], layout, columns)
            _score_projection(run, [part], words, scored_columns)
        else:
            _score_projection(run, tables if number == len(projections) - 1 else tables.copy(), layout, scored_columns)
    result = run.results.finished(distinct)
    return replace(result, values=result.values | shared)


def _score_rows(run: BlockRun, table: Distinct, measures: Sequence[Measure]) -> dict[str, npt.NDArray[Any]]:
    """Measures of rows by the sizes of the groups of equal ones, the same for all scored columns."""
    job, counts, number = run.job, table.rows.counts, table.number
    wanted, found = wanted_of(measures, job.unit), {}
    for measure, kind in zip(measures, wanted.measures, strict=True):
        out = np.empty(job.rows, measure.type_in(job.dtype))

        def score(first: int, last: int, kind: Any = kind, out: Any = out) -> None:
            spread.spread_sizes(counts, number[first:last], kind, wanted.unit, out[first:last])

        run.workers.run(score, run.workers.ranges(job.rows))
        found[measure.name] = np.broadcast_to(out, (len(job.scored_columns), job.rows))
    return found


def project(run: BlockRun, table: Distinct, layout: KeyLayout, columns: Sequence[int]) -> tuple[Distinct, KeyLayout]:
    """Distinct rows over some of the columns only."""
    projected, words, masks = layout.project(columns)
    wide = table.rows.keys
    keys = run.workers.empty((len(wide), len(words)), np.uint64)
    run.workers.run(
        lambda a, b: np.bitwise_and(wide[a:b][:, words], masks, out=keys[a:b]), run.workers.ranges(len(wide))
    )
    narrow = distinct_rows(Rows(keys, table.rows.counts), run.results.total, run.workers, run.block_rows)
    number = run.workers.empty(len(table.number), table.number.dtype)
    look_up_rows(narrow.number, table.number, number, run.workers)
    return Distinct(narrow.rows, number), projected


def _score_projection(run: BlockRun, tables: list[Distinct], layout: KeyLayout, scored_columns: Sequence[int]) -> None:
    """Score the scored columns on the table that is the only item of `tables`, which is empty afterwards."""
    rows, known = tables[0].rows, run.job.known
    distinct = sizes_of_counts(rows.counts, run.results.total, run.workers)
    passes = plan_passes(scored_columns, known, run.results.entropies, len(rows.keys), run.block_rows)
    del rows
    for number, group in enumerate(passes):
        blocks = CohortBlocks(tables[0].rows, layout, group, known, run.results.entropies, run.block_rows, run.workers)
        index = row_index(run, blocks.blocks.order, tables[0].number)
        if number == len(passes) - 1:
            tables.clear()
        score_group(run, blocks, layout, index, group, distinct)
        del blocks, index


def row_index(run: BlockRun, order: npt.NDArray[Any], number: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """For each row of the table, known by the number of its distinct row, its place where these lie in `order`."""
    place = places_in(order, run.workers)
    index = run.lasting(run.job.rows, place.dtype)
    look_up_rows(place, number, index, run.workers)
    return index


def places_in(order: npt.NDArray[Any], workers: Workers) -> npt.NDArray[Any]:
    """Where in this order of distinct rows each of them is."""
    place = workers.empty(len(order), index_type(len(order)))
    workers.run(lambda a, b: spread.invert(order[a:b], a, place), workers.ranges(len(order)))
    return place
