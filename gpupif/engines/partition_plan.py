"""The partition plan: a large table is cut into partitions that hold cohorts whole, and each is a job of its own.

A table is partitioned by the hash of some known columns. All rows that agree on these columns are in one partition. A
cohort's rows agree on all known columns except the scored column, so a partition has the whole cohort, if the table is
not partitioned by the scored column. Two passes are enough: each partitions by the columns that the other scores.
`rows.partition` cuts a table into blocks by the same rule.
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
    """Scored columns that are scored together on one partitioning of the table.

    scored_columns: the columns to score. by: known columns whose hash partitions the table; none: one partition.
    """

    scored_columns: list[int]
    by: list[int]

    def halves(self, known: Sequence[int], entropies: Sequence[float]) -> list[Pass]:
        """Return two passes, each for half of the scored columns, and partitioned by the known other half as well.

        The partitions become smaller. A pass with a single scored column returns itself only.
        """
        groups = [half for half in split(self.scored_columns, entropies) if half]
        return [Pass(group, [column for column in known if column not in group]) for group in groups]


def cohorts_stay_whole(job: Job, any_known: bool) -> bool:
    """Return whether a table can be scored partition by partition, because each cohort is in one partition.

    If missing values match every value, cohorts overlap. An attacker who knows any few columns (any_known) has other
    cohorts for each set of columns. In both cases all distinct rows are scored at once.
    """
    return not job.wildcards and not any_known


def plan_shuffles(job: Job, rows: int, part_rows: int) -> list[Pass]:
    """Return the passes that score all scored columns of a table: two at most.

    job: may have no codes. rows: rows of the table. part_rows: about the number of rows of a partition.
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
    # A scored column that is not known has whole cohorts in each pass: add it to the pass with the smallest partitions.
    finest = max(passes, key=lambda one: sum(entropies[column] for column in one.by))
    return [Pass([*one.scored_columns, *outside], one.by) if one is finest else one for one in passes]


def part_ids(
    codes: Sequence[npt.NDArray[Any]], cardinalities: Sequence[int], by: Sequence[int], parts: int, workers: Workers
) -> npt.NDArray[Any]:
    """Return the partition of each row, (rows,), from the hash of its codes. by: columns. parts: their number."""
    rows = len(codes[0])
    ids = np.zeros(rows, np.uint16 if parts <= 2**16 else np.uint32)
    if parts > 1 and by:
        layout = KeyLayout.from_cardinalities([cardinalities[column] for column in by])
        keys = layout.pack([codes[column] for column in by], workers)
        masks = np.full(layout.words, ~np.uint64(0))
        workers.run(lambda a, b: kernels.partition_ids(keys[a:b], masks, parts, ids[a:b]), workers.ranges(rows))
    return ids


def part_measures(job: Job) -> tuple[Measure, ...]:
    """Return the measures that partitions are scored for: CIG in place of wCIG. Weights need all partitions."""
    return tuple(
        dict.fromkeys(
            resolve_measures(computed_measure(measure))[0] if measure.weighted else measure for measure in job.measures
        )
    )


def part_job(
    job: Job,
    scored_columns: Sequence[int],
    codes: Sequence[npt.NDArray[Any]],
    multiplicities: Any = None,
    row_counts: Any = None,
) -> Job:
    """Return the job that scores some columns on a partition, in float64, with the priors of the whole table.

    codes: by column of the job, (rows of the partition,). multiplicities, row_counts: see `Job`.
    """
    return replace(
        job,
        codes=codes,
        multiplicities=multiplicities,
        row_counts=row_counts,
        scored_columns=list(scored_columns),
        measures=part_measures(job),
        dtype="float64",
        scores_on="host",
    )


def compact_codes(job: Job) -> Job:
    """Return the job of a partition with new codes for columns that have more values than the partition has rows.

    An engine prepares arrays for the values of each column. After this they take no longer than the rows.
    """
    if job.wildcards:
        # All rows are in one partition if there are wildcards.
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
    """The sums from some partitions of a table that give the weights of scored columns.

    cohorts: by scored column, the sum over the sizes of its cohorts, see `EngineResult`.
    distinct: by scored column, the sum over rows that agree on the known and the scored column.
    weights: by "", "worst" or "mean", and by scored column, the weight itself, if all rows are in one partition. With
        wildcards, and for attackers who know any few columns, weights do not follow from sums.
    """

    cohorts: dict[int, LogSum] = field(default_factory=dict)
    distinct: dict[int, LogSum] = field(default_factory=dict)
    weights: dict[str, dict[int, float]] = field(default_factory=dict)

    @classmethod
    def from_result(
        cls, result: EngineResult | AnyKnownResult, scored_columns: Sequence[int], in_one_part: bool
    ) -> WeightSums:
        """Return the sums of a partition from its result. in_one_part: whether it has all rows of the table."""
        if in_one_part or isinstance(result, AnyKnownResult):
            by_aggregate = result.weights_by_aggregate().items()
            return cls(
                weights={
                    aggregate: dict(zip(scored_columns, weights, strict=True)) for aggregate, weights in by_aggregate
                }
            )
        cohorts, distinct = (
            {scored_column: sizes.log_sum() for scored_column, sizes in zip(scored_columns, several, strict=True)}
            for several in (result.cohorts, result.distinct)
        )
        return cls(cohorts, distinct)

    @classmethod
    def total(cls, *parts: WeightSums) -> WeightSums:
        """Return the sums of several partitions together. Each may be for other scored columns."""
        cohorts, distinct = (_added(sums) for sums in ([one.cohorts for one in parts], [one.distinct for one in parts]))
        weights: dict[str, dict[int, float]] = {}
        for one in parts:
            for aggregate, found in one.weights.items():
                weights[aggregate] = weights.get(aggregate, {}) | found
        return cls(cohorts, distinct, weights)

    def by_aggregate(self, job: Job, total: int) -> dict[str, list[float]]:
        """Return the weights of a job's scored columns, in their order, by "", or "worst" and "mean".

        total: the sum of the multiplicities of all rows of the table.
        """
        if self.weights:
            return {
                aggregate: [found[scored_column] for scored_column in job.scored_columns]
                for aggregate, found in self.weights.items()
            }
        return {"": [self._weight(job, total, scored_column) for scored_column in job.scored_columns]}

    def _weight(self, job: Job, total: int, scored_column: int) -> float:
        conditional = conditional_entropy(self.cohorts[scored_column], self.distinct[scored_column], total)
        return column_weight(conditional, entropy_of_counts(job.counts[scored_column]))


def _added(several: Sequence[Mapping[int, LogSum]]) -> dict[int, LogSum]:
    """Return sums by scored column over several partitions."""
    scored_columns = sorted({scored_column for sums in several for scored_column in sums})
    return {
        scored_column: LogSum.total(sums[scored_column] for sums in several if scored_column in sums)
        for scored_column in scored_columns
    }


def computed_measure(measure: Measure) -> str:
    """Return the name of the measure that partitions compute for a measure: itself, or CIG for wCIG."""
    return "cig" if measure.weighted else measure.name
