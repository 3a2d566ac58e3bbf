"""How much memory it takes to score attackers who know any few columns, and how what there is gets shared out."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..measures import wanted_of
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import index_type
from .base import AnyKnownShares, Job, KnownSubset
from .block_scoring import SHARED_SCORES
from .individual_risk import scores_at_once

# Rows among which different ones are looked for at once, as a share of these.
AT_ONCE = 0.25
# Slots of a thread at least and at most, by which rows are numbered.
LEAST_SLOTS, MOST_SLOTS = 1 << 16, 1 << 26
# Of what is left when all that must be there is: for more slots, and more scores of sets at once; the rest stays free.
SLOTS_SHARE, BATCH_SHARE = 0.3, 0.5


def working_memory(job: Job, at_once: int) -> int:
    """Return the bytes of all arrays with one item a row that scoring takes at most; most are used by turns.

    at_once: how many scored columns are scored before their scores are spread to all rows.
    """
    words, index = job.layout.words, np.dtype(index_type(job.total + 1)).itemsize
    places = job.rows + max((len(job.counts[column]) for column in job.scored_columns), default=0) + SHARED_SCORES
    scores = 8 * places * len(job.measures) * min(at_once, len(job.scored_columns))
    return job.rows * (5 * 8 * words + 14 * index) + scores


class AnyKnownNeeds(NamedTuple):
    """Bytes that scoring takes.

    For each distinct row: fixed, whatever is scored; collapsing, while they are found, beside these; kept, for each
    scored column whose results are kept; folded, for each that is folded; thread, for each thread; numbering, for each
    too,
    where it has no slot for each possible combination; number, for each set that is scored and not yet folded. For each
    combination of a set's values: scoring, for each thread, and for each scored column at once; scores, for each
    scored column of a set that is not yet folded.

    combinations: that a set may have at most, were there rows enough. widest: scored columns that one set serves at
    most.
    """

    fixed: int
    collapsing: int
    kept: int
    folded: int
    thread: int
    numbering: int
    number: int
    scoring: tuple[int, int]
    scores: int
    combinations: int
    widest: int

    @classmethod
    def of(cls, job: Job, rows: int, sets: Sequence[KnownSubset]) -> AnyKnownNeeds:
        """For a job, without codes perhaps, on a table of so many rows."""
        sizes = job.cardinalities
        words, index = job.layout.words, np.dtype(index_type(rows + 1)).itemsize
        codes = sum(np.dtype(code_type(size)).itemsize for size in sizes)
        pairs, kinds = -(-len(job.measures) // 2), len(wanted_of(job.measures).kinds)
        most = max(len(one.columns) for one in sets)
        keys = KeyLayout.of(sorted(sizes)[-most:]).words
        # Keys, counts, hashes, first rows; what groups and cohorts are found with has room for twice as many.
        scoring = 8 * keys + index + 8 + 2 * (20 + 72 + 48 + 8 * kinds)
        return cls(
            # Codes and counts as they come, and what the run makes of them.
            fixed=(1 if job.distinct else 2) * codes + 16 + 2 * index,
            collapsing=0 if job.distinct else collapsing_bytes(words, index),
            kept=16 * scores_at_once(job),
            folded=32 * pairs,
            thread=20,
            numbering=6 * 8 * 2 + 14 * index,
            number=4,
            # As many values of the scored column may come to the combinations.
            scoring=(scoring, 48 * pairs + 2 * index),
            scores=16 * pairs,
            combinations=max(math.prod(sizes[column] for column in one.columns) for one in sets),
            widest=max(len(one.scored_columns) for one in sets),
        )

    def slots(self, distinct: int) -> int:
        """Slots of a thread: one for each possible combination, unless numbering by keys takes less."""
        fit = self.combinations <= MOST_SLOTS and 8 * self.combinations <= self.numbering * distinct
        return max(LEAST_SLOTS, self.combinations) if fit else LEAST_SLOTS

    def bytes_of(self, distinct: int, kept: int, folded: int, threads: int) -> int:
        """For so many distinct rows, scored columns whose results are kept, that are folded at once, and threads."""
        combinations, together = min(distinct, self.combinations), min(folded, self.widest)
        slots = self.slots(distinct)
        thread = distinct * (self.thread + (self.numbering if slots < self.combinations else 0)) + 8 * slots
        thread += combinations * (self.scoring[0] + self.scoring[1] * together)
        scored = distinct * (self.fixed + self.kept * kept + self.folded * folded) + threads * thread
        return max(scored + self.one_set(distinct, folded), distinct * (self.fixed + self.collapsing))

    def one_set(self, distinct: int, folded: int) -> int:
        """Of a set that is scored and not yet folded."""
        together = min(folded, self.widest)
        return distinct * self.number + min(distinct, self.combinations) * self.scores * together

    def least(self, distinct: int, kept: int = 1) -> int:
        """With one scored column at a time, and one thread."""
        return self.bytes_of(distinct, kept, 1, 1)

    def most_rows(self, memory: int, rows: int) -> int:
        """Of so many rows, how many different ones there may be; the memory is enough for none, it may be: 0."""
        return bisect_right(range(1, rows + 1), memory, key=self.least)


def collapsing_bytes(words: int, index: int) -> int:
    """Bytes that each of so many distinct rows takes while they are found, with those that come to them at once.

    words: of a row's key. index: bytes of a number of rows.
    """
    return int((1 + AT_ONCE) * (6 * 8 * words + 14 * index + 16))


def share_memory(
    needs: AnyKnownNeeds, distinct: int, scored_columns: int, threads: int, memory: int, kept: int = 0
) -> AnyKnownShares:
    """What a run on so many distinct rows may take of the memory that there is, in bytes: at least what it must.

    scored columns: to score. kept: results that are kept; 0: those of the scored columns that are folded at once.
    """
    at_once = scored_columns
    while True:
        used = max(1, threads)
        while used > 1 and needs.bytes_of(distinct, kept or at_once, at_once, used) > memory:
            used -= 1
        # Fewer scored columns at once are more work, as columns are numbered again for the others; so are fewer
        # threads.
        enough = used >= threads // 2 and needs.bytes_of(distinct, kept or at_once, at_once, used) <= memory
        if at_once == 1 or enough:
            break
        at_once = -(-at_once // 2)
    left = max(0, memory - needs.bytes_of(distinct, kept or at_once, at_once, used))
    # Only columns of so few values that there are slots enough for them are numbered by slots.
    slots = needs.slots(distinct) + int(SLOTS_SHARE * left) // (8 * used)
    slots = min(slots, max(needs.slots(distinct), needs.combinations), MOST_SLOTS)
    return AnyKnownShares(at_once, used, slots, needs.one_set(distinct, at_once) + int(BATCH_SHARE * left))
