"""Attackers who know any few of the columns, on devices: each cell's worst and mean score over all of them.

As on the CPU (see `any_known`), rows are collapsed to distinct ones, and for each set of columns these to combinations
of its values, which are scored as a table of their own; then each row takes its combination's scores. Devices share
the targets, so that each target's sums run in the order of the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpupif.kernels.cuda import any_known as kernels
from gpupif.kernels.spread import look_up

from ...gpu.base import DeviceMemoryError, Library
from ...rows.distinct import Distinct, distinct_rows
from ...rows.keys import KeyLayout
from ...rows.partition import NO_ROWS, Rows, index_type
from ...rows.threads import Workers
from ...utils.information import column_weight, conditional_entropy, entropy_of_counts
from ..base import AnyKnownResult, Job, KnownSubset, Progress
from ..block_scoring import pack_keys as pack_keys_on_host
from .grouping import Grouping, collapse_table
from .memory import accumulator_bytes, all_values, fixed_bytes, row_bytes
from .numbering import RowNumberer, numbering_bytes
from .outbox import Outbox
from .rows import DeviceRows, sizes_of
from .scores import TargetUploader, score_targets

if TYPE_CHECKING:
    import numpy.typing as npt

# Arrays of scores of all rows, of 8 bytes each, that are there at once while they go to where they are kept.
SPREAD_ARRAYS = 4


class TargetsTooManyError(Exception):
    """So many targets at once do not fit beside so many distinct rows."""

    def __init__(self, library: Library, targets: int, rows: int) -> None:
        self.library, self.targets, self.rows = library, targets, rows


class AnyKnownJob(NamedTuple):
    """One run: what is asked, and how it is done.

    streams: the libraries of each device. share: of the devices' free memory what is planned with. most: targets at
    once at most.
    """

    job: Job
    sets: Sequence[KnownSubset]
    progress: Progress
    streams: Sequence[Sequence[Library]]
    grouping: Grouping
    share: float
    most: int

    def bytes_needed(self, rows: int, targets: int) -> int:
        """Bytes beside so many distinct rows, to score so many targets at once."""
        columns = max(len(one.columns) for one in self.sets)
        scored = rows * row_bytes(self.job, self.grouping.name) + fixed_bytes(all_values(self.job))
        accumulators = targets * accumulator_bytes(self.job, rows)
        spread = 8 * SPREAD_ARRAYS * self.job.rows
        return scored + numbering_bytes(rows, columns) + accumulators + spread


class _Results:
    """Scores (targets, rows) by measure, and by target its weights; empty: makes arrays of the host or a device."""

    def __init__(self, job: Job, empty: Callable[[tuple[int, int], str], Any]) -> None:
        shape = (len(job.targets), job.rows)
        self.worst = {one.name: empty(shape, one.type_in(job.dtype)) for one in job.measures}
        self.mean = {one.name: empty(shape, job.dtype) for one in job.measures}
        self.weights: dict[int, list[float]] = {column: [] for column in job.targets}

    def finished(self, distinct_rows: int) -> AnyKnownResult:
        return AnyKnownResult(self.worst, self.mean, [np.array(each) for each in self.weights.values()], distinct_rows)


def score_on_devices(asked: AnyKnownJob, on_device: bool) -> AnyKnownResult:
    """Rows are collapsed on each device, and scores spread there to all rows; on_device: they stay on the first one.

    Raises DeviceMemoryError or TargetsTooManyError.
    """
    job, home = asked.job, asked.streams[0][0]
    with home.active():
        results = _Results(job, home.empty if on_device else np.empty)

    def begin(device: Sequence[Library], outbox: Outbox) -> _DeviceRun:
        library = device[0]
        layout = KeyLayout.of([len(counts) for counts in job.counts])
        rows, number = collapse_table(library, asked.grouping, job, layout, range(len(job.codes)))

        def spread(values: Sequence[Any], places: Sequence[Any]) -> None:
            outbox.put([a.astype(p.dtype)[number] for a, p in zip(values, places, strict=True)], places)

        return _DeviceRun(asked, results, library, rows, layout, spread)

    return results.finished(_on_each(asked, begin))


def collapse_on_host(job: Job, workers: Workers) -> Distinct:
    """Distinct rows, for where devices have no room for all of them."""
    layout = KeyLayout.of([len(counts) for counts in job.counts])
    counts = NO_ROWS if job.times is None else job.times.astype(index_type(job.total + 1))
    if job.distinct:
        counts = np.ones(job.rows, np.int64) if job.times is None else counts
        keys = pack_keys_on_host(job.codes, layout, workers)
        return Distinct(Rows(keys, counts), np.arange(job.rows, dtype=index_type(job.rows)))
    return distinct_rows(Rows(pack_keys_on_host(job.codes, layout, workers), counts), job.total, workers)


def score_distinct_rows(asked: AnyKnownJob, table: Distinct, workers: Workers) -> AnyKnownResult:
    """Only distinct rows, which the host found, are brought to the devices; scores are spread to all rows on the host.

    Raises TargetsTooManyError.
    """
    results = _Results(asked.job, np.empty)
    layout = KeyLayout.of([len(counts) for counts in asked.job.counts])

    def begin(device: Sequence[Library], _: Outbox) -> _DeviceRun:
        library = device[0]
        keys = library.xp.ascontiguousarray(library.upload(table.rows.keys).T)
        rows = DeviceRows(keys, library.upload(table.rows.counts.astype(np.int64)))

        def spread(values: Sequence[Any], places: Sequence[npt.NDArray[Any]]) -> None:
            for array, place in zip(values, places, strict=True):
                there = library.to_host(array.astype(place.dtype))
                cuts = workers.ranges(len(place))
                workers.run(look_up, [(there, table.number[a:b], place[a:b]) for a, b in cuts])

        return _DeviceRun(asked, results, library, rows, layout, spread)

    return results.finished(_on_each(asked, begin))


def _on_each(asked: AnyKnownJob, begin: Callable[[Sequence[Library], Outbox], _DeviceRun]) -> int:
    """Score a share of the targets on each device; returns the number of distinct rows."""
    streams, targets = asked.streams, asked.job.targets

    def score(device: Sequence[Library], own: Sequence[int]) -> int:
        at_once, rows = 1, asked.job.rows
        try:
            with device[0].active(), Outbox(device, streams[0][0]) as outbox:
                run = begin(device, outbox)
                rows, at_once = run.rows.rows, min(len(own), run.targets_at_once())
                for first in range(0, len(own), at_once):
                    run.score(own[first : first + at_once])
                outbox.empty()
                return rows
        except DeviceMemoryError as error:
            raise TargetsTooManyError(device[0], at_once, rows) from error

    tasks = [(device, targets[first :: len(streams)]) for first, device in enumerate(streams)]
    with Workers(len(streams)) as workers:
        return int(workers.run(score, [task for task in tasks if task[1]])[0])


class _DeviceRun:
    """What the steps of a run on one device share.

    rows: distinct, in keys of this layout. spread: brings arrays with an item for each of them to all rows, to the
    places where scores are kept.
    """

    def __init__(
        self,
        asked: AnyKnownJob,
        results: _Results,
        library: Library,
        rows: DeviceRows,
        layout: KeyLayout,
        spread: Callable[[Sequence[Any], Sequence[Any]], None],
    ) -> None:
        job = asked.job
        self._asked, self.job, self.results, self.library, self.rows = asked, job, results, library, rows
        self._spread = spread
        self._cardinalities = [len(counts) for counts in job.counts]
        self._entropies = [entropy_of_counts(counts) for counts in job.counts]
        # Counted once: with `times` it is a sum.
        self._total = job.total
        self._layout = layout
        self._lows = library.bring(np.array([measure.low_is_risky for measure in job.measures], np.int64))
        # Each of them serves many sets.
        self._describe = cache(TargetUploader(library, job))

    def targets_at_once(self) -> int:
        """How many targets fit beside all else."""
        memory = int(self._asked.share * self.library.free_bytes())
        rows = self.rows.rows
        rest = memory - self._asked.bytes_needed(rows, 0)
        return max(1, min(self._asked.most, rest // accumulator_bytes(self.job, rows)))

    def score(self, group: Sequence[int]) -> None:
        """Score some targets on the sets that serve them, and bring what is found to its places."""
        job, xp, rows = self.job, self.library.xp, self.rows.rows
        worst, total = (xp.zeros((len(group), len(job.measures), rows)) for _ in range(2))
        for k, measure in enumerate(job.measures):
            worst[:, k] = np.inf if measure.low_is_risky else -np.inf
        found = {column: (worst[place], total[place]) for place, column in enumerate(group)}
        numbers = RowNumberer(self.library, self.rows, self._layout, self._cardinalities, self._asked.grouping)
        for one in self._asked.sets:
            targets = [column for column in one.targets if column in found]
            if targets:
                self._score_set(one.columns, targets, numbers, found)
                self._asked.progress.advance(job.rows * len(targets))
        del numbers
        for column in group:
            place, subsets = job.targets.index(column), len(self.results.weights[column])
            lowest_or_highest, sums = found[column]
            for k, measure in enumerate(job.measures):
                places = [self.results.worst[measure.name][place], self.results.mean[measure.name][place]]
                self._spread([lowest_or_highest[k], sums[k] / subsets], places)

    def _score_set(
        self, columns: Sequence[int], targets: Sequence[int], numbers: RowNumberer, found: dict[int, tuple[Any, Any]]
    ) -> None:
        """Score some of a set's columns, each against the attacker who knows the others."""
        library, job, total = self.library, self.job, self._total
        # The last column, by which numbers differ first, is the lowest.
        order = columns[::-1]
        with library.stage("group"):
            numbered = numbers.over(columns)
            combinations, layout = numbers.combinations(numbered, order)
            joint = sizes_of(library, combinations.counts, total).log_sum()
        turns = [column for column in order if column in targets]
        for target, sizes, scores in score_targets(
            library, self._describe, combinations, layout, order, turns, self._asked.grouping
        ):
            conditional = conditional_entropy(sizes_of(library, sizes, total).log_sum(), joint, total)
            weight = column_weight(conditional, self._entropies[target])
            self.results.weights[target].append(weight)
            for k, measure in enumerate(job.measures):
                if measure.weighted:
                    scores[k] *= weight
            with library.stage("fold"):
                library.launch(kernels.fold_scores, self.rows.rows, numbered.of_row, scores, self._lows, *found[target])
            # Before the next ones are made.
            del scores
