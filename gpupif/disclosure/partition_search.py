"""The findings of one partition of a table: extremes of cells, sizes of classes, the most homogeneous classes.

A partition holds equivalence classes whole. A table in memory is one partition. A table of files or of Dask is cut into
partitions by the hash of its quasi-identifiers. The findings of several partitions are combined into the same result,
whatever the cut. Classes are counted by size; the extreme of several extremes is the extreme of all cells; the most
homogeneous classes of a table are among the most homogeneous of its partitions.

If classes do not overlap, the engine returns the extremes, and how many classes there are of each size. If missing
values match every value, each distinct row has a class of its own, and the engine returns the scores of each cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from gpupif.kernels.codes import add_multiplicities

from ..engines.base import SILENT, Engine, EngineResult, Job, Progress, select_columns
from ..engines.cpu.counting import NumberedRows, number_rows
from ..engines.partition_plan import compact_codes, partition_job
from ..measures import Measure, resolve_measures
from ..rows.distinct import DistinctRows
from ..rows.keys import KeyLayout
from ..rows.threads import Workers
from ..utils.arrays import on_host
from ..utils.information import Sizes
from .estimated_risks import EstimatedSums
from .homogeneous_classes import ClassValues, Homogeneous, Ranking, homogeneous_matches
from .households import sum_households
from .models import Model
from .request import CLASS_SIZE, DISTINCT, RiskRequest, recursive_for_one
from .risk_threshold import KeyedSums
from .worst_classes import NAMED, FirstClass, first_of, scores_of_classes, worst_classes

Extremes = dict[str, tuple[float, float]]
# The extremes of a measure over no cells: any extreme of another partition replaces them.
NO_EXTREMES = (np.inf, -np.inf)


class Partition(NamedTuple):
    """Rows of a table in which equivalence classes are whole.

    job: the job for an engine. job.multiplicities: the multiplicity of each row (None: each occurs once). people: the
    units of weight of each row, all its copies together; None without sampling weights.
    """

    job: Job
    people: npt.NDArray[np.int64] | None

    @classmethod
    def from_keys(
        cls,
        job: Job,
        scored_columns: Sequence[int],
        columns: Sequence[int],
        keys: npt.NDArray[np.uint64],
        multiplicities: npt.NDArray[np.int64],
        people: npt.NDArray[np.int64] | None = None,
    ) -> Partition:
        """Return distinct rows as a partition.

        job: for the whole table. scored_columns: the columns to score in this partition. columns: the columns over
        which `keys` are packed. multiplicities: how often each row occurs. people: the units of weight of each row.
        """
        # The job knows and scores only `columns`, so other columns have codes of 0.
        codes: list[npt.NDArray[Any]] = [np.zeros(len(keys), np.uint8)] * len(job.counts)
        for column, own in zip(columns, key_layout_of(job, columns).unpack(keys), strict=True):
            codes[column] = own
        return cls(partition_job(job, scored_columns, codes, multiplicities), people)

    @classmethod
    def from_table(cls, job: Job) -> Partition:
        """Return all rows of a table. job: for the table; with weights, its `multiplicities` are units."""
        return cls(job if job.unit is None else replace(job, multiplicities=None), job.multiplicities)

    @property
    def multiplicities(self) -> npt.NDArray[np.int64]:
        """The number of times that each row occurs."""
        return np.ones(self.job.rows, np.int64) if self.job.multiplicities is None else self.job.multiplicities

    @property
    def weighted(self) -> Job:
        """The job with rows counted by units of weight, if they have weights."""
        return self.job if self.people is None else replace(self.job, multiplicities=self.people)

    @property
    def without_zero_weights(self) -> Job:
        """The job `weighted`, without rows of weight 0, since these are in no class."""
        job = self.weighted
        if self.people is None or self.people.all():
            return job
        some = self.people > 0
        return replace(job, codes=[on_host(codes)[some] for codes in job.codes], multiplicities=self.people[some])

    def distinct(self, workers: Workers) -> Partition:
        """Return the partition with equal rows merged into one distinct row."""
        job = self.job
        columns = [*job.known, *job.scored_columns]
        layout = key_layout_of(job, columns)
        amounts = [self.multiplicities, *([] if self.people is None else [self.people])]
        rows = DistinctRows(layout.words, len(amounts), workers)
        rows.add(layout.pack([on_host(job.codes[column]) for column in columns], workers), *amounts)
        return Partition.from_keys(job, job.scored_columns, columns, rows.keys, *rows.sums)


def key_layout_of(job: Job, columns: Sequence[int]) -> KeyLayout:
    """Return the layout in which rows over some columns are packed into keys."""
    return KeyLayout.from_cardinalities([len(job.counts[column]) for column in columns])


@dataclass(frozen=True)
class Findings:
    """The findings of one sensitive attribute. For the column of households only `households` is filled.

    sizes: rows in equivalence classes of each size, except classes of one row. extremes: the lowest and the highest
    score of its cells, by measure. homogeneous: the most homogeneous classes; None if not asked for. worst: the first
    of the worst classes, by disclosure measure. estimated: None without weights. households: sums of risks by
    household; None for an attribute.
    """

    sizes: Sizes
    extremes: Mapping[str, tuple[float, float]]
    homogeneous: Homogeneous | None = None
    worst: Mapping[str, FirstClass] = field(default_factory=dict)
    estimated: EstimatedSums | None = None
    households: KeyedSums | None = None

    @classmethod
    def total(cls, parts: list[Findings], groups: int) -> Findings:
        """Return the findings of several partitions together. groups: how many homogeneous classes are wanted."""
        extremes = {
            name: (min(part.extremes[name][0] for part in parts), max(part.extremes[name][1] for part in parts))
            for name in parts[0].extremes
        }
        homogeneous = [part.homogeneous for part in parts if part.homogeneous is not None]
        estimated = [part.estimated for part in parts if part.estimated is not None]
        households = [part.households for part in parts if part.households is not None]
        return cls(
            Sizes.total(part.sizes for part in parts),
            extremes,
            Homogeneous.total(homogeneous, groups) if homogeneous else None,
            first_of([part.worst for part in parts]),
            EstimatedSums.total(estimated) if estimated else None,
            KeyedSums.total(households) if households else None,
        )


# Findings by the attribute's index among all columns.
ByAttribute = dict[int, Findings]


def combine_findings(groups: int, *parts: ByAttribute) -> ByAttribute:
    """Return the findings of several partitions together. A partition may lack some attributes.

    groups: how many homogeneous classes are wanted.
    """
    attributes = sorted({attribute for part in parts for attribute in part})
    return {
        attribute: Findings.total([part[attribute] for part in parts if attribute in part], groups)
        for attribute in attributes
    }


class Stopwatch:
    """The wall time spent in each stage, in seconds."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to a stage."""
        started = time.perf_counter()
        yield
        self.seconds[stage] = self.seconds.get(stage, 0.0) + time.perf_counter() - started


@dataclass(frozen=True)
class PartitionSearch:
    """The search of single partitions.

    ranking: ranks homogeneous classes; None if these are not asked for. progress: counts scored cells. watch: takes the
    time of each stage.
    """

    request: RiskRequest
    ranking: Ranking | None
    engine: Engine
    workers: Workers
    progress: Progress
    watch: Stopwatch

    @property
    def _named(self) -> list[Model]:
        """The disclosure measures that are asked for and whose worst class is named."""
        return [model for model in self.request.models if model.name in NAMED]

    def search(self, partition: Partition, again: Sequence[Measure] = ()) -> ByAttribute:
        """Return the findings of a partition. again: measures; if any, return only their extremes."""
        household, columns = self.request.household_column, partition.job.scored_columns
        result: ByAttribute = {}
        # No engine scores the column of households.
        attributes = [column for column in columns if column != household]
        if attributes:
            scored = partition._replace(job=replace(partition.job, scored_columns=attributes))
            if again:
                return self._extremes_of(scored, again)
            result |= (self._matches if scored.job.wildcards else self._classes)(scored)
        if household in columns and not again:
            with self.watch("households"):
                result[household] = Findings(Sizes.total([]), {}, households=self._sum_households(partition, household))
        return result

    def _extremes_of(self, partition: Partition, measures: Sequence[Measure]) -> ByAttribute:
        """Return the extremes of measures whose l followed from a first search."""
        partition = partition._replace(job=replace(partition.job, measures=measures, axes=None))
        if partition.job.wildcards:
            partition = partition.distinct(self.workers)
            extremes = _extremes_of_matches(partition, self._score_matches(partition))
        else:
            extremes = _extremes_of_classes(partition, self._score_classes(partition))
        nothing = Sizes.total([])
        return {
            column: Findings(nothing, own) for column, own in zip(partition.job.scored_columns, extremes, strict=True)
        }

    def _classes(self, partition: Partition) -> ByAttribute:
        """Return the findings of a partition whose classes do not overlap."""
        job, request = partition.job, self.request
        result = self._score_classes(partition)
        extremes = _extremes_of_classes(partition, result)
        estimated = None
        if partition.people is None:
            assert result is not None
            # The engine counts the cohorts of each size, by scored column: here cohorts are classes.
            classes = cast("Sequence[Sizes]", result.cohorts)
        else:
            with self.watch("classes"):
                sizes, people = _weighted_classes(partition, self.workers)
                estimated = EstimatedSums.from_classes(sizes, people, sizes, request.threshold, request.asks_levels)
            classes = [Sizes.from_counts(sizes)] * len(job.scored_columns)
            extremes = [_with_sizes(own, sizes) for own in extremes]
        groups: dict[int, Homogeneous] = {}
        worst: dict[int, Mapping[str, FirstClass]] = {}
        if self.ranking is not None:
            with self.watch("groups"):
                self._list_classes(self.ranking.with_codes(job.codes), partition, groups, worst)
        return {
            column: Findings(
                Sizes(own.sizes, own.sizes * own.multiplicities),
                extreme,
                groups.get(column),
                worst.get(column, {}),
                estimated,
            )
            for column, own, extreme in zip(job.scored_columns, classes, extremes, strict=True)
        }

    def _list_classes(
        self,
        ranking: Ranking,
        partition: Partition,
        groups: dict[int, Homogeneous],
        worst: dict[int, Mapping[str, FirstClass]],
    ) -> None:
        """Find the most homogeneous and the worst classes, by scored column; classes do not overlap."""
        job = partition.job
        numbered = ranking.number_classes(self.workers, job.multiplicities)
        sizes = numbered.combinations.counts
        # k counts rows, whatever their weights.
        smallest = worst_classes(self._named, {CLASS_SIZE: sizes}, np.arange(len(sizes)), numbered, sizes)
        amounts = job.multiplicities if partition.people is None else partition.people
        for column in job.scored_columns:
            worst[column] = smallest
            if self.request.sensitive:
                values, cardinality = ranking.in_order(column), ranking.columns[column].cardinality
                of_classes = ClassValues.from_rows(numbered, values, cardinality, self.workers, amounts)
                groups[column] = ranking.homogeneous(column, of_classes.shares(numbered))
                axis = None if job.axes is None else job.axes[column]
                scores = scores_of_classes(of_classes, axis, ranking.orders[column])
                worst[column] = smallest | worst_classes(self._named, scores, of_classes.classes, numbered, sizes)

    def _matches(self, partition: Partition) -> ByAttribute:
        """Return the findings of a partition in which missing values match every value."""
        partition = partition.distinct(self.workers)
        job, multiplicities, request = partition.job, partition.multiplicities, self.request
        result = self._score_matches(partition)
        sizes, estimated = on_host(result.values[CLASS_SIZE])[0], None
        extremes = _extremes_of_matches(partition, result)
        if partition.people is not None:
            people, sizes = sizes, self._count_matching_rows(partition)
            with self.watch("classes"):
                limits = request.threshold, request.asks_levels
                estimated = EstimatedSums.from_classes(sizes, people, multiplicities, *limits)
            extremes = [_with_sizes(own, sizes) for own in extremes]
        findings = {}
        for slot, column in enumerate(job.scored_columns):
            groups: Homogeneous | None = None
            worst: Mapping[str, FirstClass] = {}
            if self.ranking is not None:
                amounts = multiplicities if partition.people is None else partition.people
                scores = {name: on_host(values)[slot] for name, values in result.values.items()}
                with self.watch("groups"):
                    ranking = self.ranking.with_codes(job.codes)
                    numbered = ranking.number_classes(self.workers)
                    of_class = np.zeros(len(numbered.combinations.counts), np.int64)
                    of_class[numbered.number] = sizes
                    worst = self._worst_matches(numbered, scores, amounts > 0, of_class)
                    if request.sensitive:
                        groups = homogeneous_matches(
                            ranking, column, numbered, job.wildcards, multiplicities, amounts, sizes, scores
                        )
            of_sizes = Sizes.from_counts(sizes, multiplicities)
            findings[column] = Findings(of_sizes, extremes[slot], groups, worst, estimated)
        return findings

    def _worst_matches(
        self,
        numbered: NumberedRows,
        scores: Mapping[str, npt.NDArray[np.float64]],
        counted: npt.NDArray[np.bool_],
        sizes: npt.NDArray[np.int64],
    ) -> dict[str, FirstClass]:
        """Return the first of the worst classes if missing values match every value.

        scores: of each distinct row. counted: whether its weight is above 0. sizes: the rows of each class.
        """
        # k counts rows, whatever their weights.
        smallest = worst_classes(self._named, {CLASS_SIZE: sizes}, np.arange(len(sizes)), numbered, sizes)
        if not self.request.sensitive:
            return smallest
        # A class without a known value of the attribute has no share of a value.
        known = counted & ~np.isnan(scores[recursive_for_one(True)])
        of_values = {name: own[known] for name, own in scores.items() if name != CLASS_SIZE}
        return smallest | worst_classes(self._named, of_values, numbered.number[known], numbered, sizes)

    def _sum_households(self, partition: Partition, household: int) -> KeyedSums:
        """Return the sums of the risks of the rows of each household."""
        job = partition.weighted
        (risk,) = resolve_measures("individual_risk")
        # The individual risk follows from the class, which is the same for all known columns: one of them is scored.
        job = replace(job, scored_columns=job.known[:1], measures=(risk,), axes=None, scores_on="host", dtype="float64")
        rows = None if partition.people is None else partition.job.multiplicities
        job = replace(select_columns(job, job.known), row_counts=rows)
        scored = self.engine.score(job if partition.job.multiplicities is None else compact_codes(job), SILENT)
        (risks,) = on_host(scored.values[risk.name])
        return sum_households(risks, partition.multiplicities, on_host(partition.job.codes[household]))

    def _score_classes(self, partition: Partition) -> EngineResult | None:
        """Return the engine's result for the rows of weight above 0; None if there are no such rows."""
        job = replace(partition.without_zero_weights, extremes_only=True)
        if not job.rows:
            return None
        with self.watch("score"):
            # A partition has only some values of the table: compact codes keep the engine's tables small.
            return self.engine.score(job if partition.job.multiplicities is None else compact_codes(job), self.progress)

    def _score_matches(self, partition: Partition) -> EngineResult:
        """Return the scores of all cells of distinct rows."""
        with self.watch("score"):
            return self.engine.score(replace(partition.weighted, scores_on="host"), self.progress)

    def _count_matching_rows(self, partition: Partition) -> npt.NDArray[np.int64]:
        """Return for each distinct row how many rows match it."""
        job = partition.job
        size, first = resolve_measures(CLASS_SIZE), job.scored_columns[:1]
        job = replace(job, measures=size, scored_columns=first, unit=None, axes=None, scores_on="host")
        with self.watch("score"):
            return np.asarray(on_host(self.engine.score(job, self.progress).values[CLASS_SIZE])[0])


def _extremes_of_classes(partition: Partition, result: EngineResult | None) -> list[Extremes]:
    """Return the lowest and the highest score of each measure, by scored column."""
    job = partition.job
    if result is None:
        return [dict.fromkeys((measure.name for measure in job.measures), NO_EXTREMES) for _ in job.scored_columns]
    return [
        {name: (float(both[slot, 0]), float(both[slot, 1])) for name, both in result.extremes.items()}
        for slot in range(len(job.scored_columns))
    ]


def _extremes_of_matches(partition: Partition, result: EngineResult) -> list[Extremes]:
    """Return the lowest and the highest score of each measure, by scored column, over rows of weight above 0.

    A class without a known value has the score NaN, or 0 distinct values. Such scores are left out.
    """
    counted = True if partition.people is None else partition.people > 0
    by_column: list[Extremes] = []
    for slot in range(len(partition.job.scored_columns)):
        extremes = {}
        for name, values in result.values.items():
            scores = on_host(values)[slot]
            some = scores[counted & (scores > 0 if name == DISTINCT else ~np.isnan(scores))]
            extremes[name] = (float(some.min()), float(some.max())) if len(some) else NO_EXTREMES
        by_column.append(extremes)
    return by_column


def _weighted_classes(partition: Partition, workers: Workers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Return the rows and the people of each class."""
    job = partition.job
    assert partition.people is not None
    assert job.unit is not None
    codes = [on_host(job.codes[column]) for column in job.known]
    numbered = number_rows(codes, [len(job.counts[column]) for column in job.known], workers, job.multiplicities)
    sums = np.zeros(len(numbered.combinations.counts), np.int64)
    add_multiplicities(numbered.number, partition.people, sums)
    return numbered.combinations.counts.astype(np.int64), sums * np.float64(job.unit)


def _with_sizes(extremes: Extremes, sizes: npt.NDArray[np.int64]) -> Extremes:
    """Replace the extremes of class sizes, which count people, by extremes in rows, if they are asked for."""
    return extremes | {name: (float(sizes.min()), float(sizes.max())) for name in extremes if name == CLASS_SIZE}
