"""Targets scored on one partition of distinct rows, and their scores brought to all rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import spread

from ..information import Sizes
from ..keys import KeyLayout
from .partition import CohortBlocks
from .run import Run, Targets
from .tally import Tally

if TYPE_CHECKING:
    import numpy.typing as npt


def score_group(
    run: Run,
    blocks: CohortBlocks,
    layout: KeyLayout,
    index: npt.NDArray[Any],
    group: Sequence[int],
    distinct: Sizes,
) -> None:
    """Score the targets `group` and put their scores and weights into the run.

    index: for each row of the table its place in the blocks. distinct: all distinct rows by count.
    """
    rows = len(blocks.blocks.order)
    at_once = run.scorer.targets_at_once(rows, len(run.numbers))
    for first in range(0, len(group), at_once):
        columns = group[first : first + at_once]
        scores = run.workers.empty((len(columns), rows, len(run.numbers)), np.float64)
        sizes = score_targets(run, blocks, run.scorer.describe(run, columns, layout), scores)
        for target, column in enumerate(columns):
            run.results.weigh(column, sizes.sizes(target), distinct)
            spread_scores(run, scores[target], index, column)
        # Before the next ones are made, so that they take the same memory.
        del scores
        run.progress.advance(run.job.rows * len(columns))


def score_targets(run: Run, blocks: CohortBlocks, targets: Targets, scores: npt.NDArray[np.float64]) -> Tally:
    """Fill `scores` (targets, rows in partition order, measures); returns the cohorts by size."""
    columns = targets.columns
    shape = (len(columns), run.results.total, len(blocks.blocks.order))
    sizes = Tally.sum(run.scorer.score(run, blocks, targets, scores), *shape)
    for start, stop, halves in blocks.children:
        for child in halves:
            # Of the child's targets, those that are scored now.
            here = [target for target, column in enumerate(columns) if column in child.targets]
            if here:
                part = run.workers.empty((len(here), stop - start, len(run.numbers)), np.float64)
                child_sizes = score_targets(run, child, targets.only(here), part)
                for place, target in enumerate(here):
                    sizes.add(target, child_sizes, place)
                    scores[target, start:stop][child.blocks.order] = part[place]
    return sizes


def spread_scores(run: Run, scores: npt.NDArray[np.float64], index: npt.NDArray[Any], column: int) -> None:
    """Scores of one target from distinct rows (rows, measures) to all rows, two measures of a type at a time."""
    job, target = run.job, run.job.targets.index(column)
    factors = [run.results.weights[target] if measure.weighted else 1.0 for measure in job.measures]
    for integer in (False, True):
        picks = [k for k, measure in enumerate(job.measures) if measure.integer == integer]
        for pair in (picks[k : k + 2] for k in range(0, len(picks), 2)):
            arguments = (scores, np.array(pair), np.array([factors[k] for k in pair]))
            tasks = [
                (*arguments, index[start:stop], tuple(run.results.values[k][target, start:stop] for k in pair))
                for start, stop in run.workers.ranges(len(index))
            ]
            run.workers.run(spread.spread, tasks)
