"""Blocks of distinct rows scored on devices, as many runs of them at a time as there are streams."""

from __future__ import annotations

from collections.abc import Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from ..errors import DeviceError
from ..keys import KeyLayout
from .cuda_library import Library
from .cuda_memory import row_bytes
from .cuda_rows import DeviceRows, collapse
from .cuda_scores import score_targets
from .partition import OVERSIZE, CohortBlocks
from .run import Run
from .tally import Tally

if TYPE_CHECKING:
    import numpy.typing as npt


class CudaScorer:
    """Scores blocks on devices (see `Scorer`), each task on the first stream that is free."""

    def __init__(self, libraries: Sequence[Library]) -> None:
        self._idle: SimpleQueue[Library] = SimpleQueue()
        for library in libraries:
            self._idle.put(library)

    def targets_at_once(self, rows: int, measures: int) -> int:
        """See `Scorer`: all, for one round of sorts serves them."""
        return 1 << 30

    def score(
        self, run: Run, blocks: CohortBlocks, layout: KeyLayout, columns: Sequence[int], scores: npt.NDArray[np.float64]
    ) -> Sequence[Tally]:
        """See `Scorer`. Raises DeviceError where a single block is too large for the device."""
        offsets = blocks.blocks.offsets

        def score(first: int, last: int) -> list[Tally]:
            library = self._idle.get()
            try:
                with library.active():
                    return [self._score_rows(library, run, blocks, layout, columns, scores, first, last)]
            except MemoryError as error:
                library.release()
                if last - first == 1:
                    rows, free = int(offsets[last] - offsets[first]), library.free_bytes()
                    raise DeviceError(
                        f"device 'cuda': {library.name} ran out of memory on {rows:,} rows, which need about "
                        f"{rows * row_bytes(run.job) / 2**30:.1f} GiB; {free / 2**30:.1f} GiB are free. Free some, "
                        "score fewer columns, or use device='cpu'."
                    ) from error
            finally:
                self._idle.put(library)
            middle = (first + last) // 2
            return score(first, middle) + score(middle, last)

        tasks = _tasks(blocks, OVERSIZE * run.block_rows)
        return [tally for tallies in run.workers.run(score, tasks) for tally in tallies]

    @staticmethod
    def _score_rows(
        library: Library,
        run: Run,
        blocks: CohortBlocks,
        layout: KeyLayout,
        columns: Sequence[int],
        scores: npt.NDArray[np.float64],
        first: int,
        last: int,
    ) -> Tally:
        start, stop = int(blocks.blocks.offsets[first]), int(blocks.blocks.offsets[last])
        rows = blocks.blocks.rows
        keys = library.xp.ascontiguousarray(library.upload(rows.keys[start:stop]).T)
        counts = library.upload(rows.counts[start:stop].astype(np.int64))
        known = [*columns, *(column for column in run.job.known if column not in columns)]
        order, number = collapse(library, DeviceRows(keys, counts), layout, known)
        tally = Tally.of(len(columns), run.job.rows)
        for target, sizes, values in score_targets(library, run.job, order, layout, known, columns):
            place = columns.index(target)
            library.to_host(values[:, number].T, scores[place, start:stop])
            tally.add_sizes(place, library.to_host(sizes))
        return tally


def _tasks(blocks: CohortBlocks, most: int) -> list[tuple[int, int]]:
    """Runs of blocks (first, last + 1) of at most `most` rows together, or of one block; children left out."""
    sizes = np.diff(blocks.blocks.offsets)
    left_out = {start for start, _, _ in blocks.children}
    tasks: list[tuple[int, int]] = []
    rows = most
    for block, size in enumerate(sizes.tolist()):
        if size == 0 or int(blocks.blocks.offsets[block]) in left_out:
            rows = most
        elif rows + size > most or not tasks or tasks[-1][1] != block:
            tasks.append((block, block + 1))
            rows = size
        else:
            tasks[-1] = (tasks[-1][0], block + 1)
            rows += size
    return tasks
