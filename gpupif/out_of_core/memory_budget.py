"""The memory limit of a run, divided into rows of a chunk, rows of a partition and values of a column.

Estimates of the disk that a run needs are here too.
"""

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
from ..engines.partition_plan import computed_measure, partition_measures
from ..errors import InputError, OutputError
from ..io.base import Source
from ..io.checkpoints import free_disk
from ..io.formats import written_format
from ..utils.heap import limit_arenas
from ..utils.memory import give_back_unused, resident_bytes, shown
from .output_options import OutputOptions

# Bytes kept free for libraries that are loaded later, compiled kernels, and buffers of readers and writers.
RESERVE = 96 << 20
LEAST_CHUNK, MOST_CHUNK = 1 << 14, 1 << 20
LEAST_PARTITION = 1 << 14
# The least number of reads that a chunk is put together from, so that a single read takes little memory.
READS_PER_CHUNK = 4
# Most open files of a run; and the share of them that is not for partitions and columns.
MOST_FILES, SPARE_FILES = 1 << 13, 128
# Shares of the working memory: of a chunk, of a partition, and of the values of a column.
CHUNK_SHARE, PARTITION_SHARE, VALUES_SHARE = 0.35, 0.7, 0.3
# The share of all distinct rows that are scored at once; little else is in memory then.
DISTINCT_SHARE = 0.85
# The share of the distinct scores of all partitions, held while chunks read the numbers of their scores.
DISTINCT_SCORES_SHARE = 0.2
# Partitions are planned smaller than the rows that can be scored at once, because their sizes differ by chance.
SLACK = 0.7
# Compressed bytes on disk of a code in a chunk or a partition, and of a score; measured with `benchmarks.scale`.
CODE_BYTES, SCORE_BYTES = 0.6, 4.5
# Bytes of a cell while a chunk is read and encoded: the value and its code.
CELL_BYTES = 32
# Ends of error messages: other remedies than a higher limit.
ELSEWHERE = "choose another place with temp (--temp)"
FEWER_COLUMNS = "score fewer columns"
# Bytes of one of the riskiest cells during the search, and of each of its scores, measured; and their share of the
# working memory.
RISKIEST_BYTES, RISKIEST_SCORE_BYTES, RISKIEST_SHARE = 160, 48, 0.3
# The share of the memory limit from which unused memory is given back.
NEAR_LIMIT = 0.87
# Bytes of tables of selected cells while they are written, measured.
SELECTED_CELLS = 24 << 20
# Bytes of a score in a text format.
TEXT_BYTES = 18


class Budget(NamedTuple):
    """The memory of a run.

    chunk_rows: int. The number of rows of a chunk.
    working: int. Bytes to work with.
    together: int. The number of tables whose scores are read at once and share the memory: one for each attacker, and a
    second one each for sizes of cohorts in a population. Default 1.
    limit: int. The memory limit of the process, in bytes. Default 0: unused memory is always given back.
    """

    chunk_rows: int
    working: int
    together: int = 1
    limit: int = 0

    def give_back_unused(self) -> None:
        """Return unused memory to the system if the process is near its limit: to take it again costs time."""
        if resident_bytes() > NEAR_LIMIT * self.limit:
            give_back_unused()

    def values_bytes(self) -> int:
        """Return the bytes that the values of a column may take while they are numbered."""
        return int(VALUES_SHARE * self.working)

    def distinct_scores(self, columns: int) -> int:
        """Return the most distinct scores of each of `columns` columns, which count all partitions of one table."""
        return int(DISTINCT_SCORES_SHARE * self.working) // (8 * columns * self.together)

    def partition_rows(self, job: Job, has_population: bool = False) -> int:
        """Return the rows of a partition that are scored at once, with half of the scored columns.

        has_population: bool. Whether some of the rows are the population's.

        Raises InputError if memory is too small for LEAST_PARTITION rows.
        """
        words = job.layout.words
        codes = sum(max(1, (len(counts) - 1).bit_length() // 8) for counts in job.counts)
        # All scored columns are scored together if missing values are wildcards.
        at_once = len(job.scored_columns) if job.wildcards else -(-len(job.scored_columns) // 2)
        scores = 8 * scores_at_once(replace(job, measures=partition_measures(job))) * at_once
        # Row numbers and counts; sums of weights are large.
        index = 4 if job.unit is None else 8
        row = codes + 8 * 5 * words + 12 * index + scores + 8
        if has_population:
            # The rows of the table apart from those of the population, and the size in the population of each cohort.
            row += 8 * words + 2 * index + 8 * at_once
        return self._partition_bytes(job, row) // row

    def any_known_bytes(self, job: Job, needs: AnyKnownNeeds) -> int:
        """Return the bytes for the distinct rows, scored against attackers who know any few columns.

        Raises InputError if memory is too small for LEAST_PARTITION rows.
        """
        return self._partition_bytes(job, -(-needs.least(LEAST_PARTITION) // LEAST_PARTITION), DISTINCT_SHARE)

    def _partition_bytes(self, job: Job, row: int, share: float = PARTITION_SHARE) -> int:
        """Return the bytes for the rows of a partition, without the bytes for values of columns.

        row: int. The bytes of one row.
        """
        distinct = sum(job.cardinalities)
        # Scores of one-value cohorts: of all columns, and once more of the column at work.
        values = 8 * ((3 + len(job.measures)) * distinct + len(job.measures) * max(map(len, job.counts)))
        least, there = LEAST_PARTITION * row, int(share * (self.working - values))
        if there < least:
            more = values + least / share - self.working
            raise InputError(
                f"memory_limit: the columns have {distinct:,} distinct values, so that {shown(more)} more are needed "
                "to score. Leave identifiers out, bin measurements, or raise it."
            )
        return there

    def planned_rows(self, limit: int, rows: int, columns: int, files: int = 1) -> int:
        """Return the number of rows to plan a partition with.

        limit: int. The number of rows that can be scored at once.
        rows, columns: int. The size of the table.
        files: int. The files of a partition that are read together. Partitions of two passes have to fit into the open
        files.
        """
        parts = max(1, (files_to_open() - SPARE_FILES - 2 * columns) // (2 * files))
        return max(1, int(SLACK * limit), -(-rows // parts))


def files_to_open() -> int:
    """Return the number of files that this process may open at a time, after raising it as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def plan_budget(
    limit: int, request: ScoreRequest, mend: str = FEWER_COLUMNS, options: OutputOptions | None = None
) -> Budget:
    """Return the memory budget of a scoring run: the largest chunks that the memory limit allows.

    mend: str. The remedy that an error names besides a higher limit.
    options: OutputOptions. The output: text takes more memory.

    Raises InputError if the limit is too low.
    """
    attackers = len(request.attackers or [None])
    cells = len(request.scored_columns) * attackers
    written = sum(np.dtype(measure.type_in(request.dtype)).itemsize for measure in request.outputs)
    # A chunk is written while the next chunk is put together from the scores of partitions.
    row = cells * (2 * written + 8 * len(request.outputs)) + 16 * len(request.read) + 64
    selects = options is not None and options.selection is not None and options.selection.top is None
    most = _fitting(limit, row, mend, RESERVE + selects * SELECTED_CELLS)
    fits = most.chunk_rows
    if options is not None and not options.summary_only and written_format(options.output).as_text:
        row += cells * TEXT_BYTES * len(request.outputs)
    # A chunk of fewer rows takes more time; a limit that is too low for it is no error.
    fits = max(min(fits, LEAST_CHUNK), min(fits, int(CHUNK_SHARE * most.working) // row))
    chunk_rows = min(MOST_CHUNK, 1 << (fits.bit_length() - 1))
    return most._replace(chunk_rows=chunk_rows, together=attackers * (2 if request.has_population else 1))


def riskiest_bytes(top: int, cells: int, scores: int) -> int:
    """Return the most bytes that the `top` riskiest of a number of cells take. scores: number of scores of a cell."""
    return min(top, cells) * (RISKIEST_BYTES + RISKIEST_SCORE_BYTES * scores)


def check_riskiest(budget: Budget, source: Source, request: ScoreRequest, options: OutputOptions) -> None:
    """Raise InputError if the requested number of riskiest cells takes too much memory."""
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
    """Return the memory budget of a run that reads this number of columns and keeps no scores.

    mend: str. The remedy that an error names besides a higher limit.

    Raises InputError if the limit, or the number of files that may be open, is too low.
    """
    most = _fitting(limit, CELL_BYTES * columns, mend)
    check_files("table", columns, "Look at")
    return most._replace(chunk_rows=min(MOST_CHUNK, most.chunk_rows))


def _fitting(limit: int, row: int, mend: str, reserve: int = RESERVE) -> Budget:
    """Return a budget with as many rows of a chunk as fit; raise InputError for too few.

    row: int. The bytes of a row.
    reserve: int. The bytes to keep free.
    """
    limit_arenas()
    resident = resident_bytes()
    working = limit - resident - reserve
    fits = int(CHUNK_SHARE * working) // row
    if fits < LEAST_CHUNK:
        least = (resident + reserve + int(LEAST_CHUNK * row / CHUNK_SHARE)) / 2**20
        came, more = f"{limit / 2**20:,.0f} MiB", "Raise it"
        if limit < 2**20:
            came, more = f"{limit}", f"A number without a unit counts bytes: write {limit}MiB"
        raise InputError(
            f"memory_limit: expected at least {least:,.0f} MiB for this table ({resident / 2**20:,.0f} MiB are taken "
            f"before anything is read), got {came}. {more}, or {mend}."
        )
    return Budget(fits, working, limit=limit)


def check_files(argument: str, columns: int, do: str) -> None:
    """Raise InputError if this number of columns needs more open files than allowed. do: verb for the message."""
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
    """Raise OutputError if spill files or scores will not fit on their disks; return the bytes of spill files.

    The bytes are estimated from the number of rows and typical compression.
    """
    others = 0 if population is None else population.about_rows()
    rows = source.about_rows()
    attackers = len(request.attackers or [None])
    scored_columns = len(request.scored_columns) * attackers
    kept = len({computed_measure(measure) for measure in request.outputs})
    scores = SCORE_BYTES * scored_columns * kept
    spilled = int(rows * ((1 + 2 * attackers) * CODE_BYTES * len(request.read) + scores + 8))
    # The population is encoded, and sent to partitions with the table.
    spilled += int(CODE_BYTES * len(request.used) * (others + 2 * attackers * (others + rows * bool(others))))
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
    """Raise OutputError if a disk has too little room. what: the files that need it; mend: the remedy."""
    free = free_disk(folder)
    if free < needed:
        raise OutputError(
            f"{folder}: {what} will need about {shown(needed)}, {shown(free)} are free. Free some, or {mend}."
        )
