"""Scores of cohorts on the device, one scored column after the other, and of blocks of distinct rows from the host.

Each stream scores several neighbouring blocks at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from gpupif.kernels.cohorts import CohortCells
from gpupif.kernels.cuda import cohorts as kernels
from gpupif.kernels.statistics import is_walk
from gpupif.kernels.whole_sums import rank_of_float

from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...measures import wanted_of
from ...rows.keys import Field, KeyLayout
from ...rows.partition import OVERSIZE, Blocks, CohortBlocks, Rows
from ...rows.threads import Workers
from ...utils.information import small_logs
from ..base import Job
from ..block_scoring import BlockRun
from ..cohort_sizes import CohortSizes
from ..kernel_inputs import kernel_values
from ..memory import looks_ahead
from .grouping import Grouping
from .rows import DeviceRows, EqualRows, upload_rows

if TYPE_CHECKING:
    from gpupif.kernels.blocks import BlockScores
    from gpupif.kernels.cohorts import ScoredValues, WantedMeasures

NamedArrays = TypeVar("NamedArrays", bound=tuple[Any, ...])

# The rank of -inf, below the rank of every other number.
LEAST = rank_of_float.py_func(-math.inf)


class DeviceScoredColumn(NamedTuple):
    """A scored column and the measures, described to kernels, on the device.

    walks: whether any statistic is a walk. ahead: whether any statistic looks ahead, see `looks_ahead`. logs: of small
        counts, see `log2_count`.
    """

    values: ScoredValues
    wanted: WantedMeasures
    walks: bool
    ahead: bool
    logs: Any


class ScoredColumnUploader:
    """A maker of descriptions of a job's scored columns. It uploads their common arrays once."""

    def __init__(self, library: CupyLibrary, job: Job) -> None:
        self._library, self._job = library, job
        wanted = wanted_of(job.measures, job.unit)
        self._kinds = wanted.kinds
        self._walks = any(map(is_walk.py_func, self._kinds))
        self._wanted = _brought(library, wanted)
        self._logs = library.bring(small_logs())

    def __call__(self, scored_column: int) -> DeviceScoredColumn:
        """Return the description of a scored column and the job's measures for kernels."""
        values = _brought(self._library, kernel_values(self._job, [scored_column]))
        ahead = looks_ahead(self._kinds, self._job.accuracies[scored_column])
        return DeviceScoredColumn(values, self._wanted, self._walks, ahead, self._logs)


def _brought(library: CupyLibrary, arrays: NamedArrays) -> NamedArrays:
    """Return a named tuple of arrays, or of further named tuples, with its arrays uploaded."""
    return type(arrays)(
        *(_brought(library, part) if isinstance(part, tuple) else library.bring(part) for part in arrays)
    )


def score_scored_columns(
    describe: Callable[[int], DeviceScoredColumn],
    rows: DeviceRows,
    columns: Sequence[int],
    scored_columns: Sequence[int],
    grouping: Grouping,
) -> Iterator[tuple[int, Any, Any]]:
    """Yield each scored column, the sizes of its cohorts, and its scores (measures, rows), wCIG before weighting.

    describe: a `ScoredColumnUploader`, perhaps with a cache.
    rows: the distinct rows over `columns`, made by the grouping.
    columns: the scored columns, in this order, and then the other columns that the attacker knows.
    """
    for scored_column, cohorts in grouping.cohorts(rows, columns, scored_columns):
        with rows.library.stage("score"):
            scores = _score(describe(scored_column), rows, cohorts, rows.layout.fields[scored_column])
        sizes = cohorts.sizes
        # Free memory before the scores are copied and the next scores computed.
        del cohorts
        yield scored_column, sizes, scores
        del sizes, scores


def describe_cohorts(
    library: CupyLibrary,
    described: DeviceScoredColumn,
    cohorts: EqualRows,
    words: tuple[Any, Any],
    field: tuple[int, int],
) -> tuple[CohortCells, Any]:
    """Return the cells of cohorts, in their order, and the statistics (cohorts, statistics).

    words: the word of each row that holds the scored column's value, and the multiplicities. field: shift and mask of
        the value in the word.
    """
    xp, (values, wanted, walks, ahead, logs) = library.xp, described
    size, number, kinds = len(cohorts.order), len(cohorts.sizes), len(wanted.kinds)
    cells, members = CohortCells.for_cells(size, xp.empty, walks), xp.zeros(number, "int32")
    rows = (cohorts.order, cohorts.sizes)
    library.launch(kernels.describe_cells, size, rows, cohorts.set_of, words, field, logs, values, cells, members)
    statistic_of = xp.empty((number, kinds))
    if kinds:
        largest = xp.full((number if ahead else 0, kinds), LEAST, "int64")
        sums = (members, largest, xp.zeros((number, kernels.PARTS * (kinds + ahead)), "int64"))
        if ahead:
            library.launch(kernels.look_ahead, size, cohorts.set_of, values, wanted, cells, sums)
        library.launch(kernels.add_cells, size, cohorts.set_of, values, wanted, cells, sums)
        library.launch(kernels.finish_cohorts, number, cohorts.sizes, values, wanted, sums, statistic_of)
    if walks:
        library.launch(kernels.walk_all, number, (cohorts.starts, statistic_of), values, wanted, cells)
    return cells, statistic_of


def _score(described: DeviceScoredColumn, rows: DeviceRows, cohorts: EqualRows, field: Field) -> Any:
    library, values, wanted = rows.library, described.values, described.wanted
    words = (rows.keys[field.word], rows.counts)
    cells, statistic_of = describe_cohorts(library, described, cohorts, words, (field.shift, field.mask))
    scores = library.xp.empty((len(wanted.measures), rows.rows))
    order = (cohorts.order, cohorts.sizes)
    library.launch(kernels.score_cells, rows.rows, order, cohorts.set_of, values, wanted, cells, statistic_of, scores)
    return scores


class BlockTooLargeError(Exception):
    """The error if a single block does not fit on a device."""

    def __init__(self, library: CupyLibrary, rows: int) -> None:
        self.library = library
        self.rows = rows


@dataclass(frozen=True)
class CudaScoredColumns:
    """Scored columns, the layout of their keys, and the method that finds cohorts."""

    columns: Sequence[int]
    layout: KeyLayout
    grouping: Grouping
    values: int = 0

    def only(self, places: list[int]) -> CudaScoredColumns:
        """Return the scored columns at some places of `columns` (see `ScoredColumns`)."""
        return CudaScoredColumns([self.columns[place] for place in places], self.layout, self.grouping)

    def put_values(self, out: BlockScores) -> None:
        """Do nothing: there are no scores of one-value cohorts, each row has its own scores (see `ScoredColumns`)."""


class CudaScorer:
    """The scorer of blocks on GPUs (see `Scorer`). Each task runs on the first free stream.

    parts: the number of times that a stream scored blocks.
    """

    def __init__(self, libraries: Sequence[CupyLibrary], grouping: Grouping) -> None:
        self.grouping = grouping
        self.parts = 0
        self._streams = len(libraries)
        self._idle: SimpleQueue[CupyLibrary] = SimpleQueue()
        for library in libraries:
            self._idle.put(library)

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """Return a number above that of any columns: all are scored at once, because they share the distinct rows."""
        return 1 << 30

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> CudaScoredColumns:
        """Return these columns as `CudaScoredColumns` (see `Scorer`)."""
        return CudaScoredColumns(columns, layout, self.grouping)

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: CudaScoredColumns, out: BlockScores
    ) -> Sequence[CohortSizes]:
        """Fill `out`, and return the cohorts by size (see `Scorer`). Halve the blocks that do not fit together.

        Raise BlockTooLargeError.
        """
        offsets = blocks.blocks.offsets

        def score(first: int, last: int) -> list[CohortSizes]:
            if offsets[first] == offsets[last]:
                return []
            library = self._idle.get()
            try:
                with library.active():
                    return [_score_rows(library, run, blocks.blocks, scored_columns, out, first, last)]
            except DeviceMemoryError as error:
                library.release()
                if last - first == 1:
                    raise BlockTooLargeError(library, int(offsets[last] - offsets[first])) from error
            finally:
                self._idle.put(library)
            middle = (first + last) // 2
            return score(first, middle) + score(middle, last)

        # One more block, even the largest that is scored uncut, does not exceed the planned memory.
        tasks = blocks.blocks.runs((OVERSIZE - 1) * run.block_rows, blocks.largest)
        # One thread for each stream, even if few cores may be used: threads mostly wait for their device.
        with Workers(self._streams) as workers:
            parts = [cohort_sizes for tallies in workers.run(score, tasks) for cohort_sizes in tallies]
        self.parts += len(parts)
        return parts


def _score_rows(
    library: CupyLibrary,
    run: BlockRun,
    blocks: Blocks,
    scored_columns: CudaScoredColumns,
    out: BlockScores,
    first: int,
    last: int,
) -> CohortSizes:
    """Score the blocks from first to last - 1 on one device."""
    start, stop = int(blocks.offsets[first]), int(blocks.offsets[last])
    columns = scored_columns.columns
    known = [*columns, *(column for column in run.job.known if column not in columns)]
    rows = Rows(blocks.rows.keys[start:stop], blocks.rows.counts[start:stop])
    distinct, number = scored_columns.grouping.collapse(upload_rows(library, rows, scored_columns.layout), known)
    cohort_sizes = CohortSizes.empty(len(columns), run.results.total, stop - start)
    describe = ScoredColumnUploader(library, run.job)
    for scored_column, sizes, values in score_scored_columns(
        describe, distinct, known, columns, scored_columns.grouping
    ):
        place = columns.index(scored_column)
        for computed in range(len(run.wanted.measures)):
            library.to_host(values[run.scored_as.index(computed)][number], out.scores[place, start:stop, computed])
        out.places[place, start:stop] = np.arange(start, stop)
        cohort_sizes.add_sizes(place, library.to_host(sizes))
        # The next scores need this memory.
        del sizes, values
    return cohort_sizes
