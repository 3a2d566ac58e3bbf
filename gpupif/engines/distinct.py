"""Equal rows collapsed: distinct rows with counts, in order of first appearance, and where each row went."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import distinct as kernels
from gpupif.kernels.spread import look_up

from .partition import BLOCK_ROWS, Blocks, Rows, index_type, partition_rows
from .workers import Workers

if TYPE_CHECKING:
    import numpy.typing as npt


@dataclass(frozen=True)
class Distinct:
    """rows: the distinct rows with counts. number[i]: which of them row i is."""

    rows: Rows
    number: npt.NDArray[Any]


def distinct_rows(rows: Rows, total: int, workers: Workers, block_rows: int = BLOCK_ROWS) -> Distinct:
    """Collapse equal rows, exactly; `total` is the sum of the counts."""
    size, words = rows.keys.shape
    everything = np.full(words, ~np.uint64(0))
    first = np.empty(size, index_type(size))
    counts = np.empty(size, index_type(total + 1))
    _find_first_rows(partition_rows(rows, everything, block_rows, workers), first, counts, workers)
    ranges = workers.ranges(size)
    found = workers.run(lambda a, b: kernels.count_first_rows(first, a, b), ranges)
    starts = np.cumsum([0, *found])
    keys = np.empty((starts[-1], words), np.uint64)
    distinct_counts = np.empty(starts[-1], counts.dtype)
    ids = np.empty(size, first.dtype)
    workers.run(
        lambda a, b, start: kernels.collect_first_rows(
            first, a, b, rows.keys, counts, start, (keys, distinct_counts, ids)
        ),
        [(*edges, start) for edges, start in zip(ranges, starts[:-1], strict=True)],
    )
    number = np.empty(size, first.dtype)
    workers.run(lambda a, b: look_up(ids, first, a, b, number), ranges)
    return Distinct(Rows(keys, distinct_counts), number)


def _find_first_rows(blocks: Blocks, first: npt.NDArray[Any], counts: npt.NDArray[Any], workers: Workers) -> None:
    """For each row the first row equal to it, and for such a first row how often it occurs."""
    rows = (blocks.rows.keys, blocks.rows.counts, blocks.hashes(workers))
    workers.run(
        lambda a, b: kernels.find_first_rows(blocks.order, rows, blocks.offsets, (a, b), first, counts),
        blocks.tasks(workers),
    )
