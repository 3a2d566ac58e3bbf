"""Scored columns scored on one partition of distinct rows, and their scores brought to all rows of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread
from gpupif.kernels.blocks import Out

from ..rows.keys import KeyLayout
from ..rows.partition import CohortBlocks, index_type
from ..utils.information import Sizes
from .block_run import BlockRun, ScoredColumns
from .cohort_sizes import CohortSizes
from .shared_scores import ScoredColumnScores


def score_group(
    run: BlockRun,
    blocks: CohortBlocks,
    layout: KeyLayout,
    index: npt.NDArray[Any],
    group: Sequence[int],
    distinct: Sizes,
) -> None:
    """Score the scored columns `group` and put their scores and weights into the run.

    index: for each row of the table its place in the blocks. distinct: all distinct rows by count.
    """
    rows, measures = len(blocks.blocks.order), len(run.job.measures)
    at_once = run.scorer.scored_columns_at_once(rows, measures)
    for first in range(0, len(group), at_once):
        columns = group[first : first + at_once]
        scored_columns = run.scorer.describe(run, columns, layout)
        out = empty_out(run, scored_columns, rows, scored_columns.values)
        scored_columns.put_values(out)
        sizes = score_scored_columns(run, blocks, scored_columns, out)
        for scored_column, column in enumerate(columns):
            run.results.weigh(column, sizes.sizes(scored_column), distinct)
            if run.job.extremes_only:
                find_extremes(run, out.scores[scored_column], out.places[scored_column], column)
            else:
                run.put(column, ScoredColumnScores(out.scores[scored_column], out.places[scored_column], index))
        # Before the next ones are made, so that they take the same memory.
        del out
        run.progress.advance(run.job.rows * len(columns))


def empty_out(run: BlockRun, scored_columns: ScoredColumns, rows: int, values: int) -> Out:
    """Memory for the scores of so many rows, and values by themselves."""
    number = len(scored_columns.columns)
    return Out(
        run.lasting((number, rows + values, len(run.wanted.measures)), np.float64),
        run.lasting((number, rows), index_type(rows + scored_columns.values + 1)),
    )


def score_scored_columns(run: BlockRun, blocks: CohortBlocks, scored_columns: ScoredColumns, out: Out) -> CohortSizes:
    """Fill `out` for the rows in partition order; returns the cohorts by size."""
    columns = scored_columns.columns
    shape = (len(columns), run.results.total, len(blocks.blocks.order))
    sizes = CohortSizes.sum(run.scorer.score(run, blocks, scored_columns, out), *shape)
    for start, stop, halves in blocks.children:
        for child in halves:
            # Of the child's scored columns, those that are scored now.
            here = [scored_column for scored_column, column in enumerate(columns) if column in child.scored_columns]
            if here:
                some = scored_columns.only(here)
                part = empty_out(run, some, stop - start, 0)
                child_sizes = score_scored_columns(run, child, some, part)
                for place, scored_column in enumerate(here):
                    sizes.add(scored_column, child_sizes, place)
                    out.scores[scored_column, start:stop] = part.scores[place]
                    # Behind the rows of the child are the values, as behind those of all.
                    own, more = part.places[place] < stop - start, out.places.shape[1] - (stop - start)
                    places = part.places[place].astype(out.places.dtype) + np.where(own, start, more).astype(
                        out.places.dtype
                    )
                    out.places[scored_column, start:stop][child.blocks.order] = places
    return sizes


def find_extremes(run: BlockRun, scores: npt.NDArray[np.float64], places: npt.NDArray[Any], column: int) -> None:
    """Lowest and highest scores of one scored column, from those of an `Out`."""

    def find(start: int, stop: int) -> npt.NDArray[np.float64]:
        found = np.tile([np.inf, -np.inf], (len(run.wanted.measures), 1))
        spread.find_extremes(scores, places[start:stop], found)
        return found

    found = np.array(run.workers.run(find, run.workers.ranges(len(places))))
    low, high = found[:, run.slots, 0].min(axis=0), found[:, run.slots, 1].max(axis=0)
    run.results.add_extremes(column, low, high)
