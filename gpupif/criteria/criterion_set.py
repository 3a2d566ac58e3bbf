"""Criteria checked against the columns of a table, and what counted rows have of what they limit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attack.known_subsets import AnyKnown, Known, as_attackers, check_known
from ..disclosure.class_risks import risks_of
from ..disclosure.class_sizes import ClassSizes
from ..disclosure.request import NO_ATTRIBUTE
from ..engines.base import Engine
from ..errors import InputError, did_you_mean
from ..measures import Measure, find_measure
from ..utils.exact_sums import ExactSum
from ..utils.percentiles import percentiles
from ..utils.row_sums import sum_rows
from ..utils.validation import check_exist
from .counted import CountedTable
from .counted_scores import CellScores, class_sizes, columns_of, score_counted
from .criterion import Criterion, read_criteria
from .quantities import OfClasses, OfModel, OfScores

# Classes that overlap have no number: what is not known of them.
_OVERLAPPING = ClassSizes({1: 1}, overlapping=True)


class CriterionValue(NamedTuple):
    """What a table has of what a criterion limits, and whether that is safe; column: which is worst, of several."""

    criterion: Criterion
    value: float | None
    is_met: bool
    column: Hashable = None


@dataclass(frozen=True)
class CriterionSet:
    """Criteria on a table; see `gpupif.protect` for its arguments.

    quasi_identifiers: what an attacker knows of whom a criterion says nothing, and the columns that any few are of.
    sensitive: what disclosure measures are of; both together are the cells that are scored. attackers: by name what
    each knows.
    distances: of the values of columns, for ``t`` and ``emd``, missing: "category" or "wildcard", as of `gpupif.score`.
    """

    criteria: Sequence[Criterion]
    quasi_identifiers: Sequence[Hashable]
    sensitive: Sequence[Hashable] = ()
    attackers: Mapping[str, Known] = field(default_factory=dict)
    distances: Mapping[Any, Any] = field(default_factory=dict)
    missing: str = "category"

    @classmethod
    def of(
        cls,
        criteria: Any,
        quasi_identifiers: Sequence[Hashable],
        sensitive: Sequence[Hashable] = (),
        attackers: Any = None,
        distances: Mapping[Any, Any] | None = None,
        names: Sequence[Hashable] | None = None,
        missing: str = "category",
    ) -> CriterionSet:
        """Checked, without a table; names: of all columns of the table, of which an attacker may know any.

        Raises InputError for what is no criterion, and for an attacker or a column that is not there.
        """
        made = cls(
            read_criteria(criteria),
            list(quasi_identifiers),
            list(sensitive),
            as_attackers(attackers) or {},
            distances or {},
            missing,
        )
        for criterion in made.criteria:
            made._check(criterion, made.scored if names is None else names)
        return made

    @property
    def scored(self) -> list[Hashable]:
        """The columns whose cells are scored."""
        return [*self.quasi_identifiers, *self.sensitive]

    @property
    def columns(self) -> list[Hashable]:
        """All columns that are needed."""
        known = [name for one in self._known_by_criterion.values() for name in columns_of(one)]
        return list(dict.fromkeys([*self.scored, *known]))

    def with_criteria(self, criteria: Sequence[Criterion]) -> CriterionSet:
        """The same with others, or some, of the criteria."""
        return replace(self, criteria=criteria)

    def only_improves(self, criterion: Criterion) -> bool:
        """Whether a table that meets a criterion still does when values of any column are made coarser."""
        return criterion.quantity.only_improves(isinstance(self._known_by_criterion[criterion], AnyKnown))

    def known(self, criterion: Criterion) -> Sequence[Hashable] | AnyKnown:
        """What the attacker of a criterion knows: columns, or any few of some."""
        return self._known_by_criterion[criterion]

    def measure(self, table: CountedTable, engine: Engine) -> list[CriterionValue]:
        """What a table has of each criterion, in their order."""
        found = [self._values_of(known, criteria, table, engine) for known, criteria in self._by_attacker]
        values = {criterion: value for one in found for criterion, value in one.items()}
        return [values[criterion] for criterion in self.criteria]

    @cached_property
    def _known_by_criterion(self) -> dict[Criterion, Sequence[Hashable] | AnyKnown]:
        return {criterion: self._known(criterion) for criterion in self.criteria}

    def _known(self, criterion: Criterion) -> Sequence[Hashable] | AnyKnown:
        pool = list(self.quasi_identifiers)
        known: Known = None
        if criterion.attacker is not None:
            if criterion.attacker not in self.attackers:
                there = ", ".join(map(repr, self.attackers)) or "none"
                hint = did_you_mean(criterion.attacker, self.attackers)
                raise InputError(
                    f"criterion {str(criterion)!r}: no attacker {criterion.attacker!r}.{hint} There are: {there}. "
                    "Say what each knows with attackers=, or write known=A,B: before the figure."
                )
            known = self.attackers[criterion.attacker]
            if known is None and not criterion.of_classes:
                # As of `gpupif.score`: all columns that are scored.
                known = self.scored
        elif isinstance(criterion.known, int):
            known = AnyKnown(criterion.known)
        elif criterion.known is not None:
            known = named_columns(criterion.known, self.scored)
        if isinstance(known, AnyKnown):
            return known if known.pool is not None else replace(known, among=pool)
        return pool if known is None else list(known)

    def _check(self, criterion: Criterion, names: Sequence[Hashable]) -> None:
        """Raise InputError for what of a criterion is not there; names: of the table."""
        about = f"criterion {str(criterion)!r}"
        quantity, known = criterion.quantity, self._known_by_criterion[criterion]
        check_exist(
            about if criterion.attacker is None else f"attackers: {criterion.attacker!r}", columns_of(known), names
        )
        if isinstance(quantity, OfModel) and quantity.sensitive:
            if not self.sensitive:
                raise InputError(
                    f"{about}: {quantity.model.name} is of a sensitive attribute: name one with sensitive=."
                )
            self._check_column(about, quantity.column, self.sensitive, "sensitive attribute")
            learnt = self._learnt(known)
            if not learnt or quantity.column not in (None, *map(str, learnt)):
                raise InputError(
                    f"{about}: the attacker knows column {quantity.column or str(self.sensitive[0])!r} and has nothing "
                    "left to learn of it. Leave it out of what the attacker knows."
                )
        elif isinstance(quantity, OfScores):
            self._check_column(about, quantity.column, self.scored, "column that is scored")
        elif isinstance(quantity, OfClasses) and isinstance(known, AnyKnown) and not _is_of_overlapping(quantity):
            raise InputError(
                f"{about}: {quantity.figure.name} is not defined where an attacker knows any few columns, for then "
                "classes overlap. Limit another figure, such as k."
            )
        if isinstance(known, AnyKnown):
            criteria = self.scored if isinstance(quantity, OfScores) else [NO_ATTRIBUTE]
            pool = list(known.pool or ()) if known.known else criteria
            others = min(len(pool) - (name in pool) for name in criteria)
            if isinstance(criterion.known, int) and criterion.known > others:
                raise InputError(
                    f"{about}: known: expected at most {others}, the number of columns that may be known, "
                    f"got {criterion.known}. Give a lower number, or more quasi-identifiers."
                )
            check_known(about, known, criteria, pool)

    @staticmethod
    def _check_column(about: str, column: str | None, names: Sequence[Hashable], what: str) -> None:
        texts = list(map(str, names))
        if column is not None and column not in texts:
            hint = did_you_mean(column, texts)
            raise InputError(f"{about}: {column!r} is no {what}.{hint} There are: {', '.join(map(repr, texts))}.")

    @cached_property
    def _by_attacker(self) -> list[tuple[Sequence[Hashable] | AnyKnown, list[Criterion]]]:
        """Criteria that are found in one look, of classes, of sensitive attributes or of all cells."""
        looks: dict[Any, tuple[Sequence[Hashable] | AnyKnown, list[Criterion]]] = {}
        for criterion in self.criteria:
            known = self._known_by_criterion[criterion]
            key = (_kind(criterion), known if isinstance(known, AnyKnown) else tuple(known))
            looks.setdefault(key, (known, []))[1].append(criterion)
        return list(looks.values())

    def _values_of(
        self, known: Sequence[Hashable] | AnyKnown, criteria: Sequence[Criterion], table: CountedTable, engine: Engine
    ) -> dict[Criterion, CriterionValue]:
        """Values of criteria of one kind against one attacker."""
        kind = _kind(criteria[0])
        if kind == "classes":
            sizes = class_sizes(table, known, engine, self.missing)
            return {one: value_of_classes(one, sizes) for one in criteria}
        columns = self._learnt(known) if kind == "models" else self.scored
        return self._values_of_cells(known, criteria, table, engine, columns)

    def _learnt(self, known: Sequence[Hashable] | AnyKnown) -> list[Hashable]:
        """The sensitive attributes that an attacker does not know anyway."""
        return [name for name in self.sensitive if isinstance(known, AnyKnown) or name not in known]

    def _values_of_cells(
        self,
        known: Sequence[Hashable] | AnyKnown,
        criteria: Sequence[Criterion],
        table: CountedTable,
        engine: Engine,
        columns: Sequence[Hashable],
    ) -> dict[Criterion, CriterionValue]:
        """Values of criteria that are of the cells of columns."""
        quantities = [criterion.quantity for criterion in criteria]
        of_rows = any(isinstance(one, OfScores) and one.measure is None for one in quantities)
        if not of_rows:
            named = {getattr(one, "column", None) for one in quantities}
            columns = columns if None in named else [name for name in columns if str(name) in named]
        matching = self.missing == "wildcard"
        measures = list(dict.fromkeys(_measure_of(one, matching) for one in quantities))
        only_extremes = not of_rows and all(_is_extreme(one) for one in quantities)
        job, scores = score_counted(
            table, known, columns, measures, self.distances, engine, only_extremes, self.missing
        )
        times = table.times
        found = {}
        for criterion in criteria:
            quantity = criterion.quantity
            if isinstance(quantity, OfScores) and quantity.measure is None:
                gains = [scores["cig"][place].scores for place in range(len(columns))]
                found[criterion] = worst_of(criterion, {None: _gain(gains, times, quantity.percentile)})
                continue
            each: dict[Hashable, float] = {}
            for place, name in enumerate(columns):
                if quantity.column is not None and str(name) != quantity.column:
                    continue
                one = scores[_measure_of(quantity, matching).name][place]
                if isinstance(quantity, OfModel):
                    axis = None if job.axes is None else job.axes[job.scored_columns[place]]
                    each[name] = quantity.model.finish(_extreme(one, 100 if quantity.model.highest else 0), axis)
                else:
                    assert isinstance(quantity, OfScores)
                    place_of = quantity.percentile
                    each[name] = (
                        _extreme(one, place_of) if place_of in (0, 100) else _figure(one.scores, times, place_of)
                    )
            found[criterion] = worst_of(criterion, each)
        return found


def named_by_attackers(attackers: Mapping[str, Known], others: Sequence[Hashable] = ()) -> dict[Hashable, str]:
    """By column that attackers know and that is none of others, what errors say of where it was named first."""
    found: dict[Hashable, str] = {}
    for attacker, known in attackers.items():
        for name in (known.among or ()) if isinstance(known, AnyKnown) else (known or ()):
            if name not in others:
                found.setdefault(name, f"attackers: {attacker!r}")
    return found


def named_columns(texts: Sequence[str], names: Sequence[Hashable]) -> list[Hashable]:
    """The columns that a criterion names, whose names need not be texts; those that are not there as they are named."""
    by_text = {str(name): name for name in names}
    return [by_text.get(text, text) for text in texts]


def _is_of_overlapping(quantity: OfClasses) -> bool:
    """Whether a figure is defined where classes overlap."""
    return quantity.figure.find(risks_of(_OVERLAPPING)) is not None


def _kind(criterion: Criterion) -> str:
    quantity = criterion.quantity
    if isinstance(quantity, OfModel):
        return "models" if quantity.sensitive else "classes"
    return "classes" if isinstance(quantity, OfClasses) else "cells"


def _measure_of(quantity: Any, matching: bool) -> Measure:
    """The measure of cells that a quantity is a figure of; matching: where missing values match every value."""
    if isinstance(quantity, OfModel):
        return find_measure(quantity.model.measure(quantity.l_values, matching))
    return quantity.measure or find_measure("cig")


def _is_extreme(quantity: Any) -> bool:
    """Whether it is the lowest or highest of some scores."""
    return isinstance(quantity, OfModel) or quantity.percentile in (0, 100)


def _extreme(found: CellScores, percentile: float | None) -> float:
    high = percentile == 100
    if found.low_high is not None:
        return found.low_high[high]
    assert found.scores is not None
    known = found.scores[found.scores == found.scores]
    return float(known.max() if high else known.min()) if len(known) else math.nan


def _figure(scores: Any, times: npt.NDArray[np.int64], percentile: float | None) -> float:
    """The mean or a percentile of scores of counted rows."""
    if percentile is None:
        return ExactSum.of(np.asarray(scores), times).mean
    return percentiles(lambda: [(scores, times)], [percentile])[0]


def _gain(scores: Sequence[Any], times: npt.NDArray[np.int64], percentile: float | None) -> float:
    """The mean or a percentile of the gains of rows, from the scores of each column."""
    if percentile is None:
        return math.fsum(_figure(one, times, None) for one in scores)
    sums = sum_rows(scores)
    if percentile in (0, 100):
        return float(sums.max() if percentile else sums.min())
    return _figure(sums, times, percentile)


def value_of_classes(criterion: Criterion, sizes: ClassSizes) -> CriterionValue:
    """What classes of such sizes have of a criterion that is of sizes alone."""
    quantity = criterion.quantity
    if isinstance(quantity, OfModel):
        value: float | None = sizes.smallest
    else:
        assert isinstance(quantity, OfClasses)
        parameter = quantity.parameter
        below = int(parameter) if parameter is not None and quantity.figure.depends == ("k",) else 5
        value = quantity.figure.find(risks_of(sizes, below, None if parameter is None or parameter > 1 else parameter))
    return CriterionValue(criterion, value, criterion.is_met(value))


def worst_of(criterion: Criterion, each: Mapping[Hashable, float]) -> CriterionValue:
    """The worst of the values of several columns, of equal ones the first."""
    known = {name: value for name, value in each.items() if not math.isnan(value)}
    if not known:
        return CriterionValue(criterion, None, False)
    column = (max if criterion.at_most else min)(known, key=lambda name: known[name])
    return CriterionValue(criterion, known[column], criterion.is_met(known[column]), column)
