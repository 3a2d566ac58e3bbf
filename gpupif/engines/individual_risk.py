"""Measures of rows that need both the rows and the people of a class, if rows have sampling weights.

An engine counts a row as so many people, so a class is counted twice: once as people, with all other measures, and once
as rows. The measure then follows from both counts on the host, with the same bits for every engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import individual_risk as kernels

from ..measures import as_weighted, resolve_measures
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .base import EngineResult, Job
from .shared_scores import SharedScores

# Arrays as large as the scores of one measure that are needed beside these while classes are counted twice.
FURTHER_ARRAYS = 3


def individual_risk(rows: npt.NDArray[np.int64], people: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return Benedetti & Franconi's risk r of classes with so many rows f in the sample and an estimated size F there.

    r is the expected value of 1 / F if F, given f, is negative binomial: F - f people are missed before f are
    sampled, each with probability p = f / F: r = p times the integral of u^(f-1) / (p + (1-p) u) from 0 to 1. For f = 1
    that is p / (1-p) ln(1 / p); for F of at most f it is 1 / f, and for F = 0 it is 0. The error is a few units of the
    last bit for any f and F.

    rows: 1 or more. people: 0 or more. References: Benedetti & Franconi 1998; Franconi & Polettini 2004, Individual
    risk estimation in mu-Argus: a review.
    """
    risks = np.empty(len(rows))

    def fill(start: int, stop: int) -> None:
        kernels.individual_risks(rows[start:stop], people[start:stop], risks[start:stop])

    with Workers() as workers:
        workers.run(fill, workers.ranges(len(rows)))
    return risks


def needs_rows(job: Job) -> bool:
    """Return whether a measure of the job needs the rows of classes beside the people that these stand for."""
    return job.unit is not None and any(measure.of_rows_and_people for measure in job.measures)


def scores_at_once(job: Job) -> int:
    """Return how many arrays as large as the scores of one measure are needed at once while a job is scored."""
    return len(job.measures) + (FURTHER_ARRAYS if needs_rows(job) else 0)


def count_people(job: Job) -> Job:
    """Return the job with the people of each class in place of measures that need its rows too."""
    if not needs_rows(job):
        return job
    (size,) = resolve_measures("class_size")
    others = [measure for measure in job.measures if not measure.of_rows_and_people]
    return replace(job, measures=list(dict.fromkeys([*others, as_weighted(size)])))


def count_rows(job: Job) -> Job:
    """Return the job of counting the rows of each class, on the host."""
    measures = resolve_measures("class_size")
    of_rows = replace(job, measures=measures, times=job.row_counts, row_counts=None, unit=None)
    return replace(of_rows, axes=None, least=None, scores_on="host")


def with_individual_risk(job: Job, by_people: EngineResult, by_rows: EngineResult) -> EngineResult:
    """Return the result of a job from those of `count_people` and `count_rows`."""
    sizes = by_people.values["class_size"]
    people = sizes.all_rows() if isinstance(sizes, SharedScores) else on_host(sizes)
    rows = on_host(by_rows.values["class_size"])
    # The sizes of classes are the same array for all scored columns if these are known: the risk is computed once then.
    number = len(people) if people.strides[0] else 1
    risks: npt.NDArray[Any] = np.stack([individual_risk(rows[k], people[k]).astype(job.dtype) for k in range(number)])
    risks = np.broadcast_to(risks, people.shape)
    values = {one.name: risks if one.of_rows_and_people else by_people.values[one.name] for one in job.measures}
    return replace(by_people, values=values)
