"""How a run shares the memory that it may take, and how much of a disk it will need."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..engines.base import Job
from ..engines.passes import part_measures
from ..errors import InputError, OutputError
from ..job import Question
from ..keys import KeyLayout
from ..memory import resident_bytes
from ..sources import Source
from .store import free_disk

# For libraries that are not loaded yet, compiled kernels, and buffers of readers and writers.
RESERVE = 96 << 20
LEAST_CHUNK, MOST_CHUNK = 1 << 14, 1 << 20
# Of the working memory: what a chunk takes; what a part takes; what the values of a column may take.
CHUNK_SHARE, PART_SHARE, VALUES_SHARE = 0.35, 0.7, 0.3
# Parts are planned so much smaller than what is scored at once, for their sizes differ by chance.
SLACK = 0.7
# Bytes on disk: of a code in a chunk and in a part, and of a score, compressed; measured with `benchmarks.scale`.
CODE_BYTES, SCORE_BYTES = 0.6, 2.4


class Budget(NamedTuple):
    """Rows that are in memory at once, of a chunk; bytes to work with."""

    chunk_rows: int
    working: int

    def values_bytes(self) -> int:
        """Bytes that the values of a column may take while they are numbered."""
        return int(VALUES_SHARE * self.working)

    def part_rows(self, job: Job) -> int:
        """Rows of a part that are scored at once, with half of the targets."""
        words = KeyLayout.of([len(counts) for counts in job.counts]).words
        codes = sum(max(1, (len(counts) - 1).bit_length() // 8) for counts in job.counts)
        scores = 8 * len(part_measures(job)) * -(-len(job.targets) // 2)
        row = codes + 8 * 5 * words + 12 * 4 + scores + 8
        values = 8 * (3 + len(job.measures)) * sum(len(counts) for counts in job.counts)
        return max(1, int(PART_SHARE * max(0, self.working - values) / row))


def plan_budget(limit: int, question: Question) -> Budget:
    """What a run with this memory limit may have in memory at once; raises InputError where that is too little."""
    resident = resident_bytes()
    working = limit - resident - RESERVE
    cells = len(question.targets)
    written = sum(np.dtype("int64" if measure.integer else question.dtype).itemsize for measure in question.measures)
    # A chunk is written while the next one is put together of what parts have for it.
    row = cells * (2 * written + 8 * len(question.measures)) + 16 * len(question.used) + 64
    fits = int(CHUNK_SHARE * working) // row
    if fits < LEAST_CHUNK:
        least = (resident + RESERVE + int(LEAST_CHUNK * row / CHUNK_SHARE)) / 2**20
        raise InputError(
            f"memory_limit: expected at least {least:,.0f} MiB for this table ({resident / 2**20:,.0f} MiB are taken "
            f"before anything is read), got {limit / 2**20:,.0f} MiB. Raise it, or score fewer columns."
        )
    return Budget(min(MOST_CHUNK, 1 << (fits.bit_length() - 1)), working)


def check_disk(source: Source, question: Question, spill: Path, output: Path) -> int:
    """Raise OutputError where spill files and scores will not fit on their disks; returns the bytes of spill files.

    An estimate, from the number of rows and how well such tables are compressed.
    """
    rows = source.about_rows()
    scores = len(question.targets) * len({measure.name for measure in question.measures})
    spilled = int(rows * (3 * CODE_BYTES * len(question.used) + SCORE_BYTES * scores + 8))
    written = int(rows * SCORE_BYTES * scores)
    same = spill.stat().st_dev == output.stat().st_dev
    for folder, needed, what, mend in (
        (spill, spilled + written * same, "spill files", "choose another place with temp (--temp)"),
        (output, written + spilled * same, "scores", "choose another place for them"),
    ):
        free = free_disk(folder)
        if free < needed:
            raise OutputError(
                f"{folder}: {what} of {rows:,} rows will need about {needed / 2**30:.1f} GiB, {free / 2**30:.1f} GiB "
                f"are free. Free some, or {mend}."
            )
    return spilled
