"""Predictions of the memory that scoring takes: on the host, on a GPU, and against attackers who know any few columns.

Predictions of the host's memory are upper bounds. Predictions of a GPU's memory are coarse: an engine that runs out of
it tries again with fewer rows or columns.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from gpupif.kernels.cohorts import Cells
from gpupif.kernels.statistics import is_largest, is_scaled, is_walk, needs_mass

from ..measures import wanted_of
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import index_type
from ..utils.information import SMALL_COUNTS
from .base import AnyKnownShares, Job, KnownSubset
from .block_scoring import SHARED_SCORES
from .individual_risk import scores_at_once

# Further rows that are collapsed at once, as a share of the distinct rows so far.
AT_ONCE = 0.25
# Fewest and most slots of a thread, by which rows are numbered.
LEAST_SLOTS, MOST_SLOTS = 1 << 16, 1 << 26
# Shares of the memory that is left after all needs: for more slots, and for more scores of sets at once.
SLOTS_SHARE, BATCH_SHARE = 0.3, 0.5


# Words of a sum of whole numbers on a GPU: `gpupif.kernels.cuda.cohorts.PARTS`, which not all machines can import.
SUM_WORDS = 3
# A GPU's bytes for each row to find equal rows, without row keys: buffers of a sort, or tables of hashes and counts.
FINDING_BYTES = 60
# Most rows whose numbers take 4 bytes, see `cuda.rows.NARROW_ROWS`.
NARROW_ROWS = (1 << 31) - 1
# Numbers of arrays with items of 8 bytes that wildcards need. MATCHING: an item for each row, without the arrays of
# keys and measures (four of each). LINK: an item for each pair of a key and a pattern. MATCH: an item for each cell of
# the cohorts that are made at once.
MATCHING_ARRAYS, LINK_ARRAYS, MATCH_ARRAYS = 33, 6, 24


def working_memory(job: Job, at_once: int) -> int:
    """Return the most bytes that scoring needs for arrays with an item for each row. Most of them share memory.

    at_once: the number of scored columns that are scored before their scores are copied to all rows.
    """
    words, index = job.layout.words, np.dtype(index_type(job.total + 1)).itemsize
    places = job.rows + max((len(job.counts[column]) for column in job.scored_columns), default=0) + SHARED_SCORES
    scores = 8 * places * len(job.measures) * min(at_once, len(job.scored_columns))
    return job.rows * (5 * 8 * words + 14 * index) + scores


class AnyKnownNeeds(NamedTuple):
    """The bytes that scoring takes against an attacker who knows any of several sets of columns.

    For each distinct row:

    fixed: bytes that do not depend on the scored columns.
    collapsing: further bytes while distinct rows are found.
    kept: bytes for each scored column whose results are kept.
    combined: bytes for each scored column whose worst and mean are computed at once.
    thread: bytes for each thread.
    numbering: further bytes for each thread, if it has fewer slots than there are possible combinations.
    number: bytes for each set that is scored, until its scores are added.

    For each combination of a set's values:

    scoring: bytes for each thread, and further bytes for each scored column at once.
    scores: bytes for each scored column of a set, until its scores are added.

    Numbers:

    combinations: the most combinations of values that any set can have, in a table of any length.
    widest: the most scored columns of any set.
    """

    fixed: int
    collapsing: int
    kept: int
    combined: int
    thread: int
    numbering: int
    number: int
    scoring: tuple[int, int]
    scores: int
    combinations: int
    widest: int

    @classmethod
    def from_job(cls, job: Job, rows: int, sets: Sequence[KnownSubset]) -> AnyKnownNeeds:
        """Return the needs of a job. job: may have no codes. rows: the number of rows of the table."""
        sizes = job.cardinalities
        words, index = job.layout.words, np.dtype(index_type(rows + 1)).itemsize
        codes = sum(np.dtype(code_type(size)).itemsize for size in sizes)
        pairs, kinds = -(-len(job.measures) // 2), len(wanted_of(job.measures).kinds)
        most = max(len(one.columns) for one in sets)
        keys = KeyLayout.from_cardinalities(sorted(sizes)[-most:]).words
        # Keys, counts, hashes and first rows. The tables that find equal rows and cohorts have twice as many places.
        scoring = 8 * keys + index + 8 + 2 * (20 + 72 + 48 + 8 * kinds)
        return cls(
            # Codes and counts as given, and again for the distinct rows of the run.
            fixed=(1 if job.distinct else 2) * codes + 16 + 2 * index,
            collapsing=0 if job.distinct else collapsing_bytes(words, index),
            kept=16 * scores_at_once(job),
            combined=32 * pairs,
            thread=20,
            numbering=6 * 8 * 2 + 14 * index,
            number=4,
            # The scored column may have as many values as there are combinations: their scores come on top.
            scoring=(scoring, 48 * pairs + 2 * index),
            scores=16 * pairs,
            combinations=max(math.prod(sizes[column] for column in one.columns) for one in sets),
            widest=max(len(one.scored_columns) for one in sets),
        )

    def slots(self, distinct: int) -> int:
        """Return the slots of a thread: one for each possible combination, unless numbering by keys takes less."""
        fit = self.combinations <= MOST_SLOTS and 8 * self.combinations <= self.numbering * distinct
        return max(LEAST_SLOTS, self.combinations) if fit else LEAST_SLOTS

    def bytes_of(self, distinct: int, kept: int, combined: int, threads: int) -> int:
        """Return the bytes of a whole run.

        distinct: the number of distinct rows.
        kept: the number of scored columns whose results are kept.
        combined: the number of scored columns whose worst and mean are computed at once.
        threads: the number of threads.
        """
        combinations, together = min(distinct, self.combinations), min(combined, self.widest)
        slots = self.slots(distinct)
        thread = distinct * (self.thread + (self.numbering if slots < self.combinations else 0)) + 8 * slots
        thread += combinations * (self.scoring[0] + self.scoring[1] * together)
        scored = distinct * (self.fixed + self.kept * kept + self.combined * combined) + threads * thread
        return max(scored + self.one_set(distinct, combined), distinct * (self.fixed + self.collapsing))

    def one_set(self, distinct: int, combined: int) -> int:
        """Return the bytes of one set whose scores are not yet added. Arguments: see `bytes_of`."""
        together = min(combined, self.widest)
        return distinct * self.number + min(distinct, self.combinations) * self.scores * together

    def least(self, distinct: int, kept: int = 1) -> int:
        """Return the fewest bytes of a run: one scored column at a time, in one thread."""
        return self.bytes_of(distinct, kept, 1, 1)

    def most_rows(self, memory: int, rows: int) -> int:
        """Return the most distinct rows that fit. memory: bytes. rows: rows of the table. 0 if no row fits."""
        return bisect_right(range(1, rows + 1), memory, key=self.least)


def collapsing_bytes(words: int, index: int) -> int:
    """Return the bytes for each distinct row, while further rows are collapsed with the distinct rows.

    words: the number of words of a row key. index: the bytes of a row number.
    """
    return int((1 + AT_ONCE) * (6 * 8 * words + 14 * index + 16))


def share_memory(
    needs: AnyKnownNeeds, distinct: int, scored_columns: int, threads: int, memory: int, kept: int = 0
) -> AnyKnownShares:
    """Return the shares of memory for a run. It uses more than `memory` if its least needs are larger.

    distinct: the number of distinct rows.
    scored_columns: the number of columns to score.
    threads: the most threads.
    memory: bytes to use.
    kept: the number of scored columns whose results are kept; 0: as many as are computed at once.
    """
    at_once = scored_columns
    while True:
        used = max(1, threads)
        while used > 1 and needs.bytes_of(distinct, kept or at_once, at_once, used) > memory:
            used -= 1
        # Both ways to save memory cost time. Fewer scored columns at once: rows are numbered again for each turn.
        enough = used >= threads // 2 and needs.bytes_of(distinct, kept or at_once, at_once, used) <= memory
        if at_once == 1 or enough:
            break
        at_once = -(-at_once // 2)
    left = max(0, memory - needs.bytes_of(distinct, kept or at_once, at_once, used))
    # Rows are numbered by slots only if there is a slot for each possible combination, so more slots never help.
    slots = needs.slots(distinct) + int(SLOTS_SHARE * left) // (8 * used)
    slots = min(slots, max(needs.slots(distinct), needs.combinations), MOST_SLOTS)
    return AnyKnownShares(at_once, used, slots, needs.one_set(distinct, at_once) + int(BATCH_SHARE * left))


def looks_ahead(kinds: Iterable[int], accuracy: float) -> bool:
    """Return whether a statistic needs the largest term of a cohort, or the prior mass of its values, first."""
    of_largest = any(is_largest.py_func(kind) or is_scaled.py_func(kind) for kind in kinds)
    return of_largest or any(needs_mass.py_func(kind, accuracy) for kind in kinds)


def sum_bytes(statistics: int, ahead: bool) -> int:
    """Return a GPU's bytes for the sums of a cohort. statistics: their number. ahead: see `looks_ahead`."""
    return 8 * (SUM_WORDS * (statistics + ahead) + statistics * ahead)


def row_bytes(job: Job, multiplicities: bool | None = None, whole: bool = True, to_host: bool = True) -> int:
    """Return a GPU's bytes for each row while one scored column is scored, if all rows are distinct.

    multiplicities: whether the rows have multiplicities. Default: as in the job.
    whole: whether the rows are the whole table, of which some scored columns need a projection. Default yes.
    to_host: whether scores are copied to the host while the next scores are computed. Default yes.
    """
    kinds, key, place = (
        wanted_of(job.measures, job.unit).kinds,
        8 * job.layout.words,
        4 if job.rows <= NARROW_ROWS else 8,
    )
    ahead = any(looks_ahead(kinds, job.accuracies[column]) for column in job.scored_columns)
    # Keys, multiplicities, and the number of each row's distinct row.
    distinct = (key + 8 + place) * (2 if whole and _projects(job) else 1)
    cells = Cells.for_cells(1, walks=any(map(is_walk.py_func, kinds)))
    scores, kept = 8 * len(job.measures), 0 if job.extremes_only else cell_bytes(job)
    # Order, cohort of each row, starts and sizes of cohorts; cells; statistics; then sums or scores.
    sums = 4 + sum_bytes(len(kinds), ahead)
    scoring = 3 * place + 8 + int(sum(array.nbytes for array in cells)) + 8 * len(kinds) + max(sums, scores)
    # The order, and while the scores of one measure are copied to all rows: scores, row numbers, and products.
    spreading = place + scores + kept + 3 * 8
    weighing = place + 8 + scores + (56 if job.multiplicities is not None else 32)
    finding = (
        2 * key
        + FINDING_BYTES
        + (8 if (job.multiplicities is not None if multiplicities is None else multiplicities) else 0)
    )
    return distinct + (kept if to_host else 0) + max(finding, scoring, spreading, weighing)


def _projects(job: Job) -> bool:
    """Return whether any scored column needs distinct rows over fewer columns than the job has."""
    inside = [column for column in job.scored_columns if column in job.known]
    return len(inside) < len(job.scored_columns) or {*inside, *job.known} != {*range(len(job.codes))}


def fixed_bytes(values: int) -> int:
    """Return a GPU's bytes that do not depend on the rows: priors and logarithms. values: their number."""
    return 16 * values + 8 * SMALL_COUNTS


def all_values(job: Job) -> int:
    """Return the sum of the numbers of values of all columns."""
    return sum(map(len, job.counts))


def cell_bytes(job: Job) -> int:
    """Return the bytes of the scores of a cell."""
    return sum(np.dtype(measure.type_in(job.dtype)).itemsize for measure in job.measures)


def score_bytes(job: Job) -> int:
    """Return the bytes of the scores of all scored columns."""
    return 0 if job.extremes_only else cell_bytes(job) * job.rows * len(job.scored_columns)


def table_bytes(job: Job, scores_on: str = "host") -> int:
    """Return a GPU's bytes to score the whole table, including the scores if `scores_on` is "device"."""
    there = scores_on == "device"
    return (
        job.rows * row_bytes(job, to_host=not there) + fixed_bytes(all_values(job)) + (score_bytes(job) if there else 0)
    )


def scores_on(job: Job, memory: int) -> str | None:
    """Return the place of the scores, "device" or "host", of a table that a GPU scores as a whole; None if too large.

    memory: the GPU's bytes.
    """
    if job.scores_on != "host" and table_bytes(job, "device") <= memory:
        return "device"
    return "host" if job.scores_on != "device" and table_bytes(job) <= memory else None


def block_rows_that_fit(job: Job, memory: int) -> int:
    """Return the number of distinct rows from the host that a GPU can score at once. memory: the GPU's bytes."""
    values = max(map(len, job.counts))
    return max(1, (memory - fixed_bytes(values)) // row_bytes(job, multiplicities=True, whole=False, to_host=False))


def matching_bytes(job: Job) -> int:
    """Return a GPU's bytes to score with wildcards, without the keys that are scored at once and without the scores."""
    row = 8 * (4 * job.layout.words + MATCHING_ARRAYS + 4 * len(job.measures))
    return job.rows * row + fixed_bytes(all_values(job))


def link_bytes(patterns: int) -> int:
    """Return a GPU's bytes to find the lists that match one key. patterns: their number."""
    return 8 * LINK_ARRAYS * patterns


def match_bytes(measures: int) -> int:
    """Return a GPU's bytes for one cell of the cohort that one key matches."""
    return 8 * (MATCH_ARRAYS + measures) + sum_bytes(measures, ahead=True)


def accumulator_bytes(job: Job, rows: int) -> int:
    """Return the bytes of the worst scores and the sums of one scored column. rows: the number of distinct rows."""
    return 2 * 8 * rows * len(job.measures)
