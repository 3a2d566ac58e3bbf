"""Equal rows collapsed: distinct rows with counts, in order of first appearance, and where each row went."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from gpupif.kernels import distinct as kernels
from gpupif.kernels.groups import Room
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


def somebody_first(times: npt.NDArray[Any] | None) -> npt.NDArray[np.intp] | None:
    """The order of rows in which those that stand for somebody come before the others; None for as they are.

    Sums over cohorts run in the order in which rows first appear for somebody: rows that stand for nobody, which are
    left out of cohorts, must not change it.
    """
    if times is None or times.all():
        return None
    return np.argsort(times == 0, kind="stable")


def distinct_somebody_first(rows: Rows, total: int, workers: Workers) -> Distinct:
    """As `distinct_rows`, in order of first appearance for somebody; rows with a count of 0 stand for nobody."""
    order = somebody_first(rows.counts)
    if order is None:
        return distinct_rows(rows, total, workers)
    found = distinct_rows(Rows(rows.keys[order], rows.counts[order]), total, workers)
    number = np.empty_like(found.number)
    number[order] = found.number
    return Distinct(found.rows, number)


def distinct_rows(rows: Rows, total: int, workers: Workers, block_rows: int = BLOCK_ROWS) -> Distinct:
    """Collapse equal rows, exactly; `total` is the sum of the counts."""
    size, words = rows.keys.shape
    everything = np.full(words, ~np.uint64(0))
    first = workers.empty(size, index_type(size))
    # Of each first row of its kind: one array for what is never needed together.
    count_then_number = workers.empty(size, index_type(total + 1))
    _find_first_rows(partition_rows(rows, everything, block_rows, workers), first, count_then_number, workers)
    ranges = workers.ranges(size)
    found = workers.run(lambda a, b: kernels.count_first_rows(first, a, b), ranges)
    starts = np.cumsum([0, *found])
    different = int(starts[-1])
    counts = workers.empty(different, count_then_number.dtype)
    distinct = Rows(workers.empty((different, words), np.uint64), counts)
    target = (distinct.keys, distinct.counts)
    workers.run(
        lambda edges, numbers: kernels.collect_first_rows(
            first, *edges, rows.keys, count_then_number, *numbers, target
        ),
        list(zip(ranges, pairwise(starts), strict=True)),
    )
    workers.run(lambda a, b: look_up(count_then_number, first[a:b], first[a:b]), ranges)
    return Distinct(distinct, first)


def _find_first_rows(blocks: Blocks, first: npt.NDArray[Any], counts: npt.NDArray[Any], workers: Workers) -> None:
    """For each row the first row equal to it, and for such a first row how often it occurs."""
    rows = (blocks.rows.keys, blocks.rows.counts, blocks.hashes(workers))

    def run(start: int, stop: int) -> None:
        largest = int(np.diff(blocks.offsets[start : stop + 1]).max())
        sizes = np.empty(largest, counts.dtype)
        kernels.find_first_rows(
            blocks.order, rows, blocks.offsets, (start, stop), Room.of(largest), sizes, first, counts
        )

    workers.run(run, blocks.tasks(workers))
