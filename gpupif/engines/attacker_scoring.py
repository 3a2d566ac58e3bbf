"""Scores of a job against one attacker, who knows a list of columns or any of several sets of columns.

This module has the order of the steps, for every engine: `score_job` for a list of columns, `StepwiseEngine.score_sets`
for sets. An engine adds the steps themselves (`JobSteps`). Sampling weights are counts of rows in all of them, so that
weights, rows of weight 0 and wildcards go together.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from .any_known import needs_whole_engine, score_each_set
from .base import SILENT, AnyKnownResult, AnyKnownShares, Engine, EngineResult, Job, KnownSubset, Progress, served
from .block_scoring import Results
from .individual_risk import count_people, count_rows, needs_rows, with_individual_risk
from .wildcards import columns_to_match, with_other_columns
from .zero_weights import counted_rows, has_zero_weights, with_zero_weights


class JobSteps(Protocol):
    """The steps that an engine does on its devices, for jobs whose codes are in the order of the axes."""

    threads: int | None

    def score_cohorts(self, job: Job, progress: Progress) -> EngineResult:
        """Score a job without wildcards in which every row counts."""

    def score_matching(self, job: Job, scored_columns: Sequence[int], progress: Progress) -> EngineResult:
        """Score some of the job's scored columns against known columns in which missing values match every value.

        The arrays of the result have room for all scored columns. Raise InputError for too many patterns of missing
        values.
        """

    def score_known_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None
    ) -> AnyKnownResult:
        """Score a job without wildcards in which every row counts, against an attacker who knows any of the sets."""

    def placed(self, scores: dict[str, Any], job: Job) -> dict[str, Any]:
        """Return the scores of all rows on the device that the job requires."""


class StepwiseEngine(ABC):
    """An engine that opens its devices for a job, and then does the steps in the order of this module."""

    @abstractmethod
    def opened(self, job: Job) -> AbstractContextManager[tuple[Job, JobSteps]]:
        """Return a context with the job, its codes in the order of the axes, and the steps on the open devices."""

    def score(self, job: Job, progress: Progress) -> EngineResult:
        """Score all scored columns of the job (see `Engine`).

        Raise InputError for too many patterns of missing values, and DeviceError if a GPU fails or is too small.
        """
        with self.opened(job) as (ordered, steps):
            result = score_job(ordered, progress, steps)
            return replace(result, values=steps.placed(result.values, ordered))

    def score_sets(
        self, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
    ) -> AnyKnownResult:
        """Score against any attacker (see `Engine`). Raise the errors of `score`."""
        with self.opened(job) as (ordered, steps):
            if needs_whole_engine(ordered):
                score = partial(score_job, steps=steps)
                result = score_each_set(score, ordered, sets, progress, steps.threads, shares)
            else:
                result = steps.score_known_sets(ordered, sets, progress, shares)
            worst, mean = (steps.placed(scores, ordered) for scores in (result.worst, result.mean))
            return replace(result, worst=worst, mean=mean)


def score_attacker(
    engine: Engine,
    job: Job,
    sets: Sequence[KnownSubset] | None,
    progress: Progress,
    shares: AnyKnownShares | None = None,
) -> EngineResult | AnyKnownResult:
    """Score a job against an attacker who knows `job.known`, or, if there are `sets`, any of these sets of columns."""
    return engine.score(job, progress) if sets is None else score_sets(engine, job, sets, progress, shares)


def score_sets(
    engine: Engine, job: Job, sets: Sequence[KnownSubset], progress: Progress, shares: AnyKnownShares | None = None
) -> AnyKnownResult:
    """Return the worst and the mean score of each cell over attackers, each of whom knows one of the sets.

    The scores are on the host or a device, as `job.scores_on` says.

    sets: at least one for each scored column. Sums are formed in the order of the sets, and scores depend on no other
        order. Scoring is faster if neighbours share many columns. Sets with none of the scored columns are skipped.
    shares: the shares of the host's memory, if it is limited.
    """
    return engine.score_sets(replace(job, known=[]), served(sets, job.scored_columns), progress, shares)


def score_job(job: Job, progress: Progress, steps: JobSteps) -> EngineResult:
    """Score all scored columns of a job, step by step. Raise InputError for too many patterns of missing values."""
    people = count_people(job)
    if has_zero_weights(people):
        # The scores of rows that count 0 are derived on the host.
        people = replace(people, scores_on="host")
    matching = columns_to_match(people)
    others = [column for column in people.scored_columns if column not in matching]
    result = steps.score_matching(people, matching, progress) if matching else None
    if others:
        # All scores must be on one device: the device of the scores that exist.
        place = people.scores_on if result is None else result.place
        rest = replace(people, scored_columns=others, scores_on=place)
        counted = counted_rows(rest)
        scored = steps.score_cohorts(counted, progress) if counted.rows else Results(counted).finished(0)
        scored = scored if counted is rest else with_zero_weights(rest, scored)
        result = scored if result is None else with_other_columns(people, result, rest, scored)
    assert result is not None
    if needs_rows(job):
        result = with_individual_risk(job, result, score_job(count_rows(job), SILENT, steps))
    # No other size is less: a row that counts is in its own cohort.
    return result.raised_to(job.least) if has_zero_weights(job) else result
