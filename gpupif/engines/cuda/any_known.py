"""The worst and mean score of each cell over attackers who know any few columns, on GPUs.

The method is that of `cpu/any_known.py`: rows are collapsed to distinct rows, and distinct rows to combinations of each
set. Each combination is scored as a row of a table of its own, and each row takes the scores of its combination.
Devices share out the scored columns, so the sums of a scored column run in the order of the sets.
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

# Number of arrays with 8 bytes for each row that are needed while scores are copied to all rows.
SPREAD_ARRAYS = 4


class ScoredColumnsTooManyError(Exception):
    """The error if the requested number of scored columns does not fit on a device with the distinct rows."""

    def __init__(self, library: CupyLibrary, scored_columns: int, rows: int) -> None:
        self.library, self.scored_columns, self.rows = library, scored_columns, rows


class AnyKnownJob(NamedTuple):
    """A run over sets of columns, and how to do it.

    streams: the libraries of each device. share: the share of the devices' free memory to use. most: the most scored
        columns at once.
    """

    job: Job
    sets: Sequence[KnownSubset]
    progress: Progress
    streams: Sequence[Sequence[CupyLibrary]]
    grouping: Grouping
    share: float
    most: int

    def bytes_needed(self, rows: int, scored_columns: int) -> int:
        """Return the bytes to score some columns at once, without the distinct rows themselves. rows: distinct rows.
        scored_columns: their number.
        """
        columns = max(len(one.columns) for one in self.sets)
        scored = rows * row_bytes(self.job, multiplicities=True, whole=False, to_host=False) + fixed_bytes(
            all_values(self.job)
        )
        accumulators = scored_columns * accumulator_bytes(self.job, rows)
        spread = 8 * SPREAD_ARRAYS * self.job.rows
        return scored + numbering_bytes(rows, columns) + accumulators + spread


def score_on_devices(asked: AnyKnownJob, on_device: bool) -> AnyKnownResult:
    """Score a run with the whole table on each device, and copy the scores to all rows there.

    Raise DeviceMemoryError or ScoredColumnsTooManyError. on_device: whether the scores stay on the first device.
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
    """Score a run from distinct rows that the host found, and copy the scores to all rows on the host.

    Raise ScoredColumnsTooManyError.
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
    """Score a share of the scored columns on each device, and return the number of distinct rows."""
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
    """The state of a run on one device.

    rows: the distinct rows. spread: copies arrays with an item for each distinct row to all rows, into the results.
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
        # Kept, because `job.total` adds up all multiplicities each time.
        self._total = job.total
        # The measures whose lowest score is the worst. All sizes are above 0 here, see `needs_whole_engine`.
        self._lows = rows.library.bring(np.array([measure.low_is_risky for measure in job.measures], np.int64))
        # Cached, because each scored column is in many sets.
        self._describe = cache(ScoredColumnUploader(rows.library, job))

    def scored_columns_at_once(self) -> int:
        """Return the number of scored columns that fit in the free memory."""
        memory = int(self._asked.share * self.library.free_bytes())
        rows = self.rows.rows
        rest = memory - self._asked.bytes_needed(rows, 0)
        return max(1, min(self._asked.most, rest // accumulator_bytes(self.job, rows)))

    def score(self, columns: Sequence[int]) -> None:
        """Score some scored columns on the sets that contain them, and put their worst and mean into the results."""
        job, xp, rows = self.job, self.library.xp, self.rows.rows
        worst, total = (xp.zeros((len(columns), len(job.measures), rows)) for _ in range(2))
        for k, measure in enumerate(job.measures):
            worst[:, k] = np.inf if measure.low_is_risky else -np.inf
        found = {column: (worst[place], total[place]) for place, column in enumerate(columns)}
        numbers = RowNumberer(self.rows, job.cardinalities, self._asked.grouping)
        for one in self._asked.sets:
            scored_columns = [column for column in one.scored_columns if column in found]
            if scored_columns:
                self._score_set(one.columns, scored_columns, numbers, found)
                self._asked.progress.advance(job.rows * len(scored_columns))
        del numbers
        for column in columns:
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
        """Score some columns of a set, each against the attacker who knows the other columns of the set."""
        library, job, total = self.library, self.job, self._total
        # Numbers differ first by the last column: it is the lowest in sort order.
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
            with library.stage("aggregate"):
                library.launch(
                    kernels.aggregate_scores, self.rows.rows, numbered.of_row, scores, self._lows, *found[scored_column]
                )
            # The next scores need this memory.
            del scores
