"""Blocks of distinct rows scored on devices, as many runs of them at a time as there are streams."""

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
    from gpupif.kernels.blocks import Out


class BlockTooLargeError(Exception):
    """A single block of so many rows does not fit."""

    def __init__(self, library: CupyLibrary, rows: int) -> None:
        self.library = library
        self.rows = rows


@dataclass(frozen=True)
class CudaScoredColumns:
    """Scored column columns, where their bits are, and how cohorts are found."""

    columns: Sequence[int]
    layout: KeyLayout
    grouping: Grouping
    values: int = 0

    def only(self, places: list[int]) -> CudaScoredColumns:
        """See `ScoredColumns`."""
        return CudaScoredColumns([self.columns[place] for place in places], self.layout, self.grouping)

    def put_values(self, out: Out) -> None:
        """See `ScoredColumns`: there are none, each row has scores of its own."""


class CudaScorer:
    """Scores blocks on devices (see `Scorer`), each task on the first stream that is free.

    parts: in how many runs of blocks so far.
    """

    def __init__(self, libraries: Sequence[CupyLibrary], grouping: Grouping) -> None:
        self.grouping = grouping
        self.parts = 0
        self._streams = len(libraries)
        self._idle: SimpleQueue[CupyLibrary] = SimpleQueue()
        for library in libraries:
            self._idle.put(library)

    def scored_columns_at_once(self, rows: int, measures: int) -> int:
        """See `Scorer`: all, for they share what is found of their rows."""
        return 1 << 30

    def describe(self, run: BlockRun, columns: Sequence[int], layout: KeyLayout) -> CudaScoredColumns:
        """See `Scorer`."""
        return CudaScoredColumns(columns, layout, self.grouping)

    def score(
        self, run: BlockRun, blocks: CohortBlocks, scored_columns: CudaScoredColumns, out: Out
    ) -> Sequence[CohortSizes]:
        """See `Scorer`. Raises BlockTooLargeError; runs of several blocks that do not fit are halved."""
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

        # With one more block, the largest that is scored as it is, still no more than was planned with.
        tasks = blocks.blocks.runs((OVERSIZE - 1) * run.block_rows, blocks.largest)
        # A thread a stream, however few of the host's cores may be used: it mostly waits.
        with Workers(self._streams) as workers:
            found = [cohort_sizes for tallies in workers.run(score, tasks) for cohort_sizes in tallies]
        self.parts += len(found)
        return found


def _score_rows(
    library: CupyLibrary,
    run: BlockRun,
    blocks: Blocks,
    scored_columns: CudaScoredColumns,
    out: Out,
    first: int,
    last: int,
) -> CohortSizes:
    """Score the blocks first to last - 1 on one device."""
    start, stop = int(blocks.offsets[first]), int(blocks.offsets[last])
    columns = scored_columns.columns
    known = [*columns, *(column for column in run.job.known if column not in columns)]
    rows = Rows(blocks.rows.keys[start:stop], blocks.rows.counts[start:stop])
    distinct, number = scored_columns.grouping.collapse(upload_rows(library, rows, scored_columns.layout), known)
    cohort_sizes = CohortSizes.allocate(len(columns), run.results.total, stop - start)
    describe = ScoredColumnUploader(library, run.job)
    for scored_column, sizes, values in score_scored_columns(
        describe, distinct, known, columns, scored_columns.grouping
    ):
        place = columns.index(scored_column)
        for computed in range(len(run.wanted.measures)):
            library.to_host(values[run.scored_as.index(computed)][number], out.scores[place, start:stop, computed])
        out.places[place, start:stop] = np.arange(start, stop)
        cohort_sizes.add_sizes(place, library.to_host(sizes))
        # Before the next ones are made.
        del sizes, values
    return cohort_sizes
