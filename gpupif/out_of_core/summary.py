"""The summary of a run whose scores were never in memory together, exact all the same."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from ..io.ipc_batches import BatchReader, read_batch
from ..utils.percentiles import ONCE, Pieces, percentiles
from .chunks import TableChunks
from .fold import Output
from .gather import ScoreFacts


def occurring_scores(files: Sequence[Path], output: Output, weight: float) -> Pieces:
    """The scores of a scored column and how often each occurs, from the files of those that occur in its parts."""

    def pieces() -> Iterator[tuple[Any, Any]]:
        for file in files:
            values, times = read_batch(file)
            yield output.of(values, np.array(weight)).astype(np.float64), times

    return pieces


def row_gain_percentiles(gatherer: ScoreFacts, chunks: TableChunks, wanted: Sequence[float]) -> dict[float, float]:
    """PIF by percentile, empty where CIG was not scored."""
    if "cig" not in gatherer.types or not wanted:
        return {}

    def pieces() -> Iterator[tuple[Any, Any]]:
        for number in range(len(chunks.sizes)):
            with BatchReader(gatherer.gains(number)) as reader:
                yield reader.arrays(0)[0], ONCE

    return dict(zip(wanted, percentiles(pieces, wanted), strict=True))


def codes_of_row(chunks: TableChunks, row: int) -> list[int]:
    """The codes of one row."""
    ends = list(accumulate(chunks.sizes))
    number = bisect_right(ends, row)
    place = row - (ends[number] - chunks.sizes[number])
    return [int(codes[place]) for codes in chunks.codes(number)]
