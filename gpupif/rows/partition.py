"""Partitions of rows into blocks that fit the cache and hold cohorts whole.

All rows that agree on a set of columns P have the same hash over P, and get into one block. The rows of a cohort agree
on all known columns except the scored column. A partition by known columns therefore keeps the cohorts of every other
column whole. Two partitions, each by half of the columns, serve all columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import equal_rows, partition

from .keys import KeyLayout
from .threads import SMALLEST_TASK, TASKS_PER_THREAD, Workers

BLOCK_ROWS = 4096
OVERSIZE = 8
DIGIT_BITS = 11
NO_ROWS: npt.NDArray[np.uint32] = np.empty(0, np.uint32)


@dataclass(frozen=True)
class Rows:
    """Packed row keys (rows, words) and multiplicities. counts: (rows,); empty: 1 each."""

    keys: npt.NDArray[np.uint64]
    counts: npt.NDArray[Any] = field(default_factory=lambda: NO_ROWS)


@dataclass(frozen=True)
class Blocks:
    """Rows in partition order. order[i]: the place of row i before. offsets: block b has the rows offsets[b] to
    offsets[b + 1].
    """

    rows: Rows
    order: npt.NDArray[Any]
    offsets: npt.NDArray[np.int64]

    def hashes(self, workers: Workers) -> npt.NDArray[np.uint64]:
        """Return full hashes of the row keys; an empty array if a key is one word, which needs no hash."""
        keys = self.rows.keys
        rows, words = keys.shape
        hashes = workers.empty(rows if words > 1 else 0, np.uint64)
        if words > 1:
            masks = np.full(words, ~np.uint64(0))
            workers.run(lambda a, b: equal_rows.full_hashes(keys[a:b], masks, hashes[a:b]), workers.ranges(rows))
        return hashes

    def tasks(self, workers: Workers, largest: int | None = None) -> list[tuple[int, int]]:
        """Return runs of blocks (first, last + 1), a few for each thread, without blocks of over `largest` rows."""
        return self.runs(max(SMALLEST_TASK, len(self.order) // (workers.threads * TASKS_PER_THREAD)), largest)

    def runs(self, aim: int, largest: int | None = None) -> list[tuple[int, int]]:
        """Return runs of blocks (first, last + 1) that end as soon as they have `aim` rows; see `tasks`."""
        sizes = np.diff(self.offsets)
        tasks, first, rows = [], 0, 0
        for block, size in enumerate(sizes.tolist()):
            excluded = largest is not None and size > largest
            if excluded or rows >= aim:
                if first < block:
                    tasks.append((first, block))
                first, rows = block + excluded, 0
            rows += 0 if excluded else size
        if first < len(sizes):
            tasks.append((first, len(sizes)))
        return tasks


def index_type(rows: int) -> type[np.unsignedinteger[Any]]:
    """Return the narrowest type for row numbers and counts of a table. rows: number of rows."""
    return np.uint32 if rows < 2**32 else np.uint64


def partition_rows(rows: Rows, masks: npt.NDArray[np.uint64], block_rows: int, workers: Workers) -> Blocks:
    """Partition rows, stably, by the hash of their masked keys into blocks of about `block_rows` rows."""
    size = len(rows.keys)
    parts = max(1, -(-size // block_rows)) if masks.any() else 1
    ids = workers.empty(size if parts > 1 else 0, id_type(parts))
    if parts > 1:
        ranges = workers.ranges(size)
        workers.run(lambda a, b: partition.partition_ids(rows.keys[a:b], masks, parts, ids[a:b]), ranges)
    return partition_by(rows, ids, parts, workers)


def id_type(parts: int) -> type[np.unsignedinteger[Any]]:
    """Return the type of block numbers. parts: the number of blocks."""
    return np.uint16 if parts <= 2**16 else np.uint32


def partition_by(rows: Rows, ids: npt.NDArray[Any], parts: int, workers: Workers) -> Blocks:
    """Partition rows, stably, into blocks. ids: the block of each row; not read if `parts`, the number of blocks, is
    1.
    """
    size = len(rows.keys)
    if parts == 1:
        return Blocks(rows, np.arange(size, dtype=index_type(size)), np.array([0, size], np.int64))
    ranges = workers.ranges(size)
    bits = (parts - 1).bit_length()
    passes = -(-bits // DIGIT_BITS)
    digit_bits = -(-bits // passes)
    source: tuple[npt.NDArray[Any], ...] = (ids, NO_ROWS, rows.keys, rows.counts)
    for number in range(passes):
        source, sizes = _scatter(source, number * digit_bits, digit_bits, passes > 1, ranges, workers)
    sorted_ids, order, keys, counts = source
    if passes == 1:
        offsets = np.concatenate([[0], np.cumsum(sizes[:parts])])
    else:
        offsets = np.append(np.searchsorted(sorted_ids, np.arange(parts, dtype=sorted_ids.dtype)), size)
    return Blocks(Rows(keys, counts), order, offsets.astype(np.int64))


def _count(
    ids: npt.NDArray[Any], shift: int, mask: int, ranges: list[tuple[int, int]], workers: Workers
) -> npt.NDArray[np.int64]:
    """Count the rows by range and digit. A digit is the bits of the block number from `shift` on that `mask` keeps."""
    histograms = np.zeros((len(ranges), mask + 1), np.int64)
    tasks = [(chunk, *edges) for chunk, edges in enumerate(ranges)]
    workers.run(lambda c, a, b: partition.count_digits(ids[a:b], shift, mask, histograms[c]), tasks)
    return histograms


def _scatter(
    source: tuple[npt.NDArray[Any], ...],
    shift: int,
    digit_bits: int,
    keep_ids: bool,
    ranges: list[tuple[int, int]],
    workers: Workers,
) -> tuple[tuple[npt.NDArray[Any], ...], npt.NDArray[np.int64]]:
    """Do one stable pass of a radix sort by `digit_bits` bits of the block numbers. Return rows and the count of each
    digit.
    """
    ids, _, keys, counts = source
    mask = (1 << digit_bits) - 1
    histograms = _count(ids, shift, mask, ranges, workers)
    # Rows are ordered by digit, then by range: a range starts where the range before ends within the digit.
    by_digit = histograms.T.ravel()
    position = np.ascontiguousarray((np.cumsum(by_digit) - by_digit).reshape(-1, len(ranges)).T)
    order = workers.empty(len(ids), index_type(len(ids)))
    new_ids = workers.empty(len(ids) if keep_ids else 0, ids.dtype)
    outputs = (new_ids, order, workers.empty(keys.shape, keys.dtype), workers.empty(len(counts), counts.dtype))
    workers.run(
        lambda c, a, b: partition.scatter_rows(source, a, b, shift, mask, position[c], outputs),
        [(chunk, *edges) for chunk, edges in enumerate(ranges)],
    )
    return outputs, histograms.sum(axis=0)


def split(scored_columns: Sequence[int], entropies: Sequence[float]) -> tuple[list[int], list[int]]:
    """Split the scored columns into two halves of about equal entropy, so that partitions by either are about equally
    fine.

    Neither half is empty if there are two scored columns or more, even if all columns have a single value.
    """
    halves: tuple[list[int], list[int]] = ([], [])
    weights = [0.0, 0.0]
    for column in sorted(scored_columns, key=lambda column: (-entropies[column], column)):
        lighter = int((weights[0], len(halves[0])) > (weights[1], len(halves[1])))
        halves[lighter].append(column)
        weights[lighter] += entropies[column]
    return halves


def plan_passes(
    scored_columns: Sequence[int], known: Sequence[int], entropies: Sequence[float], rows: int, block_rows: int
) -> list[list[int]]:
    """Return sets of scored columns. Each set is scored on a partition by the known columns outside the set."""
    inside = {*scored_columns}
    outside = [column for column in known if column not in inside]
    bits_needed = math.log2(max(1.0, rows / block_rows))
    if len(scored_columns) == 1 or (outside and sum(entropies[column] for column in outside) >= bits_needed):
        return [list(scored_columns)]
    return [half for half in split(scored_columns, entropies) if half]


class CohortBlocks:
    """Blocks that hold all cohorts of some scored columns whole.

    An oversized block is cut again, for half of the scored columns at a time. The halves are its children.

    layout: the layout of the keys. scored_columns: the columns to score. known: the columns that the attacker knows.
        largest: the most rows of a block that is scored uncut; None: any number.
    """

    def __init__(
        self,
        rows: Rows,
        layout: KeyLayout,
        scored_columns: Sequence[int],
        known: Sequence[int],
        entropies: Sequence[float],
        block_rows: int,
        workers: Workers,
    ) -> None:
        self.scored_columns = list(scored_columns)
        inside = {*scored_columns}
        by = [column for column in known if column not in inside]
        self.blocks = partition_rows(rows, layout.masks(by), block_rows, workers)
        self.hashes = self.blocks.hashes(workers)
        self.children: list[tuple[int, int, list[CohortBlocks]]] = []
        self.largest = largest = OVERSIZE * block_rows if len(self.scored_columns) > 1 else None
        self.tasks = self.blocks.tasks(workers, largest)
        offsets = self.blocks.offsets
        for block in np.flatnonzero(np.diff(offsets) > largest).tolist() if largest else ():
            start, stop = int(offsets[block]), int(offsets[block + 1])
            part = Rows(self.blocks.rows.keys[start:stop], self.blocks.rows.counts[start:stop])
            halves = [half for half in split(self.scored_columns, entropies) if half]
            self.children.append(
                (
                    start,
                    stop,
                    [CohortBlocks(part, layout, half, known, entropies, block_rows, workers) for half in halves],
                )
            )
