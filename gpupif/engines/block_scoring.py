"""Scores of a table whose codes are on the host, computed in blocks of distinct rows.

`score_in_blocks` has the steps: find the distinct rows, project them to the needed columns, cut them into blocks that
hold cohorts whole, score the blocks, and copy the scores to all rows. `BlockRun.scorer` scores on the CPU or GPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gpupif.kernels import spread
from gpupif.kernels.blocks import BlockScores

from ..measures import Measure, deduplicate, wanted_of
from ..rows.distinct import Distinct, distinct_rows, look_up_rows
from ..rows.keys import KeyLayout
from ..rows.partition import BLOCK_ROWS, CohortBlocks, Rows, index_type, plan_passes
from ..rows.threads import Workers
from ..utils.information import LogSum, Sizes, column_weight, conditional_entropy, entropy_of_counts, small_logs
from .base import EngineResult, Job, Progress
from .cohort_sizes import CohortSizes, sizes_of_counts
from .shared_scores import ScoredColumnScores, SharedScores, Taken, put_rows

PAGE_BYTES = 4096
# Most scores of one-value cohorts, for several sizes: a cache holds this number.
SHARED_SCORES = 1 << 14


class ScoredColumns(Protocol):
    """Scored columns, as a scorer describes them to its kernels.

    columns: their places in the job. values: most scores of one-value cohorts that `BlockScores` has for a scored
    column.
    """

    columns: Sequence[int]
    values: int

    def only(self, slots: list[int]) -> ScoredColumns:
        """Return the scored columns in some slots. slots: places in `columns`."""

    def put_values(self, out: BlockScores) -> None:
        """Append the scores of one-value cohorts to the scores of rows in `out`."""


class Scorer(Protocol):
    """A scorer of blocks of distinct rows, on the CPU or on GPUs."""

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """Return the number of scored columns to score at once. rows: distinct rows. measures: their number."""

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> Any:
        """Return these columns as `ScoredColumns`. layout: the layout of the row keys that have them."""

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: Any, out: BlockScores
    ) -> Sequence[CohortSizes]:
        """Fill `out` for the rows in partition order, except rows of children. Measures have the order of `run.wanted`.

        Return the number of cohorts of each size, in several items to be added up.
        """


class Results:
    """The results of a run so far: the weight of each scored column, and its scores or their extremes.

    empty: makes the arrays (scored columns, rows) of the scores, on the host or a device, from shape and type. None if
        the scores are to be `SharedScores`.
    """

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any] | None = np.empty) -> None:
        self.job = job
        self.layout = job.layout
        self._slots = {column: slot for slot, column in enumerate(job.scored_columns)}
        self.entropies = [entropy_of_counts(counts) for counts in job.counts]
        self.weights = [0.0] * len(job.scored_columns)
        nothing: Sizes | LogSum = Sizes.total([])
        self.cohorts, self.distinct = [nothing] * len(job.scored_columns), [nothing] * len(job.scored_columns)
        # Kept, because `job.total` adds up all multiplicities each time.
        self.total = job.total
        self.types = [measure.type_in(job.dtype) for measure in job.measures]
        shape = (len(job.scored_columns), job.rows)
        self.values = [] if empty is None or job.extremes_only else [empty(shape, kind) for kind in self.types]
        self._kept: dict[int, tuple[ScoredColumnScores, list[Taken]]] = {}
        self.extremes = np.zeros((len(job.measures), len(job.scored_columns), 2))

    def slot(self, column: int) -> int:
        """Return the place of a column of the job among its scored columns."""
        return self._slots[column]

    def weigh(self, column: int, cohorts: Sizes, distinct: Sizes) -> None:
        """Set the weight of a scored column. cohorts: its cohorts by size. distinct: distinct rows by multiplicity."""
        slot = self.slot(column)
        # Hardly any two sizes are equal with sampling weights, and the list of sizes would be long: keep their sum.
        weighted = self.job.unit is not None
        self.cohorts[slot] = cohorts.log_sum() if weighted else cohorts
        self.distinct[slot] = distinct.log_sum() if weighted else distinct
        conditional = conditional_entropy(cohorts.log_sum(), distinct.log_sum(), self.total)
        self.weights[slot] = column_weight(conditional, self.entropies[column])

    def keep(self, column: int, scores: ScoredColumnScores, taken: list[Taken]) -> None:
        """Keep the shared scores of a scored column. taken: for each measure, its slot, factor and type."""
        self._kept[self.slot(column)] = scores, taken

    def factors(self, column: int) -> list[float]:
        """Return, for each measure, the factor of the scores of a scored column: its weight, or 1."""
        weight = self.weights[self.slot(column)]
        return [weight if measure.weighted else 1.0 for measure in self.job.measures]

    def add_extremes(self, column: int, low: npt.NDArray[np.float64], high: npt.NDArray[np.float64]) -> None:
        """Set the lowest and highest scores of a scored column, by measure. low, high: before any weighting."""
        self.extremes[:, self.slot(column)] = np.stack([low, high], axis=1) * np.array(self.factors(column))[:, None]

    def finished(self, distinct_rows: int) -> EngineResult:
        """Return the result of the engine, after all scored columns are scored."""
        names = [measure.name for measure in self.job.measures]
        values: dict[str, Any] = {}
        extremes: dict[str, Any] = {}
        if self.job.extremes_only:
            extremes = dict(zip(names, self.extremes, strict=True))
        elif self._kept:
            kept = [self._kept[slot] for slot in range(len(self.job.scored_columns))]
            scores = [one for one, _ in kept]
            for measure, (name, kind) in enumerate(zip(names, self.types, strict=True)):
                values[name] = SharedScores(scores, [taken[measure] for _, taken in kept], np.dtype(kind))
        else:
            values = dict(zip(names, self.values, strict=True))
        return EngineResult(values, self.weights, distinct_rows, self.cohorts, self.distinct, extremes)


class BlockRun:
    """The state of a run: the job, its scorer and workers, and its results so far.

    wanted: the distinct computations of the kernels. scored_as: for each measure of the job, its place in `wanted`.
    logs: log2 of small counts. shares: whether scores stay `SharedScores`: if the job takes scores on either device.
    """

    def __init__(self, job: Job, progress: Progress, workers: Workers, block_rows: int, scorer: Scorer) -> None:
        self.job = job
        self.progress = progress
        self.workers = workers
        self.block_rows = block_rows
        self.scorer = scorer
        computed, self.scored_as = deduplicate(job.measures)
        self.wanted = wanted_of(computed, job.unit)
        self.logs = small_logs()
        self.shares = job.scores_on == "either" and not job.extremes_only
        self.results = Results(job, None if self.shares else np.empty)
        for values in self.results.values:
            self._touch(values)

    def lasting(self, shape: int | tuple[int, ...], dtype: Any) -> npt.NDArray[Any]:
        """Return an array for the arguments of `put`: in the working memory, or outside it if the scores are shared."""
        if self.shares:
            return np.empty(shape, dtype)
        return self.workers.empty(shape, dtype)

    def put(self, column: int, scores: ScoredColumnScores) -> None:
        """Copy the scores of a scored column to all rows, or keep them shared."""
        results = self.results
        taken = [
            Taken(place, factor, np.dtype(kind))
            for place, factor, kind in zip(self.scored_as, results.factors(column), results.types, strict=True)
        ]
        if self.shares:
            results.keep(column, scores, taken)
            return
        outs = [values[results.slot(column)] for values in results.values]

        def put(start: int, stop: int) -> None:
            put_rows(scores, taken, start, [out[start:stop] for out in outs])

        self.workers.run(put, self.workers.ranges(self.job.rows))

    def _touch(self, values: npt.NDArray[Any]) -> None:
        """Touch the memory of results now: page faults later would push the scores out of the caches."""
        flat = values.reshape(-1)
        step = PAGE_BYTES // values.itemsize

        def touch(start: int, stop: int) -> None:
            flat[start:stop:step] = 0

        self.workers.run(touch, self.workers.ranges(flat.size))


def collapse_job(job: Job, total: int, workers: Workers, block_rows: int = BLOCK_ROWS) -> Distinct:
    """Return the distinct rows of a job over all columns. total: the sum of all multiplicities."""
    keys, kind = job.layout.pack(job.codes, workers), index_type(total + 1)
    if not job.distinct:
        rows = Rows(keys) if job.multiplicities is None else Rows(keys, job.multiplicities.astype(kind))
        return distinct_rows(rows, total, workers, block_rows)
    counts = np.ones(job.rows, kind) if job.multiplicities is None else job.multiplicities.astype(kind)
    return Distinct(Rows(keys, counts), np.arange(job.rows, dtype=index_type(job.rows)))


def shared_by_scored_columns(job: Job) -> list[Measure]:
    """Return the measures of rows, if they are equal for all scored columns; else an empty list.

    They are equal if the attacker knows all columns. The list is empty if the job has no other measures: then nothing
    is saved.
    """
    of_rows = [measure for measure in job.measures if measure.is_row_measure]
    everything = set(range(len(job.codes)))
    alike = everything == {*job.known} and len(job.scored_columns) > 1
    alike = alike and not job.extremes_only and not job.class_without_scored_column
    return of_rows if alike and len(of_rows) < len(job.measures) else []


def score_in_blocks(run: BlockRun, of_rows: Sequence[Measure] = ()) -> EngineResult:
    """Score the table of a run, in one projection for each set of columns that its scored columns need.

    The attacker knows `job.known` except the scored column. The known scored columns therefore share the projection to
    the known columns, which is scored last. Any other scored column needs a projection to itself and the known columns.

    of_rows: further measures, see `shared_by_scored_columns`. All scored columns share one array of their scores.
    """
    job = run.job
    layout = run.results.layout
    # In a list, from which the last user deletes the table, because its memory is needed then.
    tables = [collapse_job(job, run.results.total, run.workers, run.block_rows)]
    distinct = len(tables[0].rows.keys)
    shared = _score_rows(run, tables[0], of_rows) if of_rows else {}
    known = {*job.known}
    inside = [column for column in job.scored_columns if column in known]
    projections = [[column] for column in job.scored_columns if column not in known] + ([inside] if inside else [])
    for number, scored_columns in enumerate(projections):
        columns = sorted({*job.known, *scored_columns})
        if len(columns) < len(job.codes):
            projected, narrow = project(run, tables[0], layout, columns)
            _score_projection(run, [projected], narrow, scored_columns)
        else:
            _score_projection(run, tables if number == len(projections) - 1 else tables.copy(), layout, scored_columns)
    result = run.results.finished(distinct)
    return replace(result, values=result.values | shared)


def _score_rows(run: BlockRun, table: Distinct, measures: Sequence[Measure]) -> dict[str, npt.NDArray[Any]]:
    """Return measures of rows from the multiplicities of distinct rows, as one array for all scored columns."""
    job, counts, number = run.job, table.rows.counts, table.number
    wanted, values = wanted_of(measures, job.unit), {}
    for measure, kind in zip(measures, wanted.measures, strict=True):
        out = np.empty(job.rows, measure.type_in(job.dtype))

        def score(first: int, last: int, kind: Any = kind, out: Any = out) -> None:
            spread.spread_sizes(counts, number[first:last], kind, wanted.unit, out[first:last])

        run.workers.run(score, run.workers.ranges(job.rows))
        values[measure.name] = np.broadcast_to(out, (len(job.scored_columns), job.rows))
    return values


def project(run: BlockRun, table: Distinct, layout: KeyLayout, columns: Sequence[int]) -> tuple[Distinct, KeyLayout]:
    """Return the distinct rows over some of the columns only, and the layout of their keys.

    The columns are the known columns and the scored ones. From here on, a key holds no other columns, so that the
    kernel takes all bits except those of the scored column as known: `known_bits` in `kernels/blocks.py`.
    """
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
    """Score the scored columns on the only table in `tables`, and delete it from the list before the last pass."""
    rows, known = tables[0].rows, run.job.known
    distinct = sizes_of_counts(rows.counts, run.results.total, run.workers)
    entropies = run.results.entropies
    passes = plan_passes(scored_columns, known, entropies, len(rows.keys), run.block_rows)
    del rows
    for number, columns in enumerate(passes):
        blocks = CohortBlocks(
            tables[0].rows, layout, columns, known, run.results.entropies, run.block_rows, run.workers
        )
        place = places_in(blocks.blocks.order, run.workers)
        # The place of each row's distinct row in the blocks.
        index = run.lasting(run.job.rows, place.dtype)
        look_up_rows(place, tables[0].number, index, run.workers)
        del place
        if number == len(passes) - 1:
            tables.clear()
        _score_pass(run, blocks, layout, index, columns, distinct)
        del blocks, index


def places_in(order: npt.NDArray[Any], workers: Workers) -> npt.NDArray[Any]:
    """Return the place of each distinct row in an order. order: the distinct rows, in this order."""
    place = workers.empty(len(order), index_type(len(order)))
    workers.run(lambda a, b: spread.invert(order[a:b], a, place), workers.ranges(len(order)))
    return place


def _score_pass(
    run: BlockRun,
    blocks: CohortBlocks,
    layout: KeyLayout,
    index: npt.NDArray[Any],
    scored_columns: Sequence[int],
    distinct: Sizes,
) -> None:
    """Score some scored columns on blocks that hold their cohorts whole, and put scores and weights into the run.

    index: for each row of the table, its place in the blocks. distinct: the number of distinct rows of each count.
    """
    rows, measures = len(blocks.blocks.order), len(run.job.measures)
    at_once = run.scorer.scored_columns_at_once(rows, measures)
    for first in range(0, len(scored_columns), at_once):
        described = run.scorer.describe(run, scored_columns[first : first + at_once], layout)
        out = _empty_out(run, described, rows, described.values)
        described.put_values(out)
        sizes = score_blocks_and_children(run, blocks, described, out)
        for slot, column in enumerate(described.columns):
            run.results.weigh(column, sizes.sizes(slot), distinct)
            if run.job.extremes_only:
                _find_extremes(run, out.scores[slot], out.places[slot], column)
            else:
                run.put(column, ScoredColumnScores(out.scores[slot], out.places[slot], index))
        # The next scores use the same memory.
        del out
        run.progress.advance(run.job.rows * len(described.columns))


def _empty_out(run: BlockRun, scored_columns: ScoredColumns, rows: int, values: int) -> BlockScores:
    """Return memory for scores. rows: number of rows. values: number of one-value cohorts."""
    number = len(scored_columns.columns)
    return BlockScores(
        run.lasting((number, rows + values, len(run.wanted.measures)), np.float64),
        run.lasting((number, rows), index_type(rows + scored_columns.values + 1)),
    )


def score_blocks_and_children(
    run: BlockRun, blocks: CohortBlocks, scored_columns: ScoredColumns, out: BlockScores
) -> CohortSizes:
    """Fill `out` for the rows in partition order, and return the cohorts by size. Children fill oversized blocks."""
    columns = scored_columns.columns
    shape = (len(columns), run.results.total, len(blocks.blocks.order))
    sizes = CohortSizes.sum(run.scorer.score(run, blocks, scored_columns, out), *shape)
    for start, stop, halves in blocks.children:
        for child in halves:
            slots = [slot for slot, column in enumerate(columns) if column in child.scored_columns]
            if slots:
                some = scored_columns.only(slots)
                own = _empty_out(run, some, stop - start, 0)
                child_sizes = score_blocks_and_children(run, child, some, own)
                for child_slot, slot in enumerate(slots):
                    sizes.add(slot, child_sizes, child_slot)
                    out.scores[slot, start:stop] = own.scores[child_slot]
                    # Places after the last row are one-value cohorts. They begin later in `out` than in the child.
                    of_row, more = own.places[child_slot] < stop - start, out.places.shape[1] - (stop - start)
                    kind = out.places.dtype
                    places = own.places[child_slot].astype(kind) + np.where(of_row, start, more).astype(kind)
                    out.places[slot, start:stop][child.blocks.order] = places
    return sizes


def _find_extremes(run: BlockRun, scores: npt.NDArray[np.float64], places: npt.NDArray[Any], column: int) -> None:
    """Find the lowest and highest scores of one scored column. scores, places: from an `BlockScores`."""

    def find(start: int, stop: int) -> npt.NDArray[np.float64]:
        extremes = np.tile([np.inf, -np.inf], (len(run.wanted.measures), 1))
        spread.find_extremes(scores, places[start:stop], extremes)
        return extremes

    extremes = np.array(run.workers.run(find, run.workers.ranges(len(places))))
    low, high = extremes[:, run.scored_as, 0].min(axis=0), extremes[:, run.scored_as, 1].max(axis=0)
    run.results.add_extremes(column, low, high)
