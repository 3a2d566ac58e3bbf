"""How much memory scoring takes on the device: counted array by array, held to what is measured in the tests."""

from __future__ import annotations

from ..keys import KeyLayout
from .base import Job
from .partition import OVERSIZE

# Arrays of 8 bytes a row that are there at the same time at most, beside keys and scores: order before and after a
# sort, the sort's own buffers, heads, numbers, starts and sizes of runs, gains.
WORKING_ARRAYS = 12
# Beside them for a table that is there as a whole: counts, the distinct rows' numbers, one measure of all rows.
TABLE_ARRAYS = 4
# Blocks are so much smaller than what fits: oversized ones, which are still scored as they are, fit too.
OVERSIZED_BLOCKS = 2 * OVERSIZE


def key_words(job: Job) -> int:
    """Words of the row keys."""
    return KeyLayout.of([len(counts) for counts in job.counts]).words


def row_bytes(job: Job) -> int:
    """Bytes a row of a block: keys, twice while they are copied, working arrays, and the scores of one target."""
    return 8 * (2 * key_words(job) + WORKING_ARRAYS + len(job.measures))


def table_bytes(job: Job, results: bool = False) -> int:
    """Bytes for scoring the whole table on the device, priors included, and the `results` where they stay there."""
    values = sum(len(counts) for counts in job.counts)
    kept = 8 * len(job.targets) * len(job.measures) if results else 0
    return job.rows * (row_bytes(job) + 8 * TABLE_ARRAYS + kept) + 16 * values


def block_rows_that_fit(job: Job, memory: int) -> int:
    """Distinct rows that can be scored at once in so many bytes."""
    values = max(len(counts) for counts in job.counts)
    return max(1, (memory - 16 * values) // row_bytes(job))
