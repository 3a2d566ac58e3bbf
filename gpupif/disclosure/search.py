"""What is looked for in every part of a table, and what follows from what was found in all of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..attack.weights import TableWeights
from ..encoding.column import Column, value_order
from ..engines.base import Engine, Job
from ..errors import InputError
from ..measures import resolve_measures
from ..rows.threads import Workers
from ..utils.progress import Reporter
from .cells import (
    DISTINCT,
    about_distance,
    as_score_request,
    check_columns,
    constant_column,
    first_of_all,
    with_households,
)
from .class_sizes import ClassSizes
from .estimated import EstimatedRisks
from .findings import ByAttribute, Stopwatch, combine
from .homogeneity import Homogeneous, Ranking
from .households import HouseholdRisks
from .journalist import MatchedClasses
from .models import MODELS
from .request import RiskRequest
from .risk_threshold import RiskThreshold
from .search_part import PartQuestion, SearchTools, search_part, search_part_again
from .table_part import TablePart


@dataclass(frozen=True)
class Assessed:
    """What was found.

    cardinalities: of the sensitive attributes. sizes: of the equivalence classes. values: by disclosure measure and
    sensitive attribute. l_values: l of recursive (c,l)-diversity, 0 where not asked for. homogeneous: by attribute,
    where looked for; groups: of all. estimated: risk in the population that weights estimate, if there are weights;
    households, scored column: of households, and the threshold for a global risk, where asked for.
    in_population: the classes in a population, if there is one.
    """

    request: RiskRequest
    rows: int
    cardinalities: Mapping[Hashable, int]
    sizes: ClassSizes
    values: Mapping[str, Mapping[Hashable, float]]
    l_values: int
    homogeneous: Mapping[Hashable, Homogeneous]
    groups: Homogeneous
    estimated: EstimatedRisks | None
    households: HouseholdRisks | None
    risk_threshold: RiskThreshold | None
    device: str
    seconds: Mapping[str, float]
    in_population: MatchedClasses | None = None

    def worst(self, model: str) -> float:
        """The worst value of a disclosure measure, over the attributes."""
        return MODELS[model].worst(self.values[model].values())


class SecondLook(NamedTuple):
    """L of recursive (c,l)-diversity, 0 where it is not asked for, and the measures that it takes a second look at."""

    l_values: int
    measures: Sequence[str]


@dataclass(frozen=True)
class RiskSearch:
    """What is looked for in a table or its parts.

    columns: those of the request, and without a sensitive attribute `constant_column`. job: what an engine is to do,
    see `with_households`; without codes where parts come one by one. rows: of the table.
    """

    request: RiskRequest
    columns: Sequence[Column]
    job: Job
    rows: int

    @classmethod
    def of(
        cls,
        request: RiskRequest,
        columns: Sequence[Column],
        rows: int,
        orders: Mapping[Hashable, Sequence[Any]],
        weighted: TableWeights | None = None,
        place: str = "host",
    ) -> RiskSearch:
        """From the columns that are needed of a table; orders: of ordered categories; weighted: how many people its
        rows stand for; place: as `Job.scores_on`.

        Raises InputError; warns.
        """
        check_columns(columns, rows, request)
        used = list(columns)
        if not request.sensitive:
            used.append(constant_column(rows, len(columns[0].codes)))
            if weighted is not None:
                weighted = replace(weighted, counts={**weighted.counts, used[-1].name: np.array([weighted.total])})
        with about_distance():
            job, _ = as_score_request(request, orders).job(used, rows, place, lambda *_: None, weighted)
        return cls(request, used, with_households(job, request.household_place), rows).checked()

    def checked(self) -> RiskSearch:
        """The same; raises InputError where no row that counts has a value of a sensitive attribute."""
        for scored_column in self.attributes:
            if not self.job.priors[scored_column].any():
                raise InputError(
                    f"sensitive: column {self.columns[scored_column].name!r}: expected a value in a row of a "
                    f"weight above 0, "
                    "got missing values, which match any value, in all of them. Leave it out."
                )
        return self

    @property
    def known(self) -> int:
        """How many quasi-identifiers there are."""
        return len(self.request.quasi_identifiers)

    @property
    def attributes(self) -> list[int]:
        """Where the sensitive attributes are, or what takes the place of one."""
        return [
            scored_column for scored_column in self.job.scored_columns if scored_column != self.request.household_place
        ]

    @cached_property
    def _asked(self) -> PartQuestion:
        """What is asked of a part."""
        request = self.request
        return PartQuestion(
            request.threshold, self._ranking, request.household_place, by_level=request.max_global_risk is not None
        )

    @cached_property
    def _ranking(self) -> Ranking | None:
        """Of homogeneous classes, where they are looked for."""
        if not (self.request.groups and self.request.sensitive):
            return None
        return Ranking(self.columns, self.known, list(map(value_order, self.columns)), self.request.groups)

    def look(self, parts: Iterable[TablePart], tools: SearchTools, again: Sequence[str] = ()) -> ByAttribute:
        """What is found in some parts together; again: at a second look, the extremes of these measures only."""
        found = (
            search_part_again(part, self._asked, resolve_measures(again), tools)
            if again
            else search_part(part, self._asked, tools)
            for part in parts
        )
        return combine(self.request.groups, *found)

    def second(self, found: ByAttribute) -> SecondLook:
        """What is left to look for; raises InputError for an l that no class can have."""
        models = [model for model in self.request.models if model.of_l]
        if not models:
            return SecondLook(0, ())
        if self.request.l_values is None:
            fewest = int(min(found[scored_column].extremes[DISTINCT][0] for scored_column in self.attributes))
            return SecondLook(fewest, [model.measure(fewest) for model in models] if fewest > 1 else ())
        sizes = found[self.attributes[0]].sizes.sizes
        largest, least = int(sizes.max()) if len(sizes) else 1, self.request.l_values
        if least > largest:
            raise InputError(f"l: expected at most {largest:,}, the rows of the largest class; got {least:,}.")
        return SecondLook(least, ())

    def conclude(
        self,
        found: ByAttribute,
        second: SecondLook,
        again: ByAttribute,
        device: str,
        seconds: Mapping[str, float],
    ) -> Assessed:
        """What follows from what was found in all parts, at first and again."""
        job, request = self.job, self.request
        name_of = {scored_column: self.columns[scored_column].name for scored_column in self.attributes}
        homogeneous = {
            name_of[scored_column]: one.homogeneous
            for scored_column, one in found.items()
            if one.homogeneous is not None
        }
        # Classes are the same for all attributes.
        one = found[self.attributes[0]]
        overlapping = any(column in job.wildcards for column in job.known)
        people = 0.0 if job.unit is None else int(job.counts[job.known[0]].sum()) * job.unit
        sizes, households, place = ClassSizes.of_rows(one.sizes, self.rows, overlapping), None, request.household_place
        if place is not None:
            sums, column = found[place].households, self.columns[place]
            assert sums is not None
            households = sums.risks(column.name, column.counts, request.threshold)
        risk_threshold = None
        if request.max_global_risk is not None:
            levels = sizes.risk_levels() if one.estimated is None else one.estimated.levels
            assert levels is not None
            risk_threshold = levels.threshold(request.max_global_risk)
        return Assessed(
            request=request,
            rows=self.rows,
            cardinalities={name: self.columns[scored_column].cardinality for scored_column, name in name_of.items()},
            sizes=sizes,
            values=self._values(found, second, again),
            l_values=second.l_values,
            homogeneous=homogeneous,
            groups=Homogeneous.total(list(homogeneous.values()), request.groups),
            estimated=None if one.estimated is None else one.estimated.risks(people, request.threshold),
            households=households,
            risk_threshold=risk_threshold,
            device=device,
            seconds=seconds,
        )

    def _values(self, found: ByAttribute, second: SecondLook, again: ByAttribute) -> dict[str, dict[Hashable, float]]:
        """By disclosure measure and sensitive attribute."""
        values: dict[str, dict[Hashable, float]] = {}
        for model in self.request.models:
            measure = model.measure(second.l_values, self.request.matching)
            looked = again if measure in second.measures else found
            if model.of_l and self.request.may_look_again and not second.measures:
                measure = first_of_all(self.request.matching)
            values[model.name] = {}
            for scored_column in self.attributes:
                extreme = looked[scored_column].extremes[measure][int(model.highest)]
                axis = None if self.job.axes is None else self.job.axes[scored_column]
                values[model.name][self.columns[scored_column].name] = model.finish(extreme, axis)
        return values


def assess_parts(
    search: RiskSearch, parts: Iterable[TablePart], engine: Engine, report: Reporter, watch: Stopwatch
) -> Assessed:
    """What is found in the parts of a table, gone through once or twice."""
    with Workers() as workers:

        def go_through(again: Sequence[str] = ()) -> ByAttribute:
            scored_columns = len(search.attributes)
            report.stage("score", search.rows * scored_columns, "cells")
            found: ByAttribute = {}
            for part in parts:
                # Cells of distinct rows are not those of the table.
                whole = part.job.times is None and part.people is None and not part.job.wildcards
                progress = report if whole else Reporter(visible=False)
                tools = SearchTools(engine, workers, progress, watch)
                found = combine(search.request.groups, found, search.look([part], tools, again))
                if not whole:
                    scored = [
                        scored_column for scored_column in part.job.scored_columns if scored_column in search.attributes
                    ]
                    report.advance(part.job.total * len(scored))
            return found

        found = go_through()
        second = search.second(found)
        again = go_through(second.measures) if second.measures else {}
    return search.conclude(found, second, again, engine.device, watch.seconds)
