"""Missing values that match every value of the attacker's knowledge: the code that all engines share.

Cohorts then overlap, so a table cannot be partitioned by cohort. The *pattern* of a row is the set of its known columns
with a missing value. Two rows match if they agree on the known columns that neither pattern has. `cpu.wildcards` and
`cuda.wildcards` find the matching rows, pair of patterns by pair. This module has the columns to compare, the limit of
the work, and the weights of columns in weighted CIG. Sampling weights are counts of rows: `attacker_scoring.score_job`
has the steps for both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InputError
from ..rows.keys import KeyLayout
from ..utils.information import column_weight, entropy_of_counts
from .base import EngineResult, Job
from .block_scoring import Results

# Most steps. A step is a look-up, 10 to 50 ns on a CPU: 2e11 steps take one core an hour or two.
MOST_STEPS = 2e11
# Steps for each pair of patterns, without its keys.
PAIR_STEPS = 16


@dataclass(frozen=True)
class WildcardColumns:
    """The known columns while one column is scored, and their fields in row keys.

    columns: all known columns. wild: the known columns with missing values.
    """

    job: Job
    layout: KeyLayout
    columns: Sequence[int]
    wild: Sequence[int]

    @classmethod
    def known_for(cls, job: Job, layout: KeyLayout, scored_column: int | None = None) -> WildcardColumns:
        """Return the columns that are known while `scored_column` is scored; None: all known columns."""
        columns = [column for column in job.known if column != scored_column]
        return cls(job, layout, columns, [column for column in columns if column in job.wildcards])

    @property
    def words(self) -> int:
        """The number of words of a pattern. Bit c of a pattern is 1 if the c-th wild column is missing."""
        return max(1, -(-len(self.wild) // 64))

    @property
    def fields(self) -> npt.NDArray[np.uint64]:
        """The fields of the wild columns in row keys, (columns, 3): word, shift and mask."""
        return np.array([self.layout.fields[column] for column in self.wild], np.uint64).reshape(-1, 3)

    @property
    def missing(self) -> npt.NDArray[np.uint64]:
        """The code of the missing value in each wild column."""
        return np.array([len(self.job.priors[column]) for column in self.wild], np.uint64)

    def keep(self, patterns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Return the masks of known columns that are not missing, for each pattern. patterns: (patterns, words)."""
        keep = np.tile(self.layout.masks(self.columns), (len(patterns), 1))
        for bit, column in enumerate(self.wild):
            lacking = (patterns[:, bit // 64] >> np.uint64(bit % 64)) & np.uint64(1) == 1
            keep[lacking] &= ~self.layout.masks([column])
        return keep

    def check_work(self, scored_columns: int, patterns: int, rows: int) -> None:
        """Raise InputError if comparing all pairs of patterns would take too long. rows: number of distinct rows."""
        steps = 2.0 * scored_columns * patterns * (rows + PAIR_STEPS * patterns)
        if steps > MOST_STEPS:
            raise InputError(
                f"missing: 'wildcard' compares each of {patterns:,} patterns of missing values in {len(self.wild)} "
                f"known columns with each, over {rows:,} distinct rows and {scored_columns} scored columns: about "
                f"{steps:.0e} steps, expected at most {MOST_STEPS:.0e}. Let the attacker know fewer columns that have "
                "missing values (known=), score fewer at once (columns=), or use missing='category'."
            )


def columns_to_match(job: Job) -> list[int]:
    """Return the scored columns of a job that need matching: a wildcard is in their known columns or in themselves."""
    known_lack = any(column in job.wildcards for column in job.known)
    return [column for column in job.scored_columns if known_lack or column in job.wildcards]


def with_other_columns(job: Job, result: EngineResult, rest: Job, others: EngineResult) -> EngineResult:
    """Return the result of a job, completed by the scores and weights of its other scored columns.

    rest: the job of the other scored columns. others: its result.
    """
    for number, column in enumerate(rest.scored_columns):
        slot = job.scored_columns.index(column)
        result.weights[slot] = others.weights[number]
        for name, values in result.values.items():
            values[slot] = others.values[name][number]
    return replace(result, through_host=others.through_host)


def set_scored_column_weight(results: Results, column: int, losses: npt.NDArray[Any]) -> None:
    """Set the weight of a scored column. losses: (rows,) ascending, so that the sum does not depend on row order."""
    job = results.job
    counts = job.counts[column][: len(job.priors[column])]
    certain = int(counts.sum())
    entropy = entropy_of_counts(counts) if certain else 0.0
    results.weights[job.scored_columns.index(column)] = column_weight(float(losses.sum()) / max(1, certain), entropy)
