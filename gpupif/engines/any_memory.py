"""How much memory it takes to score attackers who know any few columns, and how what there is gets shared out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..keys import KeyLayout
from ..measures import wanted_of
from .partition import index_type

if TYPE_CHECKING:
    from .base import Job

# Slots of a thread at least, by which rows are numbered.
LEAST_SLOTS = 1 << 16
# Of what is left when all that must be there is: for slots and for the scores of sets; the rest stays free.
SLOTS_SHARE, BATCH_SHARE = 0.3, 0.6


class AnyShares(NamedTuple):
    """targets: whose scores are folded at once. threads: that score sets at once. slots: of each, see `AnyKnownRun`;
    batch: bytes of combinations' scores that are kept at once, by all of them.
    """

    targets: int
    threads: int
    slots: int
    batch: int


class AnyNeeds(NamedTuple):
    """Bytes for each distinct row. fixed: whatever is scored. kept: of each target whose results are kept. folded: of
    each that is folded. thread: of each thread, and for each target that it scores at once. batch: as thread, of a set
    that is scored and not yet folded.
    """

    fixed: int
    kept: int
    folded: int
    thread: tuple[int, int]
    batch: tuple[int, int]

    @classmethod
    def of(cls, job: Job, rows: int) -> AnyNeeds:
        """For a job, without codes perhaps, on a table of so many rows."""
        words, index = (
            KeyLayout.of([len(counts) for counts in job.counts]).words,
            np.dtype(index_type(rows + 1)).itemsize,
        )
        codes = sum(max(1, (len(counts) - 1).bit_length() // 8) for counts in job.counts)
        pairs, kinds = -(-len(job.measures) // 2), len(wanted_of(job.measures).kinds)
        # Codes and counts as they come, and of what the run makes of them; while they are collapsed, keys with them.
        fixed = 2 * codes + 16 + 6 * 8 * words + 14 * index
        # Numbers of rows; what groups and cohorts are found with; keys, counts and hashes of combinations.
        thread = 24 + 20 + 64 + 48 + 8 * kinds + 8 * words + index + 8 + 5 * 16 + 14 * index
        # Of combinations, as many as rows at most, and of as many values of the target.
        scores = 48 * pairs + 2 * index
        return cls(fixed, 16 * len(job.measures), 32 * pairs, (thread, scores), (4, 16 * pairs))

    def row(self, kept: int = 1) -> int:
        """Bytes that a distinct row takes at least: with one target at a time; kept: targets whose results are."""
        return self.fixed + self.kept * kept + self.folded + sum(self.thread) + sum(self.batch)


def share_out(needs: AnyNeeds, distinct: int, targets: int, widest: int, threads: int, memory: int) -> AnyShares:
    """What a run on so many distinct rows may take of the memory that there is, in bytes: at least what it must.

    targets: to score; their results are kept as long as they are folded. widest: targets that one set serves at most.
    """
    at_once = targets
    while True:
        together = min(at_once, widest)
        rest = needs.fixed + (needs.kept + needs.folded) * at_once + needs.batch[0] + needs.batch[1] * together
        each = distinct * (needs.thread[0] + needs.thread[1] * together) + 8 * LEAST_SLOTS
        several = (memory - distinct * rest) // each
        # Fewer targets at once are more work, as columns are numbered again for the others; so are fewer threads.
        if at_once == 1 or several >= max(1, threads // 2):
            break
        at_once = -(-at_once // 2)
    used = max(1, min(threads, several))
    left = max(0, memory - distinct * rest - used * each)
    slots = LEAST_SLOTS + int(SLOTS_SHARE * left) // (8 * used)
    batch = distinct * (needs.batch[0] + needs.batch[1] * together) + int(BATCH_SHARE * left)
    return AnyShares(at_once, used, slots, batch)
