"""What a part of a table shows: the extremes of cells, the sizes of classes, the most homogeneous ones.

Where classes do not overlap the engine tells the extremes, and how many classes there are of each size. Where missing
values match every value each distinct row has a class of its own, and the engine tells what is said of each cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_times

from ..engines.base import SILENT, Engine, EngineResult, Progress, select_columns
from ..engines.cpu.counting import number_rows
from ..engines.partition_plan import compact_codes
from ..measures import Measure, resolve_measures
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import Sizes
from .cells import CLASS_SIZE, DISTINCT
from .estimated import EstimatedSums
from .findings import ByAttribute, Findings, Stopwatch
from .homogeneity import Ranking, find_homogeneous, homogeneous_matches
from .households import HouseholdSums
from .table_part import TablePart

Extremes = dict[str, tuple[float, float]]
# Of no cell.
NO_EXTREMES = (np.inf, -np.inf)


class SearchTools(NamedTuple):
    """Who looks: an engine, and threads; progress hears of cells, watch takes the time."""

    engine: Engine
    workers: Workers
    progress: Progress
    watch: Stopwatch


class PartQuestion(NamedTuple):
    """What is asked of a part. threshold: an estimated risk above it counts as at risk.

    ranking: of homogeneous classes, its columns without codes; None where these are not looked for. household: the
    column of households, a scored column of jobs that is scored by no engine; by_level: whether it is asked for which
    risks occur.
    """

    threshold: float
    ranking: Ranking | None = None
    household: int | None = None
    by_level: bool = False

    def scored(self, part: TablePart) -> TablePart:
        """The part with the scored columns that an engine scores."""
        scored_columns = [scored_column for scored_column in part.job.scored_columns if scored_column != self.household]
        return part._replace(job=replace(part.job, scored_columns=scored_columns))


def search_part(part: TablePart, asked: PartQuestion, tools: SearchTools) -> ByAttribute:
    """What a part shows."""
    found: ByAttribute = {}
    scored = asked.scored(part)
    if scored.job.scored_columns:
        found |= (_look_at_matches if part.job.wildcards else _look_at_classes)(scored, asked, tools)
    if asked.household in part.job.scored_columns:
        with tools.watch("households"):
            found[asked.household] = Findings(Sizes.total([]), {}, households=_look_at_households(part, asked, tools))
    return found


def search_part_again(
    part: TablePart, asked: PartQuestion, measures: Sequence[Measure], tools: SearchTools
) -> ByAttribute:
    """The extremes of measures that were not known to be needed before."""
    part = asked.scored(part)
    if not part.job.scored_columns:
        return {}
    part = part._replace(job=replace(part.job, measures=measures, axes=None))
    if part.job.wildcards:
        part = part.distinct(tools.workers)
        extremes = _extremes_of_matches(part, _score_matches(part, tools))
    else:
        extremes = _extremes_of_classes(part, _score_classes(part, tools))
    nothing = Sizes.total([])
    return {
        scored_column: Findings(nothing, found)
        for scored_column, found in zip(part.job.scored_columns, extremes, strict=True)
    }


def _look_at_classes(part: TablePart, asked: PartQuestion, tools: SearchTools) -> ByAttribute:
    """Where classes do not overlap."""
    job, ranking = part.job, asked.ranking
    result = _score_classes(part, tools)
    extremes = _extremes_of_classes(part, result)
    estimated = None
    if part.people is None:
        assert result is not None
        # Without sampling weights cohorts are kept by size.
        classes = cast("Sequence[Sizes]", result.cohorts)
    else:
        with tools.watch("classes"):
            sizes, people = _weighted_classes(part, tools.workers)
            estimated = EstimatedSums.of(sizes, people, sizes, asked.threshold, asked.by_level)
        classes = [Sizes.of(sizes)] * len(job.scored_columns)
        extremes = [_with_sizes(found, sizes) for found in extremes]
    groups: Mapping[int, Any] = {}
    if ranking is not None:
        with tools.watch("groups"):
            groups = find_homogeneous(ranking.of(job.codes), job.scored_columns, tools.workers, job.times, part.people)
    return {
        scored_column: Findings(Sizes(own.sizes, own.sizes * own.times), found, groups.get(scored_column), estimated)
        for scored_column, own, found in zip(job.scored_columns, classes, extremes, strict=True)
    }


def _look_at_matches(part: TablePart, asked: PartQuestion, tools: SearchTools) -> ByAttribute:
    """Where missing values match every value."""
    part = part.distinct(tools.workers)
    job, times, ranking = part.job, part.times, asked.ranking
    result = _score_matches(part, tools)
    sizes, estimated = on_host(result.values[CLASS_SIZE])[0], None
    extremes = _extremes_of_matches(part, result)
    if part.people is not None:
        people, sizes = sizes, _matching_rows(part, tools)
        with tools.watch("classes"):
            estimated = EstimatedSums.of(sizes, people, times, asked.threshold, asked.by_level)
        extremes = [_with_sizes(found, sizes) for found in extremes]
    found = {}
    for place, scored_column in enumerate(job.scored_columns):
        groups = None
        if ranking is not None:
            amounts = times if part.people is None else part.people
            scores = {name: on_host(values)[place] for name, values in result.values.items()}
            with tools.watch("groups"):
                own = ranking.of(job.codes)
                groups = homogeneous_matches(own, scored_column, job.wildcards, amounts, sizes, scores, tools.workers)
        found[scored_column] = Findings(Sizes.of(sizes, times), extremes[place], groups, estimated)
    return found


def _look_at_households(part: TablePart, asked: PartQuestion, tools: SearchTools) -> HouseholdSums:
    """The risk of the rows of each household."""
    assert asked.household is not None
    job = part.weighted
    (risk,) = resolve_measures("individual_risk")
    # A class is the same for all known columns, so that one is enough to score.
    one = replace(job, scored_columns=job.known[:1], measures=(risk,), axes=None, scores_on="host", dtype="float64")
    one = replace(select_columns(one, job.known), row_counts=None if part.people is None else part.job.times)
    scored = tools.engine.score(one if part.job.times is None else compact_codes(one), SILENT)
    (risks,) = on_host(scored.values[risk.name])
    return HouseholdSums.of(risks, part.times, on_host(job.codes[asked.household]))


def _score_classes(part: TablePart, tools: SearchTools) -> EngineResult | None:
    """The engine's result for the rows of weight above 0, None where there are none."""
    job = replace(part.without_zero_weights, extremes_only=True)
    if not job.rows:
        return None
    with tools.watch("score"):
        # The job of a part is without the values that its columns have elsewhere, that of a table as it is.
        return tools.engine.score(job if part.job.times is None else compact_codes(job), tools.progress)


def _extremes_of_classes(part: TablePart, result: EngineResult | None) -> list[Extremes]:
    """By scored column the lowest and highest of each measure."""
    if result is None:
        return [dict.fromkeys((one.name for one in part.job.measures), NO_EXTREMES) for _ in part.job.scored_columns]
    return [
        {name: (float(both[place, 0]), float(both[place, 1])) for name, both in result.extremes.items()}
        for place in range(len(part.job.scored_columns))
    ]


def _score_matches(part: TablePart, tools: SearchTools) -> EngineResult:
    """The scores of all cells of distinct rows."""
    with tools.watch("score"):
        return tools.engine.score(replace(part.weighted, scores_on="host"), tools.progress)


def _extremes_of_matches(part: TablePart, result: EngineResult) -> list[Extremes]:
    """By scored column the lowest and highest of each measure, of rows of weight above 0.

    What is said of a class without a known value is NaN, or no value.
    """
    counted = True if part.people is None else part.people > 0
    found: list[Extremes] = []
    for place in range(len(part.job.scored_columns)):
        extremes = {}
        for name, values in result.values.items():
            scores = on_host(values)[place]
            some = scores[counted & (scores > 0 if name == DISTINCT else ~np.isnan(scores))]
            extremes[name] = (float(some.min()), float(some.max())) if len(some) else NO_EXTREMES
        found.append(extremes)
    return found


def _matching_rows(part: TablePart, tools: SearchTools) -> npt.NDArray[np.int64]:
    """For each distinct row how many rows match it."""
    size = resolve_measures(CLASS_SIZE)
    job = replace(
        part.job, measures=size, scored_columns=part.job.scored_columns[:1], unit=None, axes=None, scores_on="host"
    )
    with tools.watch("score"):
        return np.asarray(on_host(tools.engine.score(job, tools.progress).values[CLASS_SIZE])[0])


def _weighted_classes(part: TablePart, workers: Workers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Of each class how many rows it has, and people."""
    job = part.job
    assert part.people is not None
    assert job.unit is not None
    codes = [on_host(job.codes[column]) for column in job.known]
    numbered = number_rows(codes, [len(job.counts[column]) for column in job.known], workers, job.times)
    sums = np.zeros(len(numbered.combinations.counts), np.int64)
    add_times(numbered.number, part.people, sums)
    return numbered.combinations.counts.astype(np.int64), sums * np.float64(job.unit)


def _with_sizes(extremes: Extremes, sizes: npt.NDArray[np.int64]) -> Extremes:
    """With the sizes of classes in rows, where they are looked for."""
    return extremes | {name: (float(sizes.min()), float(sizes.max())) for name in extremes if name == CLASS_SIZE}
