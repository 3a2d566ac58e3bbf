"""Routes of rows to partitions: every cohort is in one partition, and no partition is much larger than the others.

A pass puts rows into bins by the hash of the columns outside its scored columns. Bins are assigned to partitions, the
heaviest bin first. A bin is too heavy if one combination of values is frequent. Its rows are sent once for each half of
the scored columns, and the other half's columns are hashed too. The weight of bins is estimated from a sample of the
rows; scores do not depend on the sample.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..engines.partition_plan import Pass, plan_shuffles
from ..rows.distinct import distinct_rows
from ..rows.partition import Rows, index_type, split
from ..rows.threads import Workers
from ..utils.information import entropy_of_counts
from .one_partition_memory import check_one_partition
from .shuffle_messages import partition_of_keys
from .table_plan import Plan

# Largest number of rows of a chunk in the sample.
SAMPLED_ROWS = 1024
# Bins for each partition; and the share of the mean partition above which a bin is cut finer.
BINS_PER_PARTITION = 8
HEAVY = 0.5


class Sample(NamedTuple):
    """Some distinct rows of chunks.

    keys: array (rows, words). The keys of the rows.
    weights: array, one for each row. The number of distinct rows of its chunk that it represents.
    """

    keys: npt.NDArray[np.uint64]
    weights: npt.NDArray[np.float64]


@dataclass(frozen=True)
class RoutedPass:
    """A cut: rows that are brought together to find the cohorts of some scored columns.

    scored_columns: list of int. The scored columns.
    by: list of int. The columns whose hash gives the bin of a row.
    places: array, one for each bin. The partition of the bin; -1 for a heavy bin, whose rows are sent by the cuts
    `finer`.
    finer: list of int. The numbers of these cuts in `Routes.cuts`.
    whole: bool. Whether rows keep the columns that this cut does not need.
    """

    scored_columns: list[int]
    by: list[int]
    places: npt.NDArray[np.int32]
    finer: list[int]
    whole: bool = False


@dataclass(frozen=True)
class Routes:
    """All cuts of a shuffle.

    roots: list of int. The cuts that all rows begin with.
    partitions: int. The number of partitions.
    chunks: int. The number of chunks of the table that send rows.
    senders: int. The number of chunks that send rows, with the chunks of a population.
    """

    cuts: list[RoutedPass]
    roots: list[int]
    partitions: int
    chunks: int
    senders: int


@dataclass(frozen=True)
class Send:
    """The rows of one chunk that are sent in one cut.

    rows: Rows. The rows to send, in order of first appearance.
    source_rows: array. The distinct rows of the chunk that `rows` represent.
    place: array, one for each of `source_rows`. Its number among `rows`.
    dest: array, one for each of `rows`. The partition of the row.
    """

    cut: int
    rows: Rows
    source_rows: npt.NDArray[Any]
    place: npt.NDArray[Any]
    dest: npt.NDArray[np.int32]


def sample_rows(rows: Rows) -> Sample:
    """Return a sample of the distinct rows of a chunk; repeated calls return equal samples."""
    size = len(rows.keys)
    if size <= SAMPLED_ROWS:
        return Sample(rows.keys, np.ones(size))
    chosen = np.unique(np.random.default_rng(size).integers(0, size, SAMPLED_ROWS))
    return Sample(rows.keys[chosen], np.full(len(chosen), size / len(chosen)))


def add_samples(*samples: Sample) -> Sample:
    """Return the samples of several chunks as one."""
    return Sample(*(np.concatenate(arrays) for arrays in zip(*samples, strict=True)))


def plan_routes(plan: Plan, chunks: int, senders: int, partitions: int, sample: Sample) -> Routes:
    """Return the cuts that spread rows over this number of partitions; see `Routes` for the arguments."""
    job = plan.job
    entropies = [entropy_of_counts(counts) for counts in job.counts]
    if plan.in_one_partition:
        check_one_partition(plan)
        passes = [Pass(list(job.scored_columns), [])]
    else:
        passes = plan_shuffles(job, plan.distinct, -(-plan.distinct // partitions))
    aim = float(sample.weights.sum()) * len(passes) / partitions
    cuts: list[RoutedPass] = []
    light: list[tuple[float, int, int]] = []
    waiting = deque((one, sample) for one in passes)
    while waiting:
        one, (keys, weights) = waiting.popleft()
        halves = [] if plan.in_one_partition else _halves(one, job.known, entropies)
        bins = max(1, int(BINS_PER_PARTITION * weights.sum() / aim)) if one.by else 1
        found = partition_of_keys(keys, plan.layout, one.by, bins)
        sizes = np.bincount(found, weights, bins)
        heavy = (sizes > HEAVY * aim) if halves and partitions > 1 else np.zeros(bins, bool)
        light += [(-size, len(cuts), number) for number, size in enumerate(sizes.tolist()) if not heavy[number]]
        # Cuts are numbered in the order of the queue, so the cuts that wait now come before these.
        first = len(cuts) + 1 + len(waiting)
        finer = list(range(first, first + len(halves))) if heavy.any() else []
        cuts.append(RoutedPass(one.scored_columns, one.by, np.full(bins, -1, np.int32), finer))
        if finer:
            rest = Sample(keys[heavy[found]], weights[heavy[found]])
            waiting.extend((half, rest) for half in halves)
    loads = [(0.0, partition) for partition in range(partitions)]
    for size, cut, number in sorted(light):
        load, partition = heapq.heappop(loads)
        cuts[cut].places[number] = partition
        heapq.heappush(loads, (load - size, partition))
    return Routes(cuts, list(range(len(passes))), partitions, chunks, senders)


def hash_routes(passes: Sequence[Pass], partitions: int, chunks: int, senders: int) -> Routes:
    """Return the routes of passes, each with partitions of its own, one for each bin.

    partitions: int. The number of partitions of each pass.
    Rows keep all columns in the first pass, so that distinct rows can be counted there.
    """
    cuts = []
    for number, one in enumerate(passes):
        places = np.arange(partitions if one.by else 1, dtype=np.int32) + np.int32(number * partitions)
        cuts.append(RoutedPass(one.scored_columns, one.by, places, [], whole=number == 0))
    return Routes(cuts, list(range(len(cuts))), len(cuts) * partitions, chunks, senders)


def _halves(one: Pass, known: Sequence[int], entropies: Sequence[float]) -> list[Pass]:
    """Return a pass as two halves of its scored columns, or nothing if halves do not help.

    Halves help if they cut finer, or if each half has fewer distinct rows than the pass.
    """
    groups = [half for half in split(one.scored_columns, entropies) if half]
    if len(groups) < 2:
        return []
    halves = [Pass(group, [column for column in known if column not in group]) for group in groups]
    finer = any(set(half.by) > set(one.by) for half in halves)
    return halves if finer or any(scored_column not in known for scored_column in one.scored_columns) else []


def find_sends(rows: Rows, plan: Plan, routes: Routes, workers: Workers) -> Iterator[Send]:
    """Yield the sends of the distinct rows of a chunk; repeated calls yield equal sends in the same order."""
    every = np.arange(len(rows.keys), dtype=index_type(len(rows.keys)))
    # The largest possible count. Weights may be 0, so their total may be smaller than the number of rows.
    total = max(plan.total, plan.rows, 0 if plan.population is None else plan.population.total)
    if len(every) == 0:
        return
    waiting = deque((root, frozenset(plan.layout.fields), rows, every, every) for root in routes.roots)
    while waiting:
        number, columns, sent, source_rows, place = waiting.popleft()
        cut = routes.cuts[number]
        needed = columns & {*plan.job.known, *cut.scored_columns}
        if needed < columns and not cut.whole:
            # Rows become equal if they differ only in columns that this cut does not need.
            keys = sent.keys & plan.layout.masks(needed)
            narrow = distinct_rows(Rows(keys, sent.counts), total, workers)
            sent, place = narrow.rows, narrow.number[place]
        dest = cut.places[partition_of_keys(sent.keys, plan.layout, cut.by, len(cut.places))]
        stay = dest >= 0
        if stay.any():
            yield Send(number, *_keep(stay, sent, source_rows, place), dest=dest[stay])
        if not stay.all():
            heavy = _keep(~stay, sent, source_rows, place)
            waiting.extend((finer, needed, *heavy) for finer in cut.finer)


def _keep(
    keep: npt.NDArray[np.bool_], sent: Rows, source_rows: npt.NDArray[Any], place: npt.NDArray[Any]
) -> tuple[Rows, npt.NDArray[Any], npt.NDArray[Any]]:
    """Return selected rows of a send, and the rows of the chunk that they represent; see `Send`."""
    if keep.all():
        return sent, source_rows, place
    there = keep[place]
    kept = (np.cumsum(keep) - 1).astype(place.dtype)
    return Rows(sent.keys[keep], sent.counts[keep]), source_rows[there], kept[place[there]]
