"""Measures of rows that need both the rows and the people of a class, where rows have sampling weights.

An engine counts a row as so many people, so a class is counted twice: once as people, with all other measures, and once
as rows. What the measure is of both follows on the host, whatever the engine: the same bits everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpupif.kernels import individual_risk as kernels

from ..measures import as_weighted, resolve_measures
from ..rows.threads import Workers
from ..utils.arrays import on_host
from .base import SILENT, EngineResult, Job, Progress
from .shared_scores import SharedScores

# Arrays as large as the scores of a measure that are there beside these, where classes are counted twice.
FURTHER_ARRAYS = 3
# Gives the scores of a job.
Score = Callable[[Job, Progress], EngineResult]


def individual_risk(rows: npt.NDArray[np.int64], people: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Benedetti & Franconi's risk r of classes with so many rows f in the sample and an estimated size F there.

    r is the expected value of 1 / F where F, given f, is negative binomial: F - f people are missed before f are
    sampled, each with probability p = f / F: r = p times the integral of u^(f-1) / (p + (1-p) u) from 0 to 1. For f = 1
    that is p / (1-p) ln(1 / p); where F is at most f it is 1 / f, and where F = 0, 0. Right to a few units of the last
    bit for any f and F.

    rows: 1 or more. people: 0 or more. References: Benedetti & Franconi 1998; Franconi & Polettini 2004, Individual
    risk estimation in mu-Argus: a review.
    """
    found = np.empty(len(rows))

    def fill(start: int, stop: int) -> None:
        kernels.individual_risks(rows[start:stop], people[start:stop], found[start:stop])

    with Workers() as workers:
        workers.run(fill, workers.ranges(len(rows)))
    return found


def needs_rows(job: Job) -> bool:
    """Whether a measure of the job needs the rows of classes beside the people that these stand for."""
    return job.unit is not None and any(measure.of_rows_and_people for measure in job.measures)


def scores_at_once(job: Job) -> int:
    """How many arrays as large as the scores of one measure are there at once while a job is scored."""
    return len(job.measures) + (FURTHER_ARRAYS if needs_rows(job) else 0)


def score_rows_and_people(score: Score, job: Job, progress: Progress) -> EngineResult:
    """Score a job with an engine's `score`; measures that need the rows and the people of classes by both."""
    if not needs_rows(job):
        return score(job, progress)
    (size,) = resolve_measures("class_size")
    asked = [measure for measure in job.measures if not measure.of_rows_and_people]
    by_people = list(dict.fromkeys([*asked, as_weighted(size)]))
    result = score(replace(job, measures=by_people), progress)
    counted = score(_by_rows(replace(job, measures=(size,))), SILENT)
    people, rows = result.values[size.name], counted.values[size.name]
    risks = _risks(people.all_rows() if isinstance(people, SharedScores) else on_host(people), on_host(rows), job.dtype)
    values = {one.name: risks if one.of_rows_and_people else result.values[one.name] for one in job.measures}
    return replace(result, values=values)


def _by_rows(job: Job) -> Job:
    """The same job, with rows counted as rows, on the host."""
    return replace(job, times=job.row_counts, row_counts=None, unit=None, axes=None, scores_on="host")


def _risks(people: npt.NDArray[np.float64], rows: npt.NDArray[np.int64], dtype: str) -> npt.NDArray[Any]:
    """Individual risks (scored columns, rows)."""
    # Of several known columns they are the same, and there once.
    different = len(people) if people.strides[0] else 1
    risks = np.stack([individual_risk(rows[place], people[place]).astype(dtype) for place in range(different)])
    return np.broadcast_to(risks, people.shape)
