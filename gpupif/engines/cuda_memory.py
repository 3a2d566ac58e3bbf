"""How much memory scoring takes on the device: counted array by array, held to what is measured in the tests."""

from __future__ import annotations

import numpy as np

from ..keys import KeyLayout
from .base import Job
from .partition import OVERSIZE

# Arrays of 8 bytes a row that are there at the same time at most, beside keys and scores: order before and after a
# sort, the sort's own buffers, heads, numbers, starts and sizes of runs, cells.
WORKING_ARRAYS = 17
# Beside them for a table that is there as a whole: counts, the distinct rows' numbers, one measure being made.
TABLE_ARRAYS = 4
# Where missing values match every value, beside those of a table that is there as a whole: rows by pattern, and as
# those of another pattern see them. Then of each asking key and pattern, and of each cell of cohorts made at once.
PATTERN_ARRAYS = 12
LINK_ARRAYS = 6
MATCH_ARRAYS = 24
# Scores of all rows that are on their way to the host while the next ones are made.
ROUNDS_OF_SCORES = 2
# Blocks are so much smaller than what fits: oversized ones, which are still scored as they are, fit too.
OVERSIZED_BLOCKS = 2 * OVERSIZE


def key_words(job: Job) -> int:
    """Words of the row keys."""
    return KeyLayout.of([len(counts) for counts in job.counts]).words


def row_bytes(job: Job) -> int:
    """Bytes a row of a block: keys, twice while they are copied, working arrays, statistics and scores of a target."""
    return 8 * (2 * key_words(job) + WORKING_ARRAYS + 2 * len(job.measures))


def table_bytes(job: Job) -> int:
    """Bytes for scoring the whole table on the device, priors included, without the scores of all targets."""
    values = sum(len(counts) for counts in job.counts)
    arrays = TABLE_ARRAYS + ROUNDS_OF_SCORES * len(job.measures)
    return job.rows * (row_bytes(job) + 8 * arrays) + 16 * values


def matching_bytes(job: Job) -> int:
    """Bytes for scoring where missing values match every value, without those of batches and the scores of targets."""
    return table_bytes(job) + 8 * job.rows * (2 * key_words(job) + PATTERN_ARRAYS)


def link_bytes(patterns: int) -> int:
    """Bytes for finding what a key matches in so many patterns."""
    return 8 * LINK_ARRAYS * patterns


def match_bytes(measures: int) -> int:
    """Bytes for a cell of a cohort of its own."""
    return 8 * (MATCH_ARRAYS + measures)


def score_bytes(job: Job) -> int:
    """Bytes of the scores of all targets."""
    if job.extremes_only:
        return 0
    cell = sum(np.dtype(measure.type_in(job.dtype)).itemsize for measure in job.measures)
    return cell * job.rows * len(job.targets)


def accumulator_bytes(job: Job, rows: int) -> int:
    """Bytes of the worst scores and the sums of a target over many attackers, for so many distinct rows."""
    return 2 * 8 * rows * len(job.measures)


def block_rows_that_fit(job: Job, memory: int) -> int:
    """Distinct rows that can be scored at once in so many bytes."""
    values = max(len(counts) for counts in job.counts)
    return max(1, (memory - 16 * values) // row_bytes(job))
