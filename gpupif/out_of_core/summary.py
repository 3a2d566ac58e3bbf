"""The summary of a run whose scores were never in memory together, exact all the same."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..engines.base import Job
from ..io.ipc_batches import BatchReader, read_batch
from ..results.figures import OF_COLUMNS, OF_ROWS
from ..utils.percentiles import ONCE, percentiles
from .chunks import TableChunks
from .gather import ScoreFacts


def gain_percentiles(job: Job, rows: int, gains: Callable[[int], Sequence[Path]]) -> list[list[float]]:
    """Percentiles of the CIG of each target, `OF_COLUMNS`; none where it was not scored.

    rows: of the table. gains: of a target, the files of the CIG that occur in its parts.
    """
    if not any(measure.name == "cig" for measure in job.measures):
        return []
    return [percentiles(_numbers(gains(target), job.dtype), rows, OF_COLUMNS) for target in job.targets]


def _numbers(files: Sequence[Path], dtype: str) -> Callable[[], Iterator[tuple[Any, Any]]]:
    """The numbers in these files and how often each occurs, as scores of this type have them."""

    def pieces() -> Iterator[tuple[Any, Any]]:
        for file in files:
            values, times = read_batch(file)
            yield values.astype(dtype).astype(np.float64), times

    return pieces


def row_gain_percentiles(gatherer: ScoreFacts, chunks: TableChunks) -> dict[int, float]:
    """PIF by percentile, empty where CIG was not scored."""
    if not any(measure.name == "cig" for measure in gatherer.job.measures):
        return {}

    def pieces() -> Iterator[tuple[Any, Any]]:
        for number in range(len(chunks.sizes)):
            with BatchReader(gatherer.gains(number)) as reader:
                yield reader.arrays(0)[0], ONCE

    return dict(zip(OF_ROWS, percentiles(pieces, chunks.rows, OF_ROWS), strict=True))


def codes_of_row(chunks: TableChunks, row: int) -> list[int]:
    """The codes of one row."""
    ends = list(accumulate(chunks.sizes))
    number = bisect_right(ends, row)
    place = row - (ends[number] - chunks.sizes[number])
    return [int(codes[place]) for codes in chunks.codes(number)]
