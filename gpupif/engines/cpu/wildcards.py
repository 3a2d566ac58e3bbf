"""Missing values that match every value, on the CPU. `gpupif.kernels.wildcard_cohorts` explains the search."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from gpupif.kernels import pack
from gpupif.kernels import wildcard_cohorts as cohorts
from gpupif.kernels import wildcards as kernels
from gpupif.kernels.blocks import Scratch, only_needed, ordered_cells

from ...rows.distinct import Distinct, distinct_rows
from ...rows.keys import KeyLayout
from ...rows.partition import Rows
from ...rows.threads import TASKS_PER_THREAD, Workers
from ..base import EngineResult
from ..block_scoring import BlockRun, collapse_job, places_in, project
from ..kernel_inputs import kernel_values
from ..shared_scores import ScoredColumnScores
from ..wildcards import WildcardColumns, set_scored_column_weight

# Most links, pairs of a key and a pattern, of the keys that are scored at once.
MOST_LINKS = 1 << 23
LEAST_KEYS = 1 << 10
BATCH_CELLS = 1 << 14


def score_matching(run: BlockRun, scored_columns: Sequence[int]) -> EngineResult:
    """Score some scored columns of a run. Raise InputError if there are too many patterns of missing values."""
    job, layout = run.job, run.results.layout
    table = collapse_job(job, run.results.total, run.workers)
    asked, rows = WildcardColumns.known_for(job, layout), len(table.rows.keys)
    asked.check_work(len(scored_columns), len(_patterns(asked, table.rows.keys, run.workers)[0]), rows)
    inside = [column for column in scored_columns if column in job.known]
    for projected in [[column] for column in scored_columns if column not in job.known] + ([inside] if inside else []):
        columns = sorted({*job.known, *projected})
        whole = len(columns) == len(job.codes)
        part, words = (table, layout) if whole else project(run, table, layout, columns)
        for column in projected:
            _score(run, part, words, column)
    return run.results.finished(rows)


def _score(run: BlockRun, table: Distinct, layout: KeyLayout, column: int) -> None:
    """Score one scored column on the distinct rows over it and the known columns."""
    job, workers = run.job, run.workers
    known, order = _by_pattern(run, table.rows, layout, column)
    size, (values, axes, wanted) = len(job.priors[column]), only_needed(kernel_values(job, [column]), run.wanted)
    scores = workers.empty((len(order), len(run.wanted.measures)), np.float64)
    losses = np.empty(len(order))
    asked, results = (known, 0, values, axes, run.logs, wanted), (np.empty(len(order), np.int64), losses, scores)
    segments = _segments(known.offsets, workers.threads)
    longest = max(stop - start for _, start, stop in segments)

    def score(first: int, last: int) -> None:
        room = cohorts.Room.for_keys(known, longest, size)
        most = max(BATCH_CELLS, size + 1)
        memory = (room, Scratch.for_rows(most, np.int64, run.wanted.kinds), ordered_cells(most, run.wanted.kinds))
        kernels.score_patterns(asked, np.array(segments[first:last]), memory, results)

    workers.run(score, _tasks(segments, known.offsets, workers.threads))
    set_scored_column_weight(run.results, column, np.sort(losses))
    run.put(column, ScoredColumnScores(scores, places_in(order, workers), table.number))
    run.progress.advance(job.rows)


def _segments(offsets: npt.NDArray[np.int64], threads: int) -> list[tuple[int, int, int]]:
    """Return the segments of keys that are scored at once, each of one pattern: (pattern, first key, last key + 1)."""
    patterns, keys = len(offsets) - 1, int(offsets[-1])
    fair = -(-keys // (threads * TASKS_PER_THREAD))
    most = max(LEAST_KEYS, min(MOST_LINKS // patterns, fair))
    edges = offsets.tolist()
    return [
        (pattern, start, min(start + most, edges[pattern + 1]))
        for pattern in range(patterns)
        for start in range(edges[pattern], edges[pattern + 1], most)
    ]


def _tasks(
    segments: Sequence[tuple[int, int, int]], offsets: npt.NDArray[np.int64], threads: int
) -> list[tuple[int, int]]:
    """Return runs of segments, (first, last + 1), of about equal work."""
    keys = int(offsets[-1])
    lengths = np.array([stop - start for _, start, stop in segments])
    work = np.cumsum(keys + lengths * (len(offsets) - 1))
    number = min(len(segments), threads * TASKS_PER_THREAD)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, number) / number, side="left") + 1
    edges = np.unique([0, *cuts.tolist(), len(segments)]).tolist()
    return list(pairwise(edges))


def _patterns(
    asked: WildcardColumns, keys: npt.NDArray[np.uint64], workers: Workers
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Return the patterns of missing values, (patterns, words) of bits, in order, and the pattern of each key."""
    flags = np.zeros((len(keys), asked.words), np.uint64)
    fields, missing = asked.fields, asked.missing
    workers.run(lambda a, b: cohorts.mark_missing(keys[a:b], fields, missing, flags[a:b]), workers.ranges(len(keys)))
    found = distinct_rows(Rows(flags), len(keys), workers)
    order = np.lexsort(found.rows.keys.T)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return found.rows.keys[order], place[found.number]


def _by_pattern(
    run: BlockRun, rows: Rows, layout: KeyLayout, scored_column: int
) -> tuple[cohorts.Keys, npt.NDArray[np.int64]]:
    """Return the distinct rows sorted by pattern and key of known columns, and the order that sorts them."""
    workers, asked = run.workers, WildcardColumns.known_for(run.job, layout, scored_column)
    masks = layout.masks(asked.columns)
    masked = workers.empty(rows.keys.shape, np.uint64)
    workers.run(lambda a, b: np.bitwise_and(rows.keys[a:b], masks, out=masked[a:b]), workers.ranges(len(masked)))
    found = distinct_rows(Rows(masked, rows.counts), run.results.total, workers)
    patterns, pattern_of = _patterns(asked, found.rows.keys, workers)
    order, offsets = _sorted_by(pattern_of, len(patterns))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    row_order, starts = _sorted_by(place[found.number], len(order))
    word, shift, mask = layout.fields[scored_column]
    values = np.empty(len(row_order), np.int64)
    pack.unpack_column(rows.keys[row_order, word], shift, mask, values)
    known = cohorts.Keys(found.rows.keys[order], asked.keep(patterns), offsets, starts, values, rows.counts[row_order])
    return known, row_order


def _sorted_by(groups: npt.NDArray[np.int64], number: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the order that sorts by group, stably, and the first place of each group, with one more for the end."""
    starts = np.zeros(number + 1, np.int64)
    np.cumsum(np.bincount(groups, minlength=number), out=starts[1:])
    order = np.empty(len(groups), np.int64)
    cohorts.sort_by_group(groups, starts[:-1].copy(), order)
    return order, starts
