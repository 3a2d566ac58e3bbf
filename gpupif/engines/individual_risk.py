"""Measures of rows that need both the rows and the people of an equivalence class, if rows have sampling weights.

An engine counts each row as many people. An equivalence class is therefore counted twice: as people, with all other
measures, and as rows. The host computes the measure from both counts, with equal bits for every engine.
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

# Further arrays, each as large as the scores of one measure, that counting twice needs.
FURTHER_ARRAYS = 3


def individual_risk(rows: npt.NDArray[np.int64], people: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the individual risk r of Benedetti and Franconi for equivalence classes, (classes,) float64 from 0 to 1.

    A class has f rows in the sample and an estimated F people in the population. r is the expected value of 1 / size,
    if the size, given f, is negative binomial with probability p = f / F. That is p times the integral of
    u^(f-1) / (p + (1-p) u) from 0 to 1. For f = 1 it is p / (1-p) ln(1 / p). If F is at most f, r is 1 / f; if F is 0,
    r is 0. The error is a few units of the last bit.

    rows: (classes,) int64, f, 1 or more. people: (classes,) float64, F, 0 or more.

    References: Benedetti & Franconi 1998; Franconi & Polettini 2004, Individual risk estimation in mu-Argus: a review.
    """
    risks = np.empty(len(rows))

    def fill(start: int, stop: int) -> None:
        kernels.individual_risks(rows[start:stop], people[start:stop], risks[start:stop])

    with Workers() as workers:
        workers.run(fill, workers.ranges(len(rows)))
    return risks


def needs_rows(job: Job) -> bool:
    """Return whether a measure of the job needs the rows of equivalence classes in addition to their people."""
    return job.unit is not None and any(measure.of_rows_and_people for measure in job.measures)


def scores_at_once(job: Job) -> int:
    """Return the number of arrays, each as large as the scores of one measure, that scoring needs at once."""
    return len(job.measures) + (FURTHER_ARRAYS if needs_rows(job) else 0)


def count_people(job: Job) -> Job:
    """Return the job with the people of each equivalence class in place of measures that need its rows too."""
    if not needs_rows(job):
        return job
    (size,) = resolve_measures("class_size")
    others = [measure for measure in job.measures if not measure.of_rows_and_people]
    return replace(job, measures=list(dict.fromkeys([*others, as_weighted(size)])))


def count_rows(job: Job) -> Job:
    """Return the job that counts the rows of each equivalence class, on the host."""
    measures = resolve_measures("class_size")
    of_rows = replace(job, measures=measures, multiplicities=job.row_counts, row_counts=None, unit=None)
    return replace(of_rows, axes=None, least=None, scores_on="host")


def with_individual_risk(job: Job, by_people: EngineResult, by_rows: EngineResult) -> EngineResult:
    """Return the result of a job from the results of `count_people` and `count_rows`."""
    sizes = by_people.values["class_size"]
    people = sizes.all_rows() if isinstance(sizes, SharedScores) else on_host(sizes)
    rows = on_host(by_rows.values["class_size"])
    # If the scored columns are known, all share one array of sizes (stride 0): compute the risk once.
    number = len(people) if people.strides[0] else 1
    risks: npt.NDArray[Any] = np.stack([individual_risk(rows[k], people[k]).astype(job.dtype) for k in range(number)])
    risks = np.broadcast_to(risks, people.shape)
    values = {one.name: risks if one.of_rows_and_people else by_people.values[one.name] for one in job.measures}
    return replace(by_people, values=values)
