"""A table too large for one place: how it is cut into parts that hold cohorts whole, and what a part is scored for.

The same idea as in `partition`, one level up: rows that agree on a set of columns lie in the same part, so every cohort
of every column outside that set lies in one part. Two passes, each with its own cut, serve all columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import partition as kernels

from ..measures import Measure, resolve_measures
from ..rows.keys import KeyLayout, code_type
from ..rows.partition import plan_passes, split
from ..rows.threads import Workers
from ..utils.information import LogSum, column_weight, conditional_entropy, entropy_of_counts
from .base import AnyKnownResult, EngineResult, Job
from .kernel_inputs import value_mass


@dataclass(frozen=True)
class Pass:
    """Scored columns scored together on parts of the table cut by the columns `by`; none: the table is one part."""

    scored_columns: list[int]
    by: list[int]

    def halves(self, known: Sequence[int], entropies: Sequence[float]) -> list[Pass]:
        """Half of the scored columns each, cut by the other half too as far as that is known; of a single scored
        column, itself.
        """
        groups = [half for half in split(self.scored_columns, entropies) if half]
        return [Pass(group, [column for column in known if column not in group]) for group in groups]


def cohorts_stay_whole(job: Job, any_known: bool) -> bool:
    """Whether a table can be scored in parts: cut by known columns, each cohort lies in one of them.

    Where missing values match every value cohorts overlap, and an attacker who knows any few columns (any_known) has
    cohorts of his own for each set of them: then distinct rows are scored in one place.
    """
    return not job.wildcards and not any_known


def plan_shuffles(job: Job, rows: int, part_rows: int) -> list[Pass]:
    """The passes that score all scored columns of a table of so many rows in parts of about `part_rows` rows.

    job: without codes of rows; its cohorts stay whole. Two passes at most.
    """
    if job.wildcards or rows <= part_rows:
        return [Pass(list(job.scored_columns), [])]
    entropies = [entropy_of_counts(counts) for counts in job.counts]
    inside = [column for column in job.scored_columns if column in job.known]
    outside = [column for column in job.scored_columns if column not in job.known]
    if not inside:
        return [Pass(outside, list(job.known))]
    groups = plan_passes(inside, job.known, entropies, rows, part_rows)
    passes = [Pass(group, [column for column in job.known if column not in group]) for group in groups]
    # A scored column that is not known has its cohorts whole in any pass: it goes where the cut is finest.
    finest = max(passes, key=lambda one: sum(entropies[column] for column in one.by))
    return [Pass([*one.scored_columns, *outside], one.by) if one is finest else one for one in passes]


def part_ids(
    codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], by: Sequence[int], parts: int, workers: Workers
) -> npt.NDArray[Any]:
    """In which of `parts` parts each row lies: by the hash of its codes in the columns `by`."""
    rows = len(codes[0])
    ids = np.zeros(rows, np.uint16 if parts <= 2**16 else np.uint32)
    if parts > 1 and by:
        layout = KeyLayout.of([cardinalities[column] for column in by])
        keys = layout.pack([codes[column] for column in by], workers)
        masks = np.full(layout.words, ~np.uint64(0))
        workers.run(lambda a, b: kernels.partition_ids(keys[a:b], masks, parts, ids[a:b]), workers.ranges(rows))
    return ids


def part_measures(job: Job) -> tuple[Measure, ...]:
    """What parts are scored for: CIG in place of wCIG, for the weights of columns need all parts."""
    return tuple(
        dict.fromkeys(
            resolve_measures(computed_measure(measure))[0] if measure.weighted else measure for measure in job.measures
        )
    )


def part_job(
    job: Job,
    scored_columns: Sequence[int],
    codes: Sequence[npt.NDArray[Any]],
    times: Any = None,
    row_counts: Any = None,
) -> Job:
    """The job of scoring some scored columns on a part of the table, in float64, with the priors of the whole table."""
    return replace(
        job,
        codes=codes,
        times=times,
        row_counts=row_counts,
        scored_columns=list(scored_columns),
        measures=part_measures(job),
        dtype="float64",
        scores_on="host",
    )


def compact_codes(job: Job) -> Job:
    """The job with those columns numbered anew that have more values in the table than the part has rows.

    What an engine prepares for each value of a column costs no more then than the rows do.
    """
    if job.wildcards:
        # All rows are in one part.
        return job
    codes, counts, priors, logs = (list(many) for many in (job.codes, job.counts, job.priors, job.log2_priors))
    axes = None if job.axes is None else list(job.axes)
    whole = [value_mass(shares) for shares in priors]
    for column, values in enumerate(job.counts):
        if len(values) > job.rows:
            used, numbers = np.unique(codes[column], return_inverse=True)
            codes[column] = numbers.astype(code_type(len(used)))
            counts[column], priors[column], logs[column] = (
                several[used] for several in (values, priors[column], logs[column])
            )
            if axes is not None:
                axis = axes[column]
                axes[column] = None if axis is None else axis.only(used)
    return replace(job, codes=codes, counts=counts, priors=priors, log2_priors=logs, axes=axes, whole=whole)


@dataclass(frozen=True)
class WeightSums:
    """What the weights of scored columns are made of, found in some parts of a table.

    cohorts, distinct: by scored column the sum over its cohorts, and over groups of rows that agree on the scored
    column too, see
    `EngineResult`. weights: by fold and scored column the weights themselves, where all rows are in one part: with
    wildcards, and over attackers who know any few columns, sums are of no use.
    """

    cohorts: dict[int, LogSum] = field(default_factory=dict)
    distinct: dict[int, LogSum] = field(default_factory=dict)
    weights: dict[str, dict[int, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: EngineResult | AnyKnownResult, scored_columns: Sequence[int], in_one_part: bool) -> WeightSums:
        """Those of a part in which these scored columns were scored."""
        if in_one_part or isinstance(result, AnyKnownResult):
            by_fold = result.weights_by_fold().items()
            return cls(weights={fold: dict(zip(scored_columns, weights, strict=True)) for fold, weights in by_fold})
        cohorts, distinct = (
            {scored_column: sizes.log_sum() for scored_column, sizes in zip(scored_columns, several, strict=True)}
            for several in (result.cohorts, result.distinct)
        )
        return cls(cohorts, distinct)

    @classmethod
    def total(cls, *parts: WeightSums) -> WeightSums:
        """Those of several parts together, for the same scored columns or others."""
        cohorts, distinct = (_added(sums) for sums in ([one.cohorts for one in parts], [one.distinct for one in parts]))
        weights: dict[str, dict[int, float]] = {}
        for one in parts:
            for fold, found in one.weights.items():
                weights[fold] = weights.get(fold, {}) | found
        return cls(cohorts, distinct, weights)

    def by_fold(self, job: Job, total: int) -> dict[str, list[float]]:
        """The weights of a job's scored columns by fold, in order; total: what all rows of the table count together."""
        if self.weights:
            return {
                fold: [found[scored_column] for scored_column in job.scored_columns]
                for fold, found in self.weights.items()
            }
        return {"": [self._weight(job, total, scored_column) for scored_column in job.scored_columns]}

    def _weight(self, job: Job, total: int, scored_column: int) -> float:
        conditional = conditional_entropy(self.cohorts[scored_column], self.distinct[scored_column], total)
        return column_weight(conditional, entropy_of_counts(job.counts[scored_column]))


def _added(several: Sequence[Mapping[int, LogSum]]) -> dict[int, LogSum]:
    """Sums by scored column, of several parts together."""
    scored_columns = sorted({scored_column for sums in several for scored_column in sums})
    return {
        scored_column: LogSum.total(sums[scored_column] for sums in several if scored_column in sums)
        for scored_column in scored_columns
    }


def computed_measure(measure: Measure) -> str:
    """The measure of `part_job` that a measure is made from: itself, or CIG, to be multiplied by the weight."""
    return "cig" if measure.weighted else measure.name
