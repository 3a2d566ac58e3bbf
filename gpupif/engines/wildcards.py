"""Missing values that match every value of the attacker's knowledge: what all engines have in common.

Cohorts then overlap, so there is no partition to score by. Engines compare *patterns*: which known columns are missing.
Rows of two patterns match where they agree on the columns that neither lacks. `cpu.wildcards` and `cuda.wildcards` do
it; which scored columns need it, what to compare, how much work that may be, and weights are told here.
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

# Steps, each a look-up and what is found, 10 to 50 ns of a CPU: an hour or two of one core.
MOST_STEPS = 2e11
# What a pair of patterns costs beside its keys.
PAIR_STEPS = 16


@dataclass(frozen=True)
class WildcardColumns:
    """The known columns of one scored column, in keys of a layout. columns: all of them; wild: those with missing
    values.
    """

    job: Job
    layout: KeyLayout
    columns: Sequence[int]
    wild: Sequence[int]

    @classmethod
    def of(cls, job: Job, layout: KeyLayout, scored_column: int | None = None) -> WildcardColumns:
        """Those known where this scored column is scored; without a scored column all known ones."""
        columns = [column for column in job.known if column != scored_column]
        return cls(job, layout, columns, [column for column in columns if column in job.wildcards])

    @property
    def words(self) -> int:
        """Words of a pattern: bit c of it says that the c-th wild column is missing."""
        return max(1, -(-len(self.wild) // 64))

    @property
    def fields(self) -> npt.NDArray[np.uint64]:
        """Where the wild columns are: (word, shift, mask) of each."""
        return np.array([self.layout.fields[column] for column in self.wild], np.uint64).reshape(-1, 3)

    @property
    def missing(self) -> npt.NDArray[np.uint64]:
        """Their codes of missing values."""
        return np.array([len(self.job.priors[column]) for column in self.wild], np.uint64)

    def keep(self, patterns: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """For each pattern (patterns, words) the masks of the known columns that it does not lack."""
        keep = np.tile(self.layout.masks(self.columns), (len(patterns), 1))
        for bit, column in enumerate(self.wild):
            lacking = (patterns[:, bit // 64] >> np.uint64(bit % 64)) & np.uint64(1) == 1
            keep[lacking] &= ~self.layout.masks([column])
        return keep

    def check_work(self, scored_columns: int, patterns: int, rows: int) -> None:
        """Raise InputError where comparing each pattern with each would take too long, on so many different rows."""
        steps = 2.0 * scored_columns * patterns * (rows + PAIR_STEPS * patterns)
        if steps > MOST_STEPS:
            raise InputError(
                f"missing: 'wildcard' compares each of {patterns:,} patterns of missing values in {len(self.wild)} "
                f"known columns with each, over {rows:,} different rows and {scored_columns} scored columns: about "
                f"{steps:.0e} steps, expected at most {MOST_STEPS:.0e}. Let the attacker know fewer columns that have "
                "missing values (known=), score fewer at once (columns=), or use missing='category'."
            )


def columns_to_match(job: Job) -> list[int]:
    """Return the scored columns of a job that meet missing values which are wildcards."""
    known_lack = any(column in job.wildcards for column in job.known)
    return [column for column in job.scored_columns if known_lack or column in job.wildcards]


def with_other_columns(job: Job, result: EngineResult, rest: Job, others: EngineResult) -> EngineResult:
    """Return the result of a job with the scores and weights of its other scored columns put in.

    rest: the job of the other scored columns, whose result is `others`.
    """
    for number, column in enumerate(rest.scored_columns):
        slot = job.scored_columns.index(column)
        result.weights[slot] = others.weights[number]
        for name, values in result.values.items():
            values[slot] = others.values[name][number]
    return replace(result, through_host=others.through_host)


def set_scored_column_weight(results: Results, column: int, losses: npt.NDArray[Any]) -> None:
    """Set the weight of a scored column. losses: of its rows, ascending, so that the sum does not depend on their
    order.
    """
    job = results.job
    counts = job.counts[column][: len(job.priors[column])]
    certain = int(counts.sum())
    entropy = entropy_of_counts(counts) if certain else 0.0
    results.weights[job.scored_columns.index(column)] = column_weight(float(losses.sum()) / max(1, certain), entropy)
