"""The shares of the memory limit that a run plans with, and the disk that it will need."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ..attack.request import ScoreRequest
from ..engines.base import Job
from ..engines.individual_risk import scores_at_once
from ..engines.memory import AnyKnownNeeds
from ..engines.partition_plan import computed_measure, part_measures
from ..errors import InputError, OutputError
from ..io.base import Source
from ..io.checkpoints import free_disk
from ..io.formats import written_format
from ..utils.memory import resident_bytes, shown
from .output_options import OutputOptions

# For libraries that are not loaded yet, compiled kernels, and buffers of readers and writers.
RESERVE = 96 << 20
LEAST_CHUNK, MOST_CHUNK = 1 << 14, 1 << 20
LEAST_PARTITION = 1 << 14
# Files that are open at a time: at most; beside those of parts and columns.
MOST_FILES, SPARE_FILES = 1 << 13, 128
# Of the working memory: what a chunk takes; what a part takes; what the values of a column may take.
CHUNK_SHARE, PARTITION_SHARE, VALUES_SHARE = 0.35, 0.7, 0.3
# And what all distinct rows may take that are scored in one place, beside which little else is there.
DISTINCT_SHARE = 0.85
# And, beside a chunk, the different scores of all parts, whose numbers alone are read chunk by chunk.
DISTINCT_SCORES_SHARE = 0.2
# Parts are planned so much smaller than what is scored at once, for their sizes differ by chance.
SLACK = 0.7
# Bytes on disk: of a code in a chunk and in a part, and of a score, compressed; measured with `benchmarks.scale`.
CODE_BYTES, SCORE_BYTES = 0.6, 4.5
# Of a cell of a chunk that is only read and encoded: as it is read, and as codes.
CELL_BYTES = 32
# What helps beside another place, and beside a higher limit.
ELSEWHERE = "choose another place with temp (--temp)"
FEWER_COLUMNS = "score fewer columns"
# Of one of the riskiest cells while they are found and made a table, and of each of its scores; measured. What part of
# the working memory they may take.
RISKIEST_BYTES, RISKIEST_SCORE_BYTES, RISKIEST_SHARE = 160, 48, 0.3
# Of a score in a format of text.
TEXT_BYTES = 18


class Budget(NamedTuple):
    """Rows that are in memory at once, of a chunk; bytes to work with.

    together: tables whose scores are read at the same time, and share them: one for each attacker, and another one for
    the sizes of cohorts in the population.
    """

    chunk_rows: int
    working: int
    together: int = 1

    def values_bytes(self) -> int:
        """Bytes that the values of a column may take while they are numbered."""
        return int(VALUES_SHARE * self.working)

    def distinct_scores(self, columns: int) -> int:
        """Return how many distinct scores each of so many columns of all partitions of one table may have."""
        return int(DISTINCT_SCORES_SHARE * self.working) // (8 * columns * self.together)

    def partition_rows(self, job: Job) -> int:
        """Rows of a part that are scored at once, with half of the scored columns; InputError where that is nothing."""
        words = job.layout.words
        codes = sum(max(1, (len(counts) - 1).bit_length() // 8) for counts in job.counts)
        # With wildcards there is no part that could be scored for fewer.
        at_once = len(job.scored_columns) if job.wildcards else -(-len(job.scored_columns) // 2)
        scores = 8 * scores_at_once(replace(job, measures=part_measures(job))) * at_once
        # Row numbers, and counts, which with weights are large.
        index = 4 if job.unit is None else 8
        row = codes + 8 * 5 * words + 12 * index + scores + 8
        return self._partition_bytes(job, row) // row

    def any_known_bytes(self, job: Job, needs: AnyKnownNeeds) -> int:
        """Bytes that the different rows of the table may take that are scored against attackers who know any few
        columns; InputError where that is nothing.
        """
        return self._partition_bytes(job, -(-needs.least(LEAST_PARTITION) // LEAST_PARTITION), DISTINCT_SHARE)

    def _partition_bytes(self, job: Job, row: int, share: float = PARTITION_SHARE) -> int:
        """Return the bytes of a partition whose rows take so much each, beside what values of columns take."""
        different = sum(job.cardinalities)
        # Scores of values by themselves: of all columns, and of the one at work once more.
        values = 8 * ((3 + len(job.measures)) * different + len(job.measures) * max(map(len, job.counts)))
        least, found = LEAST_PARTITION * row, int(share * (self.working - values))
        if found < least:
            more = values + least / share - self.working
            raise InputError(
                f"memory_limit: the columns have {different:,} different values, so that {shown(more)} more are needed "
                "to score. Leave identifiers out, bin measurements, or raise it."
            )
        return found

    def planned_rows(self, limit: int, rows: int, columns: int, files: int = 1) -> int:
        """Rows that parts are planned with, of which `limit` are scored at once: not so few that files run out.

        files: of each part, that are read together, those of all parts of two passes.
        """
        parts = max(1, (files_to_open() - SPARE_FILES - 2 * columns) // (2 * files))
        return max(1, int(SLACK * limit), -(-rows // parts))


def files_to_open() -> int:
    """Files that this process may have open at a time, after having asked for as many as it can get."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def plan_budget(limit: int, request: ScoreRequest, mend: str = FEWER_COLUMNS) -> Budget:
    """Return what a run with this memory limit may have in memory at once.

    Raises InputError where that is too little; mend: what helps beside a higher limit.
    """
    attackers = len(request.attackers or [None])
    cells = len(request.scored_columns) * attackers
    written = sum(np.dtype(measure.type_in(request.dtype)).itemsize for measure in request.outputs)
    # A chunk is written while the next one is put together of what parts have for it.
    row = cells * (2 * written + 8 * len(request.outputs)) + 16 * len(request.read) + 64
    most = _fitting(limit, row, mend)
    chunk_rows = min(MOST_CHUNK, 1 << (most.chunk_rows.bit_length() - 1))
    return most._replace(chunk_rows=chunk_rows, together=attackers * (2 if request.has_population else 1))


def riskiest_bytes(top: int, cells: int, scores: int) -> int:
    """Bytes that so many of the riskiest of a number of cells take at most, each with so many scores."""
    return min(top, cells) * (RISKIEST_BYTES + RISKIEST_SCORE_BYTES * scores)


def check_riskiest(budget: Budget, source: Source, request: ScoreRequest, options: OutputOptions) -> None:
    """Raise InputError where so many of the riskiest cells are asked for that memory is too little."""
    top = None if options.selection is None else options.selection.top
    if top is None:
        return
    scores = len(request.outputs) * len(request.attackers or [None])
    needed = riskiest_bytes(top, source.about_rows() * len(request.scored_columns), scores)
    if needed > RISKIEST_SHARE * budget.working:
        raise InputError(
            f"memory_limit: the {top:,} riskiest cells take about {shown(needed)}, and the limit leaves "
            f"{shown(RISKIEST_SHARE * budget.working)} for them. Raise it, ask for fewer (top=), or for all above a "
            "threshold (where=)."
        )


def plan_reading(limit: int, columns: int, mend: str = "look at fewer columns") -> Budget:
    """Return what a run with this memory limit that reads so many columns, and keeps no scores, may have in memory.

    Raises InputError where that, or the files that may be open, are too little; mend: what helps beside a higher limit.
    """
    most = _fitting(limit, CELL_BYTES * columns, mend)
    check_files("table", columns, "Look at")
    return most._replace(chunk_rows=min(MOST_CHUNK, most.chunk_rows))


def _fitting(limit: int, row: int, mend: str) -> Budget:
    """Return as many rows of a chunk as fit, of so many bytes each; raises InputError for too few."""
    resident = resident_bytes()
    working = limit - resident - RESERVE
    fits = int(CHUNK_SHARE * working) // row
    if fits < LEAST_CHUNK:
        least = (resident + RESERVE + int(LEAST_CHUNK * row / CHUNK_SHARE)) / 2**20
        raise InputError(
            f"memory_limit: expected at least {least:,.0f} MiB for this table ({resident / 2**20:,.0f} MiB are taken "
            f"before anything is read), got {limit / 2**20:,.0f} MiB. Raise it, or {mend}."
        )
    return Budget(fits, working)


def check_files(argument: str, columns: int, do: str) -> None:
    """Raise InputError where so many columns need more open files than there may be. do: what is done with them."""
    if files_to_open() < 3 * columns + SPARE_FILES:
        raise InputError(
            f"{argument}: {columns:,} columns need as many files open at a time, three times over, which the system "
            f"does not allow. {do} fewer, or allow more (ulimit -n)."
        )


def check_disk(
    source: Source,
    request: ScoreRequest,
    spill: Path,
    output: Path,
    options: OutputOptions,
    population: Source | None = None,
) -> int:
    """Raise OutputError where spill files and scores will not fit on their disks; returns the bytes of spill files.

    An estimate, from the number of rows and how well such tables are compressed.
    """
    people = 0 if population is None else population.about_rows()
    rows = source.about_rows()
    attackers = len(request.attackers or [None])
    scored_columns = len(request.scored_columns) * attackers
    kept = len({computed_measure(measure) for measure in request.outputs})
    scores = SCORE_BYTES * scored_columns * kept
    spilled = int(rows * ((1 + 2 * attackers) * CODE_BYTES * len(request.read) + scores + 8))
    # The population is encoded, and cut with the table.
    spilled += int(CODE_BYTES * len(request.used) * (people + 2 * attackers * (people + rows * bool(people))))
    each = TEXT_BYTES if written_format(options.output).as_text else SCORE_BYTES
    written = int(rows * each * scored_columns * len(request.outputs))
    if options.keep_input:
        written += source.bytes
    if not options.all_scores:
        written = 0
    same = spill.stat().st_dev == output.stat().st_dev
    for folder, needed, what, mend in (
        (spill, spilled + written * same, "spill files", ELSEWHERE),
        (output, written + spilled * same, "scores", "choose another place for them"),
    ):
        check_room(folder, needed, f"{what} of {rows:,} rows", mend)
    return spilled


def check_room(folder: Path, needed: int, what: str, mend: str) -> None:
    """Raise OutputError where a disk has no room for so many bytes; what: they are; mend: what else can be done."""
    free = free_disk(folder)
    if free < needed:
        raise OutputError(
            f"{folder}: {what} will need about {shown(needed)}, {shown(free)} are free. Free some, or {mend}."
        )
