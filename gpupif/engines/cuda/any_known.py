"""Attackers who know any few of the columns, on devices: each cell's worst and mean score over all of them.

As on the CPU (see `cpu/any_known.py`), rows are collapsed to distinct ones, and for each set of columns these to
combinations of its values, which are scored as a table of their own; then each row takes its combination's scores.
Devices share the scored columns, so that each scored column's sums run in the order of the sets.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpupif.kernels.cuda import any_known as kernels

from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...rows.distinct import Distinct, look_up_rows
from ...rows.threads import Workers
from ...utils.information import column_weight, conditional_entropy, entropy_of_counts
from ..any_known import AnyKnownScores
from ..base import AnyKnownResult, Job, KnownSubset, Progress
from ..memory import accumulator_bytes, all_values, fixed_bytes, row_bytes
from .grouping import Grouping, RowNumberer, collapse_table, numbering_bytes
from .rows import DeviceRows, sizes_of, upload_rows
from .scores import ScoredColumnUploader, score_scored_columns
from .whole_table import Outbox

# Arrays of scores of all rows, of 8 bytes each, that are there at once while they go to where they are kept.
SPREAD_ARRAYS = 4


class ScoredColumnsTooManyError(Exception):
    """So many scored columns at once do not fit beside so many distinct rows."""

    def __init__(self, library: CupyLibrary, scored_columns: int, rows: int) -> None:
        self.library, self.scored_columns, self.rows = library, scored_columns, rows


class AnyKnownJob(NamedTuple):
    """One run: what is asked, and how it is done.

    streams: the libraries of each device. share: of the devices' free memory what is planned with. most: scored
    columns at once at most.
    """

    job: Job
    sets: Sequence[KnownSubset]
    progress: Progress
    streams: Sequence[Sequence[CupyLibrary]]
    grouping: Grouping
    share: float
    most: int

    def bytes_needed(self, rows: int, scored_columns: int) -> int:
        """Bytes beside so many distinct rows, to score so many scored columns at once."""
        columns = max(len(one.columns) for one in self.sets)
        scored = rows * row_bytes(self.job, times=True, whole=False, to_host=False) + fixed_bytes(all_values(self.job))
        accumulators = scored_columns * accumulator_bytes(self.job, rows)
        spread = 8 * SPREAD_ARRAYS * self.job.rows
        return scored + numbering_bytes(rows, columns) + accumulators + spread


def score_on_devices(asked: AnyKnownJob, on_device: bool) -> AnyKnownResult:
    """Rows are collapsed on each device, and scores spread there to all rows; on_device: they stay on the first one.

    Raises DeviceMemoryError or ScoredColumnsTooManyError.
    """
    job, home = asked.job, asked.streams[0][0]
    with home.active():
        results = AnyKnownScores(job, home.empty if on_device else np.empty)

    def begin(device: Sequence[CupyLibrary], outbox: Outbox) -> _DeviceRun:
        library = device[0]
        rows, number = collapse_table(library, asked.grouping, job, range(len(job.codes)))

        def spread(values: Sequence[Any], places: Sequence[Any]) -> None:
            outbox.put([a.astype(p.dtype)[number] for a, p in zip(values, places, strict=True)], places)

        return _DeviceRun(asked, results, rows, spread)

    return results.finished(_on_each(asked, begin))


def score_distinct_rows(asked: AnyKnownJob, table: Distinct, workers: Workers) -> AnyKnownResult:
    """Only distinct rows, which the host found, are brought to the devices; scores are spread to all rows on the host.

    Raises ScoredColumnsTooManyError.
    """
    results = AnyKnownScores(asked.job)

    def begin(device: Sequence[CupyLibrary], _: Outbox) -> _DeviceRun:
        library = device[0]

        def spread(values: Sequence[Any], places: Sequence[npt.NDArray[Any]]) -> None:
            for array, place in zip(values, places, strict=True):
                look_up_rows(library.to_host(array.astype(place.dtype)), table.number, place, workers)

        return _DeviceRun(asked, results, upload_rows(library, table.rows, asked.job.layout), spread)

    return results.finished(_on_each(asked, begin))


def _on_each(asked: AnyKnownJob, begin: Callable[[Sequence[CupyLibrary], Outbox], _DeviceRun]) -> int:
    """Score a share of the scored columns on each device; returns the number of distinct rows."""
    streams, scored_columns = asked.streams, asked.job.scored_columns

    def score(device: Sequence[CupyLibrary], own: Sequence[int]) -> int:
        at_once, rows = 1, asked.job.rows
        try:
            with device[0].active(), Outbox(device, streams[0][0]) as outbox:
                run = begin(device, outbox)
                rows, at_once = run.rows.rows, min(len(own), run.scored_columns_at_once())
                for first in range(0, len(own), at_once):
                    run.score(own[first : first + at_once])
                outbox.empty()
                return rows
        except DeviceMemoryError as error:
            raise ScoredColumnsTooManyError(device[0], at_once, rows) from error

    tasks = [(device, scored_columns[first :: len(streams)]) for first, device in enumerate(streams)]
    with Workers(len(streams)) as workers:
        return int(workers.run(score, [task for task in tasks if task[1]])[0])


class _DeviceRun:
    """What the steps of a run on one device share.

    rows: distinct. spread: brings arrays with an item for each of them to all rows, to the places where scores are
    kept.
    """

    def __init__(
        self,
        asked: AnyKnownJob,
        results: AnyKnownScores,
        rows: DeviceRows,
        spread: Callable[[Sequence[Any], Sequence[Any]], None],
    ) -> None:
        job = asked.job
        self._asked, self.job, self.results, self.library, self.rows = asked, job, results, rows.library, rows
        self._spread = spread
        self._entropies = [entropy_of_counts(counts) for counts in job.counts]
        # Counted once: with `times` it is a sum.
        self._total = job.total
        # Where the lowest score is the worst: sizes are above 0 here, see `needs_whole_engine`.
        self._lows = rows.library.bring(np.array([measure.low_is_risky for measure in job.measures], np.int64))
        # Each of them serves many sets.
        self._describe = cache(ScoredColumnUploader(rows.library, job))

    def scored_columns_at_once(self) -> int:
        """How many scored columns fit beside all else."""
        memory = int(self._asked.share * self.library.free_bytes())
        rows = self.rows.rows
        rest = memory - self._asked.bytes_needed(rows, 0)
        return max(1, min(self._asked.most, rest // accumulator_bytes(self.job, rows)))

    def score(self, group: Sequence[int]) -> None:
        """Score some scored columns on the sets that serve them, and bring what is found to its places."""
        job, xp, rows = self.job, self.library.xp, self.rows.rows
        worst, total = (xp.zeros((len(group), len(job.measures), rows)) for _ in range(2))
        for k, measure in enumerate(job.measures):
            worst[:, k] = np.inf if measure.low_is_risky else -np.inf
        found = {column: (worst[place], total[place]) for place, column in enumerate(group)}
        numbers = RowNumberer(self.rows, job.cardinalities, self._asked.grouping)
        for one in self._asked.sets:
            scored_columns = [column for column in one.scored_columns if column in found]
            if scored_columns:
                self._score_set(one.columns, scored_columns, numbers, found)
                self._asked.progress.advance(job.rows * len(scored_columns))
        del numbers
        for column in group:
            lowest_or_highest, sums = found[column]
            for k, measure in enumerate(job.measures):
                scores = [lowest_or_highest[k], sums[k] / len(self.results.weights[column])]
                self._spread(scores, self.results.places(column, measure))

    def _score_set(
        self,
        columns: Sequence[int],
        scored_columns: Sequence[int],
        numbers: RowNumberer,
        found: dict[int, tuple[Any, Any]],
    ) -> None:
        """Score some of a set's columns, each against the attacker who knows the others."""
        library, job, total = self.library, self.job, self._total
        # The last column, by which numbers differ first, is the lowest.
        order = columns[::-1]
        with library.stage("group"):
            numbered = numbers.over(columns)
            combinations = numbers.combinations(numbered, order)
            joint = sizes_of(library, combinations.counts, total).log_sum()
        turns = [column for column in order if column in scored_columns]
        for scored_column, sizes, scores in score_scored_columns(
            self._describe, combinations, order, turns, self._asked.grouping
        ):
            conditional = conditional_entropy(sizes_of(library, sizes, total).log_sum(), joint, total)
            weight = column_weight(conditional, self._entropies[scored_column])
            self.results.weights[scored_column].append(weight)
            for k, measure in enumerate(job.measures):
                if measure.weighted:
                    scores[k] *= weight
            with library.stage("fold"):
                library.launch(
                    kernels.fold_scores, self.rows.rows, numbered.of_row, scores, self._lows, *found[scored_column]
                )
            # Before the next ones are made.
            del scores
