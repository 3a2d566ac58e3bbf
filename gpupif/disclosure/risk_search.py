"""The search of a table for the wanted disclosure measures: first in each partition, then over all partitions."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..attack.weights import TableWeights
from ..encoding.column import Column, value_order
from ..engines.base import Engine, Job, Progress
from ..errors import InputError, NoValueError
from ..measures import resolve_measures
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .class_sizes import ClassSizes
from .estimated_risks import EstimatedRisks
from .homogeneous_classes import Homogeneous, Ranking
from .households import HouseholdRisks
from .models import MODELS
from .partition_search import ByAttribute, Partition, PartitionSearch, Stopwatch, combine_findings
from .population_risks import MatchedClasses
from .request import DISTINCT, RiskRequest, about_distance, constant_column, recursive_for_one, with_households
from .risk_threshold import RiskThreshold, find_threshold
from .worst_classes import WorstClass


@dataclass(frozen=True)
class Assessment:
    """The result of a search.

    request: RiskRequest. The request.
    rows: int. Rows of the table.
    cardinalities: mapping of sensitive attribute to its number of distinct values, with weights those of people.
    sizes: ClassSizes. Sizes of the equivalence classes.
    values: mapping of disclosure measure to its values by sensitive attribute.
    l_values: int. The l of recursive (c,l)-diversity; 0 if not asked for.
    homogeneous: mapping of sensitive attribute to its homogeneous classes. Empty if not asked for.
    groups: Homogeneous. The most homogeneous classes of all attributes.
    worst_classes: list of WorstClass. The worst class of each measure that is named; empty if not asked for.
    estimated: EstimatedRisks or None. The risk in the population that weights estimate. None without weights.
    households: HouseholdRisks or None. The risk of households. None if not asked for.
    risk_threshold: RiskThreshold or None. The threshold for a limit of the global risk. None if not asked for.
    device: str. The device that computed.
    seconds: mapping of stage to wall time, seconds.
    in_population: MatchedClasses or None. The classes in a population. None without a population.
    """

    request: RiskRequest
    rows: int
    cardinalities: Mapping[Hashable, int]
    sizes: ClassSizes
    values: Mapping[str, Mapping[Hashable, float]]
    l_values: int
    homogeneous: Mapping[Hashable, Homogeneous]
    groups: Homogeneous
    worst_classes: list[WorstClass]
    estimated: EstimatedRisks | None
    households: HouseholdRisks | None
    risk_threshold: RiskThreshold | None
    device: str
    seconds: Mapping[str, float]
    in_population: MatchedClasses | None = None

    def worst(self, model: str) -> float:
        """Return the value of highest risk of a disclosure measure, over the attributes."""
        return MODELS[model].worst(self.values[model].values())


class SecondSearch(NamedTuple):
    """The measures that need a second search. l_values: the l of recursive (c,l)-diversity; 0 if not asked for."""

    l_values: int
    measures: Sequence[str]


@dataclass(frozen=True)
class RiskSearch:
    """The search of a table or its partitions.

    columns: the columns of the request; without a sensitive attribute also `constant_column`. job: for an engine, see
    `with_households`. It has no codes of rows if partitions come one by one. rows: rows of the table.
    """

    request: RiskRequest
    columns: Sequence[Column]
    job: Job
    rows: int

    @classmethod
    def from_columns(
        cls,
        request: RiskRequest,
        columns: Sequence[Column],
        rows: int,
        orders: Mapping[Hashable, Sequence[Any]],
        weighted: TableWeights | None = None,
        scores_on: str = "host",
    ) -> RiskSearch:
        """Return the search of a table with the columns of a request.

        request: the request.
        columns: the columns of the request, with or without codes of rows.
        rows: rows of the table.
        orders: all values of ordered categories, in order, by column.
        weighted: the units of weight of rows and values. None without weights.
        scores_on: as in `Job`.

        Raises InputError; warns of nearly unique quasi-identifiers.
        """
        request.check_columns(columns, rows)
        used = list(columns)
        if not request.sensitive:
            used.append(constant_column(rows, len(columns[0].codes)))
            if weighted is not None:
                weighted = replace(weighted, counts={**weighted.counts, used[-1].name: np.array([weighted.total])})
        with about_distance():
            job, _ = request.score_request(orders).job(used, rows, scores_on, lambda *_: None, weighted)
        return cls(request, used, with_households(job, request.household_column), rows).checked()

    def checked(self) -> RiskSearch:
        """Return the search. Raises NoValueError if no row that counts has a value of a sensitive attribute."""
        for column in self.attributes:
            if not self.job.priors[column].any():
                raise NoValueError(
                    f"sensitive: column {self.columns[column].name!r}: expected a value in a row of a weight above 0, "
                    "got missing values, which match any value, in all of them. Leave it out."
                )
        return self

    @property
    def attributes(self) -> list[int]:
        """The indices of the sensitive attributes, or of `constant_column`."""
        return [column for column in self.job.scored_columns if column != self.request.household_column]

    @cached_property
    def _ranking(self) -> Ranking | None:
        """The ranking of homogeneous classes, and of the worst ones; None if none are to be listed."""
        if not self.request.groups:
            return None
        known_count = len(self.request.quasi_identifiers)
        return Ranking(self.columns, known_count, list(map(value_order, self.columns)), self.request.groups)

    def search(
        self,
        partitions: Iterable[Partition],
        engine: Engine,
        workers: Workers,
        again: Sequence[str] = (),
        progress: Progress | None = None,
        watch: Stopwatch | None = None,
    ) -> ByAttribute:
        """Return the findings of some partitions together. again: measures; if any, return only their extremes."""
        progress, watch = progress or Reporter(visible=False), watch or Stopwatch()
        search = PartitionSearch(self.request, self._ranking, engine, workers, progress, watch)
        measures = resolve_measures(again) if again else ()
        return combine_findings(self.request.groups, *(search.search(partition, measures) for partition in partitions))

    def second(self, found: ByAttribute) -> SecondSearch:
        """Return the measures of a second search. Raises InputError for an l above the rows of the largest class."""
        models = [model for model in self.request.models if model.of_l]
        if not models:
            return SecondSearch(0, ())
        if self.request.l_values is None:
            fewest = int(min(found[column].extremes[DISTINCT][0] for column in self.attributes))
            return SecondSearch(fewest, [model.measure(fewest) for model in models] if fewest > 1 else ())
        sizes = found[self.attributes[0]].sizes.sizes
        largest, least = int(sizes.max()) if len(sizes) else 1, self.request.l_values
        if least > largest and not self.request.may_lack_values:
            raise InputError(f"l: expected at most {largest:,}, the rows of the largest class; got {least:,}.")
        return SecondSearch(least, ())

    def conclude(
        self,
        found: ByAttribute,
        second: SecondSearch,
        again: ByAttribute,
        device: str,
        seconds: Mapping[str, float],
    ) -> Assessment:
        """Return the result from the findings of all partitions.

        found: findings of the first search. second: the measures of the second search, whose findings are `again`.
        """
        job, request = self.job, self.request
        name_of = {column: self.columns[column].name for column in self.attributes}
        homogeneous = {
            name_of[column]: findings.homogeneous
            for column, findings in found.items()
            if findings.homogeneous is not None
        }
        # Sizes of classes are the same for all attributes, so they are read from the first.
        first = found[self.attributes[0]]
        overlapping = any(column in job.wildcards for column in job.known)
        people = 0.0 if job.unit is None else int(job.counts[job.known[0]].sum()) * job.unit
        sizes, households = ClassSizes.from_rows(first.sizes, self.rows, overlapping), None
        if request.household_column is not None:
            sums, column = found[request.household_column].households, self.columns[request.household_column]
            assert sums is not None
            households = HouseholdRisks.from_sums(sums, column.name, column.counts, request.threshold)
        values = self._values(found, second, again)
        risk_threshold = None
        if request.max_global_risk is not None:
            levels = sizes.rows_of_risk() if first.estimated is None else first.estimated.rows_of_risk
            assert levels is not None
            risk_threshold = find_threshold(levels, request.max_global_risk)
        return Assessment(
            request=request,
            rows=self.rows,
            cardinalities={name: int(np.count_nonzero(job.counts[column])) for column, name in name_of.items()},
            sizes=sizes,
            values=values,
            l_values=second.l_values,
            homogeneous=homogeneous,
            groups=Homogeneous.total(list(homogeneous.values()), request.groups),
            worst_classes=self._worst_classes(found, values),
            estimated=None if first.estimated is None else first.estimated.risks(people, request.threshold),
            households=households,
            risk_threshold=risk_threshold,
            device=device,
            seconds=seconds,
        )

    def _worst_classes(self, found: ByAttribute, values: Mapping[str, Mapping[Hashable, float]]) -> list[WorstClass]:
        """Return the worst class for k, and for each sensitive attribute those for distinct l and t.

        values: of the disclosure measures, by measure and sensitive attribute.
        """
        worst: dict[tuple[str, Hashable], WorstClass] = {}
        for column in self.attributes:
            for model, first in found[column].worst.items():
                assert self._ranking is not None
                # k is the same for all attributes.
                attribute = None if model == "k" else self.columns[column].name
                value = values[model][self.columns[column].name]
                of_class = self._ranking.values_of(first.of_class)
                worst[model, attribute] = WorstClass(model, attribute, value, of_class, first.rows, first.classes)
        return list(worst.values())

    def _values(self, found: ByAttribute, second: SecondSearch, again: ByAttribute) -> dict[str, dict[Hashable, float]]:
        """Return the values of the disclosure measures, by measure and sensitive attribute."""
        values: dict[str, dict[Hashable, float]] = {}
        for model in self.request.models:
            measure = model.measure(second.l_values, self.request.matching)
            findings = again if measure in second.measures else found
            if model.of_l and self.request.may_look_again and not second.measures:
                measure = recursive_for_one(self.request.matching)
            values[model.name] = {}
            for column in self.attributes:
                extreme = findings[column].extremes[measure][int(model.highest)]
                axis = None if self.job.axes is None else self.job.axes[column]
                values[model.name][self.columns[column].name] = model.finish(extreme, axis)
        return values


def search_partitions(
    search: RiskSearch, partitions: Iterable[Partition], engine: Engine, report: Reporter, watch: Stopwatch
) -> Assessment:
    """Return the result of partitions in memory.

    Partitions are searched once, or twice if the l of recursive (c,l)-diversity follows from the first search.
    """
    with Workers() as workers:

        def search_all(again: Sequence[str] = ()) -> ByAttribute:
            report.stage("score", search.rows * len(search.attributes), "cells")
            found: ByAttribute = {}
            for partition in partitions:
                job = partition.job
                # Progress counts cells of the table. An engine that gets distinct rows would count theirs.
                every_row = job.multiplicities is None and partition.people is None and not job.wildcards
                progress = report if every_row else None
                own = search.search([partition], engine, workers, again, progress, watch)
                found = combine_findings(search.request.groups, found, own)
                if not every_row:
                    scored = [column for column in job.scored_columns if column in search.attributes]
                    report.advance(job.total * len(scored))
            return found

        found = search_all()
        second = search.second(found)
        again = search_all(second.measures) if second.measures else {}
    return search.conclude(found, second, again, engine.device, watch.seconds)
