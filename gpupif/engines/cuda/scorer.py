"""The scorer of blocks of distinct rows on GPUs: each stream scores a run of blocks at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from ...gpu.cupy_arrays import CupyLibrary, DeviceMemoryError
from ...rows.keys import KeyLayout
from ...rows.partition import OVERSIZE, Blocks, CohortBlocks, Rows
from ...rows.threads import Workers
from ..block_scoring import BlockRun
from ..cohort_sizes import CohortSizes
from .grouping import Grouping
from .rows import upload_rows
from .scores import ScoredColumnUploader, score_scored_columns

if TYPE_CHECKING:
    from gpupif.kernels.blocks import BlockScores


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

    parts: the number of runs of blocks so far.
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
        """Fill `out`, and return the cohorts by size (see `Scorer`). Halve runs of several blocks that do not fit.

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
            found = [cohort_sizes for tallies in workers.run(score, tasks) for cohort_sizes in tallies]
        self.parts += len(found)
        return found


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
