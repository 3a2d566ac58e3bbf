"""Targets scored on one partition of distinct rows, and their scores brought to all rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import cohorts, spread
from gpupif.kernels.groups import Room

from ..keys import KeyLayout
from .partition import CohortBlocks
from .run import Run
from .tally import Tally

if TYPE_CHECKING:
    import numpy.typing as npt

# Targets whose scores fit into a cache together are scored and spread to all rows before the next ones.
CACHED_BYTES = 1 << 24
# Otherwise those of a row lie side by side, as far as they fill a line of memory.
LINE_BYTES = 64


def plan_scores(rows: int, measures: int) -> tuple[int, int]:
    """How many targets to score at once, and how many of them to keep side by side in each distinct row.

    Spreading to all rows costs one access to far memory per row and line.
    """
    bytes_each = 8 * rows * measures
    if bytes_each <= CACHED_BYTES:
        return CACHED_BYTES // bytes_each, 1
    lanes = max(1, LINE_BYTES // (8 * measures))
    return lanes, lanes


def score_group(
    run: Run,
    blocks: CohortBlocks,
    layout: KeyLayout,
    index: npt.NDArray[Any],
    group: Sequence[int],
    distinct: float,
) -> None:
    """Score the targets `group` and put their scores and weights into the run.

    index: for each row of the table its place in the blocks. distinct: sum of c log2 c over all distinct rows.
    """
    rows = len(blocks.blocks.order)
    at_once, lanes = plan_scores(rows, len(run.numbers))
    for first in range(0, len(group), at_once):
        columns = group[first : first + at_once]
        beside = min(lanes, len(columns))
        scores = run.workers.empty((-(-len(columns) // beside), rows, beside, len(run.numbers)), np.float64)
        sizes = score_targets(run, blocks, layout, columns, scores)
        for target, column in enumerate(columns):
            run.weigh(column, sizes.sum_size_log_size(target), distinct)
        spread_scores(run, scores, index, columns)
        # Before the next ones are made, so that they take the same memory.
        del scores
        run.progress.advance(run.job.rows * len(columns))


def score_targets(
    run: Run, cohort_blocks: CohortBlocks, layout: KeyLayout, columns: Sequence[int], scores: npt.NDArray[np.float64]
) -> Tally:
    """Fill `scores` (see `kernels.cohorts.score_blocks`), rows in partition order; returns the cohorts by size."""
    blocks, rows = cohort_blocks.blocks, run.job.rows
    block_rows = (blocks.rows.keys, blocks.rows.counts, cohort_blocks.hashes)
    targets = describe(run, columns, layout)

    def score(first: int, last: int) -> Tally:
        largest = int(np.diff(blocks.offsets[first : last + 1]).max())
        room, sums = Room.of(largest), cohorts.Sums.of(largest, blocks.rows.counts.dtype)
        tally = Tally.of(len(columns), rows)
        cohorts.score_blocks(
            block_rows, blocks.offsets, (first, last), targets, run.numbers, room, sums, tuple(tally), scores
        )
        return tally

    sizes = Tally.total(run.workers.run(score, cohort_blocks.tasks), len(columns), rows)
    for start, stop, halves in cohort_blocks.children:
        for child in halves:
            here = [target for target, column in enumerate(columns) if column in child.targets]
            part = run.workers.empty((len(here), stop - start, 1, len(run.numbers)), np.float64)
            child_sizes = score_targets(run, child, layout, [columns[target] for target in here], part)
            for place, target in enumerate(here):
                sizes.add(target, child_sizes, place)
                whole = scores[target // scores.shape[2], start:stop, target % scores.shape[2]]
                whole[child.blocks.order] = part[place, :, 0]
    return sizes


def describe(run: Run, columns: Sequence[int], layout: KeyLayout) -> cohorts.Targets:
    """What the kernels need of these target columns."""
    job = run.job
    ends = np.cumsum([0, *(len(job.priors[column]) for column in columns)])
    alone = np.empty((ends[-1], len(run.numbers)))

    def score_values(target: int, start: int, stop: int) -> None:
        column, part = columns[target], alone[ends[target] : ends[target + 1]]
        priors, accuracy = (job.priors[column], job.log2_priors[column]), float(job.accuracies[column])
        cohorts.score_values(*priors, accuracy, start, stop, run.numbers, part)

    tasks = [
        (target, *edges)
        for target, column in enumerate(columns)
        for edges in run.workers.ranges(len(job.priors[column]))
    ]
    run.workers.run(score_values, tasks)
    return cohorts.Targets(
        np.array([layout.fields[column] for column in columns], np.uint64),
        ends[:-1],
        np.concatenate([job.priors[column] for column in columns]),
        np.concatenate([job.log2_priors[column] for column in columns]),
        np.array([job.accuracies[column] for column in columns], np.float64),
        alone,
        run.logs,
    )


def spread_scores(run: Run, scores: npt.NDArray[np.float64], index: npt.NDArray[Any], columns: Sequence[int]) -> None:
    """Scores of some targets from distinct rows to all rows."""
    job, lanes = run.job, scores.shape[2]
    for picks, out in run.values:
        for group, part in enumerate(scores if picks else ()):
            places = [job.targets.index(column) for column in columns[group * lanes : (group + 1) * lanes]]
            factors = [[run.weights[t] if job.measures[k].weighted else 1.0 for k in picks] for t in places]
            arguments = (part, np.array(places), np.array(picks), np.array(factors))
            tasks = [(*arguments, index[start:stop], start, out) for start, stop in run.workers.ranges(job.rows)]
            run.workers.run(spread.spread, tasks)
