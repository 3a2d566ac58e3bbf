"""Scores of a job against one attacker, who knows a list of columns or any of several sets of columns.

`score_job` has the steps for a list of columns, for every engine. An engine adds two functions: one scores rows that
all count, the other scores rows that match because values are missing. Sampling weights are counts of rows in both, so
that weights, rows of weight 0 and wildcards go together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .base import SILENT, AnyKnownResult, AnyKnownShares, Engine, EngineResult, Job, KnownSubset, Progress, served
from .block_scoring import Results
from .individual_risk import count_people, count_rows, needs_rows, with_individual_risk
from .wildcards import columns_to_match, with_other_columns
from .zero_weights import counted_rows, has_zero_weights, with_zero_weights

ScoreCohorts = Callable[[Job, Progress], EngineResult]
ScoreMatching = Callable[[Job, Sequence[int], Progress], EngineResult]


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


def score_job(job: Job, progress: Progress, score_cohorts: ScoreCohorts, score_matching: ScoreMatching) -> EngineResult:
    """Score all scored columns of a job, step by step. Raise InputError for too many patterns of missing values.

    score_cohorts: scores a job without wildcards in which every row counts.
    score_matching: scores some of the job's scored columns against known columns in which missing values match every
        value. Its arrays have room for all scored columns.
    """
    people = count_people(job)
    if has_zero_weights(people):
        # The scores of rows that count 0 are derived on the host.
        people = replace(people, scores_on="host")
    matching = columns_to_match(people)
    others = [column for column in people.scored_columns if column not in matching]
    result = score_matching(people, matching, progress) if matching else None
    if others:
        # All scores must be on one device: the device of the scores that exist.
        place = people.scores_on if result is None else result.place
        rest = replace(people, scored_columns=others, scores_on=place)
        counted = counted_rows(rest)
        scored = score_cohorts(counted, progress) if counted.rows else Results(counted).finished(0)
        scored = scored if counted is rest else with_zero_weights(rest, scored)
        result = scored if result is None else with_other_columns(people, result, rest, scored)
    assert result is not None
    if needs_rows(job):
        of_rows = score_job(count_rows(job), SILENT, score_cohorts, score_matching)
        result = with_individual_risk(job, result, of_rows)
    # No other size is less: a row that counts is in its own cohort.
    return result.raised_to(job.least) if has_zero_weights(job) else result
