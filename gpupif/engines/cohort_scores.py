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

# So many targets are scored and spread to all rows before the next ones that a cache holds their scores.
CACHED_BYTES = 1 << 24


def targets_at_once(rows: int, measures: int) -> int:
    """How many targets to score at once on so many distinct rows."""
    return max(1, CACHED_BYTES // (8 * rows * measures))


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
    at_once = targets_at_once(rows, len(run.numbers))
    for first in range(0, len(group), at_once):
        columns = group[first : first + at_once]
        scores = run.workers.empty((len(columns), rows, len(run.numbers)), np.float64)
        sizes = score_targets(run, blocks, describe(run, columns, layout), columns, scores)
        for target, column in enumerate(columns):
            run.weigh(column, sizes.sum_size_log_size(target), distinct)
            spread_scores(run, scores[target], index, column)
        # Before the next ones are made, so that they take the same memory.
        del scores
        run.progress.advance(run.job.rows * len(columns))


def score_targets(
    run: Run,
    cohort_blocks: CohortBlocks,
    targets: cohorts.Targets,
    columns: Sequence[int],
    scores: npt.NDArray[np.float64],
) -> Tally:
    """Fill `scores` (see `kernels.cohorts.score_blocks`), rows in partition order; returns the cohorts by size.

    targets: what kernels know of the columns (see `describe`).
    """
    blocks, rows = cohort_blocks.blocks, run.job.rows
    block_rows = (blocks.rows.keys, blocks.rows.counts, cohort_blocks.hashes)

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
            # Of the child's targets, those that are scored now.
            here = [target for target, column in enumerate(columns) if column in child.targets]
            if here:
                part = run.workers.empty((len(here), stop - start, len(run.numbers)), np.float64)
                child_sizes = score_targets(run, child, targets.only(here), [columns[target] for target in here], part)
                for place, target in enumerate(here):
                    sizes.add(target, child_sizes, place)
                    scores[target, start:stop][child.blocks.order] = part[place]
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


def spread_scores(run: Run, scores: npt.NDArray[np.float64], index: npt.NDArray[Any], column: int) -> None:
    """Scores of one target from distinct rows (rows, measures) to all rows, two measures of a type at a time."""
    job, target = run.job, run.job.targets.index(column)
    factors = [run.weights[target] if measure.weighted else 1.0 for measure in job.measures]
    for integer in (False, True):
        picks = [k for k, measure in enumerate(job.measures) if measure.integer == integer]
        for pair in (picks[k : k + 2] for k in range(0, len(picks), 2)):
            arguments = (scores, np.array(pair), np.array([factors[k] for k in pair]))
            tasks = [
                (*arguments, index[start:stop], tuple(run.values[k][target, start:stop] for k in pair))
                for start, stop in run.workers.ranges(len(index))
            ]
            run.workers.run(spread.spread, tasks)
